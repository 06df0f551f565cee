/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The indices of a split ring: taking and putting in order over every wrap, what breaks a
 * ring, and a burst's pool that is too small.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rig.h"

#define BUF(i) (GUEST_LOW_GPA + 0x1000 * (i))
#define TABLE  (GUEST_LOW_GPA + 0x20000)

static struct rig *
new_rig(uint16_t size, uint16_t start)
{
	struct rig *e = rig_new(size, false, start);

	for (uint32_t i = 0; i < size; i++)
		ring_desc(&e->r, i, BUF(0), 64, 0, 0);
	return e;
}

/* ---- order ------------------------------------------------------------------- */

/* Many rounds over a ring, its index wrapping on the way; every head in turn, in order. */
static void
go_round(uint16_t size, uint16_t start, uint32_t total, uint64_t *seed)
{
	struct rig *e = new_rig(size, start);
	uint32_t offered = 0, taken = 0, popped = 0;

	while (popped < total) {
		uint32_t room = size - (offered - popped);
		uint16_t n, back;

		for (uint32_t k = prng_range(seed, 0, room); k > 0 && offered < total; k--)
			ring_offer(&e->r, offered++ * 7 % size);
		n = rig_take(e, prng_range(seed, 0, VHP_BURST_PKTS));
		assert_true(n <= offered - taken);
		for (uint16_t i = 0; i < n; i++) {
			assert_int_equal(e->frames[i].id, (taken + i) * 7 % size);
			assert_int_equal(e->frames[i].drop, VHP_OK);
			assert_int_equal(e->frames[i].n_iov, 1);
			e->frames[i].used_bytes = (taken + i) % 61;
		}
		back = n > 0 ? prng_range(seed, 0, n) : 0;
		e->vr.ops->untake(&e->vr, e->frames + (n - back), back);
		n -= back;
		assert_int_equal(e->vr.ops->base(&e->vr), (uint16_t)(start + taken + n));
		rig_put(e, n);
		taken += n;
		assert_int_equal(ring_used_count(&e->r), taken - popped);
		for (; popped < taken; popped++)
			ring_check_used(&e->r, popped * 7 % size, popped % 61);
	}
	assert_int_equal(e->vr.fault, VHP_RING_OK);
	assert_int_equal(e->r.used->idx, (uint16_t)(start + total));
	rig_free(e);
}

static void
every_ring_size(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (uint32_t size = 1; size <= 32768; size *= 2)
		go_round(size, 65535 - prng_range(&seed, 0, 20), size + 500, &seed);
}

static void
whole_range_of_the_index(void **state)
{
	uint64_t seed = 3;

	(void)state;
	go_round(256, 0, 140000, &seed);
}

/* An empty ring gives nothing, and neither does a burst of none. */
static void
nothing_to_take(void **state)
{
	struct rig *e = new_rig(8, 65535);

	(void)state;
	assert_int_equal(rig_take(e, 32), 0);
	ring_offer(&e->r, 3);
	assert_int_equal(rig_take(e, 0), 0);
	assert_int_equal(rig_take(e, 32), 1);
	assert_int_equal(rig_take(e, 32), 0);
	assert_int_equal(e->r.used->idx, 65535);
	rig_free(e);
}

/* The device goes on where it was told, and where the used index stands. */
static void
start_in_between(void **state)
{
	struct rig *e = new_rig(8, 65530);

	(void)state;
	for (uint16_t i = 0; i < 8; i++)
		ring_offer(&e->r, i);
	e->r.used->idx = 65533;
	e->r.used_idx = 65533;
	/* Where an index is 16 bits wide the rest of the message's word is not looked at. */
	assert_true(e->vr.ops->start(&e->vr, 65533));
	assert_int_equal(rig_take(e, 32), 5);
	for (uint16_t i = 0; i < 5; i++)
		assert_int_equal(e->frames[i].id, 3 + i);
	rig_put(e, 5);
	for (uint16_t i = 0; i < 5; i++)
		ring_check_used(&e->r, 3 + i, 0);
	assert_int_equal(e->vr.ops->base(&e->vr), 2);
	rig_free(e);
}

/* ---- what breaks a ring ------------------------------------------------------ */

static void
head_outside(void **state)
{
	static const uint16_t heads[] = {8, 9, 0x100, 0x8000, 0xffff};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(heads); i++) {
		struct rig *e = new_rig(8, 0);

		ring_offer(&e->r, 4);
		ring_offer(&e->r, heads[i]);
		ring_offer(&e->r, 5);
		/* What was right before it is served. */
		assert_int_equal(rig_take(e, 32), 1);
		assert_int_equal(e->frames[0].id, 4);
		assert_int_equal(e->vr.fault, VHP_RING_HEAD);
		assert_int_equal(e->vr.stats.faults, 1);
		assert_int_equal(rig_faults(), 1);
		rig_put(e, 1);
		ring_check_used(&e->r, 4, 0);
		assert_int_equal(ring_used_count(&e->r), 0);
		/* Looked at again it is the same fault, not another one. */
		assert_int_equal(rig_take(e, 32), 0);
		assert_int_equal(e->vr.stats.faults, 1);
		rig_free(e);
	}
}

