/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From one guest's transmitq straight into another's receiveq (straight.c, receiveq.c,
 * drivers/net/vm): every byte in order, none lost, whoever has to wait, and what goes the other
 * way.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "joined.h"
#include "poller.h"

static const struct joined_guest usual = {256, false, 12, true, JOINED_OFFLOADS};
static const struct joined_guest plain = {256, false, 12, true, 0};
static const struct joined_guest packed = {256, true, 12, true, JOINED_OFFLOADS};

static uint64_t
straight(const struct joined *j, int to)
{
	return joined_qpair(j, to)->stats.straight;
}

/* What n frames of these bytes must have been counted as. */
static void
check_counts(const struct joined *j, int from, uint64_t pkts, uint64_t bytes)
{
	const struct vhp_qpair *a = joined_qpair(j, from), *b = joined_qpair(j, 1 - from);

	assert_int_equal(a->tx.stats.pkts, pkts);
	assert_int_equal(a->tx.stats.bytes, bytes);
	assert_int_equal(b->rx.stats.pkts, pkts);
	assert_int_equal(b->rx.stats.bytes, bytes);
	assert_int_equal(wire_drops(&a->tx) + wire_drops(&b->rx), 0);
}

/* Both layouts, both headers, frames in pieces, with tables and without, of any size. */
static void
every_layout(void **state)
{
	static const uint32_t sizes[] = {14, 60, 1514, 4083, 4084, 4085, 9000, VHP_MAX_FRAME_BYTES};
	static const uint16_t pieces[] = {1, 2, 3, 17};

	(void)state;
	for (unsigned int bits = 0; bits < 32; bits++) {
		const bool merge = bits & 16;
		const struct joined_guest a = {64, bits & 1, bits & 2 ? 12 : 10, true, 0};
		const struct joined_guest b = {64, bits & 4, bits & 8 ? 12 : 10, merge, 0};
		struct joined *j;
		uint32_t number = 0, bytes = 0;

		/* Mergeable buffers go with a header that tells their number. */
		if (merge && b.hdr_bytes != VHP_MAX_HDR_BYTES)
			continue;
		j = joined_new(&a, &b);
		for (size_t s = 0; s < RTE_DIM(sizes); s++) {
			for (size_t p = 0; p < RTE_DIM(pieces); p++, number++) {
				rx_post_many(j->d[1], merge ? 17 : 1, merge ? 4096 : 66000);
				assert_true(joined_send(j, 0, number, sizes[s],
					RTE_MIN(pieces[p], sizes[s]), p % 2, NULL));
				/* Turns of both, as it comes. */
				assert_true(joined_turn(j, number % 2).pkts > 0);
				assert_int_equal(joined_reap(j, 0), 1);
				joined_check(j, 1, number, sizes[s]);
				bytes += sizes[s];
				/* Buffers that no frame took would add up. */
				while (merge && rx_outstanding(j->d[1]) > 30) {
					assert_true(joined_send(j, 0, 1000, 4000, 1, 0, NULL));
					joined_turn(j, 0);
					assert_int_equal(joined_reap(j, 0), 1);
					joined_check(j, 1, 1000, 4000);
				}
			}
		}
		assert_int_equal(straight(j, 1), joined_qpair(j, 1)->rx.stats.pkts);
		assert_true(joined_qpair(j, 0)->tx.stats.pkts >= number);
		assert_true(joined_qpair(j, 0)->tx.stats.bytes >= bytes);
		assert_int_equal(
			joined_qpair(j, 0)->tx.stats.bytes, joined_qpair(j, 1)->rx.stats.bytes);
		joined_free(j);
	}
}

/* Without buffers the sender's descriptors wait, and as many come as there are buffers. */
static void
back_pressure(void **state)
{
	struct joined *j = joined_new(&usual, &packed);
	struct vhp_qpair *a = joined_qpair(j, 0), *b = joined_qpair(j, 1);

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		assert_true(joined_send(j, 0, i, 100, 1, false, NULL));
	assert_int_equal(joined_turn(j, 0).pkts, 0);
	assert_int_equal(joined_turn(j, 1).pkts, 0);
	/* So that the poller sleeps, with the receiver's kick asked for and not the sender's. */
	assert_int_equal(a->pq->wait, VHP_PORT_PEER);
	assert_true(b->starved);
	for (uint32_t i = 0; i < 100;) {
		uint32_t n = 1 + i % 40;

		n = RTE_MIN(n, 100 - i);
		rx_post_many(j->d[1], n, 1526);
		assert_int_equal(joined_turn(j, i % 2).pkts, n);
		assert_int_equal(joined_reap(j, 0), n);
		for (; n > 0; n--, i++)
			joined_check(j, 1, i, 100);
		rx_check_none(j->d[1]);
	}
	assert_int_equal(a->pq->wait, VHP_PORT_READY);
	check_counts(j, 0, 100, 100 * 100);
	assert_int_equal(straight(j, 1), 100);
	joined_free(j);
}

