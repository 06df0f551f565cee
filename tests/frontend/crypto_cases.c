/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a front end may do at an unusual moment or in an unusual order: rings that are kicked
 * before they are there, heads in falling order, sessions while the poller sleeps or is busy.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "crypto_fe.h"

/* CBC-AES128.Encrypt of SP 800-38A, F.2.1: any number of its blocks is a known answer. */
#define BLOCKS 4

static const uint8_t key[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15,
	0x88, 0x09, 0xcf, 0x4f, 0x3c};
static const uint8_t iv[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t plain[16 * BLOCKS] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9,
	0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a, 0xae, 0x2d, 0x8a, 0x57, 0x1e, 0x03, 0xac, 0x9c,
	0x9e, 0xb7, 0x6f, 0xac, 0x45, 0xaf, 0x8e, 0x51, 0x30, 0xc8, 0x1c, 0x46, 0xa3, 0x5c, 0xe4,
	0x11, 0xe5, 0xfb, 0xc1, 0x19, 0x1a, 0x0a, 0x52, 0xef, 0xf6, 0x9f, 0x24, 0x45, 0xdf, 0x4f,
	0x9b, 0x17, 0xad, 0x2b, 0x41, 0x7b, 0xe6, 0x6c, 0x37, 0x10};
static const uint8_t ciphered[16 * BLOCKS] = {0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce,
	0xe9, 0x8e, 0x9b, 0x12, 0xe9, 0x19, 0x7d, 0x50, 0x86, 0xcb, 0x9b, 0x50, 0x72, 0x19, 0xee,
	0x95, 0xdb, 0x11, 0x3a, 0x91, 0x76, 0x78, 0xb2, 0x73, 0xbe, 0xd6, 0xb8, 0xe3, 0xc1, 0x74,
	0x3b, 0x71, 0x16, 0xe6, 0x9e, 0x22, 0x22, 0x95, 0x16, 0x3f, 0xf1, 0xca, 0xa1, 0x68, 0x1f,
	0xac, 0x09, 0x12, 0x0e, 0xca, 0x30, 0x75, 0x86, 0xe1, 0xa7};

/* Guest memory of one request: what is read, what is written. */
#define SLOT_BYTES 1024
#define OUT        512

static const struct virtio_crypto_op_ctrl_req create_req = {
	.header.opcode = VIRTIO_CRYPTO_CIPHER_CREATE_SESSION,
	.u.sym_create_session = {.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER,
		.u.cipher.para = {VIRTIO_CRYPTO_CIPHER_AES_CBC, sizeof(key),
			VIRTIO_CRYPTO_OP_ENCRYPT, 0}},
};

/* Add a request for so many blocks; its token is the slot. Returns its head, or -errno. */
static int
add_data(struct cfe *c, uint32_t slot, uint64_t session, uint32_t blocks)
{
	uint64_t gpa = c->buffer_gpa + 8192 + (uint64_t)slot * SLOT_BYTES;
	uint8_t *at = fe_mem_ptr(&c->mem, gpa);
	struct virtio_crypto_op_data_req req = {
		.header = {.opcode = VIRTIO_CRYPTO_CIPHER_ENCRYPT, .session_id = session}};
	const struct fe_seg seg[] = {
		{gpa, sizeof(req) + 16 + 16 * blocks, false}, {gpa + OUT, 16 * blocks + 1, true}};

	req.u.sym_req.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
	req.u.sym_req.u.cipher.para =
		(struct virtio_crypto_cipher_para){16, 16 * blocks, 16 * blocks, 0};
	memcpy(at, &req, sizeof(req));
	memcpy(at + sizeof(req), iv, sizeof(iv));
	memcpy(at + sizeof(req) + 16, plain, 16 * blocks);
	memset(at + OUT, 0xee, 16 * blocks + 2);
	return fe_ring_add(&c->data, seg, 2, 2, slot);
}

/* Is the answer in this slot the right one, and nothing behind it? */
static bool
answer_is_right(struct cfe *c, uint32_t slot, uint32_t blocks)
{
	const uint8_t *out =
		fe_mem_ptr(&c->mem, c->buffer_gpa + 8192 + (uint64_t)slot * SLOT_BYTES + OUT);

	return memcmp(out, ciphered, 16 * blocks) == 0 && out[16 * blocks] == VIRTIO_CRYPTO_OK &&
	       out[16 * blocks + 1] == 0xee;
}

/* A session by the control queue, a request, its answer. Returns the number of failures. */
static int
works(struct cfe *c)
{
	struct fe_done done = {0};
	uint64_t id = 0;
	int failed = cfe_create(c, &create_req, key, sizeof(key), &id) != VIRTIO_CRYPTO_OK;

	failed += add_data(c, 0, id, BLOCKS) < 0 || cfe_await(c, &c->data) != 0 ||
		  fe_ring_used(&c->data, &done, 1) != 1;
	failed += done.len != 16 * BLOCKS + 1 || !answer_is_right(c, 0, BLOCKS);
	return failed +
	       (cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, id) != VIRTIO_CRYPTO_OK);
}

