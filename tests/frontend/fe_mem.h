/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layer 2 of the test front end: guest memory.
 *
 * Guest-physical memory is a set of regions, each a memfd of its own. The front
 * end maps all of them into one reservation of address space at the same distances
 * as they have in guest-physical space, so that a buffer which crosses from a region
 * into the one right behind it is contiguous here; the user addresses *announced* to
 * the back end are deliberately unrelated to that and to each other, and so are
 * the offsets into the memfds. A back end that confuses the three is found out.
 *
 * One thread sets memory up; after that any thread may translate addresses.
 */
#ifndef FE_MEM_H
#define FE_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include "fe_req.h"

/** How regions lie in guest-physical space. */
enum fe_mem_layout {
	FE_MEM_GAPS,     /**< a hole behind every region */
	FE_MEM_ADJACENT, /**< one behind the other, so that buffers may cross */
};

struct fe_region {
	struct fe_region_msg msg; /**< as announced in SET_MEM_TABLE */
	uint8_t *ptr;             /**< where the front end sees it */
	int fd;                   /**< memfd, -1 once the region is removed */
};

/** A run of guest-physical addresses without a hole, with its bump allocator. */
struct fe_area {
	uint64_t gpa;
	uint64_t bytes;
	uint64_t used_bytes;
};

struct fe_mem {
	uint8_t *base;      /**< reservation; guest-physical gpa is at base + (gpa - first_gpa) */
	uint64_t first_gpa; /**< lowest address */
	uint64_t span_bytes;
	uint32_t n;
	uint32_t n_areas;
	uint32_t next_area;
	struct fe_region r[FE_REGIONS_MAX];
	struct fe_area area[FE_REGIONS_MAX];
};

#define FE_ALLOC_ONE_REGION 0x1U /**< never across a border between regions */

/**
 * Make @p n regions (1..FE_REGIONS_MAX) of @p region_bytes (a multiple of 4096) each.
 * @return 0 or -errno; undo with fe_mem_free().
 */
int fe_mem_init(struct fe_mem *m, uint32_t n, uint64_t region_bytes, enum fe_mem_layout layout);

/** Unmap and close everything; harmless when nothing is there. */
void fe_mem_free(struct fe_mem *m);

/** Tell the back end about all present regions (SET_MEM_TABLE). @return as fe_set(). */
int fe_mem_announce(const struct fe_mem *m, struct fe_conn *c);

/**
 * Allocate guest memory, from the areas in turn; there is no freeing of single pieces.
 * @param align power of two
 * @param flags FE_ALLOC_ONE_REGION or 0
 * @return guest-physical address, 0 when no area has room.
 */
uint64_t fe_mem_alloc(struct fe_mem *m, uint64_t bytes, uint64_t align, uint32_t flags);

/**
 * Allocate @p bytes of which @p before lie at the end of a region and the rest in the one
 * right behind it (FE_MEM_ADJACENT). Memory in front of it is given up.
 * @return 0 if there is no border left to cross.
 */
uint64_t fe_mem_alloc_across(struct fe_mem *m, uint64_t bytes, uint64_t before);

/** First address behind region @p index: a hole, or the next region. */
uint64_t fe_mem_end(const struct fe_mem *m, uint32_t index);

/** Pointer to guest-physical @p gpa, which must lie in a region. */
static inline void *
fe_mem_ptr(const struct fe_mem *m, uint64_t gpa)
{
	return m->base + (gpa - m->first_gpa);
}

/** Announced user address of @p gpa, 0 if no region holds it. */
uint64_t fe_mem_uva(const struct fe_mem *m, uint64_t gpa);

/**
 * Add a region behind all others (memory hot-plug); announce it afterwards.
 * @return its index or -errno (-ENOSPC: no slot or reservation left).
 */
int fe_mem_add(struct fe_mem *m, uint64_t bytes, enum fe_mem_layout layout);

/** Take region @p index out of what is announced; the front end still maps it. */
void fe_mem_remove(struct fe_mem *m, uint32_t index);

#endif
