/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet socket as a host port; afp_priv.h says where its parts are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rte_common.h>

#include "afp_priv.h"
#include "log.h"

/* An interface that is down or gone is looked for so often. */
#define REVIVE_S 1

static int
afp_configure(struct vhp_port_queue *pq, uint64_t virtio_features)
{
	/* Frames that wait take any form when they are received. */
	container_of(pq, struct afp_queue, pq)->features = virtio_features;
	return 0;
}

/* Drop the socket that waits to be taken. */
static void
withdraw_socket(struct afp_queue *q)
{
	struct afp_socket *s = __atomic_exchange_n(&q->fresh, NULL, __ATOMIC_ACQ_REL);

	afp_socket_close(s);
	free(s);
}

/* Another socket; no poller has the queue. */
static int
replace_socket(struct afp_port *afp, struct afp_queue *q)
{
	struct afp_socket s;
	int ret;

	withdraw_socket(q);
	ret = afp_socket_open(afp, q->steered, &s);
	return ret < 0 ? ret : afp_socket_adopt(q, &s);
}

static int
afp_steer(struct vhp_port_queue *pq, bool on)
{
	struct afp_port *afp = container_of(pq->port, struct afp_port, port);
	struct afp_queue *q = container_of(pq, struct afp_queue, pq);
	int ret;

	if (afp->port.n_queues == 1 || q->steered == on)
		return 0;
	q->steered = on;
	ret = replace_socket(afp, q);
	/* Down or gone: it is opened as it should be when the interface is back. */
	return ret == -ENETDOWN || ret == -ENODEV || ret == -ENXIO ? 0 : ret;
}

static int
get_interface(const char *iface, unsigned long request, struct ifreq *ifr)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret;

	if (sock < 0)
		return -errno;
	memcpy(ifr->ifr_name, iface, IFNAMSIZ);
	ret = ioctl(sock, request, ifr) < 0 ? -errno : 0;
	close(sock);
	return ret;
}

/* The interface belongs to somebody else: its MTU is raised if need be, never lowered. */
static int
afp_set_mtu(struct vhp_port *port, uint16_t mtu_bytes)
{
	const struct afp_port *afp = container_of(port, struct afp_port, port);
	struct ifreq ifr = {0};
	int ret = get_interface(afp->conf.iface, SIOCGIFMTU, &ifr);

	if (ret < 0 || ifr.ifr_mtu >= mtu_bytes)
		return ret;
	ifr.ifr_mtu = mtu_bytes;
	return get_interface(afp->conf.iface, SIOCSIFMTU, &ifr);
}

/* To the interface the kernel does it all; from it we do what the guest cannot. */
uint64_t
vhp_af_packet_features(void)
{
	return 1ULL << VIRTIO_NET_F_CSUM | 1ULL << VIRTIO_NET_F_GUEST_CSUM |
	       1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6 |
	       1ULL << VIRTIO_NET_F_HOST_ECN | 1ULL << VIRTIO_NET_F_GUEST_TSO4 |
	       1ULL << VIRTIO_NET_F_GUEST_TSO6 | 1ULL << VIRTIO_NET_F_GUEST_ECN |
	       (afp_has_uso() ? VHP_NET_F_USO : 0);
}

static uint64_t
afp_features(const struct vhp_port *port)
{
	(void)port;
	return vhp_af_packet_features();
}

static void
free_queue(struct afp_queue *q)
{
	withdraw_socket(q);
	afp_ring_close(&q->ring);
	if (q->pq.fd >= 0)
		close(q->pq.fd);
	free(q->burst);
	free(q->iov);
	free(q->bounce);
}

static void
afp_close(struct vhp_port *port)
{
	struct afp_port *afp = container_of(port, struct afp_port, port);

	if (afp->timer_fd >= 0) {
		vhp_loop_unwatch(afp->loop, afp->timer_fd);
		close(afp->timer_fd);
	}
	for (uint16_t i = 0; afp->queues != NULL && i < port->n_queues; i++)
		free_queue(&afp->queues[i]);
	free(port->queues);
	free(afp->queues);
	free(afp);
}

static const struct vhp_port_ops afp_ops = {
	.tx = afp_tx,
	.rx = afp_rx,
	.configure = afp_configure,
	.steer = afp_steer,
	.set_mtu = afp_set_mtu,
	.features = afp_features,
	.close = afp_close,
};

/* Another socket for a queue that a poller may have: it takes it at its next turn. */
static int
offer_socket(struct afp_port *afp, struct afp_queue *q)
{
	struct afp_socket *s = malloc(sizeof(*s));
	int ret = s == NULL ? -ENOMEM : afp_socket_open(afp, q->steered, s);

	if (ret < 0) {
		free(s);
		return ret;
	}
	withdraw_socket(q);
	__atomic_store_n(&q->fresh, s, __ATOMIC_RELEASE);
	return 0;
}

