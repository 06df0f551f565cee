/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the data path and a ring layout: counts each chain that is taken, given back and
 * put, and checks what the layout promises of it.
 */
#ifndef FUZZ_LEDGER_H
#define FUZZ_LEDGER_H

#include "guest.h"
#include "vring.h"

struct ledger {
	const struct vhp_vring *vr;
	const struct guest *g;
	struct vhp_vring_ops ops; /**< of the ring, ours in front */
	const struct vhp_vring_ops *inner;
	uint64_t taken; /**< without those given back */
	uint64_t put;
	uint64_t used_bytes; /**< that put said */
};

/** Watch this ring; its ops are replaced. One ledger for a transmitq, one for a receiveq. */
void ledger_attach(struct ledger *ledger, struct vhp_vring *vr, const struct guest *g);

/** Does the piece lie in guest memory? */
bool ledger_is_guest(const struct guest *g, const struct iovec *piece);

#endif /* FUZZ_LEDGER_H */
