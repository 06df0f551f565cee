/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * virtio-crypto's numbers of algorithms and DPDK's: one table for each group. What a device
 * has is asked for once for the configuration space, and again for each session.
 */
#include <errno.h>
#include <string.h>

#include <linux/virtio_crypto.h>

#include <rte_common.h>

#include "cryptodev_priv.h"

static const struct {
	uint8_t algo;
	uint8_t iv_bytes;
	uint8_t block_bytes; /* 1: any length */
	enum rte_crypto_cipher_algorithm rte;
} ciphers[] = {
	{VIRTIO_CRYPTO_CIPHER_AES_ECB, 0, 16, RTE_CRYPTO_CIPHER_AES_ECB},
	{VIRTIO_CRYPTO_CIPHER_AES_CBC, 16, 16, RTE_CRYPTO_CIPHER_AES_CBC},
	{VIRTIO_CRYPTO_CIPHER_AES_CTR, 16, 1, RTE_CRYPTO_CIPHER_AES_CTR},
	{VIRTIO_CRYPTO_CIPHER_AES_XTS, 16, 16, RTE_CRYPTO_CIPHER_AES_XTS},
	{VIRTIO_CRYPTO_CIPHER_DES_CBC, 8, 8, RTE_CRYPTO_CIPHER_DES_CBC},
	{VIRTIO_CRYPTO_CIPHER_3DES_ECB, 0, 8, RTE_CRYPTO_CIPHER_3DES_ECB},
	{VIRTIO_CRYPTO_CIPHER_3DES_CBC, 8, 8, RTE_CRYPTO_CIPHER_3DES_CBC},
};

/* A hash and the HMAC of it. */
static const struct {
	uint8_t hash, mac;
	uint8_t digest_bytes;
	enum rte_crypto_auth_algorithm rte_hash, rte_mac;
} auths[] = {
	{VIRTIO_CRYPTO_HASH_MD5, VIRTIO_CRYPTO_MAC_HMAC_MD5, 16, RTE_CRYPTO_AUTH_MD5,
		RTE_CRYPTO_AUTH_MD5_HMAC},
	{VIRTIO_CRYPTO_HASH_SHA1, VIRTIO_CRYPTO_MAC_HMAC_SHA1, 20, RTE_CRYPTO_AUTH_SHA1,
		RTE_CRYPTO_AUTH_SHA1_HMAC},
	{VIRTIO_CRYPTO_HASH_SHA_224, VIRTIO_CRYPTO_MAC_HMAC_SHA_224, 28, RTE_CRYPTO_AUTH_SHA224,
		RTE_CRYPTO_AUTH_SHA224_HMAC},
	{VIRTIO_CRYPTO_HASH_SHA_256, VIRTIO_CRYPTO_MAC_HMAC_SHA_256, 32, RTE_CRYPTO_AUTH_SHA256,
		RTE_CRYPTO_AUTH_SHA256_HMAC},
	{VIRTIO_CRYPTO_HASH_SHA_384, VIRTIO_CRYPTO_MAC_HMAC_SHA_384, 48, RTE_CRYPTO_AUTH_SHA384,
		RTE_CRYPTO_AUTH_SHA384_HMAC},
	{VIRTIO_CRYPTO_HASH_SHA_512, VIRTIO_CRYPTO_MAC_HMAC_SHA_512, 64, RTE_CRYPTO_AUTH_SHA512,
		RTE_CRYPTO_AUTH_SHA512_HMAC},
};

/* GCM with its usual nonce; another length is one that the guest hashes itself. */
#define GCM_IV_BYTES 12

static const struct rte_cryptodev_symmetric_capability *
cipher_cap(uint8_t id, enum rte_crypto_cipher_algorithm algo)
{
	struct rte_cryptodev_sym_capability_idx idx = {
		.type = RTE_CRYPTO_SYM_XFORM_CIPHER, .algo.cipher = algo};

	return rte_cryptodev_sym_capability_get(id, &idx);
}

