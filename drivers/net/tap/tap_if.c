/* SPDX-License-Identifier: BSD-3-Clause */
/* The tap interface on the host: made, attached to, set up. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>

#include <net/if_arp.h>

#include "tap_priv.h"

/* Linux 6.2; Debian 12's headers are of 6.1. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define TUN_DEVICE "/dev/net/tun"
/* More than a queue of sensible txqueuelen holds. */
#define MAX_QUEUED 100000

/*
 * The driver behind an interface; "" if there is none. By ioctl and not by /sys, which shows
 * the network namespace of whoever mounted it.
 */
static void
driver_of(const char *iface, char driver[32])
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq ifr = {.ifr_data = (void *)&info};
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(ifr.ifr_name, iface, IFNAMSIZ);
	if (sock < 0 || ioctl(sock, SIOCETHTOOL, &ifr) < 0)
		info.driver[0] = '\0';
	if (sock >= 0)
		close(sock);
	memcpy(driver, info.driver, sizeof(info.driver));
}

static bool
may_admin_net(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & 1U << CAP_NET_ADMIN);
}

/* Is an interface of this name one that we could attach to? */
static int
check_existing(const struct vhp_tap_conf *conf, char *why, size_t why_bytes)
{
	char iface[IFNAMSIZ];
	char driver[32];
	int fd;

	driver_of(conf->iface, driver);
	if (strcmp(driver, "tun") != 0) {
		snprintf(why, why_bytes, "in use by an interface that is not a tap");
		return -EEXIST;
	}
	memcpy(iface, conf->iface, sizeof(iface));
	/* It exists, so this creates nothing; closing leaves it as it was. */
	fd = tap_if_open_patiently(conf, iface);
	if (fd == -EBUSY)
		snprintf(why, why_bytes, "in use by another process");
	else if (fd < 0)
		snprintf(why, why_bytes,
			"a tap that cannot be attached to (%s); its queues must be %s",
			strerror(-fd), conf->queues > 1 ? "multi_queue" : "single");
	else
		close(fd);
	return fd < 0 ? fd : 0;
}

int
vhp_tap_check(const struct vhp_tap_conf *conf, const char **key, char *why, size_t why_bytes)
{
	int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC);
	char driver[32];

	*key = "";
	if (fd < 0) {
		int ret = -errno;

		snprintf(why, why_bytes, "cannot open %s: %s", TUN_DEVICE, strerror(errno));
		return ret;
	}
	close(fd);
	if (!may_admin_net()) {
		snprintf(why, why_bytes, "no permission to make a tap (CAP_NET_ADMIN)");
		return -EPERM;
	}
	*key = "bridge";
	if (conf->bridge[0] != '\0')
		driver_of(conf->bridge, driver);
	if (conf->bridge[0] != '\0' && strcmp(driver, "bridge") != 0) {
		snprintf(why, why_bytes, "not a bridge of this host");
		return -ENODEV;
	}
	*key = "iface";
	if (conf->iface[0] != '\0' && if_nametoindex(conf->iface) != 0)
		return check_existing(conf, why, why_bytes);
	return 0;
}

int
tap_if_open(const struct vhp_tap_conf *conf, char iface[IFNAMSIZ])
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int fd = open(TUN_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	if (conf->queues > 1)
		ifr.ifr_flags |= IFF_MULTI_QUEUE;
	memcpy(ifr.ifr_name, iface, IFNAMSIZ);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0)
		goto fail;
	if (conf->sndbuf_bytes > 0 && ioctl(fd, TUNSETSNDBUF, &conf->sndbuf_bytes) < 0)
		goto fail;
	memcpy(iface, ifr.ifr_name, IFNAMSIZ);
	return fd;
fail:
	ret = -errno;
	close(fd);
	return ret;
}

int
tap_if_open_patiently(const struct vhp_tap_conf *conf, char iface[IFNAMSIZ])
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int fd = -EBUSY;

	/* The kernel lets go of a dead daemon's io_uring, and so of its tap, a little late. */
	for (int tries = 0; fd == -EBUSY && tries < 50; tries++) {
		if (tries > 0)
			nanosleep(&pause, NULL);
		fd = tap_if_open(conf, iface);
	}
	return fd;
}

static int
set_address(int sock, struct ifreq *ifr, const struct ether_addr *mac)
{
	ifr->ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(ifr->ifr_hwaddr.sa_data, mac, sizeof(*mac));
	return ioctl(sock, SIOCSIFHWADDR, ifr);
}

