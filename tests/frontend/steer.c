/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-steer: the host's frames come only to the queue pairs that the guest has enabled (case
 * F2). Each round enables so many pairs, sends frames of many flows, compares each that
 * arrives, and looks at where it arrived: on every enabled pair some, on the others none.
 * Prints one result line; exit status 0 only if nothing deviated.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fe_host.h"
#include "fe_net.h"

#define PAIRS       4
#define FRAME_BYTES 200
#define PORT_AT     (14 + 20) /* UDP source port */
#define STALL_US    10000000
#define PAUSE_US    200
#define HOST_MS     5000

/* Pairs enabled, round after round: fewer, more, and all there are. */
static const uint32_t rounds[] = {4, 1, 3, 2, 4, 1};

struct run {
	struct fe_net net;
	struct fe_host host;
	struct fe_stream stream;
	struct fe_fault fault;
	uint32_t frames; /* of a round, each of another flow */
	uint32_t seq;    /* first of the round */
	uint32_t arrived[PAIRS];
	bool *seen;
	uint8_t want[FRAME_BYTES], frame[FRAME_BYTES];
};

static int
net_fault(struct run *r)
{
	return fe_fault(&r->fault, "%s", fe_net_fault(&r->net));
}

static void
build(struct run *r, uint32_t seq, uint8_t *frame)
{
	struct fe_spec s = {.kind = FE_UDP4, .len = FRAME_BYTES, .seq = seq};
	struct virtio_net_hdr_v1 hdr;

	fe_frame_build(&r->stream, &s, frame, &hdr);
	frame[PORT_AT] = (uint8_t)(seq >> 8);
	frame[PORT_AT + 1] = (uint8_t)seq;
	fe_frame_finish_csum(frame, FRAME_BYTES, &hdr);
}

static int
send_next(struct run *r, uint32_t *n_sent)
{
	int rc;

	build(r, r->seq + *n_sent, r->frame);
	rc = fe_host_send(&r->host, NULL, r->frame, FRAME_BYTES);
	if (rc == -EAGAIN || rc == -ENOBUFS)
		return 0;
	if (rc < 0)
		return fe_fault(&r->fault, "send: %s", strerror(-rc));
	++*n_sent;
	return 1;
}

/* Take what pair q has; returns frames. */
static int
take(struct run *r, uint32_t q)
{
	struct fe_rxframe fr;
	uint32_t seq;
	int n = 0, rc;

	while ((rc = fe_net_recv(&r->net, q, &fr)) > 0) {
		if (!fe_frame_seq(&r->stream, fr.data, fr.len, &seq))
			continue;
		if (seq - r->seq >= r->frames || r->seen[seq - r->seq])
			return fe_fault(
				&r->fault, "pair %u: frame %u is none of this round's", q, seq);
		build(r, seq, r->want);
		if (fr.len != FRAME_BYTES || memcmp(fr.data, r->want, FRAME_BYTES) != 0)
			return fe_fault(&r->fault, "pair %u: frame %u changed", q, seq);
		r->seen[seq - r->seq] = true;
		r->arrived[q]++;
		n++;
	}
	if (rc < 0)
		return net_fault(r);
	if (n > 0 && fe_net_post(&r->net, q, FE_ALL, 2048, 2048, NULL) > 0)
		fe_ring_kick(&r->net.rx[q].ring);
	return n;
}

static int
carry(struct run *r)
{
	uint64_t last = fe_now_us();
	uint32_t sent = 0, n_seen = 0;

	while (n_seen < r->frames) {
		int moved = sent < r->frames ? send_next(r, &sent) : 0;

		for (uint32_t q = 0; q < PAIRS && moved >= 0; q++) {
			int n = take(r, q);

			n_seen += n > 0 ? (uint32_t)n : 0;
			moved = n < 0 ? n : moved + n;
		}
		if (moved < 0)
			return moved;
		if (moved > 0)
			last = fe_now_us();
		else if (fe_now_us() - last > STALL_US)
			return fe_fault(&r->fault, "%u of %u frames arrived", n_seen, r->frames);
		else
			usleep(PAUSE_US);
	}
	return 0;
}

