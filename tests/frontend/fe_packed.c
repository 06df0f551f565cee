/* SPDX-License-Identifier: BSD-3-Clause */
/* Driver's side of packed virtqueues (virtio 1.2, 2.8); see fe_ring.h. */
#include "fe_ring_impl.h"

#include <errno.h>
#include <string.h>

typedef uint32_t event_word __attribute__((may_alias));

void
fe_packed_reset(struct fe_ring *r)
{
	/* A stack of ids, lowest on top; IN_ORDER takes them round robin instead. */
	for (uint32_t i = 0; i < r->cfg.size; i++)
		r->free_next[i] = (uint16_t)(r->cfg.size - 1 - i);
	r->num_free = r->cfg.size;
	r->free_head = (uint16_t)r->cfg.size;
	r->next_avail = r->last_used = r->cfg.start & 0x7fff;
	r->avail_wrap = r->used_wrap = (r->cfg.start & 0x8000) != 0;
	r->added = 0;
	r->held = -1;
	r->free_tail = 0;
	/*
	 * Slots behind the start were last used in the lap before, those in front of it in
	 * this one: both bits equal that lap's wrap counter (virtio 1.2, 2.8.1).
	 */
	for (uint32_t i = 0; i < r->cfg.size; i++) {
		bool wrap = i >= r->next_avail ? !r->avail_wrap : r->avail_wrap;

		r->pdesc[i].flags = wrap ? FE_PACKED_AVAIL | FE_PACKED_USED : 0;
	}
	fe_packed_disarm(r);
}

static uint16_t
take_id(struct fe_ring *r)
{
	uint16_t id;

	if (!r->cfg.in_order)
		return r->free_next[--r->free_head];
	/* Freed in the order they were taken, so the next one is free. */
	id = r->free_tail;
	r->free_tail = (uint16_t)((r->free_tail + 1) % r->cfg.size);
	return id;
}

static void
give_back(struct fe_ring *r, uint16_t id)
{
	if (!r->cfg.in_order)
		r->free_next[r->free_head++] = id;
	r->num_free += r->slot[id].ndesc;
	r->slot[id].ndesc = 0;
}

/*
 * Write one descriptor. The first of a batch keeps its flags back until publish: the
 * device looks at descriptors in order, so it sees none of those behind it.
 */
static void
put_desc(struct fe_ring *r, uint64_t addr, uint32_t len, uint16_t id, uint16_t flags)
{
	struct vring_packed_desc *d = &r->pdesc[r->next_avail];

	flags |= r->avail_wrap ? FE_PACKED_AVAIL : FE_PACKED_USED;
	d->addr = addr;
	d->len = len;
	d->id = id;
	if (r->held < 0) {
		r->held = r->next_avail;
		r->held_flags = flags;
	} else {
		d->flags = flags;
	}
	r->added++;
	r->num_free--;
	if (++r->next_avail == r->cfg.size) {
		r->next_avail = 0;
		r->avail_wrap = !r->avail_wrap;
	}
}

static uint32_t
fill_table(struct fe_ring *r, uint64_t gpa, const struct fe_seg *seg, uint32_t n)
{
	struct vring_packed_desc *t = fe_mem_ptr(r->mem, gpa);
	uint32_t in_bytes = 0;

	/* In a table only the WRITE flag counts (virtio 1.2, 2.8.7). */
	for (uint32_t i = 0; i < n; i++) {
		t[i] = (struct vring_packed_desc){.addr = seg[i].gpa,
			.len = seg[i].len,
			.flags = seg[i].write ? VRING_DESC_F_WRITE : 0};
		in_bytes += seg[i].write ? seg[i].len : 0;
	}
	return in_bytes;
}

int
fe_packed_add(
	struct fe_ring *r, const struct fe_seg *seg, uint32_t n, uint32_t ndirect, uint64_t token)
{
	uint32_t need = ndirect == 0 ? 1 : n;
	uint32_t in_bytes = 0;
	uint16_t id;

	if (ndirect != 0 && ndirect < n)
		return -EINVAL;
	if (r->num_free < need)
		return -ENOSPC;
	id = take_id(r);
	if (ndirect == 0) {
		uint64_t table = fe_indirect_table(r, id);

		in_bytes = fill_table(r, table, seg, n);
		put_desc(r, table, n * (uint32_t)sizeof(struct vring_packed_desc), id,
			VRING_DESC_F_INDIRECT);
	} else {
		for (uint32_t i = 0; i < n; i++) {
			put_desc(r, seg[i].gpa, seg[i].len, id,
				(uint16_t)((i + 1 < n ? VRING_DESC_F_NEXT : 0) |
					   (seg[i].write ? VRING_DESC_F_WRITE : 0)));
			in_bytes += seg[i].write ? seg[i].len : 0;
		}
	}
	fe_slot_take(r, id, (uint16_t)need, 0, in_bytes, token);
	return id;
}

