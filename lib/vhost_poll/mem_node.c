/* SPDX-License-Identifier: BSD-3-Clause */
/* See mem_node.h. */
#include <numa.h>
#include <numaif.h>
#include <unistd.h>

#include "mem_node.h"

/* Pages asked for, over all regions. */
#define SAMPLE_PAGES 256

/* Spread evenly over each region. Returns how many. */
static unsigned long
choose_pages(const struct vhp_mem *mem, void **pages)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long n = 0;

	for (uint32_t i = 0; i < mem->n_regions; i++) {
		const struct vhp_mem_region *r = &mem->regions[i];
		uint64_t share = SAMPLE_PAGES / mem->n_regions;
		uint64_t step = r->size_bytes / share / page_bytes * page_bytes;

		if (step == 0)
			step = page_bytes;
		for (uint64_t k = 0; k < share && k * step < r->size_bytes; k++) {
			uintptr_t at = (uintptr_t)r->hva + k * step;

			pages[n++] = (void *)(at & ~(uintptr_t)(page_bytes - 1));
		}
	}
	return n;
}

int
vhp_numa_node(const struct vhp_mem *mem, int vhost_node)
{
	unsigned int count[64] = {0};
	void *pages[SAMPLE_PAGES];
	int status[SAMPLE_PAGES];
	unsigned long n;
	int best = 0;

	if (numa_available() < 0 || numa_max_node() == 0)
		return -1;
	n = choose_pages(mem, pages);
	if (n == 0 || numa_move_pages(0, n, pages, NULL, status, 0) < 0)
		return vhost_node;
	for (unsigned long i = 0; i < n; i++)
		if (status[i] >= 0 && status[i] < 64)
			count[status[i]]++;
	for (int node = 1; node < 64; node++)
		if (count[node] > count[best])
			best = node;
	return count[best] > 0 ? best : vhost_node;
}

void
vhp_numa_place(const void *start, size_t len_bytes, int node)
{
	const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)start & ~(page_bytes - 1);
	uintptr_t end = (uintptr_t)start + len_bytes;
	void *pages[SAMPLE_PAGES];
	int nodes[SAMPLE_PAGES], status[SAMPLE_PAGES];

	while (node >= 0 && start != NULL && at < end) {
		unsigned long n = 0;

		for (; n < SAMPLE_PAGES && at < end; n++, at += page_bytes) {
			pages[n] = (void *)at;
			nodes[n] = node;
		}
		/* Where it stays otherwise it is slower, and works. */
		if (numa_move_pages(0, n, pages, nodes, status, MPOL_MF_MOVE) < 0)
			return;
	}
}
