/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RSA: each line of a file is a session or a request of it, and the answer that it has to get
 * (keys, signatures and texts were made by others):
 *
 *   session public|private PADDING HASH DER STATUS
 *   encrypt|decrypt|sign SOURCE ROOM STATUS RESULT     RESULT ?: printed, for others to check
 *   verify SIGNATURE DIGEST STATUS
 *
 * Bytes are in hexadecimal, - for none. Requests are cut at random places.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto_fe.h"

#define CUTS_MAX   6
#define BYTES_MAX  8192
/* Where the writable part of a request lies, behind its buffer's start. */
#define OUT        (4 * BYTES_MAX)
#define FIELDS_MAX 6

struct bytes {
	uint8_t at[BYTES_MAX];
	uint32_t len;
};

struct rsa {
	struct cfe *c;
	struct fe_rng rng;
	uint64_t id;
	bool open;
};

static void
from_hex(const char *text, struct bytes *b)
{
	b->len = text[0] == '-' ? 0 : (uint32_t)strlen(text) / 2;
	for (uint32_t i = 0; i < b->len && i < BYTES_MAX; i++) {
		const char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

		b->at[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
}

static uint32_t
number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 0);
}

static const char *
close_session(struct rsa *r)
{
	bool was_open = r->open;

	r->open = false;
	return was_open && cfe_destroy(r->c, VIRTIO_CRYPTO_AKCIPHER_DESTROY_SESSION, r->id) !=
				       VIRTIO_CRYPTO_OK
		       ? "session not destroyed"
		       : NULL;
}

static const char *
open_session(struct rsa *r, char **field)
{
	static struct bytes der;
	struct virtio_crypto_op_ctrl_req req = {
		.header.opcode = VIRTIO_CRYPTO_AKCIPHER_CREATE_SESSION};
	struct virtio_crypto_akcipher_session_para *para = &req.u.akcipher_create_session.para;
	const char *wrong = close_session(r);
	int status;

	from_hex(field[4], &der);
	para->algo = VIRTIO_CRYPTO_AKCIPHER_RSA;
	para->keytype = strcmp(field[1], "private") == 0 ? VIRTIO_CRYPTO_AKCIPHER_KEY_TYPE_PRIVATE
							 : VIRTIO_CRYPTO_AKCIPHER_KEY_TYPE_PUBLIC;
	para->keylen = der.len;
	para->u.rsa.padding_algo = number(field[2]);
	para->u.rsa.hash_algo = number(field[3]);
	status = cfe_create(r->c, &req, der.at, der.len, &r->id);
	r->open = status == VIRTIO_CRYPTO_OK;
	return wrong != NULL ? wrong : status == (int)number(field[5]) ? NULL : "status of session";
}

static uint32_t
opcode_of(const char *name)
{
	return strcmp(name, "encrypt") == 0   ? VIRTIO_CRYPTO_AKCIPHER_ENCRYPT
	       : strcmp(name, "decrypt") == 0 ? VIRTIO_CRYPTO_AKCIPHER_DECRYPT
	       : strcmp(name, "sign") == 0    ? VIRTIO_CRYPTO_AKCIPHER_SIGN
					      : VIRTIO_CRYPTO_AKCIPHER_VERIFY;
}

/* Send it; room is what there is for the result. Returns used.len or -errno. */
static int
ask(struct rsa *r, uint32_t opcode, const struct bytes *src, const struct bytes *digest,
	uint32_t room)
{
	struct virtio_crypto_op_data_req req = {.header = {.opcode = opcode, .session_id = r->id}};
	uint64_t gpa = r->c->buffer_gpa;
	uint8_t *in = fe_mem_ptr(&r->c->mem, gpa);
	uint8_t *out = fe_mem_ptr(&r->c->mem, gpa + OUT);
	struct fe_seg seg[2 * CUTS_MAX];
	uint32_t n, used = 0;
	int rc;

	req.u.akcipher_req.para.src_data_len = src->len;
	req.u.akcipher_req.para.dst_data_len = digest != NULL ? digest->len : room;
	memcpy(in, &req, sizeof(req));
	memcpy(in + sizeof(req), src->at, src->len);
	if (digest != NULL)
		memcpy(in + sizeof(req) + src->len, digest->at, digest->len);
	memset(out, 0xee, room + 2);
	n = cfe_cut(seg, &r->rng, gpa, sizeof(req) + src->len + (digest != NULL ? digest->len : 0),
		false, CUTS_MAX);
	n += cfe_cut(seg + n, &r->rng, gpa + OUT, room + 1, true, CUTS_MAX);
	rc = cfe_request(r->c, &r->c->data, seg, n, fe_rng_one_in(&r->rng, 2) ? 0 : n, &used);
	if (rc != 0)
		return rc;
	return out[room + 1] == 0xee ? (int)used : -EOVERFLOW;
}

