/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-restart: a front end that outlives its back end. It listens, has numbered frames under way
 * in both directions, and when the back end goes it waits for the next one, hands over the same
 * memory and rings from where they are used, and goes on.
 *
 * To the host: no frame is missing, none comes out of order, and what comes twice was under way
 * when a back end died. To the guest: no frame comes twice or out of order, and what is missing
 * was under way then. Prints "moving" at the start and after each return, so that whoever kills
 * the back end knows when, and PASS or FAIL at the end.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fe_host.h"
#include "fe_net.h"

#define FRAME_BYTES 200
/* Frames under way, at most. */
#define WINDOW      128
/* Frames in each direction that make a return. */
#define MOVING      256
/* A back end has to start within this, and frames have to move within this after. */
#define START_MS    60000
#define MOVING_US   10000000

enum direction { TO_HOST = 'h', TO_GUEST = 'g' };

/* Numbers of one direction. */
struct flow {
	uint64_t sent;    /* next number to send */
	uint64_t next;    /* next number to come */
	uint64_t twice;   /* came again */
	uint64_t missing; /* passed over */
	uint64_t moved;   /* since the last return */
	/* Not used yet at the last return: these may come again. */
	uint64_t under_way_from, under_way_to;
};

struct restart {
	struct fe_net net;
	struct fe_host host;
	struct flow to_host, to_guest;
	uint32_t kills;
	bool stale;
	struct fe_fault fault;
};

static void
make_frame(uint8_t *frame, enum direction direction, uint64_t number)
{
	memset(frame, 0, FRAME_BYTES);
	memset(frame, 0xff, 6);
	frame[6] = 2;
	frame[12] = FE_ETHERTYPE >> 8;
	frame[13] = FE_ETHERTYPE & 0xff;
	frame[14] = (uint8_t)direction;
	memcpy(frame + 16, &number, sizeof(number));
	for (size_t i = 24; i < FRAME_BYTES; i++)
		frame[i] = (uint8_t)(number + i);
}

/* Returns 1 if it is a frame of ours, with *number; 0 if it is another; or a fault. */
static int
read_frame(struct restart *r, const uint8_t *frame, uint32_t len, enum direction direction,
	uint64_t *number)
{
	uint8_t want[FRAME_BYTES];

	if (len < 24 || frame[12] != FE_ETHERTYPE >> 8 || frame[13] != (FE_ETHERTYPE & 0xff) ||
		frame[14] != direction)
		return 0;
	memcpy(number, frame + 16, sizeof(*number));
	make_frame(want, direction, *number);
	if (len != FRAME_BYTES || memcmp(want, frame, FRAME_BYTES) != 0)
		return fe_fault(&r->fault, "frame %llu of %u bytes came with other bytes",
			(unsigned long long)*number, len);
	return 1;
}

static void
moved(struct flow *flow, uint64_t number)
{
	flow->next = number + 1;
	flow->moved++;
}

/* ---- one direction each ------------------------------------------------------------ */

static int
send_to_host(struct restart *r)
{
	uint8_t frame[FRAME_BYTES];
	int rc = fe_net_reap(&r->net, 0);

	if (rc < 0)
		return rc;
	while (r->to_host.sent - r->to_host.next < WINDOW) {
		make_frame(frame, TO_HOST, r->to_host.sent);
		rc = fe_net_send(&r->net, 0, NULL, frame, sizeof(frame), NULL);
		if (rc == -ENOSPC)
			break;
		if (rc < 0)
			return rc;
		r->to_host.sent++;
	}
	fe_ring_kick(&r->net.tx[0].ring);
	return 0;
}

static int
receive_on_host(struct restart *r)
{
	struct virtio_net_hdr_v1 hdr;
	uint8_t frame[2048];
	uint64_t number;
	int len, rc;

	while ((len = fe_host_recv(&r->host, &hdr, frame, sizeof(frame))) >= 0) {
		rc = read_frame(r, frame, (uint32_t)len, TO_HOST, &number);
		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		if (number > r->to_host.next)
			return fe_fault(&r->fault, "to the host: %llu came, %llu is missing",
				(unsigned long long)number, (unsigned long long)r->to_host.next);
		if (number == r->to_host.next) {
			moved(&r->to_host, number);
		} else if (number < r->to_host.under_way_from ||
			   number >= r->to_host.under_way_to) {
			return fe_fault(&r->fault,
				"to the host: %llu came twice, and was not under way",
				(unsigned long long)number);
		} else {
			r->to_host.twice++;
		}
	}
	return 0;
}

static int
send_to_guest(struct restart *r)
{
	uint8_t frame[FRAME_BYTES];

	while (r->to_guest.sent - r->to_guest.next < WINDOW) {
		make_frame(frame, TO_GUEST, r->to_guest.sent);
		if (fe_host_send(&r->host, NULL, frame, sizeof(frame)) != 0)
			break;
		r->to_guest.sent++;
	}
	return 0;
}

static int
receive_in_guest(struct restart *r)
{
	struct fe_rxframe f;
	uint64_t number;
	int rc;

	fe_net_post(&r->net, 0, FE_ALL, 2048, 2048, NULL);
	fe_ring_kick(&r->net.rx[0].ring);
	while ((rc = fe_net_recv(&r->net, 0, &f)) > 0) {
		rc = read_frame(r, f.data, f.len, TO_GUEST, &number);
		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		if (number < r->to_guest.next)
			return fe_fault(&r->fault, "to the guest: %llu came twice",
				(unsigned long long)number);
		r->to_guest.missing += number - r->to_guest.next;
		moved(&r->to_guest, number);
	}
	return rc;
}

