/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-many, cases starved, mute and sparse: a device that keeps the back end waiting. */
#include "many.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hostile_proc.h"

#define FRAMES  1000U
#define LOST_US 5000000ULL

#define SPARSE_FRAMES  12
#define SPARSE_NEAR_US 5000
#define SPARSE_FAR_US  100000

/* Takes a frame that must be number *seen of the host's; 1, 0 if none is there, or -EPROTO. */
static int
take_frame(struct many *m, struct fe_stream *stream, uint32_t *seen)
{
	struct fe_net *net = &m->nets[0];
	struct fe_rxframe f;
	uint32_t seq;
	int rc = fe_net_recv(net, 0, &f);

	if (rc < 0)
		return fe_fault(&m->fault, "%s", fe_net_fault(net));
	if (rc == 0)
		return 0;
	/* What the host's kernel says by itself also takes a buffer. */
	if (!fe_frame_seq(stream, f.data, f.len, &seq))
		return 1;
	if (seq != *seen || f.len != MANY_FRAME_BYTES)
		return fe_fault(&m->fault, "frame %u of %u bytes, %u was due", seq, f.len, *seen);
	(*seen)++;
	return 1;
}

/* Post count buffers and wait until the next n_used are used. */
static int
post_and_take(struct many *m, struct fe_stream *stream, uint32_t *seen, uint32_t count)
{
	struct fe_net *net = &m->nets[0];
	uint64_t end = fe_now_us() + LOST_US;
	int rc = 0;

	if (fe_net_post(net, 0, count, 2048, 2048, NULL) < 1)
		return fe_fault(&m->fault, "test: no receive buffer");
	fe_ring_kick(&net->rx[0].ring);
	while (rc == 0) {
		rc = take_frame(m, stream, seen);
		if (rc == 0 && fe_now_us() > end)
			return fe_fault(&m->fault, "a buffer and a kick did not start the flow");
		usleep(50);
	}
	return rc < 0 ? rc : 0;
}

/* The tap is full of frames, the guest has no buffer: cheap, and one buffer is enough to go on. */
static int
starve(struct many *m, struct fe_host *host, struct fe_stream *stream)
{
	uint32_t seen = 0;
	double percent;

	for (uint32_t i = 0; i < FRAMES; i++) {
		struct fe_spec s = {.kind = FE_RAW, .len = MANY_FRAME_BYTES, .seq = i};
		uint8_t buf[MANY_FRAME_BYTES];
		int rc;

		fe_frame_build(stream, &s, buf, NULL);
		rc = fe_host_send(host, NULL, buf, s.len);
		if (rc != 0)
			return fe_fault(&m->fault, "host: %s", strerror(-rc));
	}
	many_cpu_percent(m, 200);
	percent = many_cpu_percent(m, m->rounds * m->slice_ms);
	if (percent < 0)
		return fe_fault(&m->fault, "the back end has died");
	printf("starved: %.2f %% of a core in %u ms\n", percent, m->rounds * m->slice_ms);
	while (seen < FRAMES / 2)
		if (post_and_take(m, stream, &seen, 1) != 0)
			return -EPROTO;
	while (seen < FRAMES)
		if (post_and_take(m, stream, &seen, FE_ALL) != 0)
			return -EPROTO;
	printf("starved: %u frames in order, half of them a buffer at a time\n", seen);
	return 0;
}

static int
starved(struct many *m)
{
	struct fe_stream stream;
	struct fe_host host;
	int rc;

	if (many_connect(m, 0, 1) != 0)
		return -EPROTO;
	if (fe_host_open(&host, m->iface, 5000) != 0)
		return fe_fault(&m->fault, "test: %s does not come up", m->iface);
	rc = fe_stream_init(&stream, 2, 1) == 0 ? starve(m, &host, &stream) : -ENOMEM;
	fe_stream_free(&stream);
	fe_host_close(&host);
	return rc;
}

/* It does not kick, although asked to: found when the longest sleep ends, and not before. */
static int
mute(struct many *m)
{
	struct fe_ring *r;

	if (many_connect(m, 0, 1) != 0)
		return -EPROTO;
	r = &m->nets[0].tx[0].ring;
	for (uint32_t i = 0; i < m->rounds; i++) {
		uint64_t end = fe_now_us() + LOST_US, start;

		/* Until it sleeps. A frame of its own each time: the look is after publishing. */
		usleep(50000);
		if (fe_net_send(&m->nets[0], 0, NULL, m->frame, MANY_FRAME_BYTES, NULL) != 0)
			return fe_fault(&m->fault, "transmitq is full");
		start = fe_now_us();
		fe_ring_publish(r);
		printf("mute: a kick was %s, ", fe_ring_kick_needed(r) ? "due" : "not due");
		while (!fe_ring_pending(r)) {
			if (fe_now_us() > end)
				return fe_fault(&m->fault, "never looked at");
			usleep(1000);
		}
		printf("served after %llu ms\n", (unsigned long long)(fe_now_us() - start) / 1000);
		if (fe_net_reap(&m->nets[0], 0) != 1)
			return fe_fault(&m->fault, "%s", fe_net_fault(&m->nets[0]));
	}
	return 0;
}

/* A frame, and wait until it is served. */
static int
send_one(struct many *m)
{
	struct fe_net *net = &m->nets[0];
	uint64_t end = fe_now_us() + LOST_US;

	if (fe_net_send(net, 0, NULL, m->frame, MANY_FRAME_BYTES, NULL) != 0)
		return fe_fault(&m->fault, "transmitq is full");
	fe_ring_kick(&net->tx[0].ring);
	while (!fe_ring_pending(&net->tx[0].ring)) {
		if (fe_now_us() > end)
			return fe_fault(&m->fault, "a frame is not served");
		usleep(50);
	}
	return fe_net_reap(net, 0) == 1 ? 0 : fe_fault(&m->fault, "%s", fe_net_fault(net));
}

/*
 * Frames close to each other, then a pause: whoever polls on between the first gains by it,
 * whoever does after the last wastes.
 */
static int
sparse(struct many *m)
{
	uint64_t start, end;
	struct ho_proc before, after;

	if (many_connect(m, 0, 1) != 0)
		return -EPROTO;
	many_cpu_percent(m, 200);
	start = fe_now_us();
	end = start + m->rounds * m->slice_ms * 1000ULL;
	if (ho_proc_read(m->pid, &before) != 0)
		return fe_fault(&m->fault, "the back end has died");
	while (fe_now_us() < end) {
		for (int i = 0; i < SPARSE_FRAMES; i++) {
			if (send_one(m) != 0)
				return -EPROTO;
			usleep(SPARSE_NEAR_US);
		}
		usleep(SPARSE_FAR_US);
	}
	if (ho_proc_read(m->pid, &after) != 0)
		return fe_fault(&m->fault, "the back end has died");
	printf("sparse: %.2f %% of a core\n",
		(double)(after.cpu_ms - before.cpu_ms) * 1e5 / (double)(fe_now_us() - start));
	return 0;
}

const struct many_case many_wait_cases[] = {
	{"starved", "frames wait in the tap and there is no receive buffer", starved},
	{"mute", "a guest that does not kick although it was asked to", mute},
	{"sparse", "a window that is worth while, and one that is not, in turn", sparse},
	{NULL, NULL, NULL},
};
