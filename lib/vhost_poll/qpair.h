/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A qpair: receiveq N and transmitq N of a device, the port queue on their other side,
 * and what moves frames between them. Owned by one poller while attached (handoff.c),
 * by the main thread otherwise; the two never touch it at the same time. Counters are
 * the exception: one writer, any number of readers.
 */
#ifndef VHP_QPAIR_H
#define VHP_QPAIR_H

#include <linux/virtio_net.h>

#include "hist.h"
#include "pcap.h"
#include "rate.h"
#include "vring.h"

/** One more than a frame can have, so that a frame that fills it shows as too long. */
#define VHP_BOUNCE_BYTES (VHP_MAX_HDR_BYTES + VHP_MAX_FRAME_BYTES + 1)

struct vhp_poller;

/** What a turn moved. */
struct vhp_work {
	uint32_t pkts;
	uint32_t bytes;
	uint32_t descs;
};

/**
 * Receive buffers taken from the ring but not used yet, oldest first. Kept over bursts, so
 * that a descriptor is read once however small the frames are.
 */
struct vhp_stash {
	struct vhp_frame *frames; /**< frames[head..tail); [put..head) are used, not yet put */
	struct iovec *iov;        /**< iov[iov_head..iov_tail); one more behind iov_room */
	uint32_t room;
	uint32_t iov_room;
	uint32_t put, head, tail;
	uint32_t iov_head, iov_tail;
	uint64_t bytes; /**< what the buffers hold together */
};

/** A descriptor that can end the poller's sleep for this qpair. */
struct vhp_wake {
	struct vhp_qpair *qp;
	enum vhp_wake_kind { VHP_WAKE_TX_KICK, VHP_WAKE_RX_KICK, VHP_WAKE_PORT, VHP_WAKES } kind;
	int fd;          /**< as registered with epoll, -1: not */
	uint32_t events; /**< as registered */
};

/** Counters beyond those of the two rings. The poller writes. */
struct vhp_qpair_stats {
	uint64_t turns;      /**< looks at this qpair */
	uint64_t turns_busy; /**< looks that moved a frame */
	uint64_t port_full;  /**< transmit bursts that the port cut short */
	uint64_t no_buffers; /**< receive bursts that the guest's buffers cut short */
	uint64_t wakes[VHP_WAKES];
	uint64_t moves;        /**< to another poller; main thread */
	uint64_t limited[2];   /**< bursts that a rate put off: transmitq, receiveq */
	uint64_t straight;     /**< received frames that came from another guest in one copy */
	uint64_t busy_cycles;  /**< in turns that moved a frame */
	uint64_t poll_cycles;  /**< in turns that moved none */
	uint64_t sleep_cycles; /**< while its poller slept */
	/**
	 * Of each turn that moved a frame: since the last look at this qpair, or since the
	 * poller woke if that is later. What waited, waited at most that long while the poller
	 * was awake; what the kernel takes to wake it is not in here.
	 */
	struct vhp_hist look;
	struct vhp_hist delivered; /**< the same, to the end of the turn: used, and called */
};

/** What rates are computed from: values at the previous print. Main thread. */
struct vhp_printed {
	uint64_t pkts;
	uint64_t bytes;
};

struct vhp_qpair {
	char name[VHP_NAME_BYTES + 8]; /**< "net_vhost0:0" */

	struct vhp_vring tx; /**< transmitq */
	struct vhp_vring rx; /**< receiveq */
	struct vhp_port_queue *pq;
	const struct vhp_port_ops *port;
	void (*turn)(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work);
	uint64_t poll_cycles;   /**< poll window or VHP_WINDOW_*; main thread: wo, poller: ro */
	uint64_t window_cycles; /**< the window of the turn at hand; poller */
	/**
	 * The qpair of the same poller that receives what this one sends; NULL: none. Holds for
	 * the turn at hand, of either of the two; poller.
	 */
	struct vhp_qpair *peer;
	/** Of the device; NULL: no limit. Main thread: wo, poller: ro. */
	struct vhp_rate *tx_rate, *rx_rate;
	/** Where frames are copied to, NULL: nowhere. Main thread: wo, poller: ro. */
	struct vhp_pcap_ring *pcap;
	struct vhp_pcap_ring *pcap_ring; /**< pcap.c; main thread */
	uint64_t features;               /**< virtio feature bits that are in force */
	uint16_t hdr_bytes;
	bool mergeable;

