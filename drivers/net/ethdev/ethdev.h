/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any port that DPDK has a driver for, as a host port: frames are copied between guest
 * memory and mbufs, the virtio-net header becomes the mbuf's offload flags and back.
 * What the driver cannot do for the guest is done here in software.
 */
#ifndef VHP_ETHDEV_H
#define VHP_ETHDEV_H

#include "vhp_port.h"

/** Longest name of a device of DPDK's, with its zero (RTE_ETH_NAME_MAX_LEN). */
#define VHP_ETHDEV_NAME_BYTES 64

/** One device of DPDK's. Strings are copied. */
struct vhp_ethdev_conf {
	char name[VHP_ETHDEV_NAME_BYTES]; /**< "net_ring0", "0000:01:00.0" */
	uint16_t queues;                  /**< 1..VHP_MAX_QUEUES */
};

/** Virtio feature bits that such a port can honour, whatever its driver. */
uint64_t vhp_ethdev_features(void);

/**
 * Configure and start the device that EAL has probed under this name; no other is touched.
 * The caller owns the port and ends it with port->ops->close(). Main thread.
 * @return 0 or a negative errno value; the device is stopped then
 */
int vhp_ethdev_open(const struct vhp_ethdev_conf *conf, struct vhp_port **out);

#endif /* VHP_ETHDEV_H */
