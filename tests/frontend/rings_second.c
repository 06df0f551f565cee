/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-rings: the second device. While the first misbehaves, a thread pings through this
 * one in both directions and keeps the longest time between two answers: a guest can only
 * break its own device.
 */
#include "rings.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PING_EVERY_US 500
#define PING_BYTES    100
#define LOST_US       2000000

struct rg_second {
	const struct rg_opts *opts;
	struct fe_net net;
	struct fe_host host;
	struct fe_stream stream;
	struct fe_sched sched;
	pthread_t thread;
	uint8_t buf[2048];
	uint32_t seq;

	/* Shared: the thread writes, rg_second_check() reads and resets under the lock. */
	pthread_mutex_t lock;
	bool stop; /**< written by the main thread */
	uint64_t gap_ns;
	uint64_t gap_waited_ns; /**< of it, what was waiting for a CPU */
	uint64_t pings;
	struct fe_fault fault;
};

static int
ping_to_host(struct rg_second *s, uint64_t end)
{
	struct fe_spec spec = {.kind = FE_RAW, .len = PING_BYTES, .seq = s->seq++};
	struct virtio_net_hdr_v1 hdr;
	uint32_t seq;
	int len;

	fe_frame_build(&s->stream, &spec, s->buf, NULL);
	if (fe_net_send(&s->net, 0, NULL, s->buf, PING_BYTES, NULL) != 0)
		return fe_fault(&s->fault, "second device: transmitq is full");
	fe_ring_kick(&s->net.tx[0].ring);
	do {
		if (fe_now_us() > end)
			return fe_fault(&s->fault, "second device: a frame did not reach the host");
		fe_host_wait(&s->host, 1000);
		len = fe_host_recv(&s->host, &hdr, s->buf, sizeof(s->buf));
	} while (
		len < 0 || !fe_frame_seq(&s->stream, s->buf, (size_t)len, &seq) || seq != spec.seq);
	/* The host has it before the descriptor is given back. */
	while (fe_net_reap(&s->net, 0) == 0)
		if (fe_now_us() > end)
			return fe_fault(&s->fault, "second device: descriptor not used");
	return 0;
}

static int
ping_to_guest(struct rg_second *s, uint64_t end)
{
	struct fe_spec spec = {.kind = FE_RAW, .len = PING_BYTES, .seq = s->seq++};
	struct fe_rxframe f;
	uint32_t seq;
	int rc;

	if (fe_net_post(&s->net, 0, FE_ALL, 2048, 2048, NULL) > 0)
		fe_ring_kick(&s->net.rx[0].ring);
	fe_frame_build(&s->stream, &spec, s->buf, NULL);
	if (fe_host_send(&s->host, NULL, s->buf, PING_BYTES) != 0)
		return fe_fault(&s->fault, "second device: host cannot send");
	do {
		if (fe_now_us() > end)
			return fe_fault(
				&s->fault, "second device: a frame did not reach the guest");
		if (!fe_net_recv_pending(&s->net, 0) && !fe_ring_arm(&s->net.rx[0].ring, 0))
			fe_ring_wait(&s->net.rx[0].ring, 1000);
		rc = fe_net_recv(&s->net, 0, &f);
		if (rc < 0)
			return fe_fault(&s->fault, "second device: %s", fe_net_fault(&s->net));
	} while (rc == 0 || !fe_frame_seq(&s->stream, f.data, f.len, &seq) || seq != spec.seq);
	return 0;
}

static void *
ping_loop(void *arg)
{
	struct rg_second *s = arg;
	bool stop = false;

	/* Here, so that this thread is among those watched. */
	fe_sched_open(&s->sched, s->opts->pid);
	while (!stop) {
		uint64_t start = fe_now_ns(), end = start / 1000 + LOST_US, took;
		int rc;

		fe_sched_mark(&s->sched);
		rc = ping_to_host(s, end);
		if (rc == 0)
			rc = ping_to_guest(s, end);
		took = fe_now_ns() - start;
		pthread_mutex_lock(&s->lock);
		s->pings++;
		if (took > s->gap_ns) {
			s->gap_ns = took;
			s->gap_waited_ns = fe_sched_waited_ns(&s->sched);
		}
		stop = s->stop || rc != 0;
		pthread_mutex_unlock(&s->lock);
		usleep(PING_EVERY_US);
	}
	return NULL;
}

struct rg_second *
rg_second_start(const struct rg_opts *o)
{
	struct rg_second *s = calloc(1, sizeof(*s));
	struct fe_net_cfg cfg = o->net;

	if (s == NULL)
		return NULL;
	s->opts = o;
	s->host.fd = -1;
	cfg.path = o->second;
	cfg.rx_buf_bytes = cfg.tx_buf_bytes = 2048;
	cfg.extra_bytes = 0;
	pthread_mutex_init(&s->lock, NULL);
	if (fe_net_open(&s->net, &cfg) == 0 && fe_host_open(&s->host, o->second_iface, 5000) == 0 &&
		fe_stream_init(&s->stream, 3, o->seed) == 0 && fe_net_start(&s->net) == 0 &&
		pthread_create(&s->thread, NULL, ping_loop, s) == 0)
		return s;
	fe_net_close(&s->net);
	fe_host_close(&s->host);
	fe_stream_free(&s->stream);
	free(s);
	return NULL;
}

void
rg_second_stop(struct rg_second *s)
{
	if (s == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	fe_net_close(&s->net);
	fe_host_close(&s->host);
	fe_stream_free(&s->stream);
	fe_sched_close(&s->sched);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int
rg_second_check(struct rg_second *s, struct fe_fault *fault)
{
	uint64_t limit_ns = s->opts->gap_ms * 1000000ULL;
	int rc = 0;

	/* At least one whole exchange after whatever has just happened. */
	usleep(2 * PING_EVERY_US);
	pthread_mutex_lock(&s->lock);
	if (s->fault.text[0] != '\0')
		rc = fe_fault(fault, "%s", s->fault.text);
	else if (s->gap_ns > limit_ns && s->gap_waited_ns < s->gap_ns - limit_ns)
		rc = fe_fault(fault, "second device paused for %.1f ms (%.1f ms of it for a CPU)",
			(double)s->gap_ns / 1e6, (double)s->gap_waited_ns / 1e6);
	s->gap_ns = s->gap_waited_ns = 0;
	pthread_mutex_unlock(&s->lock);
	return rc;
}
