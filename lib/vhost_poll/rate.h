/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rate limit of one direction of a device, in bytes and in frames. What passes is paid for
 * in time: the limit is a moment up to which all that has passed is paid, and a burst may
 * begin while that moment is not too far ahead. Nothing is dropped: what may not pass yet stays
 * where it is. The pollers of a device's qpairs share it.
 */
#ifndef VHP_RATE_H
#define VHP_RATE_H

#include <stdbool.h>
#include <stdint.h>

/** So long a burst may be ahead of its limit. */
#define VHP_RATE_AHEAD_US 10000

struct vhp_rate {
	/* Main thread: wo, pollers: ro. */
	uint64_t byte_cost; /**< TSC cycles of a byte, times 2^16; 0: no limit */
	uint64_t pkt_cost;  /**< of a frame */
	uint64_t ahead_cycles;
	/* Pollers: rw, atomic. */
	uint64_t bytes_paid_tsc; /**< until then all bytes are paid for */
	uint64_t pkts_paid_tsc;
};

/** What may pass in the burst at hand. */
struct vhp_rate_room {
	uint32_t pkts;
	uint32_t bytes;
};

/**
 * Set or lift the limit; takes effect with the next burst. Main thread.
 * @param bps  bits a second, 0: no limit
 * @param pps  frames a second, 0: no limit
 * @return is there a limit?
 */
bool vhp_rate_set(struct vhp_rate *rate, uint64_t tsc_hz, uint64_t bps, uint64_t pps);

/**
 * Cycles until a burst may begin, 0: now. Pollers.
 * @param room  (output) with 0: what may pass, one frame at least; NULL: not asked for
 */
uint64_t vhp_rate_wait(const struct vhp_rate *rate, uint64_t now_tsc, struct vhp_rate_room *room);

/** So much has passed. Pollers. */
void vhp_rate_charge(struct vhp_rate *rate, uint64_t now_tsc, uint32_t pkts, uint32_t bytes);

#endif /* VHP_RATE_H */
