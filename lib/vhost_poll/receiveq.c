/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fill: from the port to the guest's receiveq, one copy (the port's, straight into the
 * guest's buffers) and no loss: without buffers the frame stays in the port.
 *
 * How long a frame is shows only when it has been read. So the port gets buffers for as
 * much as frames lately took, and behind them a spare piece, the bounce buffer. A frame
 * that ran over into it gets further buffers and a second copy of what ran over; if the
 * guest has no more, the whole frame waits in the bounce buffer.
 */
#include <assert.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>

#include "qpair.h"

/* Buffer space for frames without segmentation offload, and for those with. */
#define WANT_SMALL_BYTES 2048
#define WANT_LARGE_BYTES (VHP_MAX_HDR_BYTES + VHP_MAX_FRAME_BYTES)
/* A frame waits so long for a guest that has buffers out, but too few, then it is dropped. */
#define PENDING_S        1
/* One look counts for no more: idle.c looks so often. Nobody looks while a poller is kept from
 * running, and the guest perhaps with it. */
#define PENDING_LOOK_MS  100
/* A burst ends after so many bytes, or descriptors read: the transmit side waits meanwhile. */
#define BURST_BYTES      0x40000
#define BURST_DESCS      VHP_TAKE_DESCS

/* Move what the stash holds to the front of its arrays. Nothing may wait for put. */
static void
stash_compact(struct vhp_stash *st)
{
	uint32_t n = st->tail - st->head;

	if (st->head == 0)
		return;
	memmove(st->frames, st->frames + st->head, n * sizeof(st->frames[0]));
	memmove(st->iov, st->iov + st->iov_head,
		(st->iov_tail - st->iov_head) * sizeof(st->iov[0]));
	for (uint32_t i = 0; i < n; i++)
		st->frames[i].iov -= st->iov_head;
	st->iov_tail -= st->iov_head;
	st->head = st->iov_head = st->put = 0;
	st->tail = n;
}

/* Hand the buffers consumed since the last flush to the guest. */
static void
flush(struct vhp_qpair *qp)
{
	struct vhp_stash *st = &qp->stash;
	uint32_t n = st->head - st->put;

	if (n == 0)
		return;
	qp->rx.ops->put(&qp->rx, st->frames + st->put, n);
	st->put = st->head;
	qp->call_due = true;
}

/* Drop the oldest buffer from the stash; it becomes used at the next flush. */
static void
consume(struct vhp_stash *st, uint32_t used_bytes)
{
	struct vhp_frame *f = &st->frames[st->head++];

	f->used_bytes = used_bytes;
	st->iov_head += f->n_iov;
	st->bytes -= f->len_bytes;
}

/*
 * Complete chains that break a rule with length 0. The stash is empty: order is kept. A guest
 * must not get more time by breaking rules, so that is work, as a frame is.
 */
static void
retire_bad(struct vhp_qpair *qp, struct vhp_frame *bad, uint16_t n, struct vhp_work *work)
{
	flush(qp);
	for (uint16_t i = 0; i < n; i++) {
		qp->rx.stats.drops[bad[i].drop]++;
		bad[i].used_bytes = 0;
	}
	qp->rx.ops->put(&qp->rx, bad, n);
	qp->call_due = true;
	work->pkts += n;
}

/* Chains at the start of frames[0..n) that can take (part of) a frame, or that cannot. */
static uint16_t
run_of(const struct vhp_qpair *qp, struct vhp_frame *frames, uint16_t n, bool good)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		if (likely(frames[i].drop == VHP_OK) &&
			unlikely(frames[i].len_bytes < qp->hdr_bytes))
			frames[i].drop = VHP_DROP_SHORT;
		if ((frames[i].drop == VHP_OK) != good)
			break;
	}
	return i;
}

/*
 * Take buffers until the stash holds want_bytes, or the guest has no more, or the burst has
 * read enough descriptors.
 */
static void
gather(struct vhp_qpair *qp, uint32_t want_bytes, struct vhp_work *work)
{
	struct vhp_stash *st = &qp->stash;
	struct vhp_vring *vr = &qp->rx;

	qp->bad_next = false;
	while (st->bytes < want_bytes && work->descs < BURST_DESCS) {
		struct vhp_frame *frames = st->frames + st->tail;
		uint16_t most = RTE_MIN(st->room - st->tail, (uint32_t)VHP_BURST_PKTS);
		uint16_t n = vr->ops->take(
			vr, frames, most, st->iov + st->iov_tail, st->iov_room - st->iov_tail);
		if (n == 0)
			break;
		uint16_t good = run_of(qp, frames, n, true);

		work->descs += vr->steps + 1;
		if (unlikely(good < n)) {
			/* Only the oldest buffers can be retired: completion stays in order. */
			bool oldest = good == 0 && st->head == st->tail;
			uint16_t bad = oldest ? run_of(qp, frames, n, false) : 0;

			vr->ops->untake(vr, frames + good + bad, n - good - bad);
			if (bad > 0) {
				retire_bad(qp, frames, bad, work);
				continue;
			}
			qp->bad_next = true;
		}
		for (uint16_t i = 0; i < good; i++) {
			st->bytes += frames[i].len_bytes;
			st->iov_tail += frames[i].n_iov;
		}
		st->tail += good;
		if (!qp->mergeable || qp->bad_next)
			break;
	}
}

