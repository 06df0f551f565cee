/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device of DPDK's as a host port: with eth_intr.c the only file that speaks to ethdev.
 *
 * Back pressure: mbufs that the driver does not take stay in the queue, and so do their
 * frames in the transmitq. The frames are offered again; those that have mbufs already are
 * not copied a second time. Received mbufs wait in the queue until the guest has buffers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "eth_intr.h"
#include "eth_mbuf.h"
#include "ethdev.h"
#include "log.h"

/* Descriptors of each of the driver's queues, if it does not wish for more. */
#define DESCRIPTORS      512
/* Mbufs of a queue that may wait for the driver: a burst, and more where frames are cut. */
#define OUT_MBUFS        (VHP_OFFLOAD_MAX_SEGMENTS + VHP_BURST_PKTS)
/* Mbufs that each core keeps at hand. */
#define POOL_CACHE_MBUFS 256
/* Room of an mbuf where a frame cannot be a chain of them. */
#define LONG_ROOM_BYTES  9728

/* A frame that was offered and not yet returned. */
struct out_frame {
	uint16_t n_mbufs; /* not yet sent */
	uint8_t drop;
};

struct eth_queue {
	struct vhp_port_queue pq;
	uint16_t port_id;
	uint16_t index;
	uint64_t features; /* what the guest accepted; main thread, while no poller has it */
	struct eth_mbuf_ctx ctx;

	/* Poller. out[out_head..out_tail) are the mbufs of frames[0..n_frames). */
	struct rte_mbuf *out[OUT_MBUFS];
	uint16_t out_head, out_tail;
	struct out_frame frames[VHP_BURST_PKTS];
	uint16_t n_frames;
	const void *first; /* where the first of them lies in guest memory */

	struct rte_mbuf *in[VHP_BURST_PKTS];
	uint16_t in_head, in_tail;
	struct eth_intr intr;
};

struct eth_port {
	struct vhp_port port;
	uint16_t port_id;
	bool started;
	struct rte_mempool *pool;
	struct eth_queue *queues;
};

/* ---- transmit -------------------------------------------------------------------- */

/* The frames will not be offered again as they were. */
static void
forget_out(struct eth_queue *q)
{
	rte_pktmbuf_free_bulk(q->out + q->out_head, q->out_tail - q->out_head);
	q->out_head = q->out_tail = q->n_frames = 0;
}

static const void *
place(const struct vhp_frame *f)
{
	return f->n_iov > 0 ? f->iov[0].iov_base : NULL;
}

/* A driver may have a say about a frame with requests. */
static bool
driver_takes(struct eth_queue *q, struct rte_mbuf *m)
{
	return m->ol_flags == 0 || rte_eth_tx_prepare(q->port_id, q->index, &m, 1) == 1;
}

/* Mbufs of the frames that have none yet. */
static void
convert(struct eth_queue *q, struct vhp_frame *frames, uint16_t n)
{
	if (q->out_head == q->out_tail)
		q->out_head = q->out_tail = 0;
	for (uint16_t i = q->n_frames; i < n; i++) {
		struct out_frame *o = &q->frames[i];
		struct rte_mbuf **out = q->out + q->out_tail;
		enum vhp_drop drop = frames[i].drop;
		uint16_t made = 0;

		if (likely(drop == VHP_OK))
			made = eth_mbuf_from_frame(&q->ctx, &frames[i], q->pq.hdr_bytes, out,
				OUT_MBUFS - q->out_tail, &drop);
		if (made == 0 && drop == VHP_OK)
			return;
		if (made == 1 && unlikely(!driver_takes(q, out[0]))) {
			rte_pktmbuf_free(out[0]);
			made = 0;
			drop = VHP_DROP_HEADER;
		}
		*o = (struct out_frame){.n_mbufs = made, .drop = drop};
		q->out_tail += made;
		q->n_frames++;
	}
}

static uint16_t
send_out(struct eth_queue *q)
{
	uint16_t total = 0;

	while (q->out_head < q->out_tail) {
		uint16_t sent = rte_eth_tx_burst(
			q->port_id, q->index, q->out + q->out_head, q->out_tail - q->out_head);

		if (sent == 0)
			break;
		q->out_head += sent;
		total += sent;
	}
	return total;
}

