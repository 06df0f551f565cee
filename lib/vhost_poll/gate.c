/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection behind the public socket, as a machine of six states:
 *
 *   NONE ---- a front end connects -----> READ
 *   READ ---- whole message, relayed ---> ANSWER   (before() first, if it changes rings)
 *             a memory table -----------> CLEAR, and from there to ANSWER
 *   ANSWER -- DPDK's answer ------------> READ, or BARRIER for a message that changes rings
 *   BARRIER - answer to a GET_FEATURES -> READ     (after())
 *   REPLY --- front end takes its answer -> READ   (only if it did not at once)
 *
 * DPDK answers before it has finished with a message (it tells its application of rings
 * that became ready afterwards), but reads the next one only then: hence the barrier.
 * A message that has no answer of its own gets the flag that asks DPDK for one.
 *
 * DPDK takes a memory table with the addresses of the one before for the same memory,
 * although other files may lie behind it; and it touches rings of the old table while it
 * maps the new one. An empty table in between (CLEAR) cures both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>

#include "gate.h"
#include "gate_socket.h"
#include "log.h"

/* A message that has begun must be whole by then. */
#define MESSAGE_MS     1000
/* DPDK answers at once; a poller's pass and a large munmap lie in between. */
#define ANSWER_MS      10000
/* Client mode: time to the next attempt. */
#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 1000

enum gate_state { GATE_NONE, GATE_READ, GATE_CLEAR, GATE_ANSWER, GATE_BARRIER, GATE_REPLY };

struct vhp_gate {
	struct vhp_loop *loop;
	struct vhp_gate_conf conf;
	const struct vhp_gate_ops *ops;
	void *ctx;

	enum gate_state state;
	int listen_fd; /* server */
	struct stat listen_file;
	int timer_fd; /* message time limit; client: next attempt */
	int front_fd;
	int back_fd;
	unsigned int backoff_ms;
	uint64_t messages; /* of this connection */

	struct vhp_vu_reader front; /* the message at hand, until its answer is out */
	struct vhp_vu_reader back;
	struct vhp_vu_msg answer; /* held back while the barrier is up */
	bool ok;                  /* DPDK carried it out */

	struct vhp_log_limit log;
	struct vhp_refusal refusals[VHP_GATE_REFUSALS];
};

static void front_ready(void *ctx, uint32_t events);

/* Reasons are constant strings, each from one place. */
static void
count_refusal(struct vhp_gate *g, const char *why)
{
	for (unsigned int i = 0; i < RTE_DIM(g->refusals); i++) {
		struct vhp_refusal *r = &g->refusals[i];

		if (r->why == NULL)
			__atomic_store_n(&r->why, why, __ATOMIC_RELEASE);
		if (r->why == why) {
			r->count++;
			return;
		}
	}
}

static void
set_timer(struct vhp_gate *g, unsigned int ms)
{
	struct itimerspec ts = {.it_value = {ms / 1000, ms % 1000 * 1000000L}};

	timerfd_settime(g->timer_fd, 0, &ts, NULL);
}

static void
drop_fd(struct vhp_gate *g, int *fd)
{
	if (*fd < 0)
		return;
	vhp_loop_unwatch(g->loop, *fd);
	close(*fd);
	*fd = -1;
}

/* The device gives everything up before the descriptors are closed. */
void
vhp_gate_hang_up(struct vhp_gate *g, const char *why)
{
	if (g->state == GATE_NONE)
		return;
	VHP_LOG_LIMITED(&g->log, INFO, "%s: front end disconnected: %s", g->conf.name, why);
	g->state = GATE_NONE;
	g->ops->disconnected(g->ctx);
	drop_fd(g, &g->front_fd);
	drop_fd(g, &g->back_fd);
	vhp_vu_reader_reset(&g->front);
	vhp_vu_reader_reset(&g->back);
	if (g->conf.client) {
		/* Who hangs up before it said anything is not asked again at once. */
		if (g->messages > 0)
			g->backoff_ms = BACKOFF_MIN_MS;
		set_timer(g, g->backoff_ms);
	} else {
		set_timer(g, 0);
	}
}

