/* SPDX-License-Identifier: BSD-3-Clause */
/* The tap interface on the host: made, attached to, set up. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>

#include <net/if_arp.h>

#include "tap_priv.h"

#define TUN_DEVICE "/dev/net/tun"

static bool
in_sysfs(const char *iface, const char *file)
{
	char path[64 + IFNAMSIZ];
	struct stat st;

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", iface, file);
	return stat(path, &st) == 0;
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
	int fd;

	if (!in_sysfs(conf->iface, "tun_flags")) {
		snprintf(why, why_bytes, "in use by an interface that is not a tap");
		return -EEXIST;
	}
	memcpy(iface, conf->iface, sizeof(iface));
	/* It exists, so this creates nothing; closing leaves it as it was. */
	fd = tap_if_open(conf, iface);
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
	if (conf->bridge[0] != '\0' && !in_sysfs(conf->bridge, "bridge")) {
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
	};
	unsigned int flags = 0;
	int size = hdr_bytes;

	for (size_t i = 0; i < sizeof(offloads) / sizeof(offloads[0]); i++)
		if (virtio_features >> offloads[i].virtio & 1)
			flags |= offloads[i].tun;
	/* Segmentation without checksum offload is refused by the kernel, and by the standard. */
	if (!(flags & TUN_F_CSUM))
		flags = 0;
	if (ioctl(fd, TUNSETVNETHDRSZ, &size) < 0 || ioctl(fd, TUNSETOFFLOAD, flags) < 0)
		return -errno;
	return 0;
}
