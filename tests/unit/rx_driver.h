/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The guest's network driver on the receive side: posts buffers and takes frames out of them,
 * checking all that the specification promises it.
 */
#ifndef TEST_RX_DRIVER_H
#define TEST_RX_DRIVER_H

#include "wire.h"

#define RX_MOST_PIECES 1024

/** A buffer as it was posted. */
struct rx_buffer {
	int id;
	uint16_t n;
	uint32_t len_bytes;
	bool bad; /**< breaks a rule: must come back with length 0 */
	struct vring_desc *pieces;
};

struct rx_driver {
	struct wire *w;         /**< owned */
	struct rx_buffer *fifo; /**< outstanding, oldest at head; indices modulo 65536 */
	uint32_t head, tail;
	uint64_t next_gpa, next_table;
	uint32_t n_returned; /**< good buffers that came back empty */
	uint32_t n_bad;      /**< bad ones that did */
};

/** A driver and its wire; ring bases near a wrap. */
struct rx_driver *rx_new(uint16_t ring_size, bool packed, uint16_t hdr_bytes, bool mergeable);
void rx_free(struct rx_driver *d);

/** Counters of the receiveq. */
const struct vhp_ring_stats *rx_stats(const struct rx_driver *d);

/** Buffers that are out. */
uint32_t rx_outstanding(const struct rx_driver *d);

/**
 * Post a buffer in pieces of these lengths, 0 at the end of the list; indirect if so said.
 * @return false if the ring is full
 */
bool rx_post(struct rx_driver *d, const uint32_t *lens, bool indirect);

/** Post n buffers of one piece; all must find room. */
void rx_post_many(struct rx_driver *d, uint32_t n, uint32_t len_bytes);

/** Post a buffer that the device may not write to. Returns false if the ring is full. */
bool rx_post_bad(struct rx_driver *d);

/**
 * Take the next frame out of its buffers; bad and empty ones in front of it are counted.
 * @param bytes  (output) the frame with its header; as large as any
 * @param n_buffers  (output) that it took; may be NULL
 * @return its length, 0 if there is none
 */
uint32_t rx_take(struct rx_driver *d, uint8_t *bytes, uint16_t *n_buffers);

/** The next frame must be number `number` of wire_fill() with this length, header included. */
void rx_check(struct rx_driver *d, uint32_t number, uint32_t len_bytes);

/** Nothing may have come. */
void rx_check_none(struct rx_driver *d);

/** Put frame `number` of this length, header included, into the port. */
void rx_send(struct wire *w, uint32_t number, uint32_t len_bytes);

/** One burst. */
struct vhp_work rx_fill(struct wire *w);

#endif /* TEST_RX_DRIVER_H */
