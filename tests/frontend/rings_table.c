/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-rings: indirect tables in the transmitq (cases R1, R3); see rings.h. */
#include "rings.h"

#include <string.h>

#define NEXT     VRING_DESC_F_NEXT
#define WRITE    VRING_DESC_F_WRITE
#define INDIRECT VRING_DESC_F_INDIRECT

#define DESC_BYTES ((uint32_t)sizeof(struct vring_desc))
#define FRAME      300U

/* A descriptor with the usual next. */
static struct fe_raw_desc
desc(uint64_t addr, uint32_t len, uint16_t flags)
{
	return (struct fe_raw_desc){.addr = addr, .len = len, .flags = flags, .next = FE_NEXT_AUTO};
}

/* A frame in len bytes from a table of which table_bytes are announced. */
static int
post_table(struct rg_run *run, uint32_t table_bytes, uint16_t flags)
{
	uint64_t table = rg_alloc(run, 4 * DESC_BYTES), gpa = rg_frame(run, FRAME);
	struct vring_desc *t = fe_mem_ptr(&run->net->mem, table);

	if (table == 0 || gpa == 0)
		return -1;
	memset(t, 0, 4 * DESC_BYTES);
	t[0].addr = gpa;
	t[0].len = rg_bytes(run, FRAME);
	return rg_post_plain(
		run, (struct fe_raw_desc[]){desc(table, table_bytes, INDIRECT | flags)}, 1);
}

static int
table_sizes(struct rg_run *run)
{
	static const uint32_t bytes[] = {0, 1, 8, 15, 17, 24, 33};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bytes); i++)
		if (post_table(run, bytes[i], 0) != 0)
			return -1;
	return 0;
}

static int
table_huge(struct rg_run *run)
{
	static const uint32_t bytes[] = {0xfffffff0U, 0x80000000U, 0x10000000U};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bytes); i++)
		if (post_table(run, bytes[i], 0) != 0)
			return -1;
	return 0;
}

/* Longer than any ring, but the chain ends with its first entry (in split rings). */
static int
table_long(struct rg_run *run)
{
	return post_table(run, 65536 * DESC_BYTES, 0) != 0 ? -1
							   : post_table(run, 65537 * DESC_BYTES, 0);
}

static int
table_outside(struct rg_run *run)
{
	uint64_t last = fe_mem_end(&run->net->mem, run->net->mem.n - 1);
	const struct fe_raw_desc bad[] = {
		desc(0, DESC_BYTES, INDIRECT),
		desc(rg_hole(run), 2 * DESC_BYTES, INDIRECT),
		desc(last - DESC_BYTES, 2 * DESC_BYTES, INDIRECT),
		desc(UINT64_MAX - 15, DESC_BYTES, INDIRECT),
	};

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(bad); i++)
		if (rg_post_plain(run, &bad[i], 1) != 0)
			return -1;
	return 0;
}

/* The table's entry is a table itself. */
static int
table_nested(struct rg_run *run)
{
	uint64_t inner = rg_alloc(run, DESC_BYTES), outer = rg_alloc(run, DESC_BYTES);
	struct vring_desc *t = fe_mem_ptr(&run->net->mem, inner);

	t->addr = rg_frame(run, FRAME);
	t->len = rg_bytes(run, FRAME);
	t->flags = 0;
	t = fe_mem_ptr(&run->net->mem, outer);
	/* Both layouts have address and length in the same place. */
	*t = (struct vring_desc){.addr = inner, .len = DESC_BYTES};
	if (run->packed)
		((struct vring_packed_desc *)t)->flags = INDIRECT;
	else
		t->flags = INDIRECT;
	return rg_post_plain(run, (struct fe_raw_desc[]){desc(outer, DESC_BYTES, INDIRECT)}, 1);
}

/* A table that is its own entry. */
static int
table_of_itself(struct rg_run *run)
{
	uint64_t table = rg_alloc(run, DESC_BYTES);
	struct vring_desc *t = fe_mem_ptr(&run->net->mem, table);

	*t = (struct vring_desc){.addr = table, .len = DESC_BYTES, .flags = INDIRECT};
	if (run->packed)
		((struct vring_packed_desc *)t)->flags = INDIRECT;
	return rg_post_plain(run, (struct fe_raw_desc[]){desc(table, DESC_BYTES, INDIRECT)}, 1);
}

