/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the driver: tap.c moves frames, tap_if.c sets the interface up. */
#ifndef VHP_TAP_PRIV_H
#define VHP_TAP_PRIV_H

#include "tap.h"

struct tap_port;

struct tap_queue {
	struct vhp_port_queue pq;
	bool gone; /**< the interface was deleted; poller sets, main thread clears */
};

struct tap_port {
	struct vhp_port port;
	struct vhp_tap_conf conf;
	char iface[IFNAMSIZ]; /**< as the kernel named it */
	struct vhp_loop *loop;
	int timer_fd; /**< looks for a deleted interface that came back */
	uint64_t virtio_features;
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

/** Header size and receive offloads for these virtio features. Returns 0 or -errno. */
int tap_if_configure(int fd, uint16_t hdr_bytes, uint64_t virtio_features);

#endif /* VHP_TAP_PRIV_H */
