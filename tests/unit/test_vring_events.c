/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is notified when: the event index and the flags of split rings, the event structures
 * of packed ones.
 */
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rig.h"

#define BUF(i) (GUEST_LOW_GPA + 0x1000 * (i))
#define WRAP   (1U << VRING_PACKED_EVENT_F_WRAP_CTR)

static struct rig *
new_rig(uint16_t size, uint16_t start)
{
	struct rig *e = rig_new(size, false, start);

	for (uint32_t i = 0; i < size; i++)
		ring_desc(&e->r, i, BUF(0), 64, 0, 0);
	return e;
}

/* ---- split: calls ------------------------------------------------------------ */

/* Put n used entries. */
static void
use(struct rig *e, uint16_t n)
{
	while (n > 0) {
		uint16_t k = RTE_MIN(n, VHP_BURST_PKTS);

		memset(e->frames, 0, sizeof(e->frames));
		rig_put(e, k);
		n -= k;
	}
}

/* Call if the entry at used_event is among those written since the last look (2.7.7.2). */
static bool
expect_call(uint16_t old, uint16_t n, uint16_t event)
{
	for (uint32_t i = 0; i < n; i++)
		if ((uint16_t)(old + i) == event)
			return true;
	return false;
}

static void
event_index_decides(void **state)
{
	uint64_t seed = 4;
	uint32_t calls = 0;
	struct rig *e = new_rig(256, 65500);

	(void)state;
	e->vr.event_idx = true;
	/* Flags mean nothing with the event index. */
	e->r.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	*ring_used_event(&e->r) = 0;
	/* The first time after a start always calls: nobody knows what was said before. */
	use(e, 1);
	assert_true(e->vr.ops->need_call(&e->vr));
	for (int i = 0; i < 100000; i++) {
		uint16_t old = e->vr.last_used;
		uint16_t n = prng_range(&seed, 0, 3) == 0 ? prng_range(&seed, 0, 256)
							  : prng_range(&seed, 1, 4);
		uint16_t event = old + (int)prng_range(&seed, 0, 12) - 4;

		if (i % 5 == 0)
			event = prng(&seed);
		*ring_used_event(&e->r) = event;
		use(e, n);
		bool call = e->vr.ops->need_call(&e->vr);

		assert_int_equal(call, expect_call(old, n, event));
		calls += call;
	}
	/* The numbers above do make both answers common. */
	assert_in_range(calls, 20000, 80000);
	rig_free(e);
}

/* Case W3: the guest wants a call 5 ahead; 8 are used in one burst: one call. */
static void
one_call_a_burst(void **state)
{
	struct rig *e = new_rig(256, 0);

	(void)state;
	e->vr.event_idx = true;
	*ring_used_event(&e->r) = 0;
	use(e, 1);
	assert_true(e->vr.ops->need_call(&e->vr));
	*ring_used_event(&e->r) = 1 + 5;
	use(e, 8);
	assert_true(e->vr.ops->need_call(&e->vr));
	use(e, 8);
	assert_false(e->vr.ops->need_call(&e->vr));
	/* Nothing was put since: no second call for the same entries. */
	*ring_used_event(&e->r) = 16;
	assert_false(e->vr.ops->need_call(&e->vr));
	/* A new start has forgotten. */
	e->vr.ops->start(&e->vr, 17);
	use(e, 1);
	assert_true(e->vr.ops->need_call(&e->vr));
	rig_free(e);
}

static void
flags_decide(void **state)
{
	struct rig *e = new_rig(256, 0);

	(void)state;
	for (int i = 0; i < 8; i++) {
		/* Other bits are reserved and mean nothing. */
		e->r.avail->flags = i;
		*ring_used_event(&e->r) = e->vr.last_used;
		use(e, 2);
		assert_int_equal(e->vr.ops->need_call(&e->vr), !(i & VRING_AVAIL_F_NO_INTERRUPT));
	}
	rig_free(e);
}

/* Legacy: called although it asked not to be, once nothing is available any more. */
static void
notify_on_empty(void **state)
{
	struct rig *e = new_rig(256, 0);

	(void)state;
	e->vr.notify_on_empty = true;
	e->r.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	ring_offer(&e->r, 0);
	ring_offer(&e->r, 1);
	assert_int_equal(rig_take(e, 1), 1);
	rig_put(e, 1);
	assert_false(e->vr.ops->need_call(&e->vr));
	assert_int_equal(rig_take(e, 1), 1);
	rig_put(e, 1);
	assert_true(e->vr.ops->need_call(&e->vr));
	rig_free(e);
}

