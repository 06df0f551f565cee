/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-many, cases idle and busy: what many devices cost that do nothing. */
#include "many.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* An idle device sends a frame so often while another floods. */
#define PROBE_US     1000
#define PROBES_MAX   4096
/* Served later than this is lost. */
#define PROBE_LOST_S 5

static int
idle(struct many *m)
{
	double percent;

	if (many_connect(m, 0, m->devices) != 0)
		return -EPROTO;
	/* What connecting has left to do. */
	many_cpu_percent(m, 200);
	percent = many_cpu_percent(m, m->rounds * m->slice_ms);
	if (percent < 0)
		return fe_fault(&m->fault, "the back end has died");
	printf("idle: %u devices, %.2f %% of a core in %u ms\n", m->devices, percent,
		m->rounds * m->slice_ms);
	return 0;
}

struct flood {
	uint64_t frames, took_ns;
	uint32_t probes[PROBES_MAX]; /* latencies in us */
	uint32_t n_probes, excused, late;
	/* The probe at hand. */
	struct fe_net *probe; /* NULL: none */
	uint64_t sent_ns, due_ns;
	struct fe_sched sched;
};

static int
net_fault(struct many *m, const struct fe_net *net)
{
	return fe_fault(&m->fault, "%s: %s", net->cfg.path, fe_net_fault(net));
}

static void
start_probe(struct many *m, struct flood *f, uint64_t now)
{
	struct fe_net *net = &m->nets[fe_rng_range(&m->rng, 1, m->devices - 1)];

	if (now < f->due_ns || fe_net_send(net, 0, NULL, m->frame, MANY_FRAME_BYTES, NULL) != 0)
		return;
	fe_sched_mark(&f->sched);
	f->probe = net;
	f->sent_ns = fe_now_ns();
	fe_ring_kick(&net->tx[0].ring);
}

/* An idle device's frame: not served, or how long that took. */
static int
check_probe(struct many *m, struct flood *f)
{
	uint64_t us = (fe_now_ns() - f->sent_ns) / 1000;

	if (!fe_ring_pending(&f->probe->tx[0].ring))
		return us < PROBE_LOST_S * 1000000ULL
			       ? 0
			       : fe_fault(&m->fault, "%s: a frame is not served",
					 f->probe->cfg.path);
	if (fe_net_reap(f->probe, 0) != 1)
		return net_fault(m, f->probe);
	if (f->n_probes < PROBES_MAX)
		f->probes[f->n_probes++] = (uint32_t)us;
	if (us > m->limit_us) {
		if (fe_sched_waited_ns(&f->sched) / 1000 >= us - m->limit_us)
			f->excused++;
		else
			f->late++;
	}
	f->probe = NULL;
	f->due_ns = fe_now_ns() + PROBE_US * 1000;
	return 0;
}

/* Device 0 sends as fast as it can for a slice; the others a frame now and then, if asked. */
static int
flood(struct many *m, struct flood *f, bool probes)
{
	struct fe_net *net = &m->nets[0];
	uint64_t start = fe_now_ns(), end = start + m->slice_ms * 1000000ULL, now;

	while ((now = fe_now_ns()) < end || f->probe != NULL) {
		int n = fe_net_reap(net, 0);

		if (n < 0)
			return net_fault(m, net);
		f->frames += (uint64_t)n;
		while (fe_net_send(net, 0, NULL, m->frame, MANY_FRAME_BYTES, NULL) == 0)
			;
		fe_ring_kick(&net->tx[0].ring);
		if (!probes)
			continue;
		if (f->probe == NULL && now < end)
			start_probe(m, f, now);
		else if (f->probe != NULL && check_probe(m, f) != 0)
			return -EPROTO;
	}
	f->took_ns += now - start;
	return 0;
}

static int
compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int
compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Frames per second of device 0. < 0: m->fault. */
static double
rate(struct many *m)
{
	struct flood *f = calloc(1, sizeof(*f));
	double pps = -1;

	if (f != NULL && flood(m, f, false) == 0)
		pps = (double)f->frames * 1e9 / (double)f->took_ns;
	free(f);
	return pps;
}

static int
probe_idle_ones(struct many *m)
{
	struct flood *f = calloc(1, sizeof(*f));
	int rc = f == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		fe_sched_open(&f->sched, m->pid);
		rc = flood(m, f, true);
		fe_sched_close(&f->sched);
	}
	if (rc == 0 && f->n_probes == 0)
		rc = fe_fault(&m->fault, "no idle device was served");
	if (rc == 0) {
		qsort(f->probes, f->n_probes, sizeof(f->probes[0]), compare_u32);
		printf("busy: %u frames of idle devices, served after us p50 %u p99 %u max %u, "
		       "late %u, late for want of CPU %u\n",
			f->n_probes, f->probes[f->n_probes / 2], f->probes[f->n_probes * 99 / 100],
			f->probes[f->n_probes - 1], f->late, f->excused);
		if (f->late > 0)
			rc = fe_fault(&m->fault, "%u idle devices were served late", f->late);
	}
	free(f);
	return rc;
}

/* One that floods, in turn alone and among all: what of its rate is left. */
static int
busy(struct many *m)
{
	double ratios[64], alone = 0, among = 0;
	uint32_t n = m->rounds < FE_ARRAY_SIZE(ratios) ? m->rounds : FE_ARRAY_SIZE(ratios);

	if (m->devices < 2 || many_connect(m, 0, 1) != 0)
		return fe_fault(&m->fault, "two devices at least");
	for (uint32_t i = 0; i < n; i++) {
		alone = rate(m);
		if (many_connect(m, 1, m->devices) != 0)
			return -EPROTO;
		among = alone < 0 ? alone : rate(m);
		if (among < 0)
			return -EPROTO;
		if (i + 1 < n)
			many_disconnect(m, 1, m->devices);
		ratios[i] = among / alone;
		printf("busy: alone %.0f frames/s, among %u %.0f frames/s, ratio %.3f\n", alone,
			m->devices, among, ratios[i]);
	}
	qsort(ratios, n, sizeof(ratios[0]), compare_double);
	printf("busy: median ratio %.3f of %u\n", ratios[n / 2], n);
	return probe_idle_ones(m);
}

const struct many_case many_load_cases[] = {
	{"idle", "all connected, none has anything to do", idle},
	{"busy", "one floods, alone and among all in turn", busy},
	{NULL, NULL, NULL},
};
