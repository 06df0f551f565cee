/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A virtqueue as the device sees it, whatever its layout. transmitq.c and receiveq.c
 * take frames from it and put them back used; they do not know split from packed.
 *
 * Everything behind the ring pointers is written by the guest at any moment: each
 * field is read once into a local, checked, and only the local is used.
 */
#ifndef VHP_VRING_H
#define VHP_VRING_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/virtio_ring.h>

#include "dirty_log.h"
#include "mem.h"
#include "vhp_port.h"

/** Longest chain that is followed; as many descriptors as a frame may have pieces. */
#define VHP_MAX_CHAIN_DESCS VHP_MAX_IOV
/** A burst ends after so many descriptors, so that long or empty chains cost no more. */
#define VHP_TAKE_DESCS      2048

struct vhp_vring;

/** Why a ring is no longer served; VHP_RING_OK is "it is". */
enum vhp_ring_fault {
	VHP_RING_OK,
	VHP_RING_AVAIL_JUMP, /**< available index moved by more than the ring size */
	VHP_RING_HEAD,       /**< available entry names a descriptor outside the ring */
	VHP_RING_ENDLESS,    /**< a packed chain without an end */
	VHP_RING_CALL,       /**< the call descriptor blocks or fails */
	VHP_RING_MEMORY,     /**< guest memory is gone: the whole device ends */
	VHP_RING_FAULT_COUNT,
};

/** Counters of one ring; the poller writes, anybody reads. */
struct vhp_ring_stats {
	uint64_t pkts;
	uint64_t bytes; /**< without virtio-net headers */
	uint64_t drops[VHP_DROP_COUNT];
	uint64_t kicks; /**< notifications taken from the kick descriptor */
	uint64_t calls; /**< notifications sent to the call descriptor */
	uint64_t faults;
};

/** The parts of a ring (virtio 1.2, 2.6). */
enum vhp_area { VHP_AREA_DESC, VHP_AREA_DRIVER, VHP_AREA_DEVICE, VHP_RING_AREAS };

struct vhp_ring_area {
	uint32_t size_bytes;
	uint32_t align_bytes;
};

/** What a ring layout does; one call per burst. */
struct vhp_vring_ops {
	/**
	 * Take up to n chains in the order the guest made them available.
	 * A chain that breaks a rule is taken too, with its drop set and no pieces.
	 * Sets vring->fault, and stops, where the ring itself breaks a rule.
	 * @param iov  pool of room pieces for all of them
	 * @return chains taken; fewer than n when the ring or the pool is exhausted
	 */
	uint16_t (*take)(struct vhp_vring *vring, struct vhp_frame *frames, uint16_t n,
		struct iovec *iov, uint32_t room);
	/** Give back the n chains taken last, as if never taken. */
	void (*untake)(struct vhp_vring *vring, const struct vhp_frame *frames, uint16_t n);
	/** Hand n chains back to the guest as used, visible all at once. */
	void (*put)(struct vhp_vring *vring, const struct vhp_frame *frames, uint16_t n);
	/** After put: does the guest want a call (virtio 1.2, 2.7.7)? */
	bool (*need_call)(struct vhp_vring *vring);
	/**
	 * Ask for kicks from the current position on, full fence, look again.
	 * @return true if chains are waiting already
	 */
	bool (*arm)(struct vhp_vring *vring);
	/** Kicks are not needed for now. */
	void (*disarm)(struct vhp_vring *vring);
	/** Size and alignment of the three areas of a ring. */
	void (*areas)(uint16_t size, struct vhp_ring_area areas[VHP_RING_AREAS]);
	/**
	 * The areas are mapped: begin at this base, with kicks off.
	 * @return false if the base is not one of this ring
	 */
	bool (*start)(struct vhp_vring *vring, uint32_t base);
	/** Position to resume from, in the form of the vhost-user message SET_VRING_BASE. */
	uint32_t (*base)(const struct vhp_vring *vring);
};

/** One virtqueue. Main thread: rw while no poller has it; poller: rw else. */
struct vhp_vring {
	const struct vhp_vring_ops *ops;
	const struct vhp_mem *mem;
	const struct vhp_dirty_log *log; /**< NULL: nobody asks */
	union {
		void *areas[VHP_RING_AREAS];
		struct {
			struct vring_desc *desc;
			struct vring_avail *avail;
			struct vring_used *used;
		};
		struct {
			struct vring_packed_desc *packed;
			struct vring_packed_desc_event *driver_event;
			struct vring_packed_desc_event *device_event;
		};
	};
	uint16_t size; /**< split: a power of two */
	bool event_idx;
	bool notify_on_empty; /**< legacy: call when nothing is available any more */
	bool indirect;        /**< VIRTIO_F_INDIRECT_DESC accepted */
	bool device_writes;   /**< a receiveq: descriptors must be device-writable */
	bool mixed;           /**< readable descriptors, then device-writable ones */
	bool driver_unknown;  /**< split: nobody says whether the guest has the event index */
	bool running;         /**< started, enabled and mapped */
	bool resumes;         /**< its base is where this device itself has stopped */
	bool discard;         /**< transmitq: complete without sending */
	bool armed;           /**< kicks are asked for */
	bool signalled_valid;
	uint8_t fault;              /**< enum vhp_ring_fault */
	uint16_t avail_seen;        /**< split: available index at the last look */
	uint16_t last_avail;        /**< next available entry to take */
	uint16_t last_used;         /**< next used entry to write */
	bool avail_wrap, used_wrap; /**< packed: counters of the two positions */
	uint16_t signalled;         /**< used index at the last look for need_call */
	uint32_t mem_hint;
	uint32_t steps;         /**< descriptors read by the last take */
	int kick_fd;            /**< owned by net_dev; -1: the guest never kicks */
	int call_fd;            /**< owned by net_dev; -1: the guest polls */
	void (*on_fault)(void); /**< tells the main thread */
	struct vhp_ring_stats stats;
};

extern const struct vhp_vring_ops vhp_vring_split;
extern const struct vhp_vring_ops vhp_vring_packed;

/**
 * After take, of a ring with mixed chains: do no readable descriptors follow writable ones
 * (virtio 1.2, 2.7.4.2)? Then iov[0..n_read) are readable, and n_write behind them writable.
 */
static inline bool
vhp_frame_is_ordered(struct vhp_frame *f)
{
	if (f->n_write == 0)
		f->n_read = f->n_iov;
	return f->n_read + f->n_write == f->n_iov;
}

/** Call the guest if it wants that; once per burst, after put. */
void vhp_vring_call(struct vhp_vring *vring);

/** The device wrote to the ring; before the guest can see it. */
static inline void
vhp_vring_log(const struct vhp_vring *vring, const void *hva, uint64_t len_bytes)
{
	if (__builtin_expect(vring->log != NULL, 0))
		vhp_dirty_log_write(vring->log, vring->mem, hva, len_bytes);
}

/** Take what the kick descriptor holds, without ever waiting for it. */
void vhp_vring_drain_kick(struct vhp_vring *vring);

/** Ends a ring until the guest resets it: counts, and the main thread reports it. */
void vhp_vring_break(struct vhp_vring *vring, enum vhp_ring_fault fault);

/** One word for a reason: names of counters. */
const char *vhp_drop_name(enum vhp_drop drop);
const char *vhp_ring_fault_name(enum vhp_ring_fault fault);

#endif /* VHP_VRING_H */
