/* SPDX-License-Identifier: BSD-3-Clause */
/* Two guests joined with each other; see vm.h. vm_lane.c is what lies between them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "log.h"
#include "offload.h"
#include "vhp_iov.h"
#include "vm.h"
#include "vm_lane.h"

/* A lane that stays full for so long leads to a guest that is not there. */
#define ABSENT_S 1

struct vm_queue {
	struct vhp_port_queue pq;
	struct vm_lane in;       /* frames for our guest; we take */
	struct vm_lane *out;     /* the other side's in; we put */
	uint64_t features;       /* what our guest accepted; main thread, while no poller has it */
	uint64_t full_at;        /* poller: position of the other side when the lane got full, */
	uint64_t full_tsc;       /* and when; 0: it is not */
	struct vhp_segments cut; /* of the first frame in the lane; n 0: it is whole; poller */
	uint16_t cut_next;
};

struct vm_port {
	struct vhp_port port;
	struct vm_link *link;
	struct vm_queue *queues;
};

/* Both ports; freed with the second of them. */
struct vm_link {
	struct vm_port ports[2];
	int open;
};

/* ---- our guest sends ------------------------------------------------------------- */

static void
mark_full(struct vm_queue *q)
{
	uint64_t taken_at = __atomic_load_n(&q->out->taken_at, __ATOMIC_RELAXED);
	uint64_t now_tsc = rte_rdtsc();

	if (q->full_tsc == 0 || q->full_at != taken_at) {
		q->full_at = taken_at;
		q->full_tsc = now_tsc;
	}
	q->pq.wait =
		now_tsc - q->full_tsc < ABSENT_S * rte_get_tsc_hz() ? VHP_PORT_BUSY : VHP_PORT_DOWN;
}

/* What of a header is the receiver's business; returns false if it makes no sense. */
static bool
clean_header(struct virtio_net_hdr *hdr, uint32_t frame_bytes)
{
	hdr->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	return vhp_offload_is_sane(hdr, frame_bytes);
}

/* Behind frames that wait in the lane, none overtakes. */
static bool
vm_passes(const struct vhp_port_queue *pq, struct virtio_net_hdr *hdr, uint32_t frame_bytes)
{
	const struct vm_queue *q = container_of(pq, struct vm_queue, pq);
	const struct vm_queue *far = container_of(pq->far, struct vm_queue, pq);

	return clean_header(hdr, frame_bytes) && vm_lane_is_empty(q->out) &&
	       vhp_offload_guest_takes(hdr, far->features);
}

static uint16_t
vm_tx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct vm_queue *q = container_of(pq, struct vm_queue, pq);
	uint16_t i;

	for (i = 0; i < n; i++) {
		struct vhp_frame *f = &frames[i];
		uint32_t len_bytes = f->len_bytes - pq->hdr_bytes;
		struct vm_record *r;

		if (unlikely(f->drop != VHP_OK))
			continue;
		r = vm_lane_room(q->out, len_bytes);
		if (unlikely(r == NULL)) {
			mark_full(q);
			break;
		}
		r->len_bytes = len_bytes;
		vhp_iov_read(f->iov, f->n_iov, 0, &r->hdr, sizeof(r->hdr));
		if (unlikely(!clean_header(&r->hdr, len_bytes))) {
			f->drop = VHP_DROP_HEADER;
			continue;
		}
		vhp_iov_read(f->iov, f->n_iov, pq->hdr_bytes, r + 1, len_bytes);
		vm_lane_put(q->out, r);
		q->full_tsc = 0;
	}
	if (i > 0)
		vm_lane_wake(q->out);
	return i;
}

/* ---- our guest receives ---------------------------------------------------------- */

static void
write_frame(const struct vm_queue *q, const struct vm_record *r, struct vhp_frame *f)
{
	vhp_iov_write(f->iov, f->n_iov, 0, &r->hdr, sizeof(r->hdr));
	vhp_iov_write(f->iov, f->n_iov, q->pq.hdr_bytes, r + 1, r->len_bytes);
	f->len_bytes = q->pq.hdr_bytes + r->len_bytes;
}

/* Returns true with the last one. */
static bool
write_segment(struct vm_queue *q, struct vhp_frame *f)
{
	static const struct virtio_net_hdr plain;
	uint8_t hdr[VHP_OFFLOAD_HDR_BYTES];
	uint32_t payload_at;
	uint32_t payload_bytes = vhp_segment(&q->cut, q->cut_next, hdr, &payload_at);
	uint32_t at = q->pq.hdr_bytes;

	vhp_iov_write(f->iov, f->n_iov, 0, &plain, sizeof(plain));
	vhp_iov_write(f->iov, f->n_iov, at, hdr, q->cut.hdr_bytes);
	at += q->cut.hdr_bytes;
	vhp_iov_write(f->iov, f->n_iov, at, q->cut.frame + payload_at, payload_bytes);
	f->len_bytes = at + payload_bytes;
	if (++q->cut_next < q->cut.n)
		return false;
	q->cut.n = 0;
	return true;
}

