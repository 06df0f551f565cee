/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-hostile: kick, call and error descriptors that are not what they should be. */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* A descriptor to hand over, and the other end if it has one. */
struct bad_fd {
	int fd, other;
};

struct kind {
	struct bad_fd (*make)(void);
};

static struct bad_fd
pipe_end(int which, bool with_other)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) != 0)
		return (struct bad_fd){-1, -1};
	if (with_other)
		return (struct bad_fd){p[which], p[!which]};
	close(p[!which]);
	return (struct bad_fd){p[which], -1};
}

static struct bad_fd
make_pipe_read(void)
{
	return pipe_end(0, true);
}

static struct bad_fd
make_pipe_no_reader(void)
{
	return pipe_end(1, false);
}

static struct bad_fd
make_pipe_no_writer(void)
{
	return pipe_end(0, false);
}

static struct bad_fd
make_pipe_full(void)
{
	struct bad_fd b = pipe_end(1, true);
	static const char page[4096];

	fcntl(b.fd, F_SETFL, O_NONBLOCK);
	while (write(b.fd, page, sizeof(page)) > 0)
		;
	/* The status flags are the file's: whoever writes next would wait. */
	fcntl(b.fd, F_SETFL, 0);
	return b;
}

static struct bad_fd
make_eventfd_full(void)
{
	struct bad_fd b = {eventfd(0, EFD_CLOEXEC), -1};

	eventfd_write(b.fd, UINT64_MAX - 1);
	return b;
}

static struct bad_fd
make_eventfd_semaphore(void)
{
	struct bad_fd b = {eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | EFD_NONBLOCK), -1};

	eventfd_write(b.fd, UINT64_MAX - 1);
	return b;
}

static struct bad_fd
make_socket(void)
{
	int s[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0)
		return (struct bad_fd){-1, -1};
	return (struct bad_fd){s[0], s[1]};
}

static struct bad_fd
make_socket_gone(void)
{
	struct bad_fd b = make_socket();

	close(b.other);
	b.other = -1;
	return b;
}

static struct bad_fd
make_timer_storm(void)
{
	const struct itimerspec ts = {{0, 20000}, {0, 20000}};
	struct bad_fd b = {timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), -1};

	timerfd_settime(b.fd, 0, &ts, NULL);
	return b;
}

/* An epoll that is always ready. */
static struct bad_fd
make_epoll(void)
{
	struct bad_fd b = {epoll_create1(EPOLL_CLOEXEC), eventfd(1, EFD_CLOEXEC)};
	struct epoll_event ev = {.events = EPOLLIN};

	epoll_ctl(b.fd, EPOLL_CTL_ADD, b.other, &ev);
	return b;
}

/* As deep as epolls may be nested: there is no room for the back end's own. */
static struct bad_fd
make_epoll_deep(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd = eventfd(1, EFD_CLOEXEC);

	for (int i = 0; i < 5; i++) {
		int outer = epoll_create1(EPOLL_CLOEXEC);

		if (epoll_ctl(outer, EPOLL_CTL_ADD, fd, &ev) != 0) {
			close(outer);
			break;
		}
		/* The inner one lives on in the outer one only while it is open somewhere. */
		fcntl(fd, F_DUPFD_CLOEXEC, 200);
		close(fd);
		fd = outer;
	}
	return (struct bad_fd){fd, -1};
}

static struct bad_fd
opened(const char *path, int flags)
{
	return (struct bad_fd){open(path, flags | O_CLOEXEC), -1};
}

static struct bad_fd
make_dev_zero(void)
{
	return opened("/dev/zero", O_RDWR);
}

static struct bad_fd
make_dev_full(void)
{
	return opened("/dev/full", O_RDWR);
}

static struct bad_fd
make_directory(void)
{
	return opened("/", O_RDONLY | O_DIRECTORY);
}

static struct bad_fd
make_o_path(void)
{
	return opened("/dev/zero", O_PATH);
}

static struct bad_fd
make_memfd(void)
{
	return (struct bad_fd){memfd_create("fe-not-an-eventfd", MFD_CLOEXEC), -1};
}

static struct bad_fd
make_tty(void)
{
	return (struct bad_fd){posix_openpt(O_RDWR | O_NOCTTY), -1};
}

static struct bad_fd
make_inotify(void)
{
	return (struct bad_fd){inotify_init1(IN_CLOEXEC), -1};
}

static struct bad_fd
make_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return (struct bad_fd){signalfd(-1, &set, SFD_CLOEXEC), -1};
}

static struct bad_fd
make_pidfd(void)
{
	return (struct bad_fd){(int)syscall(SYS_pidfd_open, getpid(), 0), -1};
}

