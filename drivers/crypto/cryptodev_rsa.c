/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RSA for cryptodevs that have it. The arithmetic is libcrypto's, called here and not by the
 * cryptodev: the sessions that crypto_openssl makes of RSA keys (DPDK 22.11) are neither freed
 * nor wiped, and its verification takes a signature of any message for a right one. A device
 * says by its capabilities whether RSA is offered, and for which lengths.
 *
 * A key comes from a guest. DER is taken apart by libcrypto; the numbers are looked at before
 * it computes with them.
 */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_crypto.h>

#include <openssl/asn1.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <rte_common.h>

#include "cryptodev_priv.h"

/* Below, a key is not worth the name; above, an operation takes the poller too long. */
#define MODULUS_BITS_MIN  512
#define MODULUS_BITS_MAX  (8 * VHP_CRYPTO_RSA_BYTES)
/* Longer public exponents exist only to make the other side work. */
#define EXPONENT_BITS_MAX 64

/* Numbers of a key in the order of RSAPrivateKey, behind its version (RFC 8017, A.1.2). */
enum number { N, E, D, P, Q, DP, DQ, QINV, NUMBERS };

static const char *const number_names[] = {
	[N] = OSSL_PKEY_PARAM_RSA_N,
	[E] = OSSL_PKEY_PARAM_RSA_E,
	[D] = OSSL_PKEY_PARAM_RSA_D,
	[P] = OSSL_PKEY_PARAM_RSA_FACTOR1,
	[Q] = OSSL_PKEY_PARAM_RSA_FACTOR2,
	[DP] = OSSL_PKEY_PARAM_RSA_EXPONENT1,
	[DQ] = OSSL_PKEY_PARAM_RSA_EXPONENT2,
	[QINV] = OSSL_PKEY_PARAM_RSA_COEFFICIENT1,
};

static_assert(RTE_DIM(number_names) == NUMBERS, "a name for each");

struct cryptodev_rsa {
	EVP_PKEY *key;
	const EVP_MD *hash; /* NULL: what is signed is not a digest of one */
	int padding;        /* RSA_NO_PADDING or RSA_PKCS1_PADDING */
	uint16_t modulus_bytes;
};

/* ---- what a device has ----------------------------------------------------------------- */

static const struct rte_cryptodev_asymmetric_xform_capability *
rsa_cap(uint8_t id)
{
	const struct rte_cryptodev_asym_capability_idx idx = {.type = RTE_CRYPTO_ASYM_XFORM_RSA};
	struct rte_cryptodev_info info;

	rte_cryptodev_info_get(id, &info);
	return info.feature_flags & RTE_CRYPTODEV_FF_ASYMMETRIC_CRYPTO
		       ? rte_cryptodev_asym_capability_get(id, &idx)
		       : NULL;
}

void
cryptodev_rsa_read_caps(uint8_t id, struct vhp_crypto_caps *caps)
{
	const struct rte_cryptodev_asymmetric_xform_capability *cap = rsa_cap(id);
	EVP_PKEY_CTX *ctx;

	/* virtio-crypto has no word for a part of it. */
	if (cap == NULL ||
		!rte_cryptodev_asym_xform_capability_check_optype(
			cap, RTE_CRYPTO_ASYM_OP_ENCRYPT) ||
		!rte_cryptodev_asym_xform_capability_check_optype(
			cap, RTE_CRYPTO_ASYM_OP_DECRYPT) ||
		!rte_cryptodev_asym_xform_capability_check_optype(cap, RTE_CRYPTO_ASYM_OP_SIGN) ||
		!rte_cryptodev_asym_xform_capability_check_optype(cap, RTE_CRYPTO_ASYM_OP_VERIFY))
		return;
	/* What libcrypto has to load it loads now, not on a poller. */
	ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
	if (ctx != NULL) {
		caps->akciphers |= 1U << VIRTIO_CRYPTO_AKCIPHER_RSA;
		caps->services |= 1U << VIRTIO_CRYPTO_SERVICE_AKCIPHER;
	}
	EVP_PKEY_CTX_free(ctx);
}