/* Frames at the front that are done with, after so many mbufs more were sent. */
static uint16_t
settle(struct eth_queue *q, struct vhp_frame *frames, uint16_t n, uint16_t sent)
{
	uint16_t done = 0;

	for (uint16_t i = 0; i < q->n_frames && sent > 0; i++) {
		uint16_t of_this = RTE_MIN(sent, q->frames[i].n_mbufs);

		q->frames[i].n_mbufs -= of_this;
		sent -= of_this;
	}
	while (done < RTE_MIN(n, q->n_frames) && q->frames[done].n_mbufs == 0) {
		frames[done].drop = q->frames[done].drop;
		done++;
	}
	q->n_frames -= done;
	memmove(q->frames, q->frames + done, q->n_frames * sizeof(q->frames[0]));
	return done;
}

static uint16_t
eth_tx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct eth_queue *q = container_of(pq, struct eth_queue, pq);
	uint16_t done;

	if (q->n_frames > 0 && unlikely(place(&frames[0]) != q->first))
		forget_out(q);
	convert(q, frames, n);
	done = settle(q, frames, n, send_out(q));
	if (unlikely(done < n)) {
		q->first = place(&frames[done]);
		pq->wait = VHP_PORT_BUSY;
	}
	return done;
}

/* ---- receive --------------------------------------------------------------------- */

static void
look(struct eth_queue *q)
{
	if (q->in_head < q->in_tail)
		return;
	q->in_head = 0;
	q->in_tail = rte_eth_rx_burst(q->port_id, q->index, q->in, VHP_BURST_PKTS);
	if (q->in_tail > 0)
		q->intr.vain = 0;
}

static uint16_t
eth_rx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct eth_queue *q = container_of(pq, struct eth_queue, pq);
	uint16_t done = 0;

	look(q);
	while (done < n && q->in_head < q->in_tail) {
		struct rte_mbuf *m = q->in[q->in_head++];

		if (likely(eth_mbuf_to_frame(
			    &q->ctx, m, pq->hdr_bytes, q->features, &frames[done])))
			done++;
		else
			pq->refused++;
		rte_pktmbuf_free(m);
	}
	pq->pending = q->in_head < q->in_tail;
	return done;
}

static int
eth_arm(struct vhp_port_queue *pq)
{
	struct eth_queue *q = container_of(pq, struct eth_queue, pq);

	if (eth_intr_on(&q->intr) < 0)
		return -1;
	look(q);
	pq->pending = q->in_head < q->in_tail;
	return pq->pending;
}

static void
eth_disarm(struct vhp_port_queue *pq)
{
	eth_intr_off(&container_of(pq, struct eth_queue, pq)->intr);
}

/* ---- life ------------------------------------------------------------------------ */

static int
eth_configure(struct vhp_port_queue *pq, uint64_t virtio_features)
{
	struct eth_queue *q = container_of(pq, struct eth_queue, pq);

	/* The ring goes on where it stood: unsent frames are offered again. */
	forget_out(q);
	q->features = virtio_features;
	return 0;
}

/* Which queue a frame comes to is up to the device. */
static int
eth_steer(struct vhp_port_queue *pq, bool on)
{
	(void)pq;
	(void)on;
	return 0;
}

static int
eth_set_mtu(struct vhp_port *port, uint16_t mtu_bytes)
{
	const struct eth_port *eth = container_of(port, struct eth_port, port);
	uint16_t now_bytes;
	int ret = rte_eth_dev_get_mtu(eth->port_id, &now_bytes);

	if (ret < 0 || now_bytes >= mtu_bytes)
		return ret;
	ret = rte_eth_dev_set_mtu(eth->port_id, mtu_bytes);
	/* A driver without this has no limit to set. */
	return ret == -ENOTSUP ? 0 : ret;
}

uint64_t
vhp_ethdev_features(void)
{
	return 1ULL << VIRTIO_NET_F_CSUM | 1ULL << VIRTIO_NET_F_GUEST_CSUM |
	       1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6 |
	       1ULL << VIRTIO_NET_F_HOST_ECN | 1ULL << VHP_NET_F_HOST_USO;
}

static uint64_t
eth_features(const struct vhp_port *port)
{
	(void)port;
	return vhp_ethdev_features();
}

