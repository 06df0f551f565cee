/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-rings: frames that do not fit, headers of every size, guests without offloads
 * (cases R8, R9, O3, O5); see rings.h.
 */
#include "rings.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define ETH_IP4_TCP 54
#define WAIT_US     20000

static int
post(struct rg_run *run, uint32_t count, uint32_t bytes)
{
	int n = fe_net_post(run->net, 0, count, bytes, bytes, NULL);

	fe_ring_kick(&run->net->rx[0].ring);
	return n;
}

/* Sends a frame of len bytes and receives it; buffers gets how many it took. */
static int
one_frame(struct rg_run *run, uint32_t len, uint32_t *buffers)
{
	struct fe_rxframe f;
	struct fe_spec spec;

	if (rg_host_send(run, len, &spec) != 0 || rg_guest_expect(run, &spec, &f) != 0)
		return -EPROTO;
	*buffers = f.buffers;
	return 0;
}

/* R8: merged from buffers of 40 bytes. */
static int
small_buffers(struct rg_run *run)
{
	static const uint32_t lens[] = {60, 68, 69, 300, 1514, 2000, 2548};
	uint32_t hdr = run->net->hdr_bytes, got, want;

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(lens); i++) {
		post(run, FE_ALL, 40);
		if (one_frame(run, lens[i], &got) != 0)
			return -EPROTO;
		want = (hdr + lens[i] + 39) / 40;
		if (got != want)
			return fe_fault(&run->fault, "%u bytes took %u buffers of 40, not %u",
				lens[i], got, want);
	}
	return RG_RECONNECT;
}

static int
host_send_gso(struct rg_run *run, uint32_t len, struct fe_spec *spec)
{
	struct virtio_net_hdr_v1 hdr;
	int rc;

	*spec = (struct fe_spec){.kind = FE_TSO4, .len = len, .gso_size = 1448, .seq = run->seq++};
	fe_frame_build(&run->to_guest, spec, run->buf, &hdr);
	rc = fe_host_send(run->host, &hdr, run->buf, len);
	return rc == 0 ? 0 : fe_fault(&run->fault, "host send: %s", strerror(-rc));
}

/* R9: no merging, and the frame is larger than any buffer: dropped, the buffer stays. */
static int
oversize(struct rg_run *run)
{
	bool gso = run->c->need != 0;
	struct fe_spec spec;
	uint32_t before, got;

	post(run, 8, 1526);
	before = fe_ring_outstanding(&run->net->rx[0].ring);
	for (uint32_t i = 0; i < 4; i++) {
		int rc = gso ? host_send_gso(run, 65000, &spec) : rg_host_send(run, 9000, &spec);

		if (rc != 0 || one_frame(run, 1514, &got) != 0)
			return -EPROTO;
	}
	got = before - fe_ring_outstanding(&run->net->rx[0].ring);
	if (got != 4)
		return fe_fault(&run->fault, "%u buffers used for 4 frames", got);
	return RG_RECONNECT;
}

/* A frame that is larger than what is posted waits; it is not lost. */
static int
waits_for_room(struct rg_run *run)
{
	struct fe_rxframe f;
	struct fe_spec spec;

	post(run, 4, 1000);
	if (rg_host_send(run, 9000, &spec) != 0)
		return -EPROTO;
	usleep(WAIT_US);
	if (fe_net_recv_pending(run->net, 0))
		return fe_fault(&run->fault, "buffers used for a frame that does not fit");
	post(run, 8, 1000);
	return rg_guest_expect(run, &spec, &f) != 0 ? -EPROTO : RG_RECONNECT;
}

/* The ring is full, and even so the frame does not fit: it never will. */
static int
never_fits(struct rg_run *run)
{
	struct fe_ring *r = &run->net->rx[0].ring;
	uint64_t end, gpa = rg_alloc(run, 64);
	struct fe_raw_desc d = {.addr = gpa, .len = 16, .flags = VRING_DESC_F_WRITE};
	struct fe_spec spec;
	uint32_t sum = 0;

	while (fe_ring_add_raw(r, &d, 1, RG_TOKEN) >= 0)
		;
	fe_ring_kick(r);
	if (rg_host_send(run, 60000, &spec) != 0 || rg_host_send(run, 100, &spec) != 0)
		return -EPROTO;
	end = fe_now_us() + run->opts->used_ms * 1000ULL;
	while (sum < run->net->hdr_bytes + spec.len) {
		struct fe_done done;
		int n = fe_ring_used(r, &done, 1);

		if (n < 0)
			return fe_fault(&run->fault, "%s", r->fault.text);
		if (n > 0)
			sum += done.len;
		else if (fe_now_us() > end)
			return fe_fault(&run->fault, "stuck: %u bytes used", sum);
	}
	if (sum != run->net->hdr_bytes + spec.len)
		return fe_fault(&run->fault, "%u bytes used for a frame of %u", sum, spec.len);
	return RG_RECONNECT;
}

