/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptor chains of a split ring: every layout that the specification allows, and
 * every fault that a chain can have, for both directions. A fault costs that chain only.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rig.h"

#define SIZE 8

/* Addresses in the usual guest. */
#define BUF(i) (GUEST_LOW_GPA + 0x1000 * (i))
#define TABLE  (GUEST_LOW_GPA + 0x20000)
#define HIGH   GUEST_HIGH_GPA

#define N     VRING_DESC_F_NEXT
#define I     VRING_DESC_F_INDIRECT
/* Not of the specification: this buffer has the wrong direction for the ring. */
#define WRONG 0x8000

static struct rig *
new_rig(uint16_t size, bool device_writes)
{
	struct rig *e = rig_new(size, false, 0);

	e->vr.device_writes = device_writes;
	return e;
}

/* The flags of a buffer in this ring. */
static uint16_t
flags_of(const struct rig *e, uint16_t flags)
{
	if (flags & I)
		return flags & ~WRONG;
	if (e->vr.device_writes != !!(flags & WRONG))
		flags |= VRING_DESC_F_WRITE;
	return flags & ~WRONG;
}

static void
write_table(struct rig *e, uint64_t gpa, const struct vring_desc *descs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct vring_desc d = descs[i];

		d.flags = flags_of(e, d.flags);
		guest_write(&e->g, gpa + i * sizeof(d), &d, sizeof(d));
	}
}

/* ---- faults ------------------------------------------------------------------ */

