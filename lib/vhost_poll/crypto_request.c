/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A data request (virtio 1.2, 5.9.7.4): fixed part, then IV, source data and additional data
 * in readable descriptors; room for data and digest, and the status in the last byte, in
 * writable ones. Everything is read once; nothing that the request says is believed before
 * it fits its chain and its session.
 */
#include <string.h>

#include <rte_common.h>

#include "crypto_dev.h"
#include "vhp_iov.h"

/* Lengths that a request gives; those that its kind does not have are 0. */
struct lengths {
	uint32_t iv, src, dst, aad, digest;
	uint32_t cipher_offset, cipher;
	uint32_t auth_offset, auth;
};

static bool
is_chain(enum vhp_crypto_kind kind)
{
	return kind == VHP_CRYPTO_CIPHER_HASH || kind == VHP_CRYPTO_HASH_CIPHER;
}

/* Does the operation fit the session's service and direction? */
static bool
opcode_fits(const struct virtio_crypto_op_data_req *req, const struct vhp_crypto_session *session)
{
	uint32_t opcode = req->header.opcode;
	uint32_t op_type = req->u.sym_req.op_type;

	switch (session->kind) {
	case VHP_CRYPTO_HASH:
		return opcode == VIRTIO_CRYPTO_HASH;
	case VHP_CRYPTO_MAC:
		return opcode == VIRTIO_CRYPTO_MAC;
	case VHP_CRYPTO_AEAD:
		return opcode ==
		       (session->encrypt ? VIRTIO_CRYPTO_AEAD_ENCRYPT : VIRTIO_CRYPTO_AEAD_DECRYPT);
	case VHP_CRYPTO_AKCIPHER:
		/* A private key holds the public one. */
		return opcode == VIRTIO_CRYPTO_AKCIPHER_ENCRYPT ||
		       opcode == VIRTIO_CRYPTO_AKCIPHER_VERIFY ||
		       (session->shape.private_key &&
			       (opcode == VIRTIO_CRYPTO_AKCIPHER_DECRYPT ||
				       opcode == VIRTIO_CRYPTO_AKCIPHER_SIGN));
	default:
		return opcode == (session->encrypt ? VIRTIO_CRYPTO_CIPHER_ENCRYPT
						   : VIRTIO_CRYPTO_CIPHER_DECRYPT) &&
		       op_type == (is_chain(session->kind) ? VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING
							   : VIRTIO_CRYPTO_SYM_OP_CIPHER);
	}
}

static struct lengths
read_lengths(const struct virtio_crypto_op_data_req *req, enum vhp_crypto_kind kind)
{
	const struct virtio_crypto_cipher_para *cipher = &req->u.sym_req.u.cipher.para;
	const struct virtio_crypto_alg_chain_data_para *chain = &req->u.sym_req.u.chain.para;
	const struct virtio_crypto_aead_para *aead = &req->u.aead_req.para;
	const struct virtio_crypto_hash_para *hash = &req->u.hash_req.para;
	const struct virtio_crypto_akcipher_para *akcipher = &req->u.akcipher_req.para;

	switch (kind) {
	case VHP_CRYPTO_CIPHER:
		return (struct lengths){.iv = cipher->iv_len,
			.src = cipher->src_data_len,
			.dst = cipher->dst_data_len,
			.cipher = cipher->src_data_len};
	case VHP_CRYPTO_HASH:
	case VHP_CRYPTO_MAC:
		return (struct lengths){.src = hash->src_data_len,
			.digest = hash->hash_result_len,
			.auth = hash->src_data_len};
	case VHP_CRYPTO_AEAD:
		return (struct lengths){.iv = aead->iv_len,
			.src = aead->src_data_len,
			.dst = aead->dst_data_len,
			.aad = aead->aad_len};
	case VHP_CRYPTO_AKCIPHER:
		/* A digest to verify is the destination by its length, and read behind the source.
		 */
		if (req->header.opcode == VIRTIO_CRYPTO_AKCIPHER_VERIFY)
			return (struct lengths){
				.src = akcipher->src_data_len + akcipher->dst_data_len,
				.cipher = akcipher->src_data_len,
				.auth_offset = akcipher->src_data_len,
				.auth = akcipher->dst_data_len};
		return (struct lengths){.src = akcipher->src_data_len,
			.dst = akcipher->dst_data_len,
			.cipher = akcipher->src_data_len};
	default:
		return (struct lengths){.iv = chain->iv_len,
			.src = chain->src_data_len,
			.dst = chain->dst_data_len,
			.aad = chain->aad_len,
			.digest = chain->hash_result_len,
			.cipher_offset = chain->cipher_start_src_offset,
			.cipher = chain->len_to_cipher,
			.auth_offset = chain->hash_start_src_offset,
			.auth = chain->len_to_hash};
	}
}

static bool
in_range(uint32_t offset, uint32_t bytes, uint32_t whole)
{
	return offset <= whole && bytes <= whole - offset;
}

/* Of AEAD the tag stands behind the data, on the side where the ciphertext is. */
static bool
aead_fits(const struct vhp_crypto_session *session, struct lengths *len,
	struct vhp_crypto_request *request)
{
	uint32_t tag = session->digest_bytes;

	if (session->encrypt) {
		request->data_bytes = len->src;
		request->digest_bytes = tag;
		if (len->dst < tag || len->dst - tag < len->src)
			return false;
		/* The tag comes at once behind the data. */
		len->dst = len->src;
	} else {
		if (len->src < tag || len->dst < len->src - tag)
			return false;
		request->data_bytes = len->src - tag;
		request->tag_bytes = tag;
	}
	len->cipher = request->data_bytes;
	return true;
}

