/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving qpairs to pollers and taking them away. A poller's list of qpairs is replaced
 * as a whole; the old one, and whoever is no longer on it, belongs to the main thread
 * again after a grace period (rte_rcu_qsbr): the poller has finished the pass in which it
 * may have used it, or sleeps.
 *
 * Changes come from the main thread and, when DPDK drops a connection by itself, from its
 * vhost-events thread; a mutex puts them in order. It is never held by a poller.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "log.h"
#include "poller.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The list that the poller does not see; lock held. */
static struct vhp_qpair_list *
spare_list(struct vhp_poller *p)
{
	return p->list == &p->lists[0] ? &p->lists[1] : &p->lists[0];
}

/* Publish the spare list, wake the poller, wait until the old one is out of use. */
static void
publish_spare(struct vhp_poller *p)
{
	__atomic_store_n(&p->list, spare_list(p), __ATOMIC_RELEASE);
	/* After the list: who sees this generation sees that list. */
	__atomic_store_n(&p->generation, p->generation + 1, __ATOMIC_RELEASE);
	eventfd_write(p->control_fd, 1);
	rte_rcu_qsbr_synchronize(p->qsbr, RTE_QSBR_THRID_INVALID);
}

static void
unwatch(struct vhp_poller *p, struct vhp_wake *w)
{
	if (w->fd >= 0)
		epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
}

static int
watch(struct vhp_poller *p, struct vhp_wake *w, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};

	if (fd < 0)
		return 0;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	w->fd = fd;
	w->events = events;
	return 0;
}

/* Kicks are edges, so one that nobody takes does not end every sleep; see vring.c. */
static int
watch_all(struct vhp_poller *p, struct vhp_qpair *qp)
{
	int ret = watch(p, &qp->wake[VHP_WAKE_TX_KICK], qp->tx.running ? qp->tx.kick_fd : -1,
		EPOLLIN | EPOLLET);
	if (ret == 0)
		ret = watch(p, &qp->wake[VHP_WAKE_RX_KICK], qp->rx.running ? qp->rx.kick_fd : -1,
			EPOLLIN | EPOLLET);
	/* What the port is watched for is idle.c's decision at each sleep. */
	if (ret == 0)
		ret = watch(p, &qp->wake[VHP_WAKE_PORT], qp->pq->fd, EPOLLONESHOT);
	if (ret < 0)
		for (int i = 0; i < VHP_WAKES; i++)
			unwatch(p, &qp->wake[i]);
	return ret;
}

/* Append a qpair, and find the one that it is joined with. */
static void
add(struct vhp_qpair_list *list, struct vhp_qpair *qp)
{
	uint32_t at = list->n++;

	list->qpairs[at] = qp;
	list->peers[at] = NULL;
	/* Deferred is that frames are not received while others are sent: not with this. */
	if (qp->pq->far == NULL || qp->turn != vhp_turn_interleave)
		return;
	for (uint32_t i = 0; i < at; i++) {
		if (list->qpairs[i]->pq != qp->pq->far ||
			list->qpairs[i]->turn != vhp_turn_interleave)
			continue;
		list->peers[at] = list->qpairs[i];
		list->peers[i] = qp;
	}
}

/* Lock held. */
static int
attach(struct vhp_poller *p, struct vhp_qpair *qp)
{
	struct vhp_qpair_list *list;
	int ret;

	if (p->list->n == VHP_POLLER_MAX_QPAIRS)
		return -ENOSPC;
	ret = watch_all(p, qp);
	if (ret < 0)
		return ret;
	/* Its last poller may have been asleep when it was taken away. */
	vhp_qpair_disarm(qp);
	qp->looked_tsc = qp->rests_until_tsc = qp->pending_tsc = 0;
	list = spare_list(p);
	memcpy(list, p->list, sizeof(*list));
	add(list, qp);
	qp->poller = qp->home = p;
	publish_spare(p);
	return 0;
}

int
vhp_attach(struct vhp_poller *p, struct vhp_qpair *qp)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = attach(p, qp);
	pthread_mutex_unlock(&lock);
	return ret;
}

static bool
is_one_of(const struct vhp_qpair *qp, struct vhp_qpair *const *qpairs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (qpairs[i] == qp)
			return true;
	return false;
}

/* Those of the qpairs that p serves, in one go. */
static void
detach_from(struct vhp_poller *p, struct vhp_qpair *const *qpairs, unsigned int n)
{
	struct vhp_qpair_list *list = spare_list(p);

	list->n = 0;
	for (uint32_t i = 0; i < p->list->n; i++) {
		struct vhp_qpair *peer = p->list->peers[i];

		if (is_one_of(p->list->qpairs[i], qpairs, n))
			continue;
		list->qpairs[list->n] = p->list->qpairs[i];
		list->peers[list->n++] = peer != NULL && !is_one_of(peer, qpairs, n) ? peer : NULL;
	}
	publish_spare(p);
}

/* The descriptors of those qpairs that p serves. */
static void
unwatch_all(struct vhp_poller *p, struct vhp_qpair *const *qpairs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		for (int k = 0; qpairs[i]->poller == p && k < VHP_WAKES; k++)
			if (qpairs[i]->wake[k].fd >= 0)
				epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, qpairs[i]->wake[k].fd, NULL);
}

/* Lock held. */
static void
detach(struct vhp_qpair *const *qpairs, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct vhp_poller *p = qpairs[i]->poller;

		if (p == NULL)
			continue;
		/* First, so that no event for one that is gone ends a sleep; idle.c may add it
		 * again. */
		unwatch_all(p, qpairs + i, n - i);
		detach_from(p, qpairs + i, n - i);
		unwatch_all(p, qpairs + i, n - i);
		for (unsigned int j = i; j < n; j++) {
			if (qpairs[j]->poller != p)
				continue;
			for (int k = 0; k < VHP_WAKES; k++)
				qpairs[j]->wake[k].fd = -1;
			qpairs[j]->poller = NULL;
		}
	}
}

void
vhp_detach(struct vhp_qpair *const *qpairs, unsigned int n)
{
	pthread_mutex_lock(&lock);
	detach(qpairs, n);
	pthread_mutex_unlock(&lock);
}

int
vhp_move(struct vhp_qpair *qp, struct vhp_poller *to)
{
	struct vhp_poller *from;
	int ret = 0;

	/* As one step: else the connection, and the memory, may end in between. */
	pthread_mutex_lock(&lock);
	from = qp->poller;
	if (from == NULL) {
		ret = -ENOTCONN;
	} else if (from != to) {
		detach(&qp, 1);
		ret = attach(to, qp);
		if (ret < 0 && attach(from, qp) < 0)
			VHP_LOG(ERR, "%s: no poller can take it back", qp->name);
		qp->stats.moves += ret == 0;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}
