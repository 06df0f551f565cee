/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-frames: frames of one length through a vhost-user back end as fast as they go,
 * guest -> host (tx), host -> guest (rx) or both, from one pinned thread: it is the guest's
 * driver, and the host's sender where one is needed. With "send" it is the sender alone.
 *
 * Frames guest -> host are counted by the host's interface (with "--iface none" by the used
 * ring), those host -> guest by the used ring. With --ack N, receiving, the guest answers each
 * Nth frame with one of its own, as TCP's receiver does. With --gso the guest takes large
 * datagrams whole. A pass in which neither ring moved is a
 * pass spent waiting for the back end; their share of the time tells which side was the limit.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_util.h"
#include "fe_net.h"

#define RING_SIZE    256
#define BURST        32
#define TX_BUF_BYTES 2048
#define RX_BUF_BYTES (opt.gso ? 8192U : 2048U)
#define WARM_UP_NS   300000000ULL

enum mode { TX, RX, BOTH, SEND };

static const char *const modes[] = {"tx", "rx", "both", "send", NULL};

static struct {
	const char *socket;
	const char *iface;
	enum mode mode;
	uint32_t bytes;
	uint64_t ns;
	int cpu;
	uint32_t ack;
	bool packed, gso;
} opt = {.bytes = 64, .ns = 1000000000, .iface = "tap0"};

struct run {
	struct fe_net net;
	struct bn_sender sender;
	struct fe_seg tx_seg[RING_SIZE], rx_seg[RING_SIZE];
	uint32_t tx_free[RING_SIZE], n_tx_free;
	uint64_t n_received, n_other, n_sent, wait_ns;
	uint64_t rx_bytes;
	uint32_t n_to_ack, buffers_left; /**< of the frame at hand */
};

static void
fail(struct run *r, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, fe_net_fault(&r->net));
	exit(1);
}

/* Buffers whose contents never change: nothing is copied on this side. */
static void
make_buffers(struct run *r)
{
	struct fe_mem *m = &r->net.mem;

	for (uint32_t i = 0; i < RING_SIZE; i++) {
		uint64_t tx = fe_mem_alloc(m, TX_BUF_BYTES, 64, FE_ALLOC_ONE_REGION);
		uint64_t rx = fe_mem_alloc(m, RX_BUF_BYTES, 64, FE_ALLOC_ONE_REGION);

		if (tx == 0 || rx == 0)
			fail(r, "guest memory");
		memset(fe_mem_ptr(m, tx), 0, BN_HDR_BYTES);
		bn_frame_fill((uint8_t *)fe_mem_ptr(m, tx) + BN_HDR_BYTES, opt.bytes);
		r->tx_seg[i] = (struct fe_seg){.gpa = tx, .len = BN_HDR_BYTES + opt.bytes};
		r->rx_seg[i] = (struct fe_seg){.gpa = rx, .len = RX_BUF_BYTES, .write = true};
		r->tx_free[r->n_tx_free++] = i;
		fe_ring_add(&r->net.rx[0].ring, &r->rx_seg[i], 1, 1, i);
	}
}

static void
start(struct run *r)
{
	struct fe_net_cfg cfg = {
		.path = opt.socket,
		.lenient = true,
		.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
			    FE_BIT(VIRTIO_NET_F_CSUM) | FE_BIT(VIRTIO_NET_F_GUEST_CSUM),
		.ring_size = RING_SIZE,
		.regions = 1,
		.tx_bufs = 1,
		.rx_bufs = 1,
		.extra_bytes = (RING_SIZE + 2) * (TX_BUF_BYTES + RX_BUF_BYTES + 128ULL),
	};

	if (opt.gso)
		cfg.need_features =
			FE_BIT(VIRTIO_NET_F_GUEST_USO4) | FE_BIT(VIRTIO_NET_F_GUEST_USO6);
	cfg.features |= cfg.need_features;
	if (opt.packed)
		cfg.need_features |= FE_BIT(VIRTIO_F_RING_PACKED);
	if (fe_net_open(&r->net, &cfg) != 0)
		fail(r, "open");
	fe_ring_disarm(&r->net.tx[0].ring);
	fe_ring_disarm(&r->net.rx[0].ring);
	make_buffers(r);
	if (fe_net_start(&r->net) != 0)
		fail(r, "start");
	fe_ring_kick(&r->net.rx[0].ring);
}

/* Send up to @p most frames; never more than the ring has room for. */
static uint32_t
turn_tx(struct run *r, uint32_t most)
{
	struct fe_ring *ring = &r->net.tx[0].ring;
	struct fe_done done[BURST];
	int n = fe_ring_used(ring, done, BURST);
	uint32_t added;

	if (n < 0)
		fail(r, "transmitq");
	for (int i = 0; i < n; i++)
		r->tx_free[r->n_tx_free++] = (uint32_t)done[i].token;
	r->n_sent += (uint32_t)n;
	for (added = 0; added < most && r->n_tx_free > 0; added++) {
		uint32_t i = r->tx_free[--r->n_tx_free];

		fe_ring_add(ring, &r->tx_seg[i], 1, 1, i);
	}
	if (added > 0)
		fe_ring_kick(ring);
	return added;
}

