/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-rings: chains that a guest may put into its transmitq (cases R1 to R6); see rings.h. */
#include "rings.h"

#include <stdlib.h>
#include <string.h>

#define NEXT  VRING_DESC_F_NEXT
#define WRITE VRING_DESC_F_WRITE

#define FRAME 300U

/* A descriptor with the usual next. */
static struct fe_raw_desc
desc(uint64_t addr, uint32_t len, uint16_t flags)
{
	return (struct fe_raw_desc){.addr = addr, .len = len, .flags = flags, .next = FE_NEXT_AUTO};
}

/* ---- R1: loops and indices ---- */

static int
loop_self(struct rg_run *run)
{
	struct fe_raw_desc d = desc(rg_frame(run, FRAME), rg_bytes(run, FRAME), NEXT);

	d.next = FE_NEXT_ELEM(0);
	return rg_post(run, &d, 1);
}

static int
loop_three(struct rg_run *run)
{
	uint64_t gpa = rg_frame(run, FRAME);
	struct fe_raw_desc d[3] = {
		desc(gpa, 20, NEXT), desc(gpa + 20, 20, NEXT), desc(gpa + 40, 20, NEXT)};

	d[2].next = FE_NEXT_ELEM(0);
	return rg_post(run, d, 3);
}

/* Empty descriptors: a walker that stops at a number of bytes never stops here. */
static int
loop_empty(struct rg_run *run)
{
	struct fe_raw_desc d[2] = {desc(rg_frame(run, FRAME), 0, NEXT), desc(0, 0, NEXT)};

	d[1].addr = d[0].addr;
	d[1].next = FE_NEXT_ELEM(0);
	return rg_post(run, d, 2);
}

static int
next_outside(struct rg_run *run)
{
	static const uint16_t far[] = {1024, 1025, 0x7fff, 0xffff};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(far); i++) {
		struct fe_raw_desc d = desc(rg_frame(run, FRAME), rg_bytes(run, FRAME), NEXT);

		d.next = far[i];
		if (rg_post(run, &d, 1) != 0)
			return -1;
	}
	return 0;
}

/* A table of two whose second entry goes on to a third. */
static int
table_next_outside(struct rg_run *run)
{
	uint64_t gpa = rg_frame(run, FRAME);
	struct fe_raw_desc d[2] = {desc(gpa, 20, NEXT), desc(gpa + 20, 20, NEXT)};

	d[1].next = 2;
	return rg_post(run, d, 2);
}

static int
put_head(struct rg_run *run, uint32_t head)
{
	struct fe_ring *r = run->ring;

	r->avail->ring[r->next_avail & (r->cfg.size - 1)] = (uint16_t)head;
	r->next_avail++;
	return 0;
}

static int
head_size(struct rg_run *run)
{
	return put_head(run, run->ring->cfg.size);
}

static int
head_max(struct rg_run *run)
{
	return put_head(run, 0xffff);
}

/* ---- R2: the available index ---- */

static int
jump(struct rg_run *run)
{
	const int32_t *by = run->c->arg;

	run->ring->next_avail = (uint16_t)(run->ring->next_avail + *by);
	return 0;
}

/* ---- R1, R3: addresses and lengths ---- */

static int
bad_addresses(struct rg_run *run)
{
	uint64_t last = fe_mem_end(&run->net->mem, run->net->mem.n - 1);
	const struct fe_raw_desc bad[] = {
		desc(0, 100, 0),
		desc(rg_hole(run), 100, 0),
		desc(run->net->mem.first_gpa - 1, 100, 0),
		desc(last, 100, 0),
		desc(UINT64_MAX, 100, 0),
		desc(UINT64_MAX - 99, 100, 0),
		desc(1ULL << 63, 100, 0),
		desc(0, UINT32_MAX, 0),
	};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bad); i++)
		if (rg_post(run, &bad[i], 1) != 0)
			return -1;
	return 0;
}

/* The header is right, the frame behind it is not. */
static int
bad_address_behind(struct rg_run *run)
{
	uint64_t gpa = rg_frame(run, FRAME);
	struct fe_raw_desc d[3] = {
		desc(gpa, 100, NEXT), desc(rg_hole(run), 100, NEXT), desc(gpa + 100, 100, 0)};

	return rg_post(run, d, 3);
}