/* ---- split: kicks ------------------------------------------------------------ */

static void
arm_by_event_index(void **state)
{
	struct rig *e = new_rig(8, 65534);

	(void)state;
	e->vr.event_idx = true;
	for (uint16_t i = 0; i < 20; i++) {
		*ring_avail_event(&e->r) = 0x1234;
		e->r.used->flags = 0;
		assert_false(e->vr.ops->arm(&e->vr));
		assert_true(e->vr.armed);
		/* Asked for from the current index on: the very next entry is to be kicked. */
		assert_int_equal(*ring_avail_event(&e->r), (uint16_t)(65534 + i));
		assert_int_equal(e->r.used->flags, 0);
		ring_offer(&e->r, i % 8);
		/* The look after the fence sees it. */
		assert_true(e->vr.ops->arm(&e->vr));
		e->vr.ops->disarm(&e->vr);
		assert_false(e->vr.armed);
		assert_int_equal(e->r.used->flags, 0);
		assert_int_equal(rig_take(e, 32), 1);
		rig_put(e, 1);
	}
	rig_free(e);
}

static void
arm_by_flags(void **state)
{
	struct rig *e = new_rig(8, 0);

	(void)state;
	*ring_avail_event(&e->r) = 0x1234;
	/* A ring starts disarmed: the poller is at it. */
	assert_int_equal(e->r.used->flags, VRING_USED_F_NO_NOTIFY);
	assert_false(e->vr.ops->arm(&e->vr));
	assert_int_equal(e->r.used->flags, 0);
	e->vr.ops->disarm(&e->vr);
	assert_int_equal(e->r.used->flags, VRING_USED_F_NO_NOTIFY);
	ring_offer(&e->r, 0);
	assert_true(e->vr.ops->arm(&e->vr));
	assert_int_equal(*ring_avail_event(&e->r), 0x1234);
	rig_free(e);
}

/* Entries that were seen but not taken are work, too. */
static void
arm_with_a_rest(void **state)
{
	struct rig *e = new_rig(8, 0);

	(void)state;
	e->vr.event_idx = true;
	for (uint16_t i = 0; i < 6; i++)
		ring_offer(&e->r, i);
	assert_int_equal(rig_take(e, 2), 2);
	assert_true(e->vr.ops->arm(&e->vr));
	assert_int_equal(*ring_avail_event(&e->r), 2);
	assert_int_equal(rig_take(e, 4), 4);
	assert_false(e->vr.ops->arm(&e->vr));
	e->vr.ops->untake(&e->vr, e->frames + 3, 1);
	assert_true(e->vr.ops->arm(&e->vr));
	assert_int_equal(*ring_avail_event(&e->r), 5);
	e->r.avail->idx = 400;
	assert_int_equal(rig_take(e, 32), 1);
	/* A jump that shows at this moment is found, and is not work. */
	assert_false(e->vr.ops->arm(&e->vr));
	assert_int_equal(e->vr.fault, VHP_RING_AVAIL_JUMP);
	rig_free(e);
}

/* ---- packed ------------------------------------------------------------------ */

/* Put used chains of n descriptors together, of 1 to 3 each. */
static void
use_packed(struct rig *e, uint16_t n, uint64_t *seed)
{
	while (n > 0) {
		uint16_t k = RTE_MIN(n, prng_range(seed, 1, 3));

		e->frames[0] = (struct vhp_frame){.n_desc = k};
		rig_put(e, 1);
		n -= k;
	}
}

/* Call if the position that the driver named is among those passed since the last look. */
static bool
expect_call_packed(uint16_t size, uint16_t old, bool old_wrap, uint16_t n, uint16_t off_wrap)
{
	for (uint16_t i = 0; i < n; i++) {
		if (off_wrap == (old | (old_wrap ? WRAP : 0)))
			return true;
		if (++old == size) {
			old = 0;
			old_wrap = !old_wrap;
		}
	}
	return false;
}

