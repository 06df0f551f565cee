/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of a crypto device: the payload of a session message, a create request, and a data
 * request for the session that one of them made. The chain's pieces are blocks of their own length,
 * so that the sanitizer sees each byte that is read or written outside of them. RSA is the real
 * one: its keys are looked at, and what an accepted request asks for is computed.
 *
 * Input: selector, request to create, key of 64 bytes or, of RSA, as long as it says; cuts; the
 * rest is the request.
 */
#include <errno.h>
#include <stdlib.h>

#include "checks.h"
#include "crypto_dev.h"
#include "cryptodev_priv.h"
#include "input.h"
#include "vhp_iov.h"

#define MOST_PIECES 8
#define AAD_MAX     64

/* ---- an engine that computes nothing, with the limits of a real one --------------------- */

static int
engine_create(struct vhp_crypto_engine *engine, const struct vhp_crypto_params *p,
	struct vhp_crypto_shape *shape, void **session)
{
	(void)engine;
	if (p->kind == VHP_CRYPTO_AKCIPHER)
		return cryptodev_rsa_create(p, shape, (struct cryptodev_rsa **)session);
	if (p->digest_bytes > VHP_CRYPTO_DIGEST_BYTES || p->aad_bytes > AAD_MAX ||
		(p->aad_bytes > 0 && p->kind != VHP_CRYPTO_AEAD))
		return -ENOTSUP;
	shape->iv_bytes = p->cipher_algo % (VHP_CRYPTO_IV_BYTES + 1);
	shape->block_bytes = p->cipher_algo & 1 ? 16 : 1;
	*session = malloc(1);
	return *session != NULL ? 0 : -ENOSPC;
}

/* What engine_create() made: RSA, or a block of nothing. */
static bool last_was_rsa;

static void
engine_destroy(struct vhp_crypto_engine *engine, void *session)
{
	(void)engine;
	if (last_was_rsa)
		cryptodev_rsa_destroy(session);
	else
		free(session);
}

static const struct vhp_crypto_engine_ops ops = {
	.create = engine_create,
	.destroy = engine_destroy,
};

static struct vhp_crypto_engine engine = {
	.ops = &ops,
	.caps = {.pieces = true,
		.empty = true,
		.max_bytes = VHP_CRYPTO_DATA_BYTES,
		.max_aead_bytes = 0x10000},
};

/* ---- a chain -------------------------------------------------------------------------------- */

/* Cuts the rest of the input into pieces; those of the second half are writable. */
static void
make_chain(struct input *in, struct iovec *iov, struct vhp_frame *f)
{
	uint8_t n_write = input_u8(in) % MOST_PIECES;
	uint8_t n_read = 1 + input_u8(in) % (MOST_PIECES - 1);
	uint8_t cuts[2 * MOST_PIECES];

	input_bytes(in, cuts, sizeof(cuts));
	*f = (struct vhp_frame){.iov = iov, .n_read = n_read, .n_write = n_write};
	f->n_iov = (uint16_t)(n_read + n_write);
	for (uint16_t i = 0; i < f->n_iov; i++) {
		size_t len = i + 1 == n_read ? in->left : cuts[i];

		if (i < n_read && len > in->left)
			len = in->left;
		iov[i] = (struct iovec){malloc(len > 0 ? len : 1), len};
		CHECK(iov[i].iov_base != NULL);
		if (i < n_read)
			input_bytes(in, iov[i].iov_base, len);
		else
			memset(iov[i].iov_base, 0, len);
	}
}

/* ---- what must be true ----------------------------------------------------------------------- */

static void
check_params(const struct vhp_crypto_params *p)
{
	CHECK(p->kind <= VHP_CRYPTO_AKCIPHER);
	CHECK(p->cipher_key_bytes <= sizeof(p->cipher_key));
	CHECK(p->auth_key_bytes <= sizeof(p->auth_key));
	CHECK(p->kind == VHP_CRYPTO_AKCIPHER ? p->der_bytes <= sizeof(p->der) : p->der_bytes == 0);
}