static const struct fault {
	const char *name;
	enum vhp_drop drop;
	struct vring_desc direct[4]; /**< the first descriptors of the ring; head 0 */
	struct vring_desc table[3];  /**< at TABLE */
} faults[] = {
	{"loop of one", VHP_DROP_CHAIN_LOOP, {{BUF(0), 64, N, 0}}, {{0}}},
	{"loop of two", VHP_DROP_CHAIN_LOOP, {{BUF(0), 64, N, 1}, {BUF(1), 64, N, 0}}, {{0}}},
	{"loop behind the head", VHP_DROP_CHAIN_LOOP,
		{{BUF(0), 64, N, 1}, {BUF(1), 64, N, 2}, {BUF(2), 0, N, 1}}, {{0}}},
	{"loop of empty buffers", VHP_DROP_CHAIN_LOOP, {{0, 0, N, 1}, {0, 0, N, 0}}, {{0}}},
	{"next is the ring size", VHP_DROP_CHAIN_NEXT, {{BUF(0), 64, N, SIZE}}, {{0}}},
	{"next is 65535", VHP_DROP_CHAIN_NEXT, {{BUF(0), 64, N, 1}, {BUF(1), 64, N, 0xffff}},
		{{0}}},
	{"address nowhere", VHP_DROP_CHAIN_ADDRESS, {{GUEST_NOWHERE_GPA, 1, 0, 0}}, {{0}}},
	{"address 0", VHP_DROP_CHAIN_ADDRESS, {{0, 64, 0, 0}}, {{0}}},
	{"one byte before memory", VHP_DROP_CHAIN_ADDRESS, {{GUEST_LOW_GPA - 1, 2, 0, 0}}, {{0}}},
	{"one byte past memory", VHP_DROP_CHAIN_ADDRESS, {{GUEST_NEXT_END - 9, 10, 0, 0}}, {{0}}},
	{"behind memory", VHP_DROP_CHAIN_ADDRESS, {{GUEST_NEXT_END, 1, 0, 0}}, {{0}}},
	{"address wraps", VHP_DROP_CHAIN_ADDRESS, {{UINT64_MAX - 3, 8, 0, 0}}, {{0}}},
	{"length of 4 GiB", VHP_DROP_CHAIN_ADDRESS, {{BUF(0), UINT32_MAX, 0, 0}}, {{0}}},
	{"second address nowhere", VHP_DROP_CHAIN_ADDRESS,
		{{BUF(0), 64, N, 1}, {GUEST_NOWHERE_GPA, 64, 0, 0}}, {{0}}},
	{"wrong direction", VHP_DROP_CHAIN_DIRECTION, {{BUF(0), 64, WRONG, 0}}, {{0}}},
	{"second has the wrong direction", VHP_DROP_CHAIN_DIRECTION,
		{{BUF(0), 64, N, 1}, {BUF(1), 64, WRONG, 0}}, {{0}}},
	{"empty one has the wrong direction", VHP_DROP_CHAIN_DIRECTION,
		{{BUF(0), 64, N, 1}, {BUF(1), 0, WRONG, 0}}, {{0}}},
	{"table of 0 bytes", VHP_DROP_CHAIN_INDIRECT, {{TABLE, 0, I, 0}}, {{BUF(0), 64, 0, 0}}},
	{"table of 8 bytes", VHP_DROP_CHAIN_INDIRECT, {{TABLE, 8, I, 0}}, {{BUF(0), 64, 0, 0}}},
	{"table of 15 bytes", VHP_DROP_CHAIN_INDIRECT, {{TABLE, 15, I, 0}}, {{BUF(0), 64, 0, 0}}},
	{"table of 17 bytes", VHP_DROP_CHAIN_INDIRECT, {{TABLE, 17, I, 0}}, {{BUF(0), 64, 0, 0}}},
	{"table of 65537 entries", VHP_DROP_CHAIN_INDIRECT, {{TABLE, 0x100010, I, 0}},
		{{BUF(0), 64, 0, 0}}},
	{"table of 4 GiB - 16", VHP_DROP_CHAIN_INDIRECT, {{TABLE, 0xfffffff0, I, 0}},
		{{BUF(0), 64, 0, 0}}},
	{"table with a next", VHP_DROP_CHAIN_INDIRECT, {{TABLE, 16, I | N, 1}, {BUF(0), 64, 0, 0}},
		{{BUF(0), 64, 0, 0}}},
	{"table in a table", VHP_DROP_CHAIN_INDIRECT, {{TABLE, 32, I, 0}},
		{{BUF(0), 64, N, 1}, {TABLE, 16, I, 0}}},
	{"table nowhere", VHP_DROP_CHAIN_ADDRESS, {{GUEST_NOWHERE_GPA, 16, I, 0}}, {{0}}},
	{"table address wraps", VHP_DROP_CHAIN_ADDRESS, {{UINT64_MAX - 15, 32, I, 0}}, {{0}}},
	{"table of which half is memory", VHP_DROP_CHAIN_ADDRESS, {{GUEST_NEXT_END - 8, 16, I, 0}},
		{{0}}},
	{"loop in a table", VHP_DROP_CHAIN_LOOP, {{TABLE, 32, I, 0}},
		{{BUF(0), 64, N, 1}, {BUF(1), 64, N, 0}}},
	{"next outside of the table", VHP_DROP_CHAIN_NEXT, {{TABLE, 32, I, 0}},
		{{BUF(0), 64, N, 2}, {BUF(1), 64, 0, 0}, {BUF(2), 64, 0, 0}}},
	{"address nowhere, in a table", VHP_DROP_CHAIN_ADDRESS, {{TABLE, 32, I, 0}},
		{{BUF(0), 64, N, 1}, {GUEST_NOWHERE_GPA, 64, 0, 0}}},
	{"wrong direction, in a table", VHP_DROP_CHAIN_DIRECTION, {{TABLE, 32, I, 0}},
		{{BUF(0), 64, N, 1}, {BUF(1), 64, WRONG, 0}}},
	{"a bad table behind a buffer", VHP_DROP_CHAIN_INDIRECT,
		{{BUF(0), 64, N, 1}, {TABLE, 17, I, 0}}, {{BUF(1), 64, 0, 0}}},
	{"a table behind a table", VHP_DROP_CHAIN_INDIRECT,
		{{TABLE, 16, I | N, 1}, {TABLE, 16, I, 0}}, {{BUF(1), 64, 0, 0}}},
};

