/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From what the front end described to rings that a poller serves, and back. Called
 * between two messages, when DPDK is at rest (gate.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <linux/vhost_types.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_vhost.h>

#include "balance.h"
#include "log.h"
#include "net_dev.h"
#include "mem_node.h"

static bool
has(const struct vhp_net_dev *dev, unsigned int feature)
{
	return dev->features >> feature & 1;
}

void
vhp_net_ring_reset(struct vhp_net_ring *ring)
{
	int *fds[] = {&ring->kick_fd, &ring->call_fd, &ring->err_fd};

	for (unsigned int i = 0; i < RTE_DIM(fds); i++)
		if (*fds[i] >= 0)
			close(*fds[i]);
	*ring = (struct vhp_net_ring){.kick_fd = -1, .call_fd = -1, .err_fd = -1};
}

static int
compare_regions(const void *a, const void *b)
{
	const struct rte_vhost_mem_region *x = a, *y = b;

	return x->guest_phys_addr < y->guest_phys_addr ? -1 : 1;
}

void
vhp_net_rings_map(struct vhp_net_dev *dev)
{
	struct rte_vhost_memory *table = NULL;

	dev->mem_given = false;
	dev->mem.n_regions = 0;
	/* The library does not expect to be asked for a table that it does not have. */
	if (dev->lib_has_mem)
		rte_vhost_get_mem_table(dev->vid, &table);
	if (table != NULL && table->nregions > 0 && table->nregions <= VHP_MEM_MAX_REGIONS) {
		qsort(table->regions, table->nregions, sizeof(table->regions[0]), compare_regions);
		dev->mem.n_regions = table->nregions;
		for (uint32_t i = 0; i < table->nregions; i++) {
			const struct rte_vhost_mem_region *r = &table->regions[i];

			dev->mem.regions[i] = (struct vhp_mem_region){
				.gpa = r->guest_phys_addr,
				.size_bytes = r->size,
				.hva = (uint8_t *)(uintptr_t)r->host_user_addr,
			};
			dev->user_addr[i] = r->guest_user_addr;
		}
		dev->mem_given = true;
	}
	vhp_guard_set(dev->guard, &dev->mem, &dev->log_area);
	free(table);
}

/* A ring area is used through one pointer: it must lie in one region as a whole. */
static void *
map_area(const struct vhp_net_dev *dev, uint64_t user_addr, uint64_t len_bytes, unsigned int align)
{
	for (uint32_t i = 0; i < dev->mem.n_regions; i++) {
		const struct vhp_mem_region *r = &dev->mem.regions[i];
		uint64_t offset = user_addr - dev->user_addr[i];

		if (offset < r->size_bytes && len_bytes <= r->size_bytes - offset)
			return ((uintptr_t)r->hva + offset) % align == 0 ? r->hva + offset : NULL;
	}
	return NULL;
}

static bool
map_ring(const struct vhp_net_dev *dev, const struct vhp_net_ring *ring, struct vhp_vring *vr)
{
	const uint64_t addr[VHP_RING_AREAS] = {ring->addr.desc, ring->addr.avail, ring->addr.used};
	struct vhp_ring_area areas[VHP_RING_AREAS];

	vr->ops->areas(ring->size, areas);
	for (int i = 0; i < VHP_RING_AREAS; i++) {
		vr->areas[i] = map_area(dev, addr[i], areas[i].size_bytes, areas[i].align_bytes);
		if (vr->areas[i] == NULL)
			return false;
	}
	return true;
}

/* Returns true if the ring is to be served from now on. */
static bool
start_ring(struct vhp_net_dev *dev, unsigned int index)
{
	struct vhp_net_ring *ring = &dev->rings[index];
	struct vhp_vring *vr = vhp_dev_vring(dev, index);
	/* QEMU does not say what its guest accepted of a crypto device (virtio-crypto.c). */
	bool unknown = dev->kind != NULL && !has(dev, VIRTIO_F_VERSION_1);

	vr->running = false;
	/* A transmitq that was switched off is emptied all the same (vhost-user, "Ring states"). */
	vr->discard = !ring->enabled;
	if (!dev->mem_given || !ring->started || ring->size == 0 || !ring->addr_given ||
		vr->fault != VHP_RING_OK ||
		(!ring->enabled && (vr->device_writes || vr->mixed || !ring->switched_off)))
		return false;
	vr->ops = has(dev, VIRTIO_F_RING_PACKED) ? &vhp_vring_packed : &vhp_vring_split;
	if (!map_ring(dev, ring, vr)) {
		VHP_LOG_LIMITED(&dev->log, WARNING, "%s: ring %u does not lie in guest memory",
			dev->conf.name, index);
		return false;
	}
	vr->mem = &dev->mem;
	vr->log = has(dev, VHOST_F_LOG_ALL) && dev->log_area.map != NULL ? &dev->log_area : NULL;
	vr->mem_hint = 0;
	vr->on_fault = vhp_net_dev_fault;
	vr->size = ring->size;
	vr->event_idx = has(dev, VIRTIO_RING_F_EVENT_IDX);
	vr->driver_unknown = unknown;
	vr->indirect = has(dev, VIRTIO_RING_F_INDIRECT_DESC) || unknown;
	vr->notify_on_empty = has(dev, VIRTIO_F_NOTIFY_ON_EMPTY) && !has(dev, VIRTIO_F_VERSION_1);
	vr->kick_fd = ring->kick_fd;
	vr->call_fd = ring->call_fd;
	vr->resumes = ring->left && ring->left_base == ring->base;
	vr->running = vr->ops->start(vr, ring->base);
	if (!vr->running)
		VHP_LOG_LIMITED(&dev->log, WARNING, "%s: ring %u cannot start at %u",
			dev->conf.name, index, ring->base);
	else if ((uint16_t)vr->ops->base(vr) != (uint16_t)ring->base)
		VHP_LOG_LIMITED(&dev->log, WARNING,
			"%s: ring %u goes on at slot %u, where its descriptors say that it was "
			"left, not at %u",
			dev->conf.name, index, vr->last_used, ring->base & 0x7fff);
	return vr->running;
}

static uint64_t
poll_window_cycles(const struct vhp_net_conf *conf)
{
	if (conf->poll_us == VHP_POLL_FOREVER)
		return VHP_WINDOW_FOREVER;
	if (conf->poll_us == VHP_POLL_AUTO)
		return VHP_WINDOW_AUTO;
	return rte_get_tsc_hz() * conf->poll_us / 1000000;
}

static int
configure_qpair(struct vhp_net_dev *dev, struct vhp_qpair *qp)
{
	uint16_t hdr_bytes = has(dev, VIRTIO_NET_F_MRG_RXBUF) || has(dev, VIRTIO_F_VERSION_1)
				     ? VHP_MAX_HDR_BYTES
				     : sizeof(struct virtio_net_hdr);
	int ret = 0;

	if (qp->pending_bytes > 0 &&
		((qp->features ^ dev->features) & ~(1ULL << VHOST_F_LOG_ALL))) {
		/* It has the form that was agreed on before. */
		qp->rx.stats.drops[VHP_DROP_STOPPED]++;
		qp->pending_bytes = 0;
	}
	if (qp->rx.running)
		ret = vhp_qpair_resize(qp, qp->rx.size);
	qp->features = dev->features;
	qp->hdr_bytes = hdr_bytes;
	qp->mergeable = has(dev, VIRTIO_NET_F_MRG_RXBUF);
	qp->poll_cycles = poll_window_cycles(&dev->conf);
	qp->turn = dev->conf.rx_poll == VHP_RX_DEFERRED ? vhp_turn_deferred : vhp_turn_interleave;
	if (dev->kind != NULL)
		dev->kind->choose_turn(qp);
	vhp_receiveq_start(qp);
	qp->pq->hdr_bytes = hdr_bytes;
	qp->pq->wait = VHP_PORT_READY;
	if (ret == 0)
		ret = qp->port->configure(qp->pq, dev->features);
	if (ret > 0)
		qp->rx.stats.drops[VHP_DROP_STOPPED] += ret;
	return RTE_MIN(ret, 0);
}

/* The one that was asked for, the one it had, or the best. */
static struct vhp_poller *
choose_poller(const struct vhp_net_dev *dev, const struct vhp_qpair *qp)
{
	if (qp->home != NULL)
		return qp->home;
	if (dev->conf.poller >= 0)
		return vhp_poller_get(dev->conf.poller);
	return vhp_balance_choose(qp, dev->node);
}

/* One line if the poller is far from the guest. */
static void
look_at_nodes(struct vhp_net_dev *dev, const struct vhp_poller *p)
{
	int poller_node = (int)rte_lcore_to_socket_id(p->lcore);

	if (dev->node < 0 || dev->node == poller_node || dev->node_reported)
		return;
	dev->node_reported = true;
	VHP_LOG(WARNING, "%s: the guest's memory is on NUMA node %d, poller %u on node %d",
		dev->conf.name, dev->node, p->index, poller_node);
}

int
vhp_net_rings_poll_us(struct vhp_net_dev *dev, uint32_t poll_us)
{
	if (dev->conf.rx_poll == VHP_RX_DEFERRED && poll_us == VHP_POLL_FOREVER)
		return -EINVAL;
	dev->conf.poll_us = poll_us;
	for (uint16_t i = 0; i < dev->conf.queues; i++) {
		struct vhp_qpair *qp = &dev->qpairs[i];

		__atomic_store_n(
			&qp->poll_cycles, poll_window_cycles(&dev->conf), __ATOMIC_RELAXED);
		/* Not to sleep any more begins now. */
		if (qp->poller != NULL)
			eventfd_write(qp->poller->control_fd, 1);
	}
	return 0;
}

static void
start_qpair(struct vhp_net_dev *dev, uint16_t index)
{
	struct vhp_qpair *qp = &dev->qpairs[index];
	unsigned int first = index * vhp_dev_rings_each(dev);
	bool rx = dev->kind == NULL && start_ring(dev, first);
	bool tx = start_ring(dev, first + vhp_dev_rings_each(dev) - 1);
	/* The host's side of a queue is there while used; the first takes what comes before. */
	int ret = qp->port->steer(qp->pq, rx || (tx && !qp->tx.discard) || index == 0);

	if (!rx && !tx)
		return;
	if (ret == 0)
		ret = configure_qpair(dev, qp);
	if (ret == 0) {
		struct vhp_poller *p;

		if (dev->node < 0)
			dev->node = vhp_numa_node(&dev->mem, rte_vhost_get_numa_node(dev->vid));
		p = choose_poller(dev, qp);
		look_at_nodes(dev, p);
		vhp_qpair_place(qp, dev->node);
		ret = vhp_attach(p, qp);
	}
	if (ret < 0) {
		VHP_LOG(ERR, "%s: cannot be served: %s", qp->name, strerror(-ret));
		qp->rx.running = qp->tx.running = false;
	}
}

void
vhp_net_rings_start(struct vhp_net_dev *dev)
{
	for (uint16_t i = 0; i < dev->conf.queues; i++)
		if (dev->qpairs[i].poller == NULL)
			start_qpair(dev, i);
}

void
vhp_net_rings_stop(struct vhp_net_dev *dev, uint16_t first, uint16_t n)
{
	unsigned int each = vhp_dev_rings_each(dev);

	vhp_detach(dev->qpair_list + first, n);
	for (unsigned int i = each * first; i < each * (first + n); i++) {
		struct vhp_vring *vr = vhp_dev_vring(dev, i);

		/*
		 * It was detached while asleep. If its qpair is served again without this ring,
		 * nobody may disarm it: its memory is the guest's again, or gone.
		 */
		vr->armed = false;
		if (!vr->running)
			continue;
		if (vr->device_writes)
			vhp_receiveq_untake(&dev->qpairs[i / each]);
		if (dev->kind != NULL)
			dev->kind->stopped(&dev->qpairs[i]);
		vr->running = false;
		dev->rings[i].base = dev->rings[i].left_base = vr->ops->base(vr);
		dev->rings[i].left = true;
		/* DPDK answers GET_VRING_BASE from what it is told here. */
		rte_vhost_set_vring_base(dev->vid, i, dev->rings[i].base, dev->rings[i].base);
	}
}
