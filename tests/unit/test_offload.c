/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksum and segmentation in software, against sums written here a second time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload.h"
#include "vhp_port.h"

#define ETHER_BYTES 14
#define MOST_BYTES  65535

static uint8_t frame[MOST_BYTES];

/* One kind of frame that can be cut. */
struct kind {
	uint8_t gso_type;
	uint32_t ip_bytes; /* 20: version 4, 40: version 6 */
	uint32_t l4_bytes;
	uint8_t proto;
	uint32_t tag_bytes;
};

static const struct kind kinds[] = {
	{VIRTIO_NET_HDR_GSO_TCPV4, 20, 20, 6, 0},
	{VIRTIO_NET_HDR_GSO_TCPV4, 24, 32, 6, 4},
	{VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN, 20, 60, 6, 8},
	{VIRTIO_NET_HDR_GSO_TCPV6, 40, 20, 6, 0},
	{VIRTIO_NET_HDR_GSO_TCPV6, 40, 32, 6, 4},
	{VIRTIO_NET_HDR_GSO_UDP_L4, 20, 8, 17, 0},
	{VIRTIO_NET_HDR_GSO_UDP_L4, 40, 8, 17, 8},
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void
put16(uint8_t *at, unsigned int value)
{
	at[0] = value >> 8;
	at[1] = value & 0xff;
}

static unsigned int
get16(const uint8_t *at)
{
	return (unsigned int)at[0] << 8 | at[1];
}

static uint32_t
get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static uint64_t
add_up(uint64_t sum, const uint8_t *data, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sum += i % 2 == 0 ? (uint64_t)data[i] << 8 : data[i];
	return sum;
}

static unsigned int
reduce(uint64_t sum)
{
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static bool
is_v4(const struct kind *k)
{
	return k->ip_bytes != 40;
}

static uint64_t
pseudo(const struct kind *k, const uint8_t *ip, uint32_t l4_bytes)
{
	uint64_t sum = is_v4(k) ? add_up(0, ip + 12, 8) : add_up(0, ip + 8, 32);

	return sum + l4_bytes + k->proto;
}

/* A frame of the kind with so much payload, and its header. */
static uint32_t
build(const struct kind *k, uint32_t payload_bytes, uint16_t gso_size, struct virtio_net_hdr *hdr)
{
	uint32_t l3_at = ETHER_BYTES + k->tag_bytes;
	uint32_t l4_at = l3_at + k->ip_bytes;
	uint32_t l4_len = k->l4_bytes + payload_bytes;
	uint8_t *ip = frame + l3_at;
	uint8_t *l4 = frame + l4_at;

	for (uint32_t i = 0; i < l4_at + l4_len; i++)
		frame[i] = rand();
	put16(frame + 12, k->tag_bytes == 8 ? 0x88a8 : 0x8100);
	if (k->tag_bytes == 8)
		put16(frame + 16, 0x8100);
	put16(frame + 12 + k->tag_bytes, is_v4(k) ? 0x0800 : 0x86dd);
	if (is_v4(k)) {
		ip[0] = 0x40 | k->ip_bytes / 4;
		put16(ip + 2, k->ip_bytes + l4_len);
		put16(ip + 4, 0xfffe); /* numbers go on past 65,535 */
		ip[9] = k->proto;
	} else {
		ip[0] = 0x60;
		put16(ip + 4, l4_len);
		ip[6] = k->proto;
	}
	if (k->proto == 6) {
		put16(l4 + 4, 0xffff);
		put16(l4 + 6, 0xff00);
		l4[12] = k->l4_bytes / 4 << 4;
		l4[13] = 0x80 | 0x10 | 0x08 | 0x01; /* CWR ACK PSH FIN */
		put16(l4 + 16, reduce(pseudo(k, ip, l4_len)));
	} else {
		put16(l4 + 4, l4_len);
		put16(l4 + 6, reduce(pseudo(k, ip, l4_len)));
	}
	*hdr = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = k->gso_type,
		.gso_size = gso_size,
		.csum_start = l4_at,
		.csum_offset = k->proto == 6 ? 16 : 6,
	};
	return l4_at + l4_len;
}

static void
check_segment(const struct kind *k, const struct vhp_segments *s, uint16_t i, uint32_t *payload_at)
{
	static uint8_t out[VHP_OFFLOAD_HDR_BYTES + MOST_BYTES];
	uint32_t at;
	uint32_t n = vhp_segment(s, i, out, &at);
	uint8_t *ip = out + s->l3_at;
	uint8_t *l4 = out + s->l4_at;

	assert_int_equal(at, *payload_at);
	assert_int_equal(n, i < s->n - 1 ? s->gso_bytes : s->len_bytes - at);
	*payload_at += n;
	memcpy(out + s->hdr_bytes, frame + at, n);
	assert_memory_equal(out, frame, s->l3_at);
	if (is_v4(k)) {
		assert_int_equal(reduce(add_up(0, ip, k->ip_bytes)), 0xffff);
		assert_int_equal(get16(ip + 2), k->ip_bytes + k->l4_bytes + n);
		assert_int_equal(get16(ip + 4), (0xfffe + i) & 0xffff);
	} else {
		assert_int_equal(get16(ip + 4), k->l4_bytes + n);
	}
	assert_int_equal(
		reduce(add_up(pseudo(k, ip, k->l4_bytes + n), l4, k->l4_bytes + n)), 0xffff);
	if (k->proto == 17) {
		assert_int_equal(get16(l4 + 4), 8 + n);
		return;
	}
	assert_int_equal(get32(l4 + 4), (uint32_t)(0xffffff00 + (uint32_t)i * s->gso_bytes));
	assert_int_equal(l4[13] & 0x09, i == s->n - 1 ? 0x09 : 0);
	assert_int_equal(l4[13] & 0x80, i == 0 ? 0x80 : 0);
	assert_int_equal(l4[13] & 0x10, 0x10);
}

static void
cuts_every_kind(void **state)
{
	static const uint32_t sizes[][2] = {{1, 1}, {1, 536}, {1460, 1460}, {1461, 1460},
		{2919, 1460}, {60000, 1448}, {256, 1}};

	(void)state;
	for (size_t k = 0; k < N_KINDS; k++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct virtio_net_hdr hdr;
			struct vhp_segments s;
			uint32_t n = build(&kinds[k], sizes[i][0], sizes[i][1], &hdr);
			uint32_t at;

			assert_int_equal(vhp_segments_start(&s, &hdr, frame, n), 0);
			assert_int_equal(s.n, (sizes[i][0] + sizes[i][1] - 1) / sizes[i][1]);
			at = s.hdr_bytes;
			for (uint16_t j = 0; j < s.n; j++)
				check_segment(&kinds[k], &s, j, &at);
			assert_int_equal(at, n);
		}
}

/* Headers and request that do not fit the frame, or each other. */
static void
refuses_bad_requests(void **state)
{
	(void)state;
	for (size_t k = 0; k < N_KINDS; k++) {
		struct virtio_net_hdr good, hdr;
		struct vhp_segments s;
		uint32_t n = build(&kinds[k], 3000, 1000, &good);

#define REFUSED(change, len)                                                                       \
	do {                                                                                       \
		hdr = good;                                                                        \
		change;                                                                            \
		assert_int_equal(vhp_segments_start(&s, &hdr, frame, len), -EINVAL);               \
	} while (0)

		REFUSED(hdr.gso_size = 0, n);
		REFUSED(hdr.gso_size = 3000 / (VHP_OFFLOAD_MAX_SEGMENTS + 1), n);
		REFUSED(hdr.gso_type = 2, n);
		REFUSED(hdr.gso_type = VIRTIO_NET_HDR_GSO_UDP, n);
		REFUSED(hdr.flags = 0, n);
		REFUSED(hdr.csum_start = 0, n);
		REFUSED(hdr.csum_start = UINT16_MAX, n);
		REFUSED(hdr.csum_start -= 2, n);
		REFUSED((void)0, n - 3000);
		REFUSED((void)0, ETHER_BYTES);
		REFUSED((void)0, 0);
		if (kinds[k].proto == 6) {
			REFUSED(hdr.gso_type ^= VIRTIO_NET_HDR_GSO_TCPV4 ^ VIRTIO_NET_HDR_GSO_TCPV6,
				n);
			frame[good.csum_start + 12] = 0x40;
			REFUSED((void)0, n);
		}
	}
}

/* Whatever is asked of whatever frame: no read or write outside (for the sanitizers). */
static void
survives_random(void **state)
{
	(void)state;
	for (int round = 0; round < 200000; round++) {
		const struct kind *k = &kinds[rand() % N_KINDS];
		struct virtio_net_hdr hdr;
		uint32_t n = build(k, 1 + rand() % 300, 1 + rand() % 300, &hdr);
		struct vhp_segments s;
		struct vhp_l4 l4;
		uint8_t out[VHP_OFFLOAD_HDR_BYTES];
		uint32_t at;
		uint8_t *copy;

		for (int i = rand() % 4; i > 0; i--)
			frame[rand() % n] = rand();
		for (int i = rand() % 3; i > 0; i--)
			((uint8_t *)&hdr)[(size_t)rand() % sizeof(hdr)] = rand();
		n = rand() % 2 ? n : (uint32_t)rand() % n;
		copy = malloc(n + 1);
		assert_non_null(copy);
		memcpy(copy, frame, n);
		vhp_offload_find_l4(&hdr, copy, n, &l4);
		if (vhp_segments_start(&s, &hdr, copy, n) == 0)
			for (uint16_t i = 0; i < s.n; i++) {
				uint32_t payload_bytes = vhp_segment(&s, i, out, &at);

				assert_true(payload_bytes > 0 && at + payload_bytes <= n);
			}
		vhp_offload_checksum(&hdr, copy, n);
		vhp_offload_find_csum(copy, n, &hdr);
		free(copy);
	}
}

static void
completes_checksums(void **state)
{
	(void)state;
	for (size_t k = 0; k < N_KINDS; k++) {
		struct virtio_net_hdr hdr, found = {0};
		uint32_t n = build(&kinds[k], 1001, 0, &hdr);
		uint32_t l4_len = n - hdr.csum_start;
		uint8_t *ip = frame + hdr.csum_start - kinds[k].ip_bytes;

		assert_true(vhp_offload_find_csum(frame, n, &found));
		assert_int_equal(found.csum_start, hdr.csum_start);
		assert_int_equal(found.csum_offset, hdr.csum_offset);
		assert_int_equal(vhp_offload_checksum(&hdr, frame, n), 0);
		assert_int_equal(reduce(add_up(pseudo(&kinds[k], ip, l4_len),
					 frame + hdr.csum_start, l4_len)),
			0xffff);
		hdr.csum_offset = n - hdr.csum_start - 1;
		assert_int_equal(vhp_offload_checksum(&hdr, frame, n), -EINVAL);
	}
}

static void
knows_what_guests_take(void **state)
{
	const uint64_t csum = 1ULL << VIRTIO_NET_F_GUEST_CSUM;
	const uint64_t tso4 = csum | 1ULL << VIRTIO_NET_F_GUEST_TSO4;
	const uint64_t uso4 = csum | 1ULL << VHP_NET_F_GUEST_USO4;
	struct virtio_net_hdr hdr = {0};

	(void)state;
	assert_true(vhp_offload_guest_takes(&hdr, 0));
	hdr.flags = VIRTIO_NET_HDR_F_DATA_VALID;
	assert_false(vhp_offload_guest_takes(&hdr, ~csum));
	assert_true(vhp_offload_guest_takes(&hdr, csum));
	hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	hdr.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	assert_false(vhp_offload_guest_takes(&hdr, csum));
	assert_true(vhp_offload_guest_takes(&hdr, tso4));
	hdr.gso_type |= VIRTIO_NET_HDR_GSO_ECN;
	assert_false(vhp_offload_guest_takes(&hdr, tso4));
	assert_true(vhp_offload_guest_takes(&hdr, tso4 | 1ULL << VIRTIO_NET_F_GUEST_ECN));
	hdr.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
	assert_false(vhp_offload_guest_takes(&hdr, tso4));
	hdr.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
	assert_false(vhp_offload_guest_takes(&hdr, uso4));
	assert_true(vhp_offload_guest_takes(&hdr, uso4 | 1ULL << VHP_NET_F_GUEST_USO6));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_every_kind),
		cmocka_unit_test(refuses_bad_requests),
		cmocka_unit_test(survives_random),
		cmocka_unit_test(completes_checksums),
		cmocka_unit_test(knows_what_guests_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
