/* SPDX-License-Identifier: BSD-3-Clause */
/* Raw packet socket on the back end's interface; see fe_host.h. */
#include "fe_host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "fe_util.h"

/* Enough for a window of several hundred frames of 64 KiB, with the kernel's overhead. */
#define SOCKET_BYTES (128 << 20)
#define LINEAR_BYTES 256
#define VLAN_BYTES   4
#define MACS_BYTES   12

static int
wait_up(struct fe_host *h, uint32_t timeout_ms)
{
	uint64_t end = fe_now_us() + (uint64_t)timeout_ms * 1000;

	for (;;) {
		struct ifreq ifr;
		int rc;

		memset(&ifr, 0, sizeof(ifr));
		strcpy(ifr.ifr_name, h->ifname);
		if (ioctl(h->fd, SIOCGIFFLAGS, &ifr) < 0)
			rc = -errno;
		else
			rc = (ifr.ifr_flags & IFF_UP) != 0 ? 0 : -ENETDOWN;
		if (rc == 0) {
			h->ifindex = (int)if_nametoindex(h->ifname);
			return h->ifindex > 0 ? 0 : -ENODEV;
		}
		if (fe_now_us() >= end)
			return rc;
		usleep(2000);
	}
}

static int
set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int
set_options(struct fe_host *h)
{
	int rc = h->plain ? 0 : set_int(h->fd, SOL_PACKET, PACKET_VNET_HDR, 1);

	if (rc == 0)
		rc = set_int(h->fd, SOL_PACKET, PACKET_AUXDATA, 1);
	if (rc == 0)
		rc = set_int(h->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	/* The limits of an unprivileged socket do when these are refused. */
	set_int(h->fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES);
	set_int(h->fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BYTES);
	return rc;
}

int
fe_host_open(struct fe_host *h, const char *ifname, uint32_t timeout_ms)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int rc;

	memset(h, 0, sizeof(*h));
	h->fd = -1;
	if (strlen(ifname) >= sizeof(h->ifname))
		return -ENAMETOOLONG;
	strcpy(h->ifname, ifname);
	/* Protocol 0: nothing arrives before the socket is bound to its interface. */
	h->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->fd < 0)
		return -errno;
	rc = wait_up(h, timeout_ms);
	if (rc == 0)
		rc = set_options(h);
	sa.sll_ifindex = h->ifindex;
	if (rc == 0 && bind(h->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		rc = -errno;
	if (rc != 0)
		fe_host_close(h);
	return rc;
}

int
fe_host_plain(struct fe_host *h)
{
	int rc = 0;

	/* The option cannot be changed on a socket that is receiving already. */
	if (!h->plain) {
		struct sockaddr_ll sa = {.sll_family = AF_PACKET,
			.sll_protocol = htons(ETH_P_ALL),
			.sll_ifindex = h->ifindex};

		close(h->fd);
		h->plain = true;
		h->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (h->fd < 0)
			return -errno;
		rc = set_options(h);
		if (rc == 0 && bind(h->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
			rc = -errno;
	}
	return rc;
}

void
fe_host_close(struct fe_host *h)
{
	if (h == NULL || h->fd < 0)
		return;
	close(h->fd);
	h->fd = -1;
}

int
fe_host_send(
	struct fe_host *host, const struct virtio_net_hdr_v1 *hdr, const void *frame, size_t len)
{
	struct virtio_net_hdr_v1 h = {0};
	struct iovec iov[2] = {
		{.iov_base = &h, .iov_len = sizeof(struct virtio_net_hdr)},
		{.iov_base = (void *)(uintptr_t)frame, .iov_len = len},
	};
	struct msghdr mh = {.msg_iov = iov + host->plain, .msg_iovlen = 2U - host->plain};
	ssize_t n;

	if (hdr != NULL)
		h = *hdr;
	/* What hdr_len does not cover the kernel puts into single pages, which it always has. */
	if (h.hdr_len == 0)
		h.hdr_len = (uint16_t)(len < LINEAR_BYTES ? len : LINEAR_BYTES);
	do
		n = sendmsg(host->fd, &mh, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	host->n_sent++;
	return 0;
}

/* The kernel keeps the outer tag beside the frame; put it back, and correct csum_start. */
static int
restore_tag(struct msghdr *mh, struct virtio_net_hdr_v1 *hdr, uint8_t *buf, size_t len, size_t cap)
{
	struct cmsghdr *cm;

	for (cm = CMSG_FIRSTHDR(mh); cm != NULL; cm = CMSG_NXTHDR(mh, cm)) {
		struct tpacket_auxdata aux;
		uint16_t tag[2];

		if (cm->cmsg_level != SOL_PACKET || cm->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(cm), sizeof(aux));
		if ((aux.tp_status & TP_STATUS_VLAN_VALID) == 0 || len + VLAN_BYTES > cap)
			continue;
		tag[0] = htons((aux.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? aux.tp_vlan_tpid
										: ETH_P_8021Q);
		tag[1] = htons(aux.tp_vlan_tci);
		memmove(buf + MACS_BYTES + VLAN_BYTES, buf + MACS_BYTES, len - MACS_BYTES);
		memcpy(buf + MACS_BYTES, tag, sizeof(tag));
		if ((hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0)
			hdr->csum_start += VLAN_BYTES;
		return (int)len + VLAN_BYTES;
	}
	return (int)len;
}

int
fe_host_recv(struct fe_host *h, struct virtio_net_hdr_v1 *hdr, void *buf, size_t cap)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct iovec iov[2] = {
		{.iov_base = hdr, .iov_len = sizeof(struct virtio_net_hdr)},
		{.iov_base = buf, .iov_len = cap},
	};
	struct msghdr mh = {.msg_iov = iov + h->plain,
		.msg_iovlen = 2U - h->plain,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control)};
	size_t hdr_bytes = h->plain ? 0 : sizeof(struct virtio_net_hdr);
	ssize_t n;

	memset(hdr, 0, sizeof(*hdr));
	do
		n = recvmsg(h->fd, &mh, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n < hdr_bytes)
		return -EBADMSG;
	h->n_received++;
	return restore_tag(&mh, hdr, buf, (size_t)n - hdr_bytes, cap);
}

int
fe_host_wait(struct fe_host *h, uint32_t timeout_us)
{
	struct pollfd p = {.fd = h->fd, .events = POLLIN};
	struct timespec ts = {
		.tv_sec = timeout_us / 1000000, .tv_nsec = (long)(timeout_us % 1000000) * 1000};

	return ppoll(&p, 1, &ts, NULL) > 0;
}

uint32_t
fe_host_flush(struct fe_host *h)
{
	struct virtio_net_hdr_v1 hdr;
	uint8_t byte;
	uint32_t n = 0;

	while (fe_host_recv(h, &hdr, &byte, sizeof(byte)) >= 0)
		n++;
	return n;
}

uint64_t
fe_host_drops(struct fe_host *h)
{
	struct tpacket_stats st;
	socklen_t len = sizeof(st);

	/* Reading resets the kernel's count. */
	if (getsockopt(h->fd, SOL_PACKET, PACKET_STATISTICS, &st, &len) == 0)
		h->n_dropped += st.tp_drops;
	return h->n_dropped;
}

int
fe_host_if_drops(const struct fe_host *h, uint64_t *to_host, uint64_t *to_guest)
{
	FILE *f = fopen("/proc/net/dev", "re");
	char line[512];
	int rc = -ENODEV;

	if (f == NULL)
		return -errno;
	while (rc != 0 && fgets(line, sizeof(line), f) != NULL) {
		unsigned long long rx = 0, tx = 0;
		char name[32];

		/* name: rx bytes packets errs drop fifo frame compressed multicast tx ... */
		if (sscanf(line, " %31[^:]: %*u %*u %*u %llu %*u %*u %*u %*u %*u %*u %*u %llu",
			    name, &rx, &tx) == 3 &&
			strcmp(name, h->ifname) == 0) {
			*to_host = rx;
			*to_guest = tx;
			rc = 0;
		}
	}
	fclose(f);
	return rc;
}
