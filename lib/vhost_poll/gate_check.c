/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a front end may say. A request that is not in the table, or is in it and breaks a
 * rule, is not relayed.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>
#include <linux/virtio_ring.h>

#include <rte_common.h>

#include "gate.h"

/* Largest virtqueue (virtio 1.2, 2.7). */
#define MAX_RING_SIZE 32768

#define STATE   .size_bytes = sizeof(struct vhp_vu_ring_state), .payload = VHP_PAYLOAD_STATE
#define FILE_FD .size_bytes = sizeof(uint64_t), .payload = VHP_PAYLOAD_FILE

static const struct vhp_request_info requests[VU_REQUESTS] = {
	[VU_GET_FEATURES] = {.name = "GET_FEATURES", .replies = true},
	[VU_SET_FEATURES] = {.name = "SET_FEATURES",
		.size_bytes = sizeof(uint64_t),
		.changes = true},
	[VU_SET_OWNER] = {.name = "SET_OWNER"},
	[VU_RESET_OWNER] = {.name = "RESET_OWNER", .changes = true},
	[VU_SET_MEM_TABLE] = {.name = "SET_MEM_TABLE", .changes = true, .payload = VHP_PAYLOAD_MEM},
	[VU_SET_LOG_BASE] = {.name = "SET_LOG_BASE",
		.size_bytes = sizeof(struct vhp_vu_log),
		.changes = true,
		.replies = true,
		.payload = VHP_PAYLOAD_LOG},
	[VU_SET_VRING_NUM] = {.name = "SET_VRING_NUM", STATE, .changes = true},
	[VU_SET_VRING_ADDR] = {.name = "SET_VRING_ADDR",
		.size_bytes = sizeof(struct vhp_vu_ring_addr),
		.changes = true,
		.payload = VHP_PAYLOAD_ADDR},
	[VU_SET_VRING_BASE] = {.name = "SET_VRING_BASE", STATE, .changes = true},
	[VU_GET_VRING_BASE] = {.name = "GET_VRING_BASE", STATE, .changes = true, .replies = true},
	[VU_SET_VRING_KICK] = {.name = "SET_VRING_KICK", FILE_FD, .changes = true},
	[VU_SET_VRING_CALL] = {.name = "SET_VRING_CALL", FILE_FD, .changes = true},
	[VU_SET_VRING_ERR] = {.name = "SET_VRING_ERR", FILE_FD},
	[VU_GET_PROTOCOL_FEATURES] = {.name = "GET_PROTOCOL_FEATURES", .replies = true},
	[VU_SET_PROTOCOL_FEATURES] = {.name = "SET_PROTOCOL_FEATURES",
		.size_bytes = sizeof(uint64_t)},
	[VU_GET_QUEUE_NUM] = {.name = "GET_QUEUE_NUM", .own = true, .replies = true},
	[VU_SEND_RARP] = {.name = "SEND_RARP", .size_bytes = sizeof(uint64_t), .changes = true},
	[VU_NET_SET_MTU] = {.name = "NET_SET_MTU", .size_bytes = sizeof(uint64_t)},
	[VU_GET_CONFIG] = {.name = "GET_CONFIG", .own = true, .replies = true, .any_size = true},
	[VU_CREATE_CRYPTO_SESSION] = {.name = "CREATE_CRYPTO_SESSION",
		.own = true,
		.replies = true,
		.any_size = true},
	[VU_CLOSE_CRYPTO_SESSION] = {.name = "CLOSE_CRYPTO_SESSION",
		.size_bytes = sizeof(uint64_t),
		.own = true},
	[VU_SET_VRING_ENABLE] = {.name = "SET_VRING_ENABLE", STATE, .changes = true},
};

const struct vhp_request_info *
vhp_request_info(uint32_t request)
{
	return &requests[request < VU_REQUESTS ? request : 0];
}

const char *
vhp_gate_check_header(const struct vhp_vu_header *header)
{
	const struct vhp_request_info *info = vhp_request_info(header->request);

	if (info->name == NULL)
		return "unknown request";
	if ((header->flags & VU_VERSION_MASK) != VU_VERSION)
		return "wrong protocol version";
	if (header->flags & VU_REPLY)
		return "a reply where a request is due";
	if (info->payload == VHP_PAYLOAD_MEM) {
		if (header->size > sizeof(struct vhp_vu_mem_table))
			return "payload too long";
	} else if (info->any_size) {
		if (header->size > VU_MAX_PAYLOAD_BYTES)
			return "payload too long";
	} else if (header->size != info->size_bytes) {
		return "payload of the wrong size";
	}
	return NULL;
}

static bool
wraps(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start;
}

/*
 * Touching a page must not wait for anybody: a file served by a process (FUSE) or over
 * the network would let that one halt the poller.
 */
static bool
is_local_file(int fd)
{
	static const unsigned long types[] = {TMPFS_MAGIC, HUGETLBFS_MAGIC, RAMFS_MAGIC,
		EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < RTE_DIM(types); i++)
		if ((unsigned long)fs.f_type == types[i])
			return true;
	return false;
}

