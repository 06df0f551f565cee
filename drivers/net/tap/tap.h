/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_tap: a kernel tap interface as a host port. Frames go between the kernel and
 * guest memory with one copy; the virtio-net header passes through (IFF_VNET_HDR).
 */
#ifndef VHP_TAP_H
#define VHP_TAP_H

#include <net/ethernet.h>
#include <net/if.h>

#include "vhp_port.h"

/** One net_tap device. Strings are copied. */
struct vhp_tap_conf {
	char name[VHP_NAME_BYTES]; /**< "net_tap0" */
	char iface[IFNAMSIZ];      /**< interface; "" or with "%d": the kernel chooses a number */
	char bridge[IFNAMSIZ];     /**< bridge to join, "" for none */
	bool mac_given;
	struct ether_addr mac; /**< address of the interface on the host */
	bool persist;          /**< the interface stays when the daemon ends */
	uint16_t queues;       /**< 1..VHP_MAX_QUEUES; more than one needs IFF_MULTI_QUEUE */
	int sndbuf_bytes; /**< bytes in flight to the kernel before it is "full"; 0: no limit */
	bool offload;     /**< pass checksum and segmentation offloads through */
};

/**
 * Can this tap be opened? Creates nothing; usable before rte_eal_init().
 * @param key   (output) the key at fault: "iface", "bridge" or "" (the device itself)
 * @param why   (output) reason for a user, at most why_bytes with its zero
 * @return 0 or a negative errno value
 */
int vhp_tap_check(const struct vhp_tap_conf *conf, const char **key, char *why, size_t why_bytes);

/**
 * Virtio feature bits that such a tap can honour on this kernel. Asked of a tap in a
 * network namespace of a child process, so that nothing appears on the host; usable
 * before rte_eal_init().
 */
uint64_t vhp_tap_features(const struct vhp_tap_conf *conf);

/**
 * Make (or attach to) the interface, set it up and return the port.
 * The caller owns it and ends it with port->ops->close(). Main thread.
 * @return 0 or a negative errno value; nothing is left on the host after a failure
 */
int vhp_tap_open(struct vhp_loop *loop, const struct vhp_tap_conf *conf, struct vhp_port **out);

#endif /* VHP_TAP_H */
