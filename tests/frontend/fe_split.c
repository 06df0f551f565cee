/* SPDX-License-Identifier: BSD-3-Clause */
/* Driver's side of split virtqueues (virtio 1.2, 2.7); see fe_ring.h. */
#include "fe_ring_impl.h"

#include <errno.h>
#include <string.h>

void
fe_split_reset(struct fe_ring *r)
{
	for (uint32_t i = 0; i < r->cfg.size; i++)
		r->free_next[i] = (uint16_t)((i + 1) % r->cfg.size);
	r->free_head = 0;
	r->free_tail = (uint16_t)(r->cfg.size - 1);
	r->num_free = r->cfg.size;
	r->next_avail = r->last_used = r->kicked = r->cfg.start;
	r->avail->idx = r->used->idx = r->cfg.start;
	fe_split_disarm(r);
}

static uint16_t
take_desc(struct fe_ring *r)
{
	uint16_t d = r->free_head;

	r->free_head = r->free_next[d];
	r->num_free--;
	return d;
}

/*
 * A freed chain normally goes to the front of the list, so that after a while
 * descriptors are in no order. IN_ORDER wants ring order (virtio 1.2, 2.7.9), which
 * putting them at the back gives.
 */
static void
give_back(struct fe_ring *r, uint16_t head)
{
	struct fe_slot *s = &r->slot[head];

	if (r->num_free == 0) {
		r->free_head = head;
		r->free_tail = s->tail;
	} else if (r->cfg.in_order) {
		r->free_next[r->free_tail] = head;
		r->free_tail = s->tail;
	} else {
		r->free_next[s->tail] = r->free_head;
		r->free_head = head;
	}
	r->num_free += s->ndesc;
	s->ndesc = 0;
}

static void
make_available(struct fe_ring *r, uint16_t head)
{
	r->avail->ring[r->next_avail & (r->cfg.size - 1)] = head;
	r->next_avail++;
}

static uint32_t
fill_table(struct fe_ring *r, uint64_t gpa, const struct fe_seg *seg, uint32_t n)
{
	struct vring_desc *t = fe_mem_ptr(r->mem, gpa);
	uint32_t in_bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		t[i].addr = seg[i].gpa;
		t[i].len = seg[i].len;
		t[i].flags = (uint16_t)((i + 1 < n ? VRING_DESC_F_NEXT : 0) |
					(seg[i].write ? VRING_DESC_F_WRITE : 0));
		t[i].next = (uint16_t)(i + 1);
		in_bytes += seg[i].write ? seg[i].len : 0;
	}
	return in_bytes;
}

int
fe_split_add(
	struct fe_ring *r, const struct fe_seg *seg, uint32_t n, uint32_t ndirect, uint64_t token)
{
	uint32_t direct = ndirect < n ? ndirect : n;
	uint32_t need = direct + (direct < n ? 1 : 0);
	uint16_t head = r->free_head, d = head;
	uint32_t in_bytes = 0;

	if (r->num_free < need)
		return -ENOSPC;
	for (uint32_t i = 0; i < direct; i++) {
		struct vring_desc *p;

		d = take_desc(r);
		p = &r->desc[d];
		p->addr = seg[i].gpa;
		p->len = seg[i].len;
		p->flags = (uint16_t)((i + 1 < need ? VRING_DESC_F_NEXT : 0) |
				      (seg[i].write ? VRING_DESC_F_WRITE : 0));
		p->next = r->free_head;
		in_bytes += seg[i].write ? seg[i].len : 0;
	}
	if (direct < n) {
		uint64_t table = fe_indirect_table(r, head);

		d = take_desc(r);
		in_bytes += fill_table(r, table, seg + direct, n - direct);
		r->desc[d].addr = table;
		r->desc[d].len = (n - direct) * (uint32_t)sizeof(struct vring_desc);
		r->desc[d].flags = VRING_DESC_F_INDIRECT;
		r->desc[d].next = 0;
	}
	fe_slot_take(r, head, (uint16_t)need, d, in_bytes, token);
	make_available(r, head);
	return head;
}

