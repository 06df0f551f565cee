/* SPDX-License-Identifier: BSD-3-Clause */
/* Between frames in guest memory and mbufs, and their offload requests. On the poller. */
#ifndef VHP_ETH_MBUF_H
#define VHP_ETH_MBUF_H

#include <rte_mbuf.h>

#include "offload.h"
#include "vhp_port.h"

/** What is needed to convert; read-only but for bounce. */
struct eth_mbuf_ctx {
	struct rte_mempool *pool;
	uint8_t *bounce; /**< VHP_MAX_FRAME_BYTES; for what is done in software */
	bool chains;     /**< a frame may be a chain of mbufs */
	bool tx_csum;    /**< the driver does TCP and UDP checksums */
	bool tx_tso;     /**< the driver cuts TCP */
	bool tx_ip_csum; /**< and wants to be asked for the checksum of each IPv4 header */
};

/**
 * Make mbufs of a frame: one, or as many as it is cut into.
 * @param hdr_bytes  virtio-net header at the start of the frame
 * @param out        (output) at most room; the caller's then
 * @param drop       (output) VHP_OK, or why the frame can never be sent
 * @return mbufs; 0 with VHP_OK: not enough mbufs or room now
 */
uint16_t eth_mbuf_from_frame(const struct eth_mbuf_ctx *ctx, const struct vhp_frame *frame,
	uint16_t hdr_bytes, struct rte_mbuf **out, uint16_t room, enum vhp_drop *drop);

/**
 * Copy a received mbuf, which stays the caller's, into a frame with its header.
 * @param virtio_features  what the guest accepted
 * @return false if no header can describe it, or its length is out of range
 */
bool eth_mbuf_to_frame(const struct eth_mbuf_ctx *ctx, struct rte_mbuf *m, uint16_t hdr_bytes,
	uint64_t virtio_features, struct vhp_frame *frame);

#endif /* VHP_ETH_MBUF_H */
