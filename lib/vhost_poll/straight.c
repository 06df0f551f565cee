/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From one guest's transmitq straight into another's receiveq, one copy, where the same poller
 * serves both (handoff.c knows, interleave.c asks). Frames that the port has to change on the
 * way, and those behind them until it has none left, go by the port, in order.
 *
 * No frame waits here: what the receiver has no buffers for stays in the sender's ring.
 */
#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "qpair.h"
#include "vhp_iov.h"

static bool
is_there(const struct vhp_qpair *qp)
{
	return qp->rx.running && qp->rx.fault == VHP_RING_OK;
}

/* Copies the header once: what is decided about it and what the receiver gets is the copy. */
static bool
passes(const struct vhp_qpair *qp, const struct vhp_frame *f, struct vhp_given *given)
{
	given->iov = f->iov;
	given->n_iov = f->n_iov;
	given->at = qp->hdr_bytes;
	given->len_bytes = f->len_bytes - qp->hdr_bytes;
	vhp_iov_read(f->iov, f->n_iov, 0, &given->hdr, sizeof(given->hdr));
	return qp->port->passes(qp->pq, &given->hdr, given->len_bytes);
}

/* Frames given; *by_port: the next one has to go the other way. */
static uint16_t
give(struct vhp_qpair *qp, const struct vhp_frame *frames, uint16_t n, struct vhp_fill *fill,
	bool *by_port)
{
	struct vhp_given given;
	uint16_t i;

	for (i = 0; i < n; i++) {
		if (unlikely(frames[i].drop != VHP_OK))
			continue;
		*by_port = !passes(qp, &frames[i], &given);
		if (*by_port || !vhp_receiveq_give(qp->peer, fill, &given))
			break;
	}
	return i;
}

/* Large frames fill a burst soon: descriptors of more would be read for nothing. */
static void
adapt(struct vhp_qpair *qp, uint16_t done, uint16_t n)
{
	if (done == n)
		qp->give_pkts = RTE_MIN(2 * qp->give_pkts, VHP_BURST_PKTS);
	else if (!qp->peer->starved)
		qp->give_pkts = RTE_MAX(done, 1);
}

uint16_t
vhp_straight_send(struct vhp_qpair *qp, struct vhp_frame *frames, uint16_t n, struct vhp_work *work)
{
	struct vhp_qpair *to = qp->peer;
	bool by_port = false;
	struct vhp_fill fill;
	uint16_t done = 0;

	qp->pq->wait = VHP_PORT_READY;
	if (vhp_receiveq_begin(to, &fill)) {
		done = give(qp, frames, n, &fill, &by_port);
		vhp_receiveq_end(to, &fill);
		/* Its packets and bytes are the sender's, too; what its buffers cost is not. */
		work->descs += fill.work.descs;
	}
	/* For a receiver that is away the port keeps them. */
	if (done < n && (by_port || unlikely(!is_there(to))))
		done += qp->port->tx(qp->pq, frames + done, n - done);
	adapt(qp, done, n);
	if (done < n && is_there(to)) {
		/* The receiver waits for buffers, for its rate or for a turn: idle.c sees that. */
		qp->pq->wait = VHP_PORT_PEER;
		to->pq->pending = true;
	}
	return done;
}
