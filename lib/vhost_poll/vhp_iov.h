/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying to and from frames in pieces; for ports, too. */
#ifndef VHP_IOV_H
#define VHP_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/** Copy len_bytes to offset of the pieces; returns bytes copied (fewer at their end). */
size_t vhp_iov_write(
	const struct iovec *iov, uint32_t n_iov, size_t offset, const void *src, size_t len_bytes);

/** Copy len_bytes from offset of the pieces; returns bytes copied (fewer at their end). */
size_t vhp_iov_read(
	const struct iovec *iov, uint32_t n_iov, size_t offset, void *dst, size_t len_bytes);

/**
 * Copy len_bytes from offset from_at of one frame's pieces to offset to_at of another's, which
 * are other memory. Returns bytes copied (fewer at the end of either).
 */
size_t vhp_iov_copy(const struct iovec *to, uint32_t n_to, size_t to_at, const struct iovec *from,
	uint32_t n_from, size_t from_at, size_t len_bytes);

#endif /* VHP_IOV_H */
