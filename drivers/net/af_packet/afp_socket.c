/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet socket: opened, set up, bound. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "afp_priv.h"

/* Bytes on their way to the interface before the socket is full. */
#define SEND_BYTES (8 << 20)

static int
set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* The limits of an unprivileged socket do when more is refused. */
static void
set_buffers(const struct afp_port *afp, int fd)
{
	int64_t receive_bytes = (int64_t)afp->conf.frame_bytes * afp->conf.frame_count;

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

int
afp_socket_open(struct afp_port *afp, bool receives)
{
	/* Without a protocol nothing is received, but all can be sent. */
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = receives ? htons(ETH_P_ALL) : 0,
		.sll_ifindex = afp->ifindex,
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = set_up(afp, fd);
	if (ret == 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		ret = -errno;
	if (ret == 0 && receives)
		ret = join_fanout(afp, fd);
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
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
