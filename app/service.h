/* SPDX-License-Identifier: BSD-3-Clause */
/* What runs between start and end: the ports, the devices, the signals and the clock. */
#ifndef APP_SERVICE_H
#define APP_SERVICE_H

#include "config.h"

struct service;

/** Block the signals that service_create() takes; before the first thread is made. */
void service_block_signals(const struct config *config);

/**
 * Make an event loop that SIGINT and SIGTERM end and that prints counters at the interval
 * of --stats. With --config, SIGHUP reads the file again and applies what differs. After
 * rte_eal_init().
 * @param config     replaced by what was read again; its owner still frees it
 * @param n_pollers  that there will be
 * @return NULL with errno set if that fails
 */
struct service *service_create(struct config *config, unsigned int n_pollers);

/** Its event loop. */
struct vhp_loop *service_loop(struct service *service);

/** Open the host side of every pair. 0 or a negative errno value, the reason logged. */
int service_open_ports(struct service *service);

/** Close them. */
void service_close_ports(struct service *service);

/** Make the vhost-user devices on the open ports. 0 or a negative errno value, logged. */
int service_create_devices(struct service *service);

/** Take them down. */
void service_destroy_devices(struct service *service);

/** Run until a signal comes. 0 or a negative errno value. */
int service_run(struct service *service);

/** Free the loop and what belongs to it. Takes NULL. */
void service_destroy(struct service *service);

#endif /* APP_SERVICE_H */
