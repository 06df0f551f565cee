/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's vhost library as a device uses it: the protocol and the mapping of memory, with
 * an external back end (rte_vhost_driver_set_features), so that rings are ours alone.
 *
 * Its callbacks run on the vhost-events thread. Rings start and stop by what the gate
 * sees, before DPDK acts; so here is only a connection's id to keep, and a device to take
 * back from its pollers should DPDK drop it on its own account.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_vhost.h>

#include "log.h"
#include "net_dev.h"
#include "poller.h"

static struct vhp_net_dev *
find_by_vid(int vid)
{
	char path[VHP_PATH_BYTES];
	struct vhp_net_dev *dev;

	if (rte_vhost_get_ifname(vid, path, sizeof(path)) < 0)
		return NULL;
	vhp_net_devs_lock();
	TAILQ_FOREACH (dev, &vhp_net_devs, link)
		if (strcmp(dev->backend_path, path) == 0)
			break;
	vhp_net_devs_unlock();
	/* It lives until its socket is unregistered, which waits for our callbacks. */
	return dev;
}

static int
on_new_connection(int vid)
{
	struct vhp_net_dev *dev = find_by_vid(vid);

	if (dev == NULL)
		return -1;
	__atomic_store_n(&dev->vid, vid, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Memory is unmapped after this. The gate has stopped the rings, unless DPDK gave up first.
 * The next connection may have come before: only our own id is taken back.
 */
static void
on_destroy_connection(int vid)
{
	struct vhp_net_dev *dev = find_by_vid(vid);

	if (dev == NULL || __atomic_load_n(&dev->vid, __ATOMIC_ACQUIRE) != vid)
		return;
	vhp_detach(dev->qpair_list, dev->conf.queues);
	__atomic_compare_exchange_n(&dev->vid, &vid, -1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static int
on_new_device(int vid)
{
	(void)vid;
	return 0;
}

/* Of no interest: a stopped ring is one the gate has seen stop. */
static void
on_destroy_device(int vid)
{
	(void)vid;
}

static const struct rte_vhost_device_ops callbacks = {
	.new_device = on_new_device,
	.destroy_device = on_destroy_device,
	.new_connection = on_new_connection,
	.destroy_connection = on_destroy_connection,
};

int
vhp_vhost_lib_register(struct vhp_net_dev *dev)
{
	const uint64_t net = 1ULL << VU_PROTOCOL_F_MQ | 1ULL << VU_PROTOCOL_F_LOG_SHMFD |
			     1ULL << VU_PROTOCOL_F_RARP | 1ULL << VU_PROTOCOL_F_REPLY_ACK |
			     1ULL << VU_PROTOCOL_F_NET_MTU;
	const uint64_t protocol = dev->kind != NULL ? dev->kind->protocol_features : net;
	int n = snprintf(dev->backend_path, sizeof(dev->backend_path), "%s/%s.sock",
		rte_eal_get_runtime_dir(), dev->conf.name);

	if (n >= (int)sizeof(dev->backend_path))
		return -ENAMETOOLONG;
	/* Left behind by a daemon that was killed; EAL lets only one live in this directory. */
	unlink(dev->backend_path);
	if (rte_vhost_driver_register(dev->backend_path, 0) < 0)
		return -EIO;
	if (rte_vhost_driver_set_features(dev->backend_path, dev->offered) < 0 ||
		rte_vhost_driver_set_protocol_features(dev->backend_path, protocol) < 0 ||
		rte_vhost_driver_callback_register(dev->backend_path, &callbacks) < 0 ||
		rte_vhost_driver_start(dev->backend_path) < 0) {
		rte_vhost_driver_unregister(dev->backend_path);
		return -EIO;
	}
	return 0;
}

void
vhp_vhost_lib_unregister(struct vhp_net_dev *dev)
{
	rte_vhost_driver_unregister(dev->backend_path);
	unlink(dev->backend_path);
}
