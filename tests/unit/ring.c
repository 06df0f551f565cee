/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "ring.h"

#define F_AVAIL (1U << VRING_PACKED_DESC_F_AVAIL)
#define F_USED  (1U << VRING_PACKED_DESC_F_USED)
#define WRAP    0x8000U

/* Memory with values that no test expects, wherever nothing is written. */
static void *
area(size_t size_bytes)
{
	void *p = malloc(size_bytes);

	CHECK(p != NULL);
	memset(p, 0xee, size_bytes);
	return p;
}

static void
init_split(struct ring *r, uint16_t start)
{
	r->desc = area(sizeof(*r->desc) * r->size);
	r->avail = area(sizeof(*r->avail) + sizeof(uint16_t) * (r->size + 1U));
	r->used = area(
		sizeof(*r->used) + sizeof(struct vring_used_elem) * r->size + sizeof(uint16_t));
	r->avail->flags = r->used->flags = 0;
	r->avail->idx = r->used->idx = start;
	r->avail_idx = r->used_idx = start;
	r->vr->desc = r->desc;
	r->vr->avail = r->avail;
	r->vr->used = r->used;
}

static void
init_packed(struct ring *r, uint16_t start)
{
	bool wrap = start & WRAP;
	uint16_t position = start & ~WRAP;

	r->descs = area(sizeof(*r->descs) * r->size);
	r->driver_event = area(sizeof(*r->driver_event));
	r->device_event = area(sizeof(*r->device_event));
	r->driver_event->flags = VRING_PACKED_EVENT_FLAG_ENABLE;
	/* As after a round: descriptors before the position have been used in this one. */
	for (uint16_t i = 0; i < r->size; i++)
		r->descs[i].flags = (i < position) == wrap ? F_AVAIL | F_USED : 0;
	r->avail_idx = r->used_idx = position;
	r->avail_wrap = r->used_wrap = wrap;
	r->vr->packed = r->descs;
	r->vr->driver_event = r->driver_event;
	r->vr->device_event = r->device_event;
}

void
ring_init(struct ring *r, struct vhp_vring *vr, struct guest *g, uint16_t size, bool packed,
	uint32_t base)
{
	*r = (struct ring){.vr = vr, .g = g, .packed = packed, .size = size};
	r->free = area(sizeof(uint16_t) * size);
	r->n_desc = area(sizeof(uint16_t) * size);
	r->next = area(sizeof(uint16_t) * size);
	r->n_free = r->n_ids = size;
	for (uint16_t i = 0; i < size; i++) {
		r->free[i] = size - 1 - i;
		r->n_desc[i] = 1;
	}
	vr->ops = packed ? &vhp_vring_packed : &vhp_vring_split;
	vr->mem = &g->mem;
	vr->size = size;
	vr->kick_fd = vr->call_fd = -1;
	vr->indirect = true;
	vr->running = true;
	if (packed)
		init_packed(r, base);
	else
		init_split(r, base);
	CHECK(vr->ops->start(vr, base));
}

void
ring_fini(struct ring *r)
{
	free(r->desc);
	free(r->avail);
	free(r->used);
	free(r->descs);
	free(r->driver_event);
	free(r->device_event);
	free(r->free);
	free(r->n_desc);
	free(r->next);
	memset(r, 0, sizeof(*r));
}

void
ring_desc(
	struct ring *r, uint16_t i, uint64_t gpa, uint32_t len_bytes, uint16_t flags, uint16_t next)
{
	r->desc[i] = (struct vring_desc){
		.addr = gpa,
		.len = len_bytes,
		.flags = flags,
		.next = next,
	};
}

void
ring_offer(struct ring *r, uint16_t head)
{
	r->avail->ring[r->avail_idx % r->size] = head;
	r->avail_idx++;
	__atomic_store_n(&r->avail->idx, r->avail_idx, __ATOMIC_RELEASE);
}

void
ring_packed_desc(struct ring *r, uint64_t gpa, uint32_t len_bytes, uint16_t flags, uint16_t id)
{
	struct vring_packed_desc *d = &r->descs[r->avail_idx];

	d->addr = gpa;
	d->len = len_bytes;
	d->id = id;
	__atomic_store_n(&d->flags, flags | (r->avail_wrap ? F_AVAIL : F_USED), __ATOMIC_RELEASE);
	if (++r->avail_idx == r->size) {
		r->avail_idx = 0;
		r->avail_wrap = !r->avail_wrap;
	}
}

