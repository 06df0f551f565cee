// SPDX-License-Identifier: BSD-3-Clause
/*
 * The test front end's way to a vhost-user back end (vhost-user protocol, QEMU
 * docs/interop/vhost-user): the few messages that two split rings need, one
 * sendmsg each, the descriptors with the header.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include "fe.h"

enum {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	SET_VRING_ENABLE = 18,
};
#define F_PROTOCOL_FEATURES 30
#define VERSION             1u

struct msg {
	uint32_t request, flags, size;
	union {
		uint64_t u64;
		struct {
			uint32_t index, num;
		} state;
		struct {
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} addr;
		struct {
			uint32_t nregions, padding;
			uint64_t gpa, bytes, uaddr, offset;
		} mem;
	} p;
} __attribute__((packed));
#define HEAD_BYTES 12u

static int
send_msg(struct fe *fe, struct msg *m, uint32_t request, uint32_t size, int fd)
{
	struct iovec iov = {m, HEAD_BYTES + size};
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} c;
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	m->request = request;
	m->flags = VERSION;
	m->size = size;
	if (fd >= 0) {
		struct cmsghdr *cm;

		memset(&c, 0, sizeof(c));
		h.msg_control = c.buf;
		h.msg_controllen = sizeof(c.buf);
		cm = CMSG_FIRSTHDR(&h);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	}
	if (sendmsg(fe->dev_fd, &h, MSG_NOSIGNAL) != (ssize_t)iov.iov_len) {
		fprintf(stderr, "fe: vhost-user request %u: %s\n", request, strerror(errno));
		return -EIO;
	}
	return 0;
}

static int
ask_u64(struct fe *fe, uint32_t request, uint64_t *value)
{
	struct msg m;

	if (send_msg(fe, &m, request, 0, -1))
		return -EIO;
	if (recv(fe->dev_fd, &m, HEAD_BYTES + 8, MSG_WAITALL) != HEAD_BYTES + 8 ||
		m.request != request) {
		fprintf(stderr, "fe: no answer to vhost-user request %u\n", request);
		return -EIO;
	}
	*value = m.p.u64;
	return 0;
}

static int
set_u64(struct fe *fe, uint32_t request, uint64_t value, int fd)
{
	struct msg m = {.p.u64 = value};

	return send_msg(fe, &m, request, 8, fd);
}

static int
set_state(struct fe *fe, uint32_t request, uint32_t index, uint32_t value)
{
	struct msg m = {.p.state = {index, value}};

	return send_msg(fe, &m, request, sizeof(m.p.state), -1);
}

static int
dial(struct fe *fe)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", fe->o.socket);
	fe->dev_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	for (int i = 0; fe->dev_fd >= 0 && i < 300; i++) {
		if (!connect(fe->dev_fd, (struct sockaddr *)&un, sizeof(un)))
			return 0;
		usleep(100000);
	}
	fprintf(stderr, "fe: %s: %s\n", fe->o.socket, strerror(errno));
	return -EIO;
}

static int
negotiate(struct fe *fe)
{
	uint64_t have, proto;
	struct msg owner;

	fe->features = (1ULL << VIRTIO_F_VERSION_1) | (1ULL << VIRTIO_NET_F_MRG_RXBUF) |
		       (1ULL << F_PROTOCOL_FEATURES);
	if (fe->o.event_idx)
		fe->features |= 1ULL << VIRTIO_RING_F_EVENT_IDX;
	if (ask_u64(fe, GET_FEATURES, &have))
		return -EIO;
	if ((have & fe->features) != fe->features) {
		fprintf(stderr, "fe: back end offers %#llx, %#llx is needed\n",
			(unsigned long long)have, (unsigned long long)fe->features);
		return -EIO;
	}
	if (ask_u64(fe, GET_PROTOCOL_FEATURES, &proto) ||
		set_u64(fe, SET_PROTOCOL_FEATURES, 0, -1) ||
		send_msg(fe, &owner, SET_OWNER, 0, -1) ||
		set_u64(fe, SET_FEATURES, fe->features, -1))
		return -EIO;
	return 0;
}

static int
start_vq(struct fe *fe, uint32_t index)
{
	struct fe_vq *vq = &fe->vq[index];
	struct msg m = {.p.addr = {.index = index}};

	vq->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	vq->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	m.p.addr.desc = (uintptr_t)vq->vr.desc;
	m.p.addr.used = (uintptr_t)vq->vr.used;
	m.p.addr.avail = (uintptr_t)vq->vr.avail;
	if (set_state(fe, SET_VRING_NUM, index, vq->num) ||
		set_state(fe, SET_VRING_BASE, index, 0) ||
		send_msg(fe, &m, SET_VRING_ADDR, sizeof(m.p.addr), -1) ||
		set_u64(fe, SET_VRING_CALL, index, vq->call_fd) ||
		set_u64(fe, SET_VRING_KICK, index, vq->kick_fd) ||
		set_state(fe, SET_VRING_ENABLE, index, 1))
		return -EIO;
	return 0;
}

int
fe_user_start(struct fe *fe)
{
	struct msg m = {.p.mem = {.nregions = 1}};
	uint64_t done;

	m.p.mem.gpa = FE_GPA_BASE;
	m.p.mem.bytes = fe->mem_bytes;
	m.p.mem.uaddr = (uintptr_t)fe->mem;
	if (dial(fe) || negotiate(fe) ||
		send_msg(fe, &m, SET_MEM_TABLE, sizeof(m.p.mem), fe->mem_fd) ||
		start_vq(fe, FE_RX) || start_vq(fe, FE_TX))
		return -EIO;
	/* Messages are answered in order: an answer means the rings are running. */
	return ask_u64(fe, GET_FEATURES, &done);
}