/* Is a result of so many bytes in the place for it, and nothing behind it? */
static const char *
check_result(const uint8_t *out, uint32_t len, uint32_t room, const char *want, bool print)
{
	static struct bytes result;

	for (uint32_t i = len + 1; i < room; i++)
		if (out[i] != 0xee)
			return "written behind the result";
	if (want[0] != '?') {
		from_hex(want, &result);
		return result.len == len && memcmp(out, result.at, len) == 0 ? NULL : "result";
	}
	if (print) {
		printf("out ");
		for (uint32_t i = 0; i < len; i++)
			printf("%02x", out[i]);
		printf("\n");
	}
	return NULL;
}

static const char *
run(struct rsa *r, char **field, bool print)
{
	static struct bytes src, digest;
	const uint8_t *out = fe_mem_ptr(&r->c->mem, r->c->buffer_gpa + OUT);
	uint32_t opcode = opcode_of(field[0]);
	bool verify = opcode == VIRTIO_CRYPTO_AKCIPHER_VERIFY;
	uint32_t room = verify ? 0 : number(field[2]);
	int used;

	from_hex(field[1], &src);
	if (verify)
		from_hex(field[2], &digest);
	used = ask(r, opcode, &src, verify ? &digest : NULL, room);
	if (used <= 0)
		return r->c->fault.text[0] != '\0' ? r->c->fault.text : "no answer";
	if (out[room] != number(field[3]))
		return "status";
	if (verify || out[room] != VIRTIO_CRYPTO_OK)
		return used == (int)room + 1 ? NULL : "used.len";
	return check_result(out, (uint32_t)used - 1, room, field[4], print);
}

static const char *
run_line(struct rsa *r, char *line)
{
	char *field[FIELDS_MAX], *next = NULL;
	const char *wrong;
	uint32_t n = 0;

	for (char *word = strtok_r(line, " \n", &next); word != NULL && n < FIELDS_MAX;
		word = strtok_r(NULL, " \n", &next))
		field[n++] = word;
	if (n == 0 || field[0][0] == '#')
		return NULL;
	if (n < 4)
		return "not a line";
	if (strcmp(field[0], "session") == 0)
		return n == 6 ? open_session(r, field) : "not a line";
	if (strcmp(field[0], "verify") != 0 && n != 5)
		return "not a line";
	wrong = run(r, field, true);
	return wrong != NULL ? wrong : run(r, field, false);
}

int
cfe_rsa(struct cfe *c, const char *file, uint64_t seed)
{
	struct rsa r = {.c = c};
	FILE *in = fopen(file, "r");
	char *line = NULL;
	size_t room = 0;
	int n = 0, failed = 0;

	if (in == NULL) {
		fprintf(stderr, "fe-crypto: %s: %s\n", file, strerror(errno));
		return 1;
	}
	fe_rng_seed(&r.rng, seed);
	while (getline(&line, &room, in) > 0) {
		const char *wrong = run_line(&r, line);

		n++;
		if (wrong != NULL) {
			printf("FAILED line %d %s: %s\n", n, line, wrong);
			failed++;
		}
	}
	if (close_session(&r) != NULL)
		failed++;
	free(line);
	fclose(in);
	printf("%d lines, %d failed\n", n, failed);
	return failed + (n == 0);
}
