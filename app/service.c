/* SPDX-License-Identifier: BSD-3-Clause */
/* See service.h. Everything here runs on the main thread. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "crypto.h"
#include "eal.h"
#include "notify.h"
#include "options.h"
#include "ports.h"
#include "reload.h"
#include "service.h"

struct service {
	struct config *config;
	unsigned int n_pollers;
	struct vhp_loop *loop;
	int signal_fd;
	int stats_fd;    /* timer of --stats, -1: none */
	int watchdog_fd; /* timer of the service manager's, -1: none */
	struct timespec printed;
	struct vhp_port **ports;       /* per pair, NULL: not open */
	struct vhp_net_dev **devices;  /* per pair, NULL: not made */
	struct crypto_devices *crypto; /* NULL: none */
};

static void
own_signals(sigset_t *set, const struct config *config)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	if (config->file != NULL)
		sigaddset(set, SIGHUP);
}

void
service_block_signals(const struct config *config)
{
	sigset_t set;

	own_signals(&set, config);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* A reader of the counters who goes away does not end the daemon. */
	signal(SIGPIPE, SIG_IGN);
}

/* ---- reading the file again ----------------------------------------------------- */

/* What it comes to, checked; nothing is touched. */
static int
read_again(const struct service *service, struct config *next, struct mistake *why)
{
	const struct config *running = service->config;

	config_init(next);
	if (options_parse(running->argc, running->argv, next, why) < 0 ||
		config_pair(next, why) < 0 || check_host(next, running, why) < 0)
		return -EINVAL;
	return eal_check_pollers(next, service->n_pollers, why);
}

/* The ports and devices of the pairs of a configuration, as far as they are made. */
struct made {
	struct vhp_port **ports;
	struct vhp_net_dev **devices;
};

static void
unmake(struct made *made, unsigned int pair)
{
	vhp_net_dev_destroy(made->devices[pair]);
	made->devices[pair] = NULL;
	if (made->ports[pair] != NULL)
		made->ports[pair]->ops->close(made->ports[pair]);
	made->ports[pair] = NULL;
}

/* All pairs with this action: first every port, as two guests have theirs together. */
static int
make(struct service *service, const struct config *next, const struct reload_pair *plan,
	enum reload_action action, struct made *made)
{
	int rc = 0;

	for (unsigned int i = 0; i < next->n_pairs && rc == 0; i++)
		if (plan[i].action == action)
			rc = port_open(next, i, service->loop, &made->ports[i]);
	for (unsigned int i = 0; i < next->n_pairs && rc == 0; i++)
		if (plan[i].action == action)
			rc = vhp_net_dev_create(service->loop,
				&next->devices[next->pairs[i].vhost].net, made->ports[i],
				&made->devices[i]);
	return rc;
}

/* Pairs that stay move to their new places; the others end, all devices before all ports. */
static void
take_over(const struct config *next, const struct reload_pair *plan, struct made *old,
	unsigned int n_old, struct made *made)
{
	for (unsigned int i = 0; i < next->n_pairs; i++) {
		int from = plan[i].old;

		if (plan[i].action != RELOAD_KEEP && plan[i].action != RELOAD_CHANGE)
			continue;
		made->devices[i] = old->devices[from];
		made->ports[i] = old->ports[from];
		old->devices[from] = NULL;
		old->ports[from] = NULL;
	}
	for (unsigned int i = n_old; i-- > 0;) {
		vhp_net_dev_destroy(old->devices[i]);
		old->devices[i] = NULL;
	}
	for (unsigned int i = n_old; i-- > 0;)
		unmake(old, i);
}

static void
change_values(const struct config *next, const struct reload_pair *plan, const struct made *made)
{
	for (unsigned int i = 0; i < next->n_pairs; i++)
		if (plan[i].action == RELOAD_CHANGE)
			vhp_net_dev_change(
				made->devices[i], &next->devices[next->pairs[i].vhost].net);
}

static void
print_reloaded(const struct reload_pair *plan, unsigned int n, unsigned int n_old)
{
	unsigned int count[RELOAD_ACTIONS] = {0};

	for (unsigned int i = 0; i < n; i++)
		count[plan[i].action]++;
	printf("reloaded: %u added, %u removed, %u made anew, %u changed, %u untouched\n",
		count[RELOAD_ADD], n_old - (n - count[RELOAD_ADD]), count[RELOAD_REPLACE],
		count[RELOAD_CHANGE], count[RELOAD_KEEP]);
}

