/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-roundtrip: what its three files share. */
#ifndef ROUNDTRIP_H
#define ROUNDTRIP_H

#include "fe_host.h"
#include "fe_net.h"

enum rt_event { RT_EVENT_OFF, RT_EVENT_ON, RT_EVENT_RANDOM };
enum rt_direction { RT_TX = 1, RT_RX = 2, RT_BOTH = 3 };

/** Options, read only after main() has filled them. */
struct rt_opts {
	const char *iface;
	struct fe_net_cfg net;
	uint64_t seed;
	uint32_t frames; /**< per direction */
	uint32_t min_len, max_len;
	uint32_t kinds; /**< bit per enum fe_kind */
	uint32_t vlans; /**< up to so many tags per frame */
	uint32_t window;
	uint32_t max_segs;
	uint32_t rx_min, rx_max; /**< bytes of a receive buffer */
	uint32_t restart;        /**< stop and start the rings after so many frames; 0: never */
	uint32_t qpair;          /**< the one used */
	uint32_t stall_ms;
	enum rt_event event;
	enum rt_direction direction;
	enum fe_chain chain;
	enum fe_hdr_place hdr_place;
	bool plain_host; /**< the host's socket carries no virtio-net headers */
};

/** One direction of traffic. */
struct rt_flow {
	struct fe_stream stream;
	const struct rt_opts *opts;
	bool from_host;
	uint32_t kinds;   /**< those that the negotiated features allow */
	bool finish_csum; /**< the receiver did not accept partial checksums */
	uint32_t n_sent, n_received;
	uint64_t bytes, strays;
	uint8_t *out;      /**< frame being sent */
	uint8_t *expected; /**< frame being compared */
	bool built;        /**< out holds frame n_sent */
	struct fe_spec spec;
	struct virtio_net_hdr_v1 hdr;
};

int rt_flow_init(struct rt_flow *f, const struct rt_opts *o, bool from_host, uint64_t features);
void rt_flow_free(struct rt_flow *f);

/** Make out, spec and hdr those of frame n_sent, unless they are. */
void rt_flow_build(struct rt_flow *f);

/**
 * Compare a received frame with frame n_received, and count it.
 * @return 0; 1: not one of ours; -EPROTO with the reason in @p fault.
 */
int rt_flow_check(struct rt_flow *f, const uint8_t *frame, uint32_t len,
	const struct virtio_net_hdr_v1 *hdr, struct fe_fault *fault);

/** Everything of a running test. */
struct rt_run {
	const struct rt_opts *opts;
	struct fe_net *net;
	struct fe_host *host;
	struct rt_flow tx, rx;
	struct fe_rng rng;
	struct fe_fault fault;
	struct fe_how tx_how, rx_how;
	uint8_t *buf;
	uint32_t restarts;
	uint64_t idles;
};

/** Send and compare all frames of both flows. @return 0 or -EPROTO with run->fault. */
int rt_loop(struct rt_run *run);

#endif
