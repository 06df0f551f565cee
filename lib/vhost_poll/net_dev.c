/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Life of a network device: made and destroyed by the application, driven by what the
 * gate lets through.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <linux/virtio_config.h>

#include "net_features.h"
#include "log.h"
#include "net_dev.h"
#include "poller.h"
#include "rarp.h"

struct vhp_net_devs vhp_net_devs = TAILQ_HEAD_INITIALIZER(vhp_net_devs);

static pthread_mutex_t devs_lock = PTHREAD_MUTEX_INITIALIZER;

/* Wakes the main thread for broken rings; there while there are devices. */
static int fault_fd = -1;

void
vhp_net_devs_lock(void)
{
	pthread_mutex_lock(&devs_lock);
}

void
vhp_net_devs_unlock(void)
{
	pthread_mutex_unlock(&devs_lock);
}

static struct vhp_net_ring *
ring_of_file(struct vhp_net_dev *dev, const struct vhp_vu_msg *msg)
{
	return &dev->rings[msg->u64 & VU_RING_INDEX_MASK];
}

/* Keep the message's descriptor, or none, in the place of the one before. */
static void
keep_fd(struct vhp_vu_msg *msg, int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	if (msg->n_fds == 1) {
		*fd = msg->fds[0];
		msg->fds[0] = -1;
	}
}

/* The front end starts a ring: whatever broke it before is forgotten. */
static void
start_by_kick(struct vhp_net_dev *dev, struct vhp_vu_msg *msg)
{
	unsigned int index = msg->u64 & VU_RING_INDEX_MASK;
	struct vhp_net_ring *ring = &dev->rings[index];

	keep_fd(msg, &ring->kick_fd);
	/* QEMU accepts the feature for crypto, too, and then enables no ring. */
	if (!(dev->features >> VU_F_PROTOCOL_FEATURES & 1) ||
		(dev->kind != NULL && !ring->switched_off))
		ring->enabled = true;
	ring->started = true;
	ring->fault_reported = false;
	vhp_dev_vring(dev, index)->fault = VHP_RING_OK;
}

static void
reset_rings(struct vhp_net_dev *dev)
{
	for (unsigned int i = 0; i < vhp_dev_n_rings(dev); i++)
		vhp_net_ring_reset(&dev->rings[i]);
	for (uint16_t i = 0; i < dev->conf.queues; i++)
		dev->qpairs[i].rx.fault = dev->qpairs[i].tx.fault = VHP_RING_OK;
}

/* GET_VRING_BASE stops a ring until the next kick descriptor; all else of it stays. */
static void
stop_ring(struct vhp_net_ring *ring)
{
	ring->started = false;
	if (ring->kick_fd >= 0)
		close(ring->kick_fd);
	ring->kick_fd = -1;
}

/* What the VMM told the guest; the operator's own word on the port's MTU goes first. */
static void
set_mtu(struct vhp_net_dev *dev, uint64_t mtu_bytes)
{
	int ret = dev->conf.mtu_bytes != 0 ? 0 : dev->port->ops->set_mtu(dev->port, mtu_bytes);

	if (ret < 0)
		VHP_LOG(WARNING, "%s: MTU %u of the front end: %s", dev->conf.name,
			(unsigned int)mtu_bytes, strerror(-ret));
	else if (dev->conf.mtu_bytes != 0 && mtu_bytes > dev->conf.mtu_bytes)
		VHP_LOG(WARNING, "%s: the front end uses MTU %u, the device has mtu=%u",
			dev->conf.name, (unsigned int)mtu_bytes, dev->conf.mtu_bytes);
}

