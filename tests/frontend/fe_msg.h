/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layer 1 of the test front end: vhost-user messages.
 *
 * fe_send_raw() puts any bytes and any file descriptors on the socket, so that a
 * test can break every rule; fe_send() makes a header around a payload; the typed
 * helpers of fe_req.h build on those two. Numbers and layouts are those of the
 * vhost-user protocol specification (message header, message types).
 *
 * A connection belongs to one thread. Functions return 0 or -errno unless they
 * say otherwise; -ECONNRESET means that the back end has closed the connection.
 */
#ifndef FE_MSG_H
#define FE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Front-end message types. */
enum fe_request {
	FE_GET_FEATURES = 1,
	FE_SET_FEATURES = 2,
	FE_SET_OWNER = 3,
	FE_RESET_OWNER = 4,
	FE_SET_MEM_TABLE = 5,
	FE_SET_LOG_BASE = 6,
	FE_SET_LOG_FD = 7,
	FE_SET_VRING_NUM = 8,
	FE_SET_VRING_ADDR = 9,
	FE_SET_VRING_BASE = 10,
	FE_GET_VRING_BASE = 11,
	FE_SET_VRING_KICK = 12,
	FE_SET_VRING_CALL = 13,
	FE_SET_VRING_ERR = 14,
	FE_GET_PROTOCOL_FEATURES = 15,
	FE_SET_PROTOCOL_FEATURES = 16,
	FE_GET_QUEUE_NUM = 17,
	FE_SET_VRING_ENABLE = 18,
	FE_SEND_RARP = 19,
	FE_NET_SET_MTU = 20,
	FE_SET_BACKEND_REQ_FD = 21,
	FE_IOTLB_MSG = 22,
	FE_SET_VRING_ENDIAN = 23,
	FE_GET_CONFIG = 24,
	FE_SET_CONFIG = 25,
	FE_CREATE_CRYPTO_SESSION = 26,
	FE_CLOSE_CRYPTO_SESSION = 27,
	FE_POSTCOPY_ADVISE = 28,
	FE_POSTCOPY_LISTEN = 29,
	FE_POSTCOPY_END = 30,
	FE_GET_INFLIGHT_FD = 31,
	FE_SET_INFLIGHT_FD = 32,
	FE_GPU_SET_SOCKET = 33,
	FE_RESET_DEVICE = 34,
	FE_VRING_KICK = 35,
	FE_GET_MAX_MEM_SLOTS = 36,
	FE_ADD_MEM_REG = 37,
	FE_REM_MEM_REG = 38,
	FE_SET_STATUS = 39,
	FE_GET_STATUS = 40,
	FE_REQUEST_MAX = 44, /**< first number this specification leaves unused */
};

/** Bits of the header's flags word. */
#define FE_MSG_VERSION    0x1U
#define FE_MSG_REPLY      0x4U
#define FE_MSG_NEED_REPLY 0x8U

/** Protocol feature bits. */
enum fe_protocol_feature {
	FE_PROTO_MQ = 0,
	FE_PROTO_LOG_SHMFD = 1,
	FE_PROTO_RARP = 2,
	FE_PROTO_REPLY_ACK = 3,
	FE_PROTO_NET_MTU = 4,
	FE_PROTO_BACKEND_REQ = 5,
	FE_PROTO_CRYPTO_SESSION = 7,
	FE_PROTO_PAGEFAULT = 8,
	FE_PROTO_CONFIG = 9,
	FE_PROTO_INFLIGHT_SHMFD = 12,
	FE_PROTO_RESET_DEVICE = 13,
	FE_PROTO_CONFIGURE_MEM_SLOTS = 15,
	FE_PROTO_STATUS = 16,
};

/** Virtio feature bit by which a back end offers protocol features. */
#define FE_F_PROTOCOL_FEATURES 30
/** Virtio feature bit: log every write to guest memory. */
#define FE_F_LOG_ALL           26

