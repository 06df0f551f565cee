/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleep without losing a wake-up. The order is everything (virtio 1.2, 2.7.10):
 *
 *   used entries and calls are out already (each burst ends with them)
 *   ask for kicks from the *current* position on
 *   full fence                                  } vring ops->arm
 *   look at the ring again                      }
 *   watch the port: epoll reports what is readable already, so it needs no second look;
 *     where a descriptor tells only if asked to, ask, then look again } port ops->arm
 *   sleep
 *   on waking disarm first, then poll
 *
 * What is armed depends on what each side waits for: a receiveq without buffers waits for
 * the guest's kick and not on the port, which may well have frames; a full port is watched
 * for room, and the transmitq, which may well have frames, is not armed.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "poller.h"

/* Wake-ups taken from the kernel at once. */
#define EVENTS       64
/* A ring without a kick descriptor is looked at so often. */
#define NO_KICK_NS   1000000
/*
 * A port without a descriptor, or with one that does not tell of room, is looked at so often;
 * while no frame moves, by and by only so often.
 */
#define NO_FD_NS     100000
#define NO_FD_MAX_NS 1000000
/* A port whose link is down is looked at so often. */
#define LINK_DOWN_NS 10000000
/* A frame that waits for buffers is not waited for longer than receiveq.c allows. */
#define PENDING_NS   100000000

/* No sleep is longer, so that a wake-up that got lost shows; with traffic it never ends one. */
#define CHECK_NS 500000000
/* So long may a guest take from its entry in the ring to its kick. */
#define KICK_MS  100

/* What the sleep at hand may last; -1: for ever. */
struct limit {
	int64_t ns;
};

static void
shorten(struct limit *limit, int64_t ns)
{
	if (limit->ns < 0 || ns < limit->ns)
		limit->ns = ns;
}

/* Returns true if the ring has work already. */
static bool
arm_ring(struct vhp_vring *vr, struct limit *limit)
{
	if (vr->kick_fd < 0)
		shorten(limit, NO_KICK_NS);
	return vr->ops->arm(vr);
}

static bool
ring_alive(const struct vhp_vring *vr)
{
	return vr->running && vr->fault == VHP_RING_OK;
}

/* Tell epoll what the port is to be watched for; a system call only if that changed. */
static void
watch_port(struct vhp_poller *p, struct vhp_qpair *qp, uint32_t events)
{
	struct vhp_wake *w = &qp->wake[VHP_WAKE_PORT];
	/* Errors are always reported, unless the descriptor is disabled by ONESHOT. */
	struct epoll_event ev = {.events = events ? events : EPOLLONESHOT, .data.ptr = w};

	if (w->fd < 0 || w->events == ev.events)
		return;
	/* A port that came back has another file behind the same descriptor. */
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) < 0 && errno == ENOENT)
		epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, w->fd, &ev);
	w->events = ev.events;
}

/* Nothing tells about the port; *limit: until the next look. */
static void
look_again(struct vhp_qpair *qp, struct limit *limit)
{
	struct vhp_port_queue *pq = qp->pq;
	uint64_t moved_pkts = qp->tx.stats.pkts + qp->rx.stats.pkts;

	pq->look_ns = moved_pkts != pq->moved_pkts || pq->look_ns == 0
			      ? NO_FD_NS
			      : RTE_MIN(2 * pq->look_ns, (uint32_t)NO_FD_MAX_NS);
	pq->moved_pkts = moved_pkts;
	shorten(limit, pq->look_ns);
}

/* What the sleep may last for the port's sake. */
static void
limit_port(struct vhp_qpair *qp, struct limit *limit)
{
	const struct vhp_port_queue *pq = qp->pq;

	if (pq->wait == VHP_PORT_DOWN)
		shorten(limit, LINK_DOWN_NS);
	else if (pq->wait == VHP_PORT_BUSY || pq->fd < 0)
		look_again(qp, limit);
}

/* *events: what to watch the port for. Returns true if a frame waits already. */
static bool
arm_port(struct vhp_qpair *qp, struct limit *limit, uint32_t *events)
{
	int waits = 0;

	if (qp->pq->fd >= 0 && qp->port->arm != NULL) {
		qp->pq->armed = true;
		waits = qp->port->arm(qp->pq);
	}
	if (waits < 0)
		look_again(qp, limit);
	else
		*events |= EPOLLIN;
	return waits > 0;
}

/* Does a rate put this direction off? Then that is what its sleep may last. */
static bool
put_off(struct vhp_rate *const *at, struct limit *limit)
{
	struct vhp_rate *rate = __atomic_load_n(at, __ATOMIC_RELAXED);
	uint64_t cycles;

	if (likely(rate == NULL))
		return false;
	cycles = vhp_rate_wait(rate, rte_rdtsc(), NULL);
	if (cycles > 0)
		shorten(limit, (int64_t)((double)cycles * 1e9 / (double)rte_get_tsc_hz()) + 1);
	return cycles > 0;
}

/* Returns true if there is work already. */
static bool
arm_qpair(struct vhp_poller *p, struct vhp_qpair *qp, struct limit *limit)
{
	uint32_t events = 0;
	bool work = false;

	limit_port(qp, limit);
	if (ring_alive(&qp->tx) && !put_off(&qp->tx_rate, limit)) {
		if (qp->pq->wait == VHP_PORT_FULL)
			events |= EPOLLOUT;
		else if (qp->pq->wait == VHP_PORT_READY)
			work |= arm_ring(&qp->tx, limit);
	}
	if (qp->pending_bytes > 0)
		shorten(limit, PENDING_NS);
	if (ring_alive(&qp->rx) && !put_off(&qp->rx_rate, limit)) {
		if (qp->starved)
			work |= arm_ring(&qp->rx, limit);
		else if (qp->pq->pending)
			work = true;
		else if (qp->pq->wait != VHP_PORT_DOWN && !work)
			work = arm_port(qp, limit, &events);
	}
	if (!work)
		watch_port(p, qp, events);
	return work;
}