/* New devices come first: if one cannot be made, nothing has changed. */
static int
apply(struct service *service, struct config *next, const struct reload_pair *plan,
	struct made *made, struct mistake *why)
{
	struct config *running = service->config;
	struct made old = {service->ports, service->devices};
	unsigned int n_old = running->n_pairs;
	struct config done = *running;

	if (make(service, next, plan, RELOAD_ADD, made) < 0) {
		for (unsigned int i = next->n_pairs; i-- > 0;)
			unmake(made, i);
		return mistake(why, "a new device cannot be made (its log says why)");
	}
	take_over(next, plan, &old, n_old, made);
	if (make(service, next, plan, RELOAD_REPLACE, made) < 0)
		fprintf(stderr, "dpdk-vhost-rxpoll: a device could not be made anew; it and those "
				"behind it are not served\n");
	change_values(next, plan, made);
	check_print_ignored(next, stderr);
	reload_print_deferred(running, next, stderr);
	print_reloaded(plan, next->n_pairs, n_old);
	free(old.ports);
	free(old.devices);
	service->ports = made->ports;
	service->devices = made->devices;
	/* EAL was started with these. */
	done.eal = next->eal;
	next->eal = running->eal;
	*running = *next;
	*next = done;
	return 0;
}

static void
reload(struct service *service)
{
	struct mistake why = {""};
	struct config next;
	struct made made = {0};
	struct reload_pair *plan = NULL;
	int rc = read_again(service, &next, &why);

	if (rc == 0) {
		plan = calloc(next.n_pairs + 1, sizeof(*plan));
		made.ports = calloc(next.n_pairs + 1, sizeof(*made.ports));
		made.devices = calloc(next.n_pairs + 1, sizeof(*made.devices));
		if (plan == NULL || made.ports == NULL || made.devices == NULL)
			rc = mistake(&why, "out of memory");
	}
	if (rc == 0)
		rc = reload_plan(service->config, &next, plan, &why);
	/* One that could not be made the last time is not there to be kept. */
	for (unsigned int i = 0; rc == 0 && i < next.n_pairs; i++)
		if (plan[i].old >= 0 && service->devices[plan[i].old] == NULL)
			plan[i].action = RELOAD_REPLACE;
	if (rc == 0)
		rc = apply(service, &next, plan, &made, &why);
	if (rc < 0) {
		fprintf(stderr, "dpdk-vhost-rxpoll: %s; nothing was changed\n", why.text);
		free(made.ports);
		free(made.devices);
	}
	free(plan);
	config_free(&next);
}

/* ---- signals and the clock --------------------------------------------------------- */