/** In the u64 payload of KICK, CALL and ERR: there is no fd in this message. */
#define FE_VRING_NOFD (1ULL << 8)

#define FE_MSG_PAYLOAD_MAX 4096
#define FE_MSG_FDS_MAX     64

struct fe_msg_hdr {
	uint32_t request;
	uint32_t flags;
	uint32_t size; /**< bytes of payload that follow */
};

/** A received message. The caller closes the fds it keeps; see fe_msg_close_fds(). */
struct fe_msg {
	struct fe_msg_hdr hdr;
	uint32_t nfds;
	int fds[FE_MSG_FDS_MAX];
	union {
		uint64_t u64;
		uint8_t bytes[FE_MSG_PAYLOAD_MAX];
	} payload;
};

/** One end of a vhost-user socket. Zero it, then fe_connect() or fe_listen(). */
struct fe_conn {
	int fd;              /**< connection, -1 when there is none */
	int listen_fd;       /**< listening socket, -1 as a client */
	uint64_t proto;      /**< negotiated protocol features */
	uint32_t timeout_ms; /**< limit of every wait for the back end */
	bool ack;            /**< ask for a reply to every SET message; needs REPLY_ACK */
};

/**
 * Connect to the back end's listening socket at @p path.
 * Tries again until it listens or @p timeout_ms is over (-ETIMEDOUT);
 * the same limit holds for later replies.
 */
int fe_connect(struct fe_conn *c, const char *path, uint32_t timeout_ms);

/** Listen at @p path for a back end that is the socket's client; replaces a stale file. */
int fe_listen(struct fe_conn *c, const char *path, uint32_t timeout_ms);

/** Wait up to @p timeout_ms for the back end to connect to fe_listen()'s socket. */
int fe_accept(struct fe_conn *c, uint32_t timeout_ms);

/** Close the connection only; a listening socket stays. NULL-safe, also when closed. */
void fe_disconnect(struct fe_conn *c);

/** Close everything. */
void fe_conn_close(struct fe_conn *c);

/**
 * Send exactly these bytes in one sendmsg, with @p nfds (0..FE_MSG_FDS_MAX) fds.
 * The bytes need not be a message, nor a whole one.
 */
int fe_send_raw(struct fe_conn *c, const void *bytes, size_t len, const int *fds, uint32_t nfds);

/**
 * Send one well-formed message: header and payload in one sendmsg.
 * @param flags added to the version bit, e.g. FE_MSG_NEED_REPLY
 * @param size bytes of payload, 0..FE_MSG_PAYLOAD_MAX
 */
int fe_send(struct fe_conn *c, uint32_t request, uint32_t flags, const void *payload, uint32_t size,
	const int *fds, uint32_t nfds);

/**
 * Receive one whole message within @p timeout_ms.
 * @return 0; -ETIMEDOUT; -ECONNRESET; -EBADMSG if its size is above FE_MSG_PAYLOAD_MAX.
 */
int fe_recv(struct fe_conn *c, struct fe_msg *m, uint32_t timeout_ms);

/** Close the fds that came with @p m. */
void fe_msg_close_fds(struct fe_msg *m);

/**
 * Send a request that has an answer, and receive that.
 * @return 0; as fe_recv(); -EBADMSG if the answer is to another request or lacks the reply bit.
 */
int fe_call(struct fe_conn *c, uint32_t request, const void *payload, uint32_t size, const int *fds,
	uint32_t nfds, struct fe_msg *reply);

/**
 * Send a SET message; with c->ack also wait for its acknowledgement.
 * @return 0; -EREMOTEIO if the back end acknowledged with failure; as fe_call().
 */
int fe_set(struct fe_conn *c, uint32_t request, const void *payload, uint32_t size, const int *fds,
	uint32_t nfds);

/**
 * Wait until the back end closes the connection; whatever it still sends is thrown away.
 * @return 0 once it is closed, -ETIMEDOUT.
 */
int fe_wait_closed(struct fe_conn *c, uint32_t timeout_ms);

#endif