bool
cryptodev_rsa_has_length(uint8_t id, uint16_t modulus_bytes)
{
	const struct rte_cryptodev_asymmetric_xform_capability *cap = rsa_cap(id);

	return cap != NULL &&
	       rte_cryptodev_asym_xform_capability_check_modlen(cap, modulus_bytes) == 0;
}

/* ---- keys ------------------------------------------------------------------------------ */

/* A SEQUENCE of nothing but integers that are not negative. Returns how many, 0 if it is none. */
static int
read_der(const struct vhp_crypto_params *p, BIGNUM *numbers[1 + NUMBERS])
{
	const unsigned char *at = p->der;
	ASN1_SEQUENCE_ANY *seq = d2i_ASN1_SEQUENCE_ANY(NULL, &at, (long)p->der_bytes);
	int n = seq != NULL ? sk_ASN1_TYPE_num(seq) : 0;
	bool ok = n > 0 && n <= 1 + NUMBERS && at == p->der + p->der_bytes;

	for (int i = 0; i < n; i++) {
		const ASN1_TYPE *item = sk_ASN1_TYPE_value(seq, i);
		ASN1_INTEGER *integer = item->value.integer;

		if (item->type != V_ASN1_INTEGER) {
			ok = false;
			continue;
		}
		if (ok) {
			numbers[i] = ASN1_INTEGER_to_BN(integer, NULL);
			ok = numbers[i] != NULL && !BN_is_negative(numbers[i]);
		}
		OPENSSL_cleanse(integer->data, (size_t)integer->length);
	}
	sk_ASN1_TYPE_pop_free(seq, ASN1_TYPE_free);
	return ok ? n : 0;
}

static bool
is_between(const BIGNUM *number, const BIGNUM *end)
{
	return !BN_is_zero(number) && !BN_is_one(number) && BN_cmp(number, end) < 0;
}

/*
 * Do the factors belong to the modulus? libcrypto reckons with it, and not every guest gives
 * them. The exponents may be wrong: it compares its result with what the factors are not
 * needed for.
 */
static bool
has_factors(BIGNUM *const *k)
{
	BN_CTX *ctx = BN_CTX_new();
	BIGNUM *product = BN_new();
	bool ok = ctx != NULL && product != NULL && BN_is_odd(k[P]) && BN_is_odd(k[Q]) &&
		  BN_num_bits(k[P]) == BN_num_bits(k[Q]) && BN_mul(product, k[P], k[Q], ctx) == 1 &&
		  BN_cmp(product, k[N]) == 0 && is_between(k[DP], k[P]) &&
		  is_between(k[DQ], k[Q]) && is_between(k[QINV], k[P]);

	BN_clear_free(product);
	BN_CTX_free(ctx);
	return ok;
}

/* How many numbers of a key can be used: that of public ones, with d, or all; 0: no key. */
static int
count_usable(BIGNUM *const *k, bool private_key)
{
	int bits = BN_num_bits(k[N]);

	if (bits < MODULUS_BITS_MIN || bits > MODULUS_BITS_MAX || !BN_is_odd(k[N]))
		return 0;
	if (!BN_is_odd(k[E]) || BN_is_one(k[E]) || BN_num_bits(k[E]) > EXPONENT_BITS_MAX)
		return 0;
	if (!private_key)
		return E + 1;
	if (!is_between(k[D], k[N]))
		return 0;
	return has_factors(k) ? NUMBERS : D + 1;
}

