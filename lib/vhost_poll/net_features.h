/* SPDX-License-Identifier: BSD-3-Clause */
/* Which virtio features a network device offers to its guest, and why not the others. */
#ifndef VHP_NET_FEATURES_H
#define VHP_NET_FEATURES_H

#include "vhost_poll.h"

/** Feature bits that a device offers, whose port can honour port_features. */
uint64_t vhp_net_features(const struct vhp_net_conf *conf, uint64_t port_features);

#endif /* VHP_NET_FEATURES_H */
