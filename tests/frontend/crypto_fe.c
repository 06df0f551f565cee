/* SPDX-License-Identifier: BSD-3-Clause */
/* See crypto_fe.h. */
#include <errno.h>
#include <string.h>

#include "crypto_fe.h"

/* Data queue 0; the control queue stands behind all data queues. */
static int
make_rings(struct cfe *c)
{
	const struct fe_ring_cfg rc = {
		.size = c->cfg.ring_size,
		.packed = c->cfg.packed,
		.event_idx = c->cfg.event_idx,
		.strict_len = true,
		.indirect_max = CFE_SEGS_MAX,
		.start = c->cfg.packed ? FE_PACKED_START : 0,
	};
	int rc_err = fe_ring_init(&c->data, &c->mem, &rc);

	if (rc_err == 0)
		rc_err = fe_ring_init(&c->ctrl, &c->mem, &rc);
	c->buffer_gpa = fe_mem_alloc(&c->mem, c->cfg.buffer_bytes, 64, FE_ALLOC_ONE_REGION);
	if (rc_err == 0 && c->buffer_gpa == 0)
		rc_err = -ENOMEM;
	return rc_err;
}

static int
start_rings(struct cfe *c)
{
	int rc = fe_mem_announce(&c->mem, &c->conn);

	if (rc == 0)
		rc = fe_ring_start(&c->data, &c->conn, 0);
	if (rc == 0)
		rc = fe_ring_start(&c->ctrl, &c->conn, c->config.max_dataqueues);
	if (rc == 0)
		rc = fe_sync(&c->conn);
	return rc;
}

static int
negotiate(struct cfe *c)
{
	uint64_t want = 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_RING_F_INDIRECT_DESC |
			1ULL << FE_F_PROTOCOL_FEATURES;
	uint64_t proto = 1ULL << FE_PROTO_MQ | 1ULL << FE_PROTO_REPLY_ACK |
			 1ULL << FE_PROTO_CRYPTO_SESSION | 1ULL << FE_PROTO_CONFIG;
	uint64_t offered = 0, offered_proto = 0;
	int rc = fe_get_features(&c->conn, &offered);

	if (c->cfg.event_idx)
		want |= 1ULL << VIRTIO_RING_F_EVENT_IDX;
	if (c->cfg.packed)
		want |= 1ULL << VIRTIO_F_RING_PACKED;
	if (rc == 0)
		rc = fe_get_protocol_features(&c->conn, &offered_proto);
	if (rc == 0 && ((want & ~offered) != 0 || (proto & ~offered_proto) != 0))
		rc = -ENOTSUP;
	if (rc == 0)
		rc = fe_set_protocol_features(&c->conn, proto);
	c->conn.ack = true;
	if (rc == 0)
		rc = fe_set_owner(&c->conn);
	if (rc == 0)
		rc = fe_set_features(&c->conn, want);
	if (rc == 0)
		rc = fe_get_config(&c->conn, 0, sizeof(c->config), &c->config);
	return rc;
}

int
cfe_prepare(struct cfe *c, const struct cfe_cfg *cfg)
{
	uint64_t bytes = cfg->buffer_bytes + 4096 +
			 2ULL * cfg->ring_size * (64 + CFE_SEGS_MAX * sizeof(struct vring_desc));
	int rc;

	memset(c, 0, sizeof(*c));
	c->cfg = *cfg;
	c->conn.fd = c->conn.listen_fd = -1;
	rc = fe_mem_init(&c->mem, 1, (bytes + (1 << 16) + 4095) & ~4095ULL, FE_MEM_GAPS);
	if (rc == 0)
		rc = fe_connect(&c->conn, cfg->path, cfg->timeout_ms);
	if (rc == 0)
		rc = negotiate(c);
	if (rc == 0)
		rc = make_rings(c);
	if (rc != 0)
		fe_fault(&c->fault, "%s: cannot be opened: %s", cfg->path, strerror(-rc));
	return rc;
}

int
cfe_open(struct cfe *c, const struct cfe_cfg *cfg)
{
	int rc = cfe_prepare(c, cfg);

	if (rc == 0)
		rc = start_rings(c);
	if (rc != 0)
		fe_fault(&c->fault, "%s: cannot be started: %s", cfg->path, strerror(-rc));
	return rc;
}

