/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A front end owns the other ends of the call and error descriptors and can make a write to
 * them block, whatever flags we set. A periodic signal to the writing thread ends such a
 * write with EINTR; it does nothing else.
 */
#ifndef VHP_WATCHDOG_H
#define VHP_WATCHDOG_H

#include <time.h>

/** The watchdog of one thread. */
struct vhp_watchdog {
	timer_t timer;
};

/** Make the calling thread's watchdog, disarmed. Returns 0 or -errno. */
int vhp_watchdog_init(struct vhp_watchdog *dog);

/** Signals from now on; on the watched thread. */
void vhp_watchdog_arm(struct vhp_watchdog *dog);

/** No more signals, so that they do not end a sleep; on the watched thread. */
void vhp_watchdog_disarm(struct vhp_watchdog *dog);

/** Free it; on the watched thread. */
void vhp_watchdog_fini(struct vhp_watchdog *dog);

#endif /* VHP_WATCHDOG_H */