static void
eth_close(struct vhp_port *port)
{
	struct eth_port *eth = container_of(port, struct eth_port, port);

	for (uint16_t i = 0; eth->queues != NULL && i < port->n_queues; i++) {
		struct eth_queue *q = &eth->queues[i];

		forget_out(q);
		rte_pktmbuf_free_bulk(q->in + q->in_head, q->in_tail - q->in_head);
		free(q->ctx.bounce);
	}
	if (eth->started) {
		rte_eth_dev_stop(eth->port_id);
		/* It gives back the mbufs that are inside the driver. */
		rte_eth_dev_close(eth->port_id);
	}
	rte_mempool_free(eth->pool);
	free(port->queues);
	free(eth->queues);
	free(eth);
}

static const struct vhp_port_ops eth_ops = {
	.tx = eth_tx,
	.rx = eth_rx,
	.arm = eth_arm,
	.disarm = eth_disarm,
	.configure = eth_configure,
	.steer = eth_steer,
	.set_mtu = eth_set_mtu,
	.features = eth_features,
	.close = eth_close,
};

/* Offloads that we use, of those that the driver has. */
static void
choose_offloads(const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	const uint64_t tx = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
			    RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
			    RTE_ETH_TX_OFFLOAD_TCP_TSO;
	const uint64_t rx = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_UDP_CKSUM |
			    RTE_ETH_RX_OFFLOAD_TCP_CKSUM;

	conf->txmode.offloads = info->tx_offload_capa & tx;
	conf->rxmode.offloads = info->rx_offload_capa & rx;
}

static bool
has_all(uint64_t offloads, uint64_t wanted)
{
	return (offloads & wanted) == wanted;
}

/* The pool of all queues: what may be in the driver, in our hands and in the cores' caches. */
static int
make_pool(struct eth_port *eth, const struct rte_eth_dev_info *info,
	const struct rte_eth_conf *conf, uint16_t n_rxd, uint16_t n_txd)
{
	/* Twice the receive descriptors: af_xdp, for one, asks for so many before it starts. */
	unsigned int n = eth->port.n_queues * (2 * n_rxd + n_txd + OUT_MBUFS + VHP_BURST_PKTS) +
			 rte_lcore_count() * POOL_CACHE_MBUFS;
	uint16_t room_bytes = RTE_MBUF_DEFAULT_BUF_SIZE;
	char name[RTE_MEMPOOL_NAMESIZE];

	/* Not where the driver itself wants frames small, as af_xdp with its pages. */
	if (!(conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) &&
		RTE_MIN(info->max_mtu, info->max_rx_pktlen) >= LONG_ROOM_BYTES)
		room_bytes = RTE_PKTMBUF_HEADROOM + LONG_ROOM_BYTES;
	snprintf(name, sizeof(name), "vhp_port%u", eth->port_id);
	eth->pool = rte_pktmbuf_pool_create(
		name, n, POOL_CACHE_MBUFS, 0, room_bytes, rte_eth_dev_socket_id(eth->port_id));
	return eth->pool != NULL ? 0 : -rte_errno;
}

static int
set_up_queues(struct eth_port *eth, const struct rte_eth_dev_info *info,
	const struct rte_eth_conf *conf, uint16_t n_rxd, uint16_t n_txd)
{
	struct rte_eth_rxconf rx = info->default_rxconf;
	struct rte_eth_txconf tx = info->default_txconf;
	int socket = rte_eth_dev_socket_id(eth->port_id);
	int ret = 0;

	rx.offloads = conf->rxmode.offloads;
	tx.offloads = conf->txmode.offloads;
	for (uint16_t i = 0; i < eth->port.n_queues && ret == 0; i++) {
		ret = rte_eth_rx_queue_setup(eth->port_id, i, n_rxd, socket, &rx, eth->pool);
		if (ret == 0)
			ret = rte_eth_tx_queue_setup(eth->port_id, i, n_txd, socket, &tx);
	}
	return ret;
}

/* With the configuration at hand; may be tried again with another. */
static int
start_with(struct eth_port *eth, const struct rte_eth_dev_info *info,
	const struct rte_eth_conf *conf, uint16_t n_rxd, uint16_t n_txd)
{
	int ret = rte_eth_dev_configure(eth->port_id, eth->port.n_queues, eth->port.n_queues, conf);

	if (ret == 0)
		ret = rte_eth_dev_adjust_nb_rx_tx_desc(eth->port_id, &n_rxd, &n_txd);
	if (ret == 0 && eth->pool == NULL)
		ret = make_pool(eth, info, conf, n_rxd, n_txd);
	if (ret == 0)
		ret = set_up_queues(eth, info, conf, n_rxd, n_txd);
	if (ret == 0)
		ret = rte_eth_dev_start(eth->port_id);
	return ret;
}

