/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an operator may change while traffic flows, and what changes by itself: poll
 * windows, and which poller serves a qpair.
 *
 * Telemetry calls on threads of its own, while qpairs are the main thread's to hand out:
 * so a request is left for the main thread, and its answer waited for.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_telemetry.h>

#include "balance.h"
#include "log.h"
#include "net_dev.h"

/* The main thread is never away for so long. */
#define ANSWER_S 2

/* On the main thread. @return 0 or -errno */
typedef int (*request_fn)(char *name, char *value);

static struct {
	pthread_mutex_t callers; /* one at a time */
	pthread_mutex_t lock;    /* of what follows */
	pthread_cond_t answered;
	request_fn fn; /* NULL: no request */
	char *name, *value;
	int answer;
	int event_fd; /* -1: not started */
} control = {
	.callers = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.answered = PTHREAD_COND_INITIALIZER,
	.event_fd = -1,
};

static int timer_fd = -1;
static struct vhp_loop *main_loop;

static int
ask_main_thread(request_fn fn, char *name, char *value)
{
	struct timespec until;
	int ret = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += ANSWER_S;
	pthread_mutex_lock(&control.callers);
	pthread_mutex_lock(&control.lock);
	if (control.event_fd < 0) {
		ret = -ESHUTDOWN;
	} else {
		control.fn = fn;
		control.name = name;
		control.value = value;
		eventfd_write(control.event_fd, 1);
		while (control.fn != NULL && ret == 0)
			ret = -pthread_cond_timedwait(&control.answered, &control.lock, &until);
		if (control.fn == NULL)
			ret = control.answer;
		control.fn = NULL;
	}
	pthread_mutex_unlock(&control.lock);
	pthread_mutex_unlock(&control.callers);
	return ret;
}

static void
on_request(void *ctx, uint32_t events)
{
	eventfd_t count;

	(void)ctx;
	(void)events;
	eventfd_read(control.event_fd, &count);
	pthread_mutex_lock(&control.lock);
	if (control.fn != NULL) {
		control.answer = control.fn(control.name, control.value);
		control.fn = NULL;
		pthread_cond_signal(&control.answered);
	}
	pthread_mutex_unlock(&control.lock);
}

static void
on_rebalance(void *ctx, uint32_t events)
{
	uint64_t ticks;

	(void)ctx;
	(void)events;
	if (read(timer_fd, &ticks, sizeof(ticks)) == sizeof(ticks))
		vhp_balance_run();
}

/* ---- requests, on the main thread ---------------------------------------------- */

/* Returns false if the text is no number up to max. */
static bool
parse_number(const char *text, unsigned long max, unsigned long *out)
{
	char *end;

	*out = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && *out <= max;
}

static int
set_poll_us(char *name, char *value)
{
	struct vhp_net_dev *dev;
	unsigned long us;

	if (strcmp(value, "auto") == 0)
		us = VHP_POLL_AUTO;
	else if (strcmp(value, "forever") == 0)
		us = VHP_POLL_FOREVER;
	else if (!parse_number(value, VHP_POLL_MAX_US, &us))
		return -EINVAL;
	TAILQ_FOREACH (dev, &vhp_net_devs, link)
		if (strcmp(dev->conf.name, name) == 0)
			return vhp_net_rings_poll_us(dev, us);
	return -ENODEV;
}

static int
move(char *name, char *value)
{
	struct vhp_net_dev *dev;
	unsigned long poller;

	if (!parse_number(value, vhp_poller_count() - 1, &poller))
		return -EINVAL;
	TAILQ_FOREACH (dev, &vhp_net_devs, link)
		for (uint16_t i = 0; i < dev->conf.queues; i++)
			if (strcmp(dev->qpairs[i].name, name) == 0)
				return vhp_move(&dev->qpairs[i], vhp_poller_get(poller));
	return -ENODEV;
}

static int
capture(char *name, char *value)
{
	struct vhp_net_dev *dev;

	TAILQ_FOREACH (dev, &vhp_net_devs, link)
		for (uint16_t i = 0; i < dev->conf.queues; i++)
			if (strcmp(dev->qpairs[i].name, name) == 0 && dev->kind == NULL)
				return strcmp(value, "off") == 0
					       ? vhp_pcap_stop(&dev->qpairs[i])
					       : vhp_pcap_start(main_loop, &dev->qpairs[i], value);
	return -ENODEV;
}

/* ---- telemetry ------------------------------------------------------------------- */

/* "name=value" to a request. Answers what is in force. */
static int
request(request_fn fn, const char *params, struct rte_tel_data *d)
{
	char text[RTE_TEL_MAX_STRING_LEN];
	char *value;
	int ret;

	if (params == NULL || strlen(params) >= sizeof(text))
		return -EINVAL;
	strcpy(text, params);
	value = strchr(text, '=');
	if (value == NULL)
		return -EINVAL;
	*value++ = '\0';
	ret = ask_main_thread(fn, text, value);
	if (ret < 0)
		return ret;
	rte_tel_data_string(d, params);
	return 0;
}

static int
tel_poll_us(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return request(set_poll_us, params, d);
}

static int
tel_move(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return request(move, params, d);
}

static int
tel_capture(const char *cmd, const char *params, struct rte_tel_data *d)
{
	(void)cmd;
	return request(capture, params, d);
}

static int
start_timer(unsigned int rebalance_s)
{
	struct itimerspec every = {
		.it_interval.tv_sec = rebalance_s, .it_value.tv_sec = rebalance_s};

	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer_fd < 0 || timerfd_settime(timer_fd, 0, &every, NULL) < 0)
		return -errno;
	return vhp_loop_watch(main_loop, timer_fd, EPOLLIN, on_rebalance, NULL);
}

int
vhp_control_start(struct vhp_loop *loop, unsigned int rebalance_s)
{
	int ret;

	main_loop = loop;
	control.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (control.event_fd < 0)
		return -errno;
	ret = vhp_loop_watch(loop, control.event_fd, EPOLLIN, on_request, NULL);
	/* A single poller has nobody to share with. */
	if (ret == 0 && rebalance_s > 0 && vhp_poller_count() > 1)
		ret = start_timer(rebalance_s);
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/poll_us", tel_poll_us,
			"Set the poll window of a device. Parameter: net_vhost0=N, auto or "
			"forever");
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/move", tel_move,
			"Move a qpair to another poller. Parameter: net_vhost0:0=POLLER");
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/capture", tel_capture,
			"Capture a qpair into a pcapng file, or stop. Parameter: net_vhost0:0=FILE "
			"or off");
	if (ret < 0)
		VHP_LOG(ERR, "requests at run time: %s", strerror(-ret));
	return ret;
}

static void
close_fd(int *fd)
{
	if (*fd < 0)
		return;
	vhp_loop_unwatch(main_loop, *fd);
	close(*fd);
	*fd = -1;
}

void
vhp_control_stop(void)
{
	pthread_mutex_lock(&control.lock);
	close_fd(&timer_fd);
	close_fd(&control.event_fd);
	if (control.fn != NULL) {
		control.answer = -ESHUTDOWN;
		control.fn = NULL;
		pthread_cond_signal(&control.answered);
	}
	pthread_mutex_unlock(&control.lock);
}
