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

/* One turn each. Returns the longest poll window of the qpairs. */
static uint64_t
pass(const struct vhp_qpair_list *list, uint64_t now_tsc, struct vhp_work *total)
{
	uint64_t window = 0;

	for (uint32_t i = 0; i < list->n; i++) {
		struct vhp_qpair *qp = list->qpairs[i];
		struct vhp_work work = {0};

		qp->turn(qp, now_tsc, &work);
		qp->stats.turns++;
		qp->stats.turns_busy += work.pkts > 0;
		total->pkts += work.pkts;
		window = RTE_MAX(window, qp->poll_cycles);
	}
	return window;
}

static int
poller_main(void *arg)
{
	struct vhp_poller *p = arg;
	struct vhp_poller_stats *stats = &p->stats;
	uint64_t last_tsc = rte_rdtsc();
	uint64_t work_tsc = last_tsc;

	if (vhp_watchdog_init(&p->watchdog) < 0)
		return -1;
	vhp_watchdog_arm(&p->watchdog);
	rte_rcu_qsbr_thread_online(p->qsbr, 0);
	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		uint64_t generation = __atomic_load_n(&p->generation, __ATOMIC_ACQUIRE);
		const struct vhp_qpair_list *list = __atomic_load_n(&p->list, __ATOMIC_ACQUIRE);
		struct vhp_work work = {0};
		uint64_t window = pass(list, last_tsc, &work);
		uint64_t now = rte_rdtsc();

		stats->passes++;
		if (work.pkts > 0) {
			stats->passes_busy++;
			stats->busy_cycles += now - last_tsc;
			work_tsc = now;
		} else {
			stats->poll_cycles += now - last_tsc;
		}
		last_tsc = now;
		if (now - work_tsc > window || list->n == 0) {
			vhp_idle(p, list, generation);
			last_tsc = work_tsc = rte_rdtsc();
		}
		/* Nothing of this pass is held any more; detach waits for this. */
		rte_rcu_qsbr_quiescent(p->qsbr, 0);
	}
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
poller_init(struct vhp_poller *p, unsigned int index, unsigned int lcore)
{
	struct epoll_event control = {.events = EPOLLIN, .data.ptr = NULL};
	size_t qsbr_bytes = rte_rcu_qsbr_get_memsize(1);

	p->index = index;
	p->lcore = lcore;
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
vhp_pollers_start(void)
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
		int ret = poller_init(p, n_pollers, lcore);

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
