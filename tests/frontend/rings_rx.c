/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-rings: what a guest may put into its receiveq (cases R1 to R5); see rings.h. */
#include "rings.h"

#include <stdlib.h>
#include <string.h>

#define NEXT     VRING_DESC_F_NEXT
#define WRITE    VRING_DESC_F_WRITE
#define INDIRECT VRING_DESC_F_INDIRECT

#define DESC_BYTES ((uint32_t)sizeof(struct vring_desc))
#define BUF        2048U

static struct fe_raw_desc
desc(uint64_t addr, uint32_t len, uint16_t flags)
{
	return (struct fe_raw_desc){
		.addr = addr, .len = len, .flags = flags | WRITE, .next = FE_NEXT_AUTO};
}

static int
loop_self(struct rg_run *run)
{
	struct fe_raw_desc d = desc(rg_alloc(run, BUF), BUF, NEXT);

	d.next = FE_NEXT_ELEM(0);
	return rg_post(run, &d, 1);
}

static int
loop_empty(struct rg_run *run)
{
	uint64_t gpa = rg_alloc(run, BUF);
	struct fe_raw_desc d[2] = {desc(gpa, 0, NEXT), desc(gpa, 0, NEXT)};

	d[1].next = FE_NEXT_ELEM(0);
	return rg_post(run, d, 2);
}

static int
next_outside(struct rg_run *run)
{
	struct fe_raw_desc d = desc(rg_alloc(run, BUF), BUF, NEXT);

	d.next = 0xffff;
	if (rg_post(run, &d, 1) != 0)
		return -1;
	d.next = (int32_t)run->ring->cfg.size;
	return rg_post(run, &d, 1);
}

static int
head_size(struct rg_run *run)
{
	struct fe_ring *r = run->ring;

	r->avail->ring[r->next_avail & (r->cfg.size - 1)] = (uint16_t)r->cfg.size;
	r->next_avail++;
	return 0;
}

static int
jump(struct rg_run *run)
{
	const int32_t *by = run->c->arg;

	run->ring->next_avail = (uint16_t)(run->ring->next_avail + *by);
	return 0;
}

static int
bad_addresses(struct rg_run *run)
{
	uint64_t last = fe_mem_end(&run->net->mem, run->net->mem.n - 1);
	const struct fe_raw_desc bad[] = {
		desc(0, BUF, 0),
		desc(rg_hole(run), BUF, 0),
		desc(last, BUF, 0),
		desc(UINT64_MAX - 99, BUF, 0),
		desc(UINT64_MAX - BUF + 1, BUF, 0),
		desc(last - 100, BUF, 0),
		desc(last - 1, 2, 0),
		desc(last - 4096, UINT32_MAX, 0),
	};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bad); i++)
		if (rg_post(run, &bad[i], 1) != 0)
			return -1;
	return 0;
}

/* The end of the chain is bad; nothing of it may be used. */
static int
bad_address_behind(struct rg_run *run)
{
	uint64_t gpa = rg_alloc(run, BUF);
	struct fe_raw_desc d[2] = {desc(gpa, BUF, NEXT), desc(rg_hole(run), BUF, 0)};

	return rg_post(run, d, 2);
}

static int
across(struct rg_run *run)
{
	uint64_t gpa = fe_mem_alloc_across(&run->net->mem, BUF, 77);

	if (gpa == 0)
		return fe_fault(&run->fault, "test: no border to cross");
	return rg_post(run, (struct fe_raw_desc[]){desc(gpa, BUF, 0)}, 1);
}

static int
readable(struct rg_run *run)
{
	uint64_t gpa = rg_alloc(run, BUF);
	struct fe_raw_desc one = desc(gpa, BUF, 0);
	struct fe_raw_desc two[2] = {desc(gpa, 1024, NEXT), desc(gpa + 1024, 1024, 0)};

	one.flags = 0;
	two[0].flags = NEXT;
	return rg_post(run, &one, 1) != 0 ? -1 : rg_post(run, two, 2);
}

/* Readable behind writable is against the rules of chains too (virtio 1.2, 2.7.4.2). */
static int
readable_behind(struct rg_run *run)
{
	uint64_t gpa = rg_alloc(run, BUF);
	struct fe_raw_desc d[2] = {desc(gpa, 1024, NEXT), desc(gpa + 1024, 1024, 0)};

	d[1].flags = 0;
	return rg_post(run, d, 2);
}