static int
past_end(struct rg_run *run)
{
	uint64_t last = fe_mem_end(&run->net->mem, run->net->mem.n - 1);
	const struct fe_raw_desc bad[] = {
		desc(last - 100, 101, 0),
		desc(last - 1, 2, 0),
		desc(last - 4096, 0x80000000U, 0),
		desc(last - 4096, UINT32_MAX, 0),
	};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bad); i++)
		if (rg_post(run, &bad[i], 1) != 0)
			return -1;
	return 0;
}

static int
post_sum(struct rg_run *run, uint32_t len, uint32_t n)
{
	struct fe_raw_desc *d = calloc(n, sizeof(*d));
	int rc = -1;

	for (uint32_t i = 0; d != NULL && i < n; i++)
		d[i] = desc(run->net->mem.first_gpa, len, i + 1 < n ? NEXT : 0);
	if (d != NULL)
		rc = rg_post(run, d, n);
	free(d);
	return rc;
}

/* Each descriptor lies in guest memory, but a 32-bit sum of them comes out small. */
static int
lengths_wrap(struct rg_run *run)
{
	uint32_t len = (uint32_t)run->net->mem.r[0].msg.bytes;

	return post_sum(run, len, (uint32_t)(((1ULL << 32) + len - 1) / len));
}

static int
lengths_large(struct rg_run *run)
{
	return post_sum(run, (uint32_t)run->net->mem.r[0].msg.bytes, 16);
}

static int
too_long(struct rg_run *run)
{
	return post_sum(run, 200000, 1);
}

/* A frame that lies across the border between two regions. */
static int
across(struct rg_run *run)
{
	uint64_t from = rg_frame(run, FRAME), to;

	to = fe_mem_alloc_across(&run->net->mem, rg_bytes(run, FRAME), 57);
	if (from == 0 || to == 0)
		return fe_fault(&run->fault, "test: no border to cross");
	memcpy(fe_mem_ptr(&run->net->mem, to), fe_mem_ptr(&run->net->mem, from),
		rg_bytes(run, FRAME));
	return rg_post(run, (struct fe_raw_desc[]){desc(to, rg_bytes(run, FRAME), 0)}, 1);
}

/* ---- directions and counts ---- */

static int
writable(struct rg_run *run)
{
	uint64_t gpa = rg_frame(run, FRAME);
	struct fe_raw_desc one = desc(gpa, rg_bytes(run, FRAME), WRITE);
	struct fe_raw_desc two[2] = {desc(gpa, 100, NEXT), desc(gpa + 100, 100, WRITE)};

	if (rg_post(run, &one, 1) != 0)
		return -1;
	return rg_post(run, two, 2);
}

static int
post_pieces(struct rg_run *run, uint32_t n, uint32_t piece)
{
	uint32_t total = n * piece, at = 0;
	struct fe_raw_desc *d = calloc(n, sizeof(*d));
	uint64_t gpa = rg_frame(run, total - run->net->hdr_bytes);
	int rc = -1;

	for (uint32_t i = 0; d != NULL && gpa != 0 && i < n; i++, at += piece)
		d[i] = desc(gpa + at, piece, i + 1 < n ? NEXT : 0);
	if (d != NULL && gpa != 0)
		rc = rg_post(run, d, n);
	free(d);
	return rc;
}

static int
pieces_many(struct rg_run *run)
{
	return post_pieces(run, 1000, 40);
}

static int
pieces_all(struct rg_run *run)
{
	return post_pieces(run, run->ring->cfg.size, 40);
}

static int
empty_between(struct rg_run *run)
{
	uint64_t gpa = rg_frame(run, FRAME);
	struct fe_raw_desc d[5] = {desc(gpa, 12, NEXT), desc(gpa, 0, NEXT),
		desc(gpa + 12, 50, NEXT), desc(gpa, 0, NEXT),
		desc(gpa + 62, rg_bytes(run, FRAME) - 62, 0)};

	return rg_post(run, d, 5);
}

