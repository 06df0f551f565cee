/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rule that the project is named for: how the two directions of a qpair share its
 * turn on the core.
 */
#include "qpair.h"

/*
 * A turn ends after so much work, so that no qpair starves the others; the figures for
 * packets and bytes are vhost-net's (VHOST_NET_PKT_WEIGHT, VHOST_NET_WEIGHT).
 */
#define WEIGHT_PKTS  256
#define WEIGHT_BYTES 0x80000
#define WEIGHT_DESCS 8192

static inline bool
exhausted(const struct vhp_work *work)
{
	return work->pkts >= WEIGHT_PKTS || work->bytes >= WEIGHT_BYTES ||
	       work->descs >= WEIGHT_DESCS;
}

/*
 * A burst of the host side. That of a guest that is joined with another of the same poller is
 * the other's transmitq; what had to take the way by the port comes first.
 */
static void
receive(struct vhp_qpair *qp, struct vhp_work *work)
{
	vhp_receiveq_fill(qp, work);
	if (qp->peer == NULL)
		return;
	qp->peer->peer = qp;
	vhp_transmitq_drain(qp->peer, work);
}

/* The host side is looked at after every transmit burst. */
void
vhp_turn_interleave(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work)
{
	uint32_t before;

	(void)now_tsc;
	do {
		before = work->pkts;
		vhp_transmitq_drain(qp, work);
		receive(qp, work);
	} while (work->pkts != before && !exhausted(work));
}

/*
 * The host side waits until the transmitq is empty *and* stayed so for the poll window, or
 * until the transmit side has used up its weight: vhost-net's worker before Linux 4.20.
 */
void
vhp_turn_deferred(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work)
{
	struct vhp_work rx = {0};
	uint32_t before;

	do {
		before = work->pkts;
		vhp_transmitq_drain(qp, work);
	} while (work->pkts != before && !exhausted(work));

	if (!exhausted(work)) {
		if (work->pkts > 0)
			qp->tx_window_end_tsc = now_tsc + qp->window_cycles;
		if (now_tsc < qp->tx_window_end_tsc)
			return;
	}
	do {
		before = rx.pkts;
		vhp_receiveq_fill(qp, &rx);
	} while (rx.pkts != before && !exhausted(&rx));
	work->pkts += rx.pkts;
	work->bytes += rx.bytes;
	work->descs += rx.descs;
}
