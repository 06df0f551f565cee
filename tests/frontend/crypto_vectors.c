/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known answers: each line of a file is a session and a request with its result, made by
 * others. It is run with its data cut at random places, as direct descriptors and in an
 * indirect table, with the session made by the control queue and, where there is one, by
 * the message.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto_fe.h"

/* Pieces of each side of a request. */
#define CUTS_MAX 8

/* One field of bytes. */
struct bytes {
	uint8_t *at;
	uint32_t len;
};

/* A line of the file. */
struct vector {
	char kind[16]; /* cipher, hash, mac, chain, aead */
	bool encrypt, keyed;
	uint32_t cipher_algo, auth_algo, order;
	struct bytes key, auth_key, iv, aad, src, dst, digest;
};

/* Where the parts of the request at hand lie. */
struct layout {
	struct fe_seg seg[CFE_SEGS_MAX];
	uint32_t n;
	uint32_t writable;
	uint64_t dst_gpa;
};

static struct bytes
from_hex(const char *text)
{
	struct bytes b = {0};

	if (text == NULL || text[0] == '-')
		return b;
	b.len = strlen(text) / 2;
	b.at = malloc(b.len + 1);
	for (uint32_t i = 0; b.at != NULL && i < b.len; i++) {
		const char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

		b.at[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return b;
}

static bool
read_vector(char *line, struct vector *v)
{
	struct bytes *fields[] = {
		&v->key, &v->auth_key, &v->iv, &v->aad, &v->src, &v->dst, &v->digest};
	char *next = NULL;
	const char *word = strtok_r(line, " \n", &next);

	memset(v, 0, sizeof(*v));
	if (word == NULL || word[0] == '#')
		return false;
	snprintf(v->kind, sizeof(v->kind), "%s", word);
	v->encrypt = strcmp(strtok_r(NULL, " \n", &next), "enc") == 0;
	v->cipher_algo = (uint32_t)atoi(strtok_r(NULL, " \n", &next));
	v->auth_algo = (uint32_t)atoi(strtok_r(NULL, " \n", &next));
	v->keyed = atoi(strtok_r(NULL, " \n", &next)) != 0;
	v->order = (uint32_t)atoi(strtok_r(NULL, " \n", &next));
	for (size_t i = 0; i < FE_ARRAY_SIZE(fields); i++)
		*fields[i] = from_hex(strtok_r(NULL, " \n", &next));
	return true;
}

static void
free_vector(struct vector *v)
{
	struct bytes *fields[] = {
		&v->key, &v->auth_key, &v->iv, &v->aad, &v->src, &v->dst, &v->digest};

	for (size_t i = 0; i < FE_ARRAY_SIZE(fields); i++)
		free(fields[i]->at);
}

static uint32_t
direction(const struct vector *v)
{
	return v->encrypt ? VIRTIO_CRYPTO_OP_ENCRYPT : VIRTIO_CRYPTO_OP_DECRYPT;
}

/* Returns the operation that destroys it. */
static uint32_t
session_request(const struct vector *v, struct virtio_crypto_op_ctrl_req *req)
{
	struct virtio_crypto_sym_create_session_req *sym = &req->u.sym_create_session;
	struct virtio_crypto_alg_chain_session_para *chain = &sym->u.chain.para;
	struct virtio_crypto_cipher_session_para cipher = {
		.algo = v->cipher_algo, .keylen = v->key.len, .op = direction(v)};

	memset(req, 0, sizeof(*req));
	if (strcmp(v->kind, "hash") == 0) {
		req->header.opcode = VIRTIO_CRYPTO_HASH_CREATE_SESSION;
		req->u.hash_create_session.para.algo = v->auth_algo;
		req->u.hash_create_session.para.hash_result_len = v->digest.len;
		return VIRTIO_CRYPTO_HASH_DESTROY_SESSION;
	}
	if (strcmp(v->kind, "mac") == 0) {
		req->header.opcode = VIRTIO_CRYPTO_MAC_CREATE_SESSION;
		req->u.mac_create_session.para.algo = v->auth_algo;
		req->u.mac_create_session.para.hash_result_len = v->digest.len;
		req->u.mac_create_session.para.auth_key_len = v->auth_key.len;
		return VIRTIO_CRYPTO_MAC_DESTROY_SESSION;
	}
	if (strcmp(v->kind, "aead") == 0) {
		req->header.opcode = VIRTIO_CRYPTO_AEAD_CREATE_SESSION;
		req->u.aead_create_session.para =
			(struct virtio_crypto_aead_session_para){.algo = v->cipher_algo,
				.key_len = v->key.len,
				.hash_result_len = v->digest.len,
				.aad_len = v->aad.len,
				.op = direction(v)};
		return VIRTIO_CRYPTO_AEAD_DESTROY_SESSION;
	}
	req->header.opcode = VIRTIO_CRYPTO_CIPHER_CREATE_SESSION;
	sym->op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
	sym->u.cipher.para = cipher;
	if (strcmp(v->kind, "chain") != 0)
		return VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION;
	sym->op_type = VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING;
	chain->alg_chain_order = v->order;
	chain->hash_mode =
		v->keyed ? VIRTIO_CRYPTO_SYM_HASH_MODE_AUTH : VIRTIO_CRYPTO_SYM_HASH_MODE_PLAIN;
	chain->cipher_param = cipher;
	chain->u.mac_param.algo = v->auth_algo;
	chain->u.mac_param.hash_result_len = v->digest.len;
	/* The same place is padding of a plain hash. */
	chain->u.mac_param.auth_key_len = v->keyed ? v->auth_key.len : 0;
	return VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION;
}

static int
create_by_ring(struct cfe *c, const struct vector *v, uint32_t *destroy, uint64_t *id)
{
	struct virtio_crypto_op_ctrl_req req;
	uint8_t keys[64 + 512];

	*destroy = session_request(v, &req);
	if (v->key.len > 0)
		memcpy(keys, v->key.at, v->key.len);
	if (v->auth_key.len > 0)
		memcpy(keys + v->key.len, v->auth_key.at, v->auth_key.len);
	return cfe_create(c, &req, keys, v->key.len + v->auth_key.len, id);
}

/* Only ciphers and chains have a message. */
static int
create_by_message(struct cfe *c, const struct vector *v, uint64_t *id)
{
	struct fe_crypto_session s = {.cipher_alg = v->cipher_algo,
		.key_len = v->key.len,
		.hash_alg = v->auth_algo,
		.hash_result_len = v->digest.len,
		.auth_key_len = v->auth_key.len,
		.op_type = strcmp(v->kind, "chain") == 0 ? VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING
							 : VIRTIO_CRYPTO_SYM_OP_CIPHER,
		.direction = (uint8_t)direction(v),
		.hash_mode = v->keyed ? VIRTIO_CRYPTO_SYM_HASH_MODE_AUTH
				      : VIRTIO_CRYPTO_SYM_HASH_MODE_PLAIN,
		.alg_chain_order = (uint8_t)v->order};
	int rc;

	memcpy(s.key, v->key.at, v->key.len);
	if (v->auth_key.len > 0)
		memcpy(s.auth_key, v->auth_key.at, v->auth_key.len);
	rc = fe_create_crypto_session(&c->conn, &s);
	*id = (uint64_t)s.session_id;
	return rc == 0 && s.session_id < 0 ? VIRTIO_CRYPTO_ERR : rc;
}

static void
data_request(const struct vector *v, uint64_t id, struct virtio_crypto_op_data_req *req)
{
	struct virtio_crypto_alg_chain_data_para *chain = &req->u.sym_req.u.chain.para;

	memset(req, 0, sizeof(*req));
	req->header.session_id = id;
	if (strcmp(v->kind, "hash") == 0 || strcmp(v->kind, "mac") == 0) {
		req->header.opcode = v->kind[0] == 'h' ? VIRTIO_CRYPTO_HASH : VIRTIO_CRYPTO_MAC;
		req->u.hash_req.para.src_data_len = v->src.len;
		req->u.hash_req.para.hash_result_len = v->digest.len;
	} else if (strcmp(v->kind, "aead") == 0) {
		req->header.opcode =
			v->encrypt ? VIRTIO_CRYPTO_AEAD_ENCRYPT : VIRTIO_CRYPTO_AEAD_DECRYPT;
		req->u.aead_req.para = (struct virtio_crypto_aead_para){
			v->iv.len, v->aad.len, v->src.len, v->dst.len};
	} else {
		req->header.opcode =
			v->encrypt ? VIRTIO_CRYPTO_CIPHER_ENCRYPT : VIRTIO_CRYPTO_CIPHER_DECRYPT;
		req->u.sym_req.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
		chain->iv_len = v->iv.len;
		chain->src_data_len = v->src.len;
		chain->dst_data_len = v->dst.len;
		if (strcmp(v->kind, "chain") != 0)
			return;
		req->u.sym_req.op_type = VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING;
		chain->len_to_cipher = chain->len_to_hash = v->src.len;
		chain->hash_result_len = v->digest.len;
	}
}

static uint32_t
result_bytes(const struct vector *v)
{
	/* A digest of its own comes behind the data; of AEAD it is part of it. */
	return v->dst.len + (strcmp(v->kind, "aead") != 0 ? v->digest.len : 0);
}

static void
lay_out(struct cfe *c, struct fe_rng *rng, const struct vector *v, uint64_t id, struct layout *l)
{
	const struct bytes *parts[] = {&v->iv, &v->src, &v->aad};
	struct virtio_crypto_op_data_req req;
	uint64_t gpa = c->buffer_gpa;
	uint32_t len = sizeof(req);

	memset(l, 0, sizeof(*l));
	data_request(v, id, &req);
	memcpy(fe_mem_ptr(&c->mem, gpa), &req, sizeof(req));
	for (size_t i = 0; i < FE_ARRAY_SIZE(parts); i++) {
		if (parts[i]->len > 0)
			memcpy(fe_mem_ptr(&c->mem, gpa + len), parts[i]->at, parts[i]->len);
		len += parts[i]->len;
	}
	l->n = cfe_cut(l->seg, rng, gpa, len, false, CUTS_MAX);
	l->dst_gpa = gpa + len + fe_rng_range(rng, 0, 63);
	l->writable = result_bytes(v) + 1;
	memset(fe_mem_ptr(&c->mem, l->dst_gpa), 0xee, l->writable + 1);
	l->n += cfe_cut(l->seg + l->n, rng, l->dst_gpa, l->writable, true, CUTS_MAX);
}

/* Returns NULL, or what is wrong. */
static const char *
run_once(struct cfe *c, struct fe_rng *rng, const struct vector *v, uint64_t id, bool spoil)
{
	struct layout l;
	uint32_t used = 0;
	const uint8_t *out;
	uint8_t want = spoil ? VIRTIO_CRYPTO_BADMSG : VIRTIO_CRYPTO_OK;

	lay_out(c, rng, v, id, &l);
	if (spoil) /* the last byte of the tag */
		*(uint8_t *)fe_mem_ptr(&c->mem, c->buffer_gpa +
							sizeof(struct virtio_crypto_op_data_req) +
							v->iv.len + v->src.len - 1) ^= 1;
	if (cfe_request(c, &c->data, l.seg, l.n,
		    fe_rng_one_in(rng, 2) || l.n > c->cfg.ring_size ? 0 : l.n, &used) != 0)
		return c->fault.text[0] != '\0' ? c->fault.text : "no answer";
	out = fe_mem_ptr(&c->mem, l.dst_gpa);
	if (used != l.writable)
		return "used.len is not what was writable";
	if (out[l.writable - 1] != want)
		return "status";
	if (out[l.writable] != 0xee)
		return "written behind the buffer";
	if (spoil)
		return NULL;
	if (v->dst.len > 0 && memcmp(out, v->dst.at, v->dst.len) != 0)
		return "data";
	if (strcmp(v->kind, "aead") != 0 && v->digest.len > 0 &&
		memcmp(out + v->dst.len, v->digest.at, v->digest.len) != 0)
		return "digest";
	return NULL;
}

static const char *
run_vector(struct cfe *c, struct fe_rng *rng, const struct vector *v)
{
	bool by_message = v->key.len > 0 && strcmp(v->kind, "aead") != 0;
	const char *wrong = NULL;
	uint64_t ids[2] = {0, 0};
	uint32_t destroy = 0;

	if (create_by_ring(c, v, &destroy, &ids[0]) != VIRTIO_CRYPTO_OK)
		return "no session by the control queue";
	if (by_message && create_by_message(c, v, &ids[1]) != 0)
		return "no session by message";
	for (int i = 0; i < 4 && wrong == NULL; i++)
		wrong = run_once(c, rng, v, ids[by_message ? i % 2 : 0], false);
	if (wrong == NULL && strcmp(v->kind, "aead") == 0 && !v->encrypt)
		wrong = run_once(c, rng, v, ids[0], true);
	if (cfe_destroy(c, destroy, ids[0]) != VIRTIO_CRYPTO_OK)
		return "session not destroyed";
	if (by_message && fe_close_crypto_session(&c->conn, ids[1]) != 0)
		return "session not closed";
	return wrong;
}

int
cfe_vectors(struct cfe *c, const char *file, uint64_t seed)
{
	FILE *in = fopen(file, "r");
	char *line = NULL;
	size_t room = 0;
	struct fe_rng rng;
	int n = 0, failed = 0;

	if (in == NULL) {
		fprintf(stderr, "fe-crypto: %s: %s\n", file, strerror(errno));
		return 1;
	}
	fe_rng_seed(&rng, seed);
	while (getline(&line, &room, in) > 0) {
		struct vector v;
		const char *wrong;

		if (!read_vector(line, &v))
			continue;
		n++;
		wrong = run_vector(c, &rng, &v);
		if (wrong != NULL) {
			printf("FAILED vector %d %s %s cipher %u auth %u, %u bytes: %s\n", n,
				v.kind, v.encrypt ? "enc" : "dec", v.cipher_algo, v.auth_algo,
				v.src.len, wrong);
			failed++;
		}
		free_vector(&v);
	}
	free(line);
	fclose(in);
	printf("%d vectors, %d failed\n", n, failed);
	return failed + (n == 0);
}