static int
table_and_next(struct rg_run *run)
{
	uint64_t table = rg_alloc(run, DESC_BYTES), gpa = rg_frame(run, FRAME);
	struct vring_desc *t = fe_mem_ptr(&run->net->mem, table);
	struct fe_raw_desc d[2] = {desc(table, DESC_BYTES, INDIRECT | NEXT), desc(gpa, 100, 0)};

	*t = (struct vring_desc){.addr = gpa, .len = rg_bytes(run, FRAME)};
	return rg_post_plain(run, d, 2);
}

static int
table_not_accepted(struct rg_run *run)
{
	return post_table(run, DESC_BYTES, 0);
}

/* The device has to ignore WRITE beside INDIRECT (virtio 1.2, 2.7.5.3.2). */
static int
table_write_flag(struct rg_run *run)
{
	return post_table(run, DESC_BYTES, WRITE);
}

static int
table_across(struct rg_run *run)
{
	uint64_t gpa = rg_frame(run, FRAME);
	uint64_t table = fe_mem_alloc_across(&run->net->mem, 4 * DESC_BYTES, 24);
	uint32_t total = rg_bytes(run, FRAME);

	if (gpa == 0 || table == 0)
		return fe_fault(&run->fault, "test: no border to cross");
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t at = table + i * DESC_BYTES;
		uint32_t len = i < 3 ? 10 : total - 30;

		if (run->packed)
			*(struct vring_packed_desc *)fe_mem_ptr(&run->net->mem, at) =
				(struct vring_packed_desc){.addr = gpa + 10 * i, .len = len};
		else
			*(struct vring_desc *)fe_mem_ptr(&run->net->mem, at) =
				(struct vring_desc){.addr = gpa + 10 * i,
					.len = len,
					.flags = i < 3 ? NEXT : 0,
					.next = (uint16_t)(i + 1)};
	}
	return rg_post_plain(run, (struct fe_raw_desc[]){desc(table, 4 * DESC_BYTES, INDIRECT)}, 1);
}

/* Direct descriptors, then one that refers to a table (virtio 1.2, 2.7.5.3.2). */
static int
table_behind(struct rg_run *run)
{
	uint64_t table = rg_alloc(run, DESC_BYTES), gpa = rg_frame(run, FRAME);
	struct vring_desc *t = fe_mem_ptr(&run->net->mem, table);
	struct fe_raw_desc d[3] = {
		desc(gpa, 5, NEXT), desc(gpa + 5, 30, NEXT), desc(table, DESC_BYTES, INDIRECT)};

	if (table == 0 || gpa == 0)
		return -1;
	*t = (struct vring_desc){.addr = gpa + 35, .len = rg_bytes(run, FRAME) - 35};
	return rg_post_plain(run, d, 3);
}

#define WITH_TABLES FE_BIT(VIRTIO_RING_F_INDIRECT_DESC)
#define ROW(name_, what_, layouts_, fill_, expect_)                                                \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_TX, .layouts = layouts_, .fill = fill_,  \
		.expect = expect_, .need = WITH_TABLES                                             \
	}

const struct rg_case rg_table_cases[] = {
	ROW("R1-tx-table-size", "tables of 0, 1, 8, 15, 17, 24, 33 bytes", RG_PLAIN, table_sizes,
		RG_DROP),
	ROW("R1-tx-table-huge", "tables of 256 MiB to 4 GiB", RG_PLAIN, table_huge, RG_DROP),
	ROW("R1-tx-table-long", "tables of 65,536 and 65,537 entries", RG_PLAIN, table_long,
		RG_RETURN),
	ROW("R1-tx-table-outside", "tables outside of guest memory", RG_PLAIN, table_outside,
		RG_DROP),
	ROW("R1-tx-table-nested", "a table in a table", RG_PLAIN, table_nested, RG_DROP),
	ROW("R1-tx-table-itself", "a table that is its own entry", RG_PLAIN, table_of_itself,
		RG_DROP),
	ROW("R1-tx-table-next-flag", "INDIRECT and NEXT in one descriptor", RG_PLAIN,
		table_and_next, RG_DROP),
	ROW("R1-tx-table-write", "WRITE beside INDIRECT is ignored", RG_SPLIT, table_write_flag,
		RG_PASS),
	ROW("R1-tx-table-behind", "direct descriptors, then a table", RG_SPLIT, table_behind,
		RG_PASS),
	ROW("R3-tx-table-across", "a table across two regions", RG_PLAIN, table_across, RG_PASS),
	{.name = "R1-tx-table-refused",
		.what = "a table although the feature was not accepted",
		.queue = RG_TX,
		.layouts = RG_PLAIN,
		.fill = table_not_accepted,
		.expect = RG_DROP,
		.without = WITH_TABLES},
	{.name = NULL},
};