static void
on_signal(void *ctx, uint32_t events)
{
	struct service *service = ctx;
	struct signalfd_siginfo info;

	(void)events;
	if (read(service->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		notify_reloading();
		reload(service);
		notify("READY=1");
	} else {
		vhp_loop_stop(service->loop);
	}
}

static void
on_stats(void *ctx, uint32_t events)
{
	struct service *service = ctx;
	struct timespec now;
	uint64_t ticks;

	(void)events;
	if (read(service->stats_fd, &ticks, sizeof(ticks)) != sizeof(ticks))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	vhp_stats_print(stdout, (double)(now.tv_sec - service->printed.tv_sec) +
					(double)(now.tv_nsec - service->printed.tv_nsec) / 1e9);
	fflush(stdout);
	service->printed = now;
}

static int
watch_signals(struct service *service)
{
	sigset_t set;

	own_signals(&set, service->config);
	service->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (service->signal_fd < 0)
		return -errno;
	return vhp_loop_watch(service->loop, service->signal_fd, EPOLLIN, on_signal, service);
}

static void
on_watchdog(void *ctx, uint32_t events)
{
	struct service *service = ctx;
	uint64_t ticks;

	(void)events;
	if (read(service->watchdog_fd, &ticks, sizeof(ticks)) == sizeof(ticks) &&
		vhp_pollers_progress())
		notify("WATCHDOG=1");
}

/* Twice as often as the service manager wants it at least. */
static int
start_watchdog(struct service *service)
{
	uint64_t us = notify_watchdog_us() / 2;
	struct itimerspec every = {0};

	if (us == 0)
		return 0;
	every.it_value.tv_sec = every.it_interval.tv_sec = (time_t)(us / 1000000);
	every.it_value.tv_nsec = every.it_interval.tv_nsec = (long)(us % 1000000) * 1000;
	service->watchdog_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (service->watchdog_fd < 0 || timerfd_settime(service->watchdog_fd, 0, &every, NULL) != 0)
		return -errno;
	return vhp_loop_watch(service->loop, service->watchdog_fd, EPOLLIN, on_watchdog, service);
}

static int
start_stats(struct service *service)
{
	struct itimerspec every = {0};

	if (service->config->stats_s == 0)
		return 0;
	every.it_value.tv_sec = every.it_interval.tv_sec = service->config->stats_s;
	service->stats_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	clock_gettime(CLOCK_MONOTONIC, &service->printed);
	if (service->stats_fd < 0 || timerfd_settime(service->stats_fd, 0, &every, NULL) != 0)
		return -errno;
	return vhp_loop_watch(service->loop, service->stats_fd, EPOLLIN, on_stats, service);
}

struct service *
service_create(struct config *config, unsigned int n_pollers)
{
	struct service *service = calloc(1, sizeof(*service));
	int rc = -ENOMEM;

	if (service == NULL)
		return NULL;
	service->config = config;
	service->n_pollers = n_pollers;
	service->signal_fd = service->stats_fd = service->watchdog_fd = -1;
	service->ports = calloc(config->n_pairs + 1, sizeof(*service->ports));
	service->devices = calloc(config->n_pairs + 1, sizeof(*service->devices));
	service->loop = vhp_loop_create();
	if (service->loop == NULL)
		rc = -errno;
	else if (service->ports != NULL && service->devices != NULL)
		rc = watch_signals(service);
	if (rc == 0)
		rc = start_stats(service);
	if (rc == 0)
		rc = start_watchdog(service);
	if (rc == 0)
		return service;
	service_destroy(service);
	errno = -rc;
	return NULL;
}

struct vhp_loop *
service_loop(struct service *service)
{
	return service->loop;
}

int
service_open_ports(struct service *service)
{
	int rc = 0;

	for (unsigned int i = 0; i < service->config->n_pairs && rc == 0; i++)
		rc = port_open(service->config, i, service->loop, &service->ports[i]);
	if (rc == 0)
		rc = crypto_open(service->config, &service->crypto);
	return rc;
}

void
service_close_ports(struct service *service)
{
	crypto_close(service->crypto);
	service->crypto = NULL;
	for (unsigned int i = service->config->n_pairs; i-- > 0;) {
		if (service->ports[i] != NULL)
			service->ports[i]->ops->close(service->ports[i]);
		service->ports[i] = NULL;
	}
}

int
service_create_devices(struct service *service)
{
	int rc = 0;

	for (unsigned int i = 0; i < service->config->n_pairs && rc == 0; i++) {
		const struct device *dev =
			&service->config->devices[service->config->pairs[i].vhost];

		rc = vhp_net_dev_create(
			service->loop, &dev->net, service->ports[i], &service->devices[i]);
	}
	if (rc == 0)
		rc = crypto_create(service->crypto, service->loop);
	if (rc == 0)
		rc = vhp_control_start(service->loop, service->config->rebalance_s);
	return rc;
}

void
service_destroy_devices(struct service *service)
{
	vhp_control_stop();
	crypto_destroy(service->crypto);
	for (unsigned int i = service->config->n_pairs; i-- > 0;) {
		vhp_net_dev_destroy(service->devices[i]);
		service->devices[i] = NULL;
	}
}

int
service_run(struct service *service)
{
	return vhp_loop_run(service->loop);
}

static void
close_watched(struct service *service, int fd)
{
	if (fd < 0)
		return;
	vhp_loop_unwatch(service->loop, fd);
	close(fd);
}

void
service_destroy(struct service *service)
{
	if (service == NULL)
		return;
	close_watched(service, service->watchdog_fd);
	close_watched(service, service->stats_fd);
	close_watched(service, service->signal_fd);
	vhp_loop_destroy(service->loop);
	free(service->devices);
	free(service->ports);
	free(service);
}