/* ---- R4: short frames ---- */

static int
short_frames(struct rg_run *run)
{
	static const uint32_t bytes[] = {0, 1, 4, 9, 10, 11, 12, 13, 25};
	uint64_t gpa = rg_alloc(run, 64);

	memset(fe_mem_ptr(&run->net->mem, gpa), 0, 64);
	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bytes); i++)
		if (rg_post(run, (struct fe_raw_desc[]){desc(gpa, bytes[i], 0)}, 1) != 0)
			return -1;
	return 0;
}

static int
short_in_pieces(struct rg_run *run)
{
	uint64_t gpa = rg_alloc(run, 64);
	struct fe_raw_desc d[3] = {
		desc(gpa, 12, NEXT), desc(gpa + 12, 6, NEXT), desc(gpa + 18, 7, 0)};

	memset(fe_mem_ptr(&run->net->mem, gpa), 0, 64);
	for (uint32_t n = 1; n <= 3; n++) {
		d[n - 1].flags = 0;
		if (rg_post(run, d, n) != 0)
			return -1;
		d[n - 1].flags = NEXT;
	}
	return 0;
}

/* Short ones and good ones in one batch: the good ones pass. */
static int
short_among_good(struct rg_run *run)
{
	uint64_t junk = rg_alloc(run, 64);

	memset(fe_mem_ptr(&run->net->mem, junk), 0, 64);
	for (uint32_t i = 0; i < 8; i++) {
		struct fe_raw_desc d = desc(junk, 3 * i, 0);

		if (i % 2 == 1)
			d = desc(rg_frame(run, FRAME), rg_bytes(run, FRAME), 0);
		if (rg_post(run, &d, 1) != 0)
			return -1;
	}
	return 0;
}

/* ---- R5: any layout of the header ---- */

static int
header_at(struct rg_run *run, uint32_t first, uint32_t second)
{
	uint64_t gpa = rg_frame(run, FRAME);
	uint32_t total = rg_bytes(run, FRAME);
	struct fe_raw_desc d[3] = {desc(gpa, first, NEXT), desc(gpa + first, second, NEXT),
		desc(gpa + first + second, total - first - second, 0)};

	return rg_post(run, d, 3);
}

static int
header_layouts(struct rg_run *run)
{
	uint32_t hdr = run->net->hdr_bytes;
	uint64_t gpa = rg_frame(run, FRAME);

	if (rg_post(run, (struct fe_raw_desc[]){desc(gpa, rg_bytes(run, FRAME), 0)}, 1) != 0 ||
		header_at(run, 5, hdr - 5) != 0 || header_at(run, hdr, 1) != 0 ||
		header_at(run, 1, 1) != 0 || header_at(run, hdr - 1, 2) != 0)
		return -1;
	return 0;
}

static int
header_bytewise(struct rg_run *run)
{
	uint64_t gpa = rg_frame(run, FRAME);
	struct fe_raw_desc d[31];

	for (uint32_t i = 0; i < 30; i++)
		d[i] = desc(gpa + i, 1, NEXT);
	d[30] = desc(gpa + 30, rg_bytes(run, FRAME) - 30, 0);
	return rg_post(run, d, 31);
}

/* ---- R6: a bad one in a batch ---- */

static int
bad_in_batch(struct rg_run *run)
{
	for (uint32_t i = 0; i < 8; i++) {
		struct fe_raw_desc d = desc(rg_hole(run), 100, 0);

		if (i != 2 && i != 7)
			d = desc(rg_frame(run, FRAME), rg_bytes(run, FRAME), 0);
		if (rg_post(run, &d, 1) != 0)
			return -1;
	}
	return 0;
}

static const int32_t jump_one_more = 1025, jump_257 = 257 + 1024, jump_2000 = 2000, jump_back = -1,
		     jump_half = 32768;

#define ROW(name_, what_, layouts_, fill_, expect_)                                                \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_TX, .layouts = layouts_, .fill = fill_,  \
		.expect = expect_                                                                  \
	}
#define JUMP(name_, what_, by_)                                                                    \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_TX, .layouts = RG_SPLIT, .fill = jump,   \
		.expect = RG_BROKEN, .arg = &(by_)                                                 \
	}
