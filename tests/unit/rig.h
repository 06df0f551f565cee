/* SPDX-License-Identifier: BSD-3-Clause */
/* A guest with one virtqueue, and room for the bursts that a test takes from it. */
#ifndef TEST_RIG_H
#define TEST_RIG_H

#include "ring.h"

#define RIG_IOV (4 * VHP_MAX_IOV)

struct rig {
	struct guest g;
	struct vhp_vring vr;
	struct ring r;
	struct vhp_frame frames[VHP_BURST_PKTS];
	struct iovec iov[RIG_IOV];
};

/** A transmitq of the usual guest that begins at base. */
struct rig *rig_new(uint16_t size, bool packed, uint32_t base);
void rig_free(struct rig *rig);

/** Take up to n chains into frames, with the whole pool. */
uint16_t rig_take(struct rig *rig, uint16_t n);

/** Give the first n of frames back. */
void rig_put(struct rig *rig, uint16_t n);

/** How often vr told of a fault since rig_new(). */
unsigned int rig_faults(void);

#endif /* TEST_RIG_H */
