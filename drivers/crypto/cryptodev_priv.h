/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of this directory. */
#ifndef VHP_CRYPTODEV_PRIV_H
#define VHP_CRYPTODEV_PRIV_H

#include <assert.h>

#include <rte_cryptodev.h>

#include "cryptodev.h"

/** Operations of one queue, so jobs that it takes. */
#define CRYPTODEV_DESCS 1024

/** An mbuf's length has 16 bits; data is cut where any cipher may be. */
#define CRYPTODEV_MBUF_BYTES 0xffc0U

/** Additional data of an AEAD request. */
#define CRYPTODEV_AAD_MAX 65535

/** An engine's own state. */
struct cryptodev {
	struct vhp_crypto_engine engine;
	uint8_t id;
	struct rte_mempool *sessions;
	struct rte_mempool *ops;
	struct rte_mempool *mbufs; /**< without data of their own */
};

/** A session: the cryptodev's, and what each of its operations needs to know. */
struct cryptodev_session {
	void *sess;
	struct cryptodev_rsa *rsa; /**< instead, of AKCIPHER */
	enum vhp_crypto_kind kind;
	uint8_t iv_bytes;
};

/** Behind the operation, in its private area: IV, then the job. */
struct cryptodev_op_priv {
	uint8_t iv[VHP_CRYPTO_IV_BYTES];
	struct vhp_crypto_job *job;
};

#define CRYPTODEV_IV_OFFSET (sizeof(struct rte_crypto_op) + sizeof(struct rte_crypto_sym_op))

/* ---- cryptodev_algos.c -------------------------------------------------------- */

/** Fill caps from what the device says that it can do. */
void cryptodev_read_caps(uint8_t id, struct vhp_crypto_caps *caps);

/**
 * Transforms for a session, if the device can do them. The keys are params'.
 * @return 0 or -ENOTSUP
 */
int cryptodev_make_xforms(uint8_t id, const struct vhp_crypto_params *params,
	struct rte_crypto_sym_xform xforms[2], struct vhp_crypto_shape *shape);

/* ---- cryptodev_probe.c ------------------------------------------------------- */

/** Are its answers right when data is in pieces? Main thread, started, nothing in flight. */
bool cryptodev_probe_pieces(struct vhp_crypto_engine *engine);

/** MACs that it says it has, and whose answers are wrong: bits as in caps. As above. */
uint64_t cryptodev_probe_macs(struct vhp_crypto_engine *engine);

/**
 * Can it be asked for a MAC of nothing? If not it has to be started again, as its answers may be
 * wrong from then on. As above.
 */
bool cryptodev_probe_empty(struct vhp_crypto_engine *engine);

/* ---- cryptodev_rsa.c ---------------------------------------------------------- */

struct cryptodev_rsa;

/** Add to caps RSA, if the device says that it has it. Main thread. */
void cryptodev_rsa_read_caps(uint8_t id, struct vhp_crypto_caps *caps);

/** Does the device say that it has keys of this length? Any thread. */
bool cryptodev_rsa_has_length(uint8_t id, uint16_t modulus_bytes);

/**
 * A key. Any thread.
 * @param rsa  (output) the caller's
 * @return 0, -ENOTSUP, -ENOSPC, -EINVAL: not a key, or none that may be used
 */
int cryptodev_rsa_create(const struct vhp_crypto_params *params, struct vhp_crypto_shape *shape,
	struct cryptodev_rsa **rsa);

/** Free and wipe it; NULL is fine. */
void cryptodev_rsa_destroy(struct cryptodev_rsa *rsa);

/** Compute a job, now. Its ranges are no longer than the modulus. */
void cryptodev_rsa_run(const struct cryptodev_rsa *rsa, struct vhp_crypto_job *job);

/* ---- cryptodev_ops.c ---------------------------------------------------------- */

uint16_t cryptodev_submit(struct vhp_crypto_engine *engine, uint16_t queue,
	struct vhp_crypto_job *const *jobs, uint16_t n);
uint16_t cryptodev_poll(struct vhp_crypto_engine *engine, uint16_t queue);

#endif /* VHP_CRYPTODEV_PRIV_H */