/* A good chain before it, the bad one, a good one behind it: only the bad one is lost. */
static void
check_fault(const struct fault *f, bool device_writes)
{
	struct rig *e = new_rig(SIZE, device_writes);
	uint16_t good = flags_of(e, 0);

	ring_desc(&e->r, 6, HIGH, 100, good, 0);
	ring_desc(&e->r, 7, HIGH + 0x1000, 200, good, 0);
	for (unsigned int i = 0; i < RTE_DIM(f->direct); i++)
		ring_desc(&e->r, i, f->direct[i].addr, f->direct[i].len,
			flags_of(e, f->direct[i].flags), f->direct[i].next);
	write_table(e, TABLE, f->table, RTE_DIM(f->table));
	ring_offer(&e->r, 6);
	ring_offer(&e->r, 0);
	ring_offer(&e->r, 7);
	guest_snapshot(&e->g);

	assert_int_equal(rig_take(e, VHP_BURST_PKTS), 3);
	if (e->frames[1].drop != f->drop)
		fail_msg("%s: %s, not %s", f->name, vhp_drop_name(e->frames[1].drop),
			vhp_drop_name(f->drop));
	assert_int_equal(e->frames[1].n_iov, 0);
	assert_int_equal(e->frames[0].drop, VHP_OK);
	assert_int_equal(e->frames[0].len_bytes, 100);
	assert_int_equal(e->frames[2].drop, VHP_OK);
	assert_int_equal(e->frames[2].len_bytes, 200);
	assert_int_equal(e->frames[2].n_iov, 1);
	assert_ptr_equal(e->frames[2].iov[0].iov_base, guest_byte(&e->g, HIGH + 0x1000));
	assert_int_equal(e->vr.fault, VHP_RING_OK);
	assert_int_equal(e->vr.stats.faults, 0);

	assert_int_equal(ring_used_count(&e->r), 0);
	e->vr.ops->put(&e->vr, e->frames, 3);
	ring_check_used(&e->r, 6, 0);
	ring_check_used(&e->r, 0, 0);
	ring_check_used(&e->r, 7, 0);
	guest_check_memory(&e->g);
	rig_free(e);
}

static void
chain_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(faults); i++) {
		check_fault(&faults[i], false);
		check_fault(&faults[i], true);
	}
}

static void
indirect_not_negotiated(void **state)
{
	struct rig *e = new_rig(SIZE, false);
	const struct vring_desc d = {BUF(0), 64, 0, 0};

	(void)state;
	e->vr.indirect = false;
	write_table(e, TABLE, &d, 1);
	ring_desc(&e->r, 0, TABLE, 16, I, 0);
	ring_offer(&e->r, 0);
	assert_int_equal(rig_take(e, 1), 1);
	assert_int_equal(e->frames[0].drop, VHP_DROP_CHAIN_INDIRECT);
	rig_free(e);
}

/* Lengths that sum to just below and to just 2^32, in memory that is never touched. */
static void
length_sum(void **state)
{
	static const struct {
		uint32_t last_bytes;
		enum vhp_drop drop;
	} cases[] = {{0xfffffffe, VHP_OK}, {0xffffffff, VHP_DROP_CHAIN_LENGTH}, {1, VHP_OK},
		{0x80000000, VHP_OK}};
	static const struct vhp_mem big = {
		.n_regions = 1,
		.regions = {{.gpa = 0, .size_bytes = 1ULL << 40, .hva = (uint8_t *)(1ULL << 40)}},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rig *e = new_rig(SIZE, false);

		e->vr.mem = &big;
		ring_desc(&e->r, 0, 0, 1, N, 1);
		ring_desc(&e->r, 1, 16, 0, N, 2);
		ring_desc(&e->r, 2, 0x123456789, cases[i].last_bytes, 0, 0);
		ring_offer(&e->r, 0);
		assert_int_equal(rig_take(e, 1), 1);
		assert_int_equal(e->frames[0].drop, cases[i].drop);
		if (cases[i].drop == VHP_OK)
			assert_int_equal(e->frames[0].len_bytes, 1U + cases[i].last_bytes);
		rig_free(e);
	}
}

/* ---- layouts that are right -------------------------------------------------- */

/* The frame's pieces must be these buffers, in this order; empty ones are left out. */
static void
check_pieces(const struct rig *e, const struct vhp_frame *f, const struct vring_desc *bufs,
	unsigned int n)
{
	uint32_t len = 0;
	unsigned int k = 0;

	assert_int_equal(f->drop, VHP_OK);
	for (unsigned int i = 0; i < n; i++) {
		if (bufs[i].len == 0)
			continue;
		assert_true(k < f->n_iov);
		assert_ptr_equal(f->iov[k].iov_base, guest_byte(&e->g, bufs[i].addr));
		assert_int_equal(f->iov[k].iov_len, bufs[i].len);
		len += bufs[i].len;
		k++;
	}
	assert_int_equal(f->n_iov, k);
	assert_int_equal(f->len_bytes, len);
}