static void
event_structure_decides(void **state)
{
	static const uint16_t sizes[] = {1, 2, 16, 256, 32768};
	uint64_t seed = 5;

	(void)state;
	for (size_t s = 0; s < RTE_DIM(sizes); s++) {
		uint16_t size = sizes[s];
		struct rig *e = rig_new(size, true, WRAP);
		uint32_t calls = 0;

		e->vr.event_idx = true;
		e->r.driver_event->flags = VRING_PACKED_EVENT_FLAG_DESC;
		use_packed(e, 1, &seed);
		assert_true(e->vr.ops->need_call(&e->vr));
		for (int i = 0; i < 20000; i++) {
			uint16_t old = e->vr.last_used;
			bool old_wrap = e->vr.used_wrap;
			uint16_t n = prng_range(&seed, 1, i % 8 ? RTE_MIN(size, 12) : size);
			/* A position in reach: up to a ring ahead, or a few behind. */
			uint32_t at = old + size + prng_range(&seed, 0, RTE_MIN(size, 20)) -
				      RTE_MIN(size / 3, 5);
			bool wrap = old_wrap != (at / size % 2 == 0);
			uint16_t off_wrap = at % size | (wrap ? WRAP : 0);

			e->r.driver_event->off_wrap = off_wrap;
			use_packed(e, n, &seed);
			bool call = e->vr.ops->need_call(&e->vr);

			assert_int_equal(
				call, expect_call_packed(size, old, old_wrap, n, off_wrap));
			calls += call;
		}
		assert_in_range(calls, 1000, 20000);
		rig_free(e);
	}
}

static void
event_flags_decide(void **state)
{
	static const struct {
		bool event_idx;
		uint16_t flags;
		bool call;
	} cases[] = {
		{false, VRING_PACKED_EVENT_FLAG_ENABLE, true},
		{false, VRING_PACKED_EVENT_FLAG_DISABLE, false},
		/* Not negotiated, so not to be used; better a call too many than none. */
		{false, VRING_PACKED_EVENT_FLAG_DESC, true},
		{true, VRING_PACKED_EVENT_FLAG_ENABLE, true},
		{true, VRING_PACKED_EVENT_FLAG_DISABLE, false},
		{true, VRING_PACKED_EVENT_FLAG_DESC, false},
	};
	uint64_t seed = 6;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rig *e = rig_new(8, true, WRAP | 3);

		e->vr.event_idx = cases[i].event_idx;
		e->r.driver_event->flags = VRING_PACKED_EVENT_FLAG_ENABLE;
		use_packed(e, 1, &seed);
		assert_true(e->vr.ops->need_call(&e->vr));
		e->r.driver_event->flags = cases[i].flags;
		e->r.driver_event->off_wrap = WRAP | 3;
		use_packed(e, 2, &seed);
		assert_int_equal(e->vr.ops->need_call(&e->vr), cases[i].call);
		rig_free(e);
	}
}

static void
arm_packed(void **state)
{
	(void)state;
	for (int event_idx = 0; event_idx < 2; event_idx++) {
		struct rig *e = rig_new(4, true, 2);
		const struct vring_desc buf = {.addr = BUF(0), .len = 64};

		e->vr.event_idx = event_idx;
		assert_int_equal(e->r.device_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE);
		for (uint16_t i = 2; i < 40; i++) {
			/* Position and counter of the next chain: three rounds of four. */
			uint16_t off_wrap = i % 4 | (i / 4 % 2 ? WRAP : 0);

			e->r.device_event->off_wrap = 0x1234;
			assert_false(e->vr.ops->arm(&e->vr));
			assert_true(e->vr.armed);
			assert_int_equal(e->r.device_event->flags,
				event_idx ? VRING_PACKED_EVENT_FLAG_DESC
					  : VRING_PACKED_EVENT_FLAG_ENABLE);
			assert_int_equal(
				e->r.device_event->off_wrap, event_idx ? off_wrap : 0x1234);
			assert_true(ring_post(&e->r, &buf, 1, 0) >= 0);
			assert_true(e->vr.ops->arm(&e->vr));
			e->vr.ops->disarm(&e->vr);
			assert_false(e->vr.armed);
			assert_int_equal(e->r.device_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE);
			assert_int_equal(rig_take(e, 32), 1);
			rig_put(e, 1);
			ring_pop_used(&e->r);
		}
		rig_free(e);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_index_decides),
		cmocka_unit_test(one_call_a_burst),
		cmocka_unit_test(flags_decide),
		cmocka_unit_test(notify_on_empty),
		cmocka_unit_test(arm_by_event_index),
		cmocka_unit_test(arm_by_flags),
		cmocka_unit_test(arm_with_a_rest),
		cmocka_unit_test(event_structure_decides),
		cmocka_unit_test(event_flags_decide),
		cmocka_unit_test(arm_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
