/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests and messages that break rules: each has its answer, and a good request after it
 * passes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "crypto_fe.h"

#define BLOCK 64
/* Where the writable part of a request lies, behind its buffer's start. */
#define OUT   8192

static const uint8_t key[16] = "0123456789abcde";

static uint64_t
good_session(struct cfe *c)
{
	struct virtio_crypto_op_ctrl_req req = {
		.header.opcode = VIRTIO_CRYPTO_CIPHER_CREATE_SESSION};
	uint64_t id = 0;

	req.u.sym_create_session.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
	req.u.sym_create_session.u.cipher.para = (struct virtio_crypto_cipher_session_para){
		VIRTIO_CRYPTO_CIPHER_AES_CBC, sizeof(key), VIRTIO_CRYPTO_OP_ENCRYPT, 0};
	return cfe_create(c, &req, key, sizeof(key), &id) == VIRTIO_CRYPTO_OK ? id : 0;
}

static struct virtio_crypto_op_data_req
good_request(uint64_t id)
{
	struct virtio_crypto_op_data_req req = {
		.header = {.opcode = VIRTIO_CRYPTO_CIPHER_ENCRYPT, .session_id = id}};

	req.u.sym_req.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
	req.u.sym_req.u.cipher.para = (struct virtio_crypto_cipher_para){16, BLOCK, BLOCK, 0};
	return req;
}

/* The status of a request with this much before and behind; -errno if there is none. */
static int
ask(struct cfe *c, const struct virtio_crypto_op_data_req *req, uint32_t readable,
	uint32_t writable)
{
	const struct fe_seg seg[] = {
		{c->buffer_gpa, readable, false}, {c->buffer_gpa + OUT, writable, true}};
	uint8_t *out = fe_mem_ptr(&c->mem, c->buffer_gpa + OUT);
	uint32_t used = 0;
	int rc;

	memcpy(fe_mem_ptr(&c->mem, c->buffer_gpa), req, sizeof(*req));
	memset(out, 0xee, writable + 1);
	rc = cfe_request(c, &c->data, seg, 2, 2, &used);
	if (rc != 0)
		return rc;
	if (used != writable || out[writable] != 0xee)
		return -EPROTO;
	return out[writable - 1];
}

static int
ask_good(struct cfe *c, uint64_t id)
{
	struct virtio_crypto_op_data_req req = good_request(id);

	return ask(c, &req, sizeof(req) + 16 + BLOCK, BLOCK + 1);
}

/* ---- lengths ---------------------------------------------------------------------- */

/* Lengths of a cipher request that do not fit; some of them only just. */
static int
row_lengths(struct cfe *c, struct cfe *other, uint64_t id)
{
	static const uint32_t wrong[][3] = {/* iv, src, dst */
		{255, BLOCK, BLOCK}, {15, BLOCK, BLOCK}, {0, BLOCK, BLOCK},
		{0xffffffff, BLOCK, BLOCK}, {16, BLOCK + 16, BLOCK + 16}, {16, BLOCK + 1, BLOCK},
		{16, 0xfffffff0, 0xfffffff0}, {16, 1 << 20, 1 << 20}, {16, BLOCK, BLOCK - 16},
		{16, BLOCK, BLOCK + 1}, {16, BLOCK, 0xffffffff}, {16, 17, BLOCK}};
	int failed = 0;

	(void)other;
	for (size_t i = 0; i < FE_ARRAY_SIZE(wrong); i++) {
		struct virtio_crypto_op_data_req req = good_request(id);
		int status;

		req.u.sym_req.u.cipher.para = (struct virtio_crypto_cipher_para){
			wrong[i][0], wrong[i][1], wrong[i][2], 0};
		status = ask(c, &req, sizeof(req) + 16 + BLOCK, BLOCK + 1);
		if (status != VIRTIO_CRYPTO_BADMSG && status != VIRTIO_CRYPTO_ERR)
			failed++;
	}
	return failed;
}

