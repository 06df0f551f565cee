/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packed virtqueues (virtio 1.2, 2.8), device side; stands beside vring_split.c.
 *
 * One ring carries descriptors in both directions. Positions run over it with a wrap
 * counter each; a descriptor is the device's when its AVAIL bit equals the counter and its
 * USED bit does not. A chain is a run of neighbours, its id is in the last of them, and it is
 * used by one descriptor written at the position of the first.
 */
#include <assert.h>

#include <rte_atomic.h>
#include <rte_prefetch.h>

#include "vring_walk.h"

#define F_AVAIL (1U << VRING_PACKED_DESC_F_AVAIL)
#define F_USED  (1U << VRING_PACKED_DESC_F_USED)
#define WRAP    (1U << VRING_PACKED_EVENT_F_WRAP_CTR)

/* Attempts to find out where a ring was left while its driver goes on. */
#define LOOKS 16

/* Flags of a descriptor, before anything else of it is read. */
static inline uint16_t
read_flags(const struct vhp_vring *vr, uint16_t i, int order)
{
	return __atomic_load_n(&vr->packed[i].flags, order);
}

/* Read the rest once: the guest may change it between two reads of one field. */
static inline struct vring_packed_desc
read_desc(const struct vhp_vring *vr, uint16_t i)
{
	const uint64_t *words = (const uint64_t *)&vr->packed[i];
	uint64_t rest = __atomic_load_n(&words[1], __ATOMIC_RELAXED);

	return (struct vring_packed_desc){
		.addr = __atomic_load_n(&words[0], __ATOMIC_RELAXED),
		.len = (uint32_t)rest,
		.id = (uint16_t)(rest >> 32),
		.flags = (uint16_t)(rest >> 48),
	};
}

static inline bool
is_avail(const struct vhp_vring *vr)
{
	uint16_t flags = read_flags(vr, vr->last_avail, __ATOMIC_ACQUIRE);

	return !!(flags & F_AVAIL) == vr->avail_wrap && !!(flags & F_USED) != vr->avail_wrap;
}

/* Move a position over n < size descriptors. */
static inline void
advance(const struct vhp_vring *vr, uint16_t *position, bool *wrap, uint16_t n)
{
	uint32_t next = (uint32_t)*position + n;

	if (next >= vr->size) {
		next -= vr->size;
		*wrap = !*wrap;
	}
	*position = (uint16_t)next;
}

/* All entries of the table are the chain, in their order (virtio 1.2, 2.8.7). */
static enum vhp_drop
walk_indirect(struct vhp_vring *vr, struct vhp_frame *f, const struct vring_packed_desc *outer,
	uint32_t room)
{
	uint32_t entries = vhp_indirect_entries(vr, outer->len, outer->flags);

	if (unlikely(entries == 0))
		return VHP_DROP_CHAIN_INDIRECT;
	if (unlikely(entries > VHP_MAX_CHAIN_DESCS))
		return VHP_DROP_CHAIN_LOOP;
	for (uint32_t i = 0; i < entries; i++) {
		struct vring_packed_desc d;
		enum vhp_drop drop;

		if (unlikely(!vhp_read_indirect(vr, outer->addr, i, &d)))
			return VHP_DROP_CHAIN_ADDRESS;
		if (unlikely(d.flags & VRING_DESC_F_INDIRECT))
			return VHP_DROP_CHAIN_INDIRECT;
		drop = vhp_add_buffer(vr, f, d.addr, d.len, d.flags, room);
		if (unlikely(drop != VHP_OK))
			return drop;
	}
	return VHP_OK;
}

/*
 * The chain at last_avail. Sets id and n_desc whatever else is wrong with it, as it can only
 * be given back whole; f->n_desc stays 0 if it has no end.
 */
static enum vhp_drop
walk_chain(struct vhp_vring *vr, struct vhp_frame *f, uint32_t room)
{
	enum vhp_drop drop = VHP_OK;
	uint16_t i = vr->last_avail;

	for (uint32_t turns = 1; turns <= vr->size; turns++) {
		struct vring_packed_desc d = read_desc(vr, i);

		if (unlikely(turns > VHP_MAX_CHAIN_DESCS))
			drop = VHP_DROP_CHAIN_LOOP;
		if (unlikely(drop != VHP_OK))
			vr->steps++;
		else if (!(d.flags & VRING_DESC_F_INDIRECT))
			drop = vhp_add_buffer(vr, f, d.addr, d.len, d.flags, room);
		else
			drop = walk_indirect(vr, f, &d, room);
		if (!(d.flags & VRING_DESC_F_NEXT)) {
			f->id = d.id;
			f->n_desc = turns;
			return drop;
		}
		if (++i == vr->size)
			i = 0;
	}
	return VHP_DROP_CHAIN_LOOP;
}