/* ---- C1: not set up yet -------------------------------------------------------------------- */

static int
session_by_message(struct cfe *c)
{
	struct fe_crypto_session s = {.cipher_alg = VIRTIO_CRYPTO_CIPHER_AES_CBC,
		.key_len = sizeof(key),
		.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER,
		.direction = VIRTIO_CRYPTO_OP_ENCRYPT};

	memcpy(s.key, key, sizeof(key));
	if (fe_create_crypto_session(&c->conn, &s) != 0 || s.session_id < 0)
		return -EPROTO;
	return fe_close_crypto_session(&c->conn, (uint64_t)s.session_id);
}

/* Kick both rings, whatever there is of them, and let the poller look. */
static int
kick_all(struct cfe *c)
{
	fe_ring_kick_always(&c->data);
	fe_ring_kick_always(&c->ctrl);
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	return fe_sync(&c->conn);
}

/* One step of an order, for one ring. */
static int
step(struct cfe *c, char what, struct fe_ring *r, uint32_t index)
{
	const struct fe_vring_addr addr = {
		.index = index,
		.desc = fe_mem_uva(r->mem, r->desc_gpa),
		.avail = fe_mem_uva(r->mem, r->driver_gpa),
		.used = fe_mem_uva(r->mem, r->device_gpa),
	};
	uint32_t base = r->base;

	if (r->cfg.packed)
		base |= base << 16;
	switch (what) {
	case 'm':
		return fe_mem_announce(&c->mem, &c->conn);
	case 'n':
		return fe_set_vring_num(&c->conn, index, r->cfg.size);
	case 'b':
		return fe_set_vring_base(&c->conn, index, base);
	case 'a':
		return fe_set_vring_addr(&c->conn, &addr);
	case 'k':
		return fe_set_vring_fd(&c->conn, FE_SET_VRING_KICK, index, r->kick_fd);
	case 'c':
		return fe_set_vring_fd(&c->conn, FE_SET_VRING_CALL, index, r->call_fd);
	case 'e':
		return fe_set_vring_enable(&c->conn, index, 1);
	case 'g':
		return fe_get_vring_base(&c->conn, index, &base);
	case 's':
		return session_by_message(c);
	default:
		return kick_all(c);
	}
}

/* 0 and 1 choose the ring: data, control; the letters are those of step(). */
static const struct early {
	const char *steps;
	bool complete; /* every step is right, and at the end it works */
} orders[] = {
	{"!", false},
	{"s!s", false},
	{"0e1e!", false},
	{"0k1k!", false},
	{"0ke1ke!s", false},
	{"0g1g!", false},
	{"m0k1k!e0e!", false},
	{"m0n1n!0k1k!", false},
	{"m0a1a!0k1k!", false},
	{"m0nbak1k!", false},
	{"m0k1nbak!", false},
	{"m0nbakc!1nc!", false},
	{"0nbk1nbk!m!", false},
	{"0k1k!m0nbac1nbac!", true},
	{"0kc1kc!m1nba!0nba!", true},
	{"m1nbakce!s0nbakce!", true},
};

int
cfe_early(const struct cfe_cfg *cfg)
{
	int failed = 0;

	for (size_t i = 0; i < FE_ARRAY_SIZE(orders); i++) {
		const struct early *o = &orders[i];
		struct cfe c;
		int wrong = cfe_prepare(&c, cfg) != 0;
		uint32_t index = 0;

		for (const char *s = o->steps; *s != '\0' && wrong == 0; s++) {
			int rc = 0;

			if (*s == '0' || *s == '1')
				index = *s == '0' ? 0 : c.config.max_dataqueues;
			else
				rc = step(&c, *s, index == 0 ? &c.data : &c.ctrl, index);
			/* What makes no sense may be refused, and the connection closed. */
			if (rc != 0 && !o->complete)
				break;
			wrong += rc != 0;
		}
		if (o->complete && wrong == 0)
			wrong += works(&c);
		cfe_close(&c);
		wrong += cfe_open(&c, cfg) != 0 || works(&c) != 0;
		cfe_close(&c);
		printf("%s C1 %s\n", wrong == 0 ? "ok" : "FAILED", o->steps);
		failed += wrong != 0;
	}
	return failed;
}

/* ---- C5: heads in falling order ------------------------------------------------------------- */

#define TURNED 8

