/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of a rate limit; see rate.h. Nothing of DPDK is used here. */
#include <stddef.h>

#include "rate.h"

#define FRACTION_BITS 16

static uint64_t
cost_of(uint64_t tsc_hz, uint64_t units, uint64_t per_second)
{
	return per_second != 0 ? (tsc_hz * units << FRACTION_BITS) / per_second + 1 : 0;
}

bool
vhp_rate_set(struct vhp_rate *rate, uint64_t tsc_hz, uint64_t bps, uint64_t pps)
{
	rate->ahead_cycles = tsc_hz / 1000000 * VHP_RATE_AHEAD_US;
	__atomic_store_n(&rate->byte_cost, cost_of(tsc_hz, 8, bps), __ATOMIC_RELAXED);
	__atomic_store_n(&rate->pkt_cost, cost_of(tsc_hz, 1, pps), __ATOMIC_RELAXED);
	/* What was owed under another limit is forgotten. */
	__atomic_store_n(&rate->bytes_paid_tsc, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rate->pkts_paid_tsc, 0, __ATOMIC_RELAXED);
	return bps != 0 || pps != 0;
}

/* Cycles to wait, and if there are none, how many units may pass. */
static uint64_t
wait_for(uint64_t cost, const uint64_t *paid_tsc, uint64_t ahead_cycles, uint64_t now_tsc,
	uint32_t *units)
{
	uint64_t paid = __atomic_load_n(paid_tsc, __ATOMIC_RELAXED);
	uint64_t left, n;

	*units = UINT32_MAX;
	if (cost == 0)
		return 0;
	if (paid > now_tsc + ahead_cycles)
		return paid - now_tsc - ahead_cycles;
	left = paid > now_tsc ? now_tsc + ahead_cycles - paid : ahead_cycles;
	n = (left << FRACTION_BITS) / cost;
	*units = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	return 0;
}

uint64_t
vhp_rate_wait(const struct vhp_rate *rate, uint64_t now_tsc, struct vhp_rate_room *room)
{
	uint64_t byte_cost = __atomic_load_n(&rate->byte_cost, __ATOMIC_RELAXED);
	uint64_t pkt_cost = __atomic_load_n(&rate->pkt_cost, __ATOMIC_RELAXED);
	uint32_t bytes, pkts;
	uint64_t for_bytes =
		wait_for(byte_cost, &rate->bytes_paid_tsc, rate->ahead_cycles, now_tsc, &bytes);
	uint64_t for_pkts =
		wait_for(pkt_cost, &rate->pkts_paid_tsc, rate->ahead_cycles, now_tsc, &pkts);

	if (room != NULL)
		*room = (struct vhp_rate_room){.pkts = pkts > 0 ? pkts : 1, .bytes = bytes};
	return for_bytes > for_pkts ? for_bytes : for_pkts;
}

static void
pay(uint64_t *paid_tsc, uint64_t now_tsc, uint64_t cycles)
{
	uint64_t paid = __atomic_load_n(paid_tsc, __ATOMIC_RELAXED);
	uint64_t until;

	do {
		/* Time that nobody used is not saved up. */
		until = (paid > now_tsc ? paid : now_tsc) + cycles;
	} while (!__atomic_compare_exchange_n(
		paid_tsc, &paid, until, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void
vhp_rate_charge(struct vhp_rate *rate, uint64_t now_tsc, uint32_t pkts, uint32_t bytes)
{
	uint64_t byte_cost = __atomic_load_n(&rate->byte_cost, __ATOMIC_RELAXED);
	uint64_t pkt_cost = __atomic_load_n(&rate->pkt_cost, __ATOMIC_RELAXED);

	if (byte_cost != 0)
		pay(&rate->bytes_paid_tsc, now_tsc, bytes * byte_cost >> FRACTION_BITS);
	if (pkt_cost != 0)
		pay(&rate->pkts_paid_tsc, now_tsc, pkts * pkt_cost >> FRACTION_BITS);
}
