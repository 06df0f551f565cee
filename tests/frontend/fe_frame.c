/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames made from a sequence number; see fe_frame.h. */
#include "fe_frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fe_util.h"

#define PATTERN_BYTES 0x40000
#define MAGIC         0x66457661U
#define ETH_BYTES     14
#define VLAN_BYTES    4
#define MARK_BYTES    16
#define TCP_BYTES     20
#define UDP_BYTES     8
#define IP4_BYTES     20
#define IP6_BYTES     40

const char *const fe_kind_names[FE_KINDS + 1] = {"raw", "udp4", "udp6", "tcp4", "tcp6", "tso4",
	"tso6", "ufo4", "ufo6", "uso4", "uso6", NULL};

struct mark {
	uint32_t magic;
	uint32_t stream;
	uint32_t seq;
	uint32_t len;
};

static bool
is_tcp(enum fe_kind k)
{
	return k == FE_TCP4 || k == FE_TCP6 || k == FE_TSO4 || k == FE_TSO6;
}

static bool
is_ip6(enum fe_kind k)
{
	return k == FE_UDP6 || k == FE_TCP6 || k == FE_TSO6 || k == FE_UFO6 || k == FE_USO6;
}

static uint32_t
headers_bytes(enum fe_kind k, uint32_t vlans)
{
	uint32_t n = ETH_BYTES + vlans * VLAN_BYTES;

	if (k == FE_RAW)
		return n;
	n += is_ip6(k) ? IP6_BYTES : IP4_BYTES;
	return n + (is_tcp(k) ? TCP_BYTES : UDP_BYTES);
}

int
fe_stream_init(struct fe_stream *s, uint32_t id, uint64_t seed)
{
	struct fe_rng rng;

	s->id = (uint32_t)(fe_now_ns() << 4) | id;
	s->pattern = malloc(PATTERN_BYTES + FE_FRAME_MAX);
	if (s->pattern == NULL)
		return -ENOMEM;
	fe_rng_seed(&rng, seed ^ ((uint64_t)id << 32));
	fe_rng_fill(&rng, s->pattern, PATTERN_BYTES + FE_FRAME_MAX);
	return 0;
}

void
fe_stream_free(struct fe_stream *s)
{
	free(s->pattern);
	s->pattern = NULL;
}

uint32_t
fe_frame_min(enum fe_kind kind, uint32_t vlans)
{
	uint32_t n = headers_bytes(kind, vlans) + MARK_BYTES;

	return n < FE_FRAME_MIN ? FE_FRAME_MIN : n;
}

static void
put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* One's complement sum (RFC 1071), not yet folded or inverted. */
static uint64_t
sum16(const uint8_t *p, size_t n, uint64_t sum)
{
	for (; n > 1; n -= 2, p += 2)
		sum += get16(p);
	return n > 0 ? sum + ((uint32_t)p[0] << 8) : sum;
}

