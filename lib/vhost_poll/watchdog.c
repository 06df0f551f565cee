/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "watchdog.h"

/* How long a write may block, twice at worst. */
#define PERIOD_NS 5000000L

/* glibc knows the field under its kernel name only. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void
on_signal(int sig)
{
	(void)sig;
}

int
vhp_watchdog_init(struct vhp_watchdog *dog)
{
	/* No SA_RESTART: the point is that the call at hand fails. */
	struct sigaction sa = {.sa_handler = on_signal};
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};

	sigemptyset(&sa.sa_mask);
	ev.sigev_notify_thread_id = gettid();
	if (sigaction(SIGRTMIN, &sa, NULL) < 0 ||
		timer_create(CLOCK_MONOTONIC, &ev, &dog->timer) < 0)
		return -errno;
	return 0;
}

static void
set_period(struct vhp_watchdog *dog, long ns)
{
	struct itimerspec ts = {.it_interval = {0, ns}, .it_value = {0, ns}};

	timer_settime(dog->timer, 0, &ts, NULL);
}

void
vhp_watchdog_arm(struct vhp_watchdog *dog)
{
	set_period(dog, PERIOD_NS);
}

void
vhp_watchdog_disarm(struct vhp_watchdog *dog)
{
	set_period(dog, 0);
}

void
vhp_watchdog_fini(struct vhp_watchdog *dog)
{
	timer_delete(dog->timer);
}
