/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packed rings: chains of every layout, every fault a chain can have, for both directions,
 * order over the wraps, and what breaks a ring.
 */
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rig.h"

#define SIZE 8

#define BUF(i) (GUEST_LOW_GPA + 0x1000 * (i))
#define TABLE  (GUEST_LOW_GPA + 0x20000)

#define N     VRING_DESC_F_NEXT
#define I     VRING_DESC_F_INDIRECT
/* Not of the specification: this buffer has the wrong direction for the ring. */
#define WRONG 0x4000
#define WRAP  0x8000

#define LONG_ID 0xbeef

/* The flags of a buffer in this ring. */
static uint16_t
flags_of(const struct rig *e, uint16_t flags)
{
	if (!(flags & I) && e->vr.device_writes != !!(flags & WRONG))
		flags |= VRING_DESC_F_WRITE;
	return flags & ~WRONG;
}

static void
write_table(struct rig *e, const struct vring_packed_desc *descs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct vring_packed_desc d = descs[i];

		d.flags = flags_of(e, d.flags);
		guest_write(&e->g, TABLE + i * sizeof(d), &d, sizeof(d));
	}
}

/* ---- faults ------------------------------------------------------------------ */

static const struct fault {
	const char *name;
	enum vhp_drop drop;
	uint16_t n_direct;
	struct vring_packed_desc direct[4];
	struct vring_packed_desc table[2];
} faults[] = {
	{"address nowhere", VHP_DROP_CHAIN_ADDRESS, 1, {{GUEST_NOWHERE_GPA, 1, 3, 0}}, {{0}}},
	{"one byte past memory", VHP_DROP_CHAIN_ADDRESS, 1, {{GUEST_NEXT_END - 9, 10, 3, 0}},
		{{0}}},
	{"address wraps", VHP_DROP_CHAIN_ADDRESS, 1, {{UINT64_MAX - 3, 8, 3, 0}}, {{0}}},
	{"second address nowhere", VHP_DROP_CHAIN_ADDRESS, 3,
		{{BUF(0), 64, 1, N}, {GUEST_NOWHERE_GPA, 64, 2, N}, {BUF(0), 64, 3, 0}}, {{0}}},
	{"wrong direction", VHP_DROP_CHAIN_DIRECTION, 1, {{BUF(0), 64, 3, WRONG}}, {{0}}},
	{"first has the wrong direction", VHP_DROP_CHAIN_DIRECTION, 4,
		{{BUF(0), 64, 0, N | WRONG}, {BUF(1), 64, 0, N}, {BUF(1), 64, 0, N},
			{BUF(1), 64, 3, 0}},
		{{0}}},
	{"table of 0 bytes", VHP_DROP_CHAIN_INDIRECT, 1, {{TABLE, 0, 3, I}}, {{BUF(0), 64, 0, 0}}},
	{"table of 8 bytes", VHP_DROP_CHAIN_INDIRECT, 1, {{TABLE, 8, 3, I}}, {{BUF(0), 64, 0, 0}}},
	{"table of 17 bytes", VHP_DROP_CHAIN_INDIRECT, 1, {{TABLE, 17, 3, I}},
		{{BUF(0), 64, 0, 0}}},
	{"table of 65537 entries", VHP_DROP_CHAIN_INDIRECT, 1, {{TABLE, 0x100010, 3, I}},
		{{BUF(0), 64, 0, 0}}},
	{"table of 1025 entries", VHP_DROP_CHAIN_LOOP, 1, {{TABLE, 1025 * 16, 3, I}},
		{{BUF(0), 64, 0, 0}}},
	{"table with a next", VHP_DROP_CHAIN_INDIRECT, 2,
		{{TABLE, 16, 1, I | N}, {BUF(1), 64, 3, 0}}, {{BUF(0), 64, 0, 0}}},
	{"table in a table", VHP_DROP_CHAIN_INDIRECT, 1, {{TABLE, 32, 3, I}},
		{{BUF(0), 64, 0, 0}, {TABLE, 16, 0, I}}},
	{"table nowhere", VHP_DROP_CHAIN_ADDRESS, 1, {{GUEST_NOWHERE_GPA, 16, 3, I}}, {{0}}},
	{"table of which half is memory", VHP_DROP_CHAIN_ADDRESS, 1,
		{{GUEST_NEXT_END - 8, 16, 3, I}}, {{0}}},
	{"address nowhere, in a table", VHP_DROP_CHAIN_ADDRESS, 1, {{TABLE, 32, 3, I}},
		{{BUF(0), 64, 0, 0}, {GUEST_NOWHERE_GPA, 64, 0, 0}}},
	{"wrong direction, in a table", VHP_DROP_CHAIN_DIRECTION, 1, {{TABLE, 32, 3, I}},
		{{BUF(0), 64, 0, 0}, {BUF(1), 64, 0, WRONG}}},
};

