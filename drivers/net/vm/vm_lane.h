/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction between two queues: frames in the order they were put, in one block of
 * memory. One thread puts, one thread takes; they may be the same.
 */
#ifndef VHP_VM_LANE_H
#define VHP_VM_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include <linux/virtio_net.h>

/** Room of a lane; what fits into a core's second-level cache together with its use. */
#define VM_LANE_BYTES (512 << 10)

/** A frame in a lane; its bytes follow. */
struct vm_record {
	uint32_t len_bytes;        /**< of the frame without header; UINT32_MAX: go to the start */
	struct virtio_net_hdr hdr; /**< what is asked of the receiver */
};

struct vm_lane {
	uint8_t *data; /**< VM_LANE_BYTES */
	int fd;        /**< eventfd, readable while frames wait for a taker who saw none */

	/* Positions only grow; their remainders are offsets. */
	uint64_t put_at __rte_cache_aligned;   /**< putting thread: rw, taking thread: ro */
	uint64_t taken_at __rte_cache_aligned; /**< taking thread: rw, putting thread: ro */
	bool waits;                            /**< the taker saw none: both threads */
};

/** Returns 0 or -errno; undo with vm_lane_fini() in either case. Main thread. */
int vm_lane_init(struct vm_lane *lane);

/** Free it. Main thread, once nobody uses it. */
void vm_lane_fini(struct vm_lane *lane);

/** Does no frame wait? Of the thread that takes and puts, if that is one. */
bool vm_lane_is_empty(const struct vm_lane *lane);

/**
 * Room for a frame of len_bytes, not yet visible; NULL if there is none now.
 * Putting thread.
 */
struct vm_record *vm_lane_room(struct vm_lane *lane, uint32_t len_bytes);

/** The frame that was given room last is complete. Putting thread. */
void vm_lane_put(struct vm_lane *lane, const struct vm_record *record);

/** Wake a taker who saw none; once per burst, after the puts. Putting thread. */
void vm_lane_wake(struct vm_lane *lane);

/** The oldest frame, NULL if there is none: then fd tells of the next. Taking thread. */
struct vm_record *vm_lane_first(struct vm_lane *lane);

/** The oldest frame is done with. Taking thread. */
void vm_lane_take(struct vm_lane *lane, const struct vm_record *record);

#endif /* VHP_VM_LANE_H */
