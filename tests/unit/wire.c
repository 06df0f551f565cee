/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "checks.h"
#include "wire.h"

uint64_t wire_tsc_hz = UINT64_MAX / 1024;

/* In the place of EAL's. */
uint64_t
rte_get_tsc_hz(void)
{
	return wire_tsc_hz;
}

struct wire *
wire_new(const struct wire_conf *conf)
{
	struct wire *w = calloc(1, sizeof(*w));

	CHECK(w != NULL);
	wire_tsc_hz = UINT64_MAX / 1024;
	guest_init(&w->g);
	CHECK(vhp_qpair_init(&w->qp, "net_vhost0", 0) == 0);
	memory_port_init(&w->port, conf->hdr_bytes);
	ring_init(&w->tx, &w->qp.tx, &w->g, conf->ring_size, conf->packed, conf->base);
	ring_init(&w->rx, &w->qp.rx, &w->g, conf->ring_size, conf->packed, conf->base);
	CHECK(vhp_qpair_resize(&w->qp, conf->ring_size) == 0);
	w->qp.pq = &w->port.pq;
	w->qp.port = w->port.port.ops;
	w->qp.hdr_bytes = conf->hdr_bytes;
	w->qp.mergeable = conf->mergeable;
	w->qp.turn = vhp_turn_interleave;
	vhp_receiveq_start(&w->qp);
	return w;
}

void
wire_free(struct wire *w)
{
	ring_fini(&w->tx);
	ring_fini(&w->rx);
	memory_port_fini(&w->port);
	vhp_qpair_fini(&w->qp);
	guest_fini(&w->g);
	free(w);
}

void
wire_fill(uint8_t *bytes, uint32_t len_bytes, uint16_t hdr_bytes, uint32_t number)
{
	uint64_t seed = number + 1;

	for (uint32_t i = 0; i < len_bytes; i += sizeof(uint32_t)) {
		uint32_t word = prng(&seed);

		for (uint32_t k = 0; k < sizeof(word) && i + k < len_bytes; k++)
			bytes[i + k] = word >> 8 * k;
	}
	memset(bytes, 0, hdr_bytes < len_bytes ? hdr_bytes : len_bytes);
}

uint64_t
wire_drops(const struct vhp_vring *vr)
{
	uint64_t sum = 0;

	for (int i = VHP_OK; i < VHP_DROP_COUNT; i++)
		sum += vr->stats.drops[i];
	return sum;
}
