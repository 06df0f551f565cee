/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive side with a guest that breaks rules (receiveq.c): bad chains anywhere, rings
 * full of them, buffers that cost much and hold little, lengths near 2^32.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "checks.h"
#include "rx_driver.h"

#define MOST_BYTES (VHP_MAX_HDR_BYTES + VHP_MAX_FRAME_BYTES)

/* Each test runs over both layouts of the ring. */
#define FOR_EACH_LAYOUT(p) for (int p = 0; p < 2; p++)

/* One bad chain at each place among eight buffers: it comes back with length 0, in its turn. */
static void
bad_anywhere(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (int i = 0; i < 2 * 9; i++) {
			struct rx_driver *d = rx_new(64, packed, 12, i % 2);
			uint32_t number = 0;

			for (int k = 0; k < 9; k++)
				if (k == i / 2)
					assert_true(rx_post_bad(d));
				else
					rx_post_many(d, 1, 1526);
			for (; number < 8; number++)
				rx_send(d->w, number, 100 + number);
			rx_fill(d->w);
			rx_fill(d->w);
			for (number = 0; number < 8; number++)
				rx_check(d, number, 100 + number);
			rx_check_none(d);
			assert_int_equal(d->n_bad, 1);
			assert_int_equal(d->n_returned, 0);
			assert_int_equal(rx_outstanding(d), 0);
			assert_int_equal(rx_stats(d)->drops[VHP_DROP_CHAIN_DIRECTION], 1);
			assert_int_equal(wire_drops(&d->w->qp.rx), 1);
			assert_int_equal(rx_stats(d)->pkts, 8);
			rx_free(d);
		}
	}
}

/* A bad chain among the buffers that a large frame needs: none of it is lost. */
static void
bad_in_the_way_of_a_frame(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (uint32_t before = 0; before < 12; before++) {
			struct rx_driver *d = rx_new(256, packed, 12, true);

			rx_post_many(d, before, 1526);
			assert_true(rx_post_bad(d));
			rx_send(d->w, 0, 9 * 1526);
			rx_send(d->w, 1, 60);
			rx_post_many(d, 20, 1526);
			for (int k = 0; k < 4; k++)
				rx_fill(d->w);
			rx_check(d, 0, 9 * 1526);
			rx_check(d, 1, 60);
			rx_check_none(d);
			assert_int_equal(rx_stats(d)->pkts, 2);
			/* Buffers in front of the bad one may have come back empty: these few. */
			assert_in_range(d->n_returned, 0, before < 9 ? before : 0);
			assert_int_equal(wire_drops(&d->w->qp.rx), before < 9 || d->n_bad ? 1 : 0);
			rx_free(d);
		}
	}
}

/* Buffers that cannot take a header break a rule, too. */
static void
shorter_than_a_header(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(64, packed, 12, true);
		const uint32_t lens[] = {11, 0};
		uint8_t bytes[MOST_BYTES];

		assert_true(rx_post(d, lens, false));
		rx_post_many(d, 1, 12);
		rx_post_many(d, 1, 1526);
		rx_send(d->w, 0, 60);
		rx_fill(d->w);
		assert_int_equal(rx_take(d, bytes, NULL), 60);
		assert_int_equal(d->n_returned, 1);
		assert_int_equal(rx_stats(d)->drops[VHP_DROP_SHORT], 1);
		rx_free(d);
	}
}

/*
 * Case F1: a ring of bad chains, each as long as may be. A burst ends after so much work that
 * the other qpairs of the poller do not feel it; in the end all are retired.
 */
static void
ring_of_bad_chains(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(4096, packed, 12, true);
		uint32_t bursts = 0, used = 0;

		for (int i = 0; i < 4096; i++)
			assert_true(rx_post_bad(d));
		while (used < 4096) {
			struct vhp_work work = rx_fill(d->w);

			/* What was done is work, so that the turn knows when to end. */
			assert_in_range(work.pkts, 1, VHP_TAKE_DESCS);
			assert_in_range(work.descs, 1, VHP_TAKE_DESCS + 2 * VHP_BURST_PKTS);
			used = ring_used_count(&d->w->rx);
			assert_true(++bursts <= 4096);
		}
		assert_true(bursts > 1);
		assert_int_equal(rx_stats(d)->drops[VHP_DROP_CHAIN_DIRECTION], 4096);
		rx_check_none(d);
		assert_int_equal(d->n_bad, 4096);
		rx_free(d);
	}
}

/* The device's work for a ring of chains of 1,024 descriptors that hold 12 bytes each. */
static void
expensive_buffers(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(256, packed, 12, true);
		struct vring_desc bufs[1024];
		struct vhp_work work = {0};

		for (int i = 0; i < 1024; i++)
			bufs[i] = (struct vring_desc){.addr = GUEST_LOW_GPA,
				.len = i == 0 ? 12 : 0,
				.flags = VRING_DESC_F_WRITE};
		for (int i = 0; i < 256; i++)
			assert_true(ring_post(&d->w->rx, bufs, 1024, GUEST_HIGH_GPA) >= 0);
		rx_send(d->w, 0, 256 * 12);
		for (int bursts = 0; rx_stats(d)->pkts == 0; bursts++) {
			work = rx_fill(d->w);
			assert_in_range(work.descs, 1, 3 * VHP_TAKE_DESCS);
			assert_in_range(bursts, 0, 256);
		}
		assert_int_equal(ring_used_count(&d->w->rx), 256);
		assert_int_equal(wire_drops(&d->w->qp.rx), 0);
		rx_free(d);
	}
}

