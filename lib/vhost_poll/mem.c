/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "mem.h"

uint32_t
vhp_mem_to_iov(const struct vhp_mem *mem, uint32_t *hint, uint64_t gpa, uint32_t len_bytes,
	struct iovec *iov, uint32_t room)
{
	uint64_t left = len_bytes;
	uint32_t n = 0;

	/* Regions do not overlap and a piece is never empty: ends after n_regions turns. */
	do {
		uint64_t len = left;
		void *base = vhp_mem_map(mem, hint, gpa, &len);

		if (unlikely(base == NULL))
			return 0;
		if (unlikely(n == room))
			return UINT32_MAX;
		iov[n++] = (struct iovec){.iov_base = base, .iov_len = len};
		gpa += len;
		left -= len;
	} while (unlikely(left > 0));
	return n;
}