/* A large frame that finds too few buffers waits for more, and those behind it with it. */
static void
too_few_buffers(void **state)
{
	struct joined *j = joined_new(&usual, &usual);
	struct vhp_qpair *b = joined_qpair(j, 1);

	(void)state;
	rx_post_many(j->d[1], 3, 1526);
	assert_true(joined_send(j, 0, 0, 20000, 5, true, NULL));
	assert_true(joined_send(j, 0, 1, 60, 1, false, NULL));
	for (uint32_t posted = 3; posted < 14; posted++) {
		joined_turn(j, posted % 2);
		assert_true(b->starved);
		rx_check_none(j->d[1]);
		rx_post_many(j->d[1], 1, 1526);
	}
	joined_turn(j, 0);
	joined_turn(j, 1);
	joined_check(j, 1, 0, 20000);
	rx_check_none(j->d[1]);
	assert_int_equal(joined_reap(j, 0), 1);
	rx_post_many(j->d[1], 1, 1526);
	joined_turn(j, 0);
	joined_check(j, 1, 1, 60);
	check_counts(j, 0, 2, 20060);
	joined_free(j);
}

/* One that no buffers of this guest can hold is the receiver's drop; the next one passes. */
static void
no_room(void **state)
{
	const struct joined_guest small = {64, false, 12, false, 0};
	struct joined *j = joined_new(&usual, &small);

	(void)state;
	rx_post_many(j->d[1], 3, 1526);
	assert_true(joined_send(j, 0, 0, 1514, 1, false, NULL));
	assert_true(joined_send(j, 0, 1, 1515, 1, false, NULL));
	assert_true(joined_send(j, 0, 2, 1514, 1, false, NULL));
	joined_turn(j, 0);
	assert_int_equal(joined_reap(j, 0), 3);
	joined_check(j, 1, 0, 1514);
	joined_check(j, 1, 2, 1514);
	assert_int_equal(rx_stats(j->d[1])->drops[VHP_DROP_NO_ROOM], 1);
	assert_int_equal(wire_drops(&joined_qpair(j, 1)->rx), 1);
	assert_int_equal(wire_drops(&joined_qpair(j, 0)->tx), 0);
	joined_free(j);
}

/* A header that makes no sense, a frame that is none, a chain that breaks rules: the sender's. */
static void
sender_breaks_rules(void **state)
{
	static const struct virtio_net_hdr bad[] = {
		{.gso_type = 2, .flags = 1, .gso_size = 1000, .csum_start = 34, .csum_offset = 16},
		{.gso_type = VIRTIO_NET_HDR_GSO_ECN},
		{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = 1000},
		{.gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .flags = 1, .csum_start = 34},
		{.flags = 1, .csum_start = 99, .csum_offset = 0},
		{.flags = 1, .csum_start = 65535, .csum_offset = 65535},
	};
	static const struct virtio_net_hdr good = {.flags = 1, .csum_start = 98};

	(void)state;
	/* Straight, and by the port. */
	for (int same = 0; same < 2; same++) {
		struct joined *j = joined_new(&usual, &usual);
		const struct vhp_ring_stats *stats = &joined_qpair(j, 0)->tx.stats;

		joined_same_poller(j, same);
		rx_post_many(j->d[1], 30, 1526);
		for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
			assert_true(joined_send(j, 0, i, 100, 1, false, NULL));
			assert_true(joined_send(j, 0, 99, 100, 1, false, &bad[i]));
		}
		assert_true(joined_send(j, 0, 99, 13, 1, false, NULL));
		assert_true(joined_send(j, 0, 99, VHP_MAX_FRAME_BYTES + 1, 1, false, NULL));
		assert_true(ring_post(&j->d[0]->w->tx,
				    &(struct vring_desc){.addr = GUEST_NOWHERE_GPA, .len = 100}, 1,
				    0) >= 0);
		assert_true(joined_send(j, 0, 6, 100, 1, false, &good));
		joined_turn(j, 0);
		joined_turn(j, 1);
		assert_int_equal(joined_reap(j, 0), 2 * RTE_DIM(bad) + 4);
		for (uint32_t i = 0; i < RTE_DIM(bad); i++)
			joined_check(j, 1, i, 100);
		assert_int_equal(stats->drops[VHP_DROP_HEADER], RTE_DIM(bad));
		assert_int_equal(stats->drops[VHP_DROP_SHORT], 1);
		assert_int_equal(stats->drops[VHP_DROP_LONG], 1);
		assert_int_equal(stats->drops[VHP_DROP_CHAIN_ADDRESS], 1);
		assert_int_equal(wire_drops(&joined_qpair(j, 1)->rx), 0);
		assert_int_equal(rx_stats(j->d[1])->pkts, RTE_DIM(bad) + 1);
		joined_free(j);
	}
}

