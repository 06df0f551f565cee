/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a cryptodev do what it says that it does? Some take data in pieces for packets alone:
 * they expect a digest behind the data, or count bytes with 16 bits, and give wrong answers
 * else. Some have no MAC of nothing, and after such a request wrong ones of everything. So each
 * is asked for a hash and a cipher of pieces, and of the same data in one; for MACs whose values
 * are known; and for one of nothing.
 */
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_crypto.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "cryptodev_priv.h"

/* Three times so many bytes are more than 16 bits count. */
#define PIECE_BYTES 0x8000U
#define PIECES      3
#define BLOCK_BYTES 16
#define LIMIT_S     1

/* Have one job done. Returns false if it is not, or failed. */
static bool
run(struct vhp_crypto_engine *engine, struct vhp_crypto_job *job)
{
	uint64_t end_tsc = rte_rdtsc() + LIMIT_S * rte_get_tsc_hz();
	bool taken = false;

	job->done = false;
	while (!job->done && rte_rdtsc() < end_tsc) {
		if (!taken)
			taken = engine->ops->submit(engine, 0, &job, 1) == 1;
		engine->ops->poll(engine, 0);
	}
	return job->done && job->error == 0;
}

/* The first of some common hashes and MACs that it has; NULL: none. */
static void *
make_auth(struct vhp_crypto_engine *engine, uint32_t *digest_bytes)
{
	static const struct {
		bool keyed;
		uint8_t algo, digest_bytes;
	} auths[] = {{false, VIRTIO_CRYPTO_HASH_SHA1, 20}, {false, VIRTIO_CRYPTO_HASH_SHA_256, 32},
		{true, VIRTIO_CRYPTO_MAC_HMAC_SHA1, 20},
		{true, VIRTIO_CRYPTO_MAC_HMAC_SHA_256, 32}};
	struct vhp_crypto_shape shape;
	void *session = NULL;

	for (size_t i = 0; i < RTE_DIM(auths) && session == NULL; i++) {
		struct vhp_crypto_params params = {
			.kind = auths[i].keyed ? VHP_CRYPTO_MAC : VHP_CRYPTO_HASH,
			.keyed = auths[i].keyed,
			.auth_algo = auths[i].algo,
			.digest_bytes = auths[i].digest_bytes,
			.auth_key_bytes = auths[i].keyed ? 16 : 0,
		};

		*digest_bytes = auths[i].digest_bytes;
		if (engine->ops->create(engine, &params, &shape, &session) < 0)
			session = NULL;
	}
	return session;
}

/* A hash of pieces is that of the whole, and the data stays as it is. */
static bool
probe_auth(struct vhp_crypto_engine *engine, uint8_t *data)
{
	struct iovec pieces[] = {{data, 50}, {data + 50, 150}}, whole = {data, 200};
	struct vhp_crypto_job in_pieces = {
		.data = pieces, .n_data = 2, .data_bytes = 200, .auth_bytes = 200};
	struct vhp_crypto_job in_one = {
		.data = &whole, .n_data = 1, .data_bytes = 200, .auth_bytes = 200};
	uint32_t digest_bytes = 0;
	void *session = make_auth(engine, &digest_bytes);
	uint8_t kept[200];
	bool right;

	if (session == NULL)
		return true;
	memcpy(kept, data, sizeof(kept));
	in_pieces.session = in_one.session = session;
	right = run(engine, &in_pieces) && memcmp(kept, data, sizeof(kept)) == 0 &&
		run(engine, &in_one) && memcmp(in_pieces.digest, in_one.digest, digest_bytes) == 0;
	engine->ops->destroy(engine, session);
	return right;
}

/* CBC of pieces is that of each, with the last block of the one before as its IV. */
static bool
probe_cipher(struct vhp_crypto_engine *engine, uint8_t *data, uint8_t *same)
{
	const struct vhp_crypto_params params = {
		.kind = VHP_CRYPTO_CIPHER,
		.encrypt = true,
		.cipher_algo = VIRTIO_CRYPTO_CIPHER_AES_CBC,
		.cipher_key_bytes = 16,
	};
	struct vhp_crypto_job in_pieces = {.n_data = PIECES,
		.data_bytes = PIECES * PIECE_BYTES,
		.cipher_bytes = PIECES * PIECE_BYTES};
	struct vhp_crypto_job one = {
		.n_data = 1, .data_bytes = PIECE_BYTES, .cipher_bytes = PIECE_BYTES};
	struct vhp_crypto_shape shape;
	struct iovec iov[PIECES];
	bool right;

	if (engine->ops->create(engine, &params, &shape, &in_pieces.session) < 0)
		return true;
	for (uint32_t i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){data + i * PIECE_BYTES, PIECE_BYTES};
	in_pieces.data = iov;
	one.session = in_pieces.session;
	right = run(engine, &in_pieces);
	for (uint32_t i = 0; i < PIECES && right; i++) {
		struct iovec piece = {same + i * PIECE_BYTES, PIECE_BYTES};

		one.data = &piece;
		right = run(engine, &one);
		memcpy(one.iv, same + (i + 1) * PIECE_BYTES - BLOCK_BYTES, BLOCK_BYTES);
	}
	engine->ops->destroy(engine, in_pieces.session);
	return right && memcmp(data, same, PIECES * PIECE_BYTES) == 0;
}

