/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A virtio-crypto device: its sessions and its queues. A kind of device (net_dev.h): rings,
 * memory and the socket are those of every device. The control queue is the ring behind the
 * data queues; QEMU serves it itself and sends sessions as messages instead.
 *
 * All queues of a device are on one poller. So a session that the control queue destroys is
 * not in use by a data queue at that moment; for one that a message closes the main thread
 * waits until the poller has ended its pass.
 */
#ifndef VHP_CRYPTO_DEV_H
#define VHP_CRYPTO_DEV_H

#include <assert.h>

#include <linux/virtio_crypto.h>

#include <rte_spinlock.h>

#include "net_dev.h"
#include "vhp_crypto.h"

/** A request of the control queue without its keys, and of a data queue without its data. */
#define VHP_CRYPTO_REQ_BYTES 72

static_assert(sizeof(struct virtio_crypto_op_ctrl_req) == VHP_CRYPTO_REQ_BYTES, "virtio 1.2");
static_assert(sizeof(struct virtio_crypto_op_data_req) == VHP_CRYPTO_REQ_BYTES, "virtio 1.2");

/** A session; immutable while it is in the table. */
struct vhp_crypto_session {
	uint64_t id;
	enum vhp_crypto_kind kind;
	bool encrypt;
	uint32_t digest_bytes, aad_bytes;
	struct vhp_crypto_shape shape;
	void *engine_session;
	/** The table's and one per job in flight; who takes the last one frees it. */
	uint32_t refs;
};

/**
 * Sessions of a front end. Lookups are the poller's and take no lock; main thread and poller
 * add and remove under the lock.
 */
struct vhp_crypto_table {
	rte_spinlock_t lock;
	uint32_t n_slots; /**< a power of two */
	uint32_t limit;   /**< of used slots */
	uint32_t n_used;
	uint32_t next;        /**< where the search for a free slot begins */
	uint32_t *generation; /**< per slot: of its next session */
	struct vhp_crypto_session **slots;
};

/** Counters. The poller writes those of its queues, the main thread those of messages. */
struct vhp_crypto_stats {
	uint64_t created, closed;
	uint64_t refused;          /**< not created, whatever the reason */
	uint64_t unknown_sessions; /**< closed or used, and not there */
};

/** Room for the largest request and its additional data in one piece. */
#define VHP_CRYPTO_ARENA_BYTES (VHP_CRYPTO_DATA_BYTES + (64U << 10))

/** What is kept of a request while it is in flight. */
struct vhp_crypto_request {
	struct vhp_crypto_session *session; /**< NULL: refused */
	uint8_t status;                     /**< VIRTIO_CRYPTO_*, as far as known */
	bool prepared;                      /**< its job may be submitted */
	bool bounced;                       /**< the result lies in the arena */
	uint32_t src_offset, src_bytes;     /**< in the readable pieces; a digest to verify, too */
	uint32_t aad_offset;                /**< the same */
	uint32_t dst_bytes;                 /**< room for data; the digest follows */
	uint32_t data_bytes;                /**< to process: src without a tag */
	uint32_t digest_bytes;              /**< to write */
	uint32_t tag_bytes;                 /**< to read, behind the data */
	struct iovec whole;                 /**< data in one piece */
};

/** A burst in flight: done before the next is taken. */
struct vhp_crypto_burst {
	uint16_t n, submitted, retired;
	struct vhp_frame frames[VHP_CRYPTO_BURST];
	struct vhp_crypto_request requests[VHP_CRYPTO_BURST];
	struct vhp_crypto_job jobs[VHP_CRYPTO_BURST];
	struct iovec iov[2 * VHP_MAX_IOV];
	uint32_t arena_used;
	uint8_t arena[VHP_CRYPTO_ARENA_BYTES]; /**< what has to lie in one piece */
};

/** Stands where a network device's qpair has its port queue. Poller: rw. */
struct vhp_crypto_queue {
	struct vhp_port_queue pq;
	struct vhp_crypto_dev *dev;
	struct vhp_crypto_burst *burst;                    /**< NULL: the control queue */
	uint64_t statuses[VIRTIO_CRYPTO_KEY_REJECTED + 1]; /**< answers, by status */
	uint64_t akcipher;                                 /**< requests of AKCIPHER */
};