/* O5: frames of all sorts of lengths, with whatever header was negotiated. */
static int
both_ways(struct rg_run *run)
{
	uint32_t got;

	for (uint32_t i = 0; i < 20; i++) {
		post(run, FE_ALL, 1600);
		if (one_frame(run, fe_rng_range(&run->rng, 60, 1514), &got) != 0 ||
			rg_good_tx(run) != 0)
			return -EPROTO;
		if (got != 1)
			return fe_fault(
				&run->fault, "%u buffers of 1,600 bytes for one frame", got);
	}
	return RG_RECONNECT;
}

/* Is this a segment of the frame in run->expected? Copies nothing. */
static bool
is_segment(const uint8_t *p, uint32_t len)
{
	return len > ETH_IP4_TCP && p[12] == 0x08 && p[13] == 0x00 && p[23] == 6 &&
	       (p[36] << 8 | p[37]) == FE_PORT;
}

/* O3: the kernel cuts the frame up for a guest that did not ask for whole ones. */
static int
segments(struct rg_run *run)
{
	uint64_t end = fe_now_us() + run->opts->used_ms * 1000ULL;
	uint32_t at = ETH_IP4_TCP;
	struct fe_rxframe f;
	struct fe_spec spec;

	post(run, FE_ALL, 1600);
	if (host_send_gso(run, 20000, &spec) != 0)
		return -EPROTO;
	fe_frame_build(&run->to_guest, &spec, run->expected, NULL);
	while (at < spec.len) {
		int n = fe_net_recv(run->net, 0, &f);

		if (n < 0)
			return fe_fault(&run->fault, "%s", fe_net_fault(run->net));
		if (fe_now_us() > end)
			return fe_fault(&run->fault, "%u of %u bytes arrived", at, spec.len);
		if (n == 0 || !is_segment(f.data, f.len))
			continue;
		if (f.len > 1514 || at + f.len - ETH_IP4_TCP > spec.len)
			return fe_fault(&run->fault, "a segment of %u bytes at %u", f.len, at);
		if (!fe_frame_csum_ok(f.data, f.len))
			return fe_fault(&run->fault, "the checksum of a segment is not right");
		if (memcmp(f.data + ETH_IP4_TCP, run->expected + at, f.len - ETH_IP4_TCP) != 0)
			return fe_fault(&run->fault, "a segment differs behind byte %u", at);
		at += f.len - ETH_IP4_TCP;
	}
	return RG_RECONNECT;
}

/* O3: a checksum left to the device is complete when it reaches such a guest. */
static int
whole_checksums(struct rg_run *run)
{
	static const enum fe_kind kinds[] = {FE_UDP4, FE_UDP6, FE_TCP4, FE_TCP6};
	struct virtio_net_hdr_v1 hdr;
	uint32_t seq;

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(kinds); i++) {
		struct fe_spec spec = {.kind = kinds[i], .len = 700, .seq = run->seq++};
		uint64_t end = fe_now_us() + run->opts->used_ms * 1000ULL;
		struct fe_rxframe f = {.len = 0};
		int n;

		post(run, FE_ALL, 1600);
		fe_frame_build(&run->to_guest, &spec, run->buf, &hdr);
		if (fe_host_send(run->host, &hdr, run->buf, spec.len) != 0)
			return fe_fault(&run->fault, "host send");
		do {
			n = fe_net_recv(run->net, 0, &f);
			if (n < 0 || fe_now_us() > end)
				return fe_fault(&run->fault, "%s",
					n < 0 ? fe_net_fault(run->net) : "frame did not arrive");
		} while (n == 0 || !fe_frame_seq(&run->to_guest, f.data, f.len, &seq) ||
			 seq != spec.seq);
		if (f.len != spec.len || !fe_frame_csum_ok(f.data, f.len))
			return fe_fault(&run->fault, "%s: the checksum is not complete",
				fe_kind_names[kinds[i]]);
	}
	return RG_RECONNECT;
}