static void
index_jump(void **state)
{
	static const struct {
		uint16_t size;
		uint16_t jump;
		bool broken;
	} cases[] = {
		{8, 8, false},
		{8, 9, true},
		{8, 257, true},
		{8, 1000, true},
		{8, 0xffff, true},
		{8, 0x8000, true},
		{256, 256, false},
		{256, 257, true},
		{256, 0xffff, true},
		{1, 1, false},
		{1, 2, true},
		{32768, 32768, false},
		{32768, 32769, true},
		{32768, 0xffff, true},
		{8, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < 2 * RTE_DIM(cases); i++) {
		uint16_t size = cases[i / 2].size;
		struct rig *e = new_rig(size, i % 2 ? 65530 : 100);
		uint16_t some = RTE_MIN(size, 8);

		/* Entries of the round before that must not be replayed. */
		for (uint16_t k = 0; k < some; k++)
			ring_offer(&e->r, k);
		assert_int_equal(rig_take(e, 32), some);
		rig_put(e, some);
		for (uint32_t k = 0; k < size; k++)
			e->r.avail->ring[k] = 0;
		e->r.avail->idx = e->r.avail_idx + cases[i / 2].jump;
		if (cases[i / 2].broken) {
			assert_int_equal(rig_take(e, 32), 0);
			assert_int_equal(e->vr.fault, VHP_RING_AVAIL_JUMP);
			assert_int_equal(rig_faults(), 1);
			assert_int_equal(rig_take(e, 32), 0);
			assert_int_equal(e->vr.stats.faults, 1);
		} else {
			assert_int_equal(rig_take(e, 32), RTE_MIN(cases[i / 2].jump, 32));
			assert_int_equal(e->vr.fault, VHP_RING_OK);
			assert_int_equal(rig_faults(), 0);
		}
		rig_free(e);
	}
}

/* ---- the pool of a burst ----------------------------------------------------- */

/* n chains of three buffers each in indirect tables. */
static void
offer_tables(struct rig *e, uint16_t n)
{
	const struct vring_desc bufs[] = {{.addr = BUF(0), .len = 10}, {.addr = BUF(1), .len = 20},
		{.addr = BUF(2), .len = 30}};

	for (uint16_t i = 0; i < n; i++)
		assert_int_equal(ring_post(&e->r, bufs, 3, TABLE + i * 64), i);
}

/* A pool of any size: what does not fit stays in the ring, and nothing is dropped. */
static void
small_pool(void **state)
{
	(void)state;
	for (uint32_t room = 0; room <= 31; room++) {
		struct rig *e = new_rig(8, 65533);
		uint16_t taken = 0;

		offer_tables(e, 8);
		for (int turn = 0; turn < 10 && taken < 8; turn++) {
			/* Behind the pool nothing may be written. */
			memset(e->iov, 0xdd, sizeof(e->iov));
			uint16_t n = e->vr.ops->take(&e->vr, e->frames, 32, e->iov, room);

			assert_int_equal(n, RTE_MIN(room / 3, 8U - taken));
			for (size_t k = room; k < 40; k++)
				assert_int_equal(
					(uintptr_t)e->iov[k].iov_base, 0xddddddddddddddddULL);
			for (uint16_t i = 0; i < n; i++) {
				assert_int_equal(e->frames[i].drop, VHP_OK);
				assert_int_equal(e->frames[i].n_iov, 3);
				assert_int_equal(e->frames[i].len_bytes, 60);
				assert_ptr_equal(e->frames[i].iov, e->iov + 3 * i);
				assert_int_equal(e->frames[i].id, taken + i);
			}
			rig_put(e, n);
			taken += n;
		}
		assert_int_equal(taken, room >= 3 ? 8 : 0);
		rig_free(e);
	}
}

/* A burst ends after so many descriptors, however empty they are. */
static void
work_of_a_burst(void **state)
{
	struct rig *e = new_rig(8, 0);
	struct vring_desc bufs[1000] = {{0}};
	uint16_t taken = 0;

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(ring_post(&e->r, bufs, 1000, GUEST_NEXT_GPA), i);
	while (taken < 8) {
		uint16_t n = rig_take(e, 32);

		assert_int_equal(n, RTE_MIN(3, 8 - taken));
		assert_int_equal(e->vr.steps, 1000 * n);
		assert_in_range(e->vr.steps, 0, VHP_TAKE_DESCS + VHP_MAX_CHAIN_DESCS);
		rig_put(e, n);
		taken += n;
	}
	rig_free(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_ring_size),
		cmocka_unit_test(whole_range_of_the_index),
		cmocka_unit_test(nothing_to_take),
		cmocka_unit_test(start_in_between),
		cmocka_unit_test(head_outside),
		cmocka_unit_test(index_jump),
		cmocka_unit_test(small_pool),
		cmocka_unit_test(work_of_a_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
