/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "eth_mbuf.h"
#include "vhp_iov.h"

/* ---- guest memory to mbufs ------------------------------------------------------- */

/* Longest frame of one mbuf. */
static uint32_t
data_room(const struct eth_mbuf_ctx *ctx)
{
	return rte_pktmbuf_data_room_size(ctx->pool) - RTE_PKTMBUF_HEADROOM;
}

/* Append len_bytes to a chain, given by its last mbuf; NULL: out of mbufs. */
static struct rte_mbuf *
grow(const struct eth_mbuf_ctx *ctx, struct rte_mbuf *head, struct rte_mbuf *last)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(ctx->pool);

	if (m == NULL)
		return NULL;
	last->next = m;
	head->nb_segs++;
	return m;
}

/* What fills mbufs: a frame in pieces, or one in one piece. */
struct source {
	const struct vhp_frame *frame;
	const uint8_t *flat; /* used if frame is NULL */
};

static void
copy_out(const struct source *src, uint32_t at, void *dst, uint32_t len_bytes)
{
	if (src->frame != NULL)
		vhp_iov_read(src->frame->iov, src->frame->n_iov, at, dst, len_bytes);
	else
		memcpy(dst, src->flat + at, len_bytes);
}

/*
 * Fill a chain that begins with head from offset at of the source. Returns false, and
 * frees the chain, if mbufs are short.
 */
static bool
fill(const struct eth_mbuf_ctx *ctx, struct rte_mbuf *head, const struct source *src, uint32_t at,
	uint32_t len_bytes)
{
	struct rte_mbuf *last = head;

	while (len_bytes > 0) {
		uint32_t room = rte_pktmbuf_tailroom(last);

		if (room == 0) {
			last = grow(ctx, head, last);
			if (last == NULL) {
				rte_pktmbuf_free(head);
				return false;
			}
			continue;
		}
		room = RTE_MIN(room, len_bytes);
		copy_out(src, at, rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len), room);
		last->data_len += room;
		head->pkt_len += room;
		at += room;
		len_bytes -= room;
	}
	return true;
}

static struct rte_mbuf *
make(const struct eth_mbuf_ctx *ctx, const struct source *src, uint32_t at, uint32_t len_bytes)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(ctx->pool);

	if (m == NULL || !fill(ctx, m, src, at, len_bytes))
		return NULL;
	return m;
}