/* Of no data at all, then of some. */
bool
cryptodev_probe_empty(struct vhp_crypto_engine *engine)
{
	static uint8_t data[64];
	struct iovec whole = {data, sizeof(data)};
	struct vhp_crypto_job empty = {.data = &whole, .n_data = 1};
	struct vhp_crypto_job jobs[2];
	const struct vhp_crypto_params params = {
		.kind = VHP_CRYPTO_MAC,
		.keyed = true,
		.auth_algo = VIRTIO_CRYPTO_MAC_HMAC_SHA1,
		.digest_bytes = 20,
		.auth_key_bytes = 4,
	};
	struct vhp_crypto_shape shape;
	bool right = true;

	if (engine->ops->create(engine, &params, &shape, &empty.session) < 0)
		return true;
	for (int i = 0; i < 2; i++) {
		jobs[i] = empty;
		jobs[i].data_bytes = jobs[i].auth_bytes = sizeof(data);
	}
	right = run(engine, &jobs[0]) && run(engine, &empty) && run(engine, &jobs[1]) &&
		memcmp(jobs[0].digest, jobs[1].digest, params.digest_bytes) == 0;
	engine->ops->destroy(engine, empty.session);
	return right;
}

uint64_t
cryptodev_probe_macs(struct vhp_crypto_engine *engine)
{
	/* RFC 2202 and 4231, test case 2. */
	static const struct {
		uint8_t algo, digest_bytes, digest[VHP_CRYPTO_DIGEST_BYTES];
	} macs[] = {
		{VIRTIO_CRYPTO_MAC_HMAC_MD5, 16,
			{0x75, 0x0c, 0x78, 0x3e, 0x6a, 0xb0, 0xb5, 0x03, 0xea, 0xa8, 0x6e, 0x31,
				0x0a, 0x5d, 0xb7, 0x38}},
		{VIRTIO_CRYPTO_MAC_HMAC_SHA1, 20,
			{0xef, 0xfc, 0xdf, 0x6a, 0xe5, 0xeb, 0x2f, 0xa2, 0xd2, 0x74, 0x16, 0xd5,
				0xf1, 0x84, 0xdf, 0x9c, 0x25, 0x9a, 0x7c, 0x79}},
		{VIRTIO_CRYPTO_MAC_HMAC_SHA_224, 28,
			{0xa3, 0x0e, 0x01, 0x09, 0x8b, 0xc6, 0xdb, 0xbf, 0x45, 0x69, 0x0f, 0x3a,
				0x7e, 0x9e, 0x6d, 0x0f, 0x8b, 0xbe, 0xa2, 0xa3, 0x9e, 0x61, 0x48,
				0x00, 0x8f, 0xd0, 0x5e, 0x44}},
		{VIRTIO_CRYPTO_MAC_HMAC_SHA_256, 32,
			{0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26,
				0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39,
				0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43}},
		{VIRTIO_CRYPTO_MAC_HMAC_SHA_384, 48,
			{0xaf, 0x45, 0xd2, 0xe3, 0x76, 0x48, 0x40, 0x31, 0x61, 0x7f, 0x78, 0xd2,
				0xb5, 0x8a, 0x6b, 0x1b, 0x9c, 0x7e, 0xf4, 0x64, 0xf5, 0xa0, 0x1b,
				0x47, 0xe4, 0x2e, 0xc3, 0x73, 0x63, 0x22, 0x44, 0x5e, 0x8e, 0x22,
				0x40, 0xca, 0x5e, 0x69, 0xe2, 0xc7, 0x8b, 0x32, 0x39, 0xec, 0xfa,
				0xb2, 0x16, 0x49}},
		{VIRTIO_CRYPTO_MAC_HMAC_SHA_512, 64,
			{0x16, 0x4b, 0x7a, 0x7b, 0xfc, 0xf8, 0x19, 0xe2, 0xe3, 0x95, 0xfb, 0xe7,
				0x3b, 0x56, 0xe0, 0xa3, 0x87, 0xbd, 0x64, 0x22, 0x2e, 0x83, 0x1f,
				0xd6, 0x10, 0x27, 0x0c, 0xd7, 0xea, 0x25, 0x05, 0x54, 0x97, 0x58,
				0xbf, 0x75, 0xc0, 0x5a, 0x99, 0x4a, 0x6d, 0x03, 0x4f, 0x65, 0xf8,
				0xf0, 0xe6, 0xfd, 0xca, 0xea, 0xb1, 0xa3, 0x4d, 0x4a, 0x6b, 0x4b,
				0x63, 0x6e, 0x07, 0x0a, 0x38, 0xbc, 0xe7, 0x37}},
	};
	static char data[] = "what do ya want for nothing?";
	struct iovec whole = {data, sizeof(data) - 1};
	uint64_t wrong = 0;

	for (size_t i = 0; i < RTE_DIM(macs); i++) {
		struct vhp_crypto_params params = {
			.kind = VHP_CRYPTO_MAC,
			.keyed = true,
			.auth_algo = macs[i].algo,
			.digest_bytes = macs[i].digest_bytes,
			.auth_key_bytes = 4,
			.auth_key = "Jefe",
		};
		struct vhp_crypto_job job = {.data = &whole,
			.n_data = 1,
			.data_bytes = sizeof(data) - 1,
			.auth_bytes = sizeof(data) - 1};
		struct vhp_crypto_shape shape;

		if (engine->ops->create(engine, &params, &shape, &job.session) < 0)
			continue;
		if (!run(engine, &job) ||
			memcmp(job.digest, macs[i].digest, macs[i].digest_bytes) != 0)
			wrong |= 1ULL << macs[i].algo;
		engine->ops->destroy(engine, job.session);
	}
	return wrong;
}

bool
cryptodev_probe_pieces(struct vhp_crypto_engine *engine)
{
	uint8_t *data = calloc(2 * PIECES, PIECE_BYTES);
	bool right;

	if (data == NULL)
		return false;
	right = probe_auth(engine, data) && probe_cipher(engine, data, data + PIECES * PIECE_BYTES);
	free(data);
	return right;
}