/* The guest had its time for the frame that waits, as far as anybody looked. */
static bool
pending_too_long(struct vhp_qpair *qp)
{
	const uint64_t hz = rte_get_tsc_hz();
	uint64_t now = rte_rdtsc();

	/* 0: the first look, of this poller at least. */
	if (qp->pending_tsc != 0)
		qp->pending_cycles += RTE_MIN(now - qp->pending_tsc, hz * PENDING_LOOK_MS / 1000);
	qp->pending_tsc = now;
	return qp->pending_cycles >= PENDING_S * hz;
}

/*
 * The guest cannot post more: every descriptor of the ring is in the stash, or the stash is
 * full; or it will not: it had its time.
 */
static bool
all_posted(struct vhp_qpair *qp)
{
	const struct vhp_stash *st = &qp->stash;
	uint32_t held = 0;

	for (uint32_t i = st->head; i < st->tail; i++)
		held += st->frames[i].n_desc;
	return held >= qp->rx.size || pending_too_long(qp) ||
	       st->iov_room - (st->iov_tail - st->iov_head) < VHP_MAX_IOV;
}

static inline void
log_written(const struct vhp_qpair *qp, const struct iovec *iov, uint32_t n_iov, uint32_t len_bytes)
{
	if (unlikely(qp->rx.log != NULL))
		vhp_dirty_log_write_iov(qp->rx.log, qp->rx.mem, iov, n_iov, len_bytes);
}

/* The frame in the stash's first len_bytes is complete: fill in the header, use the buffers. */
static void
deliver(struct vhp_qpair *qp, uint32_t len_bytes, struct vhp_work *work)
{
	struct vhp_stash *st = &qp->stash;
	const struct iovec *iov = st->iov + st->iov_head;
	uint32_t n_iov = st->iov_tail - st->iov_head;
	uint32_t left = len_bytes;
	uint16_t num_buffers = 0;

	while (left > 0) {
		uint32_t used = RTE_MIN(left, st->frames[st->head].len_bytes);

		consume(st, used);
		left -= used;
		num_buffers++;
	}
	/* 1 without VIRTIO_NET_F_MRG_RXBUF (virtio 1.2, 5.1.6.4). */
	if (qp->hdr_bytes == VHP_MAX_HDR_BYTES)
		vhp_iov_write(iov, n_iov, VHP_MAX_HDR_BYTES - sizeof(num_buffers), &num_buffers,
			sizeof(num_buffers));
	log_written(qp, iov, n_iov, len_bytes);
	struct vhp_pcap_ring *ring = __atomic_load_n(&qp->pcap, __ATOMIC_ACQUIRE);
	if (unlikely(ring != NULL))
		vhp_pcap_add(ring, VHP_PCAP_TO_GUEST, iov, n_iov, len_bytes, qp->hdr_bytes);
	qp->rx.stats.pkts++;
	qp->rx.stats.bytes += len_bytes - qp->hdr_bytes;
	work->pkts++;
	work->bytes += len_bytes;
}

/* A frame too large for any buffers the guest can post. */
static bool
drop_large(struct vhp_qpair *qp, struct vhp_work *work)
{
	qp->rx.stats.drops[VHP_DROP_NO_ROOM]++;
	qp->pending_bytes = 0;
	work->pkts++;
	return true;
}

/* Do the buffers at hand take a frame of this length? */
static bool
fits(const struct vhp_qpair *qp, uint32_t len_bytes)
{
	const struct vhp_stash *st = &qp->stash;

	if (qp->mergeable)
		return st->bytes >= len_bytes;
	return st->head != st->tail && st->frames[st->head].len_bytes >= len_bytes;
}

