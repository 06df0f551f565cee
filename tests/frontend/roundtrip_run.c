/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-roundtrip: a run from the first message to the result line. */
#include "roundtrip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all phases have moved. */
struct total {
	uint32_t tx, rx;
	uint64_t tx_bytes, rx_bytes, strays;
};

static void
report(const struct rt_run *run, const struct total *t, uint64_t us, bool pass)
{
	const struct rt_opts *o = run->opts;
	const struct fe_ring *tx = &run->net->tx[o->qpair].ring, *rx = &run->net->rx[o->qpair].ring;

	printf("RESULT fe-roundtrip %s: guest->host %u frames %llu bytes, host->guest %u frames "
	       "%llu bytes, kicks %llu saved %llu, calls %llu, restarts %u, strays %llu, %.2f s\n",
		pass ? "PASS" : "FAIL", t->tx, (unsigned long long)t->tx_bytes, t->rx,
		(unsigned long long)t->rx_bytes, (unsigned long long)(tx->n_kicks + rx->n_kicks),
		(unsigned long long)(tx->n_kicks_saved + rx->n_kicks_saved),
		(unsigned long long)(tx->n_calls + rx->n_calls), run->restarts,
		(unsigned long long)t->strays, (double)us / 1e6);
}

/* Frames of one set of options, on a device that runs. */
static int
run_frames(struct rt_run *run, struct total *t)
{
	int rc = -ENOMEM;

	if (rt_flow_init(&run->tx, run->opts, false, run->net->features) == 0 &&
		rt_flow_init(&run->rx, run->opts, true, run->net->features) == 0)
		rc = rt_loop(run);
	else
		fe_fault(&run->fault, "out of memory");
	t->tx += run->tx.n_received;
	t->rx += run->rx.n_received;
	t->tx_bytes += run->tx.bytes;
	t->rx_bytes += run->rx.bytes;
	t->strays += run->tx.strays + run->rx.strays;
	rt_flow_free(&run->tx);
	rt_flow_free(&run->rx);
	return rc;
}

/* A phase means what it says: a device that does not offer the kinds of frames fails it. */
static int
run_phase(struct rt_run *run, const struct rt_phase *phase, struct total *t)
{
	const struct rt_opts *all = run->opts;
	struct rt_opts o = *all;
	int rc;

	o.kinds = phase->kinds;
	o.min_len = phase->min_len;
	o.max_len = phase->max_len;
	run->opts = &o;
	rc = run_frames(run, t);
	run->opts = all;
	if (rc == 0 && ((o.direction & RT_TX && run->tx.kinds != o.kinds) ||
			       (o.direction & RT_RX && run->rx.kinds != o.kinds)))
		rc = fe_fault(&run->fault, "not offered");
	printf("PHASE %s %s: guest->host %u frames %llu bytes %u cut, host->guest %u frames %llu "
	       "bytes %u cut\n",
		phase->name, rc == 0 ? "PASS" : "FAIL", run->tx.n_received,
		(unsigned long long)run->tx.bytes, run->tx.n_cut, run->rx.n_received,
		(unsigned long long)run->rx.bytes, run->rx.n_cut);
	return rc;
}

static int
run_test(struct rt_run *run, struct total *t)
{
	const struct rt_opts *o = run->opts;
	int rc;

	fe_rng_seed(&run->rng, o->seed);
	run->tx_how = (struct fe_how){&run->rng, o->max_segs, o->hdr_place, o->chain};
	run->rx_how = run->tx_how;
	if (rt_far_start(run->far) != 0)
		return fe_fault(&run->fault, "%s", run->far->fault);
	fe_net_post(run->net, o->qpair, FE_ALL, o->rx_min, o->rx_max, &run->rx_how);
	if (fe_net_start(run->net) != 0)
		return fe_fault(&run->fault, "%s", fe_net_fault(run->net));
	fe_ring_kick(&run->net->rx[o->qpair].ring);
	rc = o->n_phases == 0 ? run_frames(run, t) : 0;
	for (uint32_t i = 0; i < o->n_phases && rc == 0; i++)
		rc = run_phase(run, &o->phases[i], t);
	if (rc == 0 && fe_net_stop(run->net) != 0)
		rc = fe_fault(&run->fault, "%s", fe_net_fault(run->net));
	return rc;
}

int
rt_main(const struct rt_opts *o)
{
	static struct fe_net net;
	static struct rt_far far;
	struct rt_run run = {.opts = o, .net = &net, .far = &far};
	struct total total = {0};
	uint64_t start;
	int rc = rt_far_open(&far, o);

	if (rc != 0) {
		fprintf(stderr, "fe-roundtrip: %s: %s %s\n", o->peer != NULL ? o->peer : o->iface,
			strerror(-rc), far.fault);
		rt_far_close(&far);
		return 2;
	}
	if (fe_net_open(&net, &o->net) != 0) {
		fprintf(stderr, "fe-roundtrip: %s\n", fe_net_fault(&net));
		fe_net_close(&net);
		rt_far_close(&far);
		return 2;
	}
	run.buf = malloc(FE_BUF_MAX);
	start = fe_now_us();
	rc = run.buf == NULL ? -ENOMEM : run_test(&run, &total);
	if (rc != 0)
		fprintf(stderr, "fe-roundtrip: %s\n", run.fault.text);
	report(&run, &total, fe_now_us() - start, rc == 0);
	free(run.buf);
	rt_far_close(&far);
	fe_net_close(&net);
	return rc == 0 ? 0 : 1;
}