static const struct rte_cryptodev_symmetric_capability *
auth_cap(uint8_t id, enum rte_crypto_auth_algorithm algo)
{
	struct rte_cryptodev_sym_capability_idx idx = {
		.type = RTE_CRYPTO_SYM_XFORM_AUTH, .algo.auth = algo};

	return rte_cryptodev_sym_capability_get(id, &idx);
}

static const struct rte_cryptodev_symmetric_capability *
gcm_cap(uint8_t id)
{
	struct rte_cryptodev_sym_capability_idx idx = {
		.type = RTE_CRYPTO_SYM_XFORM_AEAD, .algo.aead = RTE_CRYPTO_AEAD_AES_GCM};

	return rte_cryptodev_sym_capability_get(id, &idx);
}

void
cryptodev_read_caps(uint8_t id, struct vhp_crypto_caps *caps)
{
	const struct rte_cryptodev_symmetric_capability *cap;

	for (unsigned int i = 0; i < RTE_DIM(ciphers); i++) {
		cap = cipher_cap(id, ciphers[i].rte);
		if (cap == NULL)
			continue;
		caps->ciphers |= 1ULL << ciphers[i].algo;
		caps->max_cipher_key_bytes =
			RTE_MAX(caps->max_cipher_key_bytes, cap->cipher.key_size.max);
	}
	for (unsigned int i = 0; i < RTE_DIM(auths); i++) {
		if (auth_cap(id, auths[i].rte_hash) != NULL)
			caps->hashes |= 1U << auths[i].hash;
		cap = auth_cap(id, auths[i].rte_mac);
		if (cap == NULL)
			continue;
		caps->macs |= 1ULL << auths[i].mac;
		caps->max_auth_key_bytes =
			RTE_MAX(caps->max_auth_key_bytes, cap->auth.key_size.max);
	}
	cap = gcm_cap(id);
	if (cap != NULL) {
		caps->aeads |= 1U << VIRTIO_CRYPTO_AEAD_GCM;
		caps->max_cipher_key_bytes =
			RTE_MAX(caps->max_cipher_key_bytes, cap->aead.key_size.max);
	}
	caps->max_auth_key_bytes =
		RTE_MIN(caps->max_auth_key_bytes, (uint32_t)VHP_CRYPTO_AUTH_KEY_BYTES);
	caps->services = !!caps->ciphers << VIRTIO_CRYPTO_SERVICE_CIPHER |
			 !!caps->hashes << VIRTIO_CRYPTO_SERVICE_HASH |
			 !!caps->macs << VIRTIO_CRYPTO_SERVICE_MAC |
			 !!caps->aeads << VIRTIO_CRYPTO_SERVICE_AEAD;
}

static int
make_cipher(uint8_t id, const struct vhp_crypto_params *p, struct rte_crypto_sym_xform *x,
	struct vhp_crypto_shape *shape)
{
	const struct rte_cryptodev_symmetric_capability *cap = NULL;

	for (unsigned int i = 0; i < RTE_DIM(ciphers); i++) {
		if (ciphers[i].algo != p->cipher_algo)
			continue;
		cap = cipher_cap(id, ciphers[i].rte);
		x->cipher.algo = ciphers[i].rte;
		shape->iv_bytes = ciphers[i].iv_bytes;
		shape->block_bytes = ciphers[i].block_bytes;
	}
	if (cap == NULL || rte_cryptodev_sym_capability_check_cipher(
				   cap, p->cipher_key_bytes, shape->iv_bytes) != 0)
		return -ENOTSUP;
	x->type = RTE_CRYPTO_SYM_XFORM_CIPHER;
	x->cipher.op = p->encrypt ? RTE_CRYPTO_CIPHER_OP_ENCRYPT : RTE_CRYPTO_CIPHER_OP_DECRYPT;
	x->cipher.key.data = p->cipher_key;
	x->cipher.key.length = p->cipher_key_bytes;
	x->cipher.iv.offset = CRYPTODEV_IV_OFFSET;
	x->cipher.iv.length = shape->iv_bytes;
	return 0;
}