/** A device's own state: vhp_net_dev::crypto. */
struct vhp_crypto_dev {
	struct vhp_crypto_engine *engine;
	uint16_t engine_queue;
	uint16_t n_data;
	struct vhp_port port;
	struct vhp_crypto_queue *queues; /**< n_data, and the control queue */
	struct vhp_crypto_table table;
	/** Of sessions: by the control queue (poller), and by messages (main thread). */
	struct vhp_crypto_stats by_ring, by_message;
};

/* ---- crypto_session.c ---------------------------------------------------------- */

int vhp_crypto_table_init(struct vhp_crypto_table *table, uint32_t limit);
void vhp_crypto_table_fini(struct vhp_crypto_table *table);

/**
 * Make a session and give it an id. Main thread or poller.
 * @return VIRTIO_CRYPTO_*
 */
uint32_t vhp_crypto_session_create(
	struct vhp_crypto_dev *dev, const struct vhp_crypto_params *params, uint64_t *id);

/** Take a session out of the table; NULL if there is none of this id. */
struct vhp_crypto_session *vhp_crypto_session_remove(struct vhp_crypto_dev *dev, uint64_t id);

/** Give a reference back. */
void vhp_crypto_session_put(struct vhp_crypto_dev *dev, struct vhp_crypto_session *session);

/** A reference to the session of this id, NULL if there is none. On the poller. */
struct vhp_crypto_session *vhp_crypto_session_get(struct vhp_crypto_dev *dev, uint64_t id);

/** Free them all. Main thread, nothing is served. */
void vhp_crypto_session_clear(struct vhp_crypto_dev *dev);

/* ---- crypto_ctrl.c, crypto_msg.c: pure, so that tests and fuzzers reach them --------- */

/** Params without keys; of der only what is used is ever touched. */
void vhp_crypto_params_init(struct vhp_crypto_params *params);
void vhp_crypto_params_wipe(struct vhp_crypto_params *params);

/**
 * What a create request asks for.
 * @param keys     pieces that hold the keys, at key_offset
 * @return VIRTIO_CRYPTO_OK, or why not
 */
uint32_t vhp_crypto_parse_create(const struct virtio_crypto_op_ctrl_req *req,
	const struct iovec *iov, uint32_t n_iov, size_t key_offset,
	struct vhp_crypto_params *params);

/**
 * The same of a message's payload.
 * @param len_bytes  as the message has it; anything
 * @return VIRTIO_CRYPTO_OK, or why not
 */
uint32_t vhp_crypto_parse_message(
	const uint8_t *payload, uint32_t len_bytes, struct vhp_crypto_params *params);

/** CREATE_CRYPTO_SESSION, CLOSE_CRYPTO_SESSION, GET_CONFIG. Main thread. */
bool vhp_crypto_message(struct vhp_net_dev *dev, struct vhp_vu_msg *msg, struct vhp_vu_msg *answer);

/** One turn of the control queue. */
void vhp_crypto_turn_ctrl(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work);

/* ---- crypto_request.c, crypto_queue.c ------------------------------------------------ */

/**
 * Read a data request once and check it: all lengths fit the chain and the session.
 * @param frame  with the pieces of the chain
 * @param job    (output) all but its data
 */
void vhp_crypto_parse_request(struct vhp_crypto_dev *dev, const struct vhp_frame *frame,
	struct vhp_crypto_request *request, struct vhp_crypto_job *job);

/** One turn of a data queue. */
void vhp_crypto_turn_data(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work);

/** The queue was taken from its poller: end what is in flight. Main thread. */
void vhp_crypto_stopped(struct vhp_qpair *qp);

/** What stands behind a qpair. */
static inline struct vhp_crypto_queue *
vhp_crypto_queue_of(const struct vhp_qpair *qp)
{
	return (struct vhp_crypto_queue *)(uintptr_t)qp->pq;
}

/** Bytes in the readable and in the writable pieces of a chain. */
static inline uint64_t
vhp_crypto_bytes(const struct iovec *iov, uint32_t n_iov)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n_iov; i++)
		sum += iov[i].iov_len;
	return sum;
}

#endif /* VHP_CRYPTO_DEV_H */
