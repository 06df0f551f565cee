/* SPDX-License-Identifier: BSD-3-Clause */
/* Does DPDK have a driver for a --vdev, and did it start? */
#ifndef APP_DRIVERS_H
#define APP_DRIVERS_H

#include "config.h"
#include "mistake.h"

/**
 * Every device that is left to DPDK has a driver there? Loads DPDK's drivers, as EAL
 * would; usable before rte_eal_init(). Not asked where the user brings drivers (-d).
 * @return 0 or -EINVAL with *why filled
 */
int drivers_check(const struct config *config, struct mistake *why);

/**
 * After rte_eal_init(), which goes on when a device fails: the first --vdev of DPDK's
 * that has not started, NULL if all have.
 */
const struct device *drivers_failed(const struct config *config);

#endif /* APP_DRIVERS_H */
