/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two guests joined with each other: a pair of host ports, each the other's far end. Where one
 * poller serves both queues, frames do not come here (straight.c in the library), but for those
 * that have to be changed on the way; where two do, a frame lies in memory of ours until the
 * other guest has buffers.
 */
#ifndef VHP_VM_H
#define VHP_VM_H

#include "vhp_port.h"

/** Two net_vhost devices. Strings are copied. */
struct vhp_vm_conf {
	const char *names[2]; /**< "net_vhost0", "net_vhost1" */
	uint16_t queues;      /**< of both, 1..VHP_MAX_QUEUES */
};

/** Virtio feature bits that such ports can honour. */
uint64_t vhp_vm_features(void);

/**
 * Make both ports. The caller owns them and ends each with its ops->close(), in any order.
 * Queue i of one and queue i of the other may be served by different pollers. Main thread.
 * @param out  (output) ports[0] is for the device names[0]
 * @return 0 or a negative errno value
 */
int vhp_vm_open(const struct vhp_vm_conf *conf, struct vhp_port *out[2]);

#endif /* VHP_VM_H */
