/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A virtio-crypto device from the driver's side: one data queue and the control queue, both
 * handed over as rings (virtio 1.2, 5.9). One thread, but for the rings that its user locks.
 */
#ifndef CRYPTO_FE_H
#define CRYPTO_FE_H

#include <linux/virtio_crypto.h>

#include "fe_ring.h"

/** Pieces of one request. */
#define CFE_SEGS_MAX 64

struct cfe_cfg {
	const char *path;
	bool packed;
	bool event_idx;
	uint32_t ring_size;
	uint64_t buffer_bytes; /**< guest memory for requests */
	uint32_t timeout_ms;
};

struct cfe {
	struct cfe_cfg cfg;
	struct fe_conn conn;
	struct fe_mem mem;
	struct fe_ring data, ctrl;
	uint64_t buffer_gpa;
	struct virtio_crypto_config config;
	struct fe_fault fault;
};

/** Connect, negotiate, read the configuration, start the rings. 0 or -errno, fault says why. */
int cfe_open(struct cfe *c, const struct cfe_cfg *cfg);

/** The same but for the rings: they lie in guest memory that the device was not told of. */
int cfe_prepare(struct cfe *c, const struct cfe_cfg *cfg);

/** Stop and free everything. */
void cfe_close(struct cfe *c);

/** Publish what was added, kick if asked, wait until something is used. Returns 0 or -errno. */
int cfe_await(struct cfe *c, struct fe_ring *r);

/**
 * One request: add, kick if asked, wait for its end.
 * @param ndirect  descriptors outside of an indirect table
 * @param len      (output) used.len
 * @return 0 or -errno
 */
int cfe_request(struct cfe *c, struct fe_ring *r, const struct fe_seg *seg, uint32_t n,
	uint32_t ndirect, uint32_t *len);

/**
 * [gpa, gpa + len) in pieces.
 * @param seg  (output) room for cuts
 * @param cuts most pieces
 * @return how many there are
 */
uint32_t cfe_cut(struct fe_seg *seg, struct fe_rng *rng, uint64_t gpa, uint32_t len, bool write,
	uint32_t cuts);

/**
 * Create a session by the control queue.
 * @return VIRTIO_CRYPTO_* or -errno
 */
int cfe_create(struct cfe *c, const struct virtio_crypto_op_ctrl_req *req, const void *keys,
	uint32_t key_bytes, uint64_t *id);

/** Destroy one. @return VIRTIO_CRYPTO_* or -errno */
int cfe_destroy(struct cfe *c, uint32_t opcode, uint64_t id);

/* ---- parts of the program fe-crypto; each returns the number of failures -------- */

int cfe_vectors(struct cfe *c, const char *file, uint64_t seed);
int cfe_rsa(struct cfe *c, const char *file, uint64_t seed);
int cfe_hostile(struct cfe *c, struct cfe *other);

/** Rings set up in odd orders; opens connections of its own. */
int cfe_early(const struct cfe_cfg *cfg);

/** Heads, or buffer ids, that come in falling order. */
int cfe_reversed(struct cfe *c);

struct cfe_latency {
	uint32_t sessions;
	uint32_t pause_us; /**< before each is created */
};

/** Sessions created and closed, by messages, then by the ring: how long each answer takes. */
int cfe_latency(struct cfe *c, const struct cfe_latency *how);

struct cfe_bench {
	bool wait;
	unsigned int workers;
	unsigned int seconds;
};

int cfe_bench(struct cfe *c, const struct cfe_bench *bench);

struct cfe_data {
	unsigned int bytes; /**< of each request: a multiple of 16 */
	unsigned int depth; /**< requests in flight */
	unsigned int ms;
};

/** AES-CBC through the data queue as fast as it goes. */
int cfe_data(struct cfe *c, const struct cfe_data *data);

#endif
