/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control queue (virtio 1.2, 5.9.7.2): sessions made and destroyed by requests in a
 * ring. Any number may be in flight; a burst is answered with one call.
 */
#include <string.h>

#include <rte_common.h>

#include "crypto_dev.h"
#include "vhp_iov.h"

/* Requests of one turn: a session costs a microsecond or two, */
#define WEIGHT_REQUESTS 64
/* one of RSA as much as so many of them. */
#define RSA_REQUESTS    16

void
vhp_crypto_params_init(struct vhp_crypto_params *params)
{
	memset(params, 0, offsetof(struct vhp_crypto_params, der));
}

void
vhp_crypto_params_wipe(struct vhp_crypto_params *params)
{
	explicit_bzero(params->der, RTE_MIN(params->der_bytes, sizeof(params->der)));
	explicit_bzero(params, offsetof(struct vhp_crypto_params, der));
}

/* Copy a key behind the request; what there is not, or too much, is an error. */
static uint32_t
read_key(const struct iovec *iov, uint32_t n_iov, size_t offset, uint8_t *key, uint32_t key_bytes,
	uint32_t room)
{
	if (key_bytes == 0 || key_bytes > room)
		return VIRTIO_CRYPTO_ERR;
	if (vhp_iov_read(iov, n_iov, offset, key, key_bytes) < key_bytes)
		return VIRTIO_CRYPTO_BADMSG;
	return VIRTIO_CRYPTO_OK;
}

/* 1 and 2 are the only directions. */
static uint32_t
set_direction(struct vhp_crypto_params *params, uint32_t op)
{
	params->encrypt = op == VIRTIO_CRYPTO_OP_ENCRYPT;
	return op == VIRTIO_CRYPTO_OP_ENCRYPT || op == VIRTIO_CRYPTO_OP_DECRYPT ? VIRTIO_CRYPTO_OK
										: VIRTIO_CRYPTO_ERR;
}

static uint32_t
parse_chain(
	const struct virtio_crypto_alg_chain_session_para *para, struct vhp_crypto_params *params)
{
	params->cipher_algo = para->cipher_param.algo;
	params->cipher_key_bytes = para->cipher_param.keylen;
	params->aad_bytes = para->aad_len;
	if (para->alg_chain_order == VIRTIO_CRYPTO_SYM_ALG_CHAIN_ORDER_HASH_THEN_CIPHER)
		params->kind = VHP_CRYPTO_HASH_CIPHER;
	else if (para->alg_chain_order == VIRTIO_CRYPTO_SYM_ALG_CHAIN_ORDER_CIPHER_THEN_HASH)
		params->kind = VHP_CRYPTO_CIPHER_HASH;
	else
		return VIRTIO_CRYPTO_ERR;
	if (para->hash_mode == VIRTIO_CRYPTO_SYM_HASH_MODE_AUTH) {
		params->keyed = true;
		params->auth_algo = para->u.mac_param.algo;
		params->digest_bytes = para->u.mac_param.hash_result_len;
		params->auth_key_bytes = para->u.mac_param.auth_key_len;
	} else if (para->hash_mode == VIRTIO_CRYPTO_SYM_HASH_MODE_PLAIN) {
		params->auth_algo = para->u.hash_param.algo;
		params->digest_bytes = para->u.hash_param.hash_result_len;
	} else {
		return VIRTIO_CRYPTO_NOTSUPP;
	}
	return set_direction(params, para->cipher_param.op);
}

static uint32_t
parse_sym(const struct virtio_crypto_sym_create_session_req *sym, struct vhp_crypto_params *params)
{
	if (sym->op_type == VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING)
		return parse_chain(&sym->u.chain.para, params);
	if (sym->op_type != VIRTIO_CRYPTO_SYM_OP_CIPHER)
		return VIRTIO_CRYPTO_NOTSUPP;
	params->kind = VHP_CRYPTO_CIPHER;
	params->cipher_algo = sym->u.cipher.para.algo;
	params->cipher_key_bytes = sym->u.cipher.para.keylen;
	return set_direction(params, sym->u.cipher.para.op);
}

