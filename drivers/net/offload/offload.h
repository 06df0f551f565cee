/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksum and segmentation in software, for a frame whose receiver cannot do what the
 * virtio-net header asks of it (virtio 1.2, 5.1.6): a guest that did not accept an
 * offload, a port that has none. Pure functions on a frame in one piece.
 */
#ifndef VHP_OFFLOAD_H
#define VHP_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/virtio_net.h>

/* Newer than Debian 12's headers. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/** Longest headers of a frame that is cut: Ethernet, tags, IP with options, TCP with options. */
#define VHP_OFFLOAD_HDR_BYTES    256
/** Most segments of one frame. */
#define VHP_OFFLOAD_MAX_SEGMENTS 256

/** A frame that is cut, and where. Filled by vhp_segments_start(). */
struct vhp_segments {
	const uint8_t *frame; /**< len_bytes, the caller's; its headers are read, never written */
	uint32_t len_bytes;
	uint32_t hdr_bytes; /**< headers that each segment repeats */
	uint16_t l3_at;     /**< offset of the IP header */
	uint16_t l4_at;     /**< offset of the TCP or UDP header */
	uint16_t gso_bytes; /**< payload of each segment but the last */
	uint16_t n;         /**< segments */
	bool ipv6;
	bool tcp;
};

/**
 * Is the request one that a guest with these virtio feature bits has accepted to get?
 * A header without a request always is.
 */
bool vhp_offload_guest_takes(const struct virtio_net_hdr *hdr, uint64_t virtio_features);

/**
 * Does a guest's header make sense by itself, whatever the frame holds (virtio 1.2, 5.1.6.2)?
 * Of its flags, only NEEDS_CSUM counts.
 */
bool vhp_offload_is_sane(const struct virtio_net_hdr *hdr, uint32_t frame_bytes);

/** Where the parts of a TCP or UDP frame begin. */
struct vhp_l4 {
	uint16_t l3_at;    /**< offset of the IP header */
	uint16_t l4_at;    /**< offset of the TCP or UDP header */
	uint16_t l4_bytes; /**< of the TCP header with its options; 0: UDP, or cut short */
	bool ipv6;
	bool tcp;
};

/**
 * Find the parts of a frame whose checksum request says where TCP or UDP is.
 * @param frame      the first len_bytes of it
 * @return false if it is neither TCP nor UDP over IP, or its headers are not all there
 */
bool vhp_offload_find_l4(const struct virtio_net_hdr *hdr, const uint8_t *frame, uint32_t len_bytes,
	struct vhp_l4 *l4);

/**
 * Make the checksum request (NEEDS_CSUM, csum_start, csum_offset) of a whole TCP or UDP
 * frame whose checksum field holds the sum of the pseudo header.
 * @return false if it is neither TCP nor UDP over IP
 */
bool vhp_offload_find_csum(const uint8_t *frame, uint32_t len_bytes, struct virtio_net_hdr *hdr);

/**
 * Carry out a checksum request (NEEDS_CSUM) in place.
 * @return 0, or -EINVAL if the request points outside the frame
 */
int vhp_offload_checksum(const struct virtio_net_hdr *hdr, uint8_t *frame, uint32_t len_bytes);

/**
 * Prepare to cut a frame with a segmentation request (TCP or UDP_L4).
 * @param hdr        its header, gso_type other than NONE
 * @param segments   (output) what vhp_segment() needs
 * @return 0, or -EINVAL if headers and request do not fit the frame or each other, or if it
 *         would become more than VHP_OFFLOAD_MAX_SEGMENTS
 */
int vhp_segments_start(struct vhp_segments *segments, const struct virtio_net_hdr *hdr,
	const uint8_t *frame, uint32_t len_bytes);

/**
 * Headers of segment i, complete with lengths, numbers and checksums.
 * @param out            (output) segments->hdr_bytes
 * @param payload_at     (output) offset in the frame of what follows the headers
 * @return bytes of payload
 */
uint32_t vhp_segment(
	const struct vhp_segments *segments, uint16_t i, uint8_t *out, uint32_t *payload_at);

#endif /* VHP_OFFLOAD_H */
