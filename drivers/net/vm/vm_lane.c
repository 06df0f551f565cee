/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_atomic.h>
#include <rte_branch_prediction.h>

#include "vhp_port.h"
#include "vm_lane.h"

#define RECORD_ALIGN 16
#define TO_START     UINT32_MAX

static_assert(sizeof(struct vm_record) <= RECORD_ALIGN, "a mark fits wherever a record ends");
static_assert(VM_LANE_BYTES % RECORD_ALIGN == 0, "records do not straddle the end");
static_assert(2 * (RECORD_ALIGN + VHP_MAX_FRAME_BYTES + RECORD_ALIGN) < VM_LANE_BYTES,
	"any frame fits once the lane is empty, wherever the positions are");

int
vm_lane_init(struct vm_lane *lane)
{
	lane->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (lane->fd < 0)
		return -errno;
	lane->data = aligned_alloc(RTE_CACHE_LINE_SIZE, VM_LANE_BYTES);
	return lane->data != NULL ? 0 : -ENOMEM;
}

void
vm_lane_fini(struct vm_lane *lane)
{
	if (lane->fd >= 0)
		close(lane->fd);
	free(lane->data);
}

static struct vm_record *
record_at(const struct vm_lane *lane, uint64_t at)
{
	return (struct vm_record *)(lane->data + at % VM_LANE_BYTES);
}

static uint64_t
record_bytes(uint32_t len_bytes)
{
	return RTE_ALIGN_CEIL(sizeof(struct vm_record) + (uint64_t)len_bytes, RECORD_ALIGN);
}

bool
vm_lane_is_empty(const struct vm_lane *lane)
{
	return lane->taken_at == lane->put_at;
}

struct vm_record *
vm_lane_room(struct vm_lane *lane, uint32_t len_bytes)
{
	uint64_t need = record_bytes(len_bytes);
	uint64_t to_end = VM_LANE_BYTES - lane->put_at % VM_LANE_BYTES;
	uint64_t skip = need > to_end ? to_end : 0;
	uint64_t taken_at = __atomic_load_n(&lane->taken_at, __ATOMIC_ACQUIRE);

	if (lane->put_at + skip + need - taken_at > VM_LANE_BYTES)
		return NULL;
	if (skip > 0) {
		record_at(lane, lane->put_at)->len_bytes = TO_START;
		__atomic_store_n(&lane->put_at, lane->put_at + skip, __ATOMIC_RELEASE);
	}
	return record_at(lane, lane->put_at);
}

void
vm_lane_put(struct vm_lane *lane, const struct vm_record *record)
{
	__atomic_store_n(
		&lane->put_at, lane->put_at + record_bytes(record->len_bytes), __ATOMIC_RELEASE);
}

void
vm_lane_wake(struct vm_lane *lane)
{
	/* After the puts: either we see that the taker waits, or it sees the frames. */
	rte_mb();
	if (__atomic_load_n(&lane->waits, __ATOMIC_RELAXED)) {
		/* In this order, so that a taker who finds waits unset finds the event, too. */
		eventfd_write(lane->fd, 1);
		__atomic_store_n(&lane->waits, false, __ATOMIC_RELEASE);
	}
}

struct vm_record *
vm_lane_first(struct vm_lane *lane)
{
	eventfd_t count;

	for (;;) {
		while (lane->taken_at != __atomic_load_n(&lane->put_at, __ATOMIC_ACQUIRE)) {
			struct vm_record *record = record_at(lane, lane->taken_at);

			if (likely(record->len_bytes != TO_START))
				return record;
			__atomic_store_n(&lane->taken_at,
				lane->taken_at + VM_LANE_BYTES - lane->taken_at % VM_LANE_BYTES,
				__ATOMIC_RELEASE);
		}
		if (__atomic_load_n(&lane->waits, __ATOMIC_ACQUIRE))
			return NULL;
		/* From here on a put is told by fd; look again for one that came before. */
		eventfd_read(lane->fd, &count);
		__atomic_store_n(&lane->waits, true, __ATOMIC_RELAXED);
		rte_mb();
	}
}

void
vm_lane_take(struct vm_lane *lane, const struct vm_record *record)
{
	__atomic_store_n(&lane->taken_at, lane->taken_at + record_bytes(record->len_bytes),
		__ATOMIC_RELEASE);
}