/* Lengths and offsets of a cipher with a hash; only the last row is right. */
static int
row_chain_lengths(struct cfe *c, struct cfe *other, uint64_t id)
{
	static const uint32_t rows[][6] = {/* digest, aad, cipher from and length, hash ... */
		{65535, 0, 0, BLOCK, 0, BLOCK}, {0, 0, 0, BLOCK, 0, BLOCK},
		{19, 0, 0, BLOCK, 0, BLOCK}, {21, 0, 0, BLOCK, 0, BLOCK},
		{0xffffffec, 0, 0, BLOCK, 0, BLOCK}, {20, 1, 0, BLOCK, 0, BLOCK},
		{20, 65535, 0, BLOCK, 0, BLOCK}, {20, 0, 16, BLOCK, 0, BLOCK},
		{20, 0, BLOCK + 16, 0, 0, BLOCK}, {20, 0, 0xfffffff0, 16, 0, BLOCK},
		{20, 0, 0, 0xfffffff0, 0, BLOCK}, {20, 0, 0, 17, 0, BLOCK},
		{20, 0, 0, BLOCK, 1, BLOCK}, {20, 0, 0, BLOCK, 0, BLOCK + 1},
		{20, 0, 0, BLOCK, 0xffffffff, 1}, {20, 0, 0, BLOCK, 0, 0xffffffff},
		{20, 0, 0, BLOCK, 0xffffffff, 0xffffffff}, {20, 0, 0, BLOCK, 0, BLOCK}};
	struct virtio_crypto_op_ctrl_req create = {
		.header.opcode = VIRTIO_CRYPTO_CIPHER_CREATE_SESSION};
	struct virtio_crypto_alg_chain_session_para *para =
		&create.u.sym_create_session.u.chain.para;
	uint64_t chain = 0;
	int failed;

	(void)other;
	create.u.sym_create_session.op_type = VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING;
	para->alg_chain_order = VIRTIO_CRYPTO_SYM_ALG_CHAIN_ORDER_CIPHER_THEN_HASH;
	para->hash_mode = VIRTIO_CRYPTO_SYM_HASH_MODE_PLAIN;
	para->cipher_param = (struct virtio_crypto_cipher_session_para){
		VIRTIO_CRYPTO_CIPHER_AES_CBC, sizeof(key), VIRTIO_CRYPTO_OP_ENCRYPT, 0};
	para->u.hash_param =
		(struct virtio_crypto_hash_session_para){VIRTIO_CRYPTO_HASH_SHA1, 20, {0}};
	failed = cfe_create(c, &create, key, sizeof(key), &chain) != VIRTIO_CRYPTO_OK;
	for (size_t i = 0; i < FE_ARRAY_SIZE(rows); i++) {
		struct virtio_crypto_op_data_req req = good_request(chain);
		const uint32_t *v = rows[i];

		req.u.sym_req.op_type = VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING;
		req.u.sym_req.u.chain.para = (struct virtio_crypto_alg_chain_data_para){
			16, BLOCK, BLOCK, v[2], v[3], v[4], v[5], v[1], v[0], 0};
		failed += ask(c, &req, sizeof(req) + 16 + BLOCK, BLOCK + 20 + 1) !=
			  (i + 1 < FE_ARRAY_SIZE(rows) ? VIRTIO_CRYPTO_BADMSG : VIRTIO_CRYPTO_OK);
	}
	(void)id;
	return failed +
	       (cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, chain) != VIRTIO_CRYPTO_OK);
}

static int
row_short(struct cfe *c, struct cfe *other, uint64_t id)
{
	struct virtio_crypto_op_data_req req = good_request(id);
	int failed = 0;

	(void)other;
	for (uint32_t readable = 1; readable < sizeof(req) + 16 + BLOCK; readable += 5)
		failed += ask(c, &req, readable, BLOCK + 1) != VIRTIO_CRYPTO_BADMSG;
	for (uint32_t writable = 1; writable <= BLOCK; writable += 7)
		failed += ask(c, &req, sizeof(req) + 16 + BLOCK, writable) != VIRTIO_CRYPTO_BADMSG;
	return failed;
}

/* Nothing to write the status to; and readable behind writable. Used up with length 0. */
static int
row_no_status(struct cfe *c, struct cfe *other, uint64_t id)
{
	const uint64_t gpa = c->buffer_gpa;
	const struct fe_seg only[] = {{gpa, 200, false}};
	const struct fe_raw_desc turned[] = {
		{gpa + OUT, 65, VRING_DESC_F_WRITE | VRING_DESC_F_NEXT, FE_NEXT_AUTO},
		{gpa, 200, 0, FE_NEXT_AUTO}};
	struct fe_done done;
	uint32_t used = 1;
	int failed = 0;

	(void)other;
	(void)id;
	failed += cfe_request(c, &c->data, only, 1, 1, &used) != 0 || used != 0;
	fe_ring_add_raw(&c->data, turned, 2, 9);
	failed += cfe_await(c, &c->data) != 0;
	return failed + (fe_ring_used(&c->data, &done, 1) != 1 || done.len != 0);
}

/* ---- sessions --------------------------------------------------------------------- */