/* The message at hand is done with: take the next. */
static void
next_message(struct vhp_gate *g)
{
	vhp_vu_reader_reset(&g->front);
	vhp_vu_reader_reset(&g->back);
	g->state = GATE_READ;
	g->messages++;
	set_timer(g, 0);
	vhp_loop_watch(g->loop, g->front_fd, EPOLLIN, front_ready, g);
}

/* Answer the front end, when it takes the answer, and go on with its next message. */
static void
reply(struct vhp_gate *g, const struct vhp_vu_msg *answer)
{
	int ret = vhp_vu_send(g->front_fd, answer);

	if (ret == 0) {
		next_message(g);
	} else if (ret != -EAGAIN) {
		vhp_gate_hang_up(g, "it does not take its answers");
	} else if (g->state != GATE_REPLY) {
		g->answer = *answer;
		g->state = GATE_REPLY;
		set_timer(g, MESSAGE_MS);
		vhp_loop_watch(g->loop, g->front_fd, EPOLLOUT, front_ready, g);
	}
}

/* Refuse a whole message: with an error where one was asked for, else by hanging up. */
static void
refuse(struct vhp_gate *g, const char *why)
{
	const struct vhp_vu_header *h = &g->front.msg.header;
	const struct vhp_request_info *info = vhp_request_info(h->request);

	count_refusal(g, why);
	VHP_LOG_LIMITED(&g->log, WARNING, "%s: %s (request %u) refused: %s", g->conf.name,
		info->name ? info->name : "message", h->request, why);
	if (!(h->flags & VU_NEED_REPLY) || info->replies || info->name == NULL) {
		vhp_gate_hang_up(g, "message refused");
		return;
	}
	struct vhp_vu_msg answer = vhp_vu_make_u64(h->request, VU_REPLY, 1);

	reply(g, &answer);
}

static void
finish(struct vhp_gate *g)
{
	struct vhp_vu_msg *msg = &g->front.msg;
	bool wants = vhp_request_info(msg->header.request)->replies ||
		     (msg->header.flags & VU_NEED_REPLY);

	g->ops->after(g->ctx, msg, &g->answer, g->ok);
	if (!g->ok && !wants)
		vhp_gate_hang_up(g, "message could not be carried out");
	else if (wants)
		reply(g, &g->answer);
	else
		next_message(g);
}

static int
relay(struct vhp_gate *g, const struct vhp_vu_msg *msg)
{
	struct vhp_vu_msg out = *msg;

	if (!vhp_request_info(msg->header.request)->replies)
		out.header.flags |= VU_NEED_REPLY;
	set_timer(g, ANSWER_MS);
	return vhp_vu_send(g->back_fd, &out);
}

/* Relay the message at hand. */
static void
pass_on(struct vhp_gate *g)
{
	vhp_vu_reader_reset(&g->back);
	g->state = GATE_ANSWER;
	if (relay(g, &g->front.msg) < 0)
		vhp_gate_hang_up(g, "back end gone");
}

static void
clear_memory(struct vhp_gate *g)
{
	const struct vhp_vu_msg empty = {
		.header = {VU_SET_MEM_TABLE, VU_VERSION,
			offsetof(struct vhp_vu_mem_table, regions)},
	};

	g->state = GATE_CLEAR;
	if (relay(g, &empty) < 0)
		vhp_gate_hang_up(g, "back end gone");
}

static void
barrier(struct vhp_gate *g)
{
	const struct vhp_vu_msg ask = {.header = {VU_GET_FEATURES, VU_VERSION, 0}};

	vhp_vu_reader_reset(&g->back);
	g->state = GATE_BARRIER;
	if (relay(g, &ask) < 0)
		vhp_gate_hang_up(g, "back end gone");
}