static uint32_t
parse_akcipher(
	const struct virtio_crypto_akcipher_session_para *para, struct vhp_crypto_params *params)
{
	params->kind = VHP_CRYPTO_AKCIPHER;
	params->cipher_algo = para->algo;
	params->padding_algo = para->u.rsa.padding_algo;
	params->auth_algo = para->u.rsa.hash_algo;
	params->der_bytes = para->keylen;
	params->private_key = para->keytype == VIRTIO_CRYPTO_AKCIPHER_KEY_TYPE_PRIVATE;
	if (para->algo != VIRTIO_CRYPTO_AKCIPHER_RSA)
		return VIRTIO_CRYPTO_NOTSUPP;
	return params->private_key || para->keytype == VIRTIO_CRYPTO_AKCIPHER_KEY_TYPE_PUBLIC
		       ? VIRTIO_CRYPTO_OK
		       : VIRTIO_CRYPTO_ERR;
}

/* The fixed part, by the service that the operation names. */
static uint32_t
parse_fixed(const struct virtio_crypto_op_ctrl_req *req, struct vhp_crypto_params *params)
{
	const struct virtio_crypto_aead_session_para *aead = &req->u.aead_create_session.para;

	switch (req->header.opcode) {
	case VIRTIO_CRYPTO_CIPHER_CREATE_SESSION:
		return parse_sym(&req->u.sym_create_session, params);
	case VIRTIO_CRYPTO_HASH_CREATE_SESSION:
		params->kind = VHP_CRYPTO_HASH;
		params->auth_algo = req->u.hash_create_session.para.algo;
		params->digest_bytes = req->u.hash_create_session.para.hash_result_len;
		return VIRTIO_CRYPTO_OK;
	case VIRTIO_CRYPTO_MAC_CREATE_SESSION:
		params->kind = VHP_CRYPTO_MAC;
		params->keyed = true;
		params->auth_algo = req->u.mac_create_session.para.algo;
		params->digest_bytes = req->u.mac_create_session.para.hash_result_len;
		params->auth_key_bytes = req->u.mac_create_session.para.auth_key_len;
		return VIRTIO_CRYPTO_OK;
	case VIRTIO_CRYPTO_AEAD_CREATE_SESSION:
		params->kind = VHP_CRYPTO_AEAD;
		params->cipher_algo = aead->algo;
		params->digest_bytes = aead->hash_result_len;
		params->cipher_key_bytes = aead->key_len;
		params->aad_bytes = aead->aad_len;
		return set_direction(params, aead->op);
	case VIRTIO_CRYPTO_AKCIPHER_CREATE_SESSION:
		return parse_akcipher(&req->u.akcipher_create_session.para, params);
	default:
		return VIRTIO_CRYPTO_NOTSUPP;
	}
}

uint32_t
vhp_crypto_parse_create(const struct virtio_crypto_op_ctrl_req *req, const struct iovec *iov,
	uint32_t n_iov, size_t key_offset, struct vhp_crypto_params *params)
{
	uint32_t status;

	vhp_crypto_params_init(params);
	status = parse_fixed(req, params);
	if (status == VIRTIO_CRYPTO_OK && params->kind == VHP_CRYPTO_AKCIPHER)
		return read_key(iov, n_iov, key_offset, params->der, params->der_bytes,
			sizeof(params->der));
	if (status == VIRTIO_CRYPTO_OK && params->kind != VHP_CRYPTO_HASH &&
		params->kind != VHP_CRYPTO_MAC) {
		status = read_key(iov, n_iov, key_offset, params->cipher_key,
			params->cipher_key_bytes, sizeof(params->cipher_key));
		key_offset += params->cipher_key_bytes;
	}
	if (status == VIRTIO_CRYPTO_OK && params->keyed)
		status = read_key(iov, n_iov, key_offset, params->auth_key, params->auth_key_bytes,
			sizeof(params->auth_key));
	return status;
}

static bool
is_destroy(uint32_t opcode)
{
	return opcode == VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION ||
	       opcode == VIRTIO_CRYPTO_HASH_DESTROY_SESSION ||
	       opcode == VIRTIO_CRYPTO_MAC_DESTROY_SESSION ||
	       opcode == VIRTIO_CRYPTO_AEAD_DESTROY_SESSION ||
	       opcode == VIRTIO_CRYPTO_AKCIPHER_DESTROY_SESSION;
}

