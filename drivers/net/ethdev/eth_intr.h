/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive interrupt of a queue of DPDK's, as a descriptor to sleep on. */
#ifndef VHP_ETH_INTR_H
#define VHP_ETH_INTR_H

#include <stdbool.h>
#include <stdint.h>

/** Of one queue. Main thread: opens it; poller: the rest. */
struct eth_intr {
	int fd; /**< readable once a frame came; -1: there is none. The driver's */
	uint16_t port_id;
	uint16_t queue;
	uint8_t drain_bytes; /**< what a read takes from fd; 0: not ours to read */
	bool by_driver;      /**< the driver has to be told to interrupt */
	bool on;
	uint32_t vain; /**< how often it told of a frame since there was one; see eth_intr_on() */
};

/** Find what there is to sleep on for a queue of a started port; fd is -1 if there is nothing. */
void eth_intr_open(struct eth_intr *intr, uint16_t port_id, uint16_t queue);

/**
 * Have fd tell of the next frame. A frame that came before may not show: look after this.
 * @return 0; -1: fd tells nothing, or again and again of frames that are not there
 */
int eth_intr_on(struct eth_intr *intr);

/** Fd need not tell any more; what it told is taken from it. */
void eth_intr_off(struct eth_intr *intr);

#endif /* VHP_ETH_INTR_H */