static int
post_table(struct rg_run *run, uint32_t table_bytes, uint16_t flags)
{
	uint64_t table = rg_alloc(run, 4 * DESC_BYTES), gpa = rg_alloc(run, BUF);
	struct vring_desc *t = fe_mem_ptr(&run->net->mem, table);
	struct rg_chain *c = &run->chain[run->n_chains];
	struct fe_raw_desc d = desc(table, table_bytes, INDIRECT);

	if (table == 0 || gpa == 0)
		return -1;
	memset(t, 0, 4 * DESC_BYTES);
	t[0].addr = gpa;
	t[0].len = BUF;
	if (run->packed)
		((struct vring_packed_desc *)t)->flags = WRITE;
	else
		t[0].flags = WRITE;
	c->nseg = 1;
	c->seg[0] = (struct fe_seg){.gpa = gpa, .len = BUF};
	d.flags = INDIRECT | flags;
	return rg_post_plain(run, &d, 1);
}

static int
table_sizes(struct rg_run *run)
{
	static const uint32_t bytes[] = {0, 8, 15, 17, 24, 0xfffffff0U};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bytes); i++)
		if (post_table(run, bytes[i], 0) != 0)
			return -1;
	return 0;
}

static int
table_write_flag(struct rg_run *run)
{
	return post_table(run, DESC_BYTES, WRITE);
}

static int
table_outside(struct rg_run *run)
{
	const struct fe_raw_desc bad[] = {
		desc(rg_hole(run), DESC_BYTES, INDIRECT),
		desc(UINT64_MAX - 15, DESC_BYTES, INDIRECT),
	};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bad); i++)
		if (rg_post_plain(run, &bad[i], 1) != 0)
			return -1;
	return 0;
}

static int
table_nested(struct rg_run *run)
{
	uint64_t table = rg_alloc(run, DESC_BYTES);
	struct vring_desc *t = fe_mem_ptr(&run->net->mem, table);

	*t = (struct vring_desc){.addr = table, .len = DESC_BYTES, .flags = INDIRECT};
	if (run->packed)
		((struct vring_packed_desc *)t)->flags = INDIRECT;
	return rg_post_plain(run, (struct fe_raw_desc[]){desc(table, DESC_BYTES, INDIRECT)}, 1);
}

/* Direct descriptors, then one that refers to a table (virtio 1.2, 2.7.5.3.2). */
static int
table_behind(struct rg_run *run)
{
	uint64_t table = rg_alloc(run, DESC_BYTES), gpa = rg_alloc(run, BUF);
	struct vring_desc *t = fe_mem_ptr(&run->net->mem, table);
	struct rg_chain *c = &run->chain[run->n_chains];
	struct fe_raw_desc d[2] = {desc(gpa, 100, NEXT), desc(table, DESC_BYTES, INDIRECT)};

	*t = (struct vring_desc){.addr = gpa + 100, .len = BUF - 100, .flags = WRITE};
	c->nseg = 1;
	c->seg[0] = (struct fe_seg){.gpa = gpa, .len = BUF};
	return rg_post_plain(run, d, 2);
}

/* Too small for the header; what the device makes of them is its affair. */
static int
tiny(struct rg_run *run)
{
	const uint32_t *bytes = run->c->arg;

	return rg_post(run, (struct fe_raw_desc[]){desc(rg_alloc(run, 64), *bytes, 0)}, 1);
}

static int
header_layouts(struct rg_run *run)
{
	static const uint32_t first[] = {1, 5, 11, 12, 13, 100};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(first); i++) {
		uint64_t gpa = rg_alloc(run, BUF);
		struct fe_raw_desc d[3] = {desc(gpa, first[i], NEXT), desc(gpa + 200, 3, NEXT),
			desc(gpa + 300, BUF - 300, 0)};

		if (rg_post(run, d, 3) != 0)
			return -1;
	}
	return 0;
}

static int
pieces(struct rg_run *run)
{
	uint64_t gpa = rg_alloc(run, 4096);
	struct fe_raw_desc d[32];

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(d); i++)
		d[i] = desc(gpa + i * 64, i + 1 < FE_ARRAY_SIZE(d) ? 3 : 1000, i < 31 ? NEXT : 0);
	return rg_post(run, d, FE_ARRAY_SIZE(d));
}

