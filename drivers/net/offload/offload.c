/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "offload.h"
#include "vhp_port.h"

/* Two 802.1Q or 802.1ad tags, as VHP_MAX_FRAME_BYTES has it. */
#define MAX_VLANS 2

static bool
has(uint64_t features, unsigned int bit)
{
	return features >> bit & 1;
}

bool
vhp_offload_guest_takes(const struct virtio_net_hdr *hdr, uint64_t virtio_features)
{
	unsigned int type = hdr->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;

	if (hdr->flags != 0 && !has(virtio_features, VIRTIO_NET_F_GUEST_CSUM))
		return false;
	if (hdr->gso_type & VIRTIO_NET_HDR_GSO_ECN && !has(virtio_features, VIRTIO_NET_F_GUEST_ECN))
		return false;
	switch (type) {
	case VIRTIO_NET_HDR_GSO_NONE:
		return true;
	case VIRTIO_NET_HDR_GSO_TCPV4:
		return has(virtio_features, VIRTIO_NET_F_GUEST_TSO4);
	case VIRTIO_NET_HDR_GSO_TCPV6:
		return has(virtio_features, VIRTIO_NET_F_GUEST_TSO6);
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		/* The header does not say which IP: both must be taken. */
		return has(virtio_features, VHP_NET_F_GUEST_USO4) &&
		       has(virtio_features, VHP_NET_F_GUEST_USO6);
	default:
		return false;
	}
}

bool
vhp_offload_is_sane(const struct virtio_net_hdr *hdr, uint32_t frame_bytes)
{
	bool csum = hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;

	if (csum && (uint32_t)hdr->csum_start + hdr->csum_offset + sizeof(uint16_t) > frame_bytes)
		return false;
	switch (hdr->gso_type) {
	case VIRTIO_NET_HDR_GSO_NONE:
		return true;
	case VIRTIO_NET_HDR_GSO_TCPV4:
	case VIRTIO_NET_HDR_GSO_TCPV6:
	case VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN:
	case VIRTIO_NET_HDR_GSO_TCPV6 | VIRTIO_NET_HDR_GSO_ECN:
	case VIRTIO_NET_HDR_GSO_UDP_L4:
		return csum && hdr->gso_size != 0;
	default:
		return false;
	}
}

/* One's complement sum into what goes into a header. */
static uint16_t
fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

