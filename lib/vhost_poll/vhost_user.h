/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the vhost-user protocol as they are on the wire (vhost-user
 * specification, "Message Specification"). DPDK's own definitions are private to it.
 */
#ifndef VHP_VHOST_USER_H
#define VHP_VHOST_USER_H

#include <stdint.h>

#include "mem.h"

enum vhp_request {
	VU_GET_FEATURES = 1,
	VU_SET_FEATURES = 2,
	VU_SET_OWNER = 3,
	VU_RESET_OWNER = 4,
	VU_SET_MEM_TABLE = 5,
	VU_SET_LOG_BASE = 6,
	VU_SET_VRING_NUM = 8,
	VU_SET_VRING_ADDR = 9,
	VU_SET_VRING_BASE = 10,
	VU_GET_VRING_BASE = 11,
	VU_SET_VRING_KICK = 12,
	VU_SET_VRING_CALL = 13,
	VU_SET_VRING_ERR = 14,
	VU_GET_PROTOCOL_FEATURES = 15,
	VU_SET_PROTOCOL_FEATURES = 16,
	VU_GET_QUEUE_NUM = 17,
	VU_SET_VRING_ENABLE = 18,
	VU_SEND_RARP = 19,
	VU_NET_SET_MTU = 20,
	VU_GET_CONFIG = 24,
	VU_CREATE_CRYPTO_SESSION = 26,
	VU_CLOSE_CRYPTO_SESSION = 27,
	VU_REQUESTS = 48, /**< larger than any */
};

#define VU_VERSION      0x1u
#define VU_VERSION_MASK 0x3u
#define VU_REPLY        0x4u
#define VU_NEED_REPLY   0x8u

/** Kick, call and error messages: ring index, and "no descriptor comes with it". */
#define VU_RING_INDEX_MASK 0xffu
#define VU_RING_NO_FD      0x100u

/** Feature bit that is the protocol's own. */
#define VU_F_PROTOCOL_FEATURES 30

#define VU_PROTOCOL_F_MQ             0
#define VU_PROTOCOL_F_LOG_SHMFD      1
#define VU_PROTOCOL_F_RARP           2
#define VU_PROTOCOL_F_REPLY_ACK      3
#define VU_PROTOCOL_F_NET_MTU        4
#define VU_PROTOCOL_F_CRYPTO_SESSION 7
#define VU_PROTOCOL_F_CONFIG         9

struct vhp_vu_header {
	uint32_t request;
	uint32_t flags;
	uint32_t size;
};

struct vhp_vu_region {
	uint64_t gpa;
	uint64_t size_bytes;
	uint64_t user_addr;
	uint64_t mmap_offset;
};

struct vhp_vu_mem_table {
	uint32_t n_regions;
	uint32_t padding;
	struct vhp_vu_region regions[VHP_MEM_MAX_REGIONS];
};

struct vhp_vu_ring_state {
	uint32_t index;
	uint32_t num;
};

struct vhp_vu_ring_addr {
	uint32_t index;
	uint32_t flags;
	uint64_t desc;
	uint64_t used;
	uint64_t avail;
	uint64_t log;
};

struct vhp_vu_log {
	uint64_t size_bytes;
	uint64_t offset;
};

/** Larger than any payload that is let through. */
#define VU_MAX_PAYLOAD_BYTES 1024
/** As many descriptors as a memory table has. */
#define VU_MAX_FDS           VHP_MEM_MAX_REGIONS

/** One message and what came with it. */
struct vhp_vu_msg {
	struct vhp_vu_header header;
	union {
		uint64_t u64;
		struct vhp_vu_ring_state state;
		struct vhp_vu_ring_addr addr;
		struct vhp_vu_mem_table mem;
		struct vhp_vu_log log;
		uint8_t bytes[VU_MAX_PAYLOAD_BYTES];
	};
	int fds[VU_MAX_FDS]; /**< owned by whoever holds the message */
	unsigned int n_fds;
};

#endif /* VHP_VHOST_USER_H */
