/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What there is to sleep on (eth_intr.c), for each kind of driver: eventfds, the frames' own
 * descriptor, none, and one that tells of frames which are not there. ethdev is this file.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "checks.h"
#include "eth_intr.h"

/* More often than it is believed in vain. */
#define STORM 1000

static struct {
	int fd;
	int enable_ret;
	int n_enable, n_disable;
	bool on;
} driver;

int __wrap_rte_eth_dev_rx_intr_ctl_q_get_fd(uint16_t port_id, uint16_t queue);
int __wrap_rte_eth_dev_rx_intr_enable(uint16_t port_id, uint16_t queue);
int __wrap_rte_eth_dev_rx_intr_disable(uint16_t port_id, uint16_t queue);

int
__wrap_rte_eth_dev_rx_intr_ctl_q_get_fd(uint16_t port_id, uint16_t queue)
{
	assert_int_equal(port_id, 3);
	assert_int_equal(queue, 2);
	return driver.fd;
}

int
__wrap_rte_eth_dev_rx_intr_enable(uint16_t port_id, uint16_t queue)
{
	assert_int_equal(port_id, 3);
	assert_int_equal(queue, 2);
	assert_false(driver.on);
	driver.n_enable++;
	driver.on = driver.enable_ret == 0;
	return driver.enable_ret;
}

int
__wrap_rte_eth_dev_rx_intr_disable(uint16_t port_id, uint16_t queue)
{
	assert_int_equal(port_id, 3);
	assert_int_equal(queue, 2);
	assert_true(driver.on);
	driver.n_disable++;
	driver.on = false;
	return 0;
}

static struct eth_intr
open_with(int fd, int enable_ret)
{
	struct eth_intr in;

	driver.fd = fd;
	driver.enable_ret = enable_ret;
	driver.n_enable = driver.n_disable = 0;
	driver.on = false;
	eth_intr_open(&in, 3, 2);
	assert_false(driver.on);
	return in;
}

static bool
readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

/* What was told is taken, also when it came from before the port was opened. */
static void
eventfd_is_drained(void **state)
{
	int fd = eventfd(5, EFD_CLOEXEC);
	struct eth_intr in = open_with(fd, 0);

	(void)state;
	assert_int_equal(in.fd, fd);
	assert_false(readable(fd));
	for (int i = 1; i <= STORM; i++) {
		assert_int_equal(eth_intr_on(&in), 0);
		assert_true(driver.on);
		eventfd_write(fd, 3);
		assert_true(readable(fd));
		eth_intr_off(&in);
		assert_false(driver.on);
		assert_false(readable(fd));
		/* Once is enough, and without a storm there is nothing to forgive. */
		eth_intr_off(&in);
		assert_int_equal(driver.n_disable, 1 + i);
		in.vain = 0;
	}
	assert_int_equal(driver.n_enable, 1 + STORM);
	close(fd);
}

/* As net_tap: what can be read is the frame. */
static void
frames_are_left_alone(void **state)
{
	int fds[2];
	struct eth_intr in;
	char frame[4];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	in = open_with(fds[0], -ENOTSUP);
	assert_int_equal(in.fd, fds[0]);
	assert_int_equal(eth_intr_on(&in), 0);
	assert_int_equal(write(fds[1], "one", 4), 4);
	eth_intr_off(&in);
	assert_int_equal(read(fds[0], frame, sizeof(frame)), 4);
	assert_string_equal(frame, "one");
	assert_int_equal(driver.n_enable, 1);
	assert_int_equal(driver.n_disable, 0);
	close(fds[0]);
	close(fds[1]);
}

static void
nothing_to_sleep_on(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	assert_int_equal(open_with(-1, 0).fd, -1);
	assert_int_equal(driver.n_enable, 0);
	/* Nobody would write it. */
	assert_int_equal(open_with(fd, -ENOTSUP).fd, -1);
	assert_int_equal(open_with(fd, -EIO).fd, -1);
	close(fd);
}

static void
driver_refuses_later(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	struct eth_intr in = open_with(fd, 0);

	(void)state;
	driver.enable_ret = -EIO;
	assert_int_equal(eth_intr_on(&in), -1);
	eth_intr_off(&in);
	assert_int_equal(driver.n_disable, 1);
	driver.enable_ret = 0;
	assert_int_equal(eth_intr_on(&in), 0);
	close(fd);
}

/* Not slept on any more, until a frame comes. */
static void
storm_ends(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	struct eth_intr in = open_with(fd, 0);
	int slept = 0;

	(void)state;
	for (int round = 1; round <= 3; round++) {
		for (int i = 0; i < STORM; i++) {
			slept += eth_intr_on(&in) == 0;
			eventfd_write(fd, 1);
			eth_intr_off(&in);
		}
		assert_in_range(slept, round, round * STORM / 10);
		in.vain = 0;
	}
	assert_int_equal(driver.n_enable, 1 + slept);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eventfd_is_drained),
		cmocka_unit_test(frames_are_left_alone),
		cmocka_unit_test(nothing_to_sleep_on),
		cmocka_unit_test(driver_refuses_later),
		cmocka_unit_test(storm_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
