/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-wake, cases W1, W7 and W9: work that arrives at a random moment around the poller's
 * going to sleep. Any order of arming, fencing and looking again that is wrong shows as a
 * round that is never served: nothing else in the test would wake the poller.
 */
#include "wake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum variant { V_TX, V_RX, V_REFILL, V_MIX };

/*
 * When to come: the poller goes to sleep poll_us after its last work, so half of the
 * rounds fall close around that moment and the rest anywhere up to twice the window.
 */
static void
random_gap(struct wk_run *run)
{
	uint32_t window_ns = run->opts->poll_us * 1000;
	uint32_t gap;

	if (fe_rng_one_in(&run->rng, 2))
		gap = (window_ns > 20000 ? window_ns - 20000 : 0) +
		      fe_rng_range(&run->rng, 0, 60000);
	else
		gap = fe_rng_range(&run->rng, 0, 2 * window_ns + 50000);
	fe_spin_ns(gap);
}

/* Not served by now, and not for want of a CPU. */
static bool
is_lost(struct wk_run *run, uint64_t start)
{
	uint64_t limit = run->opts->lost_us * 1000ULL, ns = fe_now_ns() - start;

	return ns > limit && ns - limit > fe_sched_waited_ns(&run->sched);
}

/* Spins until pending(ring); the latency since start is recorded. 0 or -EPROTO. */
static int
await_used(struct wk_run *run, struct fe_ring *r, uint64_t start, const char *what)
{
	while (!fe_ring_pending(r)) {
		if (is_lost(run, start))
			return fe_fault(&run->fault,
				"%s: not served in %u ms after %llu rounds (kicks %llu, saved "
				"%llu): "
				"lost wake-up",
				what, run->opts->lost_us / 1000, (unsigned long long)run->lat.n,
				(unsigned long long)r->n_kicks,
				(unsigned long long)r->n_kicks_saved);
	}
	wk_served(run, fe_now_ns() - start);
	return 0;
}

/* One descriptor in the transmitq, a kick only if asked for. */
static int
round_tx(struct wk_run *run)
{
	struct fe_ring *r = &run->net->tx[0].ring;
	uint64_t start;

	if (wk_guest_add(run) != 0)
		return -EPROTO;
	random_gap(run);
	start = fe_now_ns();
	fe_ring_kick(r);
	if (await_used(run, r, start, "transmit descriptor") != 0 || wk_guest_reap(run) < 0)
		return -EPROTO;
	return (run->lat.n & 31) == 0 && wk_host_take(run) < 0 ? -EPROTO : 0;
}

/* One frame from the host; the guest waits for the call or polls. */
static int
round_rx(struct wk_run *run)
{
	struct fe_ring *r = &run->net->rx[0].ring;
	bool by_call = fe_rng_one_in(&run->rng, 2);
	uint64_t start;
	int rc;

	wk_guest_post(run);
	if (by_call && fe_ring_arm(r, 0))
		return fe_fault(&run->fault, "receive buffer used before a frame was sent");
	if (!by_call)
		fe_ring_disarm(r);
	fe_ring_take_calls(r);
	random_gap(run);
	start = fe_now_ns();
	if (wk_host_send(run) != 0)
		return -EPROTO;
	if (by_call) {
		do
			rc = fe_ring_wait(r, run->opts->lost_us);
		while (rc == 0 && !is_lost(run, start));
		if (rc != 1)
			return fe_fault(&run->fault, "receive: %s",
				rc == 0 ? "not served: lost wake-up" : "used, but no call came");
	}
	if (await_used(run, r, start, "frame of the host") != 0)
		return -EPROTO;
	return wk_guest_take(run) < 0 ? -EPROTO : 0;
}

/*
 * The receiveq is empty, a frame waits in the tap; then one buffer comes at a random
 * moment. (A kernel of 6.1 loses this one.)
 */
static int
round_refill(struct wk_run *run)
{
	struct fe_receiveq *rq = &run->net->rx[0];
	uint64_t start;

	/* Use up what is posted. */
	while (fe_ring_outstanding(&rq->ring) > 0) {
		if (wk_host_send(run) != 0 ||
			await_used(run, &rq->ring, fe_now_ns(), "frame of the host") != 0 ||
			wk_guest_take(run) < 0)
			return -EPROTO;
	}
	if (wk_host_send(run) != 0)
		return -EPROTO;
	random_gap(run);
	start = fe_now_ns();
	fe_net_post(run->net, 0, 1, 2048, 2048, NULL);
	fe_ring_kick(&rq->ring);
	if (await_used(run, &rq->ring, start, "receive buffer for a waiting frame") != 0)
		return -EPROTO;
	return wk_guest_take(run) < 0 ? -EPROTO : 0;
}