static uint8_t
destroy(struct vhp_crypto_dev *dev, uint64_t id)
{
	struct vhp_crypto_session *session = vhp_crypto_session_remove(dev, id);

	if (session == NULL) {
		dev->by_ring.unknown_sessions++;
		return VIRTIO_CRYPTO_INVSESS;
	}
	dev->by_ring.closed++;
	vhp_crypto_session_put(dev, session);
	return VIRTIO_CRYPTO_OK;
}

static uint32_t
create(struct vhp_crypto_dev *dev, const struct virtio_crypto_op_ctrl_req *req,
	const struct vhp_frame *f, uint64_t *id)
{
	struct vhp_crypto_params params;
	uint32_t status = vhp_crypto_parse_create(req, f->iov, f->n_read, sizeof(*req), &params);

	if (status == VIRTIO_CRYPTO_OK)
		status = vhp_crypto_session_create(dev, &params, id);
	vhp_crypto_params_wipe(&params);
	if (status == VIRTIO_CRYPTO_OK)
		dev->by_ring.created++;
	else
		dev->by_ring.refused++;
	return status;
}

/* One request; sets used_bytes. Returns what it cost. */
static uint32_t
serve(struct vhp_crypto_dev *dev, struct vhp_vring *vr, struct vhp_frame *f)
{
	struct iovec *in = f->iov + f->n_read;
	struct virtio_crypto_op_ctrl_req req;
	struct virtio_crypto_session_input input = {0};
	size_t have = vhp_iov_read(f->iov, f->n_read, 0, &req, sizeof(req));

	if (have < sizeof(req)) {
		/* Of such a request only that it has room for a status is known. */
		input.status = VIRTIO_CRYPTO_BADMSG;
		f->used_bytes = vhp_iov_write(in, f->n_write, 0, &input, sizeof(input));
	} else if (is_destroy(req.header.opcode)) {
		uint8_t status = destroy(dev, req.u.destroy_session.session_id);

		f->used_bytes = vhp_iov_write(in, f->n_write, 0, &status, sizeof(status));
	} else {
		uint64_t id = 0;
		bool room = vhp_crypto_bytes(in, f->n_write) >= sizeof(input);

		/* Nobody would learn the id of a session that has no room to be told. */
		input.status = room ? create(dev, &req, f, &id) : VIRTIO_CRYPTO_BADMSG;
		input.session_id = id;
		f->used_bytes = vhp_iov_write(in, f->n_write, 0, &input, sizeof(input));
	}
	if (vr->log != NULL)
		vhp_dirty_log_write_iov(vr->log, vr->mem, in, f->n_write, f->used_bytes);
	return have == sizeof(req) && req.header.opcode == VIRTIO_CRYPTO_AKCIPHER_CREATE_SESSION
		       ? RSA_REQUESTS
		       : 1;
}

/* As many as the turn's weight allows; the rest is the guest's again. Returns how many. */
static uint16_t
serve_burst(struct vhp_crypto_dev *dev, struct vhp_vring *vr, struct vhp_frame *frames, uint16_t n,
	uint32_t *cost)
{
	uint16_t done;

	for (done = 0; done < n && *cost < WEIGHT_REQUESTS; done++) {
		struct vhp_frame *f = &frames[done];

		if (f->drop == VHP_OK && vhp_frame_is_ordered(f)) {
			*cost += serve(dev, vr, f);
			continue;
		}
		vr->stats.drops[f->drop != VHP_OK ? f->drop : VHP_DROP_CHAIN_DIRECTION]++;
		(*cost)++;
	}
	vr->ops->untake(vr, frames + done, n - done);
	return done;
}

void
vhp_crypto_turn_ctrl(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work)
{
	struct vhp_crypto_queue *queue = vhp_crypto_queue_of(qp);
	struct vhp_vring *vr = &qp->tx;
	struct vhp_frame frames[VHP_CRYPTO_BURST];
	struct iovec iov[VHP_MAX_IOV];
	uint32_t cost = 0;
	uint16_t n;

	(void)now_tsc;
	while (vr->running && vr->fault == VHP_RING_OK && cost < WEIGHT_REQUESTS) {
		n = vr->ops->take(vr, frames, RTE_DIM(frames), iov, RTE_DIM(iov));
		if (n == 0)
			return;
		work->descs += vr->steps;
		n = serve_burst(queue->dev, vr, frames, n, &cost);
		vr->ops->put(vr, frames, n);
		vhp_vring_call(vr);
		vr->stats.pkts += n;
		work->pkts += n;
	}
}