/* Three good chains around the bad one, which is at each place of the ring in turn (R6). */
static void
check_fault(const struct fault *f, bool device_writes, uint16_t start)
{
	struct rig *e = rig_new(SIZE, true, start);
	uint16_t good;

	e->vr.device_writes = device_writes;
	good = flags_of(e, 0);
	ring_packed_desc(&e->r, BUF(3), 100, good, 5);
	for (uint16_t i = 0; i < f->n_direct; i++)
		ring_packed_desc(&e->r, f->direct[i].addr, f->direct[i].len,
			flags_of(e, f->direct[i].flags), f->direct[i].id);
	e->r.n_desc[3] = f->n_direct;
	write_table(e, f->table, RTE_DIM(f->table));
	ring_packed_desc(&e->r, GUEST_HIGH_GPA, 200, good, 6);
	ring_packed_desc(&e->r, GUEST_HIGH_GPA, 201, good, 7);

	assert_int_equal(rig_take(e, VHP_BURST_PKTS), 4);
	if (e->frames[1].drop != f->drop)
		fail_msg("%s: %s, not %s", f->name, vhp_drop_name(e->frames[1].drop),
			vhp_drop_name(f->drop));
	assert_int_equal(e->frames[1].n_iov, 0);
	assert_int_equal(e->frames[1].id, 3);
	assert_int_equal(e->frames[1].n_desc, f->n_direct);
	for (uint16_t i = 0; i < 4; i++)
		if (i != 1)
			assert_int_equal(e->frames[i].drop, VHP_OK);
	assert_int_equal(e->frames[3].len_bytes, 201);
	assert_ptr_equal(e->frames[3].iov[0].iov_base, guest_byte(&e->g, GUEST_HIGH_GPA));
	assert_int_equal(rig_faults(), 0);

	assert_int_equal(ring_used_count(&e->r), 0);
	rig_put(e, 4);
	assert_int_equal(ring_used_count(&e->r), 4);
	ring_check_used(&e->r, 5, 0);
	ring_check_used(&e->r, 3, 0);
	ring_check_used(&e->r, 6, 0);
	ring_check_used(&e->r, 7, 0);
	rig_free(e);
}

static void
chain_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(faults); i++)
		for (uint16_t start = 0; start < SIZE; start++) {
			check_fault(&faults[i], false, start | WRAP);
			check_fault(&faults[i], true, start);
		}
}

static void
indirect_not_negotiated(void **state)
{
	struct rig *e = rig_new(SIZE, true, WRAP);
	const struct vring_packed_desc d = {BUF(0), 64, 0, 0};

	(void)state;
	e->vr.indirect = false;
	write_table(e, &d, 1);
	ring_packed_desc(&e->r, TABLE, 16, I, 3);
	assert_int_equal(rig_take(e, 1), 1);
	assert_int_equal(e->frames[0].drop, VHP_DROP_CHAIN_INDIRECT);
	rig_free(e);
}