static void
note(struct vhp_net_dev *dev, struct vhp_vu_msg *msg)
{
	switch (msg->header.request) {
	case VU_SET_FEATURES:
		dev->features = msg->u64;
		break;
	case VU_RESET_OWNER:
		reset_rings(dev);
		break;
	case VU_SET_VRING_NUM:
		dev->rings[msg->state.index].size = msg->state.num;
		break;
	case VU_SET_VRING_ADDR:
		dev->rings[msg->addr.index].addr = msg->addr;
		dev->rings[msg->addr.index].addr_given = true;
		break;
	case VU_SET_VRING_BASE:
		dev->rings[msg->state.index].base = msg->state.num;
		break;
	case VU_GET_VRING_BASE:
		stop_ring(&dev->rings[msg->state.index]);
		break;
	case VU_SET_VRING_ENABLE:
		dev->rings[msg->state.index].enabled = msg->state.num == 1;
		dev->rings[msg->state.index].switched_off = msg->state.num == 0;
		break;
	case VU_SET_VRING_KICK:
		start_by_kick(dev, msg);
		break;
	case VU_SET_VRING_CALL:
		keep_fd(msg, &ring_of_file(dev, msg)->call_fd);
		break;
	case VU_SET_LOG_BASE:
		if (vhp_dirty_log_map(
			    &dev->log_area, msg->fds[0], msg->log.size_bytes, msg->log.offset) < 0)
			VHP_LOG_LIMITED(&dev->log, WARNING, "%s: the dirty log cannot be mapped",
				dev->conf.name);
		vhp_guard_set(dev->guard, &dev->mem, &dev->log_area);
		break;
	case VU_SEND_RARP:
		if (dev->kind == NULL)
			vhp_send_rarp(dev->qpairs[0].pq, (const uint8_t *)&msg->u64);
		break;
	case VU_NET_SET_MTU:
		set_mtu(dev, msg->u64);
		break;
	case VU_SET_VRING_ERR:
		keep_fd(msg, &ring_of_file(dev, msg)->err_fd);
		break;
	}
}

/* Of a message about one ring the other qpairs take no notice. */
static void
on_before(void *ctx, const struct vhp_vu_msg *msg)
{
	struct vhp_net_dev *dev = ctx;
	int ring = vhp_gate_ring_index(msg);

	if (ring >= 0)
		vhp_net_rings_stop(dev, ring / vhp_dev_rings_each(dev), 1);
	else
		vhp_net_rings_stop(dev, 0, dev->conf.queues);
}

static void
on_after(void *ctx, struct vhp_vu_msg *msg, struct vhp_vu_msg *answer, bool ok)
{
	struct vhp_net_dev *dev = ctx;

	/* One that could not be mapped leaves none behind. */
	if (msg->header.request == VU_SET_MEM_TABLE || msg->header.request == VU_RESET_OWNER)
		dev->lib_has_mem = ok && msg->header.request == VU_SET_MEM_TABLE;
	if (ok)
		note(dev, msg);
	/* DPDK tells the available position only; of a packed ring there are two. */
	if (msg->header.request == VU_GET_VRING_BASE && dev->features >> VIRTIO_F_RING_PACKED & 1)
		answer->state.num = dev->rings[msg->state.index].base;
	if (!vhp_request_info(msg->header.request)->changes)
		return;
	if (msg->header.request == VU_SET_MEM_TABLE || msg->header.request == VU_RESET_OWNER || !ok)
		vhp_net_rings_map(dev);
	vhp_net_rings_start(dev);
}

static bool
on_own(void *ctx, struct vhp_vu_msg *msg, struct vhp_vu_msg *answer)
{
	struct vhp_net_dev *dev = ctx;

	return dev->kind != NULL && dev->kind->message(dev, msg, answer);
}

static void
on_connected(void *ctx)
{
	(void)ctx;
}

static void
on_disconnected(void *ctx)
{
	struct vhp_net_dev *dev = ctx;

	vhp_net_rings_stop(dev, 0, dev->conf.queues);
	if (dev->kind != NULL)
		dev->kind->disconnected(dev);
	reset_rings(dev);
	dev->mem_given = dev->lib_has_mem = false;
	dev->mem.n_regions = 0;
	vhp_dirty_log_unmap(&dev->log_area);
	vhp_guard_set(dev->guard, &dev->mem, &dev->log_area);
	dev->features = 0;
	dev->node = -1;
	dev->node_reported = false;
	for (uint16_t i = 0; i < dev->conf.queues; i++)
		dev->qpairs[i].home = NULL;
}

static const struct vhp_gate_ops gate_ops = {
	.before = on_before,
	.after = on_after,
	.own = on_own,
	.connected = on_connected,
	.disconnected = on_disconnected,
};

void
vhp_net_dev_fault(void)
{
	eventfd_write(fault_fd, 1);
}

/* Tell the front end that a ring broke, if it asked to be told. */
static void
signal_error(struct vhp_net_ring *ring, const char *name)
{
	const uint64_t one = 1;
	struct vhp_watchdog dog;

	if (ring->err_fd < 0 || vhp_watchdog_init(&dog) < 0)
		return;
	vhp_watchdog_arm(&dog);
	if (write(ring->err_fd, &one, sizeof(one)) < 0)
		VHP_LOG(WARNING, "%s: error descriptor: %s", name, strerror(errno));
	vhp_watchdog_fini(&dog);
}