static int
row_wrong_session(struct cfe *c, struct cfe *other, uint64_t id)
{
	uint64_t theirs = good_session(other), mine = good_session(c);
	const uint64_t wrong[] = {0, 0xffffffff, UINT64_MAX, id ^ 1ULL << 40, theirs};
	int failed = theirs == 0 || mine == 0;

	for (size_t i = 0; i < FE_ARRAY_SIZE(wrong); i++) {
		failed += ask_good(c, wrong[i]) != VIRTIO_CRYPTO_INVSESS;
		failed += cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, wrong[i]) !=
			  VIRTIO_CRYPTO_INVSESS;
	}
	/* One that was, and is not any more. */
	failed += cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, mine) != VIRTIO_CRYPTO_OK;
	failed += ask_good(c, mine) != VIRTIO_CRYPTO_INVSESS;
	/* The other's is still there. */
	failed += ask_good(other, theirs) != VIRTIO_CRYPTO_OK;
	return failed + (cfe_destroy(other, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, theirs) !=
				VIRTIO_CRYPTO_OK);
}

/* A wrong operation for the session. */
static int
row_wrong_operation(struct cfe *c, struct cfe *other, uint64_t id)
{
	static const uint32_t opcodes[] = {VIRTIO_CRYPTO_CIPHER_DECRYPT, VIRTIO_CRYPTO_HASH,
		VIRTIO_CRYPTO_MAC, VIRTIO_CRYPTO_AEAD_ENCRYPT, VIRTIO_CRYPTO_AKCIPHER_ENCRYPT,
		0xffff};
	struct virtio_crypto_op_data_req req = good_request(id);
	int failed = 0;

	(void)other;
	for (size_t i = 0; i < FE_ARRAY_SIZE(opcodes); i++) {
		req.header.opcode = opcodes[i];
		failed += ask(c, &req, sizeof(req) + 16 + BLOCK, BLOCK + 1) != VIRTIO_CRYPTO_BADMSG;
	}
	req = good_request(id);
	req.u.sym_req.op_type = VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING;
	return failed + (ask(c, &req, sizeof(req) + 16 + BLOCK, BLOCK + 1) != VIRTIO_CRYPTO_BADMSG);
}

/* ---- RSA ---------------------------------------------------------------------------- */

#define RSA_BYTES 64

/* Some odd number of 512 bits, and 3. */
static int
rsa_session(struct cfe *c, const struct virtio_crypto_akcipher_session_para *para, uint64_t *id)
{
	struct virtio_crypto_op_ctrl_req req = {
		.header.opcode = VIRTIO_CRYPTO_AKCIPHER_CREATE_SESSION};
	uint8_t der[4 + 1 + RSA_BYTES + 3] = {0x30, 3 + RSA_BYTES + 3, 0x02, RSA_BYTES + 1};

	req.u.akcipher_create_session.para = *para;
	memset(der + 5, 0xd1, RSA_BYTES);
	memcpy(der + 5 + RSA_BYTES, (const uint8_t[]){0x02, 0x01, 0x03}, 3);
	return cfe_create(c, &req, der, sizeof(der), id);
}

static const struct virtio_crypto_akcipher_session_para good_rsa = {
	.algo = VIRTIO_CRYPTO_AKCIPHER_RSA,
	.keytype = VIRTIO_CRYPTO_AKCIPHER_KEY_TYPE_PUBLIC,
	.keylen = 4 + 1 + RSA_BYTES + 3,
	.u.rsa = {VIRTIO_CRYPTO_RSA_PKCS1_PADDING, VIRTIO_CRYPTO_RSA_SHA1},
};

static int
row_rsa_session(struct cfe *c, struct cfe *other, uint64_t id)
{
	static const uint32_t lens[] = {0, 1, 71, 73, 2560, 2561, 65536, 0xffffffff};
	struct virtio_crypto_akcipher_session_para para;
	uint64_t none;
	int failed = 0;

	(void)other;
	(void)id;
	for (size_t i = 0; i < FE_ARRAY_SIZE(lens); i++) {
		para = good_rsa;
		para.keylen = lens[i];
		failed += rsa_session(c, &para, &none) <= VIRTIO_CRYPTO_OK;
	}
	for (uint32_t i = 0; i < 10; i++) {
		static const uint32_t other_values[] = {0, 3};

		para = good_rsa;
		if (i < 2)
			para.keytype = other_values[i];
		else if (i == 2) /* it is not one */
			para.keytype = VIRTIO_CRYPTO_AKCIPHER_KEY_TYPE_PRIVATE;
		else if (i < 6)
			para.algo = i == 3 ? 0 : i - 2;
		else if (i == 6)
			para.u.rsa.padding_algo = 2;
		else
			para.u.rsa.hash_algo = i == 9 ? 10 : i - 6;
		failed += rsa_session(c, &para, &none) <= VIRTIO_CRYPTO_OK;
	}
	return failed;
}

