/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What does the arithmetic of a virtio-crypto device: drivers/crypto implements it, the
 * crypto_*.c files of this directory use it. An engine knows algorithms, keys and data in
 * pieces; it never sees a ring or a request.
 *
 * Algorithms, services and operations have the numbers of virtio 1.2, 5.9
 * (linux/virtio_crypto.h).
 */
#ifndef VHP_CRYPTO_H
#define VHP_CRYPTO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "vhost_poll.h"

/** Longest keys; vhost-user's message has room for no more. */
#define VHP_CRYPTO_CIPHER_KEY_BYTES 64
#define VHP_CRYPTO_AUTH_KEY_BYTES   512
/** Longest key of RSA in DER: 4096 bits with all that a private key has are some 2,350 bytes. */
#define VHP_CRYPTO_DER_BYTES        2560
/** Longest modulus of RSA; nothing that is computed with it is longer. */
#define VHP_CRYPTO_RSA_BYTES        512
/** Longest IV, tweak or counter. */
#define VHP_CRYPTO_IV_BYTES         16
/** Longest hash, MAC or tag. */
#define VHP_CRYPTO_DIGEST_BYTES     64
/** Most requests in flight of one queue. */
#define VHP_CRYPTO_BURST            32
/** Most data of one request. */
#define VHP_CRYPTO_DATA_BYTES       (1U << 20)

/** What a session computes. */
enum vhp_crypto_kind {
	VHP_CRYPTO_CIPHER,
	VHP_CRYPTO_HASH,
	VHP_CRYPTO_MAC,
	VHP_CRYPTO_CIPHER_HASH, /**< cipher, then hash or MAC of its output */
	VHP_CRYPTO_HASH_CIPHER, /**< hash or MAC of the input, then cipher */
	VHP_CRYPTO_AEAD,
	VHP_CRYPTO_AKCIPHER, /**< RSA; long, so one at a time */
};

/** What a session is made of. Holds keys: wipe it after use. */
struct vhp_crypto_params {
	enum vhp_crypto_kind kind;
	bool encrypt;
	bool keyed;           /**< chains: a MAC, not a plain hash */
	uint32_t cipher_algo; /**< VIRTIO_CRYPTO_{CIPHER,AEAD,AKCIPHER}_* */
	uint32_t auth_algo; /**< VIRTIO_CRYPTO_{HASH,MAC}_*; AKCIPHER: VIRTIO_CRYPTO_RSA_SHA1... */
	uint32_t digest_bytes;
	uint32_t aad_bytes;
	uint32_t cipher_key_bytes; /**< at most VHP_CRYPTO_CIPHER_KEY_BYTES */
	uint32_t auth_key_bytes;   /**< at most VHP_CRYPTO_AUTH_KEY_BYTES */
	uint8_t cipher_key[VHP_CRYPTO_CIPHER_KEY_BYTES];
	uint8_t auth_key[VHP_CRYPTO_AUTH_KEY_BYTES];
	/* AKCIPHER only. */
	bool private_key;
	uint32_t padding_algo; /**< VIRTIO_CRYPTO_RSA_*_PADDING */
	uint32_t der_bytes;    /**< at most VHP_CRYPTO_DER_BYTES */
	/** RSAPublicKey or RSAPrivateKey (RFC 8017, A.1); no more of it is set than der_bytes. */
	uint8_t der[VHP_CRYPTO_DER_BYTES];
};

/** What requests of a session have to look like; the engine fills it. */
struct vhp_crypto_shape {
	uint8_t iv_bytes;    /**< exactly */
	uint8_t block_bytes; /**< data is a multiple of it; 1: any length */
	/* AKCIPHER: nothing is longer than the modulus. */
	bool private_key; /**< can decrypt and sign, too */
	uint16_t modulus_bytes;
};

