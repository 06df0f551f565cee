/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A turn with everything in place (interleave.c, transmitq.c, receiveq.c): a flood from the
 * guest, frames from the host, and when each gets its turn.
 */
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rx_driver.h"

/* Post n transmit frames of 60 bytes. */
static void
post_tx(struct wire *w, uint32_t n)
{
	const struct vring_desc buf = {.addr = GUEST_HIGH_GPA + 0x10000, .len = 72};
	uint8_t frame[72] = {0};

	guest_write(&w->g, buf.addr, frame, sizeof(frame));
	while (n-- > 0)
		assert_true(ring_post(&w->tx, &buf, 1, 0) >= 0);
}

static struct vhp_work
turn(struct wire *w, uint64_t now_tsc)
{
	struct vhp_work work = {0};

	w->port.n_trace = 0;
	memset(w->port.trace, 0, sizeof(w->port.trace));
	w->qp.turn(&w->qp, now_tsc, &work);
	return work;
}

/* A frame that comes while 1,000 are on their way out waits for 32 of them at most. */
static void
interleaved(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct rx_driver *d = rx_new(1024, packed, 12, true);

		rx_post_many(d, 200, 1526);
		post_tx(d->w, 1000);
		rx_send(d->w, 0, 100);
		rx_send(d->w, 1, 100);
		/* 254 out and 2 in: the weight of a turn. */
		assert_in_range(turn(d->w, 0).pkts, 256, 256 + 32);
		/* 32 sent, both received and a look for a third; then a look after each 32. */
		assert_string_equal(d->w->port.trace, "trrrtrtrtrtrtrtrtr");
		rx_check(d, 0, 100);
		rx_check(d, 1, 100);
		rx_free(d);
	}
}

static void
deferred(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct rx_driver *d = rx_new(1024, packed, 12, true);

		d->w->qp.turn = vhp_turn_deferred;
		d->w->qp.window_cycles = 1000;
		rx_post_many(d, 200, 1526);
		post_tx(d->w, 100);
		rx_send(d->w, 0, 100);
		assert_int_equal(turn(d->w, 5000).pkts, 100);
		assert_string_equal(d->w->port.trace, "tttt");
		assert_int_equal(turn(d->w, 5999).pkts, 0);
		assert_string_equal(d->w->port.trace, "");
		rx_check_none(d);
		assert_int_equal(turn(d->w, 6000).pkts, 1);
		rx_check(d, 0, 100);
		rx_free(d);
	}
}

/* Both directions at full tilt: every frame of both arrives. */
static void
both_ways(void **state)
{
	static void (*const turns[])(struct vhp_qpair *, uint64_t, struct vhp_work *) = {
		vhp_turn_interleave, vhp_turn_deferred};

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct rx_driver *d = rx_new(256, i % 2, 12, true);
		uint32_t sent = 0, received = 0, out = 0;

		d->w->qp.turn = turns[i / 2];
		for (uint64_t now = 1; received < 2000 || out < 2000; now++) {
			assert_in_range(now, 1, 10000);
			rx_post_many(d, 256 - rx_outstanding(d), 1526);
			while (ring_used_count(&d->w->tx) > 0) {
				assert_int_equal(ring_pop_used(&d->w->tx).len_bytes, 0);
				out++;
			}
			post_tx(d->w, d->w->tx.n_free);
			for (; sent < 2000 && sent - received < 300; sent++)
				rx_send(d->w, sent, 26 + sent % 1400);
			turn(d->w, now);
			while (received < sent && ring_used_count(&d->w->rx) > 0) {
				rx_check(d, received, 26 + received % 1400);
				received++;
			}
			memory_queue_clear(&d->w->port.sent);
		}
		assert_int_equal(wire_drops(&d->w->qp.rx) + wire_drops(&d->w->qp.tx), 0);
		rx_free(d);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interleaved),
		cmocka_unit_test(deferred),
		cmocka_unit_test(both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
