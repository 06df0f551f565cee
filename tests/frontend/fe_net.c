/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A virtio-net device's life: connection, negotiation, memory, rings; see fe_net.h.
 *
 * A lenient device (for other back ends) lets pass: any length in used packed transmit
 * descriptors, where it is reserved; num_buffers 0 without MRG_RXBUF, where it has to be 1.
 */
#include "fe_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TIMEOUT_MS 5000

/* virtio device status bits (virtio 1.2, 2.1). */
#define STATUS_ACKNOWLEDGE 1
#define STATUS_DRIVER      2
#define STATUS_DRIVER_OK   4
#define STATUS_FEATURES_OK 8

#define PROTO_DEFAULT                                                                              \
	(FE_BIT(FE_PROTO_MQ) | FE_BIT(FE_PROTO_LOG_SHMFD) | FE_BIT(FE_PROTO_RARP) |                \
		FE_BIT(FE_PROTO_REPLY_ACK) | FE_BIT(FE_PROTO_NET_MTU) | FE_BIT(FE_PROTO_STATUS))

static void
fill_defaults(struct fe_net_cfg *cfg)
{
	uint32_t bufs;

	cfg->qpairs = cfg->qpairs == 0 ? 1 : cfg->qpairs;
	cfg->ring_size = cfg->ring_size == 0 ? 256 : cfg->ring_size;
	bufs = cfg->ring_size < 256 ? cfg->ring_size : 256;
	cfg->regions = cfg->regions == 0 ? 2 : cfg->regions;
	cfg->indirect_max = cfg->indirect_max == 0 ? FE_SEGS_MAX : cfg->indirect_max;
	cfg->tx_bufs = cfg->tx_bufs == 0 ? bufs : cfg->tx_bufs;
	cfg->rx_bufs = cfg->rx_bufs == 0 ? bufs : cfg->rx_bufs;
	cfg->tx_buf_bytes = cfg->tx_buf_bytes == 0 ? FE_BUF_MAX : cfg->tx_buf_bytes;
	cfg->rx_buf_bytes = cfg->rx_buf_bytes == 0 ? FE_BUF_MAX : cfg->rx_buf_bytes;
	cfg->timeout_ms = cfg->timeout_ms == 0 ? DEFAULT_TIMEOUT_MS : cfg->timeout_ms;
	cfg->proto = cfg->proto == 0 ? PROTO_DEFAULT : cfg->proto;
}

static int
failed(struct fe_net *n, const char *what, int rc)
{
	fe_fault(&n->fault, "%s: %s", what, strerror(-rc));
	return rc;
}

static int
negotiate_protocol(struct fe_net *n)
{
	uint64_t offered = 0;
	int rc = fe_get_protocol_features(&n->conn, &offered);

	n->queue_num = 1;
	if (rc == 0)
		rc = fe_set_protocol_features(&n->conn, offered & n->cfg.proto);
	if (rc == 0 && (n->conn.proto & FE_BIT(FE_PROTO_MQ)) != 0)
		rc = fe_get_queue_num(&n->conn, &n->queue_num);
	n->conn.ack = n->cfg.ack && (n->conn.proto & FE_BIT(FE_PROTO_REPLY_ACK)) != 0;
	return rc;
}

static bool
has_status(const struct fe_net *n)
{
	return (n->conn.proto & FE_BIT(FE_PROTO_STATUS)) != 0;
}