/*
 * O3: frames with offloads wait in the tap when a guest that cannot take them comes
 * (a firmware's driver after an operating system's). What reaches it must be of its kind.
 */
static int
stale_offloads(struct rg_run *run)
{
	struct fe_net_cfg cfg = run->net->cfg;
	struct fe_rxframe f;
	struct fe_spec spec;
	uint32_t seq = 0;
	uint64_t end;
	int n;

	for (uint32_t i = 0; i < 8; i++)
		if (host_send_gso(run, 20000, &spec) != 0)
			return -EPROTO;
	fe_net_close(run->net);
	cfg.features &= ~FE_NET_OFFLOADS;
	cfg.need_features &= ~FE_NET_OFFLOADS;
	if (fe_net_open(run->net, &cfg) != 0 || fe_net_start(run->net) != 0)
		return fe_fault(&run->fault, "reconnect: %s", fe_net_fault(run->net));
	run->ring = &run->net->rx[0].ring;
	end = fe_now_us() + run->opts->used_ms * 1000ULL;
	if (rg_host_send(run, 200, &spec) != 0)
		return -EPROTO;
	do {
		post(run, FE_ALL, 2048);
		n = fe_net_recv(run->net, 0, &f);
		if (n < 0 || fe_now_us() > end)
			return fe_fault(&run->fault, "%s",
				n < 0 ? fe_net_fault(run->net) : "the next frame did not arrive");
		if (n > 0 && f.len > 1514)
			return fe_fault(&run->fault, "a frame of %u bytes", f.len);
	} while (n == 0 || !fe_frame_seq(&run->to_guest, f.data, f.len, &seq) || seq != spec.seq);
	return RG_RECONNECT;
}

#define V1  FE_BIT(VIRTIO_F_VERSION_1)
#define MRG FE_BIT(VIRTIO_NET_F_MRG_RXBUF)
#define GSO                                                                                        \
	(FE_BIT(VIRTIO_NET_F_GUEST_CSUM) | FE_BIT(VIRTIO_NET_F_GUEST_TSO4) |                       \
		FE_BIT(VIRTIO_NET_F_GUEST_TSO6))
#define ROW(name_, what_, fill_, need_, without_)                                                  \
	{                                                                                          \
		.name = name_, .what = what_, .queue = RG_RX, .layouts = RG_PLAIN, .fill = fill_,  \
		.expect = RG_SELF, .need = need_, .without = without_                              \
	}

const struct rg_case rg_net_cases[] = {
	ROW("R8-small", "frames over buffers of 40 bytes", small_buffers, MRG, 0),
	ROW("R9-oversize", "9,000 bytes into buffers of 1,526 without merging", oversize, 0, MRG),
	ROW("R9-oversize-gso", "64 KiB GSO into buffers of 1,526 without merging", oversize, GSO,
		MRG),
	ROW("R9-wait", "9,000 bytes while 4,000 are posted", waits_for_room, MRG, 0),
	ROW("R9-never", "60,000 bytes into a full ring of 16,384", never_fits, MRG, 0),
	ROW("O3-segments", "64 KiB GSO for a guest without TSO", segments, 0, FE_NET_OFFLOADS),
	ROW("O3-checksums", "partial checksums for a guest without CSUM", whole_checksums, 0,
		FE_NET_OFFLOADS),
	ROW("O3-stale", "a guest without offloads after one with them", stale_offloads, GSO, 0),
	ROW("O5-v1-mrg", "VERSION_1 with MRG_RXBUF", both_ways, V1 | MRG, 0),
	ROW("O5-v1", "VERSION_1 without MRG_RXBUF", both_ways, V1, MRG),
	{.name = "O5-mrg",
		.what = "MRG_RXBUF without VERSION_1",
		.queue = RG_RX,
		.layouts = RG_SPLIT,
		.fill = both_ways,
		.expect = RG_SELF,
		.need = MRG,
		.without = V1},
	{.name = "O5-legacy",
		.what = "neither: header of 10 bytes",
		.queue = RG_RX,
		.layouts = RG_SPLIT,
		.fill = both_ways,
		.expect = RG_SELF,
		.without = V1 | MRG},
	{.name = NULL},
};
