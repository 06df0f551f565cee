/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the driver: tap.c moves frames, tap_if.c sets the interface up. */
#ifndef VHP_TAP_PRIV_H
#define VHP_TAP_PRIV_H

#include "tap.h"

struct tap_port;
struct tap_uring;

struct tap_queue {
	struct vhp_port_queue pq;
	bool detached;           /**< the host does not send to it; main thread */
	bool gone;               /**< the interface was deleted; poller sets, main thread clears */
	unsigned int offloads;   /**< TUN_F_... in force; main thread */
	uint32_t generation;     /**< counts files behind pq.fd; main thread writes, poller reads */
	struct tap_uring *uring; /**< NULL: readv and writev; poller, while it has the queue */
};

struct tap_port {
	struct vhp_port port;
	struct vhp_tap_conf conf;
	char iface[IFNAMSIZ]; /**< as the kernel named it */
	struct vhp_loop *loop;
	int timer_fd; /**< looks for a deleted interface that came back */
	uint64_t virtio_features;
	bool has_uso; /**< the kernel's tap knows UDP segmentation */
	struct tap_queue *queues;
};

/**
 * Open one queue of the interface; the first creates it or attaches to it.
 * @param iface  (in/out) name; the kernel replaces "%d"
 * @return descriptor or -errno
 */
int tap_if_open(const struct vhp_tap_conf *conf, char iface[IFNAMSIZ]);

/** Set address, bridge and persistence, and bring the link up. Returns 0 or -errno. */
int tap_if_setup(const struct vhp_tap_conf *conf, const char *iface, int fd);

/** Attach or detach a queue of a multi-queue interface. Returns 0 or -errno. */
int tap_if_steer(int fd, bool on);

/** Returns 0 or -errno. */
int tap_if_set_mtu(const char *iface, uint16_t mtu_bytes);

/** Does the kernel's tap take UDP segmentation offload? Leaves the offloads off. */
bool tap_if_has_uso(int fd);

/** The same, waiting up to a second for a dead owner to let go of the interface. */
int tap_if_open_patiently(const struct vhp_tap_conf *conf, char iface[IFNAMSIZ]);

/** Take all frames that wait, for nobody. Returns how many. */
int tap_if_discard(int fd);

/**
 * Header size and receive offloads for these virtio features.
 * @return the offloads (TUN_F_...) or -errno
 */
int tap_if_configure(int fd, uint16_t hdr_bytes, uint64_t virtio_features);

/* ---- tap_uring.c: the queue by io_uring; on the poller ----------------------- */

/** Try to have an io_uring for this queue; it sets q->uring. Returns 0 or -errno. */
int tap_uring_open(struct tap_queue *q);

/** Free it, if there is one. Main thread, while no poller has the queue. */
void tap_uring_close(struct tap_queue *q);

/**
 * Make sure that the ring is this thread's and the queue's present file's.
 * @return false if it had to be given up; q->uring is NULL then
 */
bool tap_uring_current(struct tap_queue *q);

/** May a frame wait? Without a system call unless the kernel has something to tell. */
bool tap_uring_readable(struct tap_queue *q);

/** A read found nothing. */
void tap_uring_drained(struct tap_queue *q);

/**
 * Send n <= VHP_BURST_PKTS frames, in order, with one system call; drop skips a frame.
 * @param results  (output) for each what writev would have said: bytes or -errno
 */
void tap_uring_tx(struct tap_queue *q, const struct vhp_frame *frames, uint16_t n, int *results);

#endif /* VHP_TAP_PRIV_H */
