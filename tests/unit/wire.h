/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A qpair between a guest (guest.h, ring.h) and a port in memory (memory_port.h): all that
 * transmitq.c, receiveq.c and interleave.c need.
 */
#ifndef TEST_WIRE_H
#define TEST_WIRE_H

#include "memory_port.h"
#include "qpair.h"
#include "ring.h"

struct wire_conf {
	uint16_t ring_size;
	bool packed;
	uint32_t base; /**< of both rings */
	uint16_t hdr_bytes;
	bool mergeable;
};

struct wire {
	struct guest g;
	struct vhp_qpair qp;
	struct ring tx, rx;
	struct memory_port port;
};

/**
 * Ticks of rte_rdtsc() in a second, as rte_get_tsc_hz() answers here, where there is no
 * EAL that has measured. UINT64_MAX / 1024: time stands still.
 */
extern uint64_t wire_tsc_hz;

struct wire *wire_new(const struct wire_conf *conf);
void wire_free(struct wire *w);

/** Bytes that depend on the frame's number; header first, all zero. */
void wire_fill(uint8_t *bytes, uint32_t len_bytes, uint16_t hdr_bytes, uint32_t number);

/** The sum of all drops of a ring. */
uint64_t wire_drops(const struct vhp_vring *vr);

#endif /* TEST_WIRE_H */