int
vhp_offload_checksum(const struct virtio_net_hdr *hdr, uint8_t *frame, uint32_t len_bytes)
{
	uint32_t start = hdr->csum_start;
	uint32_t at = start + hdr->csum_offset;
	uint16_t sum;

	if (!(hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return 0;
	if (at + sizeof(sum) > len_bytes)
		return -EINVAL;
	/* The field holds the sum of the pseudo header already. */
	sum = fold(rte_raw_cksum(frame + start, len_bytes - start));
	if (sum == 0)
		sum = 0xffff;
	memcpy(frame + at, &sum, sizeof(sum));
	return 0;
}

static uint16_t
read_be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void
write_be16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value & 0xff;
}

/* Offset of the IP header; 0: not IP. */
static uint16_t
find_ip(const uint8_t *frame, uint32_t len_bytes, bool *ipv6)
{
	uint32_t at = offsetof(struct rte_ether_hdr, ether_type);

	for (int tags = 0; at + sizeof(uint16_t) <= len_bytes; tags++) {
		uint16_t type = read_be16(frame + at);

		if ((type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ) &&
			tags < MAX_VLANS) {
			at += sizeof(struct rte_vlan_hdr);
			continue;
		}
		*ipv6 = type == RTE_ETHER_TYPE_IPV6;
		return type == RTE_ETHER_TYPE_IPV4 || *ipv6 ? at + sizeof(type) : 0;
	}
	return 0;
}

/* Do the IP header and the place of the checksum agree on where TCP or UDP begins? */
static bool
find_l4(struct vhp_segments *s, const struct virtio_net_hdr *hdr)
{
	s->l3_at = find_ip(s->frame, s->len_bytes, &s->ipv6);
	s->l4_at = hdr->csum_start;
	if (s->l3_at == 0 || s->l4_at + sizeof(struct rte_udp_hdr) > s->len_bytes)
		return false;
	if (s->ipv6)
		return s->l4_at >= s->l3_at + sizeof(struct rte_ipv6_hdr);
	return s->l4_at >= s->l3_at + sizeof(struct rte_ipv4_hdr) &&
	       (s->frame[s->l3_at] & 0xf) * 4 == s->l4_at - s->l3_at;
}

bool
vhp_offload_find_l4(const struct virtio_net_hdr *hdr, const uint8_t *frame, uint32_t len_bytes,
	struct vhp_l4 *l4)
{
	struct vhp_segments s = {.frame = frame, .len_bytes = len_bytes};
	const size_t tcp_cksum_at = offsetof(struct rte_tcp_hdr, cksum);

	if (!find_l4(&s, hdr) ||
		(hdr->csum_offset != tcp_cksum_at &&
			hdr->csum_offset != offsetof(struct rte_udp_hdr, dgram_cksum)))
		return false;
	*l4 = (struct vhp_l4){
		.l3_at = s.l3_at,
		.l4_at = s.l4_at,
		.ipv6 = s.ipv6,
		.tcp = hdr->csum_offset == tcp_cksum_at,
	};
	if (l4->tcp && s.l4_at + sizeof(struct rte_tcp_hdr) <= len_bytes)
		l4->l4_bytes = (frame[s.l4_at + offsetof(struct rte_tcp_hdr, data_off)] >> 4) * 4;
	return true;
}

bool
vhp_offload_find_csum(const uint8_t *frame, uint32_t len_bytes, struct virtio_net_hdr *hdr)
{
	bool ipv6 = false;
	uint16_t l3_at = find_ip(frame, len_bytes, &ipv6);
	uint32_t l4_at = l3_at + sizeof(struct rte_ipv6_hdr);
	uint8_t proto;

	if (l3_at == 0 || len_bytes < l3_at + sizeof(struct rte_ipv4_hdr))
		return false;
	if (!ipv6)
		l4_at = l3_at + (frame[l3_at] & 0xf) * 4;
	/* Extension headers of IPv6 are not followed. */
	proto = frame[l3_at + (ipv6 ? offsetof(struct rte_ipv6_hdr, proto)
				    : offsetof(struct rte_ipv4_hdr, next_proto_id))];
	if ((proto != IPPROTO_TCP && proto != IPPROTO_UDP) ||
		len_bytes < l4_at + sizeof(struct rte_udp_hdr))
		return false;
	hdr->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	hdr->csum_start = l4_at;
	hdr->csum_offset = proto == IPPROTO_TCP ? offsetof(struct rte_tcp_hdr, cksum)
						: offsetof(struct rte_udp_hdr, dgram_cksum);
	return true;
}

int
vhp_segments_start(struct vhp_segments *s, const struct virtio_net_hdr *hdr, const uint8_t *frame,
	uint32_t len_bytes)
{
	unsigned int type = hdr->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
	uint32_t l4_bytes = sizeof(struct rte_udp_hdr);
	uint32_t n;

	*s = (struct vhp_segments){
		.frame = frame, .len_bytes = len_bytes, .gso_bytes = hdr->gso_size};
	s->tcp = type == VIRTIO_NET_HDR_GSO_TCPV4 || type == VIRTIO_NET_HDR_GSO_TCPV6;
	if ((!s->tcp && type != VIRTIO_NET_HDR_GSO_UDP_L4) || hdr->gso_size == 0 ||
		!(hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || !find_l4(s, hdr) ||
		(s->tcp && s->ipv6 != (type == VIRTIO_NET_HDR_GSO_TCPV6)))
		return -EINVAL;
	if (s->tcp) {
		if (s->l4_at + sizeof(struct rte_tcp_hdr) > len_bytes)
			return -EINVAL;
		l4_bytes = (frame[s->l4_at + offsetof(struct rte_tcp_hdr, data_off)] >> 4) * 4;
		if (l4_bytes < sizeof(struct rte_tcp_hdr))
			return -EINVAL;
	}
	s->hdr_bytes = s->l4_at + l4_bytes;
	if (s->hdr_bytes >= len_bytes || s->hdr_bytes > VHP_OFFLOAD_HDR_BYTES)
		return -EINVAL;
	n = (len_bytes - s->hdr_bytes + hdr->gso_size - 1) / hdr->gso_size;
	if (n > VHP_OFFLOAD_MAX_SEGMENTS)
		return -EINVAL;
	s->n = n;
	return 0;
}

/* Lengths, the number and the checksum of the IP header. */
static void
finish_ip(const struct vhp_segments *s, uint16_t i, uint8_t *out, uint32_t l4_bytes)
{
	uint8_t *l3 = out + s->l3_at;
	uint32_t l3_bytes = s->l4_at - s->l3_at;
	struct rte_ipv4_hdr v4;

	if (s->ipv6) {
		write_be16(l3 + offsetof(struct rte_ipv6_hdr, payload_len),
			l3_bytes - sizeof(struct rte_ipv6_hdr) + l4_bytes);
		return;
	}
	memcpy(&v4, l3, sizeof(v4));
	v4.total_length = rte_cpu_to_be_16(l3_bytes + l4_bytes);
	v4.packet_id = rte_cpu_to_be_16(rte_be_to_cpu_16(v4.packet_id) + i);
	v4.hdr_checksum = 0;
	memcpy(l3, &v4, sizeof(v4));
	v4.hdr_checksum = fold(rte_raw_cksum(l3, l3_bytes));
	memcpy(l3, &v4, sizeof(v4));
}

/* Sum of the pseudo header: addresses, length, protocol. */
static uint32_t
pseudo_sum(const struct vhp_segments *s, uint32_t l4_bytes)
{
	const uint8_t *l3 = s->frame + s->l3_at;
	struct {
		uint32_t len;
		uint32_t proto;
	} tail = {rte_cpu_to_be_32(l4_bytes), rte_cpu_to_be_32(s->tcp ? IPPROTO_TCP : IPPROTO_UDP)};
	uint32_t sum = rte_raw_cksum(&tail, sizeof(tail));

	if (s->ipv6)
		return sum + rte_raw_cksum(l3 + offsetof(struct rte_ipv6_hdr, src_addr), 32);
	return sum + rte_raw_cksum(l3 + offsetof(struct rte_ipv4_hdr, src_addr), 8);
}

/* What differs from segment to segment; the checksum field is left 0. */
static void
finish_tcp(const struct vhp_segments *s, uint16_t i, uint8_t *l4)
{
	struct rte_tcp_hdr tcp;

	memcpy(&tcp, l4, sizeof(tcp));
	tcp.sent_seq =
		rte_cpu_to_be_32(rte_be_to_cpu_32(tcp.sent_seq) + (uint32_t)i * s->gso_bytes);
	if (i > 0)
		tcp.tcp_flags &= (uint8_t)~RTE_TCP_CWR_FLAG;
	if (i < s->n - 1)
		tcp.tcp_flags &= (uint8_t) ~(RTE_TCP_FIN_FLAG | RTE_TCP_PSH_FLAG);
	tcp.cksum = 0;
	memcpy(l4, &tcp, sizeof(tcp));
}

uint32_t
vhp_segment(const struct vhp_segments *s, uint16_t i, uint8_t *out, uint32_t *payload_at)
{
	uint32_t at = s->hdr_bytes + (uint32_t)i * s->gso_bytes;
	uint32_t payload_bytes = RTE_MIN((uint32_t)s->gso_bytes, s->len_bytes - at);
	uint32_t l4_hdr_bytes = s->hdr_bytes - s->l4_at;
	uint32_t l4_bytes = l4_hdr_bytes + payload_bytes;
	uint8_t *l4 = out + s->l4_at;
	size_t cksum_at = s->tcp ? offsetof(struct rte_tcp_hdr, cksum)
				 : offsetof(struct rte_udp_hdr, dgram_cksum);
	uint32_t sum = pseudo_sum(s, l4_bytes);
	uint16_t cksum;

	memcpy(out, s->frame, s->hdr_bytes);
	finish_ip(s, i, out, l4_bytes);
	if (s->tcp) {
		finish_tcp(s, i, l4);
	} else {
		write_be16(l4 + offsetof(struct rte_udp_hdr, dgram_len), l4_bytes);
		memset(l4 + cksum_at, 0, sizeof(cksum));
	}
	/* Both parts begin at even offsets: headers are of whole 32-bit words. */
	sum += rte_raw_cksum(l4, l4_hdr_bytes);
	sum += rte_raw_cksum(s->frame + at, payload_bytes);
	cksum = fold(sum);
	if (cksum == 0)
		cksum = 0xffff;
	memcpy(l4 + cksum_at, &cksum, sizeof(cksum));
	*payload_at = at;
	return payload_bytes;
}
