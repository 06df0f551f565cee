/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive side at random: buffers of any size in any pieces, some bad, posted at any time;
 * frames of any length; stops and starts. The driver takes what comes: frames in order, every
 * byte right, none twice, and the counters say exactly which ones are missing.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rx_driver.h"

#define MOST_BYTES (VHP_MAX_HDR_BYTES + VHP_MAX_FRAME_BYTES)

struct run {
	uint16_t size;
	bool packed;
	uint16_t hdr_bytes;
	bool mergeable;
	uint32_t least_bytes, most_bytes; /**< of a buffer */
	uint32_t frame_bytes;             /**< most of a frame, without header */
	uint32_t bad_percent;
	uint32_t frames;
};

struct random_state {
	const struct run *run;
	struct rx_driver *d;
	uint64_t seed;
	uint32_t sent, got;
	uint32_t outstanding_bytes;
	uint32_t *lens; /**< of each frame, header included */
};

/* Post a few buffers, as the memory that they come from allows. */
static void
post_some(struct random_state *s)
{
	const struct run *run = s->run;
	uint32_t most = (GUEST_LOW_BYTES + GUEST_NEXT_BYTES) / 3 / run->most_bytes;

	for (uint32_t k = prng_range(&s->seed, 0, 20); k > 0; k--) {
		uint32_t lens[9] = {0};
		uint32_t left = prng_range(&s->seed, run->least_bytes, run->most_bytes);
		int n = 0;

		if (rx_outstanding(s->d) >= RTE_MIN(most, (uint32_t)run->size))
			return;
		if (prng_range(&s->seed, 1, 100) <= run->bad_percent) {
			rx_post_bad(s->d);
			continue;
		}
		for (; left > 0; n++) {
			lens[n] = n == 7 ? left : prng_range(&s->seed, 1, left);
			left -= lens[n];
		}
		if (!rx_post(s->d, lens, prng(&s->seed) % 2))
			return;
	}
}

static void
send_some(struct random_state *s)
{
	const struct run *run = s->run;

	for (uint32_t k = prng_range(&s->seed, 0, 10); k > 0 && s->sent < run->frames; k--) {
		uint32_t most =
			prng(&s->seed) % 5 ? RTE_MIN(run->frame_bytes, 1514U) : run->frame_bytes;

		s->lens[s->sent] = run->hdr_bytes + prng_range(&s->seed, 14, most);
		rx_send(s->d->w, s->sent, s->lens[s->sent]);
		s->sent++;
	}
}

/* The next frame must be one that was sent, after those that came already. */
static void
take_all(struct random_state *s)
{
	static uint8_t bytes[MOST_BYTES], expected[MOST_BYTES];
	uint32_t len;

	while ((len = rx_take(s->d, bytes, NULL)) > 0) {
		for (;; s->got++) {
			assert_true(s->got < s->sent);
			if (s->lens[s->got] != len)
				continue;
			wire_fill(expected, len, s->run->hdr_bytes, s->got);
			if (memcmp(bytes + s->run->hdr_bytes, expected + s->run->hdr_bytes,
				    len - s->run->hdr_bytes) == 0)
				break;
		}
		s->got++;
	}
}

static void
stop_and_start(struct random_state *s)
{
	struct vhp_qpair *qp = &s->d->w->qp;

	vhp_receiveq_untake(qp);
	take_all(s);
	assert_true(qp->rx.ops->start(&qp->rx, qp->rx.ops->base(&qp->rx)));
}

static void
check_end(struct random_state *s)
{
	const struct vhp_ring_stats *stats = &s->d->w->qp.rx.stats;
	uint64_t chains = 0;

	for (int i = VHP_DROP_CHAIN_LOOP; i <= VHP_DROP_CHAIN_LENGTH; i++)
		chains += stats->drops[i];
	/* Each frame was delivered or counted as dropped, each bad chain was counted. */
	assert_int_equal(stats->pkts + stats->drops[VHP_DROP_NO_ROOM], s->run->frames);
	assert_int_equal(chains, s->d->n_bad);
	assert_int_equal(wire_drops(&s->d->w->qp.rx), s->d->n_bad + stats->drops[VHP_DROP_NO_ROOM]);
	assert_int_equal(s->d->w->qp.rx.fault, VHP_RING_OK);
}

static void
go(const struct run *run, uint64_t seed)
{
	struct random_state s = {
		.run = run, .seed = seed, .lens = calloc(run->frames, sizeof(*s.lens))};
	struct wire *w;
	uint32_t delivered = 0;

	s.d = rx_new(run->size, run->packed, run->hdr_bytes, run->mergeable);
	w = s.d->w;
	for (uint32_t turns = 0;
		w->qp.rx.stats.pkts + w->qp.rx.stats.drops[VHP_DROP_NO_ROOM] < run->frames;
		turns++) {
		assert_in_range(turns, 0, 100 * run->frames);
		post_some(&s);
		send_some(&s);
		delivered += rx_fill(w).pkts;
		/* A slow guest does not look at every turn. */
		if (prng(&s.seed) % 2)
			take_all(&s);
		if (prng(&s.seed) % 50 == 0)
			stop_and_start(&s);
		/* Now and then its time is up. */
		wire_tsc_hz = prng(&s.seed) % 20 ? UINT64_MAX / 1024 : 0;
	}
	take_all(&s);
	check_end(&s);
	assert_true(delivered >= w->qp.rx.stats.pkts);
	rx_free(s.d);
	free(s.lens);
}

static void
small_buffers(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct run run = {256, packed, 12, true, 12, 100, 3000, 0, 3000};

		go(&run, 31);
		run.bad_percent = 10;
		go(&run, 32);
	}
}

static void
usual_buffers(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct run run = {256, packed, 12, true, 1500, 4096, VHP_MAX_FRAME_BYTES, 0, 3000};

		go(&run, 33);
		run.bad_percent = 3;
		go(&run, 34);
	}
}

static void
tiny_ring(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++)
		for (uint16_t size = 1; size <= 16; size *= 2) {
			struct run run = {size, packed, 12, true, 12, 2000, 4000, 5, 1500};

			go(&run, 35 + size);
		}
}

static void
not_mergeable(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct run run = {128, packed, 10, false, 100, 1524, 1600, 0, 3000};

		go(&run, 60);
		run.hdr_bytes = 12;
		run.bad_percent = 10;
		go(&run, 61);
		run.most_bytes = 70000;
		run.frame_bytes = VHP_MAX_FRAME_BYTES;
		go(&run, 62);
	}
}

static void
mostly_bad(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct run run = {64, packed, 12, true, 12, 700, 5000, 60, 1500};

		go(&run, 70);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_buffers),
		cmocka_unit_test(usual_buffers),
		cmocka_unit_test(tiny_ring),
		cmocka_unit_test(not_mergeable),
		cmocka_unit_test(mostly_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
