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

/* The qpair at the other end, and its device; NULL: no guest is there. */
static struct vhp_qpair *
peer_of(const struct vhp_qpair *qp, const struct vhp_net_dev **of)
{
	struct vhp_net_dev *dev;

	if (qp == NULL || qp->pq->far == NULL)
		return NULL;
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		for (uint16_t i = 0; i < dev->conf.queues; i++) {
			if (dev->qpairs[i].pq != qp->pq->far)
				continue;
			*of = dev;
			return &dev->qpairs[i];
		}
	}
	return NULL;
}

/* Do frames between the two go straight? */
static bool
together(const struct vhp_qpair *qp, const struct vhp_qpair *peer)
{
	return peer != NULL && peer->poller == qp->poller && peer->turn == qp->turn;
}

/* Its peer's entry, which may be in front of its own. */
static struct vhp_balance_qpair *
find_together(const struct vhp_qpair *qp, struct vhp_balance_qpair *qpairs,
	struct vhp_qpair *const *owners, unsigned int n)
{
	const struct vhp_net_dev *dev;
	const struct vhp_qpair *peer = peer_of(qp, &dev);

	for (unsigned int i = 0; i < n && together(qp, peer); i++)
		if (owners[i] == peer)
			return &qpairs[i];
	return NULL;
}

/* Returns the number of entries that were added: 0 or 1. */
static unsigned int
add(const struct vhp_net_dev *dev, struct vhp_qpair *qp, struct vhp_balance_qpair *qpairs,
	struct vhp_qpair **owners, unsigned int n)
{
	struct vhp_balance_qpair *both = find_together(qp, qpairs, owners, n);
	bool pinned = dev->conf.poller >= 0;

	if (both != NULL) {
		both->load_permille += qp->load_permille;
		both->pinned |= pinned;
		/* Memory of both nodes is used: one is as good as the other. */
		if (both->node != dev->node)
			both->node = -1;
		return 0;
	}
	qpairs[n] = (struct vhp_balance_qpair){
		.poller = qp->poller->index,
		.load_permille = qp->load_permille,
		.pinned = pinned,
		.node = dev->node,
	};
	owners[n] = qp;
	return 1;
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
			n += add(dev, qp, qpairs, owners, n);
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

/* The poller that serves the other end, or will; NULL: there is none. */
static struct vhp_poller *
beside_peer(const struct vhp_qpair *qp)
{
	const struct vhp_net_dev *dev;
	const struct vhp_qpair *peer = peer_of(qp, &dev);

	if (peer == NULL)
		return NULL;
	if (peer->home != NULL)
		return peer->home;
	return dev->conf.poller >= 0 ? vhp_poller_get(dev->conf.poller) : NULL;
}

struct vhp_poller *
vhp_balance_choose(const struct vhp_qpair *qp, int node)
{
	struct vhp_balance_poller loads[RTE_MAX_LCORE];
	struct vhp_poller *best = beside_peer(qp);

	if (best != NULL)
		return best;
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

/* A qpair, and the one that goes with it. */
static void
move(struct vhp_qpair *qp, struct vhp_poller *to)
{
	const struct vhp_net_dev *dev;
	struct vhp_qpair *peer = peer_of(qp, &dev);
	bool both = together(qp, peer);

	if (vhp_move(qp, to) == 0 && both)
		vhp_move(peer, to);
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
		move(owners[picked], vhp_poller_get(to));
	}
	free(qpairs);
	free(owners);
}
