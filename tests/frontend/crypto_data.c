/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much data a device ciphers: AES-CBC with a key of 128 bits, so many requests in flight,
 * each from its source to its destination as Linux's driver has it: header, IV, source,
 * destination and status in an indirect table. One thread polls and never waits for a call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto_fe.h"

#define SEGS  5
#define BURST 32

/* CBC-AES128.Encrypt of SP 800-38A, F.2.1, first block. */
static const uint8_t key[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15,
	0x88, 0x09, 0xcf, 0x4f, 0x3c};
static const uint8_t iv[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t plain[16] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e,
	0x11, 0x73, 0x93, 0x17, 0x2a};
static const uint8_t ciphered[16] = {0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce, 0xe9,
	0x8e, 0x9b, 0x12, 0xe9, 0x19, 0x7d};

/* One request's place in guest memory. */
struct place {
	struct fe_seg seg[SEGS];
	uint8_t *dst, *status;
};

struct run {
	struct cfe *c;
	const struct cfe_data *how;
	struct place *places;
	uint64_t session;
	uint64_t done, wrong, empty_looks, looks;
};

static int
make_session(struct run *r)
{
	struct virtio_crypto_op_ctrl_req req = {
		.header.opcode = VIRTIO_CRYPTO_CIPHER_CREATE_SESSION};

	req.u.sym_create_session.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
	req.u.sym_create_session.u.cipher.para = (struct virtio_crypto_cipher_session_para){
		VIRTIO_CRYPTO_CIPHER_AES_CBC, sizeof(key), VIRTIO_CRYPTO_OP_ENCRYPT, 0};
	return cfe_create(r->c, &req, key, sizeof(key), &r->session);
}

static void
make_place(struct run *r, uint32_t i)
{
	uint32_t bytes = r->how->bytes;
	uint64_t room = (192 + 2ULL * bytes + 63) & ~63ULL;
	uint64_t gpa = r->c->buffer_gpa + 8192 + i * room;
	uint64_t src = gpa + 128, dst = src + bytes;
	struct virtio_crypto_op_data_req *req = fe_mem_ptr(&r->c->mem, gpa);
	struct place *p = &r->places[i];

	memset(req, 0, sizeof(*req));
	req->header = (struct virtio_crypto_op_header){
		.opcode = VIRTIO_CRYPTO_CIPHER_ENCRYPT, .session_id = r->session};
	req->u.sym_req.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
	req->u.sym_req.u.cipher.para = (struct virtio_crypto_cipher_para){16, bytes, bytes, 0};
	memcpy(fe_mem_ptr(&r->c->mem, gpa + sizeof(*req)), iv, sizeof(iv));
	memset(fe_mem_ptr(&r->c->mem, src), 0, bytes);
	memcpy(fe_mem_ptr(&r->c->mem, src), plain, sizeof(plain));
	*p = (struct place){
		.seg = {{gpa, sizeof(*req), false}, {gpa + sizeof(*req), sizeof(iv), false},
			{src, bytes, false}, {dst, bytes, true}, {dst + bytes, 1, true}},
		.dst = fe_mem_ptr(&r->c->mem, dst),
		.status = fe_mem_ptr(&r->c->mem, dst + bytes),
	};
	memset(p->dst, 0xee, bytes + 1);
}

/* Offer the request again; what the last answer has left is gone. */
static void
offer(struct run *r, uint32_t i)
{
	*r->places[i].status = 0xee;
	memset(r->places[i].dst, 0xee, sizeof(ciphered));
	r->wrong += fe_ring_add(&r->c->data, r->places[i].seg, SEGS, 0, i) < 0;
}

static int
turn(struct run *r)
{
	struct fe_done done[BURST];
	int n = fe_ring_used(&r->c->data, done, BURST);

	r->looks++;
	r->empty_looks += n == 0;
	for (int i = 0; i < n; i++) {
		struct place *p = &r->places[done[i].token];

		r->wrong += done[i].len != r->how->bytes + 1 || *p->status != VIRTIO_CRYPTO_OK ||
			    memcmp(p->dst, ciphered, sizeof(ciphered)) != 0;
		r->done++;
		offer(r, (uint32_t)done[i].token);
	}
	if (n > 0)
		fe_ring_kick(&r->c->data);
	return n < 0;
}

/* Wait for what is in flight. All of them had the same to do: so are their results. */
static int
end(struct run *r)
{
	uint64_t end_ns = fe_now_ns() + r->c->cfg.timeout_ms * 1000000ULL;
	struct fe_done done[BURST];
	int n = 0, failed = 0;

	while (fe_ring_outstanding(&r->c->data) > 0 && n >= 0 && fe_now_ns() < end_ns)
		n = fe_ring_used(&r->c->data, done, BURST);
	failed += fe_ring_outstanding(&r->c->data) > 0;
	for (uint32_t i = 1; i < r->how->depth; i++)
		failed += memcmp(r->places[i].dst, r->places[0].dst, r->how->bytes) != 0;
	return failed + (cfe_destroy(r->c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, r->session) !=
				VIRTIO_CRYPTO_OK);
}

int
cfe_data(struct cfe *c, const struct cfe_data *how)
{
	struct run r = {.c = c, .how = how, .places = calloc(how->depth, sizeof(struct place))};
	uint64_t start = fe_now_ns(), stop = start + how->ms * 1000000ULL;
	double took;
	int failed = r.places == NULL || make_session(&r) != VIRTIO_CRYPTO_OK;

	if (failed)
		return failed;
	fe_ring_disarm(&c->data);
	for (uint32_t i = 0; i < how->depth; i++) {
		make_place(&r, i);
		offer(&r, i);
	}
	fe_ring_kick(&c->data);
	while (fe_now_ns() < stop && failed == 0)
		failed += turn(&r);
	took = (double)(fe_now_ns() - start) / 1e9;
	printf("data bytes %u depth %u requests %llu operations/s %.0f MB/s %.1f wrong %llu idle "
	       "%.0f %%\n",
		how->bytes, how->depth, (unsigned long long)r.done, (double)r.done / took,
		(double)r.done * how->bytes / took / 1e6, (unsigned long long)r.wrong,
		100.0 * (double)r.empty_looks / (double)r.looks);
	failed += r.done == 0 || r.wrong > 0;
	failed += end(&r);
	free(r.places);
	return failed;
}