static void
report_fault(struct vhp_net_dev *dev, unsigned int index)
{
	struct vhp_net_ring *ring = &dev->rings[index];
	const struct vhp_vring *vr = vhp_dev_vring(dev, index);

	if (vr->fault == VHP_RING_OK || ring->fault_reported)
		return;
	ring->fault_reported = true;
	VHP_LOG_LIMITED(&dev->log, ERR, "%s: %s is broken until the front end resets it: %s",
		dev->qpairs[index / vhp_dev_rings_each(dev)].name,
		dev->kind != NULL ? "queue" : (index % 2 == 0 ? "receiveq" : "transmitq"),
		vhp_ring_fault_name(vr->fault));
	signal_error(ring, dev->conf.name);
}

static bool
memory_gone(const struct vhp_net_dev *dev)
{
	for (uint16_t i = 0; i < dev->conf.queues; i++)
		if (dev->qpairs[i].rx.fault == VHP_RING_MEMORY ||
			dev->qpairs[i].tx.fault == VHP_RING_MEMORY)
			return true;
	return false;
}

static void
fault_ready(void *ctx, uint32_t events)
{
	struct vhp_net_dev *dev;
	eventfd_t count;

	(void)ctx;
	(void)events;
	eventfd_read(fault_fd, &count);
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		for (unsigned int i = 0; i < vhp_dev_n_rings(dev); i++)
			report_fault(dev, i);
		if (vhp_guard_hit(dev->guard) || memory_gone(dev))
			vhp_gate_hang_up(dev->gate, "its guest memory is gone");
	}
}

static int
open_fault_fd(struct vhp_loop *loop)
{
	if (fault_fd >= 0)
		return 0;
	fault_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fault_fd < 0)
		return -errno;
	int ret = vhp_guard_install(vhp_net_dev_fault);

	return ret < 0 ? ret : vhp_loop_watch(loop, fault_fd, EPOLLIN, fault_ready, NULL);
}

const char *
vhp_net_dev_state(const struct vhp_net_dev *dev, uint16_t qpair)
{
	const struct vhp_qpair *qp = &dev->qpairs[qpair];
	const struct vhp_net_ring *ring = &dev->rings[vhp_dev_rings_each(dev) * qpair];
	/* The other ring of the qpair, if it has one. */
	const struct vhp_net_ring *other = &ring[vhp_dev_rings_each(dev) - 1];

	if (dev->gate == NULL || !vhp_gate_connected(dev->gate))
		return "no front end";
	if (qp->rx.fault != VHP_RING_OK || qp->tx.fault != VHP_RING_OK)
		return "ring broken";
	if (!ring->started && !other->started)
		return "rings not started";
	if (!ring->enabled && !other->enabled)
		return "rings not enabled";
	if ((dev->kind == NULL && !qp->rx.running) || !qp->tx.running)
		return "a ring cannot be served";
	if (dev->kind != NULL)
		return "serving";
	return qp->pq->wait == VHP_PORT_DOWN ? "link down" : "forwarding";
}

static int
alloc_qpairs(struct vhp_net_dev *dev)
{
	uint16_t n = dev->conf.queues;

	dev->rings = calloc(vhp_dev_n_rings(dev), sizeof(dev->rings[0]));
	dev->qpairs = calloc(n, sizeof(dev->qpairs[0]));
	dev->qpair_list = calloc(n, sizeof(dev->qpair_list[0]));
	dev->guard = vhp_guard_new();
	if (dev->guard == NULL || dev->rings == NULL || dev->qpairs == NULL ||
		dev->qpair_list == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < vhp_dev_n_rings(dev); i++)
		dev->rings[i] = (struct vhp_net_ring){.kick_fd = -1, .call_fd = -1, .err_fd = -1};
	for (uint16_t i = 0; i < n; i++) {
		struct vhp_qpair *qp = &dev->qpairs[i];

		if (vhp_qpair_init(qp, dev->conf.name, i) < 0)
			return -ENOMEM;
		qp->tx.mixed = dev->kind != NULL;
		qp->port = dev->port->ops;
		qp->pq = dev->port->queues[i];
		dev->qpair_list[i] = qp;
	}
	return 0;
}

