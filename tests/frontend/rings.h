/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-rings: a table of what a guest may put into its rings, and what the back end has to do.
 *
 * A case is a row: how the ring is filled (a function that posts descriptors with
 * rg_post()), and what must be observed. The runner gives every row a fresh connection for
 * each layout it is meant for, warms the ring up, lets the row fill it, checks the
 * expectation, and then that everything is alive. New cases are new rows.
 */
#ifndef RINGS_H
#define RINGS_H

#include "fe_host.h"
#include "fe_net.h"
#include "fe_sched.h"

#define RG_CHAINS_MAX 64 /**< posted by one row */
#define RG_DESCS_MAX  2048

/** Layouts of a row: which rings, and whether its descriptors lie in the ring or in a table. */
#define RG_SPLIT_DIRECT    0x1U
#define RG_SPLIT_INDIRECT  0x2U
#define RG_PACKED_DIRECT   0x4U
#define RG_PACKED_INDIRECT 0x8U
#define RG_LAYOUTS         4
/** The row's descriptors make sense only as they are: no table is put around them. */
#define RG_SPLIT           (RG_SPLIT_DIRECT)
#define RG_PLAIN           (RG_SPLIT_DIRECT | RG_PACKED_DIRECT)
#define RG_EVERY           (RG_PLAIN | RG_SPLIT_INDIRECT | RG_PACKED_INDIRECT)

/** Token of a row's first chain; those of well-behaved buffers are below. */
#define RG_TOKEN (1ULL << 33)

/** Returned by a check that leaves the device in a state to leave. */
#define RG_RECONNECT 1

enum rg_queue { RG_TX, RG_RX };

enum rg_expect {
	/** Each chain comes back with length 0, nothing of it passes, the ring goes on. */
	RG_DROP,
	/** Transmit: each chain's frame arrives whole. Receive: a frame arrives in the chain. */
	RG_PASS,
	/** Each chain comes back; whether it carried a frame is open. */
	RG_RETURN,
	/** The ring is broken: error fd signalled, no longer served. */
	RG_BROKEN,
	/** Either RG_RETURN or RG_BROKEN. */
	RG_ANY,
	/** The row checks for itself, and the ring goes on. */
	RG_SELF,
};

struct rg_run;

struct rg_case {
	const char *name;
	const char *what;
	enum rg_queue queue;
	uint32_t layouts;
	/** Fill the ring (RG_SELF: and check). @return 0, or -EPROTO with run->fault. */
	int (*fill)(struct rg_run *run);
	enum rg_expect expect;
	uint64_t need, without; /**< features beyond the usual */
	const void *arg;        /**< the row's own data */
};

extern const struct rg_case rg_tx_cases[], rg_table_cases[], rg_rx_cases[], rg_net_cases[],
	rg_offload_cases[], rg_log_cases[];

struct rg_opts {
	struct fe_net_cfg net;
	const char *iface;
	const char *second, *second_iface; /**< NULL: no second device */
	uint64_t seed;
	uint32_t gap_ms;  /**< longest pause that the second device may see */
	uint32_t used_ms; /**< limit for everything that is awaited */
	int pid;
};

/** A chain that a row has posted. */
struct rg_chain {
	struct fe_spec spec; /**< transmit: the frame in it, if has_frame */
	bool has_frame;
	bool done;
	uint32_t len;  /**< used length */
	uint32_t nseg; /**< receive, RG_PASS: where its bytes are */
	struct fe_seg seg[FE_SEGS_MAX];
};

/** The second device: pinged all the time from a thread of its own. */
struct rg_second;

struct rg_run {
	const struct rg_opts *opts;
	const struct rg_case *c;
	bool packed, indirect; /**< layout being tested */
	struct fe_net *net;
	struct fe_host *host;
	struct rg_second *second;
	struct fe_ring *ring; /**< the queue under test */
	struct fe_stream to_host, to_guest;
	struct fe_rng rng;
	struct fe_fault fault;
	uint32_t seq;  /**< of the next frame in either direction */
	uint64_t slab; /**< guest memory of the well-behaved transmit frame */
	uint32_t n_chains;
	struct rg_chain chain[RG_CHAINS_MAX];
	uint8_t *buf, *expected;
};

/* rings_post.c: filling. */

/** Guest memory for the row's use, of its own; 0 never (aborts the row with a fault). */
uint64_t rg_alloc(struct rg_run *run, uint64_t bytes);

/** A header of zeros and a fresh raw frame of @p len bytes at a new place; counts as chain. */
uint64_t rg_frame(struct rg_run *run, uint32_t len);

/** As rg_frame(), of any kind; @p hdr (output) may then be changed in guest memory. */
uint64_t rg_frame_of(struct rg_run *run, const struct fe_spec *spec);

/**
 * Post one chain of @p n descriptors (not published yet) as the next rg_chain. In the
 * indirect layouts the descriptors go into a table, a next of FE_NEXT_ELEM(k) being entry k.
 * @return 0 or -EPROTO.
 */
int rg_post(struct rg_run *run, const struct fe_raw_desc *d, uint32_t n);

/** Post one descriptor as it is, without a table around it. */
int rg_post_plain(struct rg_run *run, const struct fe_raw_desc *d, uint32_t n);

/** The length of header and frame of the chain being filled. */
uint32_t rg_bytes(const struct rg_run *run, uint32_t frame_len);

/** Address of a hole, of which no byte is guest memory. */
uint64_t rg_hole(const struct rg_run *run);

/* rings_check.c: checking. */

/**
 * Check the row's expectation after fill.
 * @return 0: the ring goes on; RG_RECONNECT: as expected, but a new connection is needed; -EPROTO.
 */
int rg_check(struct rg_run *run);

/** Publish the row's chains and check RG_PASS for them. 0 or -EPROTO. */
int rg_passes(struct rg_run *run);

/** A good frame each way on the device under test, outside of the chains. 0 or -EPROTO. */
int rg_good_tx(struct rg_run *run);
int rg_good_rx(struct rg_run *run);

/** The next frame of the guest that the host sees has to be this one. 0 or -EPROTO. */
int rg_host_expect(struct rg_run *run, const struct fe_spec *spec);

/** Host sends a raw frame of @p len bytes; @p spec gets it. 0 or -EPROTO. */
int rg_host_send(struct rg_run *run, uint32_t len, struct fe_spec *spec);

/** Wait for the next received frame and compare it. 0 or -EPROTO. */
int rg_guest_expect(struct rg_run *run, const struct fe_spec *spec, struct fe_rxframe *f);

/** Wait for used entries of the row's chains until all are done. 0 or -EPROTO. */
int rg_await_chains(struct rg_run *run);

/* rings_second.c */

struct rg_second *rg_second_start(const struct rg_opts *o);
/** Stop the thread, free all. */
void rg_second_stop(struct rg_second *s);
/**
 * Longest time between two answers since the last call.
 * @return 0, or -EPROTO with the reason in @p fault if the device failed or paused.
 */
int rg_second_check(struct rg_second *s, struct fe_fault *fault);

#endif