/*
 * Nothing is longer than the modulus, and all results but what was padded are as long. The
 * sum may have wrapped; its parts say so.
 */
static bool
akcipher_fits(const struct vhp_crypto_session *session, uint32_t opcode, const struct lengths *len,
	struct vhp_crypto_request *request)
{
	uint32_t modulus = session->shape.modulus_bytes;
	bool makes_one =
		opcode == VIRTIO_CRYPTO_AKCIPHER_ENCRYPT || opcode == VIRTIO_CRYPTO_AKCIPHER_SIGN;

	request->data_bytes = len->src;
	return len->cipher <= modulus && len->auth <= modulus &&
	       (!makes_one || len->dst >= modulus);
}

/* Do the lengths fit the session? */
static bool
session_fits(const struct vhp_crypto_session *session, uint32_t opcode, struct lengths *len,
	struct vhp_crypto_request *request)
{
	uint8_t block = RTE_MAX(session->shape.block_bytes, 1);

	if (len->iv != session->shape.iv_bytes || len->aad != session->aad_bytes)
		return false;
	if (session->kind == VHP_CRYPTO_AEAD)
		return aead_fits(session, len, request);
	if (session->kind == VHP_CRYPTO_AKCIPHER)
		return akcipher_fits(session, opcode, len, request);
	request->data_bytes = len->src;
	request->digest_bytes = len->digest;
	if (session->kind != VHP_CRYPTO_CIPHER && len->digest != session->digest_bytes)
		return false;
	if (session->kind == VHP_CRYPTO_HASH || session->kind == VHP_CRYPTO_MAC)
		return true;
	return len->dst >= len->src && len->cipher % block == 0 &&
	       in_range(len->cipher_offset, len->cipher, len->src) &&
	       in_range(len->auth_offset, len->auth, len->src);
}

/* Do they fit the chain? Sums cannot wrap in 64 bits. */
static bool
chain_fits(const struct vhp_frame *f, const struct lengths *len,
	const struct vhp_crypto_request *request)
{
	uint64_t readable = vhp_crypto_bytes(f->iov, f->n_read);
	uint64_t writable = vhp_crypto_bytes(f->iov + f->n_read, f->n_write);

	return (uint64_t)VHP_CRYPTO_REQ_BYTES + len->iv + len->src + len->aad <= readable &&
	       (uint64_t)len->dst + request->digest_bytes + sizeof(struct virtio_crypto_inhdr) <=
		       writable;
}

/* Is there nothing to cipher, or nothing to hash, for a session that does so? */
static bool
is_empty(enum vhp_crypto_kind kind, const struct lengths *len)
{
	bool hashes = kind == VHP_CRYPTO_HASH || kind == VHP_CRYPTO_MAC;

	if (kind == VHP_CRYPTO_AEAD || kind == VHP_CRYPTO_AKCIPHER)
		return false;
	return (!hashes && len->cipher == 0) || (kind != VHP_CRYPTO_CIPHER && len->auth == 0);
}

static uint8_t
check(const struct vhp_crypto_dev *dev, const struct vhp_frame *f,
	const struct virtio_crypto_op_data_req *req, struct vhp_crypto_request *request,
	struct vhp_crypto_job *job)
{
	const struct vhp_crypto_session *session = request->session;
	struct lengths len;

	if (!opcode_fits(req, session))
		return VIRTIO_CRYPTO_BADMSG;
	len = read_lengths(req, session->kind);
	if (len.src > (session->kind == VHP_CRYPTO_AEAD ? dev->engine->caps.max_aead_bytes
							: dev->engine->caps.max_bytes))
		return VIRTIO_CRYPTO_ERR;
	if (!session_fits(session, req->header.opcode, &len, request) ||
		!chain_fits(f, &len, request))
		return VIRTIO_CRYPTO_BADMSG;
	if (!dev->engine->caps.empty && is_empty(session->kind, &len))
		return VIRTIO_CRYPTO_ERR;
	vhp_iov_read(f->iov, f->n_read, VHP_CRYPTO_REQ_BYTES, job->iv, len.iv);
	request->src_offset = VHP_CRYPTO_REQ_BYTES + len.iv;
	request->src_bytes = len.src;
	request->aad_offset = request->src_offset + len.src;
	request->dst_bytes = len.dst;
	job->cipher_offset = len.cipher_offset;
	job->cipher_bytes = len.cipher;
	job->auth_offset = len.auth_offset;
	job->auth_bytes = len.auth;
	job->data_bytes = request->data_bytes;
	job->opcode = req->header.opcode;
	job->session = session->engine_session;
	return VIRTIO_CRYPTO_OK;
}

void
vhp_crypto_parse_request(struct vhp_crypto_dev *dev, const struct vhp_frame *f,
	struct vhp_crypto_request *request, struct vhp_crypto_job *job)
{
	struct virtio_crypto_op_data_req req;

	memset(request, 0, sizeof(*request));
	memset(job, 0, sizeof(*job));
	request->status = VIRTIO_CRYPTO_BADMSG;
	if (vhp_iov_read(f->iov, f->n_read, 0, &req, sizeof(req)) == sizeof(req)) {
		request->session = vhp_crypto_session_get(dev, req.header.session_id);
		request->status = request->session == NULL ? VIRTIO_CRYPTO_INVSESS
							   : check(dev, f, &req, request, job);
	}
	if (request->status == VIRTIO_CRYPTO_OK)
		return;
	if (request->session != NULL)
		vhp_crypto_session_put(dev, request->session);
	request->session = NULL;
	job->done = true;
}
