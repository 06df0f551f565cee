/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checks.h"
#include "messages.h"

const uint32_t messages_known[] = {VU_GET_FEATURES, VU_SET_FEATURES, VU_SET_OWNER, VU_RESET_OWNER,
	VU_SET_MEM_TABLE, VU_SET_LOG_BASE, VU_SET_VRING_NUM, VU_SET_VRING_ADDR, VU_SET_VRING_BASE,
	VU_GET_VRING_BASE, VU_SET_VRING_KICK, VU_SET_VRING_CALL, VU_SET_VRING_ERR,
	VU_GET_PROTOCOL_FEATURES, VU_SET_PROTOCOL_FEATURES, VU_GET_QUEUE_NUM, VU_SET_VRING_ENABLE,
	VU_SEND_RARP, VU_NET_SET_MTU, 0};

int
messages_memfd(uint64_t size_bytes)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(ftruncate(fd, size_bytes) == 0);
	return fd;
}

static void
two_regions(struct vhp_vu_msg *msg)
{
	msg->mem.n_regions = 2;
	for (int i = 0; i < 2; i++) {
		msg->mem.regions[i] = (struct vhp_vu_region){
			.gpa = 0x10000 * i,
			.size_bytes = 0x10000,
			.user_addr = 0x7f0000000000 + 0x10000 * i,
			.mmap_offset = 0x1000 * i,
		};
		msg->fds[i] = messages_memfd(0x11000);
	}
	msg->n_fds = 2;
	msg->header.size = offsetof(struct vhp_vu_mem_table, regions[2]);
}

static void
one_fd(struct vhp_vu_msg *msg, int fd)
{
	CHECK(fd >= 0);
	msg->fds[0] = fd;
	msg->n_fds = 1;
}

struct vhp_vu_msg
messages_good(uint32_t request)
{
	struct vhp_vu_msg msg = {.header = {request, VU_VERSION, sizeof(uint64_t)}};

	switch (request) {
	case VU_SET_MEM_TABLE:
		two_regions(&msg);
		break;
	case VU_SET_LOG_BASE:
		msg.header.size = sizeof(msg.log);
		msg.log = (struct vhp_vu_log){.size_bytes = 0x1000};
		one_fd(&msg, messages_memfd(0x1000));
		break;
	case VU_SET_VRING_ADDR:
		msg.header.size = sizeof(msg.addr);
		msg.addr = (struct vhp_vu_ring_addr){.index = MESSAGES_RINGS - 1};
		break;
	case VU_SET_VRING_NUM:
		msg.state = (struct vhp_vu_ring_state){MESSAGES_RINGS - 1, 256};
		break;
	case VU_SET_VRING_BASE:
	case VU_GET_VRING_BASE:
	case VU_SET_VRING_ENABLE:
		msg.state = (struct vhp_vu_ring_state){MESSAGES_RINGS - 1, 1};
		break;
	case VU_SET_VRING_KICK:
	case VU_SET_VRING_CALL:
	case VU_SET_VRING_ERR:
		msg.u64 = MESSAGES_RINGS - 1;
		one_fd(&msg, eventfd(0, EFD_CLOEXEC));
		break;
	case VU_SET_FEATURES:
	case VU_SET_PROTOCOL_FEATURES:
	case VU_SEND_RARP:
	case VU_NET_SET_MTU:
		msg.u64 = 1500;
		break;
	default:
		msg.header.size = 0;
	}
	return msg;
}

void
messages_close(struct vhp_vu_msg *msg)
{
	for (unsigned int i = 0; i < msg->n_fds; i++)
		close(msg->fds[i]);
	msg->n_fds = 0;
}

unsigned int
messages_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}
