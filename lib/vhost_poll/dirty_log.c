/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <rte_common.h>

#include "dirty_log.h"

#define PAGE_BYTES 4096

int
vhp_dirty_log_map(struct vhp_dirty_log *log, int fd, uint64_t size_bytes, uint64_t offset)
{
	uint64_t map_bytes;
	struct stat st;
	void *map;

	vhp_dirty_log_unmap(log);
	if (fstat(fd, &st) < 0)
		return -errno;
	/*
	 * From the start of the file: the offset need not be a page's. Huge pages are unmapped
	 * as a whole or not at all.
	 */
	map_bytes = RTE_ALIGN_MUL_CEIL(size_bytes + offset, (uint64_t)st.st_blksize);
	map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*log = (struct vhp_dirty_log){
		.map = map,
		.map_bytes = map_bytes,
		.bits = (uint8_t *)map + offset,
		.size_bytes = size_bytes,
	};
	return 0;
}

void
vhp_dirty_log_unmap(struct vhp_dirty_log *log)
{
	if (log->map != NULL)
		munmap(log->map, log->map_bytes);
	*log = (struct vhp_dirty_log){0};
}

static void
mark(const struct vhp_dirty_log *log, uint64_t gpa, uint64_t len_bytes)
{
	uint64_t last = (gpa + len_bytes - 1) / PAGE_BYTES;

	for (uint64_t page = gpa / PAGE_BYTES; page <= last && page / 8 < log->size_bytes; page++)
		__atomic_fetch_or(&log->bits[page / 8], 1U << page % 8, __ATOMIC_RELEASE);
}

void
vhp_dirty_log_write(const struct vhp_dirty_log *log, const struct vhp_mem *mem, const void *hva,
	uint64_t len_bytes)
{
	if (len_bytes == 0)
		return;
	/* What is written lies in one region: pieces and ring areas do. */
	for (uint32_t i = 0; i < mem->n_regions; i++) {
		const struct vhp_mem_region *r = &mem->regions[i];
		uint64_t offset = (uintptr_t)hva - (uintptr_t)r->hva;

		if (offset < r->size_bytes) {
			mark(log, r->gpa + offset, len_bytes);
			return;
		}
	}
}

void
vhp_dirty_log_write_iov(const struct vhp_dirty_log *log, const struct vhp_mem *mem,
	const struct iovec *iov, uint32_t n_iov, uint64_t len_bytes)
{
	for (uint32_t i = 0; i < n_iov && len_bytes > 0; i++) {
		uint64_t len = RTE_MIN(len_bytes, iov[i].iov_len);

		vhp_dirty_log_write(log, mem, iov[i].iov_base, len);
		len_bytes -= len;
	}
}
