/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver's side of a virtqueue, split or packed, written by hand from the
 * specification: raw writes for tests that break rules, and chains with their bookkeeping
 * for those that keep them.
 */
#ifndef TEST_RING_H
#define TEST_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/virtio_ring.h>

#include "guest.h"
#include "vring.h"

/** A used chain. */
struct ring_used {
	uint32_t id;
	uint32_t len_bytes;
};

struct ring {
	struct vhp_vring *vr; /**< the device's side, which is tested */
	struct guest *g;
	bool packed;
	uint16_t size;
	/* Each area is an allocation of exactly its size. */
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	struct vring_packed_desc *descs; /**< packed */
	struct vring_packed_desc_event *driver_event, *device_event;
	uint16_t avail_idx; /**< split: next entry to offer; packed: position */
	uint16_t used_idx;  /**< the same for entries to look at */
	bool avail_wrap, used_wrap;
	/* What ring_post() took. */
	uint16_t n_free;  /**< descriptors */
	uint16_t *free;   /**< split: a stack of descriptors; packed: of ids */
	uint16_t n_ids;   /**< packed: ids on the stack */
	uint16_t *n_desc; /**< by id: descriptors of the ring that the chain has */
	uint16_t *next;   /**< split: the next descriptor of the chain */
};

/**
 * Make the areas and set up vr over them; event index: off, indirect tables: on.
 * @param base  where both sides begin, as in SET_VRING_BASE
 */
void ring_init(struct ring *r, struct vhp_vring *vr, struct guest *g, uint16_t size, bool packed,
	uint32_t base);
void ring_fini(struct ring *r);

/** Split: write descriptor i. */
void ring_desc(struct ring *r, uint16_t i, uint64_t gpa, uint32_t len_bytes, uint16_t flags,
	uint16_t next);

/** Split: make a head available. */
void ring_offer(struct ring *r, uint16_t head);

/**
 * Packed: write the descriptor at the next position and move on. The guest's own rule, the
 * first of a chain last, is left out: nobody looks before the test says so.
 */
void ring_packed_desc(
	struct ring *r, uint64_t gpa, uint32_t len_bytes, uint16_t flags, uint16_t id);

/**
 * Make a chain of n buffers available, in descriptors that are free.
 * @param bufs       address, length, and VRING_DESC_F_WRITE or not
 * @param table_gpa  where an indirect table is to be; 0: none, a chain of the ring
 * @return id, or -1 if too few descriptors are free
 */
int ring_post(struct ring *r, const struct vring_desc *bufs, uint16_t n, uint64_t table_gpa);

/** Chains that were used and not popped yet. */
uint16_t ring_used_count(const struct ring *r);

/** The oldest of them; there must be one. Frees its descriptors. */
struct ring_used ring_pop_used(struct ring *r);

/** The oldest of them must be this one. */
void ring_check_used(struct ring *r, uint32_t id, uint32_t len_bytes);

/** Split: the event index that the driver writes, and the one that the device writes. */
uint16_t *ring_used_event(struct ring *r);
uint16_t *ring_avail_event(struct ring *r);

#endif /* TEST_RING_H */
