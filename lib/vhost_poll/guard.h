/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guest memory belongs to the front end, which can cut it short at any moment; touching a
 * page that is gone raises SIGBUS. The guard knows each device's memory, maps an empty page
 * over the hole, so that whoever touched it goes on, and marks the device.
 */
#ifndef VHP_GUARD_H
#define VHP_GUARD_H

#include <stdbool.h>

#include "dirty_log.h"
#include "mem.h"

struct vhp_guard;

/**
 * Catch SIGBUS from now on; a fault that is not in guest memory keeps its default action.
 * Main thread, before the first device.
 * @param notify  called in the signal handler of any thread after a device was marked
 */
int vhp_guard_install(void (*notify)(void));

/** The guard of one device. Returns NULL if memory is short. Main thread. */
struct vhp_guard *vhp_guard_new(void);

/** Give it back. Takes NULL. Main thread, once nobody touches the memory any more. */
void vhp_guard_free(struct vhp_guard *guard);

/** The device's memory is this from now on. Main thread, while no poller has the device. */
void vhp_guard_set(
	struct vhp_guard *guard, const struct vhp_mem *mem, const struct vhp_dirty_log *log);

/** Was a hole covered since the last call? Main thread. */
bool vhp_guard_hit(struct vhp_guard *guard);

#endif /* VHP_GUARD_H */