/* The first frame, or part of it; returns false if it is none that a guest can be given. */
static bool
deliver(struct vm_queue *q, struct vm_record *r, struct vhp_frame *f)
{
	uint8_t *frame = (uint8_t *)(r + 1);

	if (q->cut.n == 0 && r->hdr.gso_type != VIRTIO_NET_HDR_GSO_NONE &&
		!vhp_offload_guest_takes(&r->hdr, q->features)) {
		if (vhp_segments_start(&q->cut, &r->hdr, frame, r->len_bytes) < 0) {
			q->cut.n = 0;
			vm_lane_take(&q->in, r);
			return false;
		}
		q->cut_next = 0;
	}
	if (q->cut.n > 0) {
		if (write_segment(q, f))
			vm_lane_take(&q->in, r);
		return true;
	}
	if (!vhp_offload_guest_takes(&r->hdr, q->features)) {
		int ret = vhp_offload_checksum(&r->hdr, frame, r->len_bytes);

		r->hdr = (struct virtio_net_hdr){0};
		if (ret < 0) {
			vm_lane_take(&q->in, r);
			return false;
		}
	}
	write_frame(q, r, f);
	vm_lane_take(&q->in, r);
	return true;
}

static uint16_t
vm_rx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct vm_queue *q = container_of(pq, struct vm_queue, pq);
	uint16_t done = 0;

	for (uint16_t tries = 0; done < n && tries < n + VHP_BURST_PKTS; tries++) {
		struct vm_record *r = vm_lane_first(&q->in);

		if (r == NULL) {
			pq->pending = false;
			return done;
		}
		if (likely(deliver(q, r, &frames[done])))
			done++;
		else
			pq->refused++;
	}
	/* fd tells only whoever has seen the lane empty. */
	pq->pending = true;
	return done;
}

/* ---- life ------------------------------------------------------------------------ */

static int
vm_configure(struct vhp_port_queue *pq, uint64_t virtio_features)
{
	/* Frames that wait take any form when they are received. */
	container_of(pq, struct vm_queue, pq)->features = virtio_features;
	return 0;
}

static int
vm_steer(struct vhp_port_queue *pq, bool on)
{
	(void)pq;
	(void)on;
	return 0;
}

static int
vm_set_mtu(struct vhp_port *port, uint16_t mtu_bytes)
{
	(void)port;
	(void)mtu_bytes;
	return 0;
}

uint64_t
vhp_vm_features(void)
{
	return 1ULL << VIRTIO_NET_F_CSUM | 1ULL << VIRTIO_NET_F_GUEST_CSUM |
	       1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6 |
	       1ULL << VIRTIO_NET_F_HOST_ECN | 1ULL << VIRTIO_NET_F_GUEST_TSO4 |
	       1ULL << VIRTIO_NET_F_GUEST_TSO6 | 1ULL << VIRTIO_NET_F_GUEST_ECN | VHP_NET_F_USO;
}

static uint64_t
vm_features(const struct vhp_port *port)
{
	(void)port;
	return vhp_vm_features();
}

static void
free_port(struct vm_port *vm)
{
	for (uint16_t i = 0; vm->queues != NULL && i < vm->port.n_queues; i++)
		vm_lane_fini(&vm->queues[i].in);
	free(vm->queues);
	free(vm->port.queues);
}

static void
vm_close(struct vhp_port *port)
{
	struct vm_link *link = container_of(port, struct vm_port, port)->link;

	/* The other port's device may still put frames into our lanes. */
	if (--link->open > 0)
		return;
	free_port(&link->ports[0]);
	free_port(&link->ports[1]);
	free(link);
}

static const struct vhp_port_ops vm_ops = {
	.tx = vm_tx,
	.rx = vm_rx,
	.passes = vm_passes,
	.configure = vm_configure,
	.steer = vm_steer,
	.set_mtu = vm_set_mtu,
	.features = vm_features,
	.close = vm_close,
};

static int
init_port(struct vm_port *vm, struct vm_link *link, const char *name, uint16_t queues)
{
	int ret = 0;

	vm->link = link;
	vm->port.ops = &vm_ops;
	strncpy(vm->port.name, name, sizeof(vm->port.name) - 1);
	vm->queues = aligned_alloc(RTE_CACHE_LINE_SIZE, queues * sizeof(vm->queues[0]));
	vm->port.queues = calloc(queues, sizeof(vm->port.queues[0]));
	if (vm->queues == NULL || vm->port.queues == NULL)
		return -ENOMEM;
	memset(vm->queues, 0, queues * sizeof(vm->queues[0]));
	vm->port.n_queues = queues;
	for (uint16_t i = 0; i < queues; i++)
		vm->queues[i].in.fd = -1;
	for (uint16_t i = 0; i < queues && ret == 0; i++) {
		struct vm_queue *q = &vm->queues[i];

		ret = vm_lane_init(&q->in);
		q->pq = (struct vhp_port_queue){.port = &vm->port, .fd = q->in.fd};
		vm->port.queues[i] = &q->pq;
	}
	return ret;
}

static void
join(struct vm_queue *q, struct vm_queue *far)
{
	q->out = &far->in;
	q->pq.far = &far->pq;
}

int
vhp_vm_open(const struct vhp_vm_conf *conf, struct vhp_port *out[2])
{
	struct vm_link *link = calloc(1, sizeof(*link));
	int ret = 0;

	if (link == NULL)
		return -ENOMEM;
	link->open = 1;
	for (int i = 0; i < 2 && ret == 0; i++)
		ret = init_port(&link->ports[i], link, conf->names[1 - i], conf->queues);
	if (ret < 0) {
		VHP_LOG(ERR, "%s: cannot be joined with %s: %s", conf->names[0], conf->names[1],
			strerror(-ret));
		vm_close(&link->ports[0].port);
		return ret;
	}
	for (uint16_t i = 0; i < conf->queues; i++) {
		join(&link->ports[0].queues[i], &link->ports[1].queues[i]);
		join(&link->ports[1].queues[i], &link->ports[0].queues[i]);
	}
	link->open = 2;
	out[0] = &link->ports[0].port;
	out[1] = &link->ports[1].port;
	return 0;
}