static int
open_gate(struct vhp_net_dev *dev)
{
	struct vhp_gate_conf conf = {
		.name = dev->conf.name,
		.path = dev->conf.iface,
		.backend_path = dev->backend_path,
		.client = dev->conf.client,
		.n_rings = (uint16_t)vhp_dev_n_rings(dev),
		/* The control queue of a crypto device is not one of its queues. */
		.n_queues = dev->conf.queues - (dev->kind != NULL),
		.socket_owner = dev->conf.socket_owner,
		.socket_group = dev->conf.socket_group,
		.socket_mode = dev->conf.socket_mode,
	};

	return vhp_gate_open(dev->loop, &conf, &gate_ops, dev, &dev->gate);
}

int
vhp_dev_create(struct vhp_loop *loop, const struct vhp_net_conf *conf, struct vhp_port *port,
	const struct vhp_dev_kind *kind, struct vhp_crypto_dev *crypto, struct vhp_net_dev **out)
{
	struct vhp_net_dev *dev = calloc(1, sizeof(*dev));
	int ret;

	if (dev == NULL) {
		if (kind != NULL)
			kind->destroy(crypto);
		return -ENOMEM;
	}
	dev->conf = *conf;
	dev->loop = loop;
	dev->port = port;
	dev->kind = kind;
	dev->crypto = crypto;
	dev->vid = dev->node = -1;
	dev->offered =
		kind != NULL ? kind->features : vhp_net_features(conf, port->ops->features(port));
	/* DPDK's thread looks the device up as soon as the socket exists. */
	ret = alloc_qpairs(dev);
	if (ret == 0)
		vhp_net_set_rates(dev);
	for (uint16_t i = 0; ret == 0 && dev->kind == NULL && i < dev->conf.queues; i++)
		vhp_pcap_qpair_made(&dev->qpairs[i]);
	if (ret == 0 && conf->mtu_bytes != 0)
		ret = port->ops->set_mtu(port, conf->mtu_bytes);
	vhp_net_devs_lock();
	TAILQ_INSERT_TAIL(&vhp_net_devs, dev, link);
	vhp_net_devs_unlock();
	if (ret == 0)
		ret = open_fault_fd(loop);
	if (ret == 0) {
		ret = vhp_vhost_lib_register(dev);
		if (ret < 0)
			VHP_LOG(ERR, "%s: DPDK's vhost library cannot serve \"%s\": %s", conf->name,
				dev->backend_path, strerror(-ret));
		if (ret == 0) {
			ret = open_gate(dev);
			if (ret < 0)
				vhp_vhost_lib_unregister(dev);
		}
	}
	if (ret < 0) {
		dev->backend_path[0] = '\0';
		vhp_net_dev_destroy(dev);
		return ret;
	}
	*out = dev;
	return 0;
}

int
vhp_net_dev_create(struct vhp_loop *loop, const struct vhp_net_conf *conf, struct vhp_port *port,
	struct vhp_net_dev **out)
{
	if (conf->queues > port->n_queues || conf->queues == 0 || conf->queues > VHP_MAX_QUEUES ||
		conf->poller >= (int)vhp_poller_count() ||
		(conf->rx_poll == VHP_RX_DEFERRED && conf->poll_us == VHP_POLL_FOREVER))
		return -EINVAL;
	return vhp_dev_create(loop, conf, port, NULL, NULL, out);
}

void
vhp_net_dev_destroy(struct vhp_net_dev *dev)
{
	if (dev == NULL)
		return;
	vhp_gate_close(dev->gate);
	if (dev->backend_path[0] != '\0')
		vhp_vhost_lib_unregister(dev);
	vhp_net_devs_lock();
	TAILQ_REMOVE(&vhp_net_devs, dev, link);
	vhp_net_devs_unlock();
	if (TAILQ_EMPTY(&vhp_net_devs) && fault_fd >= 0) {
		vhp_loop_unwatch(dev->loop, fault_fd);
		close(fault_fd);
		fault_fd = -1;
	}
	for (uint16_t i = 0; dev->qpairs != NULL && i < dev->conf.queues; i++)
		vhp_qpair_fini(&dev->qpairs[i]);
	if (dev->kind != NULL)
		dev->kind->destroy(dev->crypto);
	vhp_guard_free(dev->guard);
	free(dev->rings);
	free(dev->qpairs);
	free(dev->qpair_list);
	free(dev);
}