/* A link that is up again goes on by itself; another interface of the name needs sockets. */
static void
revive(struct afp_port *afp, int ifindex)
{
	bool same = ifindex == afp->ifindex;

	afp->ifindex = ifindex;
	for (uint16_t i = 0; i < afp->port.n_queues; i++) {
		struct afp_queue *q = &afp->queues[i];

		if (same || offer_socket(afp, q) == 0)
			__atomic_store_n(&q->down, false, __ATOMIC_RELEASE);
	}
	VHP_LOG(NOTICE, "%s: interface %s is back", afp->port.name, afp->conf.iface);
}

static bool
any_down(const struct afp_port *afp)
{
	for (uint16_t i = 0; i < afp->port.n_queues; i++)
		if (__atomic_load_n(&afp->queues[i].down, __ATOMIC_RELAXED))
			return true;
	return false;
}

static void
timer_ready(void *ctx, uint32_t events)
{
	struct afp_port *afp = ctx;
	struct ifreq ifr = {0};
	uint64_t expirations;
	int ifindex;

	(void)events;
	if (read(afp->timer_fd, &expirations, sizeof(expirations)) < 0 || !any_down(afp))
		return;
	ifindex = if_nametoindex(afp->conf.iface);
	if (ifindex != 0 && get_interface(afp->conf.iface, SIOCGIFFLAGS, &ifr) == 0 &&
		(ifr.ifr_flags & IFF_UP))
		revive(afp, ifindex);
}

static int
start_timer(struct afp_port *afp)
{
	struct itimerspec ts = {.it_interval = {REVIVE_S, 0}, .it_value = {REVIVE_S, 0}};

	afp->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (afp->timer_fd < 0 || timerfd_settime(afp->timer_fd, 0, &ts, NULL) < 0)
		return -errno;
	return vhp_loop_watch(afp->loop, afp->timer_fd, EPOLLIN, timer_ready, afp);
}

static int
open_queue(struct afp_port *afp, struct afp_queue *q)
{
	struct afp_socket s;
	int ret;

	q->burst = malloc(sizeof(*q->burst));
	q->iov = calloc(VHP_MAX_IOV + 1, sizeof(*q->iov));
	q->bounce = malloc(AFP_BOUNCE_BYTES);
	if (q->burst == NULL || q->iov == NULL || q->bounce == NULL)
		return -ENOMEM;
	/* Until a guest has enabled more, the first takes it all. */
	q->steered = q == &afp->queues[0];
	ret = afp_socket_open(afp, q->steered, &s);
	if (ret < 0)
		return ret;
	q->pq.fd = s.fd;
	q->ring = s.ring;
	return 0;
}

static int
open_queues(struct afp_port *afp)
{
	uint16_t n = afp->conf.queues;
	int ret = 0;

	afp->queues = calloc(n, sizeof(afp->queues[0]));
	afp->port.queues = calloc(n, sizeof(afp->port.queues[0]));
	if (afp->queues == NULL || afp->port.queues == NULL)
		return -ENOMEM;
	afp->port.n_queues = n;
	for (uint16_t i = 0; i < n; i++) {
		afp->queues[i].pq = (struct vhp_port_queue){.port = &afp->port, .fd = -1};
		afp->port.queues[i] = &afp->queues[i].pq;
	}
	for (uint16_t i = 0; i < n && ret == 0; i++)
		ret = open_queue(afp, &afp->queues[i]);
	return ret;
}

int
vhp_af_packet_open(
	struct vhp_loop *loop, const struct vhp_af_packet_conf *conf, struct vhp_port **out)
{
	struct afp_port *afp = calloc(1, sizeof(*afp));
	int ret;

	if (afp == NULL)
		return -ENOMEM;
	memcpy(afp->port.name, conf->name, sizeof(afp->port.name));
	afp->port.ops = &afp_ops;
	afp->conf = *conf;
	afp->loop = loop;
	afp->timer_fd = -1;
	afp->fanout_id = -1;
	afp->ifindex = if_nametoindex(conf->iface);
	ret = afp->ifindex == 0 ? -ENODEV : open_queues(afp);
	if (ret == 0)
		ret = start_timer(afp);
	if (ret < 0) {
		VHP_LOG(ERR, "%s: iface = \"%s\": %s", conf->name, conf->iface, strerror(-ret));
		afp_close(&afp->port);
		return ret;
	}
	*out = &afp->port;
	return 0;
}
