/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-rings: how rows fill a ring; see rings.h. */
#include "rings.h"

#include <errno.h>
#include <string.h>

uint64_t
rg_alloc(struct rg_run *run, uint64_t bytes)
{
	uint64_t gpa = fe_mem_alloc(&run->net->mem, bytes, 16, FE_ALLOC_ONE_REGION);

	if (gpa == 0)
		fe_fault(&run->fault, "test: no guest memory for %llu bytes",
			(unsigned long long)bytes);
	return gpa;
}

uint32_t
rg_bytes(const struct rg_run *run, uint32_t frame_len)
{
	return run->net->hdr_bytes + frame_len;
}

uint64_t
rg_frame_of(struct rg_run *run, const struct fe_spec *spec)
{
	struct rg_chain *c = &run->chain[run->n_chains];
	uint64_t gpa = rg_alloc(run, rg_bytes(run, spec->len) + 64);
	struct virtio_net_hdr_v1 hdr;
	uint8_t *p;

	if (gpa == 0)
		return 0;
	c->spec = *spec;
	c->spec.seq = run->seq++;
	c->has_frame = true;
	p = fe_mem_ptr(&run->net->mem, gpa);
	fe_frame_build(&run->to_host, &c->spec, p + run->net->hdr_bytes, &hdr);
	memcpy(p, &hdr, run->net->hdr_bytes);
	return gpa;
}

uint64_t
rg_frame(struct rg_run *run, uint32_t len)
{
	struct fe_spec s = {.kind = FE_RAW, .len = len};

	return rg_frame_of(run, &s);
}

uint64_t
rg_hole(const struct rg_run *run)
{
	return fe_mem_end(&run->net->mem, run->net->mem.n - 1) + 0x10000;
}

/* For RG_PASS on the receiveq: where to look for the bytes. */
static void
remember_segments(struct rg_chain *c, const struct fe_raw_desc *d, uint32_t n)
{
	c->nseg = 0;
	for (uint32_t i = 0; i < n && c->nseg < FE_SEGS_MAX; i++)
		if (d[i].len > 0 && (d[i].flags & VRING_DESC_F_INDIRECT) == 0)
			c->seg[c->nseg++] = (struct fe_seg){.gpa = d[i].addr, .len = d[i].len};
}

int
rg_post_plain(struct rg_run *run, const struct fe_raw_desc *d, uint32_t n)
{
	if (run->fault.text[0] != '\0')
		return -EPROTO;
	if (run->n_chains == RG_CHAINS_MAX ||
		fe_ring_add_raw(run->ring, d, n, RG_TOKEN + run->n_chains) < 0)
		return fe_fault(&run->fault, "test: ring too small for the row");
	if (run->chain[run->n_chains].nseg == 0)
		remember_segments(&run->chain[run->n_chains], d, n);
	run->n_chains++;
	return 0;
}

static void
fill_table(struct rg_run *run, uint64_t gpa, const struct fe_raw_desc *d, uint32_t n)
{
	struct vring_packed_desc *p = fe_mem_ptr(&run->net->mem, gpa);
	struct vring_desc *s = fe_mem_ptr(&run->net->mem, gpa);

	for (uint32_t i = 0; i < n; i++) {
		if (run->packed) {
			/* There is no next in a packed table; the order says it all. */
			p[i] = (struct vring_packed_desc){.addr = d[i].addr,
				.len = d[i].len,
				.flags = d[i].flags & (uint16_t)~VRING_DESC_F_NEXT};
			continue;
		}
		s[i] = (struct vring_desc){.addr = d[i].addr, .len = d[i].len, .flags = d[i].flags};
		s[i].next = (uint16_t)(d[i].next >= 0 ? (uint32_t)d[i].next : i + 1);
		if (d[i].next <= FE_NEXT_ELEM(0))
			s[i].next = (uint16_t)(FE_NEXT_ELEM(0) - d[i].next);
	}
}

int
rg_post(struct rg_run *run, const struct fe_raw_desc *d, uint32_t n)
{
	struct fe_raw_desc table = {.flags = VRING_DESC_F_INDIRECT, .next = 0};

	if (!run->indirect)
		return rg_post_plain(run, d, n);
	if (run->n_chains == RG_CHAINS_MAX)
		return fe_fault(&run->fault, "test: too many chains");
	table.addr = rg_alloc(run, n * sizeof(struct vring_desc));
	table.len = n * (uint32_t)sizeof(struct vring_desc);
	if (table.addr == 0)
		return -EPROTO;
	fill_table(run, table.addr, d, n);
	remember_segments(&run->chain[run->n_chains], d, n);
	return rg_post_plain(run, &table, 1);
}