/* Buffers that may not be written to: they come back empty, the frames in good ones. */
static void
receiver_breaks_rules(void **state)
{
	struct joined *j = joined_new(&usual, &packed);

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		assert_true(rx_post_bad(j->d[1]));
		rx_post_many(j->d[1], 3, 526);
		assert_true(joined_send(j, 0, i, i % 3 ? 1514 : 60, 2, i % 2, NULL));
	}
	for (int i = 0; i < 10; i++)
		joined_turn(j, i % 2);
	assert_int_equal(joined_reap(j, 0), 40);
	for (uint32_t i = 0; i < 40; i++)
		joined_check(j, 1, i, i % 3 ? 1514 : 60);
	assert_true(j->d[1]->n_bad >= 20);
	assert_int_equal(rx_stats(j->d[1])->drops[VHP_DROP_CHAIN_DIRECTION], j->d[1]->n_bad);
	assert_int_equal(wire_drops(&joined_qpair(j, 0)->tx), 0);
	joined_free(j);
}

/* A ring that breaks in the middle of a burst: what it does not get waits for its return. */
static void
receiver_goes_away(void **state)
{
	(void)state;
	for (int broken = 0; broken < 2; broken++) {
		struct joined *j = joined_new(&usual, &usual);
		struct vhp_qpair *a = joined_qpair(j, 0), *b = joined_qpair(j, 1);
		struct ring *rx = &j->d[1]->w->rx;

		rx_post_many(j->d[1], 10, 1526);
		for (uint32_t i = 0; i < 40; i++)
			assert_true(joined_send(j, 0, i, 200, 1, false, NULL));
		if (broken)
			rx->avail->idx += 1000;
		else
			b->rx.running = false;
		joined_turn(j, 0);
		joined_turn(j, 1);
		assert_int_equal(b->rx.fault, broken ? VHP_RING_AVAIL_JUMP : VHP_RING_OK);
		/* The port has room for them. */
		assert_int_equal(joined_reap(j, 0), 40);
		assert_int_equal(rx_stats(j->d[1])->pkts, 0);
		/* Back again: those first, then straight. */
		rx->avail->idx -= broken ? 1000 : 0;
		b->rx.fault = VHP_RING_OK;
		b->rx.running = true;
		b->rx.avail_seen = b->rx.last_avail;
		for (uint32_t i = 0; i < 80; i++) {
			const uint32_t first = i == 20 ? 40 : 60;

			for (uint32_t k = first; (i == 20 || i == 59) && k < first + 20; k++)
				assert_true(joined_send(j, 0, k, 200, 1, false, NULL));
			joined_turn(j, i % 2);
			joined_turn(j, 1 - i % 2);
			joined_check(j, 1, i, 200);
			rx_post_many(j->d[1], 1, 1526);
		}
		rx_check_none(j->d[1]);
		assert_int_equal(straight(j, 1), 20);
		assert_int_equal(a->tx.stats.pkts, 80);
		check_counts(j, 0, 80, 80 * 200);
		joined_free(j);
	}
}