/* Ask the driver for a checksum, or to cut; false: it does not understand such a frame. */
static bool
request(const struct eth_mbuf_ctx *ctx, const struct virtio_net_hdr *hdr, struct rte_mbuf *m)
{
	struct vhp_l4 l4;

	if (!ctx->tx_csum || !vhp_offload_find_l4(hdr, rte_pktmbuf_mtod(m, uint8_t *),
				     rte_pktmbuf_data_len(m), &l4))
		return false;
	m->l2_len = l4.l3_at;
	m->l3_len = l4.l4_at - l4.l3_at;
	m->ol_flags |= l4.ipv6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4;
	m->ol_flags |= l4.tcp ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
	if (hdr->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return true;
	if (!ctx->tx_tso || !l4.tcp || l4.l4_bytes == 0 || hdr->gso_size == 0)
		return false;
	m->l4_len = l4.l4_bytes;
	m->tso_segsz = hdr->gso_size;
	m->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
	/* Each segment has another length. Drivers of virtual devices need not be told. */
	if (!l4.ipv6 && ctx->tx_ip_csum)
		m->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
	return true;
}

/* Cut the frame in the bounce buffer. */
static uint16_t
cut(const struct eth_mbuf_ctx *ctx, const struct virtio_net_hdr *hdr, uint32_t len_bytes,
	struct rte_mbuf **out, uint16_t room, enum vhp_drop *drop)
{
	const struct source src = {.flat = ctx->bounce};
	struct vhp_segments s;

	if (vhp_segments_start(&s, hdr, ctx->bounce, len_bytes) < 0) {
		*drop = VHP_DROP_HEADER;
		return 0;
	}
	if (!ctx->chains && s.hdr_bytes + s.gso_bytes > data_room(ctx)) {
		*drop = VHP_DROP_LONG;
		return 0;
	}
	if (s.n > room)
		return 0;
	for (uint16_t i = 0; i < s.n; i++) {
		uint32_t at, payload_bytes;

		out[i] = rte_pktmbuf_alloc(ctx->pool);
		if (out[i] != NULL) {
			payload_bytes = vhp_segment(
				&s, i, (uint8_t *)rte_pktmbuf_append(out[i], s.hdr_bytes), &at);
			if (fill(ctx, out[i], &src, at, payload_bytes))
				continue;
		}
		rte_pktmbuf_free_bulk(out, i);
		return 0;
	}
	return s.n;
}

/* Do in software what the header asks for. */
static uint16_t
from_bounce(const struct eth_mbuf_ctx *ctx, const struct virtio_net_hdr *hdr, uint32_t len_bytes,
	struct rte_mbuf **out, uint16_t room, enum vhp_drop *drop)
{
	const struct source src = {.flat = ctx->bounce};

	if (hdr->gso_type != VIRTIO_NET_HDR_GSO_NONE)
		return cut(ctx, hdr, len_bytes, out, room, drop);
	if (vhp_offload_checksum(hdr, ctx->bounce, len_bytes) < 0) {
		*drop = VHP_DROP_HEADER;
		return 0;
	}
	if (!ctx->chains && len_bytes > data_room(ctx)) {
		*drop = VHP_DROP_LONG;
		return 0;
	}
	out[0] = make(ctx, &src, 0, len_bytes);
	return out[0] != NULL;
}

uint16_t
eth_mbuf_from_frame(const struct eth_mbuf_ctx *ctx, const struct vhp_frame *frame,
	uint16_t hdr_bytes, struct rte_mbuf **out, uint16_t room, enum vhp_drop *drop)
{
	const struct source src = {.frame = frame};
	uint32_t len_bytes = frame->len_bytes - hdr_bytes;
	struct virtio_net_hdr hdr;
	bool plain;

	*drop = VHP_OK;
	vhp_iov_read(frame->iov, frame->n_iov, 0, &hdr, sizeof(hdr));
	hdr.flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	plain = hdr.flags == 0 && hdr.gso_type == VIRTIO_NET_HDR_GSO_NONE;
	if (plain || (ctx->tx_csum && (ctx->tx_tso || hdr.gso_type == VIRTIO_NET_HDR_GSO_NONE))) {
		if (!ctx->chains && len_bytes > data_room(ctx)) {
			*drop = VHP_DROP_LONG;
			return 0;
		}
		if (room == 0)
			return 0;
		out[0] = make(ctx, &src, hdr_bytes, len_bytes);
		if (out[0] == NULL)
			return 0;
		if (plain || request(ctx, &hdr, out[0]))
			return 1;
		rte_pktmbuf_free(out[0]);
	}
	if (room == 0)
		return 0;
	vhp_iov_read(frame->iov, frame->n_iov, hdr_bytes, ctx->bounce, len_bytes);
	return from_bounce(ctx, &hdr, len_bytes, out, room, drop);
}

/* ---- mbufs to guest memory ------------------------------------------------------- */

static void
write_mbuf(const struct rte_mbuf *m, const struct vhp_frame *f, uint32_t at)
{
	for (; m != NULL; m = m->next) {
		vhp_iov_write(f->iov, f->n_iov, at, rte_pktmbuf_mtod(m, const void *), m->data_len);
		at += m->data_len;
	}
}

/* The sum is not complete: hand the rest of the work to the guest, or do it. */
static bool
finish_checksum(const struct eth_mbuf_ctx *ctx, struct rte_mbuf *m, bool guest_does,
	struct virtio_net_hdr *hdr)
{
	const uint8_t *flat = rte_pktmbuf_read(m, 0, m->pkt_len, ctx->bounce);

	if (!vhp_offload_find_csum(flat, m->pkt_len, hdr))
		return false;
	if (guest_does)
		return true;
	if (flat != ctx->bounce)
		memcpy(ctx->bounce, flat, m->pkt_len);
	return vhp_offload_checksum(hdr, ctx->bounce, m->pkt_len) == 0;
}

bool
eth_mbuf_to_frame(const struct eth_mbuf_ctx *ctx, struct rte_mbuf *m, uint16_t hdr_bytes,
	uint64_t virtio_features, struct vhp_frame *frame)
{
	bool guest_csum = virtio_features >> VIRTIO_NET_F_GUEST_CSUM & 1;
	uint64_t sum = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	struct virtio_net_hdr hdr = {0};
	bool in_bounce = false;

	if (m->pkt_len < VHP_MIN_FRAME_BYTES || m->pkt_len > VHP_MAX_FRAME_BYTES)
		return false;
	if (sum == RTE_MBUF_F_RX_L4_CKSUM_GOOD && guest_csum) {
		hdr.flags = VIRTIO_NET_HDR_F_DATA_VALID;
	} else if (unlikely(sum == RTE_MBUF_F_RX_L4_CKSUM_NONE)) {
		if (!finish_checksum(ctx, m, guest_csum, &hdr))
			return false;
		in_bounce = !guest_csum;
		if (in_bounce)
			hdr = (struct virtio_net_hdr){0};
	}
	vhp_iov_write(frame->iov, frame->n_iov, 0, &hdr, sizeof(hdr));
	if (unlikely(in_bounce))
		vhp_iov_write(frame->iov, frame->n_iov, hdr_bytes, ctx->bounce, m->pkt_len);
	else
		write_mbuf(m, frame, hdr_bytes);
	frame->len_bytes = hdr_bytes + m->pkt_len;
	return true;
}
