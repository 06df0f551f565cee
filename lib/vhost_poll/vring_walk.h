/* SPDX-License-Identifier: BSD-3-Clause */
/* Following a chain of descriptors: what split and packed layout have in common. */
#ifndef VHP_VRING_WALK_H
#define VHP_VRING_WALK_H

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_prefetch.h>

#include "vring.h"

/** Both layouts' descriptors have this size. */
#define VHP_DESC_BYTES 16

static_assert(sizeof(struct vring_desc) == VHP_DESC_BYTES, "as the standard says");
static_assert(sizeof(struct vring_packed_desc) == VHP_DESC_BYTES, "as the standard says");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rings are read as little endian");

/**
 * Copy entry i of an indirect table. The table need not be contiguous in host memory, nor
 * aligned (virtio 1.2, 2.7.5.3), so it is mapped entry by entry.
 */
static inline bool
vhp_read_indirect(struct vhp_vring *vr, uint64_t table, uint32_t i, void *desc)
{
	uint64_t gpa = table + (uint64_t)i * VHP_DESC_BYTES;
	size_t done = 0;

	while (done < VHP_DESC_BYTES) {
		uint64_t len = VHP_DESC_BYTES - done;
		const void *src = vhp_mem_map(vr->mem, &vr->mem_hint, gpa + done, &len);

		if (unlikely(src == NULL))
			return false;
		__builtin_memcpy((uint8_t *)desc + done, src, len);
		done += len;
	}
	/* The copy above is what is checked and used from here on. */
	rte_compiler_barrier();
	return true;
}

/** Its first entries will be read soon. */
static inline void
vhp_prefetch_table(struct vhp_vring *vr, uint64_t table)
{
	uint64_t len = 2 * RTE_CACHE_LINE_SIZE;
	const uint8_t *at = vhp_mem_map(vr->mem, &vr->mem_hint, table, &len);

	if (unlikely(at == NULL || len < 2 * RTE_CACHE_LINE_SIZE))
		return;
	rte_prefetch0(at);
	rte_prefetch0(at + RTE_CACHE_LINE_SIZE);
}

/** Entries of an indirect table of so many bytes; 0: not a table. */
static inline uint32_t
vhp_indirect_entries(const struct vhp_vring *vr, uint32_t len_bytes, uint16_t flags)
{
	uint32_t entries = len_bytes / VHP_DESC_BYTES;

	if (unlikely(!vr->indirect || len_bytes % VHP_DESC_BYTES != 0 ||
		     entries > UINT16_MAX + 1U || (flags & VRING_DESC_F_NEXT)))
		return 0;
	return entries;
}

/** Add one descriptor's buffer to the frame. */
static inline enum vhp_drop
vhp_add_buffer(struct vhp_vring *vr, struct vhp_frame *f, uint64_t addr, uint32_t len,
	uint16_t flags, uint32_t room)
{
	bool other_way = !!(flags & VRING_DESC_F_WRITE) != vr->device_writes;

	vr->steps++;
	if (unlikely(other_way)) {
		if (!vr->mixed)
			return VHP_DROP_CHAIN_DIRECTION;
		if (f->n_write == 0)
			f->n_read = f->n_iov;
	}
	if (unlikely(len == 0))
		return VHP_OK;
	if (unlikely(len > UINT32_MAX - f->len_bytes))
		return VHP_DROP_CHAIN_LENGTH;

	uint32_t n = vhp_mem_to_iov(
		vr->mem, &vr->mem_hint, addr, len, f->iov + f->n_iov, room - f->n_iov);
	if (unlikely(n == 0))
		return VHP_DROP_CHAIN_ADDRESS;
	if (unlikely(n == UINT32_MAX))
		return VHP_DROP_CHAIN_SEGMENTS;
	f->n_iov += n;
	if (unlikely(other_way))
		f->n_write += n;
	f->len_bytes += len;
	return VHP_OK;
}

/**
 * A walk that failed for want of room in the burst's pool is the pool's fault, not the
 * guest's: the chain is taken with the next burst.
 */
static inline bool
vhp_pool_was_short(enum vhp_drop drop, uint32_t most)
{
	return drop == VHP_DROP_CHAIN_SEGMENTS && most < VHP_MAX_IOV;
}

#endif /* VHP_VRING_WALK_H */
