/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-guests: frames of one length from one guest to another, through a back end that joins the
 * two, as fast as they go. Both drivers are one pinned thread, which never touches what is in
 * the frames: the copies are the back end's. Frames above BN_FRAME_MAX ask for TCP segmentation
 * and lie in pieces of 4 KiB, as Linux has them.
 *
 * Frames are counted where they arrive; "busy" is the share of its time in which the receiver
 * found some.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_util.h"
#include "fe_net.h"

#define RING_SIZE   1024
#define BURST       32
#define PIECE_BYTES 4096
#define MAX_PIECES  17
#define MOST_FRAMES 256
#define WARM_UP_NS  200000000ULL

static struct {
	const char *sockets[2];
	uint32_t bytes;
	uint64_t ns;
	int cpu;
	bool packed;
} opt = {.bytes = 1500, .ns = 1000000000};

struct guest {
	struct fe_net net;
	struct fe_seg segs[MOST_FRAMES][MAX_PIECES]; /* sender */
	uint32_t n_segs;
	struct fe_seg buffers[RING_SIZE]; /* receiver */
	uint32_t free[RING_SIZE], n_free;
};

static uint64_t n_received, n_wrong, busy_ns;
static uint32_t buffers_left; /* of the frame at hand */

static void
fail(struct guest *g, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, fe_net_fault(&g->net));
	exit(1);
}

static uint64_t
piece(struct guest *g)
{
	uint64_t gpa = fe_mem_alloc(&g->net.mem, PIECE_BYTES, PIECE_BYTES, FE_ALLOC_ONE_REGION);

	if (gpa == 0)
		fail(g, "guest memory");
	return gpa;
}

static void
open_guest(struct guest *g, const char *path)
{
	struct fe_net_cfg cfg = {
		.path = path,
		.lenient = true,
		.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
			    FE_BIT(VIRTIO_NET_F_CSUM) | FE_BIT(VIRTIO_NET_F_GUEST_CSUM) |
			    FE_BIT(VIRTIO_NET_F_HOST_TSO4) | FE_BIT(VIRTIO_NET_F_GUEST_TSO4),
		.ring_size = RING_SIZE,
		.regions = 1,
		.tx_bufs = 1,
		.rx_bufs = 1,
		.extra_bytes = (uint64_t)(MOST_FRAMES + 2) * MAX_PIECES * PIECE_BYTES,
	};

	if (opt.packed)
		cfg.need_features = FE_BIT(VIRTIO_F_RING_PACKED);
	if (fe_net_open(&g->net, &cfg) != 0)
		fail(g, "open");
	fe_ring_disarm(&g->net.tx[0].ring);
	fe_ring_disarm(&g->net.rx[0].ring);
}

static void
start_guest(struct guest *g)
{
	if (fe_net_start(&g->net) != 0)
		fail(g, "start");
	fe_ring_kick(&g->net.rx[0].ring);
}

/* Header and frame number i, in as many pieces as it takes. */
static void
make_frame(struct guest *g, uint32_t i)
{
	struct virtio_net_hdr_v1 hdr = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.gso_size = 1448,
		.hdr_len = 54,
		.csum_start = 34,
		.csum_offset = 16,
	};
	uint32_t left = BN_HDR_BYTES + opt.bytes;

	if (opt.bytes <= BN_FRAME_MAX)
		memset(&hdr, 0, sizeof(hdr));
	for (g->n_segs = 0; left > 0; g->n_segs++) {
		uint32_t len = left < PIECE_BYTES ? left : PIECE_BYTES;
		struct fe_seg *seg = &g->segs[i][g->n_segs];

		*seg = (struct fe_seg){.gpa = piece(g), .len = len};
		memset(fe_mem_ptr(&g->net.mem, seg->gpa), (int)i, len);
		left -= len;
	}
	memcpy(fe_mem_ptr(&g->net.mem, g->segs[i][0].gpa), &hdr, BN_HDR_BYTES);
}

static void
send_some(struct guest *g)
{
	struct fe_ring *ring = &g->net.tx[0].ring;
	struct fe_done done[RING_SIZE];
	int n = fe_ring_used(ring, done, RING_SIZE);
	uint32_t added = 0;

	if (n < 0)
		fail(g, "transmitq");
	for (int i = 0; i < n; i++)
		g->free[g->n_free++] = (uint32_t)done[i].token;
	while (added < BURST && g->n_free > 0) {
		uint32_t i = g->free[g->n_free - 1];

		if (fe_ring_add(ring, g->segs[i], g->n_segs, g->n_segs, i) < 0)
			break;
		g->n_free--;
		added++;
	}
	if (added > 0)
		fe_ring_kick(ring);
}

