/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layer 4 of the test front end: a whole virtio-net device as its driver sees it.
 *
 * fe_net_open() connects, negotiates, makes guest memory and rings; fe_net_start() hands
 * the rings over; then frames are sent and received with their virtio-net header, in
 * whatever split over descriptors the caller wants. Everything the device returns is
 * checked against virtio 1.2 section 5.1: lengths, num_buffers, header fields that
 * the negotiated features forbid, bytes written outside the posted buffers.
 *
 * Deviations return -EPROTO; fe_net_fault() has the reason. The lower layers stay open to a
 * test: conn, mem and the rings are public. After fe_net_open() nothing allocates.
 * One thread per device, or one per qpair once it is started.
 */
#ifndef FE_NET_H
#define FE_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "fe_frame.h"
#include "fe_mem.h"
#include "fe_msg.h"
#include "fe_ring.h"
#include "fe_util.h"

#define FE_QPAIRS_MAX   128
#define FE_SEGS_MAX     32 /**< segments that a well-behaved buffer is split into */
#define FE_TX_GAP_BYTES 16 /**< unused bytes behind every transmit segment */
#define FE_CANARY_BYTES 8  /**< known bytes around every receive segment */

/** Largest buffer: longest frame behind the longest header. */
#define FE_BUF_MAX (FE_FRAME_MAX + 12)

#define FE_ALL UINT32_MAX

#define FE_BIT(n) (1ULL << (n))

/** Features that every test wants unless it says otherwise. */
#define FE_NET_BASE                                                                                \
	(FE_BIT(VIRTIO_F_VERSION_1) | FE_BIT(VIRTIO_F_ANY_LAYOUT) |                                \
		FE_BIT(FE_F_PROTOCOL_FEATURES) | FE_BIT(VIRTIO_NET_F_MQ) |                         \
		FE_BIT(VIRTIO_NET_F_CTRL_VQ))

/** Checksum and segmentation features of both directions. */
#define FE_NET_OFFLOADS                                                                            \
	(FE_BIT(VIRTIO_NET_F_CSUM) | FE_BIT(VIRTIO_NET_F_GUEST_CSUM) |                             \
		FE_BIT(VIRTIO_NET_F_HOST_TSO4) | FE_BIT(VIRTIO_NET_F_HOST_TSO6) |                  \
		FE_BIT(VIRTIO_NET_F_HOST_ECN) | FE_BIT(VIRTIO_NET_F_HOST_UFO) |                    \
		FE_BIT(VIRTIO_NET_F_HOST_USO) | FE_BIT(VIRTIO_NET_F_GUEST_TSO4) |                  \
		FE_BIT(VIRTIO_NET_F_GUEST_TSO6) | FE_BIT(VIRTIO_NET_F_GUEST_ECN) |                 \
		FE_BIT(VIRTIO_NET_F_GUEST_UFO) | FE_BIT(VIRTIO_NET_F_GUEST_USO4) |                 \
		FE_BIT(VIRTIO_NET_F_GUEST_USO6))

struct fe_net_cfg {
	const char *path; /**< socket; must outlive the device */
	bool server;      /**< listen there; the back end connects */
	bool ack;         /**< use REPLY_ACK when it is offered */
	/** Accept what virtio 1.2 forbids but drivers do not mind: see fe_net.c. */
	bool lenient;
	uint64_t features;      /**< wanted; of them what is offered is accepted */
	uint64_t need_features; /**< open fails with -ENOTSUP if one of them is not offered */
	uint64_t proto;         /**< wanted protocol features; 0 means all that are understood */
	uint32_t qpairs;        /**< 1..FE_QPAIRS_MAX; 0 means 1 */
	uint32_t ring_size;     /**< descriptors per ring; 0 means 256 */
	uint32_t regions;       /**< 1..FE_REGIONS_MAX; 0 means 2 */
	enum fe_mem_layout layout;
	uint32_t indirect_max; /**< longest indirect table; 0 means FE_SEGS_MAX */
	uint32_t tx_bufs;      /**< transmit buffers per queue; 0 means min(ring size, 256) */
	uint32_t tx_buf_bytes; /**< largest header + frame; 0 means FE_BUF_MAX */
	uint32_t rx_bufs;      /**< receive buffers per queue; 0 means min(ring size, 256) */
	uint32_t rx_buf_bytes; /**< largest receive buffer; 0 means FE_BUF_MAX */
	uint64_t extra_bytes;  /**< guest memory left over for the test itself */
	uint16_t start;      /**< first ring index, see fe_ring_cfg; packed rings: 0 means normal */
	uint32_t timeout_ms; /**< for every answer; 0 means 5000 */
};

/** Where the virtio-net header goes. */
enum fe_hdr_place {
	FE_HDR_ANY,    /**< cuts fall anywhere, also within the header */
	FE_HDR_ALONE,  /**< the header has a descriptor of its own */
	FE_HDR_JOINED, /**< header and start of the frame in one descriptor */
};