/* Longer than 1,024: not forwarded, but still given back as what it is. */
static void
long_chain(void **state)
{
	struct rig *e = rig_new(2048, true, WRAP);

	(void)state;
	for (int n = 1023; n <= 1026; n++) {
		for (int i = 1; i <= n; i++)
			ring_packed_desc(&e->r, BUF(0), 1, i < n ? N : 0, i < n ? 0 : 9);
		e->r.n_desc[9] = n;
		assert_int_equal(rig_take(e, 32), 1);
		assert_int_equal(e->frames[0].drop, n <= 1024 ? VHP_OK : VHP_DROP_CHAIN_LOOP);
		assert_int_equal(e->frames[0].n_iov, n <= 1024 ? n : 0);
		assert_int_equal(e->frames[0].n_desc, n);
		rig_put(e, 1);
		ring_check_used(&e->r, 9, 0);
	}
	rig_free(e);
}

/* A chain that never ends breaks the ring; what was before it is served. */
static void
endless_chain(void **state)
{
	static const uint16_t sizes[] = {1, 2, 8, 256, 32768};

	(void)state;
	for (size_t s = 0; s < RTE_DIM(sizes); s++) {
		struct rig *e = rig_new(sizes[s], true, WRAP);
		uint32_t turns = 0;

		for (uint32_t i = 0; i < sizes[s]; i++)
			ring_packed_desc(&e->r, BUF(0), 1, N, 0);
		assert_int_equal(rig_take(e, 32), 0);
		assert_int_equal(e->vr.fault, VHP_RING_ENDLESS);
		assert_int_equal(e->vr.stats.faults, 1);
		assert_int_equal(rig_faults(), 1);
		while (turns < 3 && rig_take(e, 32) == 0)
			turns++;
		assert_int_equal(turns, 3);
		assert_int_equal(e->vr.stats.faults, 1);
		assert_int_equal(ring_used_count(&e->r), 0);
		rig_free(e);
	}
}

/* ---- layouts that are right -------------------------------------------------- */

static void
good_layouts(void **state)
{
	const struct vring_packed_desc table[] = {
		/* Next and the id mean nothing in a table (virtio 1.2, 2.8.7). */
		{BUF(2), 30, 0xffff, N}, {GUEST_NOWHERE_GPA, 0, 0, 0}, {BUF(3), 40, 0, N}};
	struct rig *e = rig_new(SIZE, true, WRAP | 5);

	(void)state;
	write_table(e, table, 3);
	/* Only the last descriptor's id counts. */
	ring_packed_desc(&e->r, BUF(0), 10, N, 1);
	ring_packed_desc(&e->r, BUF(1), 0, N, 2);
	ring_packed_desc(&e->r, BUF(1), 20, 0, LONG_ID);
	ring_packed_desc(&e->r, TABLE, 48, I | VRING_DESC_F_WRITE, 4);
	assert_int_equal(rig_take(e, 32), 2);
	assert_int_equal(e->frames[0].drop, VHP_OK);
	assert_int_equal(e->frames[0].id, LONG_ID);
	assert_int_equal(e->frames[0].n_desc, 3);
	assert_int_equal(e->frames[0].n_iov, 2);
	assert_int_equal(e->frames[0].len_bytes, 30);
	assert_ptr_equal(e->frames[0].iov[1].iov_base, guest_byte(&e->g, BUF(1)));
	assert_int_equal(e->frames[1].drop, VHP_OK);
	assert_int_equal(e->frames[1].id, 4);
	assert_int_equal(e->frames[1].n_desc, 1);
	assert_int_equal(e->frames[1].n_iov, 2);
	assert_int_equal(e->frames[1].len_bytes, 70);
	assert_ptr_equal(e->frames[1].iov[1].iov_base, guest_byte(&e->g, BUF(3)));

	/* The used descriptors lie where the chains began: 5 and 0 of the next round. */
	rig_put(e, 2);
	assert_int_equal(e->r.descs[5].id, LONG_ID);
	assert_int_equal(e->r.descs[5].flags, 1U << 7 | 1U << 15);
	assert_int_equal(e->r.descs[0].id, 4);
	assert_int_equal(e->r.descs[0].flags, 0);
	assert_int_equal(e->vr.ops->base(&e->vr), 0x00010001);
	rig_free(e);
}

/* ---- order ------------------------------------------------------------------- */