static int
row_rsa_request(struct cfe *c, struct cfe *other, uint64_t id)
{
	static const struct {
		uint32_t opcode, src, dst;
	} wrong[] = {
		{VIRTIO_CRYPTO_AKCIPHER_ENCRYPT, RSA_BYTES + 1, RSA_BYTES},
		{VIRTIO_CRYPTO_AKCIPHER_ENCRYPT, RSA_BYTES, RSA_BYTES}, /* no room for padding */
		{VIRTIO_CRYPTO_AKCIPHER_ENCRYPT, 20, RSA_BYTES - 1},
		{VIRTIO_CRYPTO_AKCIPHER_ENCRYPT, 20, 0},
		{VIRTIO_CRYPTO_AKCIPHER_ENCRYPT, 20, RSA_BYTES + 1},
		{VIRTIO_CRYPTO_AKCIPHER_ENCRYPT, 20, 0xffffffff},
		{VIRTIO_CRYPTO_AKCIPHER_ENCRYPT, 0xffffffff, RSA_BYTES},
		{VIRTIO_CRYPTO_AKCIPHER_DECRYPT, RSA_BYTES, RSA_BYTES},
		{VIRTIO_CRYPTO_AKCIPHER_SIGN, 20, RSA_BYTES},
		{VIRTIO_CRYPTO_AKCIPHER_VERIFY, RSA_BYTES + 1, 20},
		{VIRTIO_CRYPTO_AKCIPHER_VERIFY, RSA_BYTES, RSA_BYTES + 1},
		{VIRTIO_CRYPTO_AKCIPHER_VERIFY, RSA_BYTES, 60},
		{VIRTIO_CRYPTO_AKCIPHER_VERIFY, 0xffffffff, 21},
		{VIRTIO_CRYPTO_AKCIPHER_VERIFY, 21, 0xffffffff},
		{VIRTIO_CRYPTO_AKCIPHER_VERIFY, 1U << 31, 1U << 31},
		{VIRTIO_CRYPTO_CIPHER_ENCRYPT, 20, RSA_BYTES},
		{VIRTIO_CRYPTO_AKCIPHER_VERIFY + 1, 20, RSA_BYTES},
	};
	struct virtio_crypto_op_data_req req = {.header.opcode = 0};
	uint64_t rsa = 0;
	int failed = rsa_session(c, &good_rsa, &rsa) != VIRTIO_CRYPTO_OK;

	(void)other;
	(void)id;
	req.header.session_id = rsa;
	for (size_t i = 0; i < FE_ARRAY_SIZE(wrong); i++) {
		int status;

		req.header.opcode = wrong[i].opcode;
		req.u.akcipher_req.para =
			(struct virtio_crypto_akcipher_para){wrong[i].src, wrong[i].dst};
		/* Enough for what is one too many, not for more. */
		status = ask(c, &req, sizeof(req) + RSA_BYTES + 21, RSA_BYTES + 1);
		if (status != VIRTIO_CRYPTO_BADMSG && status != VIRTIO_CRYPTO_ERR)
			failed++;
	}
	/* Nonsense of a right length. */
	req.header.opcode = VIRTIO_CRYPTO_AKCIPHER_VERIFY;
	req.u.akcipher_req.para = (struct virtio_crypto_akcipher_para){RSA_BYTES, 20};
	failed += ask(c, &req, sizeof(req) + RSA_BYTES + 20, 1) != VIRTIO_CRYPTO_KEY_REJECTED;
	return failed +
	       (cfe_destroy(c, VIRTIO_CRYPTO_AKCIPHER_DESTROY_SESSION, rsa) != VIRTIO_CRYPTO_OK);
}

/* As many sessions as the device has room for, and one more. */
static int
row_limit(struct cfe *c, struct cfe *other, uint64_t id)
{
	static uint64_t ids[1 << 16];
	uint32_t n = 0;
	int failed = 0;

	(void)other;
	while (n < FE_ARRAY_SIZE(ids) && (ids[n] = good_session(c)) != 0)
		n++;
	failed += n < 15 || n == FE_ARRAY_SIZE(ids);
	for (uint32_t i = 0; i < n; i++)
		failed += cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, ids[i]) !=
			  VIRTIO_CRYPTO_OK;
	return failed + (ask_good(c, id) != VIRTIO_CRYPTO_OK);
}

/* ---- messages --------------------------------------------------------------------- */

