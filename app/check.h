/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that need the host, before anything is created on it. */
#ifndef APP_CHECK_H
#define APP_CHECK_H

#include <stdio.h>

#include "config.h"
#include "mistake.h"

/**
 * Can the sockets and the taps be made; who are the users and groups that are named?
 * Fills in socket_owner and socket_group of each device. Creates nothing; before
 * rte_eal_init().
 * @param running  what is being served already, which is not in the way; NULL: nothing
 * @return 0 or -EINVAL with *why filled
 */
int check_host(struct config *config, const struct config *running, struct mistake *why);

/** One line per device with keys that are accepted and have no effect. */
void check_print_ignored(const struct config *config, FILE *out);

/** One line per pair: "net_vhost0 (/run/x.sock, server) <-> net_tap0 (tap0)". */
void check_print_pairs(const struct config *config, FILE *out);

/** The virtio features that each net_vhost offers, and why not the others. */
void check_print_features(const struct config *config, FILE *out);

#endif /* APP_CHECK_H */