int
fe_packed_add_raw(struct fe_ring *r, const struct fe_raw_desc *d, uint32_t n, uint64_t token)
{
	uint64_t in_bytes = 0;
	uint16_t id;

	if (r->num_free < n)
		return -ENOSPC;
	id = take_id(r);
	for (uint32_t i = 0; i < n; i++) {
		put_desc(r, d[i].addr, d[i].len, id, d[i].flags);
		in_bytes += fe_raw_bytes(&d[i]);
	}
	fe_slot_take(r, id, (uint16_t)n, 0, in_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)in_bytes,
		token);
	return id;
}

void
fe_packed_publish(struct fe_ring *r)
{
	if (r->held < 0)
		return;
	__atomic_store_n(&r->pdesc[r->held].flags, r->held_flags, __ATOMIC_RELEASE);
	r->held = -1;
}

bool
fe_packed_kick_needed(struct fe_ring *r)
{
	/* Both halves are read at once: the device writes the offset before the flags. */
	uint32_t word = __atomic_load_n((event_word *)r->device_event, __ATOMIC_ACQUIRE);
	uint16_t off_wrap = (uint16_t)word, flags = (uint16_t)(word >> 16);
	uint16_t new = r->next_avail, old = (uint16_t)(r->next_avail - r->added);
	uint16_t event = off_wrap & 0x7fff;
	bool wrap = off_wrap >> VRING_PACKED_EVENT_F_WRAP_CTR;
	bool any = r->added != 0;

	r->added = 0;
	if ((flags & 3) != VRING_PACKED_EVENT_FLAG_DESC)
		return any && (flags & 3) != VRING_PACKED_EVENT_FLAG_DISABLE;
	/* An event of the other lap lies one ring size behind. */
	if (wrap != r->avail_wrap)
		event = (uint16_t)(event - r->cfg.size);
	return vring_need_event(event, new, old);
}

bool
fe_packed_pending(const struct fe_ring *r)
{
	uint16_t flags = __atomic_load_n(&r->pdesc[r->last_used].flags, __ATOMIC_ACQUIRE);
	bool avail = (flags & FE_PACKED_AVAIL) != 0, used = (flags & FE_PACKED_USED) != 0;

	return avail == used && used == r->used_wrap;
}

void
fe_packed_skip(struct fe_ring *r, uint16_t ndesc)
{
	r->last_used = (uint16_t)(r->last_used + ndesc);
	if (r->last_used >= r->cfg.size) {
		r->last_used = (uint16_t)(r->last_used - r->cfg.size);
		r->used_wrap = !r->used_wrap;
	}
}

static void
report(struct fe_ring *r, uint16_t id, uint32_t len, bool skipped, struct fe_done *out)
{
	*out = (struct fe_done){
		.token = r->slot[id].token, .len = len, .id = id, .skipped = skipped};
	fe_packed_skip(r, r->slot[id].ndesc);
	give_back(r, id);
}

int
fe_packed_used(struct fe_ring *r, struct fe_done *out, uint32_t max)
{
	uint32_t n;

	for (n = 0; n < max; n++) {
		const struct vring_packed_desc *d = &r->pdesc[r->last_used];
		uint16_t id;
		uint32_t len;

		if (r->batch_left == 0) {
			/* With nothing outstanding every descriptor is of the lap before. */
			if (r->num_free == r->cfg.size || !fe_packed_pending(r))
				break;
			id = d->id;
			len = d->len;
			if ((d->flags & VRING_DESC_F_WRITE) == 0 && !r->cfg.strict_len)
				len = 0;
			if (fe_used_check(r, id, len) != 0)
				return -EPROTO;
			if (!r->cfg.in_order) {
				report(r, id, len, false, &out[n]);
				continue;
			}
			r->batch_left = fe_order_distance(r, id);
			r->batch_len = len;
		}
		id = fe_order_pop(r);
		r->batch_left--;
		report(r, id, r->batch_left == 0 ? r->batch_len : 0, r->batch_left != 0, &out[n]);
	}
	return (int)n;
}

void
fe_packed_arm(struct fe_ring *r, uint16_t after)
{
	uint32_t slot = r->last_used + after;
	bool wrap = r->used_wrap;

	if (!r->cfg.event_idx) {
		__atomic_store_n(
			&r->driver_event->flags, VRING_PACKED_EVENT_FLAG_ENABLE, __ATOMIC_RELAXED);
		return;
	}
	while (slot >= r->cfg.size) {
		slot -= r->cfg.size;
		wrap = !wrap;
	}
	__atomic_store_n(&r->driver_event->off_wrap,
		(uint16_t)(slot | ((uint32_t)wrap << VRING_PACKED_EVENT_F_WRAP_CTR)),
		__ATOMIC_RELAXED);
	__atomic_store_n(&r->driver_event->flags, VRING_PACKED_EVENT_FLAG_DESC, __ATOMIC_RELEASE);
}

void
fe_packed_disarm(struct fe_ring *r)
{
	__atomic_store_n(
		&r->driver_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE, __ATOMIC_RELAXED);
}