static const struct layout {
	const char *name;
	uint16_t head;
	struct vring_desc direct[4];
	struct vring_desc table[3];
	struct vring_desc expected[4];
} layouts[] = {
	{"one", 2, {{0}, {0}, {BUF(0), 64, 0, 0}}, {{0}}, {{.addr = BUF(0), .len = 64}}},
	{"four, not in order", 3,
		{{BUF(0), 1, N, 2}, {BUF(1), 2, 0, 0}, {BUF(2), 3, N, 1}, {BUF(3), 4, N, 0}}, {{0}},
		{{.addr = BUF(3), .len = 4}, {.addr = BUF(0), .len = 1}, {.addr = BUF(2), .len = 3},
			{.addr = BUF(1), .len = 2}}},
	{"the next of the last is not looked at", 0, {{BUF(0), 64, 0, 0xffff}}, {{0}},
		{{.addr = BUF(0), .len = 64}}},
	{"empty buffers, address and all", 0,
		{{GUEST_NOWHERE_GPA, 0, N, 1}, {BUF(0), 5, N, 2}, {0, 0, 0, 0}}, {{0}},
		{{.addr = BUF(0), .len = 5}}},
	{"nothing but an empty buffer", 0, {{0, 0, 0, 0}}, {{0}}, {{0}}},
	{"a table of one", 0, {{TABLE, 16, I, 0}}, {{BUF(0), 64, 0, 0}},
		{{.addr = BUF(0), .len = 64}}},
	{"a table, not in order", 0, {{TABLE, 48, I, 0}},
		{{BUF(0), 64, N, 2}, {BUF(1), 65, 0, 0}, {BUF(2), 66, N, 1}},
		{{.addr = BUF(0), .len = 64}, {.addr = BUF(2), .len = 66},
			{.addr = BUF(1), .len = 65}}},
	{"a table of which a part is used", 0, {{TABLE, 48, I, 0}}, {{BUF(0), 64, 0, 0}},
		{{.addr = BUF(0), .len = 64}}},
	/* Virtio 1.2, 2.7.5.3.2: write-only is ignored there. */
	{"a table marked as write-only", 0, {{TABLE, 16, I | VRING_DESC_F_WRITE, 0}},
		{{BUF(0), 64, 0, 0}}, {{.addr = BUF(0), .len = 64}}},
	/* The same: "zero or more normal chained descriptors followed by a single" indirect. */
	{"a table behind buffers", 0,
		{{BUF(0), 12, N, 1}, {BUF(1), 2, N, 2}, {TABLE, 32, I, 0xffff}},
		{{BUF(2), 64, N, 1}, {BUF(3), 7, 0, 0}},
		{{.addr = BUF(0), .len = 12}, {.addr = BUF(1), .len = 2},
			{.addr = BUF(2), .len = 64}, {.addr = BUF(3), .len = 7}}},
};

static void
good_layouts(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * RTE_DIM(layouts); i++) {
		const struct layout *l = &layouts[i / 2];
		struct rig *e = new_rig(SIZE, i % 2);

		for (unsigned int k = 0; k < RTE_DIM(l->direct); k++)
			ring_desc(&e->r, k, l->direct[k].addr, l->direct[k].len,
				flags_of(e, l->direct[k].flags), l->direct[k].next);
		write_table(e, TABLE, l->table, RTE_DIM(l->table));
		ring_offer(&e->r, l->head);
		assert_int_equal(rig_take(e, VHP_BURST_PKTS), 1);
		if (e->frames[0].drop != VHP_OK)
			fail_msg("%s: %s", l->name, vhp_drop_name(e->frames[0].drop));
		assert_int_equal(e->frames[0].id, l->head);
		check_pieces(e, &e->frames[0], l->expected, RTE_DIM(l->expected));
		rig_free(e);
	}
}

/* A table anywhere: at an odd address, and over the edge of two regions at each of its bytes. */
static void
table_anywhere(void **state)
{
	const struct vring_desc descs[] = {
		{BUF(0), 64, N, 2}, {BUF(1), 65, 0, 0}, {BUF(2), 66, N, 1}};
	const struct vring_desc expected[] = {{.addr = BUF(0), .len = 64},
		{.addr = BUF(2), .len = 66}, {.addr = BUF(1), .len = 65}};
	struct rig *e = new_rig(SIZE, false);

	(void)state;
	for (int d = -64; d <= 16; d++) {
		write_table(e, GUEST_NEXT_GPA + d, descs, 3);
		ring_desc(&e->r, 0, GUEST_NEXT_GPA + d, sizeof(descs), I, 0);
		ring_offer(&e->r, 0);
		assert_int_equal(rig_take(e, 1), 1);
		check_pieces(e, &e->frames[0], expected, 3);
		e->vr.ops->put(&e->vr, e->frames, 1);
	}
	rig_free(e);
}

