/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The main thread's event loop: sockets, signals and timers, all as descriptors. The
 * table is indexed by descriptor, so an event for one that was unwatched (or closed and
 * reused) by an earlier callback of the same batch is recognised and left out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "vhost_poll.h"

#define EVENTS 64

struct entry {
	vhp_loop_cb cb; /* NULL: not watched */
	void *ctx;
	uint32_t serial;
};

struct vhp_loop {
	int epoll_fd;
	bool stop;
	uint32_t serial;
	int n_entries;
	struct entry *entries;
};

struct vhp_loop *
vhp_loop_create(void)
{
	struct vhp_loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return NULL;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		free(loop);
		return NULL;
	}
	return loop;
}

void
vhp_loop_destroy(struct vhp_loop *loop)
{
	if (loop == NULL)
		return;
	close(loop->epoll_fd);
	free(loop->entries);
	free(loop);
}

static int
grow(struct vhp_loop *loop, int fd)
{
	int n = fd + 64;
	struct entry *entries;

	if (fd < loop->n_entries)
		return 0;
	entries = realloc(loop->entries, n * sizeof(*entries));
	if (entries == NULL)
		return -ENOMEM;
	memset(entries + loop->n_entries, 0, (n - loop->n_entries) * sizeof(*entries));
	loop->entries = entries;
	loop->n_entries = n;
	return 0;
}

int
vhp_loop_watch(struct vhp_loop *loop, int fd, uint32_t events, vhp_loop_cb cb, void *ctx)
{
	struct epoll_event ev = {.events = events};
	struct entry *e;
	int ret = grow(loop, fd);

	if (ret < 0)
		return ret;
	e = &loop->entries[fd];
	ev.data.u64 = (uint64_t)(loop->serial + 1) << 32 | (uint32_t)fd;
	if (epoll_ctl(loop->epoll_fd, e->cb != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	*e = (struct entry){.cb = cb, .ctx = ctx, .serial = ++loop->serial};
	return 0;
}

void
vhp_loop_unwatch(struct vhp_loop *loop, int fd)
{
	if (fd < 0 || fd >= loop->n_entries || loop->entries[fd].cb == NULL)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	loop->entries[fd].cb = NULL;
}

int
vhp_loop_run(struct vhp_loop *loop)
{
	struct epoll_event events[EVENTS];

	for (loop->stop = false; !loop->stop;) {
		int n = epoll_wait(loop->epoll_fd, events, EVENTS, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n && !loop->stop; i++) {
			const struct entry *e = &loop->entries[(uint32_t)events[i].data.u64];

			if (e->cb != NULL && e->serial == events[i].data.u64 >> 32)
				e->cb(e->ctx, events[i].events);
		}
	}
	return 0;
}

void
vhp_loop_stop(struct vhp_loop *loop)
{
	loop->stop = true;
}
