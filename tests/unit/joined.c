/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "drivers/net/vm/vm.h"
#include "joined.h"

/* Frames to send lie in a region of their own. */
#define TX_REGION 3
#define TX_GPA    0x200000000ULL
#define TX_BYTES  (24ULL << 20)
#define TABLE_GAP (64 * sizeof(struct vring_desc))

static struct rx_driver *
guest_new(const struct joined_guest *conf, struct vhp_port *port)
{
	struct rx_driver *d =
		rx_new(conf->ring_size, conf->packed, conf->hdr_bytes, conf->mergeable);
	struct vhp_mem *mem = &d->w->g.mem;

	CHECK(mem->n_regions == TX_REGION);
	mem->regions[mem->n_regions++] = (struct vhp_mem_region){
		.gpa = TX_GPA,
		.size_bytes = TX_BYTES,
		.hva = aligned_alloc(4096, TX_BYTES),
	};
	CHECK(mem->regions[TX_REGION].hva != NULL);
	d->w->qp.pq = port->queues[0];
	d->w->qp.port = port->ops;
	d->w->qp.features = conf->features;
	port->queues[0]->hdr_bytes = conf->hdr_bytes;
	CHECK(port->ops->configure(port->queues[0], conf->features) == 0);
	d->w->qp.tx.running = d->w->qp.rx.running = true;
	return d;
}

struct joined *
joined_new(const struct joined_guest *a, const struct joined_guest *b)
{
	const struct vhp_vm_conf conf = {.names = {"net_vhost0", "net_vhost1"}, .queues = 1};
	struct joined *j = calloc(1, sizeof(*j));

	CHECK(j != NULL);
	CHECK(vhp_vm_open(&conf, j->ports) == 0);
	j->d[0] = guest_new(a, j->ports[0]);
	j->d[1] = guest_new(b, j->ports[1]);
	j->tx_at[0] = j->tx_at[1] = TX_GPA;
	joined_same_poller(j, true);
	return j;
}

void
joined_free(struct joined *j)
{
	for (int i = 0; i < 2; i++)
		rx_free(j->d[i]);
	for (int i = 0; i < 2; i++)
		j->ports[i]->ops->close(j->ports[i]);
	free(j);
}

void
joined_same_poller(struct joined *j, bool same)
{
	for (int i = 0; i < 2; i++)
		joined_qpair(j, i)->peer = same ? joined_qpair(j, 1 - i) : NULL;
}

struct vhp_work
joined_turn(struct joined *j, int guest)
{
	struct vhp_qpair *qp = joined_qpair(j, guest);
	struct vhp_work work = {0};

	qp->turn(qp, 0, &work);
	return work;
}

void
joined_fill(uint8_t *bytes, uint32_t hdr_bytes, uint32_t frame_bytes, uint32_t number)
{
	memset(bytes, 0, hdr_bytes);
	wire_fill(bytes + hdr_bytes, frame_bytes, 0, number);
}

/* Memory for a frame in n pieces and its table. */
static uint64_t
tx_arena(struct joined *j, int guest, uint64_t len_bytes)
{
	uint64_t gpa = j->tx_at[guest];

	if (gpa + len_bytes > TX_GPA + TX_BYTES)
		gpa = TX_GPA;
	j->tx_at[guest] = gpa + len_bytes;
	return gpa;
}

bool
joined_send(struct joined *j, int from, uint32_t number, uint32_t frame_bytes, uint16_t n,
	bool indirect, const struct virtio_net_hdr *hdr)
{
	struct wire *w = j->d[from]->w;
	uint32_t len_bytes = w->qp.hdr_bytes + frame_bytes;
	uint8_t *bytes = malloc(len_bytes + 1);
	uint64_t gpa = tx_arena(j, from, TABLE_GAP + len_bytes + n);
	uint64_t table = gpa, at = gpa + TABLE_GAP;
	struct vring_desc bufs[64];
	uint32_t done = 0;
	int id;

	CHECK(bytes != NULL && n > 0 && n <= 64);
	joined_fill(bytes, w->qp.hdr_bytes, frame_bytes, number);
	if (hdr != NULL)
		memcpy(bytes, hdr, sizeof(*hdr));
	/* The last piece takes what is left; none lies beside the next. */
	for (uint16_t i = 0; i < n; i++) {
		uint32_t len = i < n - 1 ? len_bytes / n : len_bytes - done;

		guest_write(&w->g, at, bytes + done, len);
		bufs[i] = (struct vring_desc){.addr = at, .len = len};
		at += len + 1;
		done += len;
	}
	free(bytes);
	id = ring_post(&w->tx, bufs, n, indirect ? table : 0);
	return id >= 0;
}

uint32_t
joined_reap(struct joined *j, int guest)
{
	struct ring *r = &j->d[guest]->w->tx;
	uint32_t n = 0;

	for (; ring_used_count(r) > 0; n++)
		CHECK(ring_pop_used(r).len_bytes == 0);
	j->n_used[guest] += n;
	return n;
}

void
joined_check(struct joined *j, int to, uint32_t number, uint32_t frame_bytes)
{
	static uint8_t got[VHP_BOUNCE_BYTES], expected[VHP_BOUNCE_BYTES];
	uint32_t hdr_bytes = joined_qpair(j, to)->hdr_bytes;
	uint16_t n = 0;

	CHECK(rx_take(j->d[to], got, &n) == hdr_bytes + frame_bytes);
	joined_fill(expected, hdr_bytes, frame_bytes, number);
	if (hdr_bytes == VHP_MAX_HDR_BYTES)
		memcpy(expected + 10, &n, sizeof(n));
	CHECK(memcmp(got, expected, hdr_bytes + frame_bytes) == 0);
}