/* What a receiver did not accept is cut or summed on the way, and nothing overtakes it. */
static void
offloads_not_accepted(void **state)
{
	static const struct virtio_net_hdr csum = {.flags = 1, .csum_start = 34, .csum_offset = 6};

	(void)state;
	for (int accepts = 0; accepts < 2; accepts++) {
		struct joined *j = joined_new(&usual, accepts ? &usual : &plain);
		uint8_t got[VHP_BOUNCE_BYTES], sent[300];
		struct virtio_net_hdr hdr;

		rx_post_many(j->d[1], 100, 1526);
		for (uint32_t i = 0; i < 60; i++)
			assert_true(
				joined_send(j, 0, i, 300, 1, false, i % 20 == 10 ? &csum : NULL));
		for (int i = 0; i < 4; i++)
			joined_turn(j, i % 2);
		assert_int_equal(joined_reap(j, 0), 60);
		for (uint32_t i = 0; i < 60; i++) {
			if (i % 20 != 10) {
				joined_check(j, 1, i, 300);
				continue;
			}
			assert_int_equal(rx_take(j->d[1], got, NULL), 312);
			memcpy(&hdr, got, sizeof(hdr));
			assert_int_equal(hdr.flags, accepts);
			joined_fill(sent, 0, 300, i);
			/* The checksum is in it, or still to be made. */
			assert_int_equal(memcmp(got + 12 + 40, sent + 40, 2) == 0, accepts);
			memcpy(sent + 40, got + 12 + 40, 2);
			assert_memory_equal(got + 12, sent, 300);
		}
		assert_true(accepts ? straight(j, 1) == 60
				    : straight(j, 1) >= 10 && straight(j, 1) < 57);
		check_counts(j, 0, 60, 60 * 300);
		joined_free(j);
	}
}

/* The receiver's limit holds the sender's descriptors back. */
static void
rate_of_the_receiver(void **state)
{
	struct joined *j = joined_new(&usual, &usual);
	struct vhp_qpair *a = joined_qpair(j, 0), *b = joined_qpair(j, 1);
	struct vhp_rate rate = {0};

	(void)state;
	/* A frame in 2^40 cycles, and 5 in advance. */
	assert_true(vhp_rate_set(&rate, 1ULL << 40, 0, 1));
	rate.ahead_cycles = 5ULL << 40;
	b->rx_rate = &rate;
	rx_post_many(j->d[1], 100, 1526);
	for (uint32_t i = 0; i < 50; i++)
		assert_true(joined_send(j, 0, i, 100, 1, false, NULL));
	for (int i = 0; i < 8; i++)
		joined_turn(j, i % 2);
	assert_in_range(rx_stats(j->d[1])->pkts, 5, 6);
	assert_int_equal(joined_reap(j, 0), rx_stats(j->d[1])->pkts);
	assert_true(b->stats.limited[1] > 0);
	assert_int_equal(a->pq->wait, VHP_PORT_PEER);
	/* Without a limit nobody may sleep over them. */
	assert_true(b->pq->pending);
	b->rx_rate = NULL;
	joined_turn(j, 1);
	for (uint32_t i = 0; i < 50; i++)
		joined_check(j, 1, i, 100);
	assert_int_equal(a->pq->wait, VHP_PORT_READY);
	check_counts(j, 0, 50, 5000);
	joined_free(j);
}

/* What is written is the receiver's memory, and its log says so; the sender's stays clean. */
static void
dirty_pages(void **state)
{
	struct joined *j = joined_new(&usual, &usual);
	uint8_t bits[2][(GUEST_HIGH_GPA + GUEST_HIGH_BYTES) / 4096 / 8] = {0};
	struct vhp_dirty_log logs[2];
	uint32_t marked = 0;
	uint64_t gpa = j->d[1]->next_gpa;

	(void)state;
	for (int i = 0; i < 2; i++)
		logs[i] = (struct vhp_dirty_log){.bits = bits[i], .size_bytes = sizeof(bits[i])};
	joined_qpair(j, 1)->rx.log = &logs[1];
	joined_qpair(j, 0)->tx.log = joined_qpair(j, 0)->rx.log = &logs[0];
	rx_post_many(j->d[1], 17, 4096);
	assert_true(joined_send(j, 0, 0, 60000, 3, false, NULL));
	joined_turn(j, 0);
	for (uint64_t page = gpa / 4096; page <= (gpa + 60011) / 4096; page++)
		assert_true(bits[1][page / 8] >> page % 8 & 1);
	for (size_t i = 0; i < sizeof(bits[0]); i++) {
		marked += __builtin_popcount(bits[1][i]);
		assert_int_equal(bits[0][i], 0);
	}
	assert_int_equal(marked, 15);
	joined_free(j);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout),
		cmocka_unit_test(back_pressure),
		cmocka_unit_test(too_few_buffers),
		cmocka_unit_test(no_room),
		cmocka_unit_test(sender_breaks_rules),
		cmocka_unit_test(receiver_breaks_rules),
		cmocka_unit_test(receiver_goes_away),
		cmocka_unit_test(offloads_not_accepted),
		cmocka_unit_test(rate_of_the_receiver),
		cmocka_unit_test(dirty_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