static int
start(struct eth_port *eth, struct rte_eth_conf *conf)
{
	struct rte_eth_dev_info info;
	uint16_t n_rxd, n_txd;
	int ret = rte_eth_dev_info_get(eth->port_id, &info);

	if (ret < 0)
		return ret;
	if (eth->port.n_queues > RTE_MIN(info.max_rx_queues, info.max_tx_queues)) {
		VHP_LOG(ERR, "%s: has %u queues at most", eth->port.name,
			RTE_MIN(info.max_rx_queues, info.max_tx_queues));
		return -EINVAL;
	}
	n_rxd = RTE_MAX(info.default_rxportconf.ring_size, DESCRIPTORS);
	n_txd = RTE_MAX(info.default_txportconf.ring_size, DESCRIPTORS);
	choose_offloads(&info, conf);
	if (eth->port.n_queues > 1 && info.flow_type_rss_offloads != 0) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads &
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	}
	conf->intr_conf.rxq = 1;
	ret = start_with(eth, &info, conf, n_rxd, n_txd);
	if (ret < 0) {
		conf->intr_conf.rxq = 0;
		ret = start_with(eth, &info, conf, n_rxd, n_txd);
	}
	eth->started = ret == 0;
	/* A guest has addresses that the device does not know; some drivers take all anyhow. */
	if (ret == 0)
		rte_eth_promiscuous_enable(eth->port_id);
	return ret;
}

/* What an idle queue is woken by. Returns false if it is not. */
static bool
open_interrupt(struct eth_port *eth, uint16_t index)
{
	struct eth_queue *q = &eth->queues[index];

	eth_intr_open(&q->intr, eth->port_id, index);
	/* One for several queues: the first has it. */
	for (uint16_t i = 0; i < index; i++)
		if (eth->queues[i].intr.fd == q->intr.fd)
			q->intr.fd = -1;
	q->pq.fd = q->intr.fd;
	return q->pq.fd >= 0;
}

static int
open_queues(struct eth_port *eth, const struct rte_eth_conf *conf)
{
	uint64_t tx = conf->txmode.offloads;
	unsigned int without = 0;

	for (uint16_t i = 0; i < eth->port.n_queues; i++) {
		struct eth_queue *q = &eth->queues[i];

		q->pq = (struct vhp_port_queue){.port = &eth->port, .fd = -1};
		q->port_id = eth->port_id;
		q->index = i;
		q->ctx = (struct eth_mbuf_ctx){
			.pool = eth->pool,
			.bounce = malloc(VHP_MAX_FRAME_BYTES),
			.chains = tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
			.tx_csum = has_all(
				tx, RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM),
			.tx_tso = has_all(
				tx, RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS),
			.tx_ip_csum = tx & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM,
		};
		if (q->ctx.bounce == NULL)
			return -ENOMEM;
		eth->port.queues[i] = &q->pq;
		without += !open_interrupt(eth, i);
	}
	if (without > 0)
		VHP_LOG(INFO,
			"%s: %u queues without a receive interrupt: looked at by time while idle",
			eth->port.name, without);
	return 0;
}

int
vhp_ethdev_open(const struct vhp_ethdev_conf *conf, struct vhp_port **out)
{
	struct eth_port *eth = calloc(1, sizeof(*eth));
	struct rte_eth_conf eth_conf = {0};
	int ret = -ENOMEM;

	if (eth == NULL)
		return -ENOMEM;
	snprintf(eth->port.name, sizeof(eth->port.name), "%.*s", VHP_NAME_BYTES - 1, conf->name);
	eth->port.ops = &eth_ops;
	eth->port.n_queues = conf->queues;
	eth->queues = calloc(conf->queues, sizeof(eth->queues[0]));
	eth->port.queues = calloc(conf->queues, sizeof(eth->port.queues[0]));
	if (eth->queues != NULL && eth->port.queues != NULL)
		ret = rte_eth_dev_get_port_by_name(conf->name, &eth->port_id);
	if (ret == 0)
		ret = start(eth, &eth_conf);
	if (ret == 0)
		ret = open_queues(eth, &eth_conf);
	if (ret < 0) {
		VHP_LOG(ERR, "%s: DPDK's driver cannot be used: %s", conf->name, strerror(-ret));
		eth_close(&eth->port);
		return ret;
	}
	*out = &eth->port;
	return 0;
}