/* ---- the back end comes and goes ---------------------------------------------------- */

static bool
gone(const struct restart *r)
{
	struct pollfd p = {.fd = r->net.conn.fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

static int
step(struct restart *r)
{
	int rc = send_to_host(r);

	if (rc == 0)
		rc = receive_on_host(r);
	if (rc == 0)
		rc = send_to_guest(r);
	return rc == 0 ? receive_in_guest(r) : rc;
}

static int
come_back(struct restart *r)
{
	int rc;

	/* What it has used is taken before the rest is offered again. */
	rc = fe_net_reap(&r->net, 0);
	if (rc >= 0)
		rc = receive_in_guest(r);
	if (rc >= 0)
		rc = receive_on_host(r);
	if (rc < 0)
		return rc;
	rc = fe_net_reattach(&r->net);
	if (rc == 0 && r->stale)
		r->net.tx[0].ring.base = r->net.rx[0].ring.base = FE_PACKED_START;
	if (rc == 0)
		rc = fe_net_start(&r->net);
	r->to_host.under_way_to = r->to_host.sent;
	r->to_host.under_way_from = r->to_host.sent - (r->net.tx[0].n_sent - r->net.tx[0].n_done);
	r->to_host.moved = r->to_guest.moved = 0;
	/* Those under way to the guest may never come. */
	r->to_guest.missing += r->to_guest.sent - r->to_guest.next;
	r->to_guest.next = r->to_guest.sent;
	return rc;
}

static int
move_frames(struct restart *r)
{
	uint64_t start = fe_now_us();
	int rc = 0;

	while (rc == 0 && (r->to_host.moved < MOVING || r->to_guest.moved < MOVING)) {
		if (fe_now_us() - start > MOVING_US)
			return fe_fault(&r->fault,
				"%llu frames to the host and %llu to the guest in %u s",
				(unsigned long long)r->to_host.moved,
				(unsigned long long)r->to_guest.moved, MOVING_US / 1000000);
		rc = step(r);
	}
	printf("moving after %llu ms\n", (unsigned long long)(fe_now_us() - start) / 1000);
	return rc;
}

static int
run(struct restart *r)
{
	int rc = fe_net_start(&r->net);

	if (rc == 0)
		rc = move_frames(r);
	for (uint32_t i = 0; i < r->kills && rc == 0; i++) {
		while (rc == 0 && !gone(r))
			rc = step(r);
		if (rc == 0)
			rc = come_back(r);
		if (rc == 0)
			rc = move_frames(r);
	}
	if (rc == 0 && fe_host_drops(&r->host) != 0)
		rc = fe_fault(&r->fault, "test: the host's socket was full");
	if (rc == 0 && r->to_guest.missing > (uint64_t)r->kills * WINDOW)
		rc = fe_fault(&r->fault, "to the guest: %llu missing",
			(unsigned long long)r->to_guest.missing);
	return rc;
}

/* ---- program -------------------------------------------------------------------------- */

static const char usage[] =
	"usage: fe-restart --socket PATH --iface TAP [--kills N] [--packed [--stale]]\n"
	"  --kills N  how often the back end will go (1)\n"
	"  --packed   packed rings\n"
	"  --stale    after a return, say that the rings are at their start, as QEMU\n"
	"             7.2 does, which does not know better\n";

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'},
	{"iface", required_argument, NULL, 'i'},
	{"kills", required_argument, NULL, 'k'},
	{"packed", no_argument, NULL, 'p'},
	{"stale", no_argument, NULL, 't'},
	{NULL, 0, NULL, 0},
};

int
main(int argc, char **argv)
{
	static struct restart r = {.kills = 1};
	struct fe_net_cfg cfg = {
		.server = true,
		.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF),
		.tx_buf_bytes = 2048,
		.rx_buf_bytes = 2048,
		.timeout_ms = START_MS,
	};
	const char *iface = NULL;
	int id, rc;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (id == 's')
			cfg.path = optarg;
		else if (id == 'i')
			iface = optarg;
		else if (id == 'k')
			r.kills = (uint32_t)fe_opt_number("kills", optarg, 0, 1000);
		else if (id == 'p')
			cfg.features |= FE_BIT(VIRTIO_F_RING_PACKED);
		else if (id == 't')
			r.stale = true;
	}
	cfg.need_features = cfg.features & FE_BIT(VIRTIO_F_RING_PACKED);
	if (cfg.path == NULL || iface == NULL || optind < argc ||
		(r.stale && cfg.need_features == 0)) {
		fputs(usage, stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	rc = fe_net_open(&r.net, &cfg);
	if (rc == 0)
		rc = fe_host_open(&r.host, iface, 5000);
	if (rc == 0)
		rc = run(&r);
	printf("%s: %u kills, to the host %llu frames, %llu twice; to the guest %llu frames, %llu "
	       "missing%s%s %s\n",
		rc == 0 ? "PASS" : "FAIL", r.kills, (unsigned long long)r.to_host.next,
		(unsigned long long)r.to_host.twice, (unsigned long long)r.to_guest.next,
		(unsigned long long)r.to_guest.missing, rc == 0 ? "" : ": ",
		r.fault.text[0] != '\0' ? r.fault.text : fe_net_fault(&r.net),
		rc == 0 ? "" : strerror(-rc));
	fe_host_close(&r.host);
	fe_net_close(&r.net);
	return rc == 0 ? 0 : 1;
}