static int
run_round(struct run *r, uint32_t enabled)
{
	int rc = 0;

	for (uint32_t i = 0; i < 2 * PAIRS && rc == 0; i++)
		rc = fe_set_vring_enable(&r->net.conn, i, i < 2 * enabled);
	if (rc == 0)
		rc = fe_sync(&r->net.conn);
	if (rc != 0)
		return fe_fault(&r->fault, "SET_VRING_ENABLE: %s", strerror(-rc));
	memset(r->arrived, 0, sizeof(r->arrived));
	memset(r->seen, 0, r->frames * sizeof(*r->seen));
	rc = carry(r);
	if (rc != 0)
		return rc;
	printf("%u enabled: %u %u %u %u\n", enabled, r->arrived[0], r->arrived[1], r->arrived[2],
		r->arrived[3]);
	for (uint32_t q = 0; q < PAIRS; q++)
		if ((r->arrived[q] > 0) != (q < enabled))
			return fe_fault(&r->fault, "%u pairs enabled: pair %u got %u frames",
				enabled, q, r->arrived[q]);
	r->seq += r->frames;
	return 0;
}

static int
start(struct run *r)
{
	for (uint32_t q = 0; q < PAIRS; q++)
		fe_net_post(&r->net, q, FE_ALL, 2048, 2048, NULL);
	if (fe_net_start(&r->net) != 0)
		return net_fault(r);
	for (uint32_t q = 0; q < PAIRS; q++) {
		fe_ring_disarm(&r->net.rx[q].ring);
		fe_ring_kick(&r->net.rx[q].ring);
	}
	fe_host_flush(&r->host);
	return 0;
}

static void
parse(int argc, char **argv, struct fe_net_cfg *cfg, const char **iface, uint32_t *frames)
{
	static const struct option options[] = {{"socket", required_argument, NULL, 's'},
		{"iface", required_argument, NULL, 'i'}, {"frames", required_argument, NULL, 'f'},
		{"packed", no_argument, NULL, 'p'}, {NULL, 0, NULL, 0}};
	int id;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (id == 's')
			cfg->path = optarg;
		else if (id == 'i')
			*iface = optarg;
		else if (id == 'f')
			*frames = (uint32_t)fe_opt_number("frames", optarg, 64, 4096);
		else if (id == 'p')
			cfg->need_features |= FE_BIT(VIRTIO_F_RING_PACKED);
		else
			optind = argc + 1;
	}
	if (optind != argc || cfg->path == NULL || *iface == NULL) {
		fputs("usage: fe-steer --socket PATH --iface IFACE [--frames N] [--packed]\n",
			stderr);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	static struct run r = {.frames = 512};
	struct fe_net_cfg cfg = {
		.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF),
		.qpairs = PAIRS,
		.tx_bufs = 1,
		.rx_buf_bytes = 2048,
	};
	const char *iface = NULL;
	int rc;

	parse(argc, argv, &cfg, &iface, &r.frames);
	r.seen = calloc(r.frames, sizeof(*r.seen));
	rc = r.seen == NULL ? -ENOMEM : fe_host_open(&r.host, iface, HOST_MS);
	if (rc != 0 || fe_net_open(&r.net, &cfg) != 0) {
		fprintf(stderr, "fe-steer: %s\n", rc != 0 ? strerror(-rc) : fe_net_fault(&r.net));
		return 2;
	}
	rc = fe_stream_init(&r.stream, 2, 1);
	if (rc == 0)
		rc = start(&r);
	for (size_t i = 0; i < FE_ARRAY_SIZE(rounds) && rc == 0; i++)
		rc = run_round(&r, rounds[i]);
	if (rc != 0)
		fprintf(stderr, "fe-steer: %s\n", r.fault.text);
	printf("RESULT fe-steer %s: %u frames\n", rc == 0 ? "PASS" : "FAIL", r.seq);
	fe_stream_free(&r.stream);
	fe_net_close(&r.net);
	fe_host_close(&r.host);
	free(r.seen);
	return rc == 0 ? 0 : 1;
}