/* Ask for the tables behind the n descriptors to come; those that are stale do no harm. */
static void
prefetch_tables(struct vhp_vring *vr, uint16_t n)
{
	uint16_t at = vr->last_avail;

	for (uint16_t i = 0; i < n; i++, at = at + 1 < vr->size ? at + 1 : 0) {
		const struct vring_packed_desc *d = &vr->packed[at];

		if (__atomic_load_n(&d->flags, __ATOMIC_RELAXED) & VRING_DESC_F_INDIRECT)
			vhp_prefetch_table(vr, __atomic_load_n(&d->addr, __ATOMIC_RELAXED));
	}
}

static uint16_t
packed_take(struct vhp_vring *vr, struct vhp_frame *frames, uint16_t n, struct iovec *iov,
	uint32_t room)
{
	uint16_t i;

	vr->steps = 0;
	if (vr->mixed && is_avail(vr))
		prefetch_tables(vr, n);
	for (i = 0; i < n && vr->steps < VHP_TAKE_DESCS && is_avail(vr); i++) {
		struct vhp_frame *f = &frames[i];
		uint32_t most = RTE_MIN(room, (uint32_t)VHP_MAX_IOV);

		*f = (struct vhp_frame){.iov = iov};
		f->drop = walk_chain(vr, f, most);
		if (unlikely(f->n_desc == 0)) {
			vhp_vring_break(vr, VHP_RING_ENDLESS);
			break;
		}
		if (unlikely(f->drop != VHP_OK)) {
			if (vhp_pool_was_short(f->drop, most))
				break;
			f->n_iov = 0;
		}
		iov += f->n_iov;
		room -= f->n_iov;
		advance(vr, &vr->last_avail, &vr->avail_wrap, f->n_desc);
		rte_prefetch0(&vr->packed[vr->last_avail]);
	}
	return i;
}

static void
packed_untake(struct vhp_vring *vr, const struct vhp_frame *frames, uint16_t n)
{
	while (n-- > 0) {
		uint16_t n_desc = frames[n].n_desc;

		if (vr->last_avail < n_desc) {
			vr->last_avail += vr->size;
			vr->avail_wrap = !vr->avail_wrap;
		}
		vr->last_avail -= n_desc;
	}
}

/*
 * The rest of a chain that is given back. The driver never looks at it; but a device that
 * starts on this ring later can see from each descriptor by itself whether it was used.
 */
static void
put_rest(struct vhp_vring *vr, uint16_t n_desc, uint16_t flags)
{
	uint16_t i = vr->last_used;

	while (n_desc-- > 1) {
		if (++i == vr->size) {
			i = 0;
			flags ^= F_AVAIL | F_USED;
		}
		__atomic_store_n(&vr->packed[i].flags, flags, __ATOMIC_RELEASE);
		vhp_vring_log(vr, &vr->packed[i].flags, sizeof(vr->packed[i].flags));
	}
}

static void
packed_put(struct vhp_vring *vr, const struct vhp_frame *frames, uint16_t n)
{
	uint16_t first = vr->last_used;
	uint16_t first_flags = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct vring_packed_desc *d = &vr->packed[vr->last_used];
		uint16_t flags = vr->used_wrap ? F_AVAIL | F_USED : 0;

		d->id = frames[i].id;
		d->len = frames[i].used_bytes;
		vhp_vring_log(vr, d, sizeof(*d));
		if (unlikely(frames[i].n_desc > 1))
			put_rest(vr, frames[i].n_desc, flags);
		if (frames[i].used_bytes > 0)
			flags |= VRING_DESC_F_WRITE;
		/* The first one's flags come last: the guest sees all or none. */
		if (i == 0)
			first_flags = flags;
		else
			__atomic_store_n(&d->flags, flags, __ATOMIC_RELEASE);
		advance(vr, &vr->last_used, &vr->used_wrap, frames[i].n_desc);
	}
	if (n > 0)
		__atomic_store_n(&vr->packed[first].flags, first_flags, __ATOMIC_RELEASE);
}

