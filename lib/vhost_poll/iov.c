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

/* The piece that offset lies in, which becomes an offset in it; n: behind the last. */
static uint32_t
seek(const struct iovec *iov, uint32_t n_iov, size_t *offset)
{
	uint32_t i = 0;

	while (i < n_iov && *offset >= iov[i].iov_len)
		*offset -= iov[i++].iov_len;
	return i;
}

size_t
vhp_iov_copy(const struct iovec *to, uint32_t n_to, size_t to_at, const struct iovec *from,
	uint32_t n_from, size_t from_at, size_t len_bytes)
{
	uint32_t i = seek(to, n_to, &to_at);
	uint32_t k = seek(from, n_from, &from_at);
	size_t done = 0;

	while (i < n_to && k < n_from && done < len_bytes) {
		size_t room = to[i].iov_len - to_at;
		size_t len = RTE_MIN(from[k].iov_len - from_at, len_bytes - done);

		len = RTE_MIN(len, room);
		memcpy((uint8_t *)to[i].iov_base + to_at, (uint8_t *)from[k].iov_base + from_at,
			len);
		done += len;
		to_at += len;
		from_at += len;
		if (to_at == to[i].iov_len) {
			to_at = 0;
			i++;
		}
		if (from_at == from[k].iov_len) {
			from_at = 0;
			k++;
		}
	}
	return done;
}