/* A frame of num_buffers buffers begins in this one (virtio 1.2, 5.1.6.4). */
static void
begin_frame(struct guest *g, const struct fe_done *done)
{
	const struct virtio_net_hdr_v1 *hdr = fe_mem_ptr(&g->net.mem, g->buffers[done->token].gpa);

	buffers_left = hdr->num_buffers == 0 ? 1 : hdr->num_buffers;
	n_received++;
	n_wrong += buffers_left != (BN_HDR_BYTES + opt.bytes + PIECE_BYTES - 1) / PIECE_BYTES;
}

static bool
receive_some(struct guest *g)
{
	struct fe_ring *ring = &g->net.rx[0].ring;
	struct fe_done done[RING_SIZE];
	int n = fe_ring_used(ring, done, RING_SIZE);

	if (n < 0)
		fail(g, "receiveq");
	for (int i = 0; i < n; i++) {
		if (buffers_left == 0)
			begin_frame(g, &done[i]);
		buffers_left--;
		fe_ring_add(ring, &g->buffers[done[i].token], 1, 1, done[i].token);
	}
	if (n > 0)
		fe_ring_kick(ring);
	return n > 0;
}

static void
loop(struct guest *from, struct guest *to, uint64_t ns)
{
	uint64_t now = fe_now_ns(), end = now + ns;

	while (now < end) {
		uint64_t then = now;
		bool moved;

		send_some(from);
		moved = receive_some(to);
		now = fe_now_ns();
		if (moved)
			busy_ns += now - then;
	}
}

static void
parse(int argc, char **argv)
{
	static const struct option longs[] = {{"socket", 1, NULL, 's'}, {"peer", 1, NULL, 'q'},
		{"bytes", 1, NULL, 'b'}, {"ms", 1, NULL, 't'}, {"cpu", 1, NULL, 'c'},
		{"packed", 0, NULL, 'p'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			opt.sockets[0] = optarg;
			break;
		case 'q':
			opt.sockets[1] = optarg;
			break;
		case 'b':
			opt.bytes = (uint32_t)fe_opt_number("--bytes", optarg, BN_FRAME_MIN,
				MAX_PIECES * PIECE_BYTES - BN_HDR_BYTES - 4097);
			break;
		case 't':
			opt.ns = fe_opt_number("--ms", optarg, 10, 3600000) * 1000000;
			break;
		case 'c':
			opt.cpu = (int)fe_opt_number("--cpu", optarg, 0, 1023);
			break;
		case 'p':
			opt.packed = true;
			break;
		default:
			exit(2);
		}
	}
	if (opt.sockets[0] == NULL || opt.sockets[1] == NULL) {
		fprintf(stderr, "--socket, --peer: both needed\n");
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	static struct guest from, to;
	uint64_t ns;
	double s;

	parse(argc, argv);
	bn_pin(opt.cpu);
	open_guest(&from, opt.sockets[0]);
	open_guest(&to, opt.sockets[1]);
	for (uint32_t i = 0; i < MOST_FRAMES; i++) {
		make_frame(&from, i);
		from.free[from.n_free++] = i;
	}
	for (uint32_t i = 0; i < RING_SIZE; i++) {
		to.buffers[i] =
			(struct fe_seg){.gpa = piece(&to), .len = PIECE_BYTES, .write = true};
		fe_ring_add(&to.net.rx[0].ring, &to.buffers[i], 1, 1, i);
	}
	start_guest(&to);
	start_guest(&from);
	/* A back end may take its time to notice the guests. */
	for (int i = 0; i < 50 && n_received == 0; i++)
		loop(&from, &to, WARM_UP_NS);
	loop(&from, &to, WARM_UP_NS);
	/* What earlier guests left on its way has arrived by now. */
	n_received = n_wrong = busy_ns = 0;
	ns = fe_now_ns();
	loop(&from, &to, opt.ns);
	s = (double)(fe_now_ns() - ns) / 1e9;
	printf("{\"mpps\": %.6f, \"gbps\": %.4f, \"wrong\": %lu, \"busy\": %.4f}\n",
		(double)n_received / s / 1e6, (double)n_received * opt.bytes * 8 / s / 1e9, n_wrong,
		(double)busy_ns / 1e9 / s);
	fe_net_close(&from.net);
	fe_net_close(&to.net);
	return n_wrong == 0 ? 0 : 1;
}
