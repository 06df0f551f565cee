/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layer 3 of the test front end: virtqueues, the driver's side, written by hand
 * from virtio 1.2 sections 2.7 (split) and 2.8 (packed).
 *
 * Well-behaved operations: add chains, publish, kick if the device asks for it,
 * collect used buffers, ask for calls or forbid them. They allocate nothing and may be
 * batched: any number of fe_ring_add(), one fe_ring_kick(). Everything the device puts
 * out is checked; the first deviation stays in fe_ring.fault.
 *
 * Raw access: the pointers to descriptors, rings and event structures are public,
 * fe_ring_add_raw() makes a chain from given descriptors whatever they hold.
 *
 * One thread per ring.
 */
#ifndef FE_RING_H
#define FE_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

#include "fe_mem.h"
#include "fe_util.h"

#ifndef VIRTIO_F_IN_ORDER
#define VIRTIO_F_IN_ORDER 35
#endif

/* Descriptor flags of packed rings as bits. */
#define FE_PACKED_AVAIL ((uint16_t)(1U << VRING_PACKED_DESC_F_AVAIL))
#define FE_PACKED_USED  ((uint16_t)(1U << VRING_PACKED_DESC_F_USED))

#define FE_RING_SIZE_MAX 32768

/** A piece of a buffer. */
struct fe_seg {
	uint64_t gpa;
	uint32_t len;
	bool write; /**< the device writes it */
};

/** A buffer that the device has used. */
struct fe_done {
	uint64_t token; /**< given to fe_ring_add() */
	uint32_t len;   /**< used.len */
	uint32_t id;    /**< head (split) or buffer id (packed) */
	/** IN_ORDER only: covered by the used entry of a later buffer, so len says nothing. */
	bool skipped;
};

/** What the front end knows about the buffer with this head or id. */
struct fe_slot {
	uint64_t token;
	uint32_t in_bytes; /**< sum of what the device may write */
	uint16_t ndesc;    /**< descriptors of the ring that it takes, 0: not outstanding */
	uint16_t tail;     /**< split: last descriptor */
};

/** A descriptor for fe_ring_add_raw(), taken as it is. */
struct fe_raw_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags; /**< VRING_DESC_F_*; packed rings: AVAIL and USED are added */
	int32_t next;   /**< split: FE_NEXT_AUTO, FE_NEXT_ELEM(k), or a descriptor index >= 0 */
};

#define FE_NEXT_AUTO    (-1)       /**< the descriptor of the next array element */
#define FE_NEXT_ELEM(k) (-2 - (k)) /**< the descriptor of array element k */

struct fe_ring_cfg {
	uint32_t size; /**< split: power of two <= 32768; packed: 1..32768 */
	bool packed;
	bool event_idx; /**< EVENT_IDX was negotiated */
	bool in_order;  /**< IN_ORDER was negotiated */
	/**
	 * Take the length of a used packed descriptor even where virtio 1.2, 2.8.6 reserves it
	 * (no WRITE flag): a back end that is careful leaves 0 there.
	 */
	bool strict_len;
	uint32_t indirect_max; /**< longest indirect table, 0: none are made */
	/** First index. Split: 0..65535; packed: slot (bits 0-14), wrap counter (bit 15). */
	uint16_t start;
};

/** First index that a packed ring normally starts with: slot 0, wrap counter 1. */
#define FE_PACKED_START 0x8000

struct fe_ring {
	struct fe_ring_cfg cfg;
	uint32_t index; /**< vring index at the back end, set by fe_ring_start() */
	uint16_t base;  /**< where the device begins, or has stopped; form of cfg.start */
	struct fe_mem *mem;
	struct fe_fault fault;

	/* Raw access. */
	uint64_t desc_gpa, driver_gpa, device_gpa;
	struct vring_desc *desc; /**< split */
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t *used_event;            /**< split, in the available ring */
	uint16_t *avail_event;           /**< split, in the used ring */
	struct vring_packed_desc *pdesc; /**< packed */
	struct vring_packed_desc_event *driver_event;
	struct vring_packed_desc_event *device_event;
	uint64_t indirect_gpa; /**< one table of indirect_max descriptors per slot */

	/* Driver state. */
	struct fe_slot *slot;
	uint16_t *free_next; /**< split: list of free descriptors; packed: stack of free ids */
	uint16_t free_head, free_tail;
	uint32_t num_free;
	uint16_t *order; /**< IN_ORDER: outstanding heads, oldest first */
	uint32_t order_head, order_tail;
	uint32_t batch_left; /**< IN_ORDER: buffers still to report of a used batch */
	uint32_t batch_len;
	uint16_t next_avail; /**< split: free running; packed: slot */
	uint16_t last_used;
	bool avail_wrap, used_wrap;
	uint16_t kicked; /**< next_avail at the last look for a kick (split) */
	uint16_t added;  /**< descriptors since then (packed) */
	int32_t held;    /**< packed: first unpublished slot, -1 for none */
	uint16_t held_flags;