/* What an accepted request will touch lies in its chain. */
static void
check_request(const struct vhp_frame *f, const struct vhp_crypto_request *r,
	const struct vhp_crypto_job *job)
{
	uint64_t readable = vhp_crypto_bytes(f->iov, f->n_read);
	uint64_t writable = vhp_crypto_bytes(f->iov + f->n_read, f->n_write);

	CHECK((uint64_t)r->src_offset + r->src_bytes <= readable);
	CHECK((uint64_t)r->data_bytes + r->tag_bytes <= r->src_bytes);
	CHECK((uint64_t)r->aad_offset + r->session->aad_bytes <= readable);
	CHECK((uint64_t)r->dst_bytes + r->digest_bytes + 1 <= writable);
	CHECK(r->digest_bytes <= sizeof(job->digest) && r->tag_bytes <= sizeof(job->digest));
	if (r->session->kind != VHP_CRYPTO_HASH && r->session->kind != VHP_CRYPTO_MAC &&
		r->session->kind != VHP_CRYPTO_AKCIPHER)
		CHECK(r->data_bytes <= r->dst_bytes);
	CHECK((uint64_t)job->cipher_offset + job->cipher_bytes <= r->data_bytes);
	CHECK((uint64_t)job->auth_offset + job->auth_bytes <= r->data_bytes);
	CHECK(r->data_bytes <= VHP_CRYPTO_DATA_BYTES);
}

/* As crypto_queue.c does it. */
static void
compute_rsa(
	const struct vhp_frame *f, const struct vhp_crypto_request *r, struct vhp_crypto_job *job)
{
	uint32_t modulus_bytes = r->session->shape.modulus_bytes;
	uint8_t *in = malloc(r->data_bytes + 1), *out = malloc(modulus_bytes);
	struct iovec whole = {in, r->data_bytes};

	CHECK(in != NULL && out != NULL);
	CHECK(job->cipher_bytes <= modulus_bytes && job->auth_bytes <= modulus_bytes);
	CHECK(vhp_iov_read(f->iov, f->n_read, r->src_offset, in, r->data_bytes) == r->data_bytes);
	job->data = &whole;
	job->n_data = 1;
	job->out = out;
	cryptodev_rsa_run(job->session, job);
	CHECK(job->done && job->out_bytes <= modulus_bytes);
	free(in);
	free(out);
}

static void
data_request(struct vhp_crypto_dev *dev, uint64_t id, struct vhp_frame *f)
{
	struct vhp_crypto_request r;
	struct vhp_crypto_job job;

	/* Else no input would ever guess it. */
	if (f->iov[0].iov_len >= sizeof(struct virtio_crypto_op_header))
		memcpy((uint8_t *)f->iov[0].iov_base +
				offsetof(struct virtio_crypto_op_header, session_id),
			&id, sizeof(id));
	vhp_crypto_parse_request(dev, f, &r, &job);
	CHECK(job.done == (r.session == NULL));
	CHECK((r.status == VIRTIO_CRYPTO_OK) == (r.session != NULL));
	if (r.session == NULL)
		return;
	check_request(f, &r, &job);
	if (r.session->kind == VHP_CRYPTO_AKCIPHER)
		compute_rsa(f, &r, &job);
	vhp_crypto_session_put(dev, r.session);
}

/* A session from the front of the input; false if it made none. */
static bool
make_session(struct input *in, bool by_message, struct vhp_crypto_dev *dev, uint64_t *id)
{
	struct vhp_crypto_params params;
	struct virtio_crypto_op_ctrl_req req;
	uint8_t message[VHP_CRYPTO_DER_BYTES];
	uint32_t status;

	if (by_message) {
		size_t have = input_bytes(in, message, 632);

		status = vhp_crypto_parse_message(message, (uint32_t)have, &params);
	} else {
		struct iovec keys = {message, 64};

		input_bytes(in, &req, sizeof(req));
		if (req.header.opcode == VIRTIO_CRYPTO_AKCIPHER_CREATE_SESSION)
			keys.iov_len = req.u.akcipher_create_session.para.keylen % sizeof(message);
		input_bytes(in, message, keys.iov_len);
		status = vhp_crypto_parse_create(&req, &keys, 1, 0, &params);
	}
	if (status != VIRTIO_CRYPTO_OK)
		return false;
	check_params(&params);
	last_was_rsa = params.kind == VHP_CRYPTO_AKCIPHER;
	return vhp_crypto_session_create(dev, &params, id) == VIRTIO_CRYPTO_OK;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	struct vhp_crypto_dev dev = {.engine = &engine};
	struct iovec iov[2 * MOST_PIECES];
	struct vhp_frame f;
	uint64_t id = 0;

	CHECK(vhp_crypto_table_init(&dev.table, 4) == 0);
	if (make_session(&in, input_u8(&in) & 1, &dev, &id)) {
		make_chain(&in, iov, &f);
		data_request(&dev, id, &f);
		for (uint16_t i = 0; i < f.n_iov; i++)
			free(iov[i].iov_base);
		CHECK(vhp_crypto_session_remove(&dev, id ^ 1ULL << 40) == NULL);
		vhp_crypto_session_clear(&dev);
	}
	CHECK(dev.table.n_used == 0);
	vhp_crypto_table_fini(&dev.table);
	return 0;
}
