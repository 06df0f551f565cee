/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guest memory: the table of regions that a front end shared, and the checked way
 * from guest-physical addresses to iovecs.
 */
#ifndef VHP_MEM_H
#define VHP_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "vhp_iov.h"

/** Most regions of one device (vhost-user specification, "Memory regions"). */
#define VHP_MEM_MAX_REGIONS 8

struct vhp_mem_region {
	uint64_t gpa;
	uint64_t size_bytes;
	uint8_t *hva;
};

/**
 * Regions sorted by address, without overlap. Main thread: rw while no poller has the
 * device; poller: ro.
 */
struct vhp_mem {
	uint32_t n_regions;
	struct vhp_mem_region regions[VHP_MEM_MAX_REGIONS];
};

/**
 * Map part of [gpa, gpa + *len_bytes).
 * @param hint       (in/out) region that the last call used; tried first
 * @param len_bytes  (in/out) cut at the end of the region
 * @return host address, NULL if gpa is not guest memory
 */
static inline void *
vhp_mem_map(const struct vhp_mem *mem, uint32_t *hint, uint64_t gpa, uint64_t *len_bytes)
{
	uint32_t i = *hint;

	for (uint32_t tries = 0; tries <= mem->n_regions; tries++, i = tries - 1) {
		if (i >= mem->n_regions)
			continue;
		const struct vhp_mem_region *r = &mem->regions[i];
		/* One unsigned comparison covers "below" and "above". */
		uint64_t offset = gpa - r->gpa;

		if (offset < r->size_bytes) {
			*hint = i;
			if (*len_bytes > r->size_bytes - offset)
				*len_bytes = r->size_bytes - offset;
			return r->hva + offset;
		}
	}
	return NULL;
}

/**
 * Append the pieces of [gpa, gpa + len_bytes), more than one where the range crosses
 * from one region into the next.
 * @return pieces written, 0 if a byte of the range is not guest memory, or
 *         UINT32_MAX if they are more than room
 */
uint32_t vhp_mem_to_iov(const struct vhp_mem *mem, uint32_t *hint, uint64_t gpa, uint32_t len_bytes,
	struct iovec *iov, uint32_t room);

#endif /* VHP_MEM_H */