	/* Notifications. */
	int kick_fd, call_fd, err_fd;
	uint64_t n_kicks;       /**< kicks sent */
	uint64_t n_kicks_saved; /**< kicks the device did not ask for */
	uint64_t n_calls;       /**< calls received, counted when the fd is read */
};

/** Prepare a ring in guest memory. @return 0, -EINVAL, -ENOMEM. Undo with fe_ring_free(). */
int fe_ring_init(struct fe_ring *r, struct fe_mem *m, const struct fe_ring_cfg *cfg);

/** Close fds, free the driver state; guest memory stays allocated. NULL-safe. */
void fe_ring_free(struct fe_ring *r);

/**
 * Empty the ring and begin at index @p start (see fe_ring_cfg); outstanding buffers are
 * forgotten, counters stay. Only while the device does not run the ring.
 */
void fe_ring_reset(struct fe_ring *r, uint16_t start);

/** Announce the ring to the back end as vring @p index, beginning at r->base. */
int fe_ring_start(struct fe_ring *r, struct fe_conn *c, uint32_t index);

/** GET_VRING_BASE: r->base gets where the back end stopped. */
int fe_ring_stop(struct fe_ring *r, struct fe_conn *c);

/**
 * Where the device's used ring ends, in the form of fe_ring_cfg.start; what of it has been
 * collected does not matter.
 */
uint16_t fe_ring_used_end(const struct fe_ring *r);

/** Index of the next used entry in the form of fe_ring_cfg.start. */
uint16_t fe_ring_position(const struct fe_ring *r);

/**
 * Add a buffer; the device does not see it before fe_ring_publish().
 *
 * @param seg what the device reads, followed by what it writes
 * @param n segments, >= 1
 * @param ndirect segments in descriptors of the ring; the rest (if any) go into an indirect
 *        table behind them. Split: 0..n; packed: 0 or n (virtio 1.2, 2.8.7.1)
 * @param token handed back in fe_done
 * @return head or buffer id; -ENOSPC, -EINVAL.
 */
int fe_ring_add(
	struct fe_ring *r, const struct fe_seg *seg, uint32_t n, uint32_t ndirect, uint64_t token);

/** Add @p n descriptors just as they are. @return as fe_ring_add(). */
int fe_ring_add_raw(struct fe_ring *r, const struct fe_raw_desc *d, uint32_t n, uint64_t token);

/** Show the device all buffers added so far. */
void fe_ring_publish(struct fe_ring *r);

/** After publishing: does the device want a kick for what was added since the last look? */
bool fe_ring_kick_needed(struct fe_ring *r);

/** Publish, then kick if the device asks for it. @return true if a kick was sent. */
bool fe_ring_kick(struct fe_ring *r);

/** Kick whether it is wanted or not. */
void fe_ring_kick_always(struct fe_ring *r);

/** Is there a used entry that fe_ring_used() would return? */
bool fe_ring_pending(const struct fe_ring *r);

/**
 * Collect used buffers.
 * @return how many were stored at @p out (0..@p max), or -EPROTO with the reason in r->fault:
 *         unknown or unused id, length above what was writable, index ran ahead.
 */
int fe_ring_used(struct fe_ring *r, struct fe_done *out, uint32_t max);

/**
 * Ask for a call when the device has used @p after + 1 further entries (descriptors in packed
 * rings). Without event index, or for packed rings without it, @p after does not count.
 * @return true if something is used already, so that waiting would be wrong.
 */
bool fe_ring_arm(struct fe_ring *r, uint16_t after);

/** Ask for no calls (a hint: some may come all the same). */
void fe_ring_disarm(struct fe_ring *r);

/**
 * Wait for a call, after fe_ring_arm().
 * @return 1 called; 0 time is over and nothing was used; -ENOMSG time is over, and there are
 *         used entries without a call: a lost notification.
 */
int fe_ring_wait(struct fe_ring *r, uint32_t timeout_us);

/** Calls that came since the last look; does not wait. */
uint64_t fe_ring_take_calls(struct fe_ring *r);

/** True once after the device has signalled the error fd. */
bool fe_ring_take_error(struct fe_ring *r);

/** Buffers the device has not given back. */
uint32_t fe_ring_outstanding(const struct fe_ring *r);

#endif