/* A buffer over the edge of two regions is two pieces. */
static void
buffer_over_an_edge(void **state)
{
	struct rig *e = new_rig(SIZE, true);

	(void)state;
	ring_desc(&e->r, 0, GUEST_NEXT_GPA - 3, 10, VRING_DESC_F_WRITE, 0);
	ring_offer(&e->r, 0);
	assert_int_equal(rig_take(e, 1), 1);
	assert_int_equal(e->frames[0].drop, VHP_OK);
	assert_int_equal(e->frames[0].n_iov, 2);
	assert_int_equal(e->frames[0].len_bytes, 10);
	assert_int_equal(e->frames[0].iov[0].iov_len, 3);
	assert_ptr_equal(e->frames[0].iov[1].iov_base, guest_byte(&e->g, GUEST_NEXT_GPA));
	rig_free(e);
}

/* ---- how long a chain may be ------------------------------------------------- */

/* A table of n buffers of len_bytes each, the first over_edge of them in two regions. */
static void
long_table(struct rig *e, uint32_t n, uint32_t len_bytes, uint32_t over_edge)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct vring_desc d = {
			.addr = i < over_edge ? GUEST_NEXT_GPA - 1 : BUF(0),
			.len = len_bytes,
			.flags = i + 1 < n ? N : 0,
			.next = i + 1,
		};

		write_table(e, GUEST_HIGH_GPA + i * sizeof(d), &d, 1);
	}
	ring_desc(&e->r, 0, GUEST_HIGH_GPA, n * sizeof(struct vring_desc), I, 0);
	ring_offer(&e->r, 0);
}

static void
long_chains(void **state)
{
	static const struct {
		uint32_t n, len_bytes, over_edge;
		enum vhp_drop drop;
		uint32_t n_iov;
	} cases[] = {
		{1024, 2, 0, VHP_OK, 1024},
		{1025, 2, 0, VHP_DROP_CHAIN_LOOP, 0},
		{4096, 2, 0, VHP_DROP_CHAIN_LOOP, 0},
		{1024, 0, 0, VHP_OK, 0},
		{1025, 0, 0, VHP_DROP_CHAIN_LOOP, 0},
		{1023, 2, 1, VHP_OK, 1024},
		{1024, 2, 1, VHP_DROP_CHAIN_SEGMENTS, 0},
		{512, 2, 512, VHP_OK, 1024},
		{513, 2, 512, VHP_DROP_CHAIN_SEGMENTS, 0},
		{513, 2, 513, VHP_DROP_CHAIN_SEGMENTS, 0},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rig *e = new_rig(SIZE, false);

		long_table(e, cases[i].n, cases[i].len_bytes, cases[i].over_edge);
		assert_int_equal(rig_take(e, 1), 1);
		assert_int_equal(e->frames[0].drop, cases[i].drop);
		assert_int_equal(e->frames[0].n_iov, cases[i].n_iov);
		if (cases[i].drop == VHP_OK)
			assert_int_equal(e->frames[0].len_bytes, cases[i].n * cases[i].len_bytes);
		rig_free(e);
	}
}

/* A direct chain as long as its ring is right, in every size of ring. */
static void
chain_as_long_as_the_ring(void **state)
{
	(void)state;
	for (uint32_t size = 1; size <= 32768; size *= 2) {
		struct rig *e = new_rig(size, false);

		for (uint32_t i = 0; i < size; i++)
			ring_desc(&e->r, i, BUF(0), 1, i > 0 ? N : 0, i - 1);
		ring_offer(&e->r, size - 1);
		assert_int_equal(rig_take(e, 1), 1);
		if (size <= VHP_MAX_CHAIN_DESCS) {
			assert_int_equal(e->frames[0].drop, VHP_OK);
			assert_int_equal(e->frames[0].n_iov, size);
		} else {
			assert_int_equal(e->frames[0].drop, VHP_DROP_CHAIN_LOOP);
		}
		rig_free(e);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain_faults),
		cmocka_unit_test(indirect_not_negotiated),
		cmocka_unit_test(length_sum),
		cmocka_unit_test(good_layouts),
		cmocka_unit_test(table_anywhere),
		cmocka_unit_test(buffer_over_an_edge),
		cmocka_unit_test(long_chains),
		cmocka_unit_test(chain_as_long_as_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
