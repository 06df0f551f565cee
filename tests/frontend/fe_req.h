/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layer 1, second half: one helper per vhost-user request, each with the payload
 * that the vhost-user specification gives it.
 *
 * The helpers do what they are told: a ring index of 0x10000 or a ring size of 3
 * is sent as it is. All return 0 or -errno as fe_set() and fe_call() do.
 */
#ifndef FE_REQ_H
#define FE_REQ_H

#include <stdint.h>

#include "fe_msg.h"

/** Payload of the requests that carry a ring index and a number. */
struct fe_vring_state {
	uint32_t index;
	uint32_t num;
};

/** Payload of SET_VRING_ADDR; addresses are front-end user addresses. */
struct fe_vring_addr {
	uint32_t index;
	uint32_t flags; /**< bit 0: log writes to the used ring */
	uint64_t desc;
	uint64_t used;
	uint64_t avail;
	uint64_t log; /**< guest-physical address of the used ring, for the log */
};

/** One region of SET_MEM_TABLE, ADD_MEM_REG and REM_MEM_REG. */
struct fe_region_msg {
	uint64_t gpa;
	uint64_t bytes;
	uint64_t uva; /**< front-end user address */
	uint64_t mmap_offset;
};

/** Payload of SET_LOG_BASE. */
struct fe_log_msg {
	uint64_t mmap_bytes;
	uint64_t mmap_offset;
};

/** Payload of GET_INFLIGHT_FD and SET_INFLIGHT_FD. */
struct fe_inflight_msg {
	uint64_t mmap_bytes;
	uint64_t mmap_offset;
	uint16_t num_queues;
	uint16_t queue_size;
};

/** Cipher and hash setup of a virtio-crypto session, as CREATE_CRYPTO_SESSION carries it. */
struct fe_crypto_session {
	int64_t session_id; /**< (output) set by the back end, -1 on failure */
	uint32_t cipher_alg;
	uint32_t key_len;
	uint32_t hash_alg;
	uint32_t hash_result_len;
	uint32_t auth_key_len;
	uint32_t add_len;
	uint8_t op_type;
	uint8_t direction;
	uint8_t hash_mode;
	uint8_t alg_chain_order;
	uint8_t reserved[20]; /**< the front end's own pointers, meaningless to the back end */
	uint8_t key[64];
	uint8_t auth_key[512];
};

#define FE_REGIONS_MAX 16 /**< regions that fe_set_mem_table() can send; 8 are allowed */

int fe_get_features(struct fe_conn *c, uint64_t *features);
int fe_set_features(struct fe_conn *c, uint64_t features);
int fe_get_protocol_features(struct fe_conn *c, uint64_t *features);
/** Also remembers @p features in the connection. */
int fe_set_protocol_features(struct fe_conn *c, uint64_t features);
int fe_set_owner(struct fe_conn *c);
int fe_reset_owner(struct fe_conn *c);
int fe_reset_device(struct fe_conn *c);
int fe_get_queue_num(struct fe_conn *c, uint64_t *queues);

/** @param n regions, 0..FE_REGIONS_MAX, with one fd each in @p fds. */
int fe_set_mem_table(struct fe_conn *c, const struct fe_region_msg *r, const int *fds, uint32_t n);
int fe_add_mem_reg(struct fe_conn *c, const struct fe_region_msg *r, int fd);
int fe_rem_mem_reg(struct fe_conn *c, const struct fe_region_msg *r);
int fe_get_max_mem_slots(struct fe_conn *c, uint64_t *slots);

/** Hands over the dirty log and waits for the reply that LOG_SHMFD prescribes. */
int fe_set_log_base(struct fe_conn *c, const struct fe_log_msg *log, int fd);
/** @param fd eventfd that the back end signals when it has logged, -1 for none. */
int fe_set_log_fd(struct fe_conn *c, int fd);

int fe_set_vring_num(struct fe_conn *c, uint32_t index, uint32_t num);
int fe_set_vring_addr(struct fe_conn *c, const struct fe_vring_addr *a);
int fe_set_vring_base(struct fe_conn *c, uint32_t index, uint32_t base);
/** Stops the ring; @p base gets where the back end stood. */
int fe_get_vring_base(struct fe_conn *c, uint32_t index, uint32_t *base);
int fe_set_vring_enable(struct fe_conn *c, uint32_t index, uint32_t enable);
int fe_set_vring_endian(struct fe_conn *c, uint32_t index, uint32_t big);
/**
 * SET_VRING_KICK, _CALL or _ERR.
 * @param fd sent along; -1 sends the "no fd" bit instead.
 */
int fe_set_vring_fd(struct fe_conn *c, uint32_t request, uint64_t index, int fd);
/** In-band kick (needs F_INBAND_NOTIFICATIONS). */
int fe_vring_kick(struct fe_conn *c, uint32_t index);

/** @param mac six bytes of the guest's address. */
int fe_send_rarp(struct fe_conn *c, const uint8_t *mac);
int fe_net_set_mtu(struct fe_conn *c, uint64_t mtu);
int fe_set_backend_req_fd(struct fe_conn *c, int fd);
int fe_set_status(struct fe_conn *c, uint64_t status);
int fe_get_status(struct fe_conn *c, uint64_t *status);

/** @param bytes 0..256 of config space at @p offset; @p data gets them. */
int fe_get_config(struct fe_conn *c, uint32_t offset, uint32_t bytes, void *data);
int fe_set_config(
	struct fe_conn *c, uint32_t offset, uint32_t flags, const void *data, uint32_t bytes);

/** @param want queues and size asked for; @p got and @p fd (caller closes) get the answer. */
int fe_get_inflight_fd(struct fe_conn *c, const struct fe_inflight_msg *want,
	struct fe_inflight_msg *got, int *fd);
int fe_set_inflight_fd(struct fe_conn *c, const struct fe_inflight_msg *m, int fd);

/** @param s sent; its session_id gets the back end's answer. */
int fe_create_crypto_session(struct fe_conn *c, struct fe_crypto_session *s);
int fe_close_crypto_session(struct fe_conn *c, uint64_t session_id);

/**
 * Wait until the back end has dealt with all messages sent so far: it answers in order, so
 * this asks for something harmless and waits for the answer.
 */
int fe_sync(struct fe_conn *c);

/** Name of a request for messages, "?" if unknown. */
const char *fe_request_name(uint32_t request);

#endif