static void
take_wake(struct vhp_wake *w)
{
	struct vhp_qpair *qp = w->qp;

	qp->stats.wakes[w->kind]++;
	if (w->kind == VHP_WAKE_TX_KICK)
		vhp_vring_drain_kick(&qp->tx);
	else if (w->kind == VHP_WAKE_RX_KICK)
		vhp_vring_drain_kick(&qp->rx);
}

/* The guest waits for a ring that is armed: it has entries, and no kick came. */
static bool
ring_forgotten(struct vhp_vring *vr)
{
	return vr->armed && vr->kick_fd >= 0 && ring_alive(vr) && vr->ops->arm(vr);
}

/* A frame waits in a port that was asked to tell of it, and it did not. */
static bool
frame_forgotten(struct vhp_qpair *qp)
{
	return qp->pq->armed && qp->port->arm(qp->pq) > 0;
}

/* The longest sleep is over. Does anybody wait? A kick may just be on its way. */
static int
check_lost(struct vhp_poller *p, const struct vhp_qpair_list *list, struct epoll_event *events)
{
	bool forgotten = false;
	int n;

	for (uint32_t i = 0; i < list->n; i++) {
		forgotten |= ring_forgotten(&list->qpairs[i]->tx);
		forgotten |= ring_forgotten(&list->qpairs[i]->rx);
		forgotten |= frame_forgotten(list->qpairs[i]);
	}
	if (likely(!forgotten))
		return 0;
	vhp_watchdog_disarm(&p->watchdog);
	n = epoll_wait(p->epoll_fd, events, EVENTS, KICK_MS);
	vhp_watchdog_arm(&p->watchdog);
	p->stats.wakes_lost += n == 0;
	return n;
}

/* Sleep outside of the grace period's sight, so that no detach waits for a sleeper. */
static int
wait_for_events(struct vhp_poller *p, struct epoll_event *events, const struct limit *limit)
{
	struct timespec ts = {
		.tv_sec = limit->ns / 1000000000,
		.tv_nsec = limit->ns % 1000000000,
	};
	uint64_t start_tsc = rte_rdtsc();
	int n;

	vhp_watchdog_disarm(&p->watchdog);
	__atomic_store_n(&p->stats.asleep_since_tsc, start_tsc, __ATOMIC_RELAXED);
	p->stats.sleeps++;
	rte_rcu_qsbr_thread_offline(p->qsbr, 0);
	n = epoll_pwait2(p->epoll_fd, events, EVENTS, limit->ns < 0 ? NULL : &ts, NULL);
	rte_rcu_qsbr_thread_online(p->qsbr, 0);
	__atomic_store_n(&p->stats.asleep_since_tsc, 0, __ATOMIC_RELAXED);
	p->stats.sleep_cycles += rte_rdtsc() - start_tsc;
	vhp_watchdog_arm(&p->watchdog);
	return n;
}

static void
count_sleep(const struct vhp_qpair_list *list, uint64_t cycles)
{
	for (uint32_t i = 0; i < list->n; i++)
		list->qpairs[i]->stats.sleep_cycles += cycles;
}

static void
take_control(struct vhp_poller *p)
{
	eventfd_t count;

	eventfd_read(p->control_fd, &count);
}

/* Everything is armed. Returns how many events there are; *list: that to disarm. */
static int
sleep_armed(struct vhp_poller *p, const struct vhp_qpair_list **list, uint64_t generation,
	struct epoll_event *events, struct limit *limit, enum vhp_idle_end *end)
{
	uint64_t slept = p->stats.sleep_cycles;
	bool longest;
	int n;

	if ((*list)->n > 0)
		shorten(limit, CHECK_NS);
	longest = limit->ns == CHECK_NS;
	n = wait_for_events(p, events, limit);
	/*
	 * The list may be gone, and with it the qpairs that the events speak of. Whoever comes
	 * back after a detach is disarmed by vhp_attach().
	 */
	if (unlikely(__atomic_load_n(&p->generation, __ATOMIC_ACQUIRE) != generation)) {
		take_control(p);
		*list = __atomic_load_n(&p->list, __ATOMIC_ACQUIRE);
		p->stats.wakes_event++;
		*end = VHP_IDLE_EVENT;
		return 0;
	}
	count_sleep(*list, p->stats.sleep_cycles - slept);
	if (n == 0 && longest)
		n = check_lost(p, *list, events);
	/* EINTR is an event, too: a completion of io_uring, for one. */
	*end = n != 0 ? VHP_IDLE_EVENT : VHP_IDLE_TIMEOUT;
	p->stats.wakes_event += n != 0;
	p->stats.wakes_timeout += n == 0;
	return n;
}

enum vhp_idle_end
vhp_idle(struct vhp_poller *p, const struct vhp_qpair_list *list, uint64_t generation)
{
	struct epoll_event events[EVENTS];
	struct limit limit = {.ns = -1};
	enum vhp_idle_end end = VHP_IDLE_WORK;
	uint32_t armed;
	bool work = false;
	int n = 0;

	for (armed = 0; armed < list->n && !work; armed++)
		work = arm_qpair(p, list->qpairs[armed], &limit);
	if (!work) {
		n = sleep_armed(p, &list, generation, events, &limit, &end);
		armed = list->n;
	}
	for (uint32_t i = 0; i < armed; i++)
		vhp_qpair_disarm(list->qpairs[i]);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr != NULL)
			take_wake(events[i].data.ptr);
		else
			take_control(p);
	}
	return end;
}
