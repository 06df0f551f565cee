/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-wake, cases W3, W4, W5: a call when one is due, only then, and never too few. */
#include "wake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A call follows the used index at once; this long after it none is still on its way. */
#define SETTLE_US      300
#define BATCH          8U
#define W5_FRAMES      1000
#define STORM_DIV      4
#define W4_OUTSTANDING 256

static int
add_and_kick(struct wk_run *run, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (wk_guest_add(run) != 0)
			return -EPROTO;
	fe_ring_kick(&run->net->tx[0].ring);
	return 0;
}

/* Collects n used transmit buffers by polling. */
static int
reap_all(struct wk_run *run, uint32_t n)
{
	uint64_t end = fe_now_us() + run->opts->lost_us;
	int got;

	for (uint32_t done = 0; done < n; done += (uint32_t)got) {
		got = wk_guest_reap(run);
		if (got < 0)
			return got;
		if (fe_now_us() > end)
			return fe_fault(&run->fault, "%u of %u descriptors not used", n - done, n);
	}
	return 0;
}

static int
expect_calls(struct wk_run *run, uint64_t min, uint64_t max, const char *what)
{
	struct fe_ring *r = &run->net->tx[0].ring;
	uint64_t end = fe_now_us() + run->opts->lost_us, calls = 0;

	do {
		calls += fe_ring_take_calls(r);
	} while (calls < min && fe_now_us() < end);
	fe_spin_ns(SETTLE_US * 1000);
	calls += fe_ring_take_calls(r);
	if (calls < min || calls > max)
		return fe_fault(&run->fault, "%s: %llu calls, not %llu..%llu (used index 0x%x)",
			what, (unsigned long long)calls, (unsigned long long)min,
			(unsigned long long)max, fe_ring_position(r));
	return 0;
}

/* Calls for a batch of 8 published at once, with the event `after` entries ahead. */
static int
w3_batch(struct wk_run *run, uint32_t after)
{
	struct fe_ring *r = &run->net->tx[0].ring;
	bool due = !run->event_idx || after < BATCH;
	uint64_t max = run->event_idx ? 1 : BATCH;
	char what[80];

	fe_ring_arm(r, (uint16_t)after);
	fe_ring_take_calls(r);
	if (add_and_kick(run, BATCH) != 0 || reap_all(run, BATCH) != 0)
		return -EPROTO;
	snprintf(what, sizeof(what), "event %u ahead, %u used", after, BATCH);
	return expect_calls(run, due ? 1 : 0, due ? max : 0, what);
}

/* The ring begins anew at an index that makes it pass 65535 soon. */
static int
w3_restart(struct wk_run *run, uint16_t start)
{
	struct fe_net *net = run->net;
	struct fe_ring *r = &net->tx[0].ring;

	if (fe_net_stop(net) != 0)
		return fe_fault(&run->fault, "%s", fe_net_fault(net));
	if (!r->cfg.packed)
		fe_ring_reset(r, start);
	if (fe_net_start(net) != 0)
		return fe_fault(&run->fault, "%s", fe_net_fault(net));
	fe_ring_arm(r, 0);
	fe_ring_take_calls(r);
	if (add_and_kick(run, 1) != 0 || reap_all(run, 1) != 0)
		return -EPROTO;
	return expect_calls(run, 1, 1, "first descriptor after a start");
}

static int
w3(struct wk_run *run)
{
	struct fe_ring *r = &run->net->tx[0].ring;
	uint32_t count = run->opts->rounds / 64 + 32;

	for (uint32_t i = 0; i < count; i++) {
		if (i % 16 == 0 && w3_restart(run, (uint16_t)(65536 - 8 * (i % 256) - 3)) != 0)
			return -EPROTO;
		/* The case of the book first, then any distance, also beyond the batch. */
		if (w3_batch(run, i % 16 == 0 ? 4 : fe_rng_range(&run->rng, 0, 2 * BATCH)) != 0)
			return -EPROTO;
		if ((i & 7) == 0 && wk_host_take(run) < 0)
			return -EPROTO;
	}
	/* And none at all when the guest wants none. */
	fe_ring_disarm(r);
	fe_ring_take_calls(r);
	if (add_and_kick(run, BATCH) != 0 || reap_all(run, BATCH) != 0 ||
		expect_calls(run, 0, 0, "calls forbidden") != 0)
		return -EPROTO;
	snprintf(run->note, sizeof(run->note), ", batches %u", count);
	return wk_host_all(run);
}