/** Which descriptors a chain is made of. */
enum fe_chain {
	FE_CHAIN_DIRECT,
	FE_CHAIN_INDIRECT,
	FE_CHAIN_RANDOM, /**< one or the other */
	FE_CHAIN_MIXED,  /**< split rings: also direct ones followed by a table (2.7.5.3.2) */
};

/** How a buffer is split over descriptors. */
struct fe_how {
	struct fe_rng *rng; /**< NULL: everything in one segment (two if FE_HDR_ALONE) */
	uint32_t max_segs;  /**< 1..FE_SEGS_MAX */
	enum fe_hdr_place hdr;
	enum fe_chain chain;
};

/** One receive buffer as posted. */
struct fe_rxbuf {
	uint64_t gpa; /**< of its slab */
	uint32_t nseg;
	struct fe_seg seg[FE_SEGS_MAX];
};

#define FE_DONE_BATCH 64

struct fe_transmitq {
	struct fe_ring ring;
	uint64_t *buf_gpa;
	uint32_t *free;
	uint32_t nfree;
	uint64_t n_sent;
	uint64_t n_done;
};

struct fe_receiveq {
	struct fe_ring ring;
	struct fe_rxbuf *buf;
	uint32_t *free;
	uint32_t nfree;
	uint64_t n_received;
	uint32_t done_pos, done_n; /**< used entries fetched but not yet handed out */
	struct fe_done done[FE_DONE_BATCH];
};

struct fe_net {
	struct fe_net_cfg cfg;
	struct fe_conn conn;
	struct fe_mem mem;
	struct fe_fault fault;
	uint64_t offered;   /**< features of the back end */
	uint64_t features;  /**< accepted */
	uint64_t queue_num; /**< GET_QUEUE_NUM, 1 without MQ */
	uint32_t hdr_bytes; /**< virtio-net header: 10 or 12 */
	struct fe_transmitq *tx;
	struct fe_receiveq *rx;
	uint8_t *frame; /**< the frame that fe_net_recv() has gathered */
};

/** A received frame; data stays valid until the next fe_net_recv(). */
struct fe_rxframe {
	struct virtio_net_hdr_v1 hdr;
	uint8_t *data;
	uint32_t len;
	uint32_t buffers;    /**< used buffers that held it */
	uint32_t used_bytes; /**< sum of their used lengths */
};

/** Set up everything up to (not including) the rings' hand-over. Undo with fe_net_close(). */
int fe_net_open(struct fe_net *n, const struct fe_net_cfg *cfg);

/**
 * Connect again after fe_disconnect() or the back end's end, with the same memory and
 * features. Rings go on behind what is used, as QEMU has it: right for a back end that
 * completes in order. Follow with fe_net_start(). @return as fe_net_open().
 */
int fe_net_reattach(struct fe_net *n);

/**
 * Hand all rings over from where they stand, enable them, set DRIVER_OK.
 * Returns when the back end has taken all of it, so that traffic may begin.
 */
int fe_net_start(struct fe_net *n);

/**
 * Stop all rings (GET_VRING_BASE); check that each stands where its used ring ends.
 * Used buffers stay to be collected; fe_net_start() goes on from there.
 */
int fe_net_stop(struct fe_net *n);

/** Close and free all; NULL-safe, also after a failed open. */
void fe_net_close(struct fe_net *n);

/** Reason of the last failure, of the device or its rings; "" if there is none. */
const char *fe_net_fault(const struct fe_net *n);

/** True if feature bit @p bit was accepted. */
static inline bool
fe_net_has(const struct fe_net *n, uint32_t bit)
{
	return (n->features & FE_BIT(bit)) != 0;
}

/**
 * Add a frame to transmitq @p q; fe_ring_kick(&n->tx[q].ring) makes it available.
 * @param hdr NULL for a header of zeros
 * @return 0; -ENOSPC: no buffer or descriptors, reap first; -EINVAL: longer than a buffer.
 */
int fe_net_send(struct fe_net *n, uint32_t q, const struct virtio_net_hdr_v1 *hdr,
	const void *frame, uint32_t len, const struct fe_how *how);

/** Collect used transmit buffers. @return how many, or -EPROTO (a used length other than 0). */
int fe_net_reap(struct fe_net *n, uint32_t q);

/**
 * Post up to @p count receive buffers (FE_ALL: as many as the ring and the pool give) of
 * @p min_bytes..@p max_bytes (random with how->rng, else the largest) to receiveq @p q;
 * does not kick. @return how many.
 */
int fe_net_post(struct fe_net *n, uint32_t q, uint32_t count, uint32_t min_bytes,
	uint32_t max_bytes, const struct fe_how *how);

/** Take one frame from receiveq @p q. @return 1; 0 if there is none; -EPROTO. */
int fe_net_recv(struct fe_net *n, uint32_t q, struct fe_rxframe *f);

/** Is there a used receive buffer that fe_net_recv() would look at? */
bool fe_net_recv_pending(const struct fe_net *n, uint32_t q);

/** Sum of what is posted to receiveq @p q and not used. */
uint64_t fe_net_posted_bytes(const struct fe_net *n, uint32_t q);

#endif