static struct bad_fd
make_listener(void)
{
	struct bad_fd b = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};

	return b;
}

static void
close_both(const struct bad_fd *b)
{
	if (b->fd >= 0)
		close(b->fd);
	if (b->other >= 0)
		close(b->other);
}

/* What the front end's own ring says when the bad one is to be forgotten. */
static int
put_back(struct ho_run *run, uint32_t request)
{
	struct fe_ring *rings[] = {&run->net->rx[0].ring, &run->net->tx[0].ring};

	for (uint32_t i = 0; i < 2; i++) {
		int fd = request == FE_SET_VRING_KICK ? rings[i]->kick_fd : rings[i]->call_fd;
		int rc = fe_set_vring_fd(&run->net->conn, request, i, fd);

		if (rc != 0)
			return ho_must(run, "a good descriptor after a bad one", rc);
		fe_ring_kick_always(rings[i]);
	}
	return 0;
}

/* Give it to both rings. 0: taken; 1: refused. */
static int
give(struct ho_run *run, uint32_t request, int fd)
{
	for (uint32_t i = 0; i < 2; i++) {
		int rc = fe_set_vring_fd(&run->net->conn, request, i, fd);

		if (rc == -EREMOTEIO)
			return 1;
		if (rc != 0)
			return ho_must(run, "a bad descriptor", rc);
	}
	return 0;
}

/* The device need not notice kicks, but it has to live, and may not burn its CPU. */
static int
bad_kick(struct ho_run *run)
{
	struct bad_fd b = ((const struct kind *)run->c->arg)->make();
	struct ho_proc before, after;
	int rc = give(run, FE_SET_VRING_KICK, b.fd);

	if (rc == 0) {
		usleep(20000);
		ho_proc_read(run->opts->second.pid, &before);
		usleep(200000);
		ho_proc_read(run->opts->second.pid, &after);
		/* Two threads could burn 400 ms; a timer at 50 kHz costs what it costs. */
		if (after.cpu_ms - before.cpu_ms > 190 &&
			((const struct kind *)run->c->arg)->make != make_timer_storm)
			rc = fe_fault(&run->fault, "%llu ms of CPU in 200 ms of rest",
				(unsigned long long)(after.cpu_ms - before.cpu_ms));
	}
	if (rc >= 0)
		rc = put_back(run, FE_SET_VRING_KICK);
	close_both(&b);
	return rc;
}

/*
 * Calls go nowhere: descriptors come back all the same, or the ring is given up and the front
 * end is told so.
 */
static int
bad_call(struct ho_run *run)
{
	struct bad_fd b = ((const struct kind *)run->c->arg)->make();
	int rc = give(run, FE_SET_VRING_CALL, b.fd);
	bool told = false;

	for (int i = 0; i < 20 && rc == 0 && !told; i++) {
		rc = ho_ping(run);
		/* Time for the ring to break over the call that this made. */
		usleep(20000);
		told = fe_ring_take_error(&run->net->rx[0].ring) ||
		       fe_ring_take_error(&run->net->tx[0].ring);
	}
	close_both(&b);
	if (told)
		memset(&run->fault, 0, sizeof(run->fault));
	return told || rc > 0 ? 0 : rc;
}

/* Nobody can be told that the ring broke, and all the same it is only that ring. */
static int
bad_err(struct ho_run *run)
{
	struct bad_fd b = ((const struct kind *)run->c->arg)->make();
	struct fe_ring *r = &run->net->tx[0].ring;
	int rc = give(run, FE_SET_VRING_ERR, b.fd);

	if (rc >= 0 && r->cfg.packed)
		r->pdesc[r->next_avail].flags = 0xffff;
	if (rc >= 0 && !r->cfg.packed)
		__atomic_store_n(
			&r->avail->idx, (uint16_t)(r->next_avail + 1000), __ATOMIC_RELEASE);
	fe_ring_kick_always(r);
	usleep(50000);
	close_both(&b);
	return rc < 0 ? rc : 0;
}

/* W8: a pipe as kick descriptor, with one byte for each kick. */
static int
pipe_kicks(struct ho_run *run)
{
	struct bad_fd b = make_pipe_read();
	struct fe_ring *r = &run->net->tx[0].ring;
	int rc = fe_set_vring_fd(&run->net->conn, FE_SET_VRING_KICK, 1, b.fd), good = r->kick_fd;
	uint32_t rounds = ho_rounds(run, 1000);

	if (rc != 0) {
		close_both(&b);
		return rc == -EREMOTEIO ? 0 : ho_must(run, "a pipe", rc);
	}
	fcntl(b.other, F_SETFL, O_NONBLOCK);
	r->kick_fd = b.other;
	for (uint32_t i = 0; i < rounds && rc == 0; i++) {
		rc = ho_ping_tx(run);
		if (rc == 0 && i % 4 == 0)
			usleep(fe_rng_range(&run->rng, 0, 400));
	}
	r->kick_fd = good;
	if (rc == 0)
		rc = put_back(run, FE_SET_VRING_KICK);
	close_both(&b);
	return rc;
}