static int
empty_between(struct rg_run *run)
{
	uint64_t gpa = rg_alloc(run, BUF);
	struct fe_raw_desc d[5] = {desc(gpa, 0, NEXT), desc(gpa, 12, NEXT), desc(gpa, 0, NEXT),
		desc(gpa + 12, BUF - 12, NEXT), desc(gpa, 0, 0)};

	return rg_post(run, d, 5);
}

static const int32_t jump_one_more = 1025, jump_back = -2;
static const uint32_t tiny_0 = 0, tiny_5 = 5, tiny_11 = 11, tiny_12 = 12;

#define WITH_TABLES FE_BIT(VIRTIO_RING_F_INDIRECT_DESC)
#define ROW(name_, what_, layouts_, fill_, expect_)                                                \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_RX, .layouts = layouts_, .fill = fill_,  \
		.expect = expect_                                                                  \
	}
#define TROW(name_, what_, layouts_, fill_, expect_)                                               \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_RX, .layouts = layouts_, .fill = fill_,  \
		.expect = expect_, .need = WITH_TABLES                                             \
	}
#define AROW(name_, what_, layouts_, fill_, expect_, arg_)                                         \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_RX, .layouts = layouts_, .fill = fill_,  \
		.expect = expect_, .arg = &(arg_)                                                  \
	}

const struct rg_case rg_rx_cases[] = {
	ROW("R1-rx-loop-self", "descriptor whose next is itself",
		RG_SPLIT_DIRECT | RG_SPLIT_INDIRECT, loop_self, RG_DROP),
	ROW("R1-rx-loop-empty", "circle of descriptors of length 0",
		RG_SPLIT_DIRECT | RG_SPLIT_INDIRECT, loop_empty, RG_DROP),
	ROW("R1-rx-next-outside", "next index not below the ring size",
		RG_SPLIT_DIRECT | RG_SPLIT_INDIRECT, next_outside, RG_DROP),
	ROW("R1-rx-head-size", "head equal to the ring size", RG_SPLIT, head_size, RG_BROKEN),
	ROW("R1-rx-address", "addresses outside of guest memory, or past its end", RG_EVERY,
		bad_addresses, RG_DROP),
	ROW("R1-rx-address-behind", "bad address behind a good one", RG_EVERY, bad_address_behind,
		RG_DROP),
	TROW("R1-rx-table-size", "tables of 0, 8, 15, 17, 24 bytes and of 4 GiB", RG_PLAIN,
		table_sizes, RG_DROP),
	TROW("R1-rx-table-outside", "tables outside of guest memory", RG_PLAIN, table_outside,
		RG_DROP),
	TROW("R1-rx-table-nested", "a table that is its own entry", RG_PLAIN, table_nested,
		RG_DROP),
	TROW("R1-rx-table-write", "WRITE beside INDIRECT is ignored", RG_SPLIT, table_write_flag,
		RG_PASS),
	TROW("R1-rx-table-behind", "direct descriptors, then a table", RG_SPLIT, table_behind,
		RG_PASS),
	ROW("R1-rx-readable", "device-readable descriptors", RG_EVERY, readable, RG_DROP),
	ROW("R1-rx-readable-behind", "device-readable behind writable", RG_EVERY, readable_behind,
		RG_DROP),
	ROW("R1-rx-empty-between", "descriptors of length 0 between others", RG_EVERY,
		empty_between, RG_PASS),
	AROW("R2-rx-jump-size+1", "available index ring size + 1 ahead", RG_SPLIT, jump, RG_BROKEN,
		jump_one_more),
	AROW("R2-rx-jump-back", "available index back", RG_SPLIT, jump, RG_BROKEN, jump_back),
	ROW("R3-rx-across", "a buffer across two regions", RG_EVERY, across, RG_PASS),
	AROW("R4-rx-tiny-0", "a buffer of 0 bytes", RG_EVERY, tiny, RG_RETURN, tiny_0),
	AROW("R4-rx-tiny-5", "a buffer of 5 bytes", RG_EVERY, tiny, RG_RETURN, tiny_5),
	AROW("R4-rx-tiny-11", "a buffer of 11 bytes", RG_EVERY, tiny, RG_RETURN, tiny_11),
	AROW("R4-rx-tiny-12", "a buffer for the header only", RG_EVERY, tiny, RG_RETURN, tiny_12),
	ROW("R5-rx-header", "header split, alone, joined", RG_EVERY, header_layouts, RG_PASS),
	ROW("R5-rx-pieces", "32 pieces, 3 bytes each at first", RG_EVERY, pieces, RG_PASS),
	{.name = NULL},
};