void
cfe_close(struct cfe *c)
{
	fe_conn_close(&c->conn);
	fe_ring_free(&c->data);
	fe_ring_free(&c->ctrl);
	fe_mem_free(&c->mem);
}

int
cfe_await(struct cfe *c, struct fe_ring *r)
{
	int rc;

	fe_ring_publish(r);
	if (fe_ring_arm(r, 0))
		return 0;
	fe_ring_kick(r);
	/* A call may be one for the request before, whose answer was seen without it. */
	do {
		rc = fe_ring_wait(r, c->cfg.timeout_ms * 1000);
		if (rc <= 0)
			return rc == 0 ? -ETIMEDOUT : rc;
	} while (!fe_ring_pending(r));
	return 0;
}

int
cfe_request(struct cfe *c, struct fe_ring *r, const struct fe_seg *seg, uint32_t n,
	uint32_t ndirect, uint32_t *len)
{
	struct fe_done done;
	int rc = fe_ring_add(r, seg, n, ndirect, 7);

	if (rc < 0)
		return rc;
	rc = cfe_await(c, r);
	if (rc < 0)
		return rc;
	rc = fe_ring_used(r, &done, 1);
	if (rc == 0)
		return -ETIMEDOUT;
	if (rc < 0)
		return fe_fault(&c->fault, "%s", r->fault.text);
	if (done.token != 7)
		return fe_fault(&c->fault, "another buffer came back");
	*len = done.len;
	return 0;
}

uint32_t
cfe_cut(struct fe_seg *seg, struct fe_rng *rng, uint64_t gpa, uint32_t len, bool write,
	uint32_t cuts)
{
	uint32_t n = 0;

	for (cuts = fe_rng_range(rng, 1, cuts); len > 0; n++) {
		uint32_t part = cuts-- > 1 ? fe_rng_range(rng, 1, len) : len;

		seg[n] = (struct fe_seg){gpa, part, write};
		gpa += part;
		len -= part;
	}
	return n;
}

int
cfe_create(struct cfe *c, const struct virtio_crypto_op_ctrl_req *req, const void *keys,
	uint32_t key_bytes, uint64_t *id)
{
	struct virtio_crypto_session_input *input;
	uint64_t gpa = c->buffer_gpa;
	struct fe_seg seg[3] = {
		{gpa, sizeof(*req), false},
		{gpa + sizeof(*req), key_bytes, false},
	};
	uint32_t n = key_bytes > 0 ? 2 : 1;
	uint32_t len = 0;
	int rc;

	seg[n] = (struct fe_seg){gpa + 4096, sizeof(*input), true};
	memcpy(fe_mem_ptr(&c->mem, gpa), req, sizeof(*req));
	memcpy(fe_mem_ptr(&c->mem, gpa + sizeof(*req)), keys, key_bytes);
	input = fe_mem_ptr(&c->mem, gpa + 4096);
	memset(input, 0xee, sizeof(*input));
	rc = cfe_request(c, &c->ctrl, seg, n + 1, n + 1, &len);
	if (rc != 0)
		return rc;
	if (len != sizeof(*input))
		return fe_fault(&c->fault, "create: used.len %u", len);
	*id = input->session_id;
	return (int)input->status;
}

int
cfe_destroy(struct cfe *c, uint32_t opcode, uint64_t id)
{
	struct virtio_crypto_op_ctrl_req *req = fe_mem_ptr(&c->mem, c->buffer_gpa);
	const struct fe_seg seg[] = {
		{c->buffer_gpa, sizeof(*req), false}, {c->buffer_gpa + 4096, 1, true}};
	uint8_t *status = fe_mem_ptr(&c->mem, c->buffer_gpa + 4096);
	uint32_t len = 0;
	int rc;

	memset(req, 0, sizeof(*req));
	req->header.opcode = opcode;
	req->u.destroy_session.session_id = id;
	*status = 0xee;
	rc = cfe_request(c, &c->ctrl, seg, 2, 2, &len);
	if (rc != 0)
		return rc;
	return len == 1 ? *status : fe_fault(&c->fault, "destroy: used.len %u", len);
}
