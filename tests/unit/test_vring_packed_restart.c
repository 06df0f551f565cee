/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packed rings whose device died, or was another one: where the next device goes on, whatever
 * the front end says.
 */
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rig.h"

#define SIZE   8
#define BUF(i) (GUEST_LOW_GPA + 0x1000 * (i))
#define WRAP   0x8000

/* As if it had died before the last store of a put: the first one's flags. */
static void
undo_last_store(struct rig *e, uint16_t position, bool wrap)
{
	e->r.descs[position].flags = VRING_DESC_F_WRITE | (wrap ? 1U << 7 : 1U << 15);
}

/*
 * The device dies at any moment, and the front end says of the next one's start what it said
 * at first. No chain is left out, and none is used again; those not used yet come again.
 */
static void
live_and_die(uint16_t size, uint32_t base, uint32_t lives, uint64_t *seed)
{
	struct rig *e = rig_new(size, true, base);
	uint32_t posted = 0, put = 0, popped = 0;
	int ids[1024];

	assert_true(size <= RTE_DIM(ids));
	e->vr.device_writes = true;
	while (lives-- > 0) {
		uint16_t most = prng_range(seed, 1, 2 * size);
		uint16_t position = e->vr.last_used, n, back;
		bool wrap = e->vr.used_wrap;

		for (uint16_t k = 0; k < most; k++) {
			struct vring_desc bufs[3] = {{BUF(0), 5, VRING_DESC_F_WRITE, 0},
				{BUF(1), 6, VRING_DESC_F_WRITE, 0},
				{BUF(2), 7, VRING_DESC_F_WRITE, 0}};
			int id = ring_post(&e->r, bufs, prng_range(seed, 1, 3), 0);

			if (id < 0)
				break;
			ids[posted++ % RTE_DIM(ids)] = id;
		}
		n = rig_take(e, prng_range(seed, 0, VHP_BURST_PKTS));
		for (uint16_t i = 0; i < n; i++) {
			assert_int_equal(e->frames[i].id, ids[(put + i) % RTE_DIM(ids)]);
			e->frames[i].used_bytes = (put + i) % 5;
		}
		back = prng_range(seed, 0, n);
		rig_put(e, n - back);
		put += n - back;
		position = n - back > 1 ? position : size;
		if (position < size && prng_range(seed, 0, 1))
			undo_last_store(e, position, wrap);

		uint32_t right = e->vr.ops->base(&e->vr) >> 16;

		assert_true(e->vr.ops->start(&e->vr, base));
		assert_int_equal(e->vr.ops->base(&e->vr), right | right << 16);
		assert_int_equal(ring_used_count(&e->r), put - popped);
		for (uint32_t k = prng_range(seed, 0, put - popped); k > 0; k--, popped++)
			ring_check_used(&e->r, ids[popped % RTE_DIM(ids)], popped % 5);
	}
	assert_true(popped > size);
	rig_free(e);
}

static void
wrong_base(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (uint16_t size = 4; size <= 1024; size *= 2)
		live_and_die(size, WRAP, 3000, &seed);
	live_and_die(7, WRAP, 3000, &seed);
}

/*
 * A device that marks only the first descriptor of a chain, and a front end that knows where it
 * has stopped, as after a migration.
 */
static void
live_and_tell(uint16_t size, uint32_t lives, uint64_t *seed)
{
	struct rig *e = rig_new(size, true, WRAP);
	uint32_t put = 0;

	while (lives-- > 0) {
		uint16_t most = prng_range(seed, 1, size), n;
		struct vring_packed_desc before[1024];
		uint32_t right;

		for (uint16_t k = 0; k < most; k++) {
			struct vring_desc bufs[3] = {
				{BUF(0), 5, 0, 0}, {BUF(1), 6, 0, 0}, {BUF(2), 7, 0, 0}};

			if (ring_post(&e->r, bufs, prng_range(seed, 1, 3), 0) < 0)
				break;
		}
		memcpy(before, e->r.descs, size * sizeof(*before));
		n = rig_take(e, prng_range(seed, 0, VHP_BURST_PKTS));
		for (uint16_t i = 0, at = e->vr.last_used; i < n; i++) {
			before[at].flags = 0;
			at = (at + e->frames[i].n_desc) % size;
		}
		rig_put(e, n);
		for (uint16_t i = 0; i < size; i++)
			if (before[i].flags != 0)
				e->r.descs[i].flags = before[i].flags;
		put += n;
		while (ring_used_count(&e->r) > 0)
			ring_pop_used(&e->r);
		right = e->vr.ops->base(&e->vr);
		/* The place where a new ring starts: that is where a front end may be wrong. */
		if ((right & 0xffff) == WRAP)
			continue;
		assert_true(e->vr.ops->start(&e->vr, right));
		assert_int_equal(e->vr.ops->base(&e->vr), right);
	}
	assert_true(put > 4U * size);
	rig_free(e);
}

static void
right_base(void **state)
{
	uint64_t seed = 12;

	(void)state;
	for (uint16_t size = 8; size <= 1024; size *= 2)
		live_and_tell(size, 3000, &seed);
}

/* Memory of which the descriptors say nothing: the front end is believed. */
static void
base_believed(void **state)
{
	static const uint16_t strange[][SIZE] = {
		{0}, /* never used */
		{1 << 7, 0, 1 << 7, 0, 1 << 7, 0, 1 << 7, 0},
		/* The driver has added one by one, and not shown the first yet. */
		{0, 1 << 7, 1 << 7, 1 << 7, 1 << 7, 1 << 7, 1 << 7, 1 << 7},
	};

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(strange); i++) {
		struct rig *e = rig_new(SIZE, true, WRAP);

		for (uint16_t k = 0; k < SIZE; k++)
			e->r.descs[k].flags = strange[i][k];
		assert_true(e->vr.ops->start(&e->vr, WRAP));
		assert_int_equal(e->vr.ops->base(&e->vr), WRAP | (uint32_t)WRAP << 16);
		rig_free(e);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_base),
		cmocka_unit_test(right_base),
		cmocka_unit_test(base_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
