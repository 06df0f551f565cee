/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which poller serves which qpair: a new one goes where the measured load is least, and
 * from time to time one is moved if that helps. Qpairs of two guests that are joined stay
 * together. Main thread.
 */
#ifndef VHP_BALANCE_H
#define VHP_BALANCE_H

#include "poller.h"

/** No poller is relieved below this load. */
#define VHP_BALANCE_BUSY_PERMILLE 500
/** A move must take so much from the most loaded poller. */
#define VHP_BALANCE_GAIN_PERMILLE 100

/** A poller, for vhp_balance_pick(). */
struct vhp_balance_poller {
	uint32_t load_permille; /**< of its core, for frames */
	int node;               /**< NUMA node, -1: unknown */
};

/** A qpair, or two that go together, for vhp_balance_pick(). */
struct vhp_balance_qpair {
	unsigned int poller;
	uint32_t load_permille;
	bool pinned;
	int node; /**< of the guest's memory, -1: unknown */
};

/**
 * Which qpair to move: from the most loaded poller, so that the larger of the two loads
 * involved becomes least. Never away from the node of its guest's memory. Pure.
 * @param to  (output) the poller to move it to
 * @return index of the qpair, -1 if no move is worth it
 */
int vhp_balance_pick(const struct vhp_balance_poller *pollers, unsigned int n_pollers,
	const struct vhp_balance_qpair *qpairs, unsigned int n_qpairs, unsigned int *to);

/**
 * The poller for a qpair that has none yet: that of the qpair it is joined with, where two
 * guests are, as frames between them are copied once then; else the least loaded.
 * @param qp    NULL: of a device that is not of the network
 * @param node  of the guest's memory, -1: any will do
 */
struct vhp_poller *vhp_balance_choose(const struct vhp_qpair *qp, int node);

/** Measure, and move one qpair, or two that are joined and have one poller, if it helps. */
void vhp_balance_run(void);

#endif /* VHP_BALANCE_H */
