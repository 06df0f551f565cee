/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>

#include <rte_common.h>

#include "vhp_iov.h"

/* Walk the pieces from offset; copy(piece address, position in the flat buffer, length). */
static inline size_t
iov_copy(const struct iovec *iov, uint32_t n_iov, size_t offset, uint8_t *flat, size_t len_bytes,
	bool to_iov)
{
	size_t done = 0;

	for (uint32_t i = 0; i < n_iov && done < len_bytes; i++) {
		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		size_t len = RTE_MIN(iov[i].iov_len - offset, len_bytes - done);
		uint8_t *piece = (uint8_t *)iov[i].iov_base + offset;

		if (to_iov)
			memcpy(piece, flat + done, len);
		else
			memcpy(flat + done, piece, len);
		done += len;
		offset = 0;
	}
	return done;
}

size_t
vhp_iov_write(
	const struct iovec *iov, uint32_t n_iov, size_t offset, const void *src, size_t len_bytes)
{
	return iov_copy(iov, n_iov, offset, (uint8_t *)(uintptr_t)src, len_bytes, true);
}

size_t
vhp_iov_read(const struct iovec *iov, uint32_t n_iov, size_t offset, void *dst, size_t len_bytes)
{
	return iov_copy(iov, n_iov, offset, dst, len_bytes, false);
}
