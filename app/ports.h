/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kinds of host port have in common, for those who need not tell them apart. */
#ifndef APP_PORTS_H
#define APP_PORTS_H

#include "config.h"

/** The host side of a port for people: an interface, or "" where the name says it all. */
const char *port_place(const struct device *dev);

/** Can it be opened? Creates nothing; before rte_eal_init(). 0 or negative with *why filled. */
int port_check(const struct device *dev, struct mistake *why);

/** Virtio feature bits that it can honour, as far as is known before rte_eal_init(). */
uint64_t port_features(const struct device *dev);

/**
 * Open the port of a pair; after rte_eal_init().
 * @param out  (output) its place in an array with one for each pair, NULL at first; where
 *             two guests are joined, the first of their two pairs fills both places
 * @return 0 or a negative errno value, the reason logged
 */
int port_open(const struct config *config, unsigned int pair, struct vhp_loop *loop,
	struct vhp_port **out);

#endif /* APP_PORTS_H */