/* Everything outstanding, and the guest sleeps until it is called. */
static int
w4(struct wk_run *run)
{
	struct fe_ring *r = &run->net->tx[0].ring;
	uint32_t count = run->opts->rounds / 256 + 4;
	uint32_t n = r->cfg.size < W4_OUTSTANDING ? r->cfg.size : W4_OUTSTANDING;
	uint64_t calls, max = run->event_idx ? 1 : n / STORM_DIV;

	/* The first used entry after a start may bring a call that was not asked for. */
	if (add_and_kick(run, 1) != 0 || reap_all(run, 1) != 0)
		return -EPROTO;
	fe_spin_ns(SETTLE_US * 1000);
	fe_ring_take_calls(r);
	calls = r->n_calls;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t before = r->n_calls, start;
		uint32_t done = 0;

		fe_ring_arm(r, (uint16_t)(n - 1));
		fe_ring_take_calls(r);
		before = r->n_calls;
		fe_sched_mark(&run->sched);
		start = fe_now_ns();
		if (add_and_kick(run, n) != 0)
			return -EPROTO;
		while (done < n) {
			int got, rc = fe_ring_wait(r, run->opts->lost_us);

			if (rc != 1)
				return fe_fault(&run->fault, "%u of %u outstanding, %s", n - done,
					n, rc == 0 ? "not served" : "used, but no call came");
			got = wk_guest_reap(run);
			if (got < 0)
				return got;
			done += (uint32_t)got;
		}
		wk_served(run, fe_now_ns() - start);
		fe_spin_ns(SETTLE_US * 1000);
		fe_ring_take_calls(r);
		if (r->n_calls - before > max)
			return fe_fault(&run->fault, "%llu calls for %u descriptors, at most %llu",
				(unsigned long long)(r->n_calls - before), n,
				(unsigned long long)max);
		if (wk_host_all(run) != 0)
			return -EPROTO;
	}
	snprintf(run->note, sizeof(run->note), ", calls per %u descriptors %.2f", n,
		(double)(r->n_calls - calls) / count);
	return 0;
}

/* A burst of the host, then silence: what the budget leaves over must not lie. */
static int
w5(struct wk_run *run)
{
	struct fe_ring *r = &run->net->rx[0].ring;
	uint32_t count = run->opts->rounds / 1000 + 4;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t start = fe_now_ns();
		uint32_t got = 0;

		wk_guest_post(run);
		fe_sched_mark(&run->sched);
		for (uint32_t k = 0; k < W5_FRAMES; k++)
			if (wk_host_send(run) != 0)
				return -EPROTO;
		while (got < W5_FRAMES) {
			int n = wk_guest_take(run);

			if (n < 0)
				return n;
			got += (uint32_t)n;
			wk_guest_post(run);
			if (got == W5_FRAMES || fe_ring_arm(r, 0))
				continue;
			n = fe_ring_wait(r, run->opts->lost_us);
			if (n != 1)
				return fe_fault(&run->fault, "%u of a burst of %u arrived, %s", got,
					W5_FRAMES,
					n == 0 ? "then nothing" : "used, but no call came");
		}
		wk_served(run, fe_now_ns() - start);
		fe_spin_ns(fe_rng_range(&run->rng, 0, 400000));
	}
	return 0;
}

const struct wk_case wk_call_cases[] = {
	{"W3", "a call exactly when the event index is passed, first one after a start", w3},
	{"W4", "256 outstanding, only the call to wait for", w4},
	{"W5", "1,000 frames at once, then silence", w5},
	{NULL, NULL, NULL},
};