#define TROW(name_, what_, layouts_, fill_, expect_)                                               \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_TX, .layouts = layouts_, .fill = fill_,  \
		.expect = expect_, .need = WITH_TABLES                                             \
	}

const struct rg_case rg_tx_cases[] = {
	ROW("R1-tx-loop-self", "descriptor whose next is itself",
		RG_SPLIT_DIRECT | RG_SPLIT_INDIRECT, loop_self, RG_DROP),
	ROW("R1-tx-loop-three", "three descriptors in a circle",
		RG_SPLIT_DIRECT | RG_SPLIT_INDIRECT, loop_three, RG_DROP),
	ROW("R1-tx-loop-empty", "circle of descriptors of length 0",
		RG_SPLIT_DIRECT | RG_SPLIT_INDIRECT, loop_empty, RG_DROP),
	ROW("R1-tx-next-outside", "next index not below the ring size",
		RG_SPLIT_DIRECT | RG_SPLIT_INDIRECT, next_outside, RG_DROP),
	ROW("R1-tx-table-next", "next index behind the table", RG_SPLIT_INDIRECT,
		table_next_outside, RG_DROP),
	ROW("R1-tx-head-size", "head equal to the ring size", RG_SPLIT, head_size, RG_BROKEN),
	ROW("R1-tx-head-max", "head 0xffff", RG_SPLIT, head_max, RG_BROKEN),
	ROW("R1-tx-address", "addresses outside of guest memory", RG_EVERY, bad_addresses, RG_DROP),
	ROW("R1-tx-address-behind", "bad address behind a good header", RG_EVERY,
		bad_address_behind, RG_DROP),
	ROW("R1-tx-lengths-wrap", "lengths that sum to more than 2^32", RG_EVERY, lengths_wrap,
		RG_DROP),
	ROW("R1-tx-lengths-large", "lengths that sum to a hundred MiB", RG_EVERY, lengths_large,
		RG_DROP),
	ROW("R1-tx-too-long", "a frame of 200,000 bytes", RG_EVERY, too_long, RG_RETURN),
	ROW("R1-tx-writable", "device-writable descriptors", RG_EVERY, writable, RG_DROP),
	ROW("R1-tx-pieces-1000", "a frame in 1,000 pieces", RG_EVERY, pieces_many, RG_PASS),
	ROW("R1-tx-pieces-all", "a chain that fills the ring", RG_EVERY, pieces_all, RG_RETURN),
	ROW("R1-tx-empty-between", "descriptors of length 0 between others", RG_EVERY,
		empty_between, RG_PASS),
	JUMP("R2-tx-jump-size+1", "available index ring size + 1 ahead", jump_one_more),
	JUMP("R2-tx-jump+257", "available index ring size + 257 ahead", jump_257),
	JUMP("R2-tx-jump+2000", "available index 2,000 ahead", jump_2000),
	JUMP("R2-tx-jump-1", "available index one back", jump_back),
	JUMP("R2-tx-jump-half", "available index 32,768 ahead", jump_half),
	ROW("R3-tx-past-end", "buffers that run past guest memory", RG_EVERY, past_end, RG_DROP),
	ROW("R3-tx-across", "a buffer across two regions", RG_EVERY, across, RG_PASS),
	ROW("R4-tx-short", "header and less than 14 bytes, or less", RG_EVERY, short_frames,
		RG_DROP),
	ROW("R4-tx-short-pieces", "the same in pieces", RG_EVERY, short_in_pieces, RG_DROP),
	ROW("R4-tx-short-mixed", "short ones among good ones", RG_EVERY, short_among_good, RG_PASS),
	ROW("R5-tx-header", "header split, alone, joined", RG_EVERY, header_layouts, RG_PASS),
	ROW("R5-tx-header-bytes", "header and start in descriptors of one byte", RG_EVERY,
		header_bytewise, RG_PASS),
	ROW("R6-tx-batch", "a bad address in slot 3 of a batch", RG_EVERY, bad_in_batch, RG_PASS),
	{.name = NULL},
};