	/* Receive side. */
	struct vhp_stash stash;
	uint32_t want_bytes;     /**< buffer space to offer to the port for one frame */
	bool starved;            /**< the last frame found too little buffer space */
	uint32_t pending_bytes;  /**< a frame in bounce that waits for buffers; 0: none */
	uint64_t pending_tsc;    /**< last look at it, 0: none of this poller */
	uint64_t pending_cycles; /**< it waited while a poller looked */
	uint8_t *bounce;         /**< VHP_BOUNCE_BYTES */
	uint16_t small_run;      /**< small frames since the last large one */
	bool bad_next;           /**< the chain behind the stash breaks a rule */
	bool call_due;           /**< buffers were put since the last call */

	uint16_t give_pkts; /**< as many of its frames as its peer lately took at once; poller */

	uint64_t tx_window_end_tsc; /**< deferred only: the host side rests until then */

	uint64_t looked_tsc;      /**< start of the last turn */
	uint64_t rests_until_tsc; /**< not looked at before, unless the poller has nothing to do */
	uint32_t idle_turns;      /**< in a row, while others were busy */

	struct vhp_qpair_stats stats;
	struct vhp_printed printed[2]; /**< transmitq, receiveq */
	struct vhp_wake wake[VHP_WAKES];
	struct vhp_poller *poller; /**< NULL: not attached; main thread only */
	struct vhp_poller *home;   /**< the last one, for as long as the connection lasts */
	uint64_t busy_sampled;     /**< balance.c: stats.busy_cycles at the last sample */
	uint32_t load_permille;    /**< balance.c: of a core; main thread */
};

/** Room for a frame in pieces that one poller uses for its transmit bursts. */
struct vhp_scratch {
	struct vhp_frame frames[VHP_BURST_PKTS];
	struct iovec iov[2 * VHP_MAX_IOV];
};

/** Take one burst from the transmitq and hand it to the port. Adds to work. */
void vhp_transmitq_drain(struct vhp_qpair *qp, struct vhp_work *work);

/** Take one burst from the port and put it into the receiveq. Adds to work. */
void vhp_receiveq_fill(struct vhp_qpair *qp, struct vhp_work *work);

/** A burst into a receiveq. */
struct vhp_fill {
	struct vhp_rate *rate;
	uint64_t now_tsc; /**< of its begin; with a rate only */
	struct vhp_rate_room room;
	struct vhp_work work;
};

/** A frame in the memory of another guest. */
struct vhp_given {
	struct virtio_net_hdr hdr; /**< a copy, checked */
	const struct iovec *iov;
	uint32_t n_iov;
	uint32_t at; /**< offset in the pieces of what follows the header */
	uint32_t len_bytes;
};

/**
 * Begin a burst; false: not now, and there is nothing to end. What it does is added up in
 * fill->work.
 */
bool vhp_receiveq_begin(struct vhp_qpair *qp, struct vhp_fill *fill);

/**
 * Copy a frame into the receiveq, within a burst.
 * @return false if it has to wait: for buffers (qp->starved), or for another burst
 */
bool vhp_receiveq_give(struct vhp_qpair *qp, struct vhp_fill *fill, const struct vhp_given *frame);

/** End a burst: used buffers become the guest's, which is called. */
void vhp_receiveq_end(struct vhp_qpair *qp, struct vhp_fill *fill);

/**
 * Send frames to qp->peer, straight where that is possible and by the port where not; the
 * arguments and the result are those of vhp_port_ops::tx().
 */
uint16_t vhp_straight_send(
	struct vhp_qpair *qp, struct vhp_frame *frames, uint16_t n, struct vhp_work *work);

/** Start with an empty stash. Main thread, not attached. */
void vhp_receiveq_start(struct vhp_qpair *qp);

/** Give all buffers of the stash back to the ring. Main thread, not attached. */
void vhp_receiveq_untake(struct vhp_qpair *qp);

/** One turn of a qpair: interleave.c. */
void vhp_turn_interleave(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work);
void vhp_turn_deferred(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work);

/**
 * Allocate what a qpair needs for its life; descriptors of -1, counters of 0.
 * Main thread. Returns 0 or -ENOMEM.
 */
int vhp_qpair_init(struct vhp_qpair *qp, const char *dev_name, uint16_t index);

/** Make room for the buffers of a receiveq of this size. Main thread, not attached. */
int vhp_qpair_resize(struct vhp_qpair *qp, uint16_t ring_size);

/** Move all of it to a NUMA node; -1: leave it. Main thread, not attached. */
void vhp_qpair_place(struct vhp_qpair *qp, int node);

/** Busy polling begins: nothing that can end a sleep is asked for. Its owner. */
void vhp_qpair_disarm(struct vhp_qpair *qp);

/** Free it all. Main thread, not attached. */
void vhp_qpair_fini(struct vhp_qpair *qp);

#endif /* VHP_QPAIR_H */
