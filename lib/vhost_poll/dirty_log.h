/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dirty log of live migration: a bitmap that the front end shares, a bit for each page
 * of 4 KiB of guest memory that the device has written (vhost-user specification,
 * "Migration"). The front end clears bits while we set others.
 */
#ifndef VHP_DIRTY_LOG_H
#define VHP_DIRTY_LOG_H

#include <stdbool.h>

#include "mem.h"

/** Main thread: rw while no poller has the device; poller: ro. */
struct vhp_dirty_log {
	uint8_t *map; /**< NULL: no log */
	uint64_t map_bytes;
	uint8_t *bits; /**< inside of map */
	uint64_t size_bytes;
};

/**
 * Map the log that a front end hands over; replaces the one before. Main thread.
 * @param fd  stays the caller's
 * @return 0 or -errno; there is no log then
 */
int vhp_dirty_log_map(struct vhp_dirty_log *log, int fd, uint64_t size_bytes, uint64_t offset);

/** No log any more. Main thread. */
void vhp_dirty_log_unmap(struct vhp_dirty_log *log);

/** len_bytes at a host address were written; pages that the log does not cover are left out. */
void vhp_dirty_log_write(const struct vhp_dirty_log *log, const struct vhp_mem *mem,
	const void *hva, uint64_t len_bytes);

/** The first len_bytes of the pieces were written. */
void vhp_dirty_log_write_iov(const struct vhp_dirty_log *log, const struct vhp_mem *mem,
	const struct iovec *iov, uint32_t n_iov, uint64_t len_bytes);

#endif /* VHP_DIRTY_LOG_H */
