/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of the test front end: every frame is a function of a seed, a stream and a
 * sequence number, so a receiver builds the frame it expects and compares all of it.
 *
 * Payload behind the headers: 8 bytes of marker (magic and stream), 4 bytes sequence
 * number, 4 bytes frame length, then random bytes that differ from frame to frame.
 * Frames of other origin (IPv6 neighbour discovery of the host and the like) lack the
 * marker and are told apart by it.
 */
#ifndef FE_FRAME_H
#define FE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/virtio_net.h>

/* Newer than the headers of Linux 6.1. */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif
#ifndef VIRTIO_NET_F_HOST_USO
#define VIRTIO_NET_F_GUEST_USO4 54
#define VIRTIO_NET_F_GUEST_USO6 55
#define VIRTIO_NET_F_HOST_USO   56
#endif

/** Local experimental ethertype that raw frames carry. */
#define FE_ETHERTYPE 0x88b5
/** UDP and TCP destination port of IP frames. */
#define FE_PORT      48357

#define FE_FRAME_MAX 65535 /**< longest frame, without virtio-net header */
#define FE_FRAME_MIN 60
#define FE_VLANS_MAX 2

/** What a frame is made of. */
enum fe_kind {
	FE_RAW,  /**< private ethertype */
	FE_UDP4, /**< valid IPv4/IPv6 frames of one segment, checksum left to the device */
	FE_UDP6,
	FE_TCP4,
	FE_TCP6,
	FE_TSO4, /**< frames that the device may have to cut into segments */
	FE_TSO6,
	FE_UFO4,
	FE_UFO6,
	FE_USO4,
	FE_USO6,
	FE_KINDS,
};

/** Names of the kinds in lower case, NULL at the end. */
extern const char *const fe_kind_names[FE_KINDS + 1];

struct fe_spec {
	enum fe_kind kind;
	uint32_t len;      /**< bytes from Ethernet header to end, FE_FRAME_MIN..FE_FRAME_MAX */
	uint32_t seq;      /**< sequence number in its stream */
	uint16_t gso_size; /**< payload bytes per segment; 0 for kinds without segmentation */
	uint8_t vlans;     /**< 802.1Q tags, 0..FE_VLANS_MAX */
	bool whole_csum;   /**< checksum complete, nothing asked of the device */
};

/** A stream of frames: what its random bytes are cut from. */
struct fe_stream {
	uint32_t id;
	uint8_t *pattern;
};

/**
 * Prepare stream @p id (0..15) from @p seed. @return 0 or -ENOMEM. Undo with fe_stream_free().
 * The marker also tells streams of other runs apart, whose frames may still be queued.
 */
int fe_stream_init(struct fe_stream *s, uint32_t id, uint64_t seed);
void fe_stream_free(struct fe_stream *s);

/** Shortest frame of this kind and number of tags. */
uint32_t fe_frame_min(enum fe_kind kind, uint32_t vlans);

/**
 * Build the frame that @p spec describes.
 * @param buf at least spec->len bytes
 * @param hdr (output) virtio-net header for it, num_buffers 0; NULL if not wanted
 */
void fe_frame_build(const struct fe_stream *s, const struct fe_spec *spec, uint8_t *buf,
	struct virtio_net_hdr_v1 *hdr);

/**
 * Is this a frame of stream @p s, and which?
 * @return true and @p seq if the marker is there. Says nothing about the rest of its bytes.
 */
bool fe_frame_seq(const struct fe_stream *s, const uint8_t *frame, size_t len, uint32_t *seq);

/** Do in software what @p hdr asks of a device in checksums, and clear it in @p hdr. */
void fe_frame_finish_csum(uint8_t *frame, size_t len, struct virtio_net_hdr_v1 *hdr);

/** Segments that a frame with segmentation request becomes when it is cut. */
uint32_t fe_frame_segments(const struct fe_spec *spec);

/**
 * Segment @p i of the frame that fe_frame_build() has made of @p spec, with its lengths,
 * numbers, flags and checksums (RFC 791, 768, 9293).
 * @param out at least spec->len bytes
 * @return its length
 */
uint32_t fe_frame_segment(
	const struct fe_spec *spec, const uint8_t *frame, uint32_t i, uint8_t *out);

/** Put 0 where the TCP or UDP checksum is. */
void fe_frame_clear_csum(uint8_t *frame, size_t len);

/** True if IPv4 header and TCP/UDP checksums are complete and right (true for raw frames). */
bool fe_frame_csum_ok(const uint8_t *frame, size_t len);

/**
 * Compare the meaning of two virtio-net headers: checksum and segmentation request.
 * hdr_len is only a hint and num_buffers belongs to the ring; neither is compared.
 */
bool fe_hdr_equal(const struct virtio_net_hdr_v1 *a, const struct virtio_net_hdr_v1 *b);

/** Guest-side (from_host) or host-side feature bits that frames of @p kind need. */
uint64_t fe_kind_features(enum fe_kind kind, bool from_host);

#endif