static void
back_ready(void *ctx, uint32_t events)
{
	struct vhp_gate *g = ctx;
	const struct vhp_vu_msg *msg = &g->back.msg;
	const char *why;
	int ret = vhp_vu_read(g->back_fd, &g->back, &why);

	(void)events;
	if (ret == 0)
		return;
	if (ret < 0 || g->state == GATE_READ) {
		vhp_gate_hang_up(g, "the vhost library closed the connection");
		return;
	}
	if (g->state == GATE_CLEAR) {
		pass_on(g);
		return;
	}
	if (g->state == GATE_BARRIER) {
		finish(g);
		return;
	}
	const struct vhp_request_info *info = vhp_request_info(g->front.msg.header.request);

	g->answer = *msg;
	g->ok = info->replies || msg->u64 == 0;
	if (info->changes)
		barrier(g);
	else
		finish(g);
}

/* One that DPDK is not asked. */
static void
answer_own(struct vhp_gate *g)
{
	struct vhp_vu_msg *msg = &g->front.msg;
	struct vhp_vu_msg answer = vhp_vu_make_u64(msg->header.request, VU_REPLY, 0);
	bool wants = vhp_request_info(msg->header.request)->replies ||
		     (msg->header.flags & VU_NEED_REPLY);

	/* DPDK cannot be told how many queues the device has. */
	if (msg->header.request == VU_GET_QUEUE_NUM) {
		answer.u64 = g->conf.n_queues;
	} else if (g->ops->own == NULL || !g->ops->own(g->ctx, msg, &answer)) {
		refuse(g, "not a request of this kind of device");
		return;
	}
	if (wants)
		reply(g, &answer);
	else
		next_message(g);
}

/* A whole message of the front end. */
static void
handle(struct vhp_gate *g)
{
	struct vhp_vu_msg *msg = &g->front.msg;
	const char *why = vhp_gate_check(msg, g->conf.n_rings);

	if (why != NULL) {
		refuse(g, why);
		return;
	}
	if (vhp_request_info(msg->header.request)->own) {
		answer_own(g);
		return;
	}
	/* Until the answer is out only the end of the connection is of interest. */
	vhp_loop_watch(g->loop, g->front_fd, EPOLLRDHUP, front_ready, g);
	if (vhp_request_info(msg->header.request)->changes)
		g->ops->before(g->ctx, msg);
	if (msg->header.request == VU_SET_MEM_TABLE)
		clear_memory(g);
	else
		pass_on(g);
}