static int
join_bridge(int sock, const char *bridge, const char *iface)
{
	struct ifreq ifr = {.ifr_ifindex = if_nametoindex(iface)};

	memcpy(ifr.ifr_name, bridge, IFNAMSIZ);
	/* EBUSY: it is on a bridge already, as a persistent tap may be. */
	return ioctl(sock, SIOCBRADDIF, &ifr) < 0 && errno != EBUSY ? -1 : 0;
}

static int
bring_up(int sock, struct ifreq *ifr)
{
	if (ioctl(sock, SIOCGIFFLAGS, ifr) < 0)
		return -1;
	ifr->ifr_flags |= IFF_UP;
	return ioctl(sock, SIOCSIFFLAGS, ifr);
}

int
tap_if_setup(const struct vhp_tap_conf *conf, const char *iface, int fd)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};
	int ret = 0;

	if (sock < 0)
		return -errno;
	memcpy(ifr.ifr_name, iface, IFNAMSIZ);
	if ((conf->mac_given && set_address(sock, &ifr, &conf->mac) < 0) ||
		(conf->bridge[0] != '\0' && join_bridge(sock, conf->bridge, iface) < 0) ||
		bring_up(sock, &ifr) < 0 || (conf->persist && ioctl(fd, TUNSETPERSIST, 1) < 0))
		ret = -errno;
	close(sock);
	return ret;
}

int
tap_if_steer(int fd, bool on)
{
	struct ifreq ifr = {.ifr_flags = on ? IFF_ATTACH_QUEUE : IFF_DETACH_QUEUE};

	return ioctl(fd, TUNSETQUEUE, &ifr) < 0 ? -errno : 0;
}

int
tap_if_set_mtu(const char *iface, uint16_t mtu_bytes)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_mtu = mtu_bytes};
	int ret;

	if (sock < 0)
		return -errno;
	memcpy(ifr.ifr_name, iface, IFNAMSIZ);
	ret = ioctl(sock, SIOCSIFMTU, &ifr) < 0 ? -errno : 0;
	close(sock);
	return ret;
}

bool
tap_if_has_uso(int fd)
{
	bool has = ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_USO4 | TUN_F_USO6) == 0;

	ioctl(fd, TUNSETOFFLOAD, 0);
	return has;
}

int
tap_if_configure(int fd, uint16_t hdr_bytes, uint64_t virtio_features)
{
	static const struct {
		unsigned int virtio;
		unsigned int tun;
	} offloads[] = {
		{VIRTIO_NET_F_GUEST_CSUM, TUN_F_CSUM},
		{VIRTIO_NET_F_GUEST_TSO4, TUN_F_TSO4},
		{VIRTIO_NET_F_GUEST_TSO6, TUN_F_TSO6},
		{VIRTIO_NET_F_GUEST_ECN, TUN_F_TSO_ECN},
		{VIRTIO_NET_F_GUEST_UFO, TUN_F_UFO},
		{VHP_NET_F_GUEST_USO4, TUN_F_USO4},
		{VHP_NET_F_GUEST_USO6, TUN_F_USO6},
	};
	unsigned int flags = 0;
	int size = hdr_bytes;

	for (size_t i = 0; i < sizeof(offloads) / sizeof(offloads[0]); i++)
		if (virtio_features >> offloads[i].virtio & 1)
			flags |= offloads[i].tun;
	/* Segmentation without checksum offload is refused by the kernel, and by the standard. */
	if (!(flags & TUN_F_CSUM))
		flags = 0;
	/* UDP segmentation: both versions of IP or none, says the kernel. */
	if ((flags & (TUN_F_USO4 | TUN_F_USO6)) != (TUN_F_USO4 | TUN_F_USO6))
		flags &= ~(TUN_F_USO4 | TUN_F_USO6);
	if (ioctl(fd, TUNSETVNETHDRSZ, &size) < 0 || ioctl(fd, TUNSETOFFLOAD, flags) < 0)
		return -errno;
	return flags;
}

int
tap_if_discard(int fd)
{
	uint8_t start[VHP_MAX_HDR_BYTES + VHP_MIN_FRAME_BYTES];
	int n = 0;

	/* A short read takes the whole frame. As many as could have waited, and no more. */
	while (n < MAX_QUEUED && read(fd, start, sizeof(start)) > 0)
		n++;
	return n;
}
