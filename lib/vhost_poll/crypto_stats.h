/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of crypto devices, for stats.c. */
#ifndef VHP_CRYPTO_STATS_H
#define VHP_CRYPTO_STATS_H

#include <stdio.h>

struct vhp_net_dev;

/** Print a device's sessions, requests and answers: totals since start. */
void vhp_crypto_stats_print(FILE *out, const struct vhp_net_dev *dev);

#endif /* VHP_CRYPTO_STATS_H */