int
fe_split_add_raw(struct fe_ring *r, const struct fe_raw_desc *d, uint32_t n, uint64_t token)
{
	uint16_t head = r->free_head, at = head, tail = head, elem;
	uint64_t in_bytes = 0;

	if (r->num_free < n)
		return -ENOSPC;
	for (uint32_t i = 0; i < n; i++, at = r->free_next[at]) {
		struct vring_desc *p = &r->desc[at];

		p->addr = d[i].addr;
		p->len = d[i].len;
		p->flags = d[i].flags;
		p->next = (uint16_t)(d[i].next >= 0 ? d[i].next : r->free_next[at]);
		if (d[i].next <= FE_NEXT_ELEM(0)) {
			elem = head;
			for (int32_t k = FE_NEXT_ELEM(0); k > d[i].next; k--)
				elem = r->free_next[elem];
			p->next = elem;
		}
		in_bytes += fe_raw_bytes(&d[i]);
		tail = at;
	}
	r->free_head = at;
	r->num_free -= n;
	fe_slot_take(r, head, (uint16_t)n, tail,
		in_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)in_bytes, token);
	make_available(r, head);
	return head;
}

bool
fe_split_kick_needed(struct fe_ring *r)
{
	uint16_t old = r->kicked, new = r->next_avail;

	r->kicked = new;
	if (r->cfg.event_idx)
		return vring_need_event(
			__atomic_load_n(r->avail_event, __ATOMIC_RELAXED), new, old);
	return new != old &&
	       (__atomic_load_n(&r->used->flags, __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY) == 0;
}

bool
fe_split_pending(const struct fe_ring *r)
{
	return __atomic_load_n(&r->used->idx, __ATOMIC_ACQUIRE) != r->last_used;
}

static void
report(struct fe_ring *r, uint16_t id, uint32_t len, bool skipped, struct fe_done *out)
{
	*out = (struct fe_done){
		.token = r->slot[id].token, .len = len, .id = id, .skipped = skipped};
	give_back(r, id);
	r->last_used++;
}

/* One used entry completes every buffer up to its own, oldest first. */
static int
used_in_order(struct fe_ring *r, struct fe_done *out, uint32_t ready)
{
	struct vring_used_elem e;
	uint16_t id;

	if (r->batch_left == 0) {
		e = r->used->ring[r->last_used & (r->cfg.size - 1)];
		if (fe_used_check(r, e.id, e.len) != 0)
			return -EPROTO;
		r->batch_left = fe_order_distance(r, (uint16_t)e.id);
		r->batch_len = e.len;
		if (r->batch_left > ready)
			return fe_fault(&r->fault,
				"vring %u: id %u ends a batch of %u, index of %u", r->index, e.id,
				r->batch_left, ready);
	}
	id = fe_order_pop(r);
	r->batch_left--;
	report(r, id, r->batch_left == 0 ? r->batch_len : 0, r->batch_left != 0, out);
	return 0;
}

int
fe_split_used(struct fe_ring *r, struct fe_done *out, uint32_t max)
{
	uint16_t ready =
		(uint16_t)(__atomic_load_n(&r->used->idx, __ATOMIC_ACQUIRE) - r->last_used);
	uint32_t n;

	if (ready > r->cfg.size)
		return fe_fault(&r->fault, "vring %u: used index ran %u ahead, ring size %u",
			r->index, ready, r->cfg.size);
	for (n = 0; n < max && n < ready; n++) {
		struct vring_used_elem e;

		if (r->cfg.in_order) {
			if (used_in_order(r, &out[n], ready - n) != 0)
				return -EPROTO;
			continue;
		}
		e = r->used->ring[r->last_used & (r->cfg.size - 1)];
		if (fe_used_check(r, e.id, e.len) != 0)
			return -EPROTO;
		report(r, (uint16_t)e.id, e.len, false, &out[n]);
	}
	return (int)n;
}

void
fe_split_arm(struct fe_ring *r, uint16_t after)
{
	if (r->cfg.event_idx)
		__atomic_store_n(r->used_event, (uint16_t)(r->last_used + after), __ATOMIC_RELAXED);
	else
		__atomic_store_n(&r->avail->flags, 0, __ATOMIC_RELAXED);
}

void
fe_split_disarm(struct fe_ring *r)
{
	/* With event index the flags stay 0; an index already passed comes round last. */
	if (r->cfg.event_idx)
		__atomic_store_n(r->used_event, (uint16_t)(r->last_used - 1), __ATOMIC_RELAXED);
	else
		__atomic_store_n(&r->avail->flags, VRING_AVAIL_F_NO_INTERRUPT, __ATOMIC_RELAXED);
}