static int
row_messages(struct cfe *c, struct cfe *other, uint64_t id)
{
	static const uint32_t key_lens[] = {0, 1, 15, 17, 33, 64, 65, 0xffffffff};
	struct fe_crypto_session good = {.cipher_alg = VIRTIO_CRYPTO_CIPHER_AES_CBC,
		.key_len = 16,
		.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER,
		.direction = VIRTIO_CRYPTO_OP_ENCRYPT};
	struct fe_crypto_session s;
	struct fe_msg reply;
	int failed = 0;

	(void)other;
	(void)id;
	for (size_t i = 0; i < FE_ARRAY_SIZE(key_lens); i++) {
		s = good;
		s.key_len = key_lens[i];
		failed += fe_create_crypto_session(&c->conn, &s) != 0 || s.session_id >= 0;
	}
	for (uint32_t i = 0; i < 6; i++) {
		s = good;
		if (i < 2)
			s.cipher_alg = i == 0 ? 99 : 0xffffffff;
		else if (i < 4)
			s.direction = i == 2 ? 0 : 3;
		else
			s.op_type = i == 4 ? 0 : 9;
		failed += fe_create_crypto_session(&c->conn, &s) != 0 || s.session_id >= 0;
	}
	/* 8 of 632 bytes. */
	failed += fe_call(&c->conn, FE_CREATE_CRYPTO_SESSION, &good, 8, NULL, 0, &reply) != 0 ||
		  reply.hdr.size != sizeof(good) || (int64_t)reply.payload.u64 >= 0;
	/* Ids that are not there are passed over. */
	failed += fe_close_crypto_session(&c->conn, 0) != 0;
	failed += fe_close_crypto_session(&c->conn, UINT64_MAX) != 0;
	s = good;
	memcpy(s.key, key, sizeof(key));
	failed += fe_create_crypto_session(&c->conn, &s) != 0 || s.session_id < 0;
	failed += ask_good(c, (uint64_t)s.session_id) != VIRTIO_CRYPTO_OK;
	return failed + (fe_close_crypto_session(&c->conn, (uint64_t)s.session_id) != 0);
}

/* ---- a guest that changes its mind --------------------------------------------------- */

static bool stop_flipping;

static void *
flip(void *arg)
{
	struct virtio_crypto_op_data_req *req = arg;
	volatile uint32_t *src = &req->u.sym_req.u.cipher.para.src_data_len;
	volatile uint32_t *iv = &req->u.sym_req.u.cipher.para.iv_len;

	while (!__atomic_load_n(&stop_flipping, __ATOMIC_RELAXED)) {
		*src = 0xfffffff0;
		*iv = 16;
		*src = BLOCK;
		*iv = 255;
		*src = BLOCK + 16;
		*iv = 16;
	}
	return NULL;
}

static int
row_flipped(struct cfe *c, struct cfe *other, uint64_t id)
{
	struct virtio_crypto_op_data_req req = good_request(id);
	pthread_t thread;
	int failed = 0;

	(void)other;
	__atomic_store_n(&stop_flipping, false, __ATOMIC_RELAXED);
	if (pthread_create(&thread, NULL, flip, fe_mem_ptr(&c->mem, c->buffer_gpa)) != 0)
		return 1;
	for (int i = 0; i < 2000; i++)
		failed += ask(c, &req, sizeof(req) + 16 + BLOCK, BLOCK + 1) < 0;
	__atomic_store_n(&stop_flipping, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	return failed;
}

int
cfe_hostile(struct cfe *c, struct cfe *other)
{
	static const struct {
		const char *name;
		int (*run)(struct cfe *c, struct cfe *other, uint64_t id);
	} rows[] = {
		{"C4-lengths", row_lengths},
		{"C4-chain-lengths", row_chain_lengths},
		{"C4-short", row_short},
		{"C4-flipped", row_flipped},
		{"no-status", row_no_status},
		{"C2-wrong-session", row_wrong_session},
		{"wrong-operation", row_wrong_operation},
		{"RSA-session", row_rsa_session},
		{"RSA-request", row_rsa_request},
		{"session-limit", row_limit},
		{"C3-messages", row_messages},
	};
	uint64_t id = good_session(c);
	int failed = 0;

	for (size_t i = 0; i < FE_ARRAY_SIZE(rows); i++) {
		int wrong = rows[i].run(c, other, id);

		wrong += ask_good(c, id) != VIRTIO_CRYPTO_OK;
		printf("%s %s\n", wrong == 0 ? "ok" : "FAILED", rows[i].name);
		failed += wrong != 0;
	}
	failed += cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, id) != VIRTIO_CRYPTO_OK;
	return failed;
}