static uint16_t
fold(uint64_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sum of the pseudo header for what lies behind the IP header at ip. */
static uint64_t
pseudo_sum(const uint8_t *ip, uint8_t proto, uint32_t l4_bytes)
{
	bool v6 = ip[0] >> 4 == 6;

	return sum16(ip + (v6 ? 8 : 12), v6 ? 32 : 8, (uint64_t)proto + l4_bytes);
}

static uint8_t *
put_ethernet(uint8_t *p, uint16_t type, uint32_t vlans)
{
	static const uint8_t macs[12] = {0x02, 0xfe, 0, 0, 0, 2, 0x02, 0xfe, 0, 0, 0, 1};

	memcpy(p, macs, sizeof(macs));
	p += sizeof(macs);
	for (uint32_t i = 0; i < vlans; i++, p += VLAN_BYTES) {
		put16(p, 0x8100);
		put16(p + 2, (uint16_t)(0x2000 | (100 + i)));
	}
	put16(p, type);
	return p + 2;
}

/* l4_bytes: TCP or UDP header and payload. Addresses of the benchmarking ranges. */
static uint8_t *
put_ip(uint8_t *p, bool v6, uint8_t proto, uint32_t l4_bytes)
{
	memset(p, 0, v6 ? IP6_BYTES : IP4_BYTES);
	if (v6) {
		p[0] = 0x60;
		put16(p + 4, (uint16_t)l4_bytes);
		p[6] = proto;
		p[7] = 64;
		memcpy(p + 8, "\x20\x01\x00\x02\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
		memcpy(p + 24, "\x20\x01\x00\x02\0\0\0\0\0\0\0\0\0\0\0\x02", 16);
		return p + IP6_BYTES;
	}
	p[0] = 0x45;
	put16(p + 2, (uint16_t)(IP4_BYTES + l4_bytes));
	p[8] = 64;
	p[9] = proto;
	memcpy(p + 12, "\xc6\x12\x00\x01\xc6\x12\x00\x02", 8);
	put16(p + 10, (uint16_t)~fold(sum16(p, IP4_BYTES, 0)));
	return p + IP4_BYTES;
}

static uint8_t *
put_l4(uint8_t *p, bool tcp, uint32_t seq, uint32_t l4_bytes)
{
	memset(p, 0, tcp ? TCP_BYTES : UDP_BYTES);
	put16(p, FE_PORT - 1);
	put16(p + 2, FE_PORT);
	if (!tcp) {
		put16(p + 4, (uint16_t)l4_bytes);
		return p + UDP_BYTES;
	}
	put16(p + 4, (uint16_t)(seq >> 16));
	put16(p + 6, (uint16_t)seq);
	p[12] = (TCP_BYTES / 4) << 4;
	p[13] = 0x18; /* PSH, ACK */
	put16(p + 14, 0xffff);
	return p + TCP_BYTES;
}

static void
put_payload(const struct fe_stream *s, const struct fe_spec *spec, uint8_t *p, uint32_t n)
{
	/* An odd multiplier: neighbouring frames take far apart pieces of the pattern. */
	uint32_t at = (spec->seq * 2654435761U + spec->len) % PATTERN_BYTES;
	struct mark m = {.magic = MAGIC, .stream = s->id, .seq = spec->seq, .len = spec->len};

	memcpy(p, s->pattern + at, n);
	memcpy(p, &m, sizeof(m));
}

static uint8_t
gso_type(enum fe_kind k)
{
	switch (k) {
	case FE_TSO4:
		return VIRTIO_NET_HDR_GSO_TCPV4;
	case FE_TSO6:
		return VIRTIO_NET_HDR_GSO_TCPV6;
	case FE_UFO4:
	case FE_UFO6:
		return VIRTIO_NET_HDR_GSO_UDP;
	case FE_USO4:
	case FE_USO6:
		return VIRTIO_NET_HDR_GSO_UDP_L4;
	default:
		return VIRTIO_NET_HDR_GSO_NONE;
	}
}

void
fe_frame_build(const struct fe_stream *s, const struct fe_spec *spec, uint8_t *buf,
	struct virtio_net_hdr_v1 *hdr)
{
	enum fe_kind k = spec->kind;
	bool v6 = is_ip6(k), tcp = is_tcp(k);
	struct virtio_net_hdr_v1 h = {0};
	uint32_t csum_at = tcp ? 16 : 6;
	uint8_t *ip, *l4;
	uint32_t l4_bytes;

	if (k == FE_RAW) {
		put_payload(s, spec, put_ethernet(buf, FE_ETHERTYPE, spec->vlans),
			spec->len - headers_bytes(k, spec->vlans));
		if (hdr != NULL)
			*hdr = h;
		return;
	}
	ip = put_ethernet(buf, v6 ? 0x86dd : 0x0800, spec->vlans);
	l4_bytes = spec->len - (uint32_t)(ip - buf) - (v6 ? IP6_BYTES : IP4_BYTES);
	l4 = put_ip(ip, v6, tcp ? 6 : 17, l4_bytes);
	put_payload(s, spec, put_l4(l4, tcp, spec->seq, l4_bytes),
		spec->len - headers_bytes(k, spec->vlans));
	/* The device completes the sum over the pseudo header (virtio 1.2, 5.1.6.2). */
	put16(l4 + csum_at, fold(pseudo_sum(ip, tcp ? 6 : 17, l4_bytes)));
	h.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	h.csum_start = (uint16_t)(l4 - buf);
	h.csum_offset = (uint16_t)csum_at;
	h.gso_type = gso_type(k);
	if (h.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		h.gso_size = spec->gso_size;
		h.hdr_len = (uint16_t)headers_bytes(k, spec->vlans);
	} else if (spec->whole_csum) {
		fe_frame_finish_csum(buf, spec->len, &h);
	}
	if (hdr != NULL)
		*hdr = h;
}

/* Where IP begins and its ethertype, behind any number of tags; 0 if cut short. */
static size_t
skip_ethernet(const uint8_t *frame, size_t len, uint16_t *type)
{
	size_t at = ETH_BYTES;

	if (len < at)
		return 0;
	*type = get16(frame + at - 2);
	while (*type == 0x8100 || *type == 0x88a8) {
		at += VLAN_BYTES;
		if (len < at)
			return 0;
		*type = get16(frame + at - 2);
	}
	return at;
}

/* Offset of the TCP or UDP header, 0 if there is none in a shape that we send. */
static size_t
find_l4(const uint8_t *frame, size_t len, size_t *ip, uint8_t *proto)
{
	uint16_t type = 0;
	size_t at = skip_ethernet(frame, len, &type), l4;

	if (at == 0)
		return 0;
	*ip = at;
	if (type == 0x0800 && len >= at + IP4_BYTES) {
		*proto = frame[at + 9];
		l4 = at + (frame[at] & 15) * 4U;
	} else if (type == 0x86dd && len >= at + IP6_BYTES) {
		*proto = frame[at + 6];
		l4 = at + IP6_BYTES;
	} else {
		return 0;
	}
	if (*proto != 6 && *proto != 17)
		return 0;
	return len >= l4 + (*proto == 6 ? TCP_BYTES : UDP_BYTES) ? l4 : 0;
}

bool
fe_frame_seq(const struct fe_stream *s, const uint8_t *frame, size_t len, uint32_t *seq)
{
	uint16_t type = 0;
	uint8_t proto;
	struct mark m;
	size_t ip, at = skip_ethernet(frame, len, &type);

	if (at == 0)
		return false;
	if (type != FE_ETHERTYPE) {
		at = find_l4(frame, len, &ip, &proto);
		if (at == 0)
			return false;
		at += proto == 6 ? (size_t)(frame[at + 12] >> 4) * 4 : UDP_BYTES;
	}
	if (len < at + sizeof(m))
		return false;
	memcpy(&m, frame + at, sizeof(m));
	*seq = m.seq;
	return m.magic == MAGIC && m.stream == s->id;
}

void
fe_frame_finish_csum(uint8_t *frame, size_t len, struct virtio_net_hdr_v1 *hdr)
{
	uint8_t *p = frame + hdr->csum_start;
	uint16_t c;

	if ((hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0)
		return;
	c = (uint16_t)~fold(sum16(p, len - hdr->csum_start, 0));
	/* For UDP 0 would mean "none"; the other form of 0 is right for TCP as well. */
	if (c == 0)
		c = 0xffff;
	put16(p + hdr->csum_offset, c);
	hdr->flags &= (uint8_t)~VIRTIO_NET_HDR_F_NEEDS_CSUM;
	hdr->csum_start = hdr->csum_offset = 0;
}

void
fe_frame_clear_csum(uint8_t *frame, size_t len)
{
	uint8_t proto = 0;
	size_t ip = 0, l4 = find_l4(frame, len, &ip, &proto);

	if (l4 != 0)
		put16(frame + l4 + (proto == 6 ? 16 : 6), 0);
}

uint32_t
fe_frame_segments(const struct fe_spec *spec)
{
	uint32_t payload = spec->len - headers_bytes(spec->kind, spec->vlans);

	return (payload + spec->gso_size - 1) / spec->gso_size;
}

uint32_t
fe_frame_segment(const struct fe_spec *spec, const uint8_t *frame, uint32_t i, uint8_t *out)
{
	bool tcp = is_tcp(spec->kind), v6 = is_ip6(spec->kind);
	uint32_t headers = headers_bytes(spec->kind, spec->vlans);
	uint32_t at = headers + i * spec->gso_size;
	uint32_t left = spec->len - at;
	uint32_t n = left < spec->gso_size ? left : spec->gso_size;
	uint8_t *l4 = out + headers - (tcp ? TCP_BYTES : UDP_BYTES);
	uint8_t *ip = l4 - (v6 ? IP6_BYTES : IP4_BYTES);
	uint32_t l4_bytes = (uint32_t)(out + headers - l4) + n;
	struct virtio_net_hdr_v1 h = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = (uint16_t)(l4 - out),
		.csum_offset = tcp ? 16 : 6};

	memcpy(out, frame, headers);
	memcpy(out + headers, frame + at, n);
	if (v6) {
		put16(ip + 4, (uint16_t)l4_bytes);
	} else {
		put16(ip + 2, (uint16_t)(IP4_BYTES + l4_bytes));
		put16(ip + 4, (uint16_t)(get16(ip + 4) + i));
		put16(ip + 10, 0);
		put16(ip + 10, (uint16_t)~fold(sum16(ip, IP4_BYTES, 0)));
	}
	if (tcp) {
		uint32_t seq = ((uint32_t)get16(l4 + 4) << 16 | get16(l4 + 6)) + i * spec->gso_size;

		put16(l4 + 4, (uint16_t)(seq >> 16));
		put16(l4 + 6, (uint16_t)seq);
		/* FIN and PSH belong to the last. */
		if (n < left)
			l4[13] &= (uint8_t)~0x09;
	} else {
		put16(l4 + 4, (uint16_t)l4_bytes);
	}
	put16(l4 + h.csum_offset, fold(pseudo_sum(ip, tcp ? 6 : 17, l4_bytes)));
	fe_frame_finish_csum(out, headers + n, &h);
	return headers + n;
}

bool
fe_frame_csum_ok(const uint8_t *frame, size_t len)
{
	uint8_t proto = 0;
	size_t ip = 0, l4 = find_l4(frame, len, &ip, &proto);
	uint32_t l4_bytes;

	if (l4 == 0)
		return true;
	if (frame[ip] >> 4 == 4) {
		if (fold(sum16(frame + ip, l4 - ip, 0)) != 0xffff)
			return false;
		l4_bytes = get16(frame + ip + 2) - (uint32_t)(l4 - ip);
	} else {
		l4_bytes = get16(frame + ip + 4);
	}
	if (l4 + l4_bytes > len)
		return false;
	return fold(sum16(frame + l4, l4_bytes, pseudo_sum(frame + ip, proto, l4_bytes))) == 0xffff;
}

bool
fe_hdr_equal(const struct virtio_net_hdr_v1 *a, const struct virtio_net_hdr_v1 *b)
{
	const uint8_t csum = VIRTIO_NET_HDR_F_NEEDS_CSUM;

	if ((a->flags & csum) != (b->flags & csum) || a->gso_type != b->gso_type)
		return false;
	if (a->gso_type != VIRTIO_NET_HDR_GSO_NONE && a->gso_size != b->gso_size)
		return false;
	return (a->flags & csum) == 0 ||
	       (a->csum_start == b->csum_start && a->csum_offset == b->csum_offset);
}

uint64_t
fe_kind_features(enum fe_kind kind, bool from_host)
{
#define PAIR(guest, host) (from_host ? 1ULL << (guest) : 1ULL << (host))
	const uint64_t csum = PAIR(VIRTIO_NET_F_GUEST_CSUM, VIRTIO_NET_F_CSUM);

	switch (kind) {
	case FE_RAW:
		return 0;
	case FE_TSO4:
		return csum | PAIR(VIRTIO_NET_F_GUEST_TSO4, VIRTIO_NET_F_HOST_TSO4);
	case FE_TSO6:
		return csum | PAIR(VIRTIO_NET_F_GUEST_TSO6, VIRTIO_NET_F_HOST_TSO6);
	case FE_UFO4:
	case FE_UFO6:
		return csum | PAIR(VIRTIO_NET_F_GUEST_UFO, VIRTIO_NET_F_HOST_UFO);
	case FE_USO4:
		return csum | PAIR(VIRTIO_NET_F_GUEST_USO4, VIRTIO_NET_F_HOST_USO);
	case FE_USO6:
		return csum | PAIR(VIRTIO_NET_F_GUEST_USO6, VIRTIO_NET_F_HOST_USO);
	default:
		return csum;
	}
#undef PAIR
}
