/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptors that calls and kicks go through (vring.c). The front end owns their other
 * ends, and may have made anything of them.
 */
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "rig.h"

/* Something for the guest to be called for. */
static void
use(struct rig *e)
{
	e->frames[0] = (struct vhp_frame){0};
	rig_put(e, 1);
}

static void
call_writes_the_eventfd(void **state)
{
	struct rig *e = rig_new(8, false, 0);
	eventfd_t count;

	(void)state;
	/* Without a descriptor the guest polls. */
	use(e);
	vhp_vring_call(&e->vr);
	assert_int_equal(e->vr.stats.calls, 0);
	e->vr.call_fd = eventfd(0, EFD_NONBLOCK);
	use(e);
	vhp_vring_call(&e->vr);
	use(e);
	vhp_vring_call(&e->vr);
	assert_int_equal(e->vr.stats.calls, 2);
	assert_int_equal(eventfd_read(e->vr.call_fd, &count), 0);
	assert_int_equal(count, 2);
	e->r.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	use(e);
	vhp_vring_call(&e->vr);
	assert_int_equal(e->vr.stats.calls, 2);
	assert_int_equal(eventfd_read(e->vr.call_fd, &count), -1);
	assert_int_equal(e->vr.fault, VHP_RING_OK);
	close(e->vr.call_fd);
	rig_free(e);
}

/* A counter that is full is a call that was not taken yet: nothing is wrong. */
static void
call_with_a_full_counter(void **state)
{
	struct rig *e = rig_new(8, false, 0);

	(void)state;
	e->vr.call_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(eventfd_write(e->vr.call_fd, UINT64_MAX - 1), 0);
	use(e);
	vhp_vring_call(&e->vr);
	assert_int_equal(e->vr.fault, VHP_RING_OK);
	assert_int_equal(e->vr.stats.calls, 0);
	close(e->vr.call_fd);
	rig_free(e);
}

static void
on_alarm(int sig)
{
	(void)sig;
}

/* The same where the front end made it blocking: the watchdog's signal ends the ring. */
static void
call_that_blocks(void **state)
{
	struct sigaction sa = {.sa_handler = on_alarm};
	struct itimerval every = {.it_interval = {0, 20000}, .it_value = {0, 20000}};
	struct itimerval never = {{0, 0}, {0, 0}};
	struct rig *e = rig_new(8, false, 0);

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
	e->vr.call_fd = eventfd(0, 0);
	assert_int_equal(eventfd_write(e->vr.call_fd, UINT64_MAX - 1), 0);
	use(e);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	vhp_vring_call(&e->vr);
	setitimer(ITIMER_REAL, &never, NULL);
	assert_int_equal(e->vr.fault, VHP_RING_CALL);
	assert_int_equal(rig_faults(), 1);
	close(e->vr.call_fd);
	rig_free(e);
}

/* A pipe whose reader is gone, and a descriptor that cannot be written. */
static void
call_that_fails(void **state)
{
	int fds[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 2; i++) {
		struct rig *e = rig_new(8, false, 0);

		assert_int_equal(pipe(fds), 0);
		e->vr.call_fd = fds[i == 0];
		if (i == 0)
			close(fds[0]);
		use(e);
		vhp_vring_call(&e->vr);
		assert_int_equal(e->vr.fault, VHP_RING_CALL);
		assert_int_equal(e->vr.stats.calls, 0);
		close(fds[1]);
		if (i != 0)
			close(fds[0]);
		rig_free(e);
	}
}

/* Kicks are taken without waiting, whatever the front end made of the descriptor. */
static void
kicks_are_taken(void **state)
{
	static const int flags[] = {0, EFD_NONBLOCK, EFD_SEMAPHORE, EFD_SEMAPHORE | EFD_NONBLOCK};
	struct rig *e = rig_new(8, false, 0);
	int fds[2];

	(void)state;
	for (size_t i = 0; i < RTE_DIM(flags); i++) {
		e->vr.kick_fd = eventfd(1, flags[i]);
		e->vr.stats.kicks = 0;
		vhp_vring_drain_kick(&e->vr);
		assert_int_equal(e->vr.stats.kicks, 1);
		/* Empty now: the front end took the kick back. */
		vhp_vring_drain_kick(&e->vr);
		close(e->vr.kick_fd);
	}
	/* Case W8: a pipe; one that holds less than a counter; its reading end missing. */
	assert_int_equal(pipe(fds), 0);
	e->vr.kick_fd = fds[0];
	vhp_vring_drain_kick(&e->vr);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	vhp_vring_drain_kick(&e->vr);
	e->vr.kick_fd = fds[1];
	vhp_vring_drain_kick(&e->vr);
	assert_int_equal(e->vr.fault, VHP_RING_OK);
	close(fds[0]);
	close(fds[1]);
	rig_free(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(call_writes_the_eventfd),
		cmocka_unit_test(call_with_a_full_counter),
		cmocka_unit_test(call_that_blocks),
		cmocka_unit_test(call_that_fails),
		cmocka_unit_test(kicks_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