/* Driver event suppression (virtio 1.2, 2.8.10). */
static bool
packed_need_call(struct vhp_vring *vr)
{
	uint16_t old = vr->signalled;
	bool valid = vr->signalled_valid;
	uint16_t flags, off_wrap, event;

	/* The used flags must be visible before the guest's wish is read. */
	rte_smp_mb();
	vr->signalled = vr->last_used;
	vr->signalled_valid = true;
	flags = __atomic_load_n(&vr->driver_event->flags, __ATOMIC_ACQUIRE);
	if (!vr->event_idx || flags != VRING_PACKED_EVENT_FLAG_DESC)
		return flags != VRING_PACKED_EVENT_FLAG_DISABLE;
	if (unlikely(!valid))
		return true;
	/* Positions of the wrap before lie below zero. */
	if (vr->last_used <= old)
		old -= vr->size;
	off_wrap = __atomic_load_n(&vr->driver_event->off_wrap, __ATOMIC_RELAXED);
	event = off_wrap & (WRAP - 1);
	if (!!(off_wrap & WRAP) != vr->used_wrap)
		event -= vr->size;
	return vring_need_event(event, vr->last_used, old);
}

static bool
packed_arm(struct vhp_vring *vr)
{
	uint16_t flags = VRING_PACKED_EVENT_FLAG_ENABLE;

	if (vr->event_idx) {
		uint16_t off_wrap = vr->last_avail | (vr->avail_wrap ? WRAP : 0);

		__atomic_store_n(&vr->device_event->off_wrap, off_wrap, __ATOMIC_RELAXED);
		flags = VRING_PACKED_EVENT_FLAG_DESC;
	}
	__atomic_store_n(&vr->device_event->flags, flags, __ATOMIC_RELEASE);
	vhp_vring_log(vr, vr->device_event, sizeof(*vr->device_event));
	vr->armed = true;
	/* Pairs with the guest's fence between its flags and its look at our wish. */
	rte_smp_mb();
	return is_avail(vr);
}

static void
packed_disarm(struct vhp_vring *vr)
{
	vr->armed = false;
	__atomic_store_n(
		&vr->device_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE, __ATOMIC_RELAXED);
	vhp_vring_log(vr, vr->device_event, sizeof(*vr->device_event));
}

static void
packed_areas(uint16_t size, struct vhp_ring_area areas[VHP_RING_AREAS])
{
	static const struct vhp_ring_area event = {
		sizeof(struct vring_packed_desc_event), sizeof(uint32_t)};

	areas[VHP_AREA_DESC] = (struct vhp_ring_area){size * VHP_DESC_BYTES, VHP_DESC_BYTES};
	areas[VHP_AREA_DRIVER] = areas[VHP_AREA_DEVICE] = event;
}

/* ---- a ring whose device died ------------------------------------------------- */

/*
 * Where the driver adds next: in front of it are descriptors of this round, from it on those
 * of the round before. False where the AVAIL bits do not say so, or nothing was ever added.
 */
static bool
driver_position(const struct vhp_vring *vr, uint16_t *position, bool *wrap)
{
	bool first = !!(read_flags(vr, 0, __ATOMIC_ACQUIRE) & F_AVAIL), last = first;
	uint16_t any = 0, borders = 0;

	*position = 0;
	for (uint16_t i = 0; i < vr->size; i++) {
		uint16_t flags = read_flags(vr, i, __ATOMIC_ACQUIRE);

		any |= flags & (F_AVAIL | F_USED);
		if (!!(flags & F_AVAIL) == last)
			continue;
		last = !last;
		borders++;
		*position = i;
	}
	*wrap = borders > 0 ? first : !first;
	return borders <= 1 && any != 0;
}

/*
 * Where a device that keeps the order, and marks what it used as put_rest() does, has left
 * the ring: behind the last used descriptor. It may have died within packed_put(), the flags of
 * the first one being due; *due is that one, or the ring's size.
 */
