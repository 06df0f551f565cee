/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-guest: a guest without a hypervisor. Its virtio-net device is the test front end, and
 * a tap of the namespace that it runs in stands for the guest's network interface: the
 * kernel's TCP stack behind that tap is the guest's. The virtio-net header passes through
 * between tap and virtqueues, and with it checksum and segmentation offload. Frames are
 * read into guest memory and written from guest memory without another copy.
 *
 * It sleeps when there is nothing to do, as a guest waits for an interrupt. With --rr-netns,
 * SIGUSR1 starts round trips (guest_rr.h), through which it does not sleep.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <linux/if_tun.h>

#include "bench_util.h"
#include "fe_net.h"
#include "guest_rr.h"

#define RING_SIZE    256
#define BURST        32
#define RX_BUF_BYTES 4096

struct guest {
	struct fe_net net;
	int tap_fd;
	uint64_t tx_gpa[RING_SIZE], rx_gpa[RING_SIZE];
	uint32_t tx_free[RING_SIZE], n_tx_free;
	uint64_t n_sent, n_received, n_full, n_sleeps;
};

static void
fail(const struct guest *g, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, fe_net_fault(&g->net));
	exit(1);
}

static void
post(struct guest *g, uint32_t i)
{
	struct fe_seg seg = {.gpa = g->rx_gpa[i], .len = RX_BUF_BYTES, .write = true};

	if (fe_ring_add(&g->net.rx[0].ring, &seg, 1, 1, i) < 0)
		fail(g, "receiveq");
}

static void
start(struct guest *g, const char *path, bool packed)
{
	struct fe_net_cfg cfg = {
		.path = path,
		.lenient = true,
		.features = FE_NET_BASE | FE_NET_OFFLOADS | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
			    FE_BIT(VIRTIO_RING_F_EVENT_IDX),
		.need_features = FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
				 (packed ? FE_BIT(VIRTIO_F_RING_PACKED) : 0),
		.ring_size = RING_SIZE,
		.regions = 1,
		.tx_bufs = 1,
		.rx_bufs = 1,
		.extra_bytes = (RING_SIZE + 2) * (FE_BUF_MAX + RX_BUF_BYTES + 8192ULL),
		.timeout_ms = 20000,
	};

	cfg.features &= ~(FE_BIT(VIRTIO_NET_F_HOST_UFO) | FE_BIT(VIRTIO_NET_F_GUEST_UFO) |
			  FE_BIT(VIRTIO_NET_F_HOST_USO) | FE_BIT(VIRTIO_NET_F_GUEST_USO4) |
			  FE_BIT(VIRTIO_NET_F_GUEST_USO6));
	if (fe_net_open(&g->net, &cfg) != 0)
		fail(g, "open");
	for (uint32_t i = 0; i < RING_SIZE; i++) {
		g->tx_gpa[i] = fe_mem_alloc(&g->net.mem, FE_BUF_MAX, 4096, FE_ALLOC_ONE_REGION);
		g->rx_gpa[i] = fe_mem_alloc(&g->net.mem, RX_BUF_BYTES, 4096, FE_ALLOC_ONE_REGION);
		if (g->tx_gpa[i] == 0 || g->rx_gpa[i] == 0)
			fail(g, "guest memory");
		g->tx_free[g->n_tx_free++] = i;
		post(g, i);
	}
	if (fe_net_start(&g->net) != 0)
		fail(g, "start");
	fe_ring_kick(&g->net.rx[0].ring);
}

/* What the device does for the guest's stack is what the back end accepted to do. */
static unsigned int
tap_offloads(const struct fe_net *n)
{
	unsigned int flags = 0;

	if (!fe_net_has(n, VIRTIO_NET_F_CSUM))
		return 0;
	flags |= TUN_F_CSUM;
	if (fe_net_has(n, VIRTIO_NET_F_HOST_TSO4))
		flags |= TUN_F_TSO4;
	if (fe_net_has(n, VIRTIO_NET_F_HOST_TSO6))
		flags |= TUN_F_TSO6;
	return flags;
}

static void
reap(struct guest *g)
{
	struct fe_done done[RING_SIZE];
	int n = fe_ring_used(&g->net.tx[0].ring, done, RING_SIZE);

	if (n < 0)
		fail(g, "transmitq");
	for (int i = 0; i < n; i++)
		g->tx_free[g->n_tx_free++] = (uint32_t)done[i].token;
}

/* From the guest's stack to the transmitq. */
static uint32_t
turn_tx(struct guest *g)
{
	struct fe_ring *ring = &g->net.tx[0].ring;
	uint32_t n;

	reap(g);
	for (n = 0; n < BURST && g->n_tx_free > 0; n++) {
		uint32_t i = g->tx_free[g->n_tx_free - 1];
		ssize_t len = read(g->tap_fd, fe_mem_ptr(&g->net.mem, g->tx_gpa[i]), FE_BUF_MAX);
		struct fe_seg seg = {.gpa = g->tx_gpa[i], .len = (uint32_t)len};

		if (len <= 0)
			break;
		g->n_tx_free--;
		if (fe_ring_add(ring, &seg, 1, 1, i) < 0)
			fail(g, "transmitq");
	}
	if (n > 0)
		fe_ring_kick(ring);
	g->n_sent += n;
	return n;
}

