/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Split virtqueues (virtio 1.2, 2.7), device side. vring.h is the interface; the
 * packed layout stands beside this file.
 */
#include <assert.h>

#include <rte_atomic.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_prefetch.h>

#include "vring_walk.h"

/* used_event and avail_event lie behind the last entry of the other side's ring. */
static inline uint16_t *
used_event(const struct vhp_vring *vr)
{
	return &vr->avail->ring[vr->size];
}

static inline uint16_t *
avail_event(const struct vhp_vring *vr)
{
	return (uint16_t *)&vr->used->ring[vr->size];
}

/* Read a descriptor once: the guest may change it between two reads of one field. */
static inline struct vring_desc
read_desc(const struct vring_desc *table, uint16_t i)
{
	const uint64_t *words = (const uint64_t *)&table[i];
	uint64_t rest = __atomic_load_n(&words[1], __ATOMIC_RELAXED);

	return (struct vring_desc){
		.addr = __atomic_load_n(&words[0], __ATOMIC_RELAXED),
		.len = (uint32_t)rest,
		.flags = (uint16_t)(rest >> 32),
		.next = (uint16_t)(rest >> 48),
	};
}

/* The chain inside an indirect table (virtio 1.2, 2.7.5.3.1). */
static enum vhp_drop
walk_indirect(
	struct vhp_vring *vr, struct vhp_frame *f, const struct vring_desc *outer, uint32_t room)
{
	uint32_t entries = vhp_indirect_entries(vr, outer->len, outer->flags);
	uint32_t most = RTE_MIN(entries, (uint32_t)VHP_MAX_CHAIN_DESCS);
	uint16_t i = 0;

	if (unlikely(entries == 0))
		return VHP_DROP_CHAIN_INDIRECT;
	for (uint32_t turns = 0; turns < most; turns++) {
		struct vring_desc d;

		if (unlikely(!vhp_read_indirect(vr, outer->addr, i, &d)))
			return VHP_DROP_CHAIN_ADDRESS;
		if (unlikely(d.flags & VRING_DESC_F_INDIRECT))
			return VHP_DROP_CHAIN_INDIRECT;

		enum vhp_drop drop = vhp_add_buffer(vr, f, d.addr, d.len, d.flags, room);

		if (unlikely(drop != VHP_OK) || !(d.flags & VRING_DESC_F_NEXT))
			return drop;
		i = d.next;
		if (unlikely(i >= entries))
			return VHP_DROP_CHAIN_NEXT;
	}
	return VHP_DROP_CHAIN_LOOP;
}

static enum vhp_drop
walk_chain(struct vhp_vring *vr, struct vhp_frame *f, uint32_t room)
{
	uint32_t most = RTE_MIN(vr->size, VHP_MAX_CHAIN_DESCS);
	uint16_t i = f->id;

	for (uint32_t turns = 0; turns < most; turns++) {
		struct vring_desc d = read_desc(vr->desc, i);

		f->n_desc = turns + 1;
		enum vhp_drop drop;

		if (d.flags & VRING_DESC_F_INDIRECT)
			/* Buffers may come before the table (2.7.5.3.2). */
			drop = walk_indirect(vr, f, &d, room);
		else
			drop = vhp_add_buffer(vr, f, d.addr, d.len, d.flags, room);
		if (unlikely(drop != VHP_OK) ||
			(d.flags & (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT)) !=
				VRING_DESC_F_NEXT)
			return drop;
		i = d.next;
		if (unlikely(i >= vr->size))
			return VHP_DROP_CHAIN_NEXT;
	}
	return VHP_DROP_CHAIN_LOOP;
}

/* Entries that wait; looks at the guest's index only when those seen are used up. */
static inline uint16_t
avail_entries(struct vhp_vring *vr)
{
	if (vr->avail_seen == vr->last_avail) {
		vr->avail_seen = __atomic_load_n(&vr->avail->idx, __ATOMIC_ACQUIRE);
		if (unlikely((uint16_t)(vr->avail_seen - vr->last_avail) > vr->size)) {
			vr->avail_seen = vr->last_avail;
			vhp_vring_break(vr, VHP_RING_AVAIL_JUMP);
		}
	}
	return vr->avail_seen - vr->last_avail;
}

/*
 * Ask for the descriptors, then for the tables behind them, of the n entries to come: with
 * tables each of the two is a line that the guest's CPU has written.
 */
static void
prefetch_tables(struct vhp_vring *vr, uint16_t n)
{
	uint16_t mask = vr->size - 1;

	for (uint16_t i = 0; i < n; i++)
		rte_prefetch0(&vr->desc[vr->avail->ring[(vr->last_avail + i) & mask] & mask]);
	for (uint16_t i = 0; i < n; i++) {
		uint16_t head = vr->avail->ring[(vr->last_avail + i) & mask] & mask;
		struct vring_desc d = read_desc(vr->desc, head);

		if (d.flags & VRING_DESC_F_INDIRECT)
			vhp_prefetch_table(vr, d.addr);
	}
}

