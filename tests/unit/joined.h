/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two guests that are joined by drivers/net/vm, each with its drivers for both directions.
 * Whether one poller serves both is the test's choice.
 */
#ifndef TEST_JOINED_H
#define TEST_JOINED_H

#include <linux/virtio_net.h>

#include "rx_driver.h"

struct joined_guest {
	uint16_t ring_size;
	bool packed;
	uint16_t hdr_bytes;
	bool mergeable;
	uint64_t features; /**< that the guest accepted, as far as the port asks */
};

/** All offloads that a receiver can accept. */
#define JOINED_OFFLOADS                                                                            \
	(1ULL << VIRTIO_NET_F_GUEST_CSUM | 1ULL << VIRTIO_NET_F_GUEST_TSO4 |                       \
		1ULL << VIRTIO_NET_F_GUEST_TSO6)

struct joined {
	struct rx_driver *d[2];
	struct vhp_port *ports[2];
	uint64_t tx_at[2]; /**< memory for the next frame */
	uint32_t n_used[2];
};

struct joined *joined_new(const struct joined_guest *a, const struct joined_guest *b);
void joined_free(struct joined *j);

static inline struct vhp_qpair *
joined_qpair(const struct joined *j, int guest)
{
	return &j->d[guest]->w->qp;
}

/** One poller serves both from now on, or two. */
void joined_same_poller(struct joined *j, bool same);

/** A turn of one. */
struct vhp_work joined_turn(struct joined *j, int guest);

/** Bytes of a frame, header included, which is zero. */
void joined_fill(uint8_t *bytes, uint32_t hdr_bytes, uint32_t frame_bytes, uint32_t number);

/**
 * A guest posts frame `number` of so many bytes without header, in n pieces, in an indirect
 * table if so said.
 * @param hdr  NULL: all zero
 * @return false if its ring is full
 */
bool joined_send(struct joined *j, int from, uint32_t number, uint32_t frame_bytes, uint16_t n,
	bool indirect, const struct virtio_net_hdr *hdr);

/** Take used transmit descriptors back, which must say that nothing was written; how many. */
uint32_t joined_reap(struct joined *j, int guest);

/** The next frame that a guest has received must be this one, with a header of zeros. */
void joined_check(struct joined *j, int to, uint32_t number, uint32_t frame_bytes);

#endif /* TEST_JOINED_H */
