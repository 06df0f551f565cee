// SPDX-License-Identifier: BSD-3-Clause
/* The test front end's way into the kernel: /dev/vhost-net, a tap or a packet socket. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/vhost.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <net/if.h>

#include "fe.h"

static int
fail(const char *what)
{
	int err = errno;

	fprintf(stderr, "fe: %s: %s\n", what, strerror(err));
	return err ? -err : -EIO;
}

static int
if_up(const char *name)
{
	struct ifreq ifr = {0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = -1;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (s >= 0 && !ioctl(s, SIOCGIFFLAGS, &ifr)) {
		ifr.ifr_flags |= IFF_UP;
		r = ioctl(s, SIOCSIFFLAGS, &ifr);
	}
	if (r)
		r = fail("interface up");
	if (s >= 0)
		close(s);
	return r;
}

static int
open_tap(struct fe *fe)
{
	struct ifreq ifr = {0};
	int hdr = FE_HDR_BYTES;

	fe->back_fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fe->back_fd < 0)
		return fail("/dev/net/tun");
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", fe->o.dev);
	ifr.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (ioctl(fe->back_fd, TUNSETIFF, &ifr))
		return fail("TUNSETIFF");
	if (ioctl(fe->back_fd, TUNSETVNETHDRSZ, &hdr))
		return fail("TUNSETVNETHDRSZ");
	return if_up(fe->o.dev);
}

static int
open_packet(struct fe *fe)
{
	struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

	fe->back_fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
	if (fe->back_fd < 0)
		return fail("packet socket");
	ll.sll_ifindex = (int)if_nametoindex(fe->o.dev);
	if (!ll.sll_ifindex || bind(fe->back_fd, (struct sockaddr *)&ll, sizeof(ll)))
		return fail("packet bind");
	return if_up(fe->o.dev);
}

static int
set_memory(struct fe *fe)
{
	static union {
		struct vhost_memory mem;
		uint8_t bytes[sizeof(struct vhost_memory) + sizeof(struct vhost_memory_region)];
	} t;
	struct vhost_memory_region *r = t.mem.regions;

	t.mem.nregions = 1;
	r->guest_phys_addr = FE_GPA_BASE;
	r->memory_size = fe->mem_bytes;
	r->userspace_addr = (uintptr_t)fe->mem;
	if (ioctl(fe->dev_fd, VHOST_SET_MEM_TABLE, &t.mem))
		return fail("VHOST_SET_MEM_TABLE");
	return 0;
}

/* The header of a tap passes through; for a packet socket vhost makes it itself. */
static uint64_t
wanted_features(const struct fe *fe)
{
	uint64_t f = (1ULL << VIRTIO_F_VERSION_1) | (1ULL << VIRTIO_NET_F_MRG_RXBUF);

	if (fe->o.event_idx)
		f |= 1ULL << VIRTIO_RING_F_EVENT_IDX;
	if (fe->o.packet)
		f |= 1ULL << VHOST_NET_F_VIRTIO_NET_HDR;
	return f;
}

static int
setup_vq(struct fe *fe, unsigned index)
{
	struct fe_vq *vq = &fe->vq[index];
	struct vhost_vring_state st = {.index = index};
	struct vhost_vring_file fd = {.index = index};
	struct vhost_vring_addr a = {.index = index};

	st.num = vq->num;
	if (ioctl(fe->dev_fd, VHOST_SET_VRING_NUM, &st))
		return fail("VHOST_SET_VRING_NUM");
	st.num = 0;
	if (ioctl(fe->dev_fd, VHOST_SET_VRING_BASE, &st))
		return fail("VHOST_SET_VRING_BASE");
	a.desc_user_addr = (uintptr_t)vq->vr.desc;
	a.avail_user_addr = (uintptr_t)vq->vr.avail;
	a.used_user_addr = (uintptr_t)vq->vr.used;
	if (ioctl(fe->dev_fd, VHOST_SET_VRING_ADDR, &a))
		return fail("VHOST_SET_VRING_ADDR");
	vq->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	vq->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fd.fd = vq->kick_fd;
	if (ioctl(fe->dev_fd, VHOST_SET_VRING_KICK, &fd))
		return fail("VHOST_SET_VRING_KICK");
	fd.fd = vq->call_fd;
	if (ioctl(fe->dev_fd, VHOST_SET_VRING_CALL, &fd))
		return fail("VHOST_SET_VRING_CALL");
	/* Must come before the back end: it is read without a lock afterwards. */
	st.num = fe->o.window_us;
	if (fe->o.window_us && ioctl(fe->dev_fd, VHOST_SET_VRING_BUSYLOOP_TIMEOUT, &st))
		return fail("VHOST_SET_VRING_BUSYLOOP_TIMEOUT");
	return 0;
}

int
fe_kernel_open(struct fe *fe)
{
	int r;

	fe->dev_fd = open("/dev/vhost-net", O_RDWR | O_CLOEXEC);
	if (fe->dev_fd < 0)
		return fail("/dev/vhost-net");
	r = fe->o.packet ? open_packet(fe) : open_tap(fe);
	if (r)
		return r;
	if (ioctl(fe->dev_fd, VHOST_SET_OWNER))
		return fail("VHOST_SET_OWNER");
	fe->features = wanted_features(fe);
	if (ioctl(fe->dev_fd, VHOST_SET_FEATURES, &fe->features))
		return fail("VHOST_SET_FEATURES");
	r = set_memory(fe);
	for (unsigned i = 0; !r && i < 2; i++)
		r = setup_vq(fe, i);
	return r;
}

int
fe_kernel_start(struct fe *fe, int index)
{
	struct vhost_vring_file f = {.index = (unsigned)index, .fd = fe->back_fd};

	if (ioctl(fe->dev_fd, VHOST_NET_SET_BACKEND, &f))
		return fail("VHOST_NET_SET_BACKEND");
	return 0;
}

/* The worker is a kernel thread that carries its owner's pid in its name. */
int
fe_kernel_pin_worker(const struct fe *fe)
{
	char want[32], path[64], comm[32];
	struct dirent *e;
	cpu_set_t set;
	int found = 0;
	DIR *d;

	if (fe->o.vhost_cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(fe->o.vhost_cpu, &set);
	snprintf(want, sizeof(want), "vhost-%d\n", (int)getpid());
	d = opendir("/proc");
	while (d && (e = readdir(d)) != NULL) {
		FILE *f;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/comm", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strcmp(comm, want))
			found += !sched_setaffinity(atoi(e->d_name), sizeof(set), &set);
		fclose(f);
	}
	if (d)
		closedir(d);
	return found ? 0 : fail("vhost worker not found");
}

void
fe_kernel_close(struct fe *fe)
{
	close(fe->dev_fd);
	close(fe->back_fd);
	for (int i = 0; i < 2; i++) {
		close(fe->vq[i].kick_fd);
		close(fe->vq[i].call_fd);
	}
}
