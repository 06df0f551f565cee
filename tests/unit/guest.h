/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A guest for tests of the library's inner parts: memory of a few malloc'ed regions, and
 * nothing of the library in between; ring.h has its rings. guest_byte() is the model of
 * address translation that the library is compared with.
 */
#ifndef TEST_GUEST_H
#define TEST_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "mem.h"

/** Memory of the usual guest: two regions that touch, a hole, and one far above 4 GiB. */
#define GUEST_LOW_GPA     0x10000ULL
#define GUEST_LOW_BYTES   0x30000ULL
#define GUEST_NEXT_GPA    (GUEST_LOW_GPA + GUEST_LOW_BYTES)
#define GUEST_NEXT_BYTES  0x100000ULL
#define GUEST_NEXT_END    (GUEST_NEXT_GPA + GUEST_NEXT_BYTES)
#define GUEST_HIGH_GPA    0x100000000ULL
#define GUEST_HIGH_BYTES  0x20000ULL
/** Not memory, whatever the size. */
#define GUEST_NOWHERE_GPA 0x80000000ULL

struct guest {
	struct vhp_mem mem;
	uint8_t *copy[VHP_MEM_MAX_REGIONS]; /**< of the regions, at the last snapshot */
};

/** A guest with these regions; hva is ignored. Each is its own allocation. */
void guest_init_regions(struct guest *g, const struct vhp_mem_region *regions, uint32_t n);

/** The usual guest. */
void guest_init(struct guest *g);
void guest_fini(struct guest *g);

/** Where a byte lies, NULL if it is not memory. */
uint8_t *guest_byte(const struct guest *g, uint64_t gpa);

/** Is all of [gpa, gpa + len_bytes) memory? */
bool guest_has(const struct guest *g, uint64_t gpa, uint64_t len_bytes);

/** All of it must be memory; it may cross regions. */
void guest_write(struct guest *g, uint64_t gpa, const void *src, size_t len_bytes);
void guest_fill(struct guest *g, uint64_t gpa, uint8_t byte, size_t len_bytes);
void guest_read(const struct guest *g, uint64_t gpa, void *dst, size_t len_bytes);

/** Remember all memory; expect changes of it; compare it: nothing else may have changed. */
void guest_snapshot(struct guest *g);
void guest_expect(struct guest *g, uint64_t gpa, const void *src, size_t len_bytes);
void guest_check_memory(const struct guest *g);

/** A small generator of numbers, the same on every run. */
uint32_t prng(uint64_t *state);
uint32_t prng_range(uint64_t *state, uint32_t least, uint32_t most);

#endif /* TEST_GUEST_H */
