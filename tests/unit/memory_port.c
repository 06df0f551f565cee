/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "memory_port.h"

static struct memory_port *
port_of(struct vhp_port_queue *pq)
{
	return container_of(pq, struct memory_port, pq);
}

static void
note_call(struct memory_port *p, char what)
{
	if (p->n_trace < sizeof(p->trace) - 1)
		p->trace[p->n_trace++] = what;
}

static void
check_pieces(struct memory_port *p, const struct vhp_frame *f)
{
	CHECK(f->n_iov <= VHP_MAX_IOV);
	for (uint16_t i = 0; i < f->n_iov; i++)
		if (p->check_piece != NULL)
			p->check_piece(p->ctx, &f->iov[i]);
}

/* The frame as one block. */
static struct memory_frame
collect(const struct vhp_frame *f)
{
	struct memory_frame out = {.bytes = malloc(f->len_bytes), .len_bytes = f->len_bytes};
	uint32_t done = 0;

	CHECK(out.bytes != NULL);
	for (uint16_t i = 0; i < f->n_iov; i++) {
		CHECK(f->iov[i].iov_len <= f->len_bytes - done);
		memcpy(out.bytes + done, f->iov[i].iov_base, f->iov[i].iov_len);
		done += f->iov[i].iov_len;
	}
	CHECK(done == f->len_bytes);
	return out;
}

static uint16_t
memory_tx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct memory_port *p = port_of(pq);
	uint16_t i;

	p->tx_calls++;
	note_call(p, 't');
	CHECK(n > 0 && n <= VHP_BURST_PKTS);
	for (i = 0; i < n; i++) {
		struct vhp_frame *f = &frames[i];
		struct memory_frame frame;

		if (f->drop != VHP_OK)
			continue;
		if (p->tx_room == 0) {
			pq->wait = p->full;
			break;
		}
		p->tx_room--;
		check_pieces(p, f);
		frame = collect(f);
		if (p->refuse != VHP_OK && frame.bytes[0] == 0xfe) {
			f->drop = p->refuse;
			free(frame.bytes);
			continue;
		}
		CHECK(p->sent.tail - p->sent.head < MEMORY_PORT_FRAMES);
		p->sent.frames[p->sent.tail++ % MEMORY_PORT_FRAMES] = frame;
	}
	return i;
}

static uint16_t
memory_rx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct memory_port *p = port_of(pq);
	uint16_t i;

	p->rx_calls++;
	note_call(p, 'r');
	for (i = 0; i < n && memory_queue_count(&p->host) > 0; i++) {
		struct memory_frame frame = memory_queue_pop(&p->host);
		struct vhp_frame *f = &frames[i];
		uint32_t done = 0;

		check_pieces(p, f);
		for (uint16_t k = 0; k < f->n_iov && done < frame.len_bytes; k++) {
			size_t len = RTE_MIN(f->iov[k].iov_len, (size_t)frame.len_bytes - done);

			memcpy(f->iov[k].iov_base, frame.bytes + done, len);
			done += len;
		}
		f->len_bytes = done;
		free(frame.bytes);
	}
	return i;
}

static int
memory_arm(struct vhp_port_queue *pq)
{
	struct memory_port *p = port_of(pq);
	int found = memory_queue_count(&p->host) > 0;

	p->arm_calls++;
	p->tells = true;
	return p->on_arm != NULL ? p->on_arm(p, found) : found;
}

static void
memory_disarm(struct vhp_port_queue *pq)
{
	struct memory_port *p = port_of(pq);
	eventfd_t count;

	p->disarm_calls++;
	CHECK(p->tells);
	p->tells = false;
	eventfd_read(pq->fd, &count);
}

static int
memory_configure(struct vhp_port_queue *pq, uint64_t virtio_features)
{
	(void)pq;
	(void)virtio_features;
	return 0;
}

static int
memory_steer(struct vhp_port_queue *pq, bool on)
{
	(void)pq;
	(void)on;
	return 0;
}

static int
memory_set_mtu(struct vhp_port *port, uint16_t mtu_bytes)
{
	(void)port;
	(void)mtu_bytes;
	return 0;
}

static uint64_t
memory_features(const struct vhp_port *port)
{
	(void)port;
	return 0;
}

static void
memory_close(struct vhp_port *port)
{
	(void)port;
}

static const struct vhp_port_ops memory_ops = {
	.tx = memory_tx,
	.rx = memory_rx,
	.configure = memory_configure,
	.steer = memory_steer,
	.set_mtu = memory_set_mtu,
	.features = memory_features,
	.close = memory_close,
};

static const struct vhp_port_ops memory_intr_ops = {
	.tx = memory_tx,
	.rx = memory_rx,
	.arm = memory_arm,
	.disarm = memory_disarm,
	.configure = memory_configure,
	.steer = memory_steer,
	.set_mtu = memory_set_mtu,
	.features = memory_features,
	.close = memory_close,
};

void
memory_port_init(struct memory_port *p, uint16_t hdr_bytes)
{
	memset(p, 0, sizeof(*p));
	strcpy(p->port.name, "memory0");
	p->port.ops = &memory_ops;
	p->port.n_queues = 1;
	p->port.queues = p->queues;
	p->queues[0] = &p->pq;
	p->pq = (struct vhp_port_queue){.port = &p->port, .fd = -1, .hdr_bytes = hdr_bytes};
	p->tx_room = UINT32_MAX;
	p->full = VHP_PORT_FULL;
}

void
memory_port_fini(struct memory_port *p)
{
	memory_queue_clear(&p->sent);
	memory_queue_clear(&p->host);
	if (p->pq.fd >= 0)
		close(p->pq.fd);
}

void
memory_port_intr(struct memory_port *p)
{
	p->port.ops = &memory_intr_ops;
	p->pq.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(p->pq.fd >= 0);
}

void
memory_port_arrive(struct memory_port *p, const void *bytes, uint32_t len_bytes)
{
	memory_queue_push(&p->host, bytes, len_bytes);
	if (p->tells)
		CHECK(eventfd_write(p->pq.fd, 1) == 0);
}

uint32_t
memory_queue_count(const struct memory_queue *q)
{
	return q->tail - q->head;
}

void
memory_queue_push(struct memory_queue *q, const void *bytes, uint32_t len_bytes)
{
	struct memory_frame *f = &q->frames[q->tail % MEMORY_PORT_FRAMES];

	CHECK(memory_queue_count(q) < MEMORY_PORT_FRAMES);
	f->bytes = malloc(len_bytes);
	f->len_bytes = len_bytes;
	CHECK(f->bytes != NULL);
	memcpy(f->bytes, bytes, len_bytes);
	q->tail++;
}

struct memory_frame
memory_queue_pop(struct memory_queue *q)
{
	CHECK(memory_queue_count(q) > 0);
	return q->frames[q->head++ % MEMORY_PORT_FRAMES];
}

void
memory_queue_check(struct memory_queue *q, const void *bytes, uint32_t len_bytes)
{
	struct memory_frame f = memory_queue_pop(q);

	CHECK(f.len_bytes == len_bytes);
	CHECK(memcmp(f.bytes, bytes, len_bytes) == 0);
	free(f.bytes);
}

void
memory_queue_clear(struct memory_queue *q)
{
	while (memory_queue_count(q) > 0)
		free(memory_queue_pop(q).bytes);
}
