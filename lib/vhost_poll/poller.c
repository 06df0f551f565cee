/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only loop of the data path that does not end. A pass gives each qpair one turn
 * (interleave.c); when no turn moved a frame for the poll window, idle.c sleeps.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "log.h"
#include "poller.h"

static struct vhp_poller *pollers;
static unsigned int n_pollers;

/* So many turns in vain while others are busy, and a qpair begins to rest, */
#define REST_AFTER_TURNS 8
/* so long at first. */
#define REST_FIRST_US    2
/* When nobody was busy for so long, all are looked at in each pass. */
#define REST_WHILE_US    20

/* What the loop remembers from pass to pass. */
struct loop {
	uint64_t last_tsc;    /* end of the last pass or sleep */
	uint64_t work_tsc;    /* end of the last work */
	bool open;            /* the poll window is, */
	uint64_t open_tsc;    /* since then */
	uint64_t auto_cycles; /* its length where poll-us=auto */
	bool slept;           /* since the last pass */
	bool look_at_all;     /* in the pass to come: came from idle */
	bool was_busy;        /* the last pass */
	uint64_t woke_tsc;    /* end of the last sleep */
	uint64_t us_cycles;   /* of one microsecond */
};

/* The poll windows of all qpairs. */
struct windows {
	uint64_t fixed_cycles; /* the longest of those with a fixed one */
	bool any_auto;
};

/* A turn ended now. What is counted about it, and when the next look is due. */
static void
after_turn(struct vhp_qpair *qp, const struct loop *loop, uint64_t start, uint64_t now, bool busy)
{
	uint64_t since = RTE_MAX(qp->looked_tsc, loop->woke_tsc);
	struct vhp_qpair_stats *stats = &qp->stats;
	uint32_t doubled;

	qp->looked_tsc = start;
	stats->turns++;
	if (busy) {
		stats->turns_busy++;
		stats->busy_cycles += now - start;
		vhp_hist_add(&stats->look, (start - since) / loop->us_cycles);
		vhp_hist_add(&stats->delivered, (now - since) / loop->us_cycles);
		qp->idle_turns = 0;
		return;
	}
	stats->poll_cycles += now - start;
	if (!loop->was_busy || ++qp->idle_turns < REST_AFTER_TURNS)
		return;
	doubled = RTE_MIN(qp->idle_turns - REST_AFTER_TURNS, 16U);
	qp->rests_until_tsc =
		now + loop->us_cycles * RTE_MIN(REST_FIRST_US << doubled, VHP_REST_MAX_US);
}

/* One turn each, of those that do not rest. */
static struct windows
pass(const struct vhp_qpair_list *list, const struct loop *loop, struct vhp_work *total)
{
	bool all = loop->look_at_all ||
		   loop->last_tsc - loop->work_tsc > REST_WHILE_US * loop->us_cycles;
	struct windows windows = {0};
	uint64_t start = loop->last_tsc;

	for (uint32_t i = 0; i < list->n; i++) {
		struct vhp_qpair *qp = list->qpairs[i];
		uint64_t cycles = __atomic_load_n(&qp->poll_cycles, __ATOMIC_RELAXED);
		struct vhp_work work = {0};
		uint64_t now;

		if (cycles == VHP_WINDOW_AUTO) {
			windows.any_auto = true;
			cycles = loop->auto_cycles;
		} else {
			windows.fixed_cycles = RTE_MAX(windows.fixed_cycles, cycles);
		}
		if (qp->rests_until_tsc > start && !all)
			continue;
		qp->window_cycles = cycles;
		qp->peer = list->peers[i];
		qp->turn(qp, start, &work);
		now = rte_rdtsc();
		after_turn(qp, loop, start, now, work.pkts > 0);
		total->pkts += work.pkts;
		start = now;
	}
	return windows;
}

static void
open_window(struct vhp_poller *p, struct loop *loop, uint64_t now)
{
	loop->open = true;
	loop->open_tsc = now;
	loop->auto_cycles = vhp_window_open(&p->window, now);
}

/* A pass that ended now found work: what that says about the window, and a new one. */
static void
found_work(struct vhp_poller *p, struct loop *loop, uint64_t now)
{
	if (loop->slept)
		vhp_window_woken(&p->window, loop->last_tsc - loop->work_tsc);
	else
		vhp_window_found(&p->window, loop->last_tsc - loop->open_tsc);
	loop->work_tsc = now;
	open_window(p, loop, now);
}

/* A pass that ended now found nothing. Returns true if it is time to sleep. */
static bool
found_nothing(struct vhp_poller *p, struct loop *loop, const struct windows *windows, uint64_t now)
{
	bool by_auto = windows->any_auto && loop->auto_cycles > windows->fixed_cycles;
	uint64_t window = by_auto ? loop->auto_cycles : windows->fixed_cycles;

	if (!loop->open)
		return true;
	if (now - loop->open_tsc <= window)
		return false;
	loop->open = false;
	if (by_auto)
		vhp_window_closed(&p->window, now - loop->open_tsc);
	return true;
}

