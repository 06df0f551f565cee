/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bare_poller.h"
#include "checks.h"

struct vhp_poller *
bare_poller_new(unsigned int index)
{
	struct vhp_poller *p = calloc(1, sizeof(*p));
	struct epoll_event control = {.events = EPOLLIN, .data.ptr = NULL};

	CHECK(p != NULL);
	p->index = index;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->control_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->list = &p->lists[0];
	p->qsbr = aligned_alloc(RTE_CACHE_LINE_SIZE, rte_rcu_qsbr_get_memsize(1));
	CHECK(p->epoll_fd >= 0 && p->control_fd >= 0);
	CHECK(epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->control_fd, &control) == 0);
	CHECK(rte_rcu_qsbr_init(p->qsbr, 1) == 0);
	CHECK(rte_rcu_qsbr_thread_register(p->qsbr, 0) == 0);
	CHECK(vhp_watchdog_init(&p->watchdog) == 0);
	return p;
}

void
bare_poller_free(struct vhp_poller *p)
{
	vhp_watchdog_fini(&p->watchdog);
	close(p->epoll_fd);
	close(p->control_fd);
	free(p->qsbr);
	free(p);
}