/* The guest compares hashes itself: they are made, whatever the direction. */
static int
make_auth(uint8_t id, const struct vhp_crypto_params *p, struct rte_crypto_sym_xform *x)
{
	const struct rte_cryptodev_symmetric_capability *cap = NULL;
	uint8_t digest_bytes = 0;

	for (unsigned int i = 0; i < RTE_DIM(auths); i++) {
		if ((p->keyed ? auths[i].mac : auths[i].hash) != p->auth_algo)
			continue;
		x->auth.algo = p->keyed ? auths[i].rte_mac : auths[i].rte_hash;
		cap = auth_cap(id, x->auth.algo);
		digest_bytes = auths[i].digest_bytes;
	}
	if (cap == NULL || p->digest_bytes != digest_bytes ||
		rte_cryptodev_sym_capability_check_auth(
			cap, p->auth_key_bytes, p->digest_bytes, 0) != 0)
		return -ENOTSUP;
	x->type = RTE_CRYPTO_SYM_XFORM_AUTH;
	x->auth.op = RTE_CRYPTO_AUTH_OP_GENERATE;
	x->auth.key.data = p->auth_key;
	x->auth.key.length = p->auth_key_bytes;
	x->auth.digest_length = p->digest_bytes;
	return 0;
}

static int
make_aead(uint8_t id, const struct vhp_crypto_params *p, struct rte_crypto_sym_xform *x,
	struct vhp_crypto_shape *shape)
{
	const struct rte_cryptodev_symmetric_capability *cap =
		p->cipher_algo == VIRTIO_CRYPTO_AEAD_GCM ? gcm_cap(id) : NULL;

	if (cap == NULL || p->aad_bytes > CRYPTODEV_AAD_MAX ||
		rte_cryptodev_sym_capability_check_aead(
			cap, p->cipher_key_bytes, p->digest_bytes, p->aad_bytes, GCM_IV_BYTES) != 0)
		return -ENOTSUP;
	shape->iv_bytes = GCM_IV_BYTES;
	shape->block_bytes = 1;
	x->type = RTE_CRYPTO_SYM_XFORM_AEAD;
	x->aead.algo = RTE_CRYPTO_AEAD_AES_GCM;
	x->aead.op = p->encrypt ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT;
	x->aead.key.data = p->cipher_key;
	x->aead.key.length = p->cipher_key_bytes;
	x->aead.iv.offset = CRYPTODEV_IV_OFFSET;
	x->aead.iv.length = GCM_IV_BYTES;
	x->aead.digest_length = p->digest_bytes;
	x->aead.aad_length = p->aad_bytes;
	return 0;
}

int
cryptodev_make_xforms(uint8_t id, const struct vhp_crypto_params *p,
	struct rte_crypto_sym_xform xforms[2], struct vhp_crypto_shape *shape)
{
	int ret;

	memset(xforms, 0, 2 * sizeof(xforms[0]));
	*shape = (struct vhp_crypto_shape){.block_bytes = 1};
	if (p->kind != VHP_CRYPTO_AEAD && p->aad_bytes != 0)
		return -ENOTSUP;
	switch (p->kind) {
	case VHP_CRYPTO_CIPHER:
		return make_cipher(id, p, &xforms[0], shape);
	case VHP_CRYPTO_HASH:
	case VHP_CRYPTO_MAC:
		return make_auth(id, p, &xforms[0]);
	case VHP_CRYPTO_AEAD:
		return make_aead(id, p, &xforms[0], shape);
	case VHP_CRYPTO_CIPHER_HASH:
		ret = make_cipher(id, p, &xforms[0], shape);
		xforms[0].next = &xforms[1];
		return ret < 0 ? ret : make_auth(id, p, &xforms[1]);
	case VHP_CRYPTO_HASH_CIPHER:
		ret = make_cipher(id, p, &xforms[1], shape);
		xforms[0].next = &xforms[1];
		return ret < 0 ? ret : make_auth(id, p, &xforms[0]);
	case VHP_CRYPTO_AKCIPHER:
		break; /* cryptodev_rsa.c */
	}
	return -ENOTSUP;
}
