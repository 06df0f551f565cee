/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ring layouts behind fe_ring.c; not for users of the library. */
#ifndef FE_RING_IMPL_H
#define FE_RING_IMPL_H

#include "fe_ring.h"

/* Byte sizes of the three areas of a ring, and their alignment. */
struct fe_ring_areas {
	uint64_t desc_bytes, driver_bytes, device_bytes;
};

/* Driver state for an empty ring that begins at cfg.start. */
void fe_split_reset(struct fe_ring *r);
int fe_split_add(
	struct fe_ring *r, const struct fe_seg *seg, uint32_t n, uint32_t ndirect, uint64_t token);
int fe_split_add_raw(struct fe_ring *r, const struct fe_raw_desc *d, uint32_t n, uint64_t token);
bool fe_split_kick_needed(struct fe_ring *r);
bool fe_split_pending(const struct fe_ring *r);
int fe_split_used(struct fe_ring *r, struct fe_done *out, uint32_t max);
void fe_split_arm(struct fe_ring *r, uint16_t after);
void fe_split_disarm(struct fe_ring *r);

void fe_packed_reset(struct fe_ring *r);
int fe_packed_add(
	struct fe_ring *r, const struct fe_seg *seg, uint32_t n, uint32_t ndirect, uint64_t token);
int fe_packed_add_raw(struct fe_ring *r, const struct fe_raw_desc *d, uint32_t n, uint64_t token);
void fe_packed_publish(struct fe_ring *r);
bool fe_packed_kick_needed(struct fe_ring *r);
bool fe_packed_pending(const struct fe_ring *r);
int fe_packed_used(struct fe_ring *r, struct fe_done *out, uint32_t max);
void fe_packed_arm(struct fe_ring *r, uint16_t after);
void fe_packed_disarm(struct fe_ring *r);
/* Move the used position on by ndesc descriptors. */
void fe_packed_skip(struct fe_ring *r, uint16_t ndesc);

/* Guest address of the indirect table that belongs to a head or buffer id. */
static inline uint64_t
fe_indirect_table(const struct fe_ring *r, uint32_t id)
{
	return r->indirect_gpa + (uint64_t)id * r->cfg.indirect_max * sizeof(struct vring_desc);
}

/* What a raw descriptor may let the device write: all of it, and with a table anything. */
static inline uint64_t
fe_raw_bytes(const struct fe_raw_desc *d)
{
	return (d->flags & VRING_DESC_F_INDIRECT) != 0 ? UINT32_MAX : d->len;
}

/* Remember an outstanding buffer, for IN_ORDER also its place. */
static inline void
fe_slot_take(struct fe_ring *r, uint16_t id, uint16_t ndesc, uint16_t tail, uint32_t in_bytes,
	uint64_t token)
{
	r->slot[id] = (struct fe_slot){
		.token = token, .in_bytes = in_bytes, .ndesc = ndesc, .tail = tail};
	if (r->cfg.in_order) {
		r->order[r->order_tail] = id;
		r->order_tail = (r->order_tail + 1) % (r->cfg.size + 1);
	}
}

/*
 * IN_ORDER: how many buffers a used entry for id completes, counted from the oldest
 * outstanding one (virtio 1.2, 2.7.9 and 2.8.9).
 */
static inline uint32_t
fe_order_distance(const struct fe_ring *r, uint16_t id)
{
	uint32_t n = 1;

	for (uint32_t i = r->order_head; i != r->order_tail; i = (i + 1) % (r->cfg.size + 1), n++)
		if (r->order[i] == id)
			return n;
	return 0;
}

static inline uint16_t
fe_order_pop(struct fe_ring *r)
{
	uint16_t id = r->order[r->order_head];

	r->order_head = (r->order_head + 1) % (r->cfg.size + 1);
	return id;
}

/* The checks that hold for every used entry; 0 or -EPROTO. */
int fe_used_check(struct fe_ring *r, uint32_t id, uint32_t len);

#endif
