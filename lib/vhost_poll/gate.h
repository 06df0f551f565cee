/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate stands between a front end and DPDK's vhost library. The public socket is
 * ours; DPDK's lies in its private runtime directory. The gate reads each message whole,
 * checks it (gate_check.c), relays it, waits for DPDK's answer, and tells the device
 * before and after, so that a ring is never served while DPDK changes what lies under it.
 *
 * One message is in flight per connection. Everything is on the main thread's loop and
 * nothing waits: a silent front end delays nobody else.
 */
#ifndef VHP_GATE_H
#define VHP_GATE_H

#include "vhost_poll.h"
#include "vhost_user.h"

struct vhp_gate;

/** The device behind a gate. All on the main thread. */
struct vhp_gate_ops {
	/** A message that may change rings or memory is about to be relayed: stop using them. */
	void (*before)(void *ctx, const struct vhp_vu_msg *msg);
	/**
	 * The message was carried out (ok) or refused by DPDK, which is at rest until the next.
	 * May take descriptors from msg->fds by setting them to -1, and change the answer.
	 */
	void (*after)(void *ctx, struct vhp_vu_msg *msg, struct vhp_vu_msg *answer, bool ok);
	/**
	 * A request that is the device's to answer (vhp_request_info::own). NULL: it has none.
	 * May wipe the message; its header stays.
	 * @param answer  (in/out) an answer of 8 bytes, 0
	 */
	bool (*own)(void *ctx, struct vhp_vu_msg *msg, struct vhp_vu_msg *answer);
	/** The front end is there; or gone (all it handed over is to be given up). */
	void (*connected)(void *ctx);
	void (*disconnected)(void *ctx);
};

struct vhp_gate_conf {
	const char *name;         /**< of the device, for log lines; kept */
	const char *path;         /**< public socket; kept */
	const char *backend_path; /**< DPDK's socket; kept */
	bool client;
	uint16_t n_rings;  /**< rings that the device has */
	uint16_t n_queues; /**< answer to GET_QUEUE_NUM */
	uid_t socket_owner;
	gid_t socket_group;
	mode_t socket_mode;
};

/**
 * Open the gate: listen, or start to connect.
 * @return 0 or a negative errno value, logged
 */
int vhp_gate_open(struct vhp_loop *loop, const struct vhp_gate_conf *conf,
	const struct vhp_gate_ops *ops, void *ctx, struct vhp_gate **out);

/** Close it, with the connection; removes the public socket if it is still ours. Takes NULL. */
void vhp_gate_close(struct vhp_gate *gate);

/** End the connection, if there is one; calls disconnected(). The gate stays open. */
void vhp_gate_hang_up(struct vhp_gate *gate, const char *why);

/** Reasons that are told apart. */
#define VHP_GATE_REFUSALS 48

/** How often a message was refused for this reason, since the gate was opened. */
struct vhp_refusal {
	const char *why; /**< NULL: no more entries */
	uint64_t count;
};

/** The table, of VHP_GATE_REFUSALS entries; NULL of NULL. Any thread; main thread writes. */
const struct vhp_refusal *vhp_gate_refusals(const struct vhp_gate *gate);

/** Is a front end connected? */
bool vhp_gate_connected(const struct vhp_gate *gate);

/* ---- gate_check.c: pure, so that tests and fuzzers reach it ------------------- */

/** What is known about a request. */
struct vhp_request_info {
	const char *name; /**< NULL: not let through */
	uint16_t size_bytes;
	bool changes;  /**< rings or memory may change: before() and a barrier are due */
	bool replies;  /**< the answer has a payload of its own */
	bool own;      /**< not DPDK's; of some devices only */
	bool any_size; /**< a payload of the wrong size is answered */
	enum vhp_payload {
		VHP_PAYLOAD_OTHER,
		VHP_PAYLOAD_STATE,
		VHP_PAYLOAD_ADDR,
		VHP_PAYLOAD_FILE,
		VHP_PAYLOAD_MEM,
		VHP_PAYLOAD_LOG
	} payload;
};

/** Table entry; never NULL. */
const struct vhp_request_info *vhp_request_info(uint32_t request);

/** The ring that a checked message is about; -1: the device as a whole. */
int vhp_gate_ring_index(const struct vhp_vu_msg *msg);

/**
 * Check a header before its payload is read.
 * @return NULL if fine, else the reason
 */
const char *vhp_gate_check_header(const struct vhp_vu_header *header);

/**
 * Check a whole message: descriptors against the request, indices, sizes, regions.
 * Maps regions to see that they can be mapped.
 * @return NULL if fine, else the reason
 */
const char *vhp_gate_check(const struct vhp_vu_msg *msg, uint16_t n_rings);

/* ---- gate_io.c: messages on Unix sockets --------------------------------------- */

/** A message whose payload is one number. */
struct vhp_vu_msg vhp_vu_make_u64(uint32_t request, uint32_t flags, uint64_t value);

/** A message that arrives in pieces. */
struct vhp_vu_reader {
	struct vhp_vu_msg msg;
	size_t have_bytes; /**< of header and payload */
};

/**
 * Read on without waiting.
 * @param why  (output) reason for a user, where the answer is below 0
 * @return 1: reader->msg is whole; 0: more has to come; -EPIPE: closed by the peer;
 *         -EPROTO: a message that is refused before it is whole; else -errno
 */
int vhp_vu_read(int fd, struct vhp_vu_reader *reader, const char **why);

/** Close what came with a message and start anew. */
void vhp_vu_reader_reset(struct vhp_vu_reader *reader);

/** Send header, payload and descriptors at once, without waiting. Returns 0 or -errno. */
int vhp_vu_send(int fd, const struct vhp_vu_msg *msg);

#endif /* VHP_GATE_H */