/* W8: the counter is as high as it can be; the front end's own writes find no room. */
static int
full_kicks(struct ho_run *run)
{
	for (int i = 0; i < 50; i++) {
		eventfd_t left = 0;

		usleep(2000);
		eventfd_read(run->net->tx[0].ring.kick_fd, &left);
		if (eventfd_write(run->net->tx[0].ring.kick_fd, UINT64_MAX - 1) != 0)
			return fe_fault(&run->fault, "test: eventfd");
		if (ho_ping(run) != 0)
			return -EPROTO;
	}
	return 0;
}

/* W8, M9: no kick descriptor at all: the ring is polled. */
static int
no_kick(struct ho_run *run)
{
	for (uint32_t i = 0; i < 2; i++)
		if (ho_must(run, "no kick descriptor",
			    fe_set_vring_fd(&run->net->conn, FE_SET_VRING_KICK, i, -1)) != 0)
			return -EPROTO;
	for (int i = 0; i < 100; i++) {
		if (ho_ping(run) != 0)
			return -EPROTO;
		usleep(fe_rng_range(&run->rng, 0, 4000));
	}
	return put_back(run, FE_SET_VRING_KICK);
}

static int
no_call(struct ho_run *run)
{
	for (uint32_t i = 0; i < 2; i++)
		if (ho_must(run, "no call descriptor",
			    fe_set_vring_fd(&run->net->conn, FE_SET_VRING_CALL, i, -1)) != 0)
			return -EPROTO;
	for (int i = 0; i < 100; i++)
		if (ho_ping(run) != 0)
			return -EPROTO;
	return put_back(run, FE_SET_VRING_CALL);
}

/* The three roles of one kind of descriptor. */
#define ROLE(role, word, name, what, run, end, make)                                               \
	{                                                                                          \
		role name, word what, run, end, 0, &(const struct kind){make}, 0                   \
	}
#define KIND(name, what, make)                                                                     \
	ROLE("kick-", "kick: ", name, what, bad_kick, HO_EITHER, make),                            \
		ROLE("call-", "call: ", name, what, bad_call, HO_LEAVE, make),                     \
		ROLE("err-", "error: ", name, what, bad_err, HO_LEAVE, make)

const struct ho_case ho_fd_cases[] = {
	{"W8-pipe", "kicks through a pipe", pipe_kicks, HO_OPEN, 0, NULL, 0},
	{"W8-full", "kicks through a counter that is full", full_kicks, HO_OPEN, 0, NULL, 0},
	{"W8-no-kick", "no kick descriptor: polled", no_kick, HO_OPEN, 0, NULL, 0},
	{"M9-no-call", "no call descriptor", no_call, HO_OPEN, 0, NULL, 0},
	KIND("pipe-read", "end of a pipe to read from", make_pipe_read),
	KIND("pipe-no-reader", "pipe without a reader", make_pipe_no_reader),
	KIND("pipe-no-writer", "pipe without a writer", make_pipe_no_writer),
	KIND("pipe-full", "full pipe that blocks", make_pipe_full),
	KIND("eventfd-full", "full eventfd that blocks", make_eventfd_full),
	KIND("semaphore", "eventfd that counts down by one", make_eventfd_semaphore),
	KIND("socket", "socket", make_socket),
	KIND("socket-gone", "socket whose peer has gone", make_socket_gone),
	KIND("timer", "timer at 50 kHz", make_timer_storm),
	KIND("epoll", "epoll that is always ready", make_epoll),
	KIND("epoll-deep", "epoll nested as deep as can be", make_epoll_deep),
	KIND("dev-zero", "/dev/zero", make_dev_zero),
	KIND("dev-full", "/dev/full", make_dev_full),
	KIND("directory", "directory", make_directory),
	KIND("o-path", "descriptor that is only a path", make_o_path),
	KIND("memfd", "file in memory", make_memfd),
	KIND("tty", "terminal", make_tty),
	KIND("inotify", "inotify", make_inotify),
	KIND("signalfd", "signalfd", make_signalfd),
	KIND("pidfd", "pidfd", make_pidfd),
	KIND("listener", "socket that is not connected", make_listener),
	{0},
};