/* A frame of num_buffers buffers begins in this one (virtio 1.2, 5.1.6.4). */
static void
begin_frame(struct run *r, const struct fe_done *done)
{
	const struct virtio_net_hdr_v1 *hdr = fe_mem_ptr(&r->net.mem, r->rx_seg[done->token].gpa);

	r->buffers_left = hdr->num_buffers == 0 ? 1 : hdr->num_buffers;
	if (opt.gso || done->len == BN_HDR_BYTES + opt.bytes)
		r->n_received++;
	else
		r->n_other++;
	r->n_to_ack++;
}

static uint32_t
turn_rx(struct run *r)
{
	struct fe_ring *ring = &r->net.rx[0].ring;
	struct fe_done done[FE_DONE_BATCH];
	int n = fe_ring_used(ring, done, FE_DONE_BATCH);

	if (n < 0)
		fail(r, "receiveq");
	for (int i = 0; i < n; i++) {
		if (r->buffers_left == 0)
			begin_frame(r, &done[i]);
		r->buffers_left--;
		r->rx_bytes += done[i].len;
		fe_ring_add(ring, &r->rx_seg[done[i].token], 1, 1, done[i].token);
	}
	if (n > 0)
		fe_ring_kick(ring);
	return (uint32_t)n;
}

static void
answer(struct run *r)
{
	uint32_t due = r->n_to_ack / opt.ack;

	r->n_to_ack -= due * opt.ack;
	turn_tx(r, due);
}

static void
loop(struct run *r, uint64_t ns)
{
	uint64_t now = fe_now_ns(), end = now + ns;

	while (now < end) {
		uint32_t moved = 0;
		uint64_t then = now;

		if (opt.mode == RX || opt.mode == BOTH || opt.mode == SEND)
			bn_sender_burst(&r->sender);
		if (opt.mode == TX || opt.mode == BOTH)
			moved += turn_tx(r, BURST);
		if (opt.mode != SEND)
			moved += turn_rx(r);
		if (opt.ack > 0 && opt.mode == RX)
			answer(r);
		now = fe_now_ns();
		if (moved == 0)
			r->wait_ns += now - then;
	}
}

static void
parse(int argc, char **argv)
{
	static const struct option longs[] = {{"socket", 1, NULL, 's'}, {"iface", 1, NULL, 'i'},
		{"mode", 1, NULL, 'm'}, {"bytes", 1, NULL, 'b'}, {"ms", 1, NULL, 't'},
		{"cpu", 1, NULL, 'c'}, {"packed", 0, NULL, 'p'}, {"ack", 1, NULL, 'a'},
		{"gso", 0, NULL, 'g'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			opt.socket = optarg;
			break;
		case 'i':
			opt.iface = optarg;
			break;
		case 'm':
			opt.mode = fe_opt_choice("--mode", optarg, modes);
			break;
		case 'b':
			opt.bytes = fe_opt_number("--bytes", optarg, BN_FRAME_MIN, BN_FRAME_MAX);
			break;
		case 't':
			opt.ns = fe_opt_number("--ms", optarg, 10, 3600000) * 1000000;
			break;
		case 'c':
			opt.cpu = fe_opt_number("--cpu", optarg, 0, 1023);
			break;
		case 'p':
			opt.packed = true;
			break;
		case 'g':
			opt.gso = true;
			break;
		case 'a':
			opt.ack = (uint32_t)fe_opt_number("--ack", optarg, 1, 65536);
			break;
		default:
			exit(2);
		}
	}
	if (opt.socket == NULL && opt.mode != SEND) {
		fprintf(stderr, "--socket: needed\n");
		exit(2);
	}
}

/* Frames that got to the host. */
static uint64_t
sent(const struct run *r)
{
	if (opt.mode == SEND)
		return 0;
	return strcmp(opt.iface, "none") == 0 ? r->n_sent : bn_rx_packets(opt.iface);
}

int
main(int argc, char **argv)
{
	static struct run r;
	uint64_t host, ns, cpu, offered;
	double s;

	parse(argc, argv);
	bn_pin(opt.cpu);
	if (opt.mode != TX)
		bn_sender_open(&r.sender, opt.iface, opt.bytes);
	if (opt.mode != SEND) {
		start(&r);
		/* A back end may take its time to notice the guest. */
		for (int i = 0; i < 50 && r.n_sent + r.n_received == 0; i++)
			loop(&r, WARM_UP_NS / 3);
		loop(&r, WARM_UP_NS);
	}
	host = sent(&r);
	r.n_received = r.n_other = r.wait_ns = r.rx_bytes = 0;
	offered = r.sender.n_frames;
	cpu = bn_cpu_ns();
	ns = fe_now_ns();
	loop(&r, opt.ns);
	s = (double)(fe_now_ns() - ns) / 1e9;
	printf("{\"to_host_mpps\": %.6f, \"to_guest_mpps\": %.6f, \"to_guest_gbps\": %.4f, "
	       "\"sent_mpps\": %.6f, \"other_frames\": %lu, \"waiting\": %.4f, \"cpu\": %.4f}\n",
		(double)(sent(&r) - host) / s / 1e6, (double)r.n_received / s / 1e6,
		(double)r.rx_bytes * 8 / s / 1e9, (double)(r.sender.n_frames - offered) / s / 1e6,
		r.n_other, (double)r.wait_ns / 1e9 / s, (double)(bn_cpu_ns() - cpu) / 1e9 / s);
	if (opt.mode != SEND)
		fe_net_close(&r.net);
	return 0;
}