/* Chains of 1 to 3 descriptors, taken, given back and put in any portions. */
static void
go_round(uint16_t size, uint32_t base, uint32_t total, uint64_t *seed)
{
	struct rig *e = rig_new(size, true, base);
	uint32_t posted = 0, taken = 0, popped = 0;
	int ids[32768];

	while (popped < total) {
		for (uint32_t k = prng_range(seed, 0, 40); k > 0; k--) {
			struct vring_desc bufs[3] = {
				{BUF(0), 5, 0, 0}, {BUF(1), 6, 0, 0}, {BUF(2), 7, 0, 0}};
			int id = ring_post(&e->r, bufs, prng_range(seed, 1, 3), 0);

			if (id < 0)
				break;
			ids[posted++ % RTE_DIM(ids)] = id;
		}
		uint16_t n = rig_take(e, prng_range(seed, 0, VHP_BURST_PKTS));
		uint16_t back = prng_range(seed, 0, n);

		for (uint16_t i = 0; i < n; i++) {
			assert_int_equal(e->frames[i].id, ids[(taken + i) % RTE_DIM(ids)]);
			assert_int_equal(e->frames[i].drop, VHP_OK);
			e->frames[i].used_bytes = (taken + i) % 61;
		}
		e->vr.ops->untake(&e->vr, e->frames + (n - back), back);
		n -= back;
		rig_put(e, n);
		/* Nothing is left over: both sides of the device are at one place. */
		assert_int_equal(e->vr.ops->base(&e->vr) & 0xffff, e->vr.ops->base(&e->vr) >> 16);
		taken += n;
		assert_int_equal(ring_used_count(&e->r), taken - popped);
		for (; popped < taken; popped++)
			ring_check_used(&e->r, ids[popped % RTE_DIM(ids)], popped % 61);
	}
	assert_int_equal(e->vr.fault, VHP_RING_OK);
	rig_free(e);
}

static void
every_ring_size(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (uint32_t size = 1; size <= 32768; size *= 2) {
		go_round(size, size - 1, size + 500, &seed);
		go_round(size, WRAP | size / 2, size + 500, &seed);
	}
	go_round(256, WRAP, 100000, &seed);
}

static void
base_outside(void **state)
{
	struct rig *e = rig_new(SIZE, true, WRAP);

	(void)state;
	assert_false(e->vr.ops->start(&e->vr, SIZE));
	assert_false(e->vr.ops->start(&e->vr, WRAP | SIZE));
	assert_false(e->vr.ops->start(&e->vr, 0x7fff));
	assert_true(e->vr.ops->start(&e->vr, WRAP | (SIZE - 1)));
	assert_int_equal(e->vr.ops->base(&e->vr), 0x80078007);
	rig_free(e);
}

static void
small_pool(void **state)
{
	const struct vring_desc bufs[] = {{BUF(0), 5, 0, 0}, {BUF(1), 6, 0, 0}, {BUF(2), 7, 0, 0}};

	(void)state;
	for (uint32_t room = 0; room <= 16; room++) {
		struct rig *e = rig_new(16, true, WRAP | 3);
		uint16_t taken = 0;

		for (int i = 0; i < 5; i++)
			assert_true(ring_post(&e->r, bufs, 3, 0) >= 0);
		for (int turn = 0; turn < 6; turn++) {
			uint16_t n = e->vr.ops->take(&e->vr, e->frames, 32, e->iov, room);

			assert_int_equal(n, RTE_MIN(room / 3, 5U - taken));
			for (uint16_t i = 0; i < n; i++)
				assert_int_equal(e->frames[i].drop, VHP_OK);
			rig_put(e, n);
			taken += n;
		}
		assert_int_equal(taken, room >= 3 ? 5 : 0);
		rig_free(e);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain_faults),
		cmocka_unit_test(indirect_not_negotiated),
		cmocka_unit_test(long_chain),
		cmocka_unit_test(endless_chain),
		cmocka_unit_test(good_layouts),
		cmocka_unit_test(every_ring_size),
		cmocka_unit_test(base_outside),
		cmocka_unit_test(small_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