/** One request. Its memory is the caller's until done. */
struct vhp_crypto_job {
	void *session;
	/** Read, and for what has a cipher written, in place. */
	const struct iovec *data;
	uint32_t n_data;
	uint32_t skip_bytes; /**< of the pieces, before the data */
	/** CIPHER only, NULL else: read from here, as much as is written to data's first piece. */
	const struct iovec *from;
	uint32_t n_from;
	uint32_t from_skip_bytes; /**< of these pieces */
	uint32_t data_bytes;
	uint32_t cipher_offset, cipher_bytes; /**< range of the data that is ciphered */
	uint32_t auth_offset, auth_bytes;     /**< range that is hashed */
	uint8_t *aad;                         /**< AEAD: as long as the session says */
	uint8_t iv[VHP_CRYPTO_IV_BYTES];
	/** (output) hash, MAC or tag; AEAD decryption: (input) the tag to compare. */
	uint8_t digest[VHP_CRYPTO_DIGEST_BYTES];
	/**
	 * AKCIPHER: what to do, VIRTIO_CRYPTO_AKCIPHER_*. Its data is one piece, the cipher's range
	 * what is encrypted, decrypted or signed, or the signature; the other one its digest.
	 */
	uint32_t opcode;
	uint32_t out_bytes; /**< (output) */
	uint8_t *out;       /**< (output) room for a modulus */
	bool done;          /**< (output) */
	/** (output) 0, -EBADMSG: wrong tag, -EKEYREJECTED: wrong signature, else it failed. */
	int error;
};

/** An engine's part of virtio-crypto's configuration space (virtio 1.2, 5.9.4). */
struct vhp_crypto_caps {
	uint32_t services; /**< bits of VIRTIO_CRYPTO_SERVICE_* */
	uint64_t ciphers, macs;
	uint32_t hashes, aeads, akciphers;
	uint32_t max_cipher_key_bytes, max_auth_key_bytes;
	/** Data may lie in pieces that are multiples of the block; that of AEAD never may. */
	bool pieces;
	bool empty; /**< what is ciphered or hashed may be of length 0; of AEAD it always may */
	/** A cipher may write to one piece elsewhere what it reads, up to so much; 0: it may not.
	 */
	uint32_t apart_bytes;
	bool apart_pieces;       /**< and read it from pieces of any length */
	uint32_t max_bytes;      /**< of one request, */
	uint32_t max_aead_bytes; /**< of AEAD */
};

struct vhp_crypto_engine;

/** A driver's functions. */
struct vhp_crypto_engine_ops {
	/**
	 * Make a session. Any thread.
	 * @return 0, -ENOTSUP (algorithm or key length), -ENOSPC (no room), -EINVAL (no such key),
	 *         -EIO
	 */
	int (*create)(struct vhp_crypto_engine *engine, const struct vhp_crypto_params *params,
		struct vhp_crypto_shape *shape, void **session);
	/** Free a session that no job uses, and wipe its keys. Any thread. */
	void (*destroy)(struct vhp_crypto_engine *engine, void *session);
	/**
	 * Begin jobs in order; one thread per queue.
	 * @return jobs taken; the rest is to be offered again. One that cannot be begun at all is
	 *         taken, done, and has an error. Of AKCIPHER no more than one is taken, and with no
	 *         other; it may be computed at once.
	 */
	uint16_t (*submit)(struct vhp_crypto_engine *engine, uint16_t queue,
		struct vhp_crypto_job *const *jobs, uint16_t n);
	/** Mark jobs as done that are. Returns how many; one thread per queue. */
	uint16_t (*poll)(struct vhp_crypto_engine *engine, uint16_t queue);
	/** Close the device; main thread, nothing in flight; frees the engine. */
	void (*close)(struct vhp_crypto_engine *engine);
};

/** An engine. The driver embeds it in its own structure. */
struct vhp_crypto_engine {
	char name[64]; /**< of the cryptodev */
	const struct vhp_crypto_engine_ops *ops;
	struct vhp_crypto_caps caps;
	uint16_t n_queues; /**< one for each virtio-crypto device */
};

/* ---- vhost-user crypto devices ---------------------------------------------- */

/** Sessions of one front end, unless the device says otherwise. */
#define VHP_CRYPTO_SESSIONS 4096

/** One vhost_crypto device. */
struct vhp_crypto_conf {
	struct vhp_net_conf dev; /**< name, socket, queues, poller, poll window */
	uint32_t sessions;       /**< most sessions of its front end */
	uint16_t engine_queue;   /**< of the engine; nobody else's */
};

/**
 * Make the device and its socket, and serve it: as many data queues as it has queues, and one
 * control queue behind them. All are served by one poller.
 * @param engine  the device uses it until destroyed, the caller keeps it
 * @param out     (output) the device; vhp_net_dev_destroy() ends it
 * @return as vhp_net_dev_create()
 */
int vhp_crypto_dev_create(struct vhp_loop *loop, const struct vhp_crypto_conf *conf,
	struct vhp_crypto_engine *engine, struct vhp_net_dev **out);

/** Register /vhp/crypto with rte_telemetry. */
int vhp_crypto_telemetry(void);

#endif /* VHP_CRYPTO_H */