static int
rounds(struct wk_run *run, enum variant v)
{
	int rc = 0;

	wk_guest_post(run);
	fe_ring_disarm(&run->net->tx[0].ring);
	fe_sched_mark(&run->sched);
	for (uint32_t i = 0; i < run->opts->rounds && rc == 0; i++) {
		enum variant now = v;

		if (v == V_MIX)
			now = fe_rng_one_in(&run->rng, 2) ? V_TX : V_RX;
		rc = now == V_TX ? round_tx(run) : now == V_RX ? round_rx(run) : round_refill(run);
	}
	return rc != 0 ? rc : wk_host_all(run);
}

static int
w1_tx(struct wk_run *run)
{
	return rounds(run, V_TX);
}

static int
w1_rx(struct wk_run *run)
{
	return rounds(run, V_RX);
}

static int
w1_refill(struct wk_run *run)
{
	return rounds(run, V_REFILL);
}

static int
w1_mix(struct wk_run *run)
{
	return rounds(run, V_MIX);
}

/* Guest to host and back, both ends asleep while they wait. */
static int
w7_round(struct wk_run *run)
{
	struct fe_ring *rx = &run->net->rx[0].ring, *tx = &run->net->tx[0].ring;
	uint64_t start;
	int rc;

	wk_guest_post(run);
	fe_ring_arm(rx, 0);
	fe_ring_take_calls(rx);
	if (wk_guest_add(run) != 0)
		return -EPROTO;
	fe_spin_ns(fe_rng_range(&run->rng, 0, 200000));
	start = fe_now_ns();
	fe_ring_kick(tx);
	while ((rc = wk_host_take(run)) == 0)
		if (fe_host_wait(run->host, run->opts->lost_us) == 0)
			return fe_fault(&run->fault, "ping %llu did not reach the host",
				(unsigned long long)run->lat.n / 2);
	if (rc < 0)
		return rc;
	wk_served(run, fe_now_ns() - start);
	fe_spin_ns(fe_rng_range(&run->rng, 0, 200000));
	start = fe_now_ns();
	if (wk_host_send(run) != 0)
		return -EPROTO;
	rc = fe_ring_wait(rx, run->opts->lost_us);
	if (rc != 1)
		return fe_fault(&run->fault, "pong %llu: %s", (unsigned long long)run->lat.n / 2,
			rc == 0 ? "did not reach the guest" : "used, but no call came");
	wk_served(run, fe_now_ns() - start);
	if (wk_guest_take(run) != 1)
		return fe_fault(&run->fault, "called, but no frame is there");
	return wk_guest_reap(run) < 0 ? -EPROTO : 0;
}

static int
w7(struct wk_run *run)
{
	int rc = 0;

	fe_ring_disarm(&run->net->tx[0].ring);
	fe_sched_mark(&run->sched);
	for (uint32_t i = 0; i < run->opts->rounds && rc == 0; i++)
		rc = w7_round(run);
	return rc;
}

/* One frame of the host after a gap; the guest polls. */
static int
w9_round(struct wk_run *run, uint32_t gap_us)
{
	struct fe_ring *rx = &run->net->rx[0].ring;
	uint64_t start;

	wk_guest_post(run);
	fe_spin_ns(gap_us * 1000ULL);
	fe_sched_mark(&run->sched);
	start = fe_now_ns();
	if (wk_host_send(run) != 0 || await_used(run, rx, start, "frame of the host") != 0)
		return -EPROTO;
	return wk_guest_take(run) < 0 ? -EPROTO : 0;
}

/*
 * Frames while the poll window is open, which each of them opens anew, and one in ten after it
 * has closed: what polling is good for shows in one run.
 */
static int
w9(struct wk_run *run)
{
	static struct wk_latency open, closed;
	uint32_t window_us = run->opts->poll_us;
	int rc = 0;

	memset(&open, 0, sizeof(open));
	memset(&closed, 0, sizeof(closed));
	fe_ring_disarm(&run->net->rx[0].ring);
	fe_ring_disarm(&run->net->tx[0].ring);
	for (uint32_t i = 0; i < run->opts->rounds && rc == 0; i++) {
		bool asleep = i % 10 == 0;
		struct wk_latency *l = asleep ? &closed : &open;

		run->lat = *l;
		rc = w9_round(run,
			asleep ? 2 * window_us + 500 : fe_rng_range(&run->rng, 0, window_us / 2));
		*l = run->lat;
	}
	snprintf(run->note, sizeof(run->note), ", with the window closed p50 %.1f p99 %.1f",
		(double)wk_percentile(&closed, 50) / 1e3, (double)wk_percentile(&closed, 99) / 1e3);
	run->lat = open;
	run->lat.late += closed.late;
	run->lat.excused += closed.excused;
	return rc;
}

const struct wk_case wk_round_cases[] = {
	{"W1-tx", "a transmit descriptor around the poller's sleep", w1_tx},
	{"W1-rx", "a frame of the host around the poller's sleep", w1_rx},
	{"W1-refill", "a receive buffer for a frame that waits", w1_refill},
	{"W1-mix", "either direction", w1_mix},
	{"W7", "ping-pong with gaps of 0..200 us", w7},
	{"W9", "frames of the host while the poll window is open, and after it", w9},
	{NULL, NULL, NULL},
};
