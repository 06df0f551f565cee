/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Round trips of one byte over TCP from the host's stack to the guest's, with both ends of
 * the connection and the guest's driver in one thread that never sleeps. A wake-up of
 * another CPU, which on a virtual machine takes longer than all else, is not in them.
 */
#ifndef GUEST_RR_H
#define GUEST_RR_H

#include <stdbool.h>
#include <stdint.h>

#include "bench_util.h"

struct guest_rr {
	int client, listener, server; /**< server: -1 until the connection is there */
	bool outstanding;
	uint64_t begin_ns, from_ns, until_ns, sent_ns;
	struct bn_rtt rtt;
};

/**
 * Open a listener here and a client in the network namespace @p netns, and begin to connect.
 * Ends the program on failure.
 * @param ns length of the run in nanoseconds
 */
void guest_rr_open(struct guest_rr *r, const char *netns, const char *address, uint64_t ns);

/** Do what can be done without waiting. @return false when the run is over, and printed */
bool guest_rr_step(struct guest_rr *r);

#endif /* GUEST_RR_H */
