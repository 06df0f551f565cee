/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-rings: virtio-net headers of the guest that make no sense (case O1); see rings.h. */
#include "rings.h"

#include <string.h>

/* A frame, and what is changed in its header: 0 leaves a field as it should be. */
struct header_row {
	enum fe_kind kind;
	uint32_t len;
	int32_t flags, gso_type, hdr_len, gso_size, csum_start, csum_offset, num_buffers;
};

#define SET(v) ((v) + 1)

static int
bad_header(struct rg_run *run)
{
	const struct header_row *row = run->c->arg;
	struct fe_spec spec = {.kind = row->kind, .len = row->len, .gso_size = 1000};
	struct virtio_net_hdr_v1 *h;
	uint64_t gpa = rg_frame_of(run, &spec);

	if (gpa == 0)
		return -1;
	h = fe_mem_ptr(&run->net->mem, gpa);
	if (row->flags != 0)
		h->flags = (uint8_t)(row->flags - 1);
	if (row->gso_type != 0)
		h->gso_type = (uint8_t)(row->gso_type - 1);
	if (row->hdr_len != 0)
		h->hdr_len = (uint16_t)(row->hdr_len - 1);
	if (row->gso_size != 0)
		h->gso_size = (uint16_t)(row->gso_size - 1);
	if (row->csum_start != 0)
		h->csum_start = (uint16_t)(row->csum_start - 1);
	if (row->csum_offset != 0)
		h->csum_offset = (uint16_t)(row->csum_offset - 1);
	if (row->num_buffers != 0 && run->net->hdr_bytes == sizeof(*h))
		h->num_buffers = (uint16_t)(row->num_buffers - 1);
	return rg_post(run,
		(struct fe_raw_desc[]){
			{.addr = gpa, .len = rg_bytes(run, row->len), .next = FE_NEXT_AUTO}},
		1);
}

#define ROW(name_, what_, expect_, ...)                                                            \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_TX, .layouts = RG_PLAIN,                 \
		.fill = bad_header, .expect = expect_, .need = OFFLOADS,                           \
		.arg = &(const struct header_row)                                                  \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define OFFLOADS                                                                                   \
	(FE_BIT(VIRTIO_NET_F_CSUM) | FE_BIT(VIRTIO_NET_F_HOST_TSO4) |                              \
		FE_BIT(VIRTIO_NET_F_HOST_TSO6))

