/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A poller: one pinned lcore that serves qpairs. poller.c has its loop, handoff.c
 * gives it qpairs and takes them away, idle.c lets it sleep.
 */
#ifndef VHP_POLLER_H
#define VHP_POLLER_H

#include <rte_rcu_qsbr.h>

#include "qpair.h"
#include "watchdog.h"
#include "window.h"

/** Most qpairs of one poller. */
#define VHP_POLLER_MAX_QPAIRS 1024

/**
 * A qpair that is idle while others are busy is looked at less and less often, but never
 * later than so many microseconds after the last look.
 */
#define VHP_REST_MAX_US 100

/** The qpairs of a poller. Immutable once published: handoff.c replaces it as a whole. */
struct vhp_qpair_list {
	uint32_t n;
	struct vhp_qpair *qpairs[VHP_POLLER_MAX_QPAIRS];
	/** Of each, the one that receives what it sends, if that is on this list, too; or NULL. */
	struct vhp_qpair *peers[VHP_POLLER_MAX_QPAIRS];
};

/** Time and events of one poller; the poller writes, anybody reads. */
struct vhp_poller_stats {
	uint64_t passes;
	uint64_t passes_busy; /**< passes that moved a frame */
	uint64_t sleeps;
	uint64_t wakes_event;   /**< ended by a descriptor */
	uint64_t wakes_timeout; /**< ended by the time limit */
	uint64_t wakes_lost;    /**< ended by the time limit, and a guest waited; stays 0 */
	uint64_t busy_cycles;
	uint64_t poll_cycles;      /**< passes that found nothing */
	uint64_t sleep_cycles;     /**< without the sleep at hand */
	uint64_t asleep_since_tsc; /**< 0: awake */
};

struct vhp_poller {
	unsigned int index; /**< 0, 1, ... in the order of lcores */
	unsigned int lcore;
	int epoll_fd;
	int control_fd; /**< eventfd: look at list and stop */

	/* handoff.c: wo, poller: ro */
	struct vhp_qpair_list *list;
	uint64_t generation; /**< of list; tells a reused list from one that stayed */
	struct vhp_qpair_list lists[2];
	bool stop;                 /**< main thread: wo, poller: ro */
	struct rte_rcu_qsbr *qsbr; /**< one thread: this poller */

	struct vhp_watchdog watchdog;
	struct vhp_window window; /**< of qpairs with poll-us=auto */
	struct vhp_poller_stats stats;
};

/** All pollers; fixed between vhp_pollers_start() and vhp_pollers_stop(). */
struct vhp_poller *vhp_poller_get(unsigned int index);
unsigned int vhp_poller_count(void);

/**
 * Give a qpair to a poller, which serves it from its next pass on, as if just kicked.
 * Main thread; the qpair must not be attached.
 * @return 0, -ENOMEM, -ENOSPC, or what epoll gave; not attached then
 */
int vhp_attach(struct vhp_poller *poller, struct vhp_qpair *qp);

/**
 * Take n qpairs of one poller from it; on return no poller touches them any more.
 * Waits for at most one pass. Any thread but the poller's own; qpairs that are not
 * attached are passed over.
 */
void vhp_detach(struct vhp_qpair *const *qpairs, unsigned int n);

/**
 * Move an attached qpair to another poller: positions, and frames that wait, go along.
 * Main thread. A kick or frame meanwhile is seen by the new poller's first look.
 * @return 0, -ENOTCONN if it is not attached, or as vhp_attach(); back where it was then
 */
int vhp_move(struct vhp_qpair *qp, struct vhp_poller *to);

/** How vhp_idle() came back. */
enum vhp_idle_end {
	VHP_IDLE_WORK,    /**< there was work already: did not sleep */
	VHP_IDLE_EVENT,   /**< slept until a descriptor or a signal */
	VHP_IDLE_TIMEOUT, /**< slept until the time limit */
};

/**
 * Nothing to do: arm what can end the sleep, look again, sleep, disarm. On the poller.
 * @param list        the list at hand; not touched after the sleep if it was replaced
 * @param generation  of the list, read before it
 */
enum vhp_idle_end vhp_idle(
	struct vhp_poller *poller, const struct vhp_qpair_list *list, uint64_t generation);

#endif /* VHP_POLLER_H */
