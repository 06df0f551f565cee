/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-wake: what its files share. */
#ifndef WAKE_H
#define WAKE_H

#include "fe_host.h"
#include "fe_net.h"
#include "fe_sched.h"

struct wk_opts {
	const char *iface;
	struct fe_net_cfg net;
	uint64_t seed;
	uint32_t rounds;
	uint32_t poll_us;  /**< window that the back end runs with, 0: none */
	uint32_t limit_us; /**< served later than this is late */
	uint32_t lost_us;  /**< not served by then is lost */
	bool histogram;    /**< print one per case */
	int pid;           /**< of the back end, to know what it waited for a CPU; 0: unknown */
};

/** Latencies of a case; the histogram has eight steps per power of two of nanoseconds. */
struct wk_latency {
	uint64_t n, sum_ns, max_ns;
	uint64_t late;    /**< above limit_us */
	uint64_t excused; /**< above limit_us while a thread of either side waited for a CPU */
	uint64_t step[512];
};

/** A mode (ring layout and notification kind) while its cases run. */
struct wk_run {
	const struct wk_opts *opts;
	const char *mode;
	struct fe_net *net;
	struct fe_host *host;
	struct fe_stream to_host, to_guest;
	struct fe_rng rng;
	struct fe_sched sched;
	struct fe_fault fault;
	struct wk_latency lat;
	bool event_idx;
	uint32_t seq_to_host, seen_by_host; /**< next frame sent, next one due */
	uint32_t seq_to_guest, seen_by_guest;
	uint8_t *buf;
	char note[120]; /**< added to the case's line */
};

struct wk_case {
	const char *name;
	const char *what;
	/** @return 0, or -EPROTO with run->fault. */
	int (*run)(struct wk_run *run);
};

extern const struct wk_case wk_round_cases[], wk_call_cases[];

#define WK_FRAME_BYTES 60

/** Record a latency; marks the scheduler's account for the next one. */
void wk_served(struct wk_run *run, uint64_t ns);

/** Latency below which @p percent of the records lie, in nanoseconds. */
uint64_t wk_percentile(const struct wk_latency *l, double percent);

/** Add the guest's next frame (60 bytes), not yet published. @return 0 or -EPROTO. */
int wk_guest_add(struct wk_run *run);

/** The host sends its next frame. @return 0 or -EPROTO. */
int wk_host_send(struct wk_run *run);

/** Take what the host's socket holds and check its order. @return frames or -EPROTO. */
int wk_host_take(struct wk_run *run);

/** Take received frames and check their order; posts nothing. @return frames or -EPROTO. */
int wk_guest_take(struct wk_run *run);

/** Post receive buffers for all that are free; kick if asked. */
void wk_guest_post(struct wk_run *run);

/** Reap transmit buffers. @return how many or -EPROTO. */
int wk_guest_reap(struct wk_run *run);

/** Wait until the host has got all frames of the guest. @return 0 or -EPROTO. */
int wk_host_all(struct wk_run *run);

#endif
