/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_af_packet: a packet socket on an interface of the host as a host port. Frames go
 * between the kernel and guest memory with one copy; the virtio-net header passes through
 * (PACKET_VNET_HDR).
 */
#ifndef VHP_AF_PACKET_H
#define VHP_AF_PACKET_H

#include <net/if.h>

#include "vhp_port.h"

/** One net_af_packet device. Strings are copied. */
struct vhp_af_packet_conf {
	char name[VHP_NAME_BYTES]; /**< "net_af_packet0" */
	char iface[IFNAMSIZ];      /**< interface, which must exist */
	uint16_t queues;           /**< 1..VHP_MAX_QUEUES; more than one share by PACKET_FANOUT */
	int frame_bytes;           /**< with frame_count: what the kernel keeps for us, */
	int frame_count;           /**< at most, in each queue */
	bool qdisc_bypass;         /**< send past the interface's queueing discipline */
};

/**
 * Can this port be opened? Creates nothing; usable before rte_eal_init().
 * @param key   (output) the key at fault: "iface" or "" (the device itself)
 * @param why   (output) reason for a user, at most why_bytes with its zero
 * @return 0 or a negative errno value
 */
int vhp_af_packet_check(
	const struct vhp_af_packet_conf *conf, const char **key, char *why, size_t why_bytes);

/** Virtio feature bits that such a port can honour on this kernel. Main thread. */
uint64_t vhp_af_packet_features(void);

/**
 * Open the sockets and return the port. The interface becomes promiscuous while it lives;
 * nothing else of it is changed. The caller owns it and ends it with port->ops->close().
 * Main thread.
 * @return 0 or a negative errno value
 */
int vhp_af_packet_open(
	struct vhp_loop *loop, const struct vhp_af_packet_conf *conf, struct vhp_port **out);

#endif /* VHP_AF_PACKET_H */