static EVP_PKEY *
make_key(BIGNUM *const *numbers, int n)
{
	/* Factors are half as long, but n and d may have any. */
	uint8_t bytes[NUMBERS][VHP_CRYPTO_RSA_BYTES];
	OSSL_PARAM params[NUMBERS + 1];
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
	EVP_PKEY *key = NULL;

	for (int i = 0; i < n; i++) {
		int len = BN_num_bytes(numbers[i]);

		BN_bn2nativepad(numbers[i], bytes[i], len);
		params[i] = OSSL_PARAM_construct_BN(number_names[i], bytes[i], (size_t)len);
	}
	params[n] = OSSL_PARAM_construct_end();
	if (ctx == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
		EVP_PKEY_fromdata(
			ctx, &key, n > D ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(ctx);
	explicit_bzero(bytes, sizeof(bytes));
	return key;
}

/* The key, and of how many bytes its modulus is. */
static EVP_PKEY *
read_key(const struct vhp_crypto_params *p, uint16_t *modulus_bytes)
{
	BIGNUM *numbers[1 + NUMBERS] = {NULL};
	/* A private key has its version in front: 0, of two factors. */
	BIGNUM **k = p->private_key ? numbers + 1 : numbers;
	EVP_PKEY *key = NULL;
	int n = read_der(p, numbers);

	if (n == (p->private_key ? 1 + NUMBERS : E + 1) &&
		(!p->private_key || BN_is_zero(numbers[0]))) {
		n = count_usable(k, p->private_key);
		*modulus_bytes = (uint16_t)BN_num_bytes(k[N]);
		key = n > 0 ? make_key(k, n) : NULL;
	}
	for (unsigned int i = 0; i < RTE_DIM(numbers); i++)
		BN_clear_free(numbers[i]);
	return key;
}

/* ---- sessions ---------------------------------------------------------------------------- */

static const EVP_MD *
hash_of(uint32_t algo)
{
	switch (algo) {
	case VIRTIO_CRYPTO_RSA_MD5:
		return EVP_md5();
	case VIRTIO_CRYPTO_RSA_SHA1:
		return EVP_sha1();
	case VIRTIO_CRYPTO_RSA_SHA224:
		return EVP_sha224();
	case VIRTIO_CRYPTO_RSA_SHA256:
		return EVP_sha256();
	case VIRTIO_CRYPTO_RSA_SHA384:
		return EVP_sha384();
	case VIRTIO_CRYPTO_RSA_SHA512:
		return EVP_sha512();
	default:
		return NULL;
	}
}

int
cryptodev_rsa_create(const struct vhp_crypto_params *p, struct vhp_crypto_shape *shape,
	struct cryptodev_rsa **out)
{
	bool pkcs1 = p->padding_algo == VIRTIO_CRYPTO_RSA_PKCS1_PADDING;
	const EVP_MD *hash = pkcs1 ? hash_of(p->auth_algo) : NULL;
	struct cryptodev_rsa *rsa;

	*shape = (struct vhp_crypto_shape){.block_bytes = 1, .private_key = p->private_key};
	if (p->cipher_algo != VIRTIO_CRYPTO_AKCIPHER_RSA ||
		(!pkcs1 && p->padding_algo != VIRTIO_CRYPTO_RSA_RAW_PADDING) ||
		(pkcs1 && hash == NULL && p->auth_algo != VIRTIO_CRYPTO_RSA_NO_HASH))
		return -ENOTSUP;
	rsa = calloc(1, sizeof(*rsa));
	if (rsa == NULL)
		return -ENOSPC;
	rsa->padding = pkcs1 ? RSA_PKCS1_PADDING : RSA_NO_PADDING;
	rsa->hash = hash;
	rsa->key = read_key(p, &rsa->modulus_bytes);
	if (rsa->key == NULL) {
		ERR_clear_error();
		free(rsa);
		return -EINVAL;
	}
	shape->modulus_bytes = rsa->modulus_bytes;
	*out = rsa;
	return 0;
}

void
cryptodev_rsa_destroy(struct cryptodev_rsa *rsa)
{
	if (rsa == NULL)
		return;
	EVP_PKEY_free(rsa->key);
	free(rsa);
}

/* ---- operations -------------------------------------------------------------------------- */

/* As long as the modulus: zeros in front do not change a number. */
static void
extend(uint8_t to[VHP_CRYPTO_RSA_BYTES], const uint8_t *from, size_t *bytes, size_t modulus_bytes)
{
	size_t zeros = *bytes < modulus_bytes ? modulus_bytes - *bytes : 0;

	memset(to, 0, zeros);
	memcpy(to + zeros, from, *bytes);
	*bytes += zeros;
}

static bool
prepare(const struct cryptodev_rsa *rsa, EVP_PKEY_CTX *ctx, uint32_t opcode)
{
	bool signs =
		opcode == VIRTIO_CRYPTO_AKCIPHER_SIGN || opcode == VIRTIO_CRYPTO_AKCIPHER_VERIFY;
	int ok = 0;

	switch (opcode) {
	case VIRTIO_CRYPTO_AKCIPHER_ENCRYPT:
		ok = EVP_PKEY_encrypt_init(ctx);
		break;
	case VIRTIO_CRYPTO_AKCIPHER_DECRYPT:
		ok = EVP_PKEY_decrypt_init(ctx);
		break;
	case VIRTIO_CRYPTO_AKCIPHER_SIGN:
		ok = EVP_PKEY_sign_init(ctx);
		break;
	case VIRTIO_CRYPTO_AKCIPHER_VERIFY:
		ok = EVP_PKEY_verify_init(ctx);
		break;
	}
	return ok == 1 && EVP_PKEY_CTX_set_rsa_padding(ctx, rsa->padding) == 1 &&
	       (!signs || rsa->hash == NULL || EVP_PKEY_CTX_set_signature_md(ctx, rsa->hash) == 1);
}

static int
run(const struct cryptodev_rsa *rsa, EVP_PKEY_CTX *ctx, struct vhp_crypto_job *job)
{
	const uint8_t *data = (const uint8_t *)job->data->iov_base + job->skip_bytes;
	bool raw = rsa->padding == RSA_NO_PADDING;
	uint8_t in[VHP_CRYPTO_RSA_BYTES], digest[VHP_CRYPTO_RSA_BYTES];
	size_t in_bytes = job->cipher_bytes, digest_bytes = job->auth_bytes;
	size_t out_bytes = rsa->modulus_bytes;
	bool pads = !raw && (job->opcode == VIRTIO_CRYPTO_AKCIPHER_ENCRYPT ||
				    job->opcode == VIRTIO_CRYPTO_AKCIPHER_SIGN);
	int ok = 0;

	if (in_bytes > rsa->modulus_bytes || digest_bytes > rsa->modulus_bytes)
		return -EINVAL;
	extend(in, data + job->cipher_offset, &in_bytes, pads ? 0 : rsa->modulus_bytes);
	switch (job->opcode) {
	case VIRTIO_CRYPTO_AKCIPHER_ENCRYPT:
		ok = EVP_PKEY_encrypt(ctx, job->out, &out_bytes, in, in_bytes);
		break;
	case VIRTIO_CRYPTO_AKCIPHER_DECRYPT:
		ok = EVP_PKEY_decrypt(ctx, job->out, &out_bytes, in, in_bytes);
		break;
	case VIRTIO_CRYPTO_AKCIPHER_SIGN:
		ok = EVP_PKEY_sign(ctx, job->out, &out_bytes, in, in_bytes);
		break;
	case VIRTIO_CRYPTO_AKCIPHER_VERIFY:
		extend(digest, data + job->auth_offset, &digest_bytes,
			raw ? rsa->modulus_bytes : 0);
		ok = EVP_PKEY_verify(ctx, in, in_bytes, digest, digest_bytes);
		out_bytes = 0;
		break;
	}
	explicit_bzero(in, sizeof(in));
	if (ok != 1)
		return job->opcode == VIRTIO_CRYPTO_AKCIPHER_VERIFY ? -EKEYREJECTED : -EINVAL;
	job->out_bytes = (uint32_t)out_bytes;
	return 0;
}

void
cryptodev_rsa_run(const struct cryptodev_rsa *rsa, struct vhp_crypto_job *job)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(NULL, rsa->key, NULL);

	job->out_bytes = 0;
	job->error = ctx != NULL && prepare(rsa, ctx, job->opcode) ? run(rsa, ctx, job) : -EIO;
	if (job->error != 0)
		ERR_clear_error();
	EVP_PKEY_CTX_free(ctx);
	job->done = true;
}
