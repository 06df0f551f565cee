/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-hostile: a table of what a front end may do to its socket, its descriptors and its
 * memory. It may lose its own device by that, and nothing else.
 *
 * The runner gives each row a started device of its own, with a frame passed each way.
 * After the row it checks how the connection stands, then that everything is alive: the
 * process runs, another device answers messages, a third one's traffic has not paused,
 * and good frames pass on this device (on a new connection if the row has cost the old one).
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "fe_host.h"
#include "fe_net.h"
#include "hostile_proc.h"
#include "rings.h"

/** How the connection must stand after a row. */
enum ho_end {
	HO_OPEN,   /**< goes on as if nothing had been */
	HO_CLOSED, /**< ended by the back end */
	HO_EITHER,
	/** The front end itself leaves or has spoilt the rings: a new connection is made. */
	HO_LEAVE,
};

/** The row says nothing about rings: one layout is enough. */
#define HO_ONE 0x1U

struct ho_run;

struct ho_case {
	const char *name;
	const char *what;
	/** @return 0 or -EPROTO with run->fault. */
	int (*run)(struct ho_run *run);
	enum ho_end end;
	uint32_t flags;
	const void *arg;
	uint64_t need; /**< feature bits to accept beyond the usual */
};

extern const struct ho_case ho_msg_cases[], ho_flood_cases[], ho_mem_cases[], ho_fd_cases[],
	ho_ring_cases[], ho_conn_cases[];

struct ho_opts {
	struct rg_opts second; /**< net, second device and limits; see rings.h */
	const char *third;     /**< socket of a device that only answers messages */
	uint32_t scale;        /**< percent of the full number of rounds of long rows */
};

struct ho_run {
	const struct ho_opts *opts;
	const struct ho_case *c;
	bool packed;
	struct fe_net *net;
	struct fe_host *host;
	struct fe_stream to_host, to_guest;
	struct fe_rng rng;
	struct fe_fault fault;
	uint32_t seq; /**< of the next frame in either direction; never reused */
	uint8_t *buf;
};

/** Close and connect anew, start, pass a frame each way. 0 or -EPROTO. */
int ho_reopen(struct ho_run *run);

/** Has the back end closed the connection? */
bool ho_is_closed(const struct ho_run *run);

/** One frame each way, whole and within the limit. 0 or -EPROTO. */
int ho_ping(struct ho_run *run);
int ho_ping_tx(struct ho_run *run);
int ho_ping_rx(struct ho_run *run);

/** Rounds of a long row: @p full scaled by --scale, at least 1. */
uint32_t ho_rounds(const struct ho_run *run, uint32_t full);

/**
 * Send a message that has to be refused: with an error where @p flags ask for an answer, else
 * by closing; afterwards frames pass (on a new connection if need be). 0 or -EPROTO.
 */
int ho_refused(struct ho_run *run, uint32_t request, uint32_t flags, const void *payload,
	uint32_t size, const int *fds, uint32_t nfds);

/** ho_refused(), once asking for an answer and once not. */
int ho_refused_twice(struct ho_run *run, uint32_t request, const void *payload, uint32_t size,
	const int *fds, uint32_t nfds);

/** Keep the errno of a step that should have worked. 0 if rc is 0, else -EPROTO. */
int ho_must(struct ho_run *run, const char *what, int rc);

/** Add "what number" to a fault that is there. */
void ho_note(struct ho_run *run, const char *what, uint32_t number);

/** Is the back end's process there? */
bool ho_process_lives(const struct ho_run *run);

/* ---- hostile_traffic.c ------------------------------------------------------------ */

/** Frames in both directions from a thread of its own, order and number checked. */
struct ho_traffic;

struct ho_traffic *ho_traffic_start(struct ho_run *run);
/** Between these two the thread does not touch the rings. */
void ho_traffic_hold(struct ho_traffic *t);
void ho_traffic_go(struct ho_traffic *t);
/** Frames passed so far, both directions. */
uint64_t ho_traffic_count(struct ho_traffic *t);
/** Let what is under way arrive, end the thread. 0, or -EPROTO: a frame lost, doubled, late. */
int ho_traffic_stop(struct ho_traffic *t);
/** End the thread whatever has become of the frames. */
void ho_traffic_abandon(struct ho_traffic *t);

#endif
