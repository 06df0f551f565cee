/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a qpair; what happens with it is in transmitq.c and receiveq.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem_node.h"
#include "qpair.h"

int
vhp_qpair_init(struct vhp_qpair *qp, const char *dev_name, uint16_t index)
{
	memset(qp, 0, sizeof(*qp));
	snprintf(qp->name, sizeof(qp->name), "%s:%u", dev_name, index);
	qp->tx.kick_fd = qp->tx.call_fd = -1;
	qp->rx.kick_fd = qp->rx.call_fd = -1;
	qp->rx.device_writes = true;
	qp->give_pkts = VHP_BURST_PKTS;
	for (int i = 0; i < VHP_WAKES; i++)
		qp->wake[i] = (struct vhp_wake){.qp = qp, .kind = i, .fd = -1};
	qp->bounce = malloc(VHP_BOUNCE_BYTES);
	return qp->bounce != NULL ? 0 : -ENOMEM;
}

int
vhp_qpair_resize(struct vhp_qpair *qp, uint16_t ring_size)
{
	struct vhp_stash *st = &qp->stash;
	/* Twice the ring, so that the arrays need not be a ring themselves. */
	uint32_t room = 2U * ring_size;
	uint32_t iov_room = room + 2 * VHP_MAX_IOV;

	if (room > st->room) {
		free(st->frames);
		free(st->iov);
		*st = (struct vhp_stash){
			.frames = calloc(room, sizeof(st->frames[0])),
			/* One more: the spare piece that receiveq.c puts behind the last. */
			.iov = calloc(iov_room + 1, sizeof(st->iov[0])),
			.room = room,
			.iov_room = iov_room,
		};
		if (st->frames == NULL || st->iov == NULL) {
			st->room = 0;
			return -ENOMEM;
		}
	}
	return 0;
}

void
vhp_qpair_place(struct vhp_qpair *qp, int node)
{
	const struct vhp_stash *st = &qp->stash;

	vhp_numa_place(qp, sizeof(*qp), node);
	vhp_numa_place(qp->bounce, VHP_BOUNCE_BYTES, node);
	vhp_numa_place(st->frames, st->room * sizeof(st->frames[0]), node);
	vhp_numa_place(st->iov, (st->iov_room + 1) * sizeof(st->iov[0]), node);
}

static void
disarm_ring(struct vhp_vring *vr)
{
	if (vr->running && vr->armed)
		vr->ops->disarm(vr);
}

void
vhp_qpair_disarm(struct vhp_qpair *qp)
{
	disarm_ring(&qp->tx);
	disarm_ring(&qp->rx);
	if (qp->pq->armed)
		qp->port->disarm(qp->pq);
	qp->pq->armed = false;
	/* Busy polling writes and sees for itself whether there is room. */
	qp->pq->wait = VHP_PORT_READY;
}

void
vhp_qpair_fini(struct vhp_qpair *qp)
{
	vhp_pcap_qpair_gone(qp);
	free(qp->stash.frames);
	free(qp->stash.iov);
	free(qp->bounce);
	memset(qp, 0, sizeof(*qp));
}