static void
front_ready(void *ctx, uint32_t events)
{
	struct vhp_gate *g = ctx;
	bool had_part = g->front.have_bytes > 0;
	const char *why;

	if (g->state != GATE_READ) {
		if (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
			vhp_gate_hang_up(g, "closed by the front end");
		else if (g->state == GATE_REPLY)
			reply(g, &g->answer);
		return;
	}
	int ret = vhp_vu_read(g->front_fd, &g->front, &why);

	if (ret < 0) {
		if (ret == -EPROTO)
			count_refusal(g, why);
		vhp_gate_hang_up(g, why);
	} else if (ret > 0) {
		handle(g);
	} else if (!had_part && g->front.have_bytes > 0) {
		set_timer(g, MESSAGE_MS);
	}
}

/* A front end is there: connect it with DPDK. Owns front_fd. */
static int
connect_through(struct vhp_gate *g, int front_fd)
{
	int ret;

	g->front_fd = front_fd;
	g->back_fd = vhp_socket_connect(g->conf.backend_path);
	ret = g->back_fd < 0 ? g->back_fd : 0;
	if (ret == 0)
		ret = vhp_loop_watch(g->loop, g->back_fd, EPOLLIN, back_ready, g);
	if (ret == 0)
		ret = vhp_loop_watch(g->loop, g->front_fd, EPOLLIN, front_ready, g);
	if (ret < 0) {
		VHP_LOG(ERR, "%s: cannot serve a front end: %s", g->conf.name, strerror(-ret));
		drop_fd(g, &g->front_fd);
		drop_fd(g, &g->back_fd);
		return ret;
	}
	VHP_LOG_LIMITED(&g->log, INFO, "%s: front end connected", g->conf.name);
	g->state = GATE_READ;
	g->messages = 0;
	set_timer(g, 0);
	g->ops->connected(g->ctx);
	return 0;
}

static void
listen_ready(void *ctx, uint32_t events)
{
	struct vhp_gate *g = ctx;
	int fd = accept4(g->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	if (g->state != GATE_NONE && vhp_socket_is_dead(g->front_fd))
		vhp_gate_hang_up(g, "closed by the front end");
	if (g->state != GATE_NONE) {
		VHP_LOG_LIMITED(
			&g->log, WARNING, "%s: a second front end was turned away", g->conf.name);
		close(fd);
		return;
	}
	connect_through(g, fd);
}

/* Client mode: one attempt; the next after a pause that grows. */
static void
attempt(struct vhp_gate *g)
{
	int fd = vhp_socket_connect(g->conf.path);

	if (fd >= 0 && connect_through(g, fd) == 0) {
		g->backoff_ms =
			g->backoff_ms * 2 < BACKOFF_MAX_MS ? g->backoff_ms * 2 : BACKOFF_MAX_MS;
		return;
	}
	set_timer(g, g->backoff_ms);
	if (fd < 0)
		g->backoff_ms =
			g->backoff_ms * 2 < BACKOFF_MAX_MS ? g->backoff_ms * 2 : BACKOFF_MAX_MS;
}

static void
timer_ready(void *ctx, uint32_t events)
{
	struct vhp_gate *g = ctx;
	uint64_t expirations;

	(void)events;
	if (read(g->timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	switch (g->state) {
	case GATE_NONE:
		attempt(g);
		break;
	case GATE_READ:
		count_refusal(g, "not whole in time");
		vhp_gate_hang_up(g, "half a message");
		break;
	case GATE_REPLY:
		vhp_gate_hang_up(g, "it does not take its answers");
		break;
	case GATE_CLEAR:
	case GATE_ANSWER:
	case GATE_BARRIER:
		vhp_gate_hang_up(g, "the vhost library does not answer");
		break;
	}
}

int
vhp_gate_open(struct vhp_loop *loop, const struct vhp_gate_conf *conf,
	const struct vhp_gate_ops *ops, void *ctx, struct vhp_gate **out)
{
	struct vhp_gate *g = calloc(1, sizeof(*g));
	int ret = -ENOMEM;

	if (g == NULL)
		goto fail;
	*g = (struct vhp_gate){.loop = loop,
		.conf = *conf,
		.ops = ops,
		.ctx = ctx,
		.listen_fd = -1,
		.front_fd = -1,
		.back_fd = -1,
		.backoff_ms = BACKOFF_MIN_MS};
	g->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	ret = g->timer_fd < 0 ? -errno : vhp_loop_watch(loop, g->timer_fd, EPOLLIN, timer_ready, g);
	if (ret == 0 && !conf->client) {
		g->listen_fd = vhp_socket_listen(conf, &g->listen_file);
		ret = g->listen_fd < 0
			      ? g->listen_fd
			      : vhp_loop_watch(loop, g->listen_fd, EPOLLIN, listen_ready, g);
	}
	if (ret < 0)
		goto fail;
	if (conf->client)
		attempt(g);
	*out = g;
	return 0;
fail:
	VHP_LOG(ERR, "%s: iface = \"%s\": %s", conf->name, conf->path, strerror(-ret));
	vhp_gate_close(g);
	return ret;
}

void
vhp_gate_close(struct vhp_gate *g)
{
	if (g == NULL)
		return;
	vhp_gate_hang_up(g, "the device is being removed");
	if (g->listen_fd >= 0) {
		vhp_socket_remove(g->conf.path, &g->listen_file);
		drop_fd(g, &g->listen_fd);
	}
	drop_fd(g, &g->timer_fd);
	free(g);
}

bool
vhp_gate_connected(const struct vhp_gate *g)
{
	return g->state != GATE_NONE;
}

const struct vhp_refusal *
vhp_gate_refusals(const struct vhp_gate *g)
{
	return g != NULL ? g->refusals : NULL;
}