const struct rg_case rg_offload_cases[] = {
	ROW("O1-right", "a right TSO header", RG_PASS, .kind = FE_TSO4, .len = 9000),
	ROW("O1-size-0", "segment size 0", RG_DROP, .kind = FE_TSO4, .len = 9000,
		.gso_size = SET(0)),
	ROW("O1-size-1", "segment size 1", RG_RETURN, .kind = FE_TSO4, .len = 9000,
		.gso_size = SET(1)),
	ROW("O1-size-65534", "segment size above the payload", RG_PASS, .kind = FE_TSO4,
		.len = 9000, .gso_size = SET(65534)),
	ROW("O1-size-65535", "segment size 65535", RG_DROP, .kind = FE_TSO4, .len = 9000,
		.gso_size = SET(65535)),
	ROW("O1-type-2", "segmentation type 2", RG_DROP, .kind = FE_TSO4, .len = 9000,
		.gso_type = SET(2)),
	ROW("O1-type-0x7f", "segmentation type 0x7f", RG_DROP, .kind = FE_TSO4, .len = 9000,
		.gso_type = SET(0x7f)),
	ROW("O1-type-ecn", "ECN without a type", RG_DROP, .kind = FE_TSO4, .len = 9000,
		.gso_type = SET(0x80)),
	ROW("O1-udp-on-tcp", "UDP segmentation of a TCP frame", RG_RETURN, .kind = FE_TSO4,
		.len = 9000, .gso_type = SET(VIRTIO_NET_HDR_GSO_UDP)),
	ROW("O1-uso-on-tcp", "UDP_L4 segmentation of a TCP frame", RG_RETURN, .kind = FE_TSO4,
		.len = 9000, .gso_type = SET(VIRTIO_NET_HDR_GSO_UDP_L4)),
	ROW("O1-tcp-on-udp", "TCP segmentation of a UDP frame", RG_RETURN, .kind = FE_UDP4,
		.len = 9000, .gso_type = SET(VIRTIO_NET_HDR_GSO_TCPV4), .gso_size = SET(1000)),
	ROW("O1-v6-on-v4", "IPv6 segmentation of an IPv4 frame", RG_RETURN, .kind = FE_TSO4,
		.len = 9000, .gso_type = SET(VIRTIO_NET_HDR_GSO_TCPV6)),
	ROW("O1-no-csum", "segmentation without NEEDS_CSUM", RG_RETURN, .kind = FE_TSO4,
		.len = 9000, .flags = SET(0)),
	ROW("O1-raw-tso", "TCP segmentation of a frame that is not IP", RG_RETURN, .kind = FE_RAW,
		.len = 9000, .flags = SET(1), .gso_type = SET(VIRTIO_NET_HDR_GSO_TCPV4),
		.gso_size = SET(1000), .csum_start = SET(34), .csum_offset = SET(16)),
	ROW("O1-short-tso", "TCP segmentation of 60 bytes", RG_RETURN, .kind = FE_RAW, .len = 60,
		.flags = SET(1), .gso_type = SET(VIRTIO_NET_HDR_GSO_TCPV4), .gso_size = SET(10),
		.csum_start = SET(34), .csum_offset = SET(16)),
	ROW("O1-start-beyond", "csum_start behind the frame", RG_DROP, .kind = FE_UDP4, .len = 300,
		.csum_start = SET(400)),
	ROW("O1-start-wrap", "csum_start and csum_offset 65535", RG_DROP, .kind = FE_UDP4,
		.len = 300, .csum_start = SET(65535), .csum_offset = SET(65535)),
	ROW("O1-offset-beyond", "csum_offset behind the frame", RG_DROP, .kind = FE_UDP4,
		.len = 300, .csum_offset = SET(60000)),
	ROW("O1-offset-wrap", "csum_start + csum_offset past 65535", RG_DROP, .kind = FE_UDP4,
		.len = 300, .csum_offset = SET(65535)),
	ROW("O1-start-end", "csum_start at the last two bytes", RG_RETURN, .kind = FE_UDP4,
		.len = 300, .csum_start = SET(298), .csum_offset = SET(0)),
	ROW("O1-start-last", "csum_start at the last byte", RG_DROP, .kind = FE_UDP4, .len = 300,
		.csum_start = SET(299), .csum_offset = SET(0)),
	ROW("O1-hdrlen-0", "hdr_len 0 is a hint", RG_PASS, .kind = FE_TSO4, .len = 9000,
		.hdr_len = SET(0)),
	ROW("O1-hdrlen-1", "hdr_len 1 is a hint", RG_PASS, .kind = FE_TSO4, .len = 9000,
		.hdr_len = SET(1)),
	ROW("O1-hdrlen-len", "hdr_len of the whole frame", RG_PASS, .kind = FE_TSO4, .len = 9000,
		.hdr_len = SET(9000)),
	ROW("O1-hdrlen-more", "hdr_len above the frame is a hint", RG_PASS, .kind = FE_TSO4,
		.len = 9000, .hdr_len = SET(9001)),
	ROW("O1-hdrlen-65535", "hdr_len 65535 is a hint", RG_PASS, .kind = FE_TSO6, .len = 9000,
		.hdr_len = SET(65535)),
	ROW("O1-hdrlen-raw", "hdr_len 65535 of a frame without offloads", RG_PASS, .kind = FE_RAW,
		.len = 300, .hdr_len = SET(65535)),
	ROW("O1-flags", "unknown flag bits are ignored", RG_PASS, .kind = FE_UDP4, .len = 300,
		.flags = SET(0xf1)),
	ROW("O1-flags-raw", "unknown flag bits alone", RG_PASS, .kind = FE_RAW, .len = 300,
		.flags = SET(0xf8)),
	ROW("O1-num-buffers", "num_buffers 65535 of a transmitted frame", RG_PASS, .kind = FE_RAW,
		.len = 300, .num_buffers = SET(65535)),
	{.name = "O1-csum-refused",
		.what = "NEEDS_CSUM without the feature",
		.queue = RG_TX,
		.layouts = RG_PLAIN,
		.fill = bad_header,
		.expect = RG_RETURN,
		.without = FE_NET_OFFLOADS,
		.arg = &(const struct header_row){.kind = FE_UDP4, .len = 300}},
	{.name = "O1-tso-refused",
		.what = "segmentation without the feature",
		.queue = RG_TX,
		.layouts = RG_PLAIN,
		.fill = bad_header,
		.expect = RG_RETURN,
		.without = FE_NET_OFFLOADS,
		.arg = &(const struct header_row){.kind = FE_TSO4, .len = 9000}},
	{.name = NULL},
};
