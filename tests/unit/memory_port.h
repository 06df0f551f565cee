/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host port of one queue in memory: it keeps the frames that it is given, bytes and
 * all, and gives those that a test put into it. As the tap does, it cuts a frame that is
 * longer than its pieces.
 */
#ifndef TEST_MEMORY_PORT_H
#define TEST_MEMORY_PORT_H

#include "vhp_port.h"

/** Most frames on their way in one direction. */
#define MEMORY_PORT_FRAMES 4096

/** A frame with its virtio-net header. */
struct memory_frame {
	uint8_t *bytes;
	uint32_t len_bytes;
};

/** Frames, oldest first. */
struct memory_queue {
	struct memory_frame frames[MEMORY_PORT_FRAMES];
	uint32_t head, tail;
};

struct memory_port {
	struct vhp_port port;
	struct vhp_port_queue pq;
	struct vhp_port_queue *queues[1];

	struct memory_queue sent; /**< what tx() took */
	struct memory_queue host; /**< what rx() will give */
	uint32_t tx_room;         /**< tx() takes so many frames more, then the port is full */
	enum vhp_port_wait full;  /**< what a full port waits for */
	enum vhp_drop refuse;     /**< drop that tx() sets on frames whose first byte is 0xfe */
	/** Called for each piece that tx() or rx() is about to use; NULL: no check. */
	void (*check_piece)(void *ctx, const struct iovec *piece);
	void *ctx;

	bool tells; /**< arm() was called: the next frame makes pq.fd readable */
	/** Called by arm() when it is done, and what arm() then returns; NULL: what it found. */
	int (*on_arm)(struct memory_port *port, int found);

	uint32_t tx_calls, rx_calls, arm_calls, disarm_calls;
	char trace[256]; /**< 't' and 'r' for each call, as long as there is room */
	uint32_t n_trace;
};

void memory_port_init(struct memory_port *p, uint16_t hdr_bytes);
void memory_port_fini(struct memory_port *p);

/** Give it a descriptor that tells of frames if asked to, by arm(). */
void memory_port_intr(struct memory_port *p);

/** A frame from the host, of which the descriptor tells if asked to. */
void memory_port_arrive(struct memory_port *p, const void *bytes, uint32_t len_bytes);

/** Frames that wait in a queue. */
uint32_t memory_queue_count(const struct memory_queue *q);

/** Add a copy of a frame. */
void memory_queue_push(struct memory_queue *q, const void *bytes, uint32_t len_bytes);

/** The oldest frame, which must be there; the caller frees its bytes. */
struct memory_frame memory_queue_pop(struct memory_queue *q);

/** The oldest frame must have these bytes; it is freed. */
void memory_queue_check(struct memory_queue *q, const void *bytes, uint32_t len_bytes);

/** Throw all frames away. */
void memory_queue_clear(struct memory_queue *q);

#endif /* TEST_MEMORY_PORT_H */