static void
go_to_sleep(struct vhp_poller *p, struct loop *loop, const struct vhp_qpair_list *list,
	uint64_t generation)
{
	enum vhp_idle_end end = vhp_idle(p, list, generation);

	loop->last_tsc = rte_rdtsc();
	loop->slept = end != VHP_IDLE_WORK;
	if (loop->slept)
		loop->woke_tsc = loop->last_tsc;
	loop->look_at_all = true;
	/* A time limit is there for one look, not for another window. */
	if (end == VHP_IDLE_EVENT)
		open_window(p, loop, loop->last_tsc);
}

static void
poller_loop(struct vhp_poller *p)
{
	struct vhp_poller_stats *stats = &p->stats;
	struct loop loop = {.last_tsc = rte_rdtsc(), .us_cycles = rte_get_tsc_hz() / 1000000};

	loop.work_tsc = loop.last_tsc;
	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		uint64_t generation = __atomic_load_n(&p->generation, __ATOMIC_ACQUIRE);
		const struct vhp_qpair_list *list = __atomic_load_n(&p->list, __ATOMIC_ACQUIRE);
		struct vhp_work work = {0};
		struct windows windows = pass(list, &loop, &work);
		uint64_t now = rte_rdtsc();
		bool sleep;

		stats->passes++;
		if (work.pkts > 0) {
			stats->passes_busy++;
			stats->busy_cycles += now - loop.last_tsc;
			found_work(p, &loop, now);
			sleep = false;
		} else {
			stats->poll_cycles += now - loop.last_tsc;
			sleep = found_nothing(p, &loop, &windows, now);
		}
		loop.last_tsc = now;
		loop.slept = loop.look_at_all = false;
		loop.was_busy = work.pkts > 0;
		if (sleep || list->n == 0)
			go_to_sleep(p, &loop, list, generation);
		/* Nothing of this pass is held any more; detach waits for this. */
		rte_rcu_qsbr_quiescent(p->qsbr, 0);
	}
}

static int
poller_main(void *arg)
{
	struct vhp_poller *p = arg;

	if (vhp_watchdog_init(&p->watchdog) < 0)
		return -1;
	vhp_watchdog_arm(&p->watchdog);
	rte_rcu_qsbr_thread_online(p->qsbr, 0);
	poller_loop(p);
	rte_rcu_qsbr_thread_offline(p->qsbr, 0);
	vhp_watchdog_fini(&p->watchdog);
	return 0;
}

struct vhp_poller *
vhp_poller_get(unsigned int index)
{
	return index < n_pollers ? &pollers[index] : NULL;
}

unsigned int
vhp_poller_count(void)
{
	return n_pollers;
}

static int
poller_init(struct vhp_poller *p, const struct vhp_poller_conf *conf, unsigned int index,
	unsigned int lcore)
{
	struct epoll_event control = {.events = EPOLLIN, .data.ptr = NULL};
	size_t qsbr_bytes = rte_rcu_qsbr_get_memsize(1);

	p->index = index;
	p->lcore = lcore;
	vhp_window_init(&p->window, rte_get_tsc_hz(), conf->poll_max_us, conf->poll_waste_percent,
		rte_rdtsc());
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->control_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->list = &p->lists[0];
	p->qsbr = rte_zmalloc_socket(
		"vhp_qsbr", qsbr_bytes, RTE_CACHE_LINE_SIZE, rte_lcore_to_socket_id(lcore));
	if (p->epoll_fd < 0 || p->control_fd < 0 || p->qsbr == NULL)
		return -ENOMEM;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->control_fd, &control) < 0)
		return -errno;
	if (rte_rcu_qsbr_init(p->qsbr, 1) != 0 || rte_rcu_qsbr_thread_register(p->qsbr, 0) != 0)
		return -EINVAL;
	return 0;
}

static void
poller_fini(struct vhp_poller *p)
{
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	if (p->control_fd >= 0)
		close(p->control_fd);
	rte_free(p->qsbr);
}

int
vhp_pollers_start(const struct vhp_poller_conf *conf)
{
	unsigned int lcore;
	unsigned int n = rte_lcore_count() - 1;

	if (n == 0) {
		VHP_LOG(ERR, "%s", "no worker lcore for a poller");
		return -ENODEV;
	}
	pollers = rte_zmalloc("vhp_pollers", n * sizeof(*pollers), RTE_CACHE_LINE_SIZE);
	if (pollers == NULL)
		return -ENOMEM;
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		struct vhp_poller *p = &pollers[n_pollers];
		int ret = poller_init(p, conf, n_pollers, lcore);

		n_pollers++;
		if (ret == 0)
			ret = rte_eal_remote_launch(poller_main, p, lcore);
		if (ret < 0) {
			VHP_LOG(ERR, "poller on lcore %u: %s", lcore, strerror(-ret));
			vhp_pollers_stop();
			return ret;
		}
	}
	return n_pollers;
}

void
vhp_pollers_stop(void)
{
	for (unsigned int i = 0; i < n_pollers; i++) {
		struct vhp_poller *p = &pollers[i];

		__atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
		if (p->control_fd >= 0)
			eventfd_write(p->control_fd, 1);
		rte_eal_wait_lcore(p->lcore);
		poller_fini(p);
	}
	rte_free(pollers);
	pollers = NULL;
	n_pollers = 0;
}