/* Try again with the frame in the bounce buffer. */
static bool
fill_pending(struct vhp_qpair *qp, struct vhp_work *work)
{
	struct vhp_stash *st = &qp->stash;
	uint32_t len_bytes = qp->pending_bytes;

	for (gather(qp, len_bytes, work); !fits(qp, len_bytes); gather(qp, len_bytes, work)) {
		if (all_posted(qp) || (!qp->mergeable && st->head != st->tail))
			return drop_large(qp, work);
		qp->starved = !qp->bad_next;
		if (qp->starved)
			return false;
		/* A bad chain comes before buffers that could help: these go back empty. */
		while (st->head != st->tail)
			consume(st, 0);
	}
	qp->starved = false;
	vhp_iov_write(
		st->iov + st->iov_head, st->iov_tail - st->iov_head, 0, qp->bounce, len_bytes);
	qp->pending_bytes = 0;
	deliver(qp, len_bytes, work);
	return true;
}

/* A frame has found too few buffers and lies in the bounce buffer. */
static bool
start_pending(struct vhp_qpair *qp, uint32_t len_bytes, struct vhp_work *work)
{
	qp->pending_bytes = len_bytes;
	qp->pending_tsc = qp->pending_cycles = 0;
	return fill_pending(qp, work);
}

/* The frame ran over: the first cap_bytes lie in guest buffers, the rest in the bounce buffer. */
static bool
fill_overrun(struct vhp_qpair *qp, uint32_t cap_bytes, uint32_t len_bytes, struct vhp_work *work)
{
	struct vhp_stash *st = &qp->stash;

	log_written(qp, st->iov + st->iov_head, st->iov_tail - st->iov_head,
		RTE_MIN(cap_bytes, len_bytes));
	if (len_bytes >= VHP_BOUNCE_BYTES)
		return drop_large(qp, work);
	/* Gathering may retire buffers, so the frame is first made whole on our side. */
	vhp_iov_read(st->iov + st->iov_head, st->iov_tail - st->iov_head, 0, qp->bounce, cap_bytes);
	return start_pending(qp, len_bytes, work);
}

/* Pieces of the oldest buffers that together hold want_bytes, or all there are. */
static uint32_t
window(const struct vhp_qpair *qp, uint32_t *cap_bytes)
{
	const struct vhp_stash *st = &qp->stash;
	/* Lengths are the guest's: a few of them sum to more than 32 bits. */
	uint64_t cap = 0;
	uint32_t n = 0;

	for (uint32_t i = st->head; i < st->tail; i++) {
		const struct vhp_frame *f = &st->frames[i];

		if (n + f->n_iov > VHP_MAX_IOV - 1)
			break;
		n += f->n_iov;
		cap += f->len_bytes;
		if (!qp->mergeable || cap >= qp->want_bytes)
			break;
	}
	*cap_bytes = RTE_MIN(cap, (uint64_t)UINT32_MAX);
	return n;
}

/* Large frames come in runs; a run of small ones makes the window small again. */
static void
adapt(struct vhp_qpair *qp, uint32_t len_bytes)
{
	if (len_bytes > WANT_SMALL_BYTES) {
		qp->want_bytes = WANT_LARGE_BYTES;
		qp->small_run = 0;
	} else if (++qp->small_run >= VHP_BURST_PKTS) {
		qp->want_bytes = WANT_SMALL_BYTES;
	}
}

/* Receive one frame; false if none waits or the guest has no buffers. */
static bool
fill_one(struct vhp_qpair *qp, struct vhp_work *work)
{
	struct vhp_stash *st = &qp->stash;
	struct vhp_frame slot = {0};
	uint32_t cap_bytes;

	if (qp->pending_bytes > 0)
		return fill_pending(qp, work);
	gather(qp, qp->want_bytes, work);
	/* Something to read into is enough: more is asked for when a frame runs over. */
	qp->starved = st->head == st->tail;
	if (qp->starved)
		return false;

	slot.iov = st->iov + st->iov_head;
	slot.n_iov = window(qp, &cap_bytes);
	if (cap_bytes < VHP_BOUNCE_BYTES) {
		struct iovec *spare = &slot.iov[slot.n_iov++];
		struct iovec saved = *spare;

		*spare = (struct iovec){qp->bounce + cap_bytes, VHP_BOUNCE_BYTES - cap_bytes};
		uint16_t n = qp->port->rx(qp->pq, &slot, 1);
		*spare = saved;
		if (n == 0)
			return false;
	} else if (qp->port->rx(qp->pq, &slot, 1) == 0) {
		return false;
	}
	adapt(qp, slot.len_bytes);
	/* Without the spare piece a frame may have been cut, or is longer than any should be. */
	if (unlikely(slot.len_bytes > cap_bytes || slot.len_bytes >= VHP_BOUNCE_BYTES))
		return fill_overrun(qp, cap_bytes, slot.len_bytes, work);
	deliver(qp, slot.len_bytes, work);
	return true;
}

