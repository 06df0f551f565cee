/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drain: from the guest's transmitq to the port, or to another guest (straight.c), one copy
 * and no loss: what they do not take stays in the ring.
 */
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_per_lcore.h>

#include "qpair.h"

/* Frames and pieces of the burst at hand; each poller has its own. */
static RTE_DEFINE_PER_LCORE(struct vhp_scratch, scratch);

/* What is no frame at all is dropped here, so that no port has to look. */
static void
check_length(const struct vhp_qpair *qp, struct vhp_frame *f)
{
	if (unlikely(f->drop != VHP_OK))
		return;
	if (unlikely(f->len_bytes < (uint32_t)qp->hdr_bytes + VHP_MIN_FRAME_BYTES))
		f->drop = VHP_DROP_SHORT;
	else if (unlikely(f->len_bytes > (uint32_t)qp->hdr_bytes + VHP_MAX_FRAME_BYTES))
		f->drop = VHP_DROP_LONG;
}

/* The guest's network driver is off: its frames are used up, not sent. */
static uint16_t
discard(struct vhp_frame *frames, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		frames[i].drop = VHP_DROP_DISABLED;
	return n;
}

/* Returns the frames that are done with. */
static uint16_t
send(struct vhp_qpair *qp, struct vhp_frame *frames, uint16_t n, struct vhp_work *work)
{
	if (unlikely(qp->tx.discard))
		return discard(frames, n);
	if (qp->peer != NULL)
		return vhp_straight_send(qp, frames, n, work);
	return qp->port->tx(qp->pq, frames, n);
}

/* What of a burst is within the limit; the rest goes back into the ring. */
static uint16_t
hold_back(struct vhp_qpair *qp, struct vhp_frame *frames, uint16_t n, uint64_t now_tsc,
	const struct vhp_rate *rate)
{
	struct vhp_rate_room room;
	uint64_t bytes = 0;
	uint16_t keep = 0;

	if (vhp_rate_wait(rate, now_tsc, &room) > 0)
		room = (struct vhp_rate_room){.pkts = 1};
	while (keep < n && keep < room.pkts && (keep == 0 || bytes <= room.bytes))
		bytes += frames[keep++].len_bytes;
	if (keep < n)
		qp->tx.ops->untake(&qp->tx, frames + keep, n - keep);
	return keep;
}

static bool
put_off(struct vhp_qpair *qp, const struct vhp_rate *rate, uint64_t now_tsc)
{
	bool wait = vhp_rate_wait(rate, now_tsc, NULL) > 0;

	qp->stats.limited[0] += wait;
	return wait;
}

static void
count(struct vhp_qpair *qp, const struct vhp_frame *frames, uint16_t n, struct vhp_work *work)
{
	struct vhp_ring_stats *stats = &qp->tx.stats;
	uint32_t bytes = 0;
	uint32_t pkts = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (unlikely(frames[i].drop != VHP_OK)) {
			stats->drops[frames[i].drop]++;
			continue;
		}
		bytes += frames[i].len_bytes - qp->hdr_bytes;
		pkts++;
	}
	stats->pkts += pkts;
	stats->bytes += bytes;
	/* Dropped frames are work, too: a guest must not get more time by breaking rules. */
	work->pkts += n;
	work->bytes += bytes;
	work->descs += qp->tx.steps;
}

/* What has gone to the port. */
static void
capture(struct vhp_qpair *qp, const struct vhp_frame *frames, uint16_t n)
{
	struct vhp_pcap_ring *ring = __atomic_load_n(&qp->pcap, __ATOMIC_ACQUIRE);

	for (uint16_t i = 0; i < n && ring != NULL; i++)
		if (frames[i].drop == VHP_OK)
			vhp_pcap_add(ring, VHP_PCAP_FROM_GUEST, frames[i].iov, frames[i].n_iov,
				frames[i].len_bytes, qp->hdr_bytes);
}

void
vhp_transmitq_drain(struct vhp_qpair *qp, struct vhp_work *work)
{
	struct vhp_scratch *s = &RTE_PER_LCORE(scratch);
	struct vhp_vring *vr = &qp->tx;

	struct vhp_rate *rate = __atomic_load_n(&qp->tx_rate, __ATOMIC_RELAXED);
	uint64_t now_tsc = 0;

	if (!vr->running || unlikely(vr->fault != VHP_RING_OK))
		return;
	if (unlikely(rate != NULL)) {
		now_tsc = rte_rdtsc();
		if (put_off(qp, rate, now_tsc))
			return;
	}

	uint16_t most = qp->peer != NULL ? qp->give_pkts : VHP_BURST_PKTS;
	uint16_t n = vr->ops->take(vr, s->frames, most, s->iov, RTE_DIM(s->iov));
	if (n == 0)
		return;
	if (unlikely(rate != NULL))
		n = hold_back(qp, s->frames, n, now_tsc, rate);
	for (uint16_t i = 0; i < n; i++)
		check_length(qp, &s->frames[i]);

	uint16_t done = send(qp, s->frames, n, work);

	if (unlikely(qp->pq->wait == VHP_PORT_MEMORY))
		vhp_vring_break(vr, VHP_RING_MEMORY);
	if (unlikely(done < n)) {
		vr->ops->untake(vr, s->frames + done, n - done);
		qp->stats.port_full++;
	}
	if (unlikely(qp->pcap != NULL))
		capture(qp, s->frames, done);
	if (likely(done > 0)) {
		/* used_bytes is 0: the device wrote nothing (virtio 1.2, 2.7.8.2). */
		vr->ops->put(vr, s->frames, done);
		vhp_vring_call(vr);
		uint32_t before_bytes = work->bytes;
		count(qp, s->frames, done, work);
		if (unlikely(rate != NULL))
			vhp_rate_charge(rate, now_tsc, done, work->bytes - before_bytes);
	}
}
