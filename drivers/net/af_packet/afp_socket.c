/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet socket: opened, set up, bound. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "afp_priv.h"
#include "log.h"

/* Bytes on their way to the interface before the socket is full. */
#define SEND_BYTES    (8 << 20)
/* Bytes of frames longer than a slot that may wait at least: some hundred of 64 KiB. */
#define RECEIVE_BYTES (16 << 20)

static int
set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* The limits of an unprivileged socket do when more is refused. */
static void
set_buffers(const struct afp_port *afp, int fd)
{
	int64_t receive_bytes = RTE_MAX(
		(int64_t)afp->conf.frame_bytes * afp->conf.frame_count, (int64_t)RECEIVE_BYTES);

	/* The kernel doubles it, for its own overhead. */
	if (receive_bytes > INT32_MAX / 2)
		receive_bytes = INT32_MAX / 2;
	if (set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, receive_bytes) < 0)
		set_int(fd, SOL_SOCKET, SO_RCVBUF, receive_bytes);
	if (set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, SEND_BYTES) < 0)
		set_int(fd, SOL_SOCKET, SO_SNDBUF, SEND_BYTES);
}

static int
set_up(const struct afp_port *afp, int fd)
{
	struct packet_mreq promisc = {.mr_ifindex = afp->ifindex, .mr_type = PACKET_MR_PROMISC};
	int ret = set_int(fd, SOL_PACKET, PACKET_VNET_HDR, 1);

	if (ret == 0)
		ret = set_int(fd, SOL_PACKET, PACKET_AUXDATA, 1);
	/* What we send must not come back to the guest that sent it. */
	if (ret == 0)
		ret = set_int(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	if (ret == 0 && afp->conf.qdisc_bypass)
		ret = set_int(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
	/* Ends with the socket, whatever ends the daemon. */
	if (ret == 0 &&
		setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc)) < 0)
		ret = -errno;
	if (ret == 0)
		set_buffers(afp, fd);
	return ret;
}

/* Flows stay on one queue; fragments are not put together, a frame arrives as it was. */
static int
join_fanout(struct afp_port *afp, int fd)
{
	int mode = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_ROLLOVER;
	int arg;
	socklen_t len = sizeof(arg);

	if (afp->conf.queues == 1)
		return 0;
	if (afp->fanout_id >= 0 &&
		set_int(fd, SOL_PACKET, PACKET_FANOUT, afp->fanout_id | mode << 16) == 0)
		return 0;
	/* The first, or all have left and the group went with them. */
	int ret =
		set_int(fd, SOL_PACKET, PACKET_FANOUT, (mode | PACKET_FANOUT_FLAG_UNIQUEID) << 16);
	if (ret < 0)
		return ret;
	if (getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &arg, &len) < 0)
		return -errno;
	afp->fanout_id = arg & 0xffff;
	return 0;
}

/* Fewer frames wait in the kernel then, and each takes a system call. */
static void
open_ring(struct afp_port *afp, struct afp_socket *s)
{
	int ret = afp_ring_open(&s->ring, s->fd, &afp->conf);

	if (ret == 0)
		return;
	afp_ring_close(&s->ring);
	VHP_LOG(WARNING, "%s: no receive ring: %s", afp->port.name, strerror(-ret));
}

int
afp_socket_open(struct afp_port *afp, bool receives, struct afp_socket *out)
{
	/* Without a protocol nothing is received, but all can be sent. */
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = receives ? htons(ETH_P_ALL) : 0,
		.sll_ifindex = afp->ifindex,
	};
	int ret;

	*out = (struct afp_socket){
		.fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
	if (out->fd < 0)
		return -errno;
	ret = set_up(afp, out->fd);
	if (ret == 0 && receives)
		open_ring(afp, out);
	if (ret == 0 && bind(out->fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		ret = -errno;
	if (ret == 0 && receives)
		ret = join_fanout(afp, out->fd);
	if (ret < 0)
		afp_socket_close(out);
	return ret;
}

void
afp_socket_close(struct afp_socket *s)
{
	if (s == NULL)
		return;
	afp_ring_close(&s->ring);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

int
afp_socket_adopt(struct afp_queue *q, struct afp_socket *s)
{
	int ret = 0;

	/* The ring first: as long as it is mapped the old socket lives, and epoll watches it. */
	afp_ring_close(&q->ring);
	if (dup2(s->fd, q->pq.fd) < 0) {
		ret = -errno;
	} else {
		q->ring = s->ring;
		s->ring.map = NULL;
	}
	afp_socket_close(s);
	return ret;
}

bool
afp_socket_renewed(struct afp_queue *q)
{
	struct afp_socket *s;

	if (likely(__atomic_load_n(&q->fresh, __ATOMIC_RELAXED) == NULL))
		return false;
	s = __atomic_exchange_n(&q->fresh, NULL, __ATOMIC_ACQUIRE);
	if (s == NULL)
		return false;
	afp_socket_adopt(q, s);
	free(s);
	/* So that idle.c tells epoll of the new one before it sleeps. */
	q->pq.wait = VHP_PORT_DOWN;
	return true;
}

int
vhp_af_packet_check(
	const struct vhp_af_packet_conf *conf, const char **key, char *why, size_t why_bytes)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	*key = "";
	if (fd < 0) {
		int ret = -errno;

		snprintf(why, why_bytes, "cannot open a packet socket: %s%s", strerror(errno),
			errno == EPERM ? " (CAP_NET_RAW)" : "");
		return ret;
	}
	close(fd);
	*key = "iface";
	if (if_nametoindex(conf->iface) == 0) {
		snprintf(why, why_bytes, "no such interface on this host");
		return -ENODEV;
	}
	return 0;
}
