/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a front end waits for a session: QEMU sends it as a message and does nothing else
 * until the answer is there; one with a control queue of its own gets a call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "crypto_fe.h"

/* Case C6. */
#define LIMIT_US 5000

static const uint8_t key[16] = "latency";

struct samples {
	uint32_t *us;
	uint32_t n;
};

/* Long enough for the poller to fall asleep, if it may. */
static void
pause_us(uint32_t us)
{
	if (us > 0)
		nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

static void
note(struct samples *s, uint64_t start_us)
{
	s->us[s->n++] = (uint32_t)(fe_now_us() - start_us);
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
print(const char *way, struct samples *s)
{
	uint32_t late = 0;

	qsort(s->us, s->n, sizeof(s->us[0]), compare);
	for (uint32_t i = 0; i < s->n; i++)
		late += s->us[i] > LIMIT_US;
	printf("latency %s answers %u p50 %u p99 %u p99.9 %u longest %u us, above %d us %u\n", way,
		s->n, s->us[s->n / 2], s->us[(uint64_t)s->n * 99 / 100],
		s->us[(uint64_t)s->n * 999 / 1000], s->us[s->n - 1], LIMIT_US, late);
}

static int
by_messages(struct cfe *c, const struct cfe_latency *how, struct samples *s)
{
	int failed = 0;

	for (uint32_t i = 0; i < how->sessions && failed == 0; i++) {
		struct fe_crypto_session session = {.cipher_alg = VIRTIO_CRYPTO_CIPHER_AES_CBC,
			.key_len = sizeof(key),
			.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER,
			.direction = VIRTIO_CRYPTO_OP_ENCRYPT};
		uint64_t start_us;

		memcpy(session.key, key, sizeof(key));
		pause_us(how->pause_us);
		start_us = fe_now_us();
		failed +=
			fe_create_crypto_session(&c->conn, &session) != 0 || session.session_id < 0;
		note(s, start_us);
		start_us = fe_now_us();
		failed += fe_close_crypto_session(&c->conn, (uint64_t)session.session_id) != 0;
		note(s, start_us);
	}
	return failed;
}

static int
by_ring(struct cfe *c, const struct cfe_latency *how, struct samples *s)
{
	struct virtio_crypto_op_ctrl_req req = {
		.header.opcode = VIRTIO_CRYPTO_CIPHER_CREATE_SESSION};
	int failed = 0;

	req.u.sym_create_session.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
	req.u.sym_create_session.u.cipher.para = (struct virtio_crypto_cipher_session_para){
		VIRTIO_CRYPTO_CIPHER_AES_CBC, sizeof(key), VIRTIO_CRYPTO_OP_ENCRYPT, 0};
	for (uint32_t i = 0; i < how->sessions && failed == 0; i++) {
		uint64_t start_us, id = 0;

		pause_us(how->pause_us);
		start_us = fe_now_us();
		failed += cfe_create(c, &req, key, sizeof(key), &id) != VIRTIO_CRYPTO_OK;
		note(s, start_us);
		start_us = fe_now_us();
		failed += cfe_destroy(c, VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION, id) !=
			  VIRTIO_CRYPTO_OK;
		note(s, start_us);
	}
	return failed;
}

int
cfe_latency(struct cfe *c, const struct cfe_latency *how)
{
	struct samples s = {.us = calloc(2ULL * how->sessions, sizeof(s.us[0]))};
	int failed;

	if (s.us == NULL)
		return 1;
	failed = by_messages(c, how, &s);
	print("message", &s);
	s.n = 0;
	failed += by_ring(c, how, &s);
	print("ring", &s);
	free(s.us);
	return failed;
}
