/* SPDX-License-Identifier: BSD-3-Clause */
/* See balance.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>

#include "balance.h"
#include "log.h"
#include "net_dev.h"

/* Loads that differ by less are alike. */
#define ALIKE_PERMILLE 50
/* Measured over no less than this. */
#define SAMPLE_MS      100

static uint64_t sampled_tsc;

static bool
may_go(const struct vhp_balance_qpair *q, const struct vhp_balance_poller *from,
	const struct vhp_balance_poller *to)
{
	return q->node < 0 || to->node < 0 || to->node == q->node || from->node != q->node;
}

int
vhp_balance_pick(const struct vhp_balance_poller *pollers, unsigned int n_pollers,
	const struct vhp_balance_qpair *qpairs, unsigned int n_qpairs, unsigned int *to)
{
	unsigned int from = 0;
	uint32_t best;
	int picked = -1;

	for (unsigned int i = 1; i < n_pollers; i++)
		if (pollers[i].load_permille > pollers[from].load_permille)
			from = i;
	if (pollers[from].load_permille < VHP_BALANCE_BUSY_PERMILLE)
		return -1;
	best = pollers[from].load_permille - VHP_BALANCE_GAIN_PERMILLE + 1;
	for (unsigned int i = 0; i < n_qpairs; i++) {
		const struct vhp_balance_qpair *q = &qpairs[i];
		uint32_t left;

		if (q->poller != from || q->pinned || q->load_permille == 0)
			continue;
		left = pollers[from].load_permille -
		       RTE_MIN(q->load_permille, pollers[from].load_permille);
		for (unsigned int t = 0; t < n_pollers; t++) {
			uint32_t then = RTE_MAX(left, pollers[t].load_permille + q->load_permille);

			if (t == from || then >= best || !may_go(q, &pollers[from], &pollers[t]))
				continue;
			best = then;
			picked = (int)i;
			*to = t;
		}
	}
	return picked;
}

/* The load of each qpair since the last time. */
static void
sample(void)
{
	uint64_t now = rte_rdtsc();
	uint64_t elapsed = now - sampled_tsc;
	struct vhp_net_dev *dev;

	if (elapsed < rte_get_tsc_hz() * SAMPLE_MS / 1000)
		return;
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		for (uint16_t i = 0; i < dev->conf.queues; i++) {
			struct vhp_qpair *qp = &dev->qpairs[i];
			uint64_t busy = qp->stats.busy_cycles;

			qp->load_permille = (busy - qp->busy_sampled) * 1000 / elapsed;
			qp->busy_sampled = busy;
		}
	}
	sampled_tsc = now;
}

static unsigned int
count_qpairs(void)
{
	unsigned int n = 0;
	struct vhp_net_dev *dev;

	TAILQ_FOREACH (dev, &vhp_net_devs, link)
		n += dev->conf.queues;
	return n;
}

/* What is attached: loads of pollers, and the qpairs in owners[], if asked for. */
static unsigned int
collect(struct vhp_balance_poller *pollers, struct vhp_balance_qpair *qpairs,
	struct vhp_qpair **owners)
{
	struct vhp_net_dev *dev;
	unsigned int n = 0;

	for (unsigned int i = 0; i < vhp_poller_count(); i++)
		pollers[i] = (struct vhp_balance_poller){
			.node = (int)rte_lcore_to_socket_id(vhp_poller_get(i)->lcore)};
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		for (uint16_t i = 0; i < dev->conf.queues; i++) {
			struct vhp_qpair *qp = &dev->qpairs[i];

			if (qp->poller == NULL)
				continue;
			pollers[qp->poller->index].load_permille += qp->load_permille;
			if (qpairs == NULL)
				continue;
			qpairs[n] = (struct vhp_balance_qpair){
				.poller = qp->poller->index,
				.load_permille = qp->load_permille,
				.pinned = dev->conf.poller >= 0,
				.node = dev->node,
			};
			owners[n++] = qp;
		}
	}
	return n;
}

/* Less loaded, or as much with fewer qpairs. */
static bool
is_better(const struct vhp_balance_poller *loads, const struct vhp_poller *a,
	const struct vhp_poller *b)
{
	uint32_t load_a = loads[a->index].load_permille / ALIKE_PERMILLE;
	uint32_t load_b = loads[b->index].load_permille / ALIKE_PERMILLE;

	return load_a != load_b ? load_a < load_b : a->list->n < b->list->n;
}

struct vhp_poller *
vhp_balance_choose(int node)
{
	struct vhp_balance_poller loads[RTE_MAX_LCORE];
	struct vhp_poller *best = NULL;

	sample();
	collect(loads, NULL, NULL);
	for (int pass = 0; pass < 2 && best == NULL; pass++) {
		for (unsigned int i = 0; i < vhp_poller_count(); i++) {
			struct vhp_poller *p = vhp_poller_get(i);

			/* First those on the node; if there is none, all. */
			if (pass == 0 && node >= 0 && loads[i].node != node)
				continue;
			if (best == NULL || is_better(loads, p, best))
				best = p;
		}
	}
	return best;
}

void
vhp_balance_run(void)
{
	struct vhp_balance_poller pollers[RTE_MAX_LCORE];
	unsigned int n = count_qpairs();
	struct vhp_balance_qpair *qpairs = calloc(n, sizeof(*qpairs));
	struct vhp_qpair **owners = calloc(n, sizeof(struct vhp_qpair *));
	unsigned int to = 0;
	int picked = -1;

	if (n > 0 && qpairs != NULL && owners != NULL) {
		sample();
		n = collect(pollers, qpairs, owners);
		picked = vhp_balance_pick(pollers, vhp_poller_count(), qpairs, n, &to);
	}
	if (picked >= 0) {
		VHP_LOG(INFO, "%s (%u %% of a core) moves from poller %u (%u %%) to %u (%u %%)",
			owners[picked]->name, qpairs[picked].load_permille / 10,
			qpairs[picked].poller, pollers[qpairs[picked].poller].load_permille / 10,
			to, pollers[to].load_permille / 10);
		vhp_move(owners[picked], vhp_poller_get(to));
	}
	free(qpairs);
	free(owners);
}