/* DPDK unmaps the old table before it maps the new one, so see first that it can. */
static const char *
check_region(const struct vhp_vu_region *r, int fd)
{
	struct stat st;
	uint64_t len_bytes;
	void *map;

	if (r->size_bytes == 0)
		return "empty region";
	if (wraps(r->gpa, r->size_bytes) || wraps(r->user_addr, r->size_bytes) ||
		wraps(r->mmap_offset, r->size_bytes))
		return "region wraps around";
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "region is not a file";
	if (!is_local_file(fd))
		return "region is not in memory or on a local disk";
	if (r->mmap_offset + r->size_bytes > (uint64_t)st.st_size)
		return "region is larger than its file";
	/* Huge pages are unmapped as a whole or not at all. */
	len_bytes = RTE_ALIGN_MUL_CEIL(r->mmap_offset + r->size_bytes, (uint64_t)st.st_blksize);
	map = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (map == MAP_FAILED)
		return "region cannot be mapped";
	munmap(map, len_bytes);
	return NULL;
}

static const char *
check_mem(const struct vhp_vu_msg *msg)
{
	const struct vhp_vu_mem_table *mem = &msg->mem;
	uint32_t n = mem->n_regions;

	if (msg->header.size < offsetof(struct vhp_vu_mem_table, regions))
		return "payload too short";
	if (n == 0 || n > VHP_MEM_MAX_REGIONS)
		return "number of regions is not 1..8";
	if (msg->header.size != offsetof(struct vhp_vu_mem_table, regions[n]))
		return "payload does not fit the number of regions";
	if (msg->n_fds != n)
		return "number of descriptors differs from regions";
	for (uint32_t i = 0; i < n; i++) {
		const struct vhp_vu_region *r = &mem->regions[i];
		const char *why = check_region(r, msg->fds[i]);

		if (why != NULL)
			return why;
		for (uint32_t j = 0; j < i; j++) {
			const struct vhp_vu_region *o = &mem->regions[j];

			if (r->gpa < o->gpa + o->size_bytes && o->gpa < r->gpa + r->size_bytes)
				return "regions overlap";
			if (r->user_addr < o->user_addr + o->size_bytes &&
				o->user_addr < r->user_addr + r->size_bytes)
				return "regions overlap in the front end's address space";
		}
	}
	return NULL;
}

static const char *
check_log(const struct vhp_vu_msg *msg)
{
	struct stat st;

	if (msg->n_fds != 1)
		return "number of descriptors";
	if (msg->log.size_bytes == 0 || wraps(msg->log.size_bytes, msg->log.offset))
		return "log is empty or wraps around";
	if (fstat(msg->fds[0], &st) < 0 || !S_ISREG(st.st_mode) || !is_local_file(msg->fds[0]))
		return "log is not a file in memory or on a local disk";
	if (msg->log.size_bytes + msg->log.offset > (uint64_t)st.st_size)
		return "log is larger than its file";
	return NULL;
}

static const char *
check_state(uint32_t request, const struct vhp_vu_ring_state *state)
{
	switch (request) {
	case VU_SET_VRING_NUM:
		/* Powers of two are a matter of the layout: DPDK and net_rings.c know it. */
		if (state->num == 0 || state->num > MAX_RING_SIZE)
			return "ring size is not 1..32768";
		break;
	case VU_SET_VRING_ENABLE:
		if (state->num > 1)
			return "neither enable nor disable";
		break;
	}
	return NULL;
}

static const char *
check_file(const struct vhp_vu_msg *msg)
{
	struct stat st;

	if (msg->u64 & ~(uint64_t)(VU_RING_INDEX_MASK | VU_RING_NO_FD))
		return "reserved bits";
	if (msg->n_fds != ((msg->u64 & VU_RING_NO_FD) ? 0 : 1))
		return "number of descriptors";
	/* epoll takes no regular files or directories. */
	if (msg->n_fds == 1 &&
		(fstat(msg->fds[0], &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return "descriptor that cannot notify";
	return NULL;
}

int
vhp_gate_ring_index(const struct vhp_vu_msg *msg)
{
	switch (vhp_request_info(msg->header.request)->payload) {
	case VHP_PAYLOAD_FILE:
		return msg->u64 & VU_RING_INDEX_MASK;
	case VHP_PAYLOAD_STATE:
		return msg->state.index;
	case VHP_PAYLOAD_ADDR:
		return msg->addr.index;
	default:
		return -1;
	}
}

const char *
vhp_gate_check(const struct vhp_vu_msg *msg, uint16_t n_rings)
{
	uint32_t request = msg->header.request;
	const char *why = vhp_gate_check_header(&msg->header);
	uint32_t index = 0;

	if (why != NULL)
		return why;
	switch (vhp_request_info(request)->payload) {
	case VHP_PAYLOAD_MEM:
		return check_mem(msg);
	case VHP_PAYLOAD_LOG:
		return check_log(msg);
	case VHP_PAYLOAD_FILE:
		index = msg->u64 & VU_RING_INDEX_MASK;
		why = check_file(msg);
		break;
	case VHP_PAYLOAD_STATE:
		index = msg->state.index;
		why = check_state(request, &msg->state);
		break;
	case VHP_PAYLOAD_ADDR:
		index = msg->addr.index;
		break;
	case VHP_PAYLOAD_OTHER:
		break;
	}
	if (why != NULL)
		return why;
	if (index >= n_rings)
		return "ring index outside the device";
	if (vhp_request_info(request)->payload != VHP_PAYLOAD_FILE && msg->n_fds != 0)
		return "descriptors with a request that takes none";
	return NULL;
}
