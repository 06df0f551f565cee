/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-roundtrip: what its files share. */
#ifndef ROUNDTRIP_H
#define ROUNDTRIP_H

#include "fe_host.h"
#include "fe_net.h"

enum rt_event { RT_EVENT_OFF, RT_EVENT_ON, RT_EVENT_RANDOM };
enum rt_direction { RT_TX = 1, RT_RX = 2, RT_BOTH = 3 };

#define RT_PHASES_MAX 16

/** One kind of frames, of several that are sent in turn. */
struct rt_phase {
	const char *name;
	uint32_t kinds; /**< bit per enum fe_kind */
	uint32_t min_len, max_len;
};

/** Options, read only after main() has filled them. */
struct rt_opts {
	const char *iface; /**< far end, or: */
	const char *peer;  /**< socket of the device that the far end is the guest of */
	struct fe_net_cfg net;
	struct rt_phase phases[RT_PHASES_MAX]; /**< none: one, of the options below */
	uint32_t n_phases;
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
	uint32_t pause_us; /**< of silence at most, whenever all that was sent has arrived */
	enum rt_event event;
	enum rt_direction direction;
	enum fe_chain chain;
	enum fe_hdr_place hdr_place;
	bool peer_packed;
	bool cut;        /**< a frame with a segmentation request may arrive as segments */
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
	uint32_t n_cut;   /**< of those received, as segments */
	uint32_t segment; /**< of frame n_received, due next; 0: none came yet */
	uint64_t bytes, strays;
	uint8_t *out;      /**< frame being sent */
	uint8_t *expected; /**< frame being compared */
	uint8_t *part;     /**< segment being compared, and what it must be */
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

/** The far end: a host's interface, or a second guest. */
struct rt_far {
	struct fe_host host;
	struct fe_net *guest; /**< NULL: host */
	struct fe_how how;
	struct fe_rng rng;
	char fault[160]; /**< reason of the last -EPROTO */
};

/** Open it; undo with rt_far_close(). @return 0 or -errno. */
int rt_far_open(struct rt_far *far, const struct rt_opts *o);
void rt_far_close(struct rt_far *far);

/** Hand rings over, if it has any; throw away what waits. @return 0 or -EPROTO. */
int rt_far_start(struct rt_far *far);

/** Send one frame. @return 0; -EAGAIN and -ENOBUFS: try later; -errno. */
int rt_far_send(struct rt_far *far, const struct virtio_net_hdr_v1 *hdr, const uint8_t *frame,
	uint32_t len);

/** Receive one frame without waiting. @return bytes; -EAGAIN; -errno. */
int rt_far_recv(struct rt_far *far, struct virtio_net_hdr_v1 *hdr, uint8_t *buf, uint32_t cap);

/** Everything of a running test. */
struct rt_run {
	const struct rt_opts *opts;
	struct fe_net *net;
	struct rt_far *far;
	struct rt_flow tx, rx;
	struct fe_rng rng;
	struct fe_fault fault;
	struct fe_how tx_how, rx_how;
	uint8_t *buf;
	uint32_t restarts;
	uint64_t idles;
};

/** Run the test that the options describe. @return exit status */
int rt_main(const struct rt_opts *o);

/** Send and compare all frames of both flows. @return 0 or -EPROTO with run->fault. */
int rt_loop(struct rt_run *run);

#endif