static bool
device_position(const struct vhp_vring *vr, uint16_t *position, bool *wrap, uint16_t *due)
{
	uint16_t behind = 0, n_avail = 0, n_due = 0, first_avail = vr->size;
	uint16_t i;
	bool round;

	if (!driver_position(vr, position, wrap))
		return false;
	i = *position;
	round = *wrap = !*wrap;
	for (uint16_t n = 1; n <= vr->size; n++) {
		uint16_t flags = read_flags(vr, i, __ATOMIC_ACQUIRE);

		/* Added since the look before: not left behind by anybody. */
		if (!!(flags & F_AVAIL) != round)
			return false;
		if (!!(flags & F_USED) == round) {
			behind = n;
			n_due = n_avail;
		} else if (n_avail++ == 0) {
			first_avail = i;
		}
		advance(vr, &i, &round, 1);
	}
	advance(vr, position, wrap, behind);
	*due = n_due == 1 ? first_avail : vr->size;
	return n_due <= 1;
}

/*
 * Does the ring look as if the front end were right? From its position on what the driver has
 * added since, none of it used, and then what was used in the round before. Another kind of
 * device has left the rest of each chain there as the driver wrote it; but where the position
 * is that of a new ring, it is far more often stale than reached by chance, and only a ring
 * without such rests will do.
 */
static bool
may_be_right(const struct vhp_vring *vr)
{
	uint16_t i = vr->last_used, n = 0, flags;
	bool round = vr->used_wrap, rest = true;
	bool strict = i == 0 && round;

	for (; n < vr->size; n++) {
		flags = read_flags(vr, i, __ATOMIC_ACQUIRE);
		if (!!(flags & F_AVAIL) != round)
			break;
		if (!!(flags & F_USED) == round)
			return false;
		advance(vr, &i, &round, 1);
	}
	for (; n < vr->size; n++) {
		flags = read_flags(vr, i, __ATOMIC_ACQUIRE);
		if (!!(flags & F_AVAIL) == round)
			return false;
		if (!!(flags & F_USED) == round && (strict || !rest))
			return false;
		rest = !!(flags & F_USED) != round || flags & VRING_DESC_F_NEXT;
		advance(vr, &i, &round, 1);
	}
	return true;
}

/*
 * The front end of a device that died may not know how far it came: there is no index in
 * memory as split rings have it, and QEMU 7.2 says again what it said at the start. Going by
 * that would hang the ring, or use descriptors that are not due. The ring itself knows better.
 * A front end that may be right is believed: another kind of device may have been there before,
 * and an orderly stop or a migration has told the front end.
 */
static void
correct_position(struct vhp_vring *vr)
{
	uint16_t position, due;
	unsigned int looks = 0;
	bool wrap;

	/* A driver that adds meanwhile spoils a look. */
	do {
		if (looks++ == LOOKS || may_be_right(vr))
			return;
	} while (!device_position(vr, &position, &wrap, &due));
	vr->last_avail = vr->last_used = position;
	vr->avail_wrap = vr->used_wrap = wrap;
	if (due < vr->size) {
		struct vring_packed_desc *d = &vr->packed[due];
		uint16_t flags =
			read_flags(vr, due, __ATOMIC_ACQUIRE) & F_AVAIL ? F_AVAIL | F_USED : 0;

		if (vr->device_writes && d->len > 0)
			flags |= VRING_DESC_F_WRITE;
		__atomic_store_n(&d->flags, flags, __ATOMIC_RELEASE);
		vhp_vring_log(vr, d, sizeof(*d));
	}
}

static bool
packed_start(struct vhp_vring *vr, uint32_t base)
{
	uint16_t position = base & (WRAP - 1);

	if (position >= vr->size)
		return false;
	/* Chains are completed in order and none is left over: both positions are the same. */
	vr->last_avail = vr->last_used = position;
	vr->avail_wrap = vr->used_wrap = !!(base & WRAP);
	if (!vr->resumes)
		correct_position(vr);
	vr->signalled_valid = false;
	packed_disarm(vr);
	return true;
}

/* As in SET_VRING_BASE: position and counter of the available side, of the used side above. */
static uint32_t
packed_base(const struct vhp_vring *vr)
{
	uint32_t avail = vr->last_avail | (vr->avail_wrap ? WRAP : 0);
	uint32_t used = vr->last_used | (vr->used_wrap ? WRAP : 0);

	return avail | used << 16;
}

const struct vhp_vring_ops vhp_vring_packed = {
	.take = packed_take,
	.untake = packed_untake,
	.put = packed_put,
	.need_call = packed_need_call,
	.arm = packed_arm,
	.disarm = packed_disarm,
	.areas = packed_areas,
	.start = packed_start,
	.base = packed_base,
};