/* The entries that were added last, and are not published yet, the other way round. */
static void
turn_round(struct fe_ring *r, uint32_t n, uint32_t descs)
{
	uint16_t mask = (uint16_t)(r->cfg.size - 1);
	uint16_t first = (uint16_t)(r->next_avail - n);

	for (uint32_t i = 0; i < n / 2 && !r->cfg.packed; i++) {
		uint16_t *a = &r->avail->ring[(uint16_t)(first + i) & mask];
		uint16_t *b = &r->avail->ring[(uint16_t)(first + n - 1 - i) & mask];
		uint16_t head = *a;

		*a = *b;
		*b = head;
	}
	/* Packed: places are in order, so the chains' ids fall and their contents go with them. */
	for (uint32_t i = 0; i < n / 2 && r->cfg.packed; i++) {
		for (uint32_t k = 0; k < descs; k++) {
			uint32_t at = r->next_avail + 2 * r->cfg.size - n * descs + k;
			struct vring_packed_desc *a = &r->pdesc[(at + i * descs) % r->cfg.size];
			struct vring_packed_desc *b =
				&r->pdesc[(at + (n - 1 - i) * descs) % r->cfg.size];
			struct vring_packed_desc kept = *a;

			a->addr = b->addr, a->len = b->len, a->id = b->id;
			b->addr = kept.addr, b->len = kept.len, b->id = kept.id;
		}
	}
}

/* Collect n buffers; falling[i] is the head of the one that was added i-th. */
static int
collect(struct cfe *c, struct fe_ring *r, const int *heads, struct fe_done *done)
{
	uint32_t n = 0;
	int failed = cfe_await(c, r) != 0;

	while (n < TURNED && failed == 0) {
		int got = fe_ring_used(r, done + n, TURNED - n);

		failed += got < 0;
		n += got > 0 ? (uint32_t)got : 0;
		if (n < TURNED && failed == 0 && !fe_ring_arm(r, 0))
			failed += fe_ring_wait(r, c->cfg.timeout_ms * 1000) <= 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot = TURNED - 1 - i;

		failed += done[i].token != slot || done[i].id != (uint32_t)heads[slot];
	}
	return failed;
}

static int
reversed_data(struct cfe *c, uint64_t session)
{
	struct fe_done done[TURNED] = {0};
	int heads[TURNED];
	int failed = 0;

	for (uint32_t i = 0; i < TURNED; i++) {
		heads[i] = add_data(c, i, session, 1 + i % BLOCKS);
		failed += heads[i] < 0;
	}
	turn_round(&c->data, TURNED, 2);
	failed += collect(c, &c->data, heads, done);
	for (uint32_t i = 0; i < TURNED; i++) {
		uint32_t blocks = 1 + (TURNED - 1 - i) % BLOCKS;

		failed += done[i].len != 16 * blocks + 1;
		failed += !answer_is_right(c, TURNED - 1 - i, blocks);
	}
	return failed;
}

static int
reversed_ctrl(struct cfe *c)
{
	uint64_t gpa = c->buffer_gpa + 8192;
	struct fe_done done[TURNED] = {0};
	int heads[TURNED];
	int failed = 0;

	for (uint32_t i = 0; i < TURNED; i++, gpa += SLOT_BYTES) {
		uint8_t *at = fe_mem_ptr(&c->mem, gpa);
		const struct fe_seg seg[] = {{gpa, sizeof(create_req) + sizeof(key), false},
			{gpa + OUT, sizeof(struct virtio_crypto_session_input), true}};

		memcpy(at, &create_req, sizeof(create_req));
		memcpy(at + sizeof(create_req), key, sizeof(key));
		memset(at + OUT, 0xee, sizeof(struct virtio_crypto_session_input));
		heads[i] = fe_ring_add(&c->ctrl, seg, 2, 2, i);
		failed += heads[i] < 0;
	}
	turn_round(&c->ctrl, TURNED, 2);
	failed += collect(c, &c->ctrl, heads, done);
	gpa = c->buffer_gpa + 8192;
	for (uint32_t i = 0; i < TURNED; i++, gpa += SLOT_BYTES) {
		const struct virtio_crypto_session_input *in = fe_mem_ptr(&c->mem, gpa + OUT);

		failed += done[i].len != sizeof(*in) || in->status != VIRTIO_CRYPTO_OK;
		/* Each is a session of its own. */
		failed += cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, in->session_id) !=
			  VIRTIO_CRYPTO_OK;
	}
	return failed;
}

int
cfe_reversed(struct cfe *c)
{
	uint64_t id = 0;
	int failed = cfe_create(c, &create_req, key, sizeof(key), &id) != VIRTIO_CRYPTO_OK;

	for (int round = 0; round < 100; round++)
		failed += (reversed_data(c, id) + reversed_ctrl(c)) != 0;
	failed += cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, id) != VIRTIO_CRYPTO_OK;
	printf("%s C5 heads in falling order\n", failed == 0 ? "ok" : "FAILED");
	return failed;
}
