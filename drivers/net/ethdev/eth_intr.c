/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a driver gives to sleep on differs: an eventfd that the kernel (VFIO) or another process
 * (virtio_user) writes, and that has to be read before it can be slept on again; /dev/uio, where
 * a read takes what was counted; a completion channel that the driver reads itself when its
 * interrupt is switched off (mlx5); or the frames' own descriptor (tap), which is never ours to
 * read. All are watched as levels: what was not taken ends the next sleep, too, so that the only
 * mistake left is to wake in vain. That has a bound, as a sleep that always ends at once is a
 * busy loop.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_log.h>

#include "eth_intr.h"

/* Told so often of frames that were not there: not believed until there is one. */
#define VAIN_MAX 64

/* Longest count that a read takes. */
union count {
	uint64_t eventfd;
	uint32_t uio;
};

static uint8_t
bytes_to_drain(int fd)
{
	static const char uio[] = "/dev/uio";
	char link[32], name[64] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, name, sizeof(name) - 1) < 0)
		return 0;
	if (strcmp(name, "anon_inode:[eventfd]") == 0)
		return sizeof(((union count *)NULL)->eventfd);
	if (strncmp(name, uio, strlen(uio)) == 0)
		return sizeof(((union count *)NULL)->uio);
	return 0;
}

/* That there is none is not an error, as DPDK would log it. */
static int
descriptor(uint16_t port_id, uint16_t queue)
{
	int level = rte_log_get_level(rte_eth_dev_logtype);
	int fd;

	rte_log_set_level(rte_eth_dev_logtype, RTE_LOG_CRIT);
	fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port_id, queue);
	rte_log_set_level(rte_eth_dev_logtype, level);
	return fd;
}

void
eth_intr_open(struct eth_intr *in, uint16_t port_id, uint16_t queue)
{
	int ret;

	*in = (struct eth_intr){
		.fd = descriptor(port_id, queue), .port_id = port_id, .queue = queue};
	if (in->fd < 0)
		return;
	in->drain_bytes = bytes_to_drain(in->fd);
	ret = rte_eth_dev_rx_intr_enable(port_id, queue);
	in->by_driver = ret == 0;
	in->on = true;
	eth_intr_off(in);
	/* Frames make their own descriptor readable; an eventfd needs somebody to write it. */
	if (ret != 0 && (ret != -ENOTSUP || in->drain_bytes > 0))
		in->fd = -1;
	in->vain = 0;
}

int
eth_intr_on(struct eth_intr *in)
{
	if (in->vain >= VAIN_MAX)
		return -1;
	if (in->by_driver && rte_eth_dev_rx_intr_enable(in->port_id, in->queue) != 0)
		return -1;
	in->on = true;
	/* Nor does a processor look at the queue before the driver has been told. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

void
eth_intr_off(struct eth_intr *in)
{
	struct pollfd pfd = {.fd = in->fd, .events = POLLIN};
	union count count;

	if (!in->on)
		return;
	in->on = false;
	if (in->by_driver)
		rte_eth_dev_rx_intr_disable(in->port_id, in->queue);
	if (poll(&pfd, 1, 0) <= 0)
		return;
	in->vain++;
	/* It is readable, and nobody else reads it: this does not block. */
	if (in->drain_bytes > 0 && read(in->fd, &count, in->drain_bytes) < 0)
		in->vain = VAIN_MAX;
}