static int
negotiate(struct fe_net *n)
{
	const uint64_t proto_bit = FE_BIT(FE_F_PROTOCOL_FEATURES);
	int rc = fe_get_features(&n->conn, &n->offered);
	uint64_t accept;

	if (rc != 0)
		return failed(n, "GET_FEATURES", rc);
	if ((n->cfg.need_features & ~n->offered) != 0) {
		fe_fault(&n->fault, "features 0x%llx are not offered",
			(unsigned long long)(n->cfg.need_features & ~n->offered));
		return -ENOTSUP;
	}
	accept = n->offered & (n->cfg.features | n->cfg.need_features);
	if ((accept & proto_bit) != 0)
		rc = negotiate_protocol(n);
	if (rc != 0)
		return failed(n, "protocol features", rc);
	rc = fe_set_owner(&n->conn);
	if (rc == 0 && has_status(n))
		rc = fe_set_status(&n->conn, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
	if (rc == 0)
		rc = fe_set_features(&n->conn, accept);
	if (rc == 0 && has_status(n))
		rc = fe_set_status(
			&n->conn, STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK);
	if (rc != 0)
		return failed(n, "SET_FEATURES", rc);
	if (n->features != 0 && n->features != accept) {
		fe_fault(&n->fault, "features changed from 0x%llx to 0x%llx",
			(unsigned long long)n->features, (unsigned long long)accept);
		return -EPROTO;
	}
	n->features = accept;
	return 0;
}

static int
connect_any(struct fe_net *n)
{
	const struct fe_net_cfg *cfg = &n->cfg;
	int rc;

	if (!cfg->server)
		return fe_connect(&n->conn, cfg->path, cfg->timeout_ms);
	if (n->conn.listen_fd < 0) {
		rc = fe_listen(&n->conn, cfg->path, cfg->timeout_ms);
		if (rc != 0)
			return rc;
	}
	return fe_accept(&n->conn, cfg->timeout_ms);
}

static int
attach(struct fe_net *n)
{
	int rc = connect_any(n);

	if (rc != 0)
		return failed(n, n->cfg.path, rc);
	return negotiate(n);
}

int
fe_net_reattach(struct fe_net *n)
{
	int rc;

	fe_disconnect(&n->conn);
	rc = attach(n);
	for (uint32_t q = 0; q < n->cfg.qpairs; q++) {
		n->rx[q].ring.base = fe_ring_used_end(&n->rx[q].ring);
		n->tx[q].ring.base = fe_ring_used_end(&n->tx[q].ring);
	}
	if (rc == 0)
		rc = fe_mem_announce(&n->mem, &n->conn);
	return rc;
}

/* Transmit slabs leave a gap behind each segment, receive slabs a canary around each. */
static uint64_t
tx_slab_bytes(const struct fe_net *n)
{
	return n->cfg.tx_buf_bytes + FE_SEGS_MAX * (uint64_t)FE_TX_GAP_BYTES;
}

static uint64_t
rx_slab_bytes(const struct fe_net *n)
{
	return n->cfg.rx_buf_bytes + (FE_SEGS_MAX + 1) * (uint64_t)FE_CANARY_BYTES;
}

static int
make_memory(struct fe_net *n)
{
	const struct fe_net_cfg *cfg = &n->cfg;
	uint64_t table = (uint64_t)cfg->ring_size * cfg->indirect_max * sizeof(struct vring_desc);
	uint64_t ring = (uint64_t)cfg->ring_size * 32 + 4096;
	uint64_t per_pair = 2 * (ring + table) + cfg->tx_bufs * (tx_slab_bytes(n) + 64) +
			    cfg->rx_bufs * (rx_slab_bytes(n) + 64);
	uint64_t total = cfg->qpairs * per_pair + cfg->extra_bytes;
	/* Any single piece must still fit behind the last one of its region. */
	uint64_t each = total / cfg->regions + (table > ring ? table : ring) + 2 * FE_BUF_MAX;

	return fe_mem_init(&n->mem, cfg->regions, (each + 4095) & ~4095ULL, cfg->layout);
}

/* A stack of all buffer numbers. */
static uint32_t *
all_free(uint32_t count)
{
	uint32_t *list = calloc(count, sizeof(*list));

	for (uint32_t i = 0; list != NULL && i < count; i++)
		list[i] = count - 1 - i;
	return list;
}

static int
make_transmitq(struct fe_net *n, struct fe_transmitq *t, const struct fe_ring_cfg *rc)
{
	uint32_t count = n->cfg.tx_bufs;
	int err = fe_ring_init(&t->ring, &n->mem, rc);

	if (err != 0)
		return err;
	t->free = all_free(count);
	t->buf_gpa = calloc(count, sizeof(*t->buf_gpa));
	if (t->free == NULL || t->buf_gpa == NULL)
		return -ENOMEM;
	for (; t->nfree < count; t->nfree++) {
		t->buf_gpa[t->nfree] = fe_mem_alloc(&n->mem, tx_slab_bytes(n), 1, 0);
		if (t->buf_gpa[t->nfree] == 0)
			return -ENOMEM;
	}
	return 0;
}

static int
make_receiveq(struct fe_net *n, struct fe_receiveq *r, const struct fe_ring_cfg *rc)
{
	uint32_t count = n->cfg.rx_bufs;
	int err = fe_ring_init(&r->ring, &n->mem, rc);

	if (err != 0)
		return err;
	r->free = all_free(count);
	r->buf = calloc(count, sizeof(*r->buf));
	if (r->free == NULL || r->buf == NULL)
		return -ENOMEM;
	for (; r->nfree < count; r->nfree++) {
		r->buf[r->nfree].gpa = fe_mem_alloc(&n->mem, rx_slab_bytes(n), 1, 0);
		if (r->buf[r->nfree].gpa == 0)
			return -ENOMEM;
	}
	return 0;
}

static int
make_queues(struct fe_net *n)
{
	const struct fe_net_cfg *cfg = &n->cfg;
	struct fe_ring_cfg rc = {
		.size = cfg->ring_size,
		.packed = fe_net_has(n, VIRTIO_F_RING_PACKED),
		.event_idx = fe_net_has(n, VIRTIO_RING_F_EVENT_IDX),
		.in_order = fe_net_has(n, VIRTIO_F_IN_ORDER),
		.strict_len = !cfg->lenient,
		.indirect_max = fe_net_has(n, VIRTIO_RING_F_INDIRECT_DESC) ? cfg->indirect_max : 0,
		.start = cfg->start,
	};
	int err = 0;

	if (rc.packed && rc.start == 0)
		rc.start = FE_PACKED_START;
	n->tx = calloc(cfg->qpairs, sizeof(*n->tx));
	n->rx = calloc(cfg->qpairs, sizeof(*n->rx));
	n->frame = malloc(FE_BUF_MAX);
	if (n->tx == NULL || n->rx == NULL || n->frame == NULL)
		return -ENOMEM;
	for (uint32_t q = 0; q < cfg->qpairs && err == 0; q++) {
		err = make_receiveq(n, &n->rx[q], &rc);
		if (err == 0)
			err = make_transmitq(n, &n->tx[q], &rc);
	}
	return err;
}

int
fe_net_open(struct fe_net *n, const struct fe_net_cfg *cfg)
{
	bool v1_or_mrg;
	int rc;

	memset(n, 0, sizeof(*n));
	n->conn.fd = n->conn.listen_fd = -1;
	n->cfg = *cfg;
	fill_defaults(&n->cfg);
	rc = attach(n);
	if (rc != 0)
		return rc;
	v1_or_mrg = fe_net_has(n, VIRTIO_F_VERSION_1) || fe_net_has(n, VIRTIO_NET_F_MRG_RXBUF);
	n->hdr_bytes = v1_or_mrg ? 12 : 10;
	rc = make_memory(n);
	if (rc == 0)
		rc = make_queues(n);
	if (rc != 0)
		return failed(n, "guest memory", rc);
	rc = fe_mem_announce(&n->mem, &n->conn);
	return rc != 0 ? failed(n, "SET_MEM_TABLE", rc) : 0;
}

int
fe_net_start(struct fe_net *n)
{
	int rc = 0;

	for (uint32_t q = 0; q < n->cfg.qpairs && rc == 0; q++) {
		rc = fe_ring_start(&n->rx[q].ring, &n->conn, 2 * q);
		if (rc == 0)
			rc = fe_ring_start(&n->tx[q].ring, &n->conn, 2 * q + 1);
	}
	/* Without protocol features rings begin enabled and the message is not known. */
	if (fe_net_has(n, FE_F_PROTOCOL_FEATURES))
		for (uint32_t i = 0; i < 2 * n->cfg.qpairs && rc == 0; i++)
			rc = fe_set_vring_enable(&n->conn, i, 1);
	if (rc == 0 && has_status(n))
		rc = fe_set_status(&n->conn,
			STATUS_ACKNOWLEDGE | STATUS_DRIVER | STATUS_FEATURES_OK | STATUS_DRIVER_OK);
	if (rc == 0)
		rc = fe_sync(&n->conn);
	return rc != 0 ? failed(n, "ring set-up", rc) : 0;
}

static int
stop_ring(struct fe_net *n, struct fe_ring *r)
{
	uint16_t end;
	int rc = fe_ring_stop(r, &n->conn);

	if (rc != 0)
		return failed(n, "GET_VRING_BASE", rc);
	end = fe_ring_used_end(r);
	if (r->base != end)
		return fe_fault(&n->fault, "vring %u: stopped at 0x%x, used ring ends at 0x%x",
			r->index, r->base, end);
	return 0;
}

int
fe_net_stop(struct fe_net *n)
{
	int rc = 0;

	for (uint32_t q = 0; q < n->cfg.qpairs && rc == 0; q++) {
		rc = stop_ring(n, &n->rx[q].ring);
		if (rc == 0)
			rc = stop_ring(n, &n->tx[q].ring);
	}
	return rc;
}

void
fe_net_close(struct fe_net *n)
{
	if (n == NULL)
		return;
	fe_conn_close(&n->conn);
	for (uint32_t q = 0; q < n->cfg.qpairs; q++) {
		if (n->tx != NULL) {
			fe_ring_free(&n->tx[q].ring);
			free(n->tx[q].buf_gpa);
			free(n->tx[q].free);
		}
		if (n->rx != NULL) {
			fe_ring_free(&n->rx[q].ring);
			free(n->rx[q].buf);
			free(n->rx[q].free);
		}
	}
	free(n->tx);
	free(n->rx);
	free(n->frame);
	n->tx = NULL;
	n->rx = NULL;
	n->frame = NULL;
	fe_mem_free(&n->mem);
}

const char *
fe_net_fault(const struct fe_net *n)
{
	if (n->fault.text[0] != '\0')
		return n->fault.text;
	for (uint32_t q = 0; n->tx != NULL && n->rx != NULL && q < n->cfg.qpairs; q++) {
		if (n->tx[q].ring.fault.text[0] != '\0')
			return n->tx[q].ring.fault.text;
		if (n->rx[q].ring.fault.text[0] != '\0')
			return n->rx[q].ring.fault.text;
	}
	return "";
}