/*
 * Buffers whose lengths sum to more than 2^32: no frame is taken for longer than it is, and
 * nothing but the frame is written.
 */
static void
huge_buffers(void **state)
{
	const uint64_t size_bytes = 6ULL << 30;
	const struct wire_conf conf = {.ring_size = 8, .hdr_bytes = 12, .mergeable = true};
	uint8_t *map = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct wire *w = wire_new(&conf);
	struct vhp_mem mem = {.n_regions = 1, .regions = {{0, size_bytes, map}}};
	uint8_t frame[1526];

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	w->qp.rx.mem = &mem;
	ring_desc(&w->rx, 0, 0x1000, 2000, VRING_DESC_F_WRITE, 0);
	ring_desc(&w->rx, 1, 0x10000, UINT32_MAX - 1500, VRING_DESC_F_WRITE, 0);
	ring_offer(&w->rx, 0);
	ring_offer(&w->rx, 1);
	memset(w->qp.bounce, 0x77, VHP_BOUNCE_BYTES);
	rx_send(w, 0, sizeof(frame));
	assert_int_equal(rx_fill(w).pkts, 1);
	ring_check_used(&w->rx, 0, sizeof(frame));
	assert_int_equal(ring_used_count(&w->rx), 0);
	wire_fill(frame, sizeof(frame), 12, 0);
	frame[10] = 1;
	assert_memory_equal(map + 0x1000, frame, sizeof(frame));
	munmap(map, size_bytes);
	wire_free(w);
}

/* A broken ring is not filled; a frame that has been taken already comes first. */
static void
ring_fault(void **state)
{
	struct rx_driver *d = rx_new(64, false, 12, true);

	(void)state;
	rx_post_many(d, 2, 1526);
	ring_offer(&d->w->rx, 64);
	for (uint32_t i = 0; i < 4; i++)
		rx_send(d->w, i, 100);
	rx_fill(d->w);
	assert_int_equal(d->w->qp.rx.fault, VHP_RING_HEAD);
	assert_int_equal(rx_stats(d)->faults, 1);
	assert_int_equal(rx_fill(d->w).pkts, 0);
	assert_true(rx_stats(d)->pkts >= 1);
	assert_int_equal(ring_used_count(&d->w->rx), rx_stats(d)->pkts);
	assert_int_equal(memory_queue_count(&d->w->port.host), 4 - rx_stats(d)->pkts);
	rx_free(d);
}

static void
left_alone(void **state)
{
	struct rx_driver *d = rx_new(64, true, 12, true);

	(void)state;
	rx_post_many(d, 2, 1526);
	rx_send(d->w, 0, 100);
	d->w->qp.rx.running = false;
	assert_int_equal(rx_fill(d->w).pkts, 0);
	d->w->qp.rx.running = true;
	d->w->qp.rx.fault = VHP_RING_MEMORY;
	assert_int_equal(rx_fill(d->w).pkts, 0);
	assert_int_equal(d->w->port.rx_calls, 0);
	rx_free(d);
}

/* A ring of which every second chain is bad, frames of all sizes: nothing is lost or twice. */
static void
every_second_is_bad(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(256, packed, 12, true);
		uint32_t got = 0;

		for (uint32_t i = 0; i < 3000; i++)
			rx_send(d->w, i, 26 + i * 7 % 1500);
		for (int turns = 0; got < 3000; turns++) {
			uint8_t bytes[MOST_BYTES], expected[MOST_BYTES];
			uint32_t len;

			assert_in_range(turns, 0, 100000);
			while (rx_outstanding(d) < 254) {
				rx_post_many(d, 1, 1526);
				assert_true(rx_post_bad(d));
			}
			rx_fill(d->w);
			while ((len = rx_take(d, bytes, NULL)) > 0) {
				wire_fill(expected, len, 12, got);
				assert_int_equal(len, 26 + got * 7 % 1500);
				assert_memory_equal(bytes + 12, expected + 12, len - 12);
				got++;
			}
		}
		assert_int_equal(rx_stats(d)->pkts, 3000);
		assert_int_equal(rx_stats(d)->drops[VHP_DROP_NO_ROOM], 0);
		rx_free(d);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_anywhere),
		cmocka_unit_test(bad_in_the_way_of_a_frame),
		cmocka_unit_test(shorter_than_a_header),
		cmocka_unit_test(ring_of_bad_chains),
		cmocka_unit_test(expensive_buffers),
		cmocka_unit_test(huge_buffers),
		cmocka_unit_test(ring_fault),
		cmocka_unit_test(left_alone),
		cmocka_unit_test(every_second_is_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
