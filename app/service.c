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

#include "ports.h"
#include "service.h"

struct service {
	const struct config *config;
	struct vhp_loop *loop;
	int signal_fd;
	int stats_fd; /* timer of --stats, -1: none */
	struct timespec printed;
	struct vhp_port **ports;      /* per pair, NULL: not open */
	struct vhp_net_dev **devices; /* per pair, NULL: not made */
};

static void
end_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

void
service_block_signals(void)
{
	sigset_t set;

	end_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* A reader of the counters who goes away does not end the daemon. */
	signal(SIGPIPE, SIG_IGN);
}

static void
on_signal(void *ctx, uint32_t events)
{
	struct service *service = ctx;
	struct signalfd_siginfo info;

	(void)events;
	if (read(service->signal_fd, &info, sizeof(info)) == sizeof(info))
		vhp_loop_stop(service->loop);
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

	end_signals(&set);
	service->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (service->signal_fd < 0)
		return -errno;
	return vhp_loop_watch(service->loop, service->signal_fd, EPOLLIN, on_signal, service);
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
service_create(const struct config *config)
{
	struct service *service = calloc(1, sizeof(*service));
	int rc = -ENOMEM;

	if (service == NULL)
		return NULL;
	service->config = config;
	service->signal_fd = service->stats_fd = -1;
	service->ports = calloc(config->n_pairs, sizeof(*service->ports));
	service->devices = calloc(config->n_pairs, sizeof(*service->devices));
	service->loop = vhp_loop_create();
	if (service->loop == NULL)
		rc = -errno;
	else if (service->ports != NULL && service->devices != NULL)
		rc = watch_signals(service);
	if (rc == 0)
		rc = start_stats(service);
	if (rc == 0)
		return service;
	service_destroy(service);
	errno = -rc;
	return NULL;
}

int
service_open_ports(struct service *service)
{
	int rc = 0;

	for (unsigned int i = 0; i < service->config->n_pairs && rc == 0; i++)
		rc = port_open(service->config, i, service->loop, &service->ports[i]);
	return rc;
}

void
service_close_ports(struct service *service)
{
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
		rc = vhp_control_start(service->loop, service->config->rebalance_s);
	return rc;
}

void
service_destroy_devices(struct service *service)
{
	vhp_control_stop();
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
	close_watched(service, service->stats_fd);
	close_watched(service, service->signal_fd);
	vhp_loop_destroy(service->loop);
	free(service->devices);
	free(service->ports);
	free(service);
}