static uint16_t
split_take(struct vhp_vring *vr, struct vhp_frame *frames, uint16_t n, struct iovec *iov,
	uint32_t room)
{
	uint16_t mask = vr->size - 1;
	uint16_t count = RTE_MIN(avail_entries(vr), n);
	uint16_t i;

	vr->steps = 0;
	if (vr->mixed)
		prefetch_tables(vr, count);
	for (i = 0; i < count && vr->steps < VHP_TAKE_DESCS; i++) {
		struct vhp_frame *f = &frames[i];
		uint32_t most = RTE_MIN(room, (uint32_t)VHP_MAX_IOV);

		*f = (struct vhp_frame){
			.iov = iov,
			.id = __atomic_load_n(
				&vr->avail->ring[vr->last_avail & mask], __ATOMIC_RELAXED),

		};
		if (unlikely(f->id >= vr->size)) {
			vhp_vring_break(vr, VHP_RING_HEAD);
			break;
		}
		if (i + 1 < count)
			rte_prefetch0(
				&vr->desc[vr->avail->ring[(vr->last_avail + 1) & mask] & mask]);
		f->drop = walk_chain(vr, f, most);
		if (unlikely(f->drop != VHP_OK)) {
			if (vhp_pool_was_short(f->drop, most))
				break;
			f->n_iov = 0;
		}
		iov += f->n_iov;
		room -= f->n_iov;
		vr->last_avail++;
	}
	return i;
}

static void
split_untake(struct vhp_vring *vr, const struct vhp_frame *frames, uint16_t n)
{
	RTE_SET_USED(frames);
	vr->last_avail -= n;
}

static void
split_put(struct vhp_vring *vr, const struct vhp_frame *frames, uint16_t n)
{
	uint16_t mask = vr->size - 1;

	for (uint16_t i = 0; i < n; i++) {
		struct vring_used_elem *e = &vr->used->ring[(vr->last_used + i) & mask];

		e->id = frames[i].id;
		e->len = frames[i].used_bytes;
		vhp_vring_log(vr, e, sizeof(*e));
	}
	vr->last_used += n;
	__atomic_store_n(&vr->used->idx, vr->last_used, __ATOMIC_RELEASE);
	vhp_vring_log(vr, &vr->used->idx, sizeof(vr->used->idx));
}

static bool
split_need_call(struct vhp_vring *vr)
{
	uint16_t old = vr->signalled;
	bool valid = vr->signalled_valid;

	/* The used index must be visible before the guest's wish is read (2.7.7.2). */
	rte_smp_mb();
	vr->signalled = vr->last_used;
	vr->signalled_valid = true;
	if (unlikely(vr->notify_on_empty) &&
		__atomic_load_n(&vr->avail->idx, __ATOMIC_RELAXED) == vr->last_avail)
		return true;
	if (!vr->event_idx)
		return !(__atomic_load_n(&vr->avail->flags, __ATOMIC_RELAXED) &
			 VRING_AVAIL_F_NO_INTERRUPT);
	if (unlikely(!valid))
		return true;
	return vring_need_event(
		__atomic_load_n(used_event(vr), __ATOMIC_RELAXED), vr->last_used, old);
}

static bool
split_arm(struct vhp_vring *vr)
{
	if (vr->event_idx || vr->driver_unknown) {
		__atomic_store_n(avail_event(vr), vr->last_avail, __ATOMIC_RELAXED);
		vhp_vring_log(vr, avail_event(vr), sizeof(uint16_t));
	}
	if (!vr->event_idx) {
		__atomic_store_n(&vr->used->flags, 0, __ATOMIC_RELAXED);
		vhp_vring_log(vr, &vr->used->flags, sizeof(uint16_t));
	}
	vr->armed = true;
	/* Pairs with the guest's fence between its index and its look at our wish. */
	rte_smp_mb();
	vr->avail_seen = vr->last_avail;
	return avail_entries(vr) > 0;
}

static void
split_disarm(struct vhp_vring *vr)
{
	vr->armed = false;
	/* With the event index a stale avail_event asks for one kick in 2^16 at most. */
	if (!vr->event_idx) {
		__atomic_store_n(&vr->used->flags, VRING_USED_F_NO_NOTIFY, __ATOMIC_RELAXED);
		vhp_vring_log(vr, &vr->used->flags, sizeof(vr->used->flags));
	}
}

static bool
split_start(struct vhp_vring *vr, uint32_t base)
{
	if (vr->size & (vr->size - 1))
		return false;
	vr->last_avail = vr->avail_seen = (uint16_t)base;
	/* Chains are completed in order, so all that lie between are still the guest's. */
	vr->last_used = __atomic_load_n(&vr->used->idx, __ATOMIC_RELAXED);
	vr->signalled_valid = false;
	split_disarm(vr);
	return true;
}

static void
split_areas(uint16_t size, struct vhp_ring_area areas[VHP_RING_AREAS])
{
	/* Flags and index in front of the entries, an event index behind them. */
	areas[VHP_AREA_DESC] =
		(struct vhp_ring_area){size * sizeof(struct vring_desc), VRING_DESC_ALIGN_SIZE};
	areas[VHP_AREA_DRIVER] =
		(struct vhp_ring_area){sizeof(struct vring_avail) + (size + 1U) * sizeof(uint16_t),
			VRING_AVAIL_ALIGN_SIZE};
	areas[VHP_AREA_DEVICE] = (struct vhp_ring_area){
		sizeof(struct vring_used) + size * sizeof(struct vring_used_elem) +
			sizeof(uint16_t),
		VRING_USED_ALIGN_SIZE};
}

static uint32_t
split_base(const struct vhp_vring *vr)
{
	return vr->last_avail;
}

const struct vhp_vring_ops vhp_vring_split = {
	.take = split_take,
	.untake = split_untake,
	.put = split_put,
	.need_call = split_need_call,
	.arm = split_arm,
	.disarm = split_disarm,
	.areas = split_areas,
	.start = split_start,
	.base = split_base,
};