/* An indirect table; the two layouts differ in what the last word means. */
static struct vring_desc
write_table(struct ring *r, const struct vring_desc *bufs, uint16_t n, uint64_t table_gpa)
{
	for (uint16_t i = 0; i < n; i++) {
		struct vring_desc d = bufs[i];
		struct vring_packed_desc p = {.addr = d.addr, .len = d.len, .flags = d.flags};

		d.next = i + 1;
		if (i + 1 < n)
			d.flags |= VRING_DESC_F_NEXT;
		guest_write(r->g, table_gpa + i * sizeof(d), r->packed ? (void *)&p : (void *)&d,
			sizeof(d));
	}
	return (struct vring_desc){
		.addr = table_gpa,
		.len = n * sizeof(struct vring_desc),
		.flags = VRING_DESC_F_INDIRECT,
	};
}

static uint16_t
post_split(struct ring *r, const struct vring_desc *bufs, uint16_t n)
{
	uint16_t head = r->free[r->n_free - 1];
	uint16_t i = head;

	for (uint16_t k = 0; k < n; k++) {
		r->n_free--;
		r->next[i] = k + 1 < n ? r->free[r->n_free - 1] : 0;
		ring_desc(r, i, bufs[k].addr, bufs[k].len,
			bufs[k].flags | (k + 1 < n ? VRING_DESC_F_NEXT : 0), r->next[i]);
		i = r->next[i];
	}
	ring_offer(r, head);
	return head;
}

static uint16_t
post_packed(struct ring *r, const struct vring_desc *bufs, uint16_t n)
{
	uint16_t id = r->free[--r->n_ids];

	for (uint16_t k = 0; k < n; k++)
		ring_packed_desc(r, bufs[k].addr, bufs[k].len,
			bufs[k].flags | (k + 1 < n ? VRING_DESC_F_NEXT : 0), id);
	r->n_free -= n;
	return id;
}

int
ring_post(struct ring *r, const struct vring_desc *bufs, uint16_t n, uint64_t table_gpa)
{
	struct vring_desc table;
	uint16_t id;

	if (r->n_free < (table_gpa != 0 ? 1 : n))
		return -1;
	if (table_gpa != 0) {
		table = write_table(r, bufs, n, table_gpa);
		bufs = &table;
		n = 1;
	}
	id = r->packed ? post_packed(r, bufs, n) : post_split(r, bufs, n);
	r->n_desc[id] = n;
	return id;
}

static bool
is_used(const struct ring *r, uint16_t position, bool wrap)
{
	uint16_t flags = __atomic_load_n(&r->descs[position].flags, __ATOMIC_ACQUIRE);

	return !!(flags & F_AVAIL) == wrap && !!(flags & F_USED) == wrap;
}

uint16_t
ring_used_count(const struct ring *r)
{
	uint16_t position = r->used_idx;
	bool wrap = r->used_wrap;
	uint16_t n = 0;

	if (!r->packed)
		return __atomic_load_n(&r->used->idx, __ATOMIC_ACQUIRE) - r->used_idx;
	while (n < r->size && is_used(r, position, wrap)) {
		CHECK(r->descs[position].id < r->size);
		position += r->n_desc[r->descs[position].id];
		if (position >= r->size) {
			position -= r->size;
			wrap = !wrap;
		}
		n++;
	}
	return n;
}

static struct ring_used
pop_split(struct ring *r)
{
	struct vring_used_elem e = r->used->ring[r->used_idx++ % r->size];
	uint16_t i = e.id;

	CHECK(e.id < r->size);
	for (uint16_t k = 0; k < r->n_desc[e.id] && r->n_free < r->size; k++) {
		r->free[r->n_free++] = i;
		i = r->next[i];
	}
	return (struct ring_used){e.id, e.len};
}

static struct ring_used
pop_packed(struct ring *r)
{
	const struct vring_packed_desc *d = &r->descs[r->used_idx];
	struct ring_used u = {d->id, d->len};

	/* The length counts only where the device says that it wrote (virtio 1.2, 2.8.4). */
	CHECK(!!(d->flags & VRING_DESC_F_WRITE) == (u.len_bytes > 0));
	r->used_idx += r->n_desc[u.id];
	if (r->used_idx >= r->size) {
		r->used_idx -= r->size;
		r->used_wrap = !r->used_wrap;
	}
	/* What was not posted by ring_post() is not to be freed. */
	if (r->n_ids < r->size) {
		r->n_free += r->n_desc[u.id];
		r->free[r->n_ids++] = u.id;
	}
	return u;
}

struct ring_used
ring_pop_used(struct ring *r)
{
	CHECK(ring_used_count(r) > 0);
	return r->packed ? pop_packed(r) : pop_split(r);
}

void
ring_check_used(struct ring *r, uint32_t id, uint32_t len_bytes)
{
	struct ring_used u = ring_pop_used(r);

	CHECK(u.id == id);
	CHECK(u.len_bytes == len_bytes);
}

uint16_t *
ring_used_event(struct ring *r)
{
	return &r->avail->ring[r->size];
}

uint16_t *
ring_avail_event(struct ring *r)
{
	return (uint16_t *)&r->used->ring[r->size];
}
