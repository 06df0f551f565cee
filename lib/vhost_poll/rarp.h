/* SPDX-License-Identifier: BSD-3-Clause */
/* The announcement of a guest that has migrated here (vhost-user, SEND_RARP). */
#ifndef VHP_RARP_H
#define VHP_RARP_H

#include "vhp_port.h"

/**
 * Send a reverse ARP request from the guest's address out of the port, so that switches learn
 * where it is. Main thread, while no poller has the queue. A port that is full or down
 * loses it: the guest's first frame teaches the same.
 */
void vhp_send_rarp(struct vhp_port_queue *queue, const uint8_t mac[6]);

#endif /* VHP_RARP_H */