/* Write the frame that begins in done[0]. Returns the number of its buffers. */
static int
deliver(struct guest *g, const struct fe_done *done, int n)
{
	const struct virtio_net_hdr_v1 *hdr =
		fe_mem_ptr(&g->net.mem, g->rx_gpa[done[0].token % RING_SIZE]);
	struct iovec iov[RING_SIZE];
	int buffers = hdr->num_buffers == 0 ? 1 : hdr->num_buffers;

	if (buffers > n)
		fail(g, "num_buffers");
	for (int i = 0; i < buffers; i++)
		iov[i] = (struct iovec){
			fe_mem_ptr(&g->net.mem, g->rx_gpa[done[i].token]), done[i].len};
	if (writev(g->tap_fd, iov, buffers) < 0 && errno != EIO)
		bn_die("guest's tap");
	for (int i = 0; i < buffers; i++)
		post(g, (uint32_t)done[i].token);
	return buffers;
}

/* From the receiveq to the guest's stack. */
static uint32_t
turn_rx(struct guest *g)
{
	struct fe_ring *ring = &g->net.rx[0].ring;
	struct fe_done done[RING_SIZE];
	/* All at once: the buffers of a frame become used together (virtio 1.2, 5.1.6.4). */
	int n = fe_ring_used(ring, done, RING_SIZE);

	if (n < 0)
		fail(g, "receiveq");
	for (int i = 0; i < n; g->n_received++) {
		i += deliver(g, done + i, n - i);
		/* Buffers go back in good time, or the back end runs dry. */
		fe_ring_kick(ring);
	}
	return (uint32_t)n;
}

static void
idle(struct guest *g)
{
	struct fe_ring *rx = &g->net.rx[0].ring, *tx = &g->net.tx[0].ring;
	struct pollfd fds[3] = {
		{.fd = rx->call_fd, .events = POLLIN},
		{.fd = g->tap_fd, .events = POLLIN},
		{.fd = tx->call_fd, .events = POLLIN},
	};
	bool full = g->n_tx_free == 0;

	if (full) {
		g->n_full++;
		fds[1].fd = -1;
	}
	if (fe_ring_arm(rx, 0) | (full && fe_ring_arm(tx, 0))) {
		fe_ring_disarm(rx);
		return;
	}
	g->n_sleeps++;
	poll(fds, 3, 1000);
	fe_ring_disarm(rx);
	fe_ring_disarm(tx);
	fe_ring_take_calls(rx);
	fe_ring_take_calls(tx);
}

static volatile sig_atomic_t rr_wanted;

static void
on_usr1(int sig)
{
	(void)sig;
	rr_wanted = 1;
}

static struct {
	const char *socket, *iface, *rr_netns, *rr_address;
	uint64_t rr_ns;
	bool packed;
} opt = {.iface = "eth0", .rr_address = "192.0.2.2", .rr_ns = 1000000000};

static void
round_trips(struct guest *g)
{
	struct guest_rr rr;

	rr_wanted = 0;
	guest_rr_open(&rr, opt.rr_netns, opt.rr_address, opt.rr_ns);
	while (guest_rr_step(&rr) && !bn_stop) {
		turn_tx(g);
		turn_rx(g);
	}
}

static void
parse(int argc, char **argv)
{
	static const struct option longs[] = {{"socket", 1, NULL, 's'}, {"iface", 1, NULL, 'i'},
		{"cpu", 1, NULL, 'c'}, {"packed", 0, NULL, 'p'}, {"rr-netns", 1, NULL, 'n'},
		{"rr-address", 1, NULL, 'a'}, {"rr-ms", 1, NULL, 't'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			opt.socket = optarg;
			break;
		case 'i':
			opt.iface = optarg;
			break;
		case 'c':
			bn_pin((int)fe_opt_number("--cpu", optarg, 0, 1023));
			break;
		case 'p':
			opt.packed = true;
			break;
		case 'n':
			opt.rr_netns = optarg;
			break;
		case 'a':
			opt.rr_address = optarg;
			break;
		case 't':
			opt.rr_ns = fe_opt_number("--rr-ms", optarg, 10, 3600000) * 1000000;
			break;
		default:
			exit(2);
		}
	}
	if (opt.socket == NULL) {
		fprintf(stderr, "--socket: needed\n");
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	static struct guest g;
	struct sigaction usr1 = {.sa_handler = on_usr1};

	parse(argc, argv);
	bn_catch_signals();
	if (opt.rr_netns != NULL)
		sigaction(SIGUSR1, &usr1, NULL);
	start(&g, opt.socket, opt.packed);
	g.tap_fd = bn_tap_open(opt.iface, tap_offloads(&g.net));
	fe_ring_disarm(&g.net.tx[0].ring);
	printf("ready: features 0x%llx\n", (unsigned long long)g.net.features);
	fflush(stdout);
	while (!bn_stop) {
		if (rr_wanted)
			round_trips(&g);
		if (turn_tx(&g) + turn_rx(&g) == 0)
			idle(&g);
	}
	printf("{\"sent\": %lu, \"received\": %lu, \"full\": %lu, \"sleeps\": %lu}\n", g.n_sent,
		g.n_received, g.n_full, g.n_sleeps);
	fe_net_close(&g.net);
	return 0;
}