/* Is it too early for a burst? If not, what the burst may be is in fill->room. */
static bool
put_off(struct vhp_qpair *qp, struct vhp_fill *fill)
{
	struct vhp_rate_room limit;

	fill->now_tsc = rte_rdtsc();
	if (vhp_rate_wait(fill->rate, fill->now_tsc, &limit) > 0) {
		qp->stats.limited[1]++;
		return true;
	}
	fill->room.pkts = RTE_MIN(fill->room.pkts, limit.pkts);
	fill->room.bytes = RTE_MIN(fill->room.bytes, RTE_MAX(limit.bytes, 1U));
	return false;
}

bool
vhp_receiveq_begin(struct vhp_qpair *qp, struct vhp_fill *fill)
{
	*fill = (struct vhp_fill){
		.rate = __atomic_load_n(&qp->rx_rate, __ATOMIC_RELAXED),
		.room = {VHP_BURST_PKTS, BURST_BYTES},
	};
	if (!qp->rx.running || unlikely(qp->rx.fault != VHP_RING_OK))
		return false;
	if (unlikely(fill->rate != NULL) && put_off(qp, fill))
		return false;
	stash_compact(&qp->stash);
	return true;
}

static inline bool
goes_on(const struct vhp_qpair *qp, const struct vhp_fill *fill)
{
	const struct vhp_work *burst = &fill->work;

	return burst->pkts < fill->room.pkts && burst->bytes < fill->room.bytes &&
	       burst->descs < BURST_DESCS && qp->rx.fault == VHP_RING_OK;
}

bool
vhp_receiveq_give(struct vhp_qpair *qp, struct vhp_fill *fill, const struct vhp_given *frame)
{
	const struct vhp_stash *st = &qp->stash;
	uint32_t len_bytes = qp->hdr_bytes + frame->len_bytes;
	const struct iovec bounce = {qp->bounce, VHP_BOUNCE_BYTES};
	const struct iovec *to = &bounce;
	uint32_t n_to = 1;

	/* One that waits in the bounce buffer is older. */
	if (!goes_on(qp, fill) || unlikely(qp->pending_bytes > 0))
		return false;
	gather(qp, len_bytes, &fill->work);
	qp->starved = st->head == st->tail;
	if (qp->starved)
		return false;
	if (likely(fits(qp, len_bytes))) {
		to = st->iov + st->iov_head;
		n_to = st->iov_tail - st->iov_head;
	}
	vhp_iov_write(to, n_to, 0, &frame->hdr, sizeof(frame->hdr));
	vhp_iov_copy(
		to, n_to, qp->hdr_bytes, frame->iov, frame->n_iov, frame->at, frame->len_bytes);
	if (likely(to != &bounce)) {
		deliver(qp, len_bytes, &fill->work);
		qp->stats.straight++;
	} else {
		start_pending(qp, len_bytes, &fill->work);
	}
	return true;
}

void
vhp_receiveq_end(struct vhp_qpair *qp, struct vhp_fill *fill)
{
	if (qp->starved)
		qp->stats.no_buffers++;
	flush(qp);
	if (qp->call_due) {
		qp->call_due = false;
		vhp_vring_call(&qp->rx);
	}
	if (unlikely(fill->rate != NULL) && fill->work.pkts > 0)
		vhp_rate_charge(fill->rate, fill->now_tsc, fill->work.pkts, fill->work.bytes);
}

void
vhp_receiveq_fill(struct vhp_qpair *qp, struct vhp_work *work)
{
	struct vhp_fill fill;

	if (!vhp_receiveq_begin(qp, &fill))
		return;
	while (goes_on(qp, &fill) && fill_one(qp, &fill.work))
		;
	if (unlikely(qp->pq->refused > 0)) {
		qp->rx.stats.drops[VHP_DROP_HEADER] += qp->pq->refused;
		qp->pq->refused = 0;
	}
	if (unlikely(qp->pq->wait == VHP_PORT_MEMORY))
		vhp_vring_break(&qp->rx, VHP_RING_MEMORY);
	vhp_receiveq_end(qp, &fill);
	work->pkts += fill.work.pkts;
	work->bytes += fill.work.bytes;
	work->descs += fill.work.descs;
}

void
vhp_receiveq_start(struct vhp_qpair *qp)
{
	struct vhp_stash *st = &qp->stash;

	st->head = st->tail = st->put = 0;
	st->iov_head = st->iov_tail = 0;
	st->bytes = 0;
	qp->starved = false;
	qp->call_due = false;
	qp->want_bytes = WANT_SMALL_BYTES;
	qp->small_run = 0;
}

void
vhp_receiveq_untake(struct vhp_qpair *qp)
{
	struct vhp_stash *st = &qp->stash;

	qp->rx.ops->untake(&qp->rx, st->frames + st->head, st->tail - st->head);
	vhp_receiveq_start(qp);
}
