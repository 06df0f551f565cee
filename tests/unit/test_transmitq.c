/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the guest's transmitq to the port (transmitq.c): every byte, in order, none lost, none
 * twice, whatever the port takes; what is no frame is dropped and counted.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "wire.h"

#define BUF(i) (GUEST_NEXT_GPA + 0x1000 * (i))

/* Each test runs over both layouts of the ring. */
#define FOR_EACH_LAYOUT(p) for (int p = 0; p < 2; p++)

static struct wire *
new_wire(uint16_t size, bool packed, uint16_t hdr_bytes)
{
	const struct wire_conf conf = {
		.ring_size = size,
		.packed = packed,
		.base = packed ? 0x8000 : 65530,
		.hdr_bytes = hdr_bytes,
	};

	return wire_new(&conf);
}

static struct vhp_work
drain(struct wire *w)
{
	struct vhp_work work = {0};

	vhp_transmitq_drain(&w->qp, &work);
	return work;
}

/* Post the frame in pieces of these lengths, 0 at the end, from BUF(slot) on. Returns its id. */
static int
post_pieces(struct wire *w, unsigned int slot, const uint8_t *frame, const uint16_t *lens,
	uint64_t table)
{
	struct vring_desc bufs[16];
	uint64_t gpa = BUF(slot);
	uint16_t n = 0;

	for (; lens[n] != 0; n++) {
		guest_write(&w->g, gpa, frame, lens[n]);
		bufs[n] = (struct vring_desc){.addr = gpa, .len = lens[n]};
		frame += lens[n];
		/* Pieces do not lie side by side. */
		gpa += lens[n] + 3;
	}
	return ring_post(&w->tx, bufs, n, table);
}

/* Post a frame of len_bytes, header included, in one piece. */
static int
post(struct wire *w, unsigned int slot, uint32_t len_bytes, uint32_t number)
{
	const uint16_t lens[] = {len_bytes, 0};
	uint8_t bytes[0x1000];
	struct vring_desc empty = {0};

	assert_true(len_bytes <= sizeof(bytes));
	wire_fill(bytes, len_bytes, w->qp.hdr_bytes, number);
	return len_bytes == 0 ? ring_post(&w->tx, &empty, 1, 0)
			      : post_pieces(w, slot, bytes, lens, 0);
}

static void
check_sent(struct wire *w, uint32_t len_bytes, uint32_t number)
{
	uint8_t *bytes = malloc(len_bytes);

	wire_fill(bytes, len_bytes, w->qp.hdr_bytes, number);
	memory_queue_check(&w->port.sent, bytes, len_bytes);
	free(bytes);
}

/* Case R5: the header anywhere, direct and indirect. */
static void
header_in_any_layout(void **state)
{
	static const uint16_t layouts[][16] = {
		{100, 0},
		{12, 88, 0},
		{5, 7, 88, 0},
		{5, 95, 0},
		{13, 87, 0},
		{99, 1, 0},
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 87, 1, 0},
		{10, 2, 88, 0},
		{10, 90, 0},
	};
	static const uint16_t headers[] = {10, 12};
	uint8_t frame[100];

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t h = 0; h < RTE_DIM(headers); h++) {
			struct wire *w = new_wire(16, packed, headers[h]);
			uint64_t bytes = 0;

			for (size_t i = 0; i < 2 * RTE_DIM(layouts); i++) {
				uint64_t table = i % 2 ? GUEST_HIGH_GPA : 0;
				int id;

				wire_fill(frame, sizeof(frame), headers[h], i);
				memset(frame, 0xc0 + i, headers[h]);
				id = post_pieces(w, 0, frame, layouts[i / 2], table);
				assert_int_equal(drain(w).pkts, 1);
				memory_queue_check(&w->port.sent, frame, sizeof(frame));
				ring_check_used(&w->tx, id, 0);
				bytes += sizeof(frame) - headers[h];
			}
			assert_int_equal(w->qp.tx.stats.pkts, 2 * RTE_DIM(layouts));
			assert_int_equal(w->qp.tx.stats.bytes, bytes);
			assert_int_equal(wire_drops(&w->qp.tx), 0);
			wire_free(w);
		}
	}
}

/* Case R4: too short for a frame, in one batch with a good one; each is used with length 0. */
static void
short_frames(void **state)
{
	static const struct {
		uint16_t hdr_bytes;
		uint16_t lens[7];
	} cases[] = {{12, {0, 4, 12, 13, 25, 26, 60}}, {10, {0, 4, 10, 11, 23, 24, 60}}};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t c = 0; c < RTE_DIM(cases); c++) {
			struct wire *w = new_wire(16, packed, cases[c].hdr_bytes);
			struct vhp_work work;
			int ids[7];

			for (int i = 0; i < 7; i++)
				ids[i] = post(w, i, cases[c].lens[i], i);
			work = drain(w);
			/* Dropped ones are work, too. */
			assert_int_equal(work.pkts, 7);
			assert_int_equal(work.bytes, 14 + 60 - cases[c].hdr_bytes);
			assert_int_equal(work.descs, 7);
			assert_int_equal(memory_queue_count(&w->port.sent), 2);
			check_sent(w, cases[c].lens[5], 5);
			check_sent(w, cases[c].lens[6], 6);
			for (int i = 0; i < 7; i++)
				ring_check_used(&w->tx, ids[i], 0);
			assert_int_equal(w->qp.tx.stats.pkts, 2);
			assert_int_equal(w->qp.tx.stats.drops[VHP_DROP_SHORT], 5);
			assert_int_equal(wire_drops(&w->qp.tx), 5);
			wire_free(w);
		}
	}
}

/* The longest frame passes; one byte more does not. */
static void
long_frames(void **state)
{
	static const uint16_t headers[] = {10, 12};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t h = 0; h < RTE_DIM(headers); h++) {
			struct wire *w = new_wire(16, packed, headers[h]);
			uint32_t most = headers[h] + VHP_MAX_FRAME_BYTES;
			uint8_t *frame = malloc(most + 1);
			struct vring_desc bufs[] = {{.addr = BUF(0), .len = most},
				{.addr = BUF(0), .len = most + 1},
				{.addr = GUEST_LOW_GPA, .len = GUEST_LOW_BYTES}};

			wire_fill(frame, most + 1, headers[h], 1);
			guest_write(&w->g, BUF(0), frame, most + 1);
			for (int i = 0; i < 3; i++)
				ring_post(&w->tx, &bufs[i], 1, 0);
			assert_int_equal(drain(w).pkts, 3);
			memory_queue_check(&w->port.sent, frame, most);
			assert_int_equal(memory_queue_count(&w->port.sent), 0);
			assert_int_equal(ring_used_count(&w->tx), 3);
			assert_int_equal(w->qp.tx.stats.drops[VHP_DROP_LONG], 2);
			assert_int_equal(w->qp.tx.stats.bytes, VHP_MAX_FRAME_BYTES);
			free(frame);
			wire_free(w);
		}
	}
}

/* Chains at fault, and frames that the port refuses: by reason, and the good ones pass. */
static void
drops_by_reason(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct wire *w = new_wire(16, packed, 12);
		struct vring_desc nowhere = {.addr = GUEST_NOWHERE_GPA, .len = 60};
		struct vring_desc writable = {
			.addr = BUF(0), .len = 60, .flags = VRING_DESC_F_WRITE};
		uint8_t frame[60] = {0xfe};
		const uint16_t lens[] = {60, 0};

		post(w, 0, 60, 0);
		ring_post(&w->tx, &nowhere, 1, 0);
		post_pieces(w, 1, frame, lens, 0);
		ring_post(&w->tx, &writable, 1, 0);
		post(w, 2, 60, 1);
		w->port.refuse = VHP_DROP_HEADER;
		assert_int_equal(drain(w).pkts, 5);
		check_sent(w, 60, 0);
		check_sent(w, 60, 1);
		assert_int_equal(ring_used_count(&w->tx), 5);
		assert_int_equal(w->qp.tx.stats.drops[VHP_DROP_CHAIN_ADDRESS], 1);
		assert_int_equal(w->qp.tx.stats.drops[VHP_DROP_CHAIN_DIRECTION], 1);
		assert_int_equal(w->qp.tx.stats.drops[VHP_DROP_HEADER], 1);
		assert_int_equal(wire_drops(&w->qp.tx), 3);
		assert_int_equal(w->qp.tx.stats.pkts, 2);
		assert_int_equal(w->qp.tx.stats.bytes, 2 * 48);
		wire_free(w);
	}
}

/* A port that takes any number of a burst: the rest stays in the ring, as it was. */
static void
back_pressure(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (uint32_t room = 0; room <= 12; room++) {
			struct wire *w = new_wire(16, packed, 12);
			/* Number 5 is no frame; it does not need the port. */
			uint32_t used = room + (room > 5);
			uint32_t base = w->qp.tx.ops->base(&w->qp.tx);

			for (int i = 0; i < 12; i++)
				post(w, i, i == 5 ? 20 : 60 + i, i);
			w->port.tx_room = room;
			used = RTE_MIN(used, 12U);
			/* The short one behind the last that is taken is done with, too. */
			if (room == 5)
				used = 6;
			assert_int_equal(drain(w).pkts, used);
			assert_int_equal(ring_used_count(&w->tx), used);
			assert_int_equal(w->qp.stats.port_full, used < 12);
			if (used == 0)
				assert_int_equal(w->qp.tx.ops->base(&w->qp.tx), base);
			if (used < 12) {
				assert_int_equal(w->port.pq.wait, VHP_PORT_FULL);
				/* Asked again while it is full: nothing happens. */
				assert_int_equal(drain(w).pkts, 0);
				assert_int_equal(ring_used_count(&w->tx), used);
				assert_int_equal(w->qp.stats.port_full, 2);
			}
			w->port.tx_room = UINT32_MAX;
			assert_int_equal(drain(w).pkts, 12 - used);
			assert_int_equal(drain(w).pkts, 0);
			for (int i = 0; i < 12; i++)
				if (i != 5)
					check_sent(w, 60 + i, i);
			assert_int_equal(memory_queue_count(&w->port.sent), 0);
			assert_int_equal(ring_used_count(&w->tx), 12);
			assert_int_equal(w->qp.tx.stats.pkts, 11);
			assert_int_equal(w->qp.tx.stats.drops[VHP_DROP_SHORT], 1);
			wire_free(w);
		}
	}
}

/* A burst is 32 frames, and the guest is called once for it. */
static void
burst_and_call(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct wire *w = new_wire(128, packed, 12);

		w->qp.tx.call_fd = eventfd(0, EFD_NONBLOCK);
		for (int i = 0; i < 70; i++)
			post(w, i, 60, i);
		assert_int_equal(drain(w).pkts, 32);
		assert_int_equal(w->qp.tx.stats.calls, 1);
		assert_int_equal(drain(w).pkts, 32);
		assert_int_equal(drain(w).pkts, 6);
		assert_int_equal(w->qp.tx.stats.calls, 3);
		/* Nothing done, nobody called. */
		assert_int_equal(drain(w).pkts, 0);
		post(w, 0, 60, 0);
		w->port.tx_room = 0;
		assert_int_equal(drain(w).pkts, 0);
		assert_int_equal(w->qp.tx.stats.calls, 3);
		close(w->qp.tx.call_fd);
		wire_free(w);
	}
}

static void
left_alone(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct wire *w = new_wire(16, packed, 12);

		post(w, 0, 60, 0);
		w->qp.tx.running = false;
		assert_int_equal(drain(w).pkts, 0);
		w->qp.tx.running = true;
		w->qp.tx.fault = VHP_RING_CALL;
		assert_int_equal(drain(w).pkts, 0);
		assert_int_equal(w->port.tx_calls, 0);
		/* Switched off by the front end: used up, not sent. */
		w->qp.tx.fault = VHP_RING_OK;
		w->qp.tx.discard = true;
		assert_int_equal(drain(w).pkts, 1);
		assert_int_equal(w->port.tx_calls, 0);
		assert_int_equal(ring_used_count(&w->tx), 1);
		assert_int_equal(w->qp.tx.stats.drops[VHP_DROP_DISABLED], 1);
		assert_int_equal(w->qp.tx.stats.pkts, 0);
		wire_free(w);
	}
}

/* The kernel finds guest memory gone: what was sent is used, and the ring is broken. */
static void
memory_gone(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct wire *w = new_wire(16, packed, 12);

		for (int i = 0; i < 4; i++)
			post(w, i, 60, i);
		w->port.tx_room = 2;
		w->port.full = VHP_PORT_MEMORY;
		assert_int_equal(drain(w).pkts, 2);
		assert_int_equal(w->qp.tx.fault, VHP_RING_MEMORY);
		assert_int_equal(ring_used_count(&w->tx), 2);
		assert_int_equal(w->qp.tx.stats.faults, 1);
		w->port.tx_room = UINT32_MAX;
		assert_int_equal(drain(w).pkts, 0);
		wire_free(w);
	}
}

/* A fault of the ring itself: what lies before it goes out. */
static void
ring_fault(void **state)
{
	struct wire *w = new_wire(16, false, 12);

	(void)state;
	for (int i = 0; i < 3; i++)
		post(w, i, 60, i);
	ring_offer(&w->tx, 16);
	ring_offer(&w->tx, 0);
	assert_int_equal(drain(w).pkts, 3);
	assert_int_equal(ring_used_count(&w->tx), 3);
	assert_int_equal(memory_queue_count(&w->port.sent), 3);
	assert_int_equal(w->qp.tx.fault, VHP_RING_HEAD);
	assert_int_equal(drain(w).pkts, 0);
	wire_free(w);
}

/* ---- random frames ----------------------------------------------------------- */

#define FRAMES 20000

/* One random frame in random pieces; its bytes lie in a slot that no other frame uses. */
static bool
post_random(struct wire *w, uint32_t number, uint32_t *len_bytes, uint64_t *seed)
{
	static uint8_t frame[VHP_MAX_HDR_BYTES + VHP_MAX_FRAME_BYTES];
	struct vring_desc bufs[24];
	uint64_t gpa = GUEST_LOW_GPA + number % 16 * 0x11000;
	uint32_t len =
		w->qp.hdr_bytes + (prng(seed) % 8 ? prng_range(seed, 14, 2000)
						  : prng_range(seed, 14, VHP_MAX_FRAME_BYTES));
	uint32_t left = len;
	uint16_t n = 0;

	while (left > 0) {
		uint32_t part = n == RTE_DIM(bufs) - 1 ? left : prng_range(seed, 0, left);

		bufs[n++] = (struct vring_desc){.addr = gpa + (len - left), .len = part};
		left -= part;
	}
	/* Tables lie behind all slots. */
	if (ring_post(&w->tx, bufs, n, prng(seed) % 2 ? GUEST_HIGH_GPA + number % 16 * 0x200 : 0) <
		0)
		return false;
	wire_fill(frame, len, w->qp.hdr_bytes, number);
	guest_write(&w->g, gpa, frame, len);
	*len_bytes = len;
	return true;
}

static void
random_frames(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct wire *w = new_wire(64, packed, packed ? 12 : 10);
		uint32_t posted = 0, sent = 0, used = 0, lens[16];
		uint64_t seed = 21 + packed;

		while (sent < FRAMES) {
			while (posted < FRAMES && posted - used < 16 &&
				post_random(w, posted, &lens[posted % 16], &seed))
				posted++;
			w->port.tx_room = prng_range(&seed, 0, 20);
			drain(w);
			for (; memory_queue_count(&w->port.sent) > 0; sent++)
				check_sent(w, lens[sent % 16], sent);
			/* Exactly what was sent is used. */
			for (; ring_used_count(&w->tx) > 0; used++)
				assert_int_equal(ring_pop_used(&w->tx).len_bytes, 0);
			assert_int_equal(used, sent);
		}
		assert_int_equal(w->qp.tx.stats.pkts, FRAMES);
		assert_int_equal(wire_drops(&w->qp.tx), 0);
		assert_true(w->qp.stats.port_full > 100);
		wire_free(w);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_in_any_layout),
		cmocka_unit_test(short_frames),
		cmocka_unit_test(long_frames),
		cmocka_unit_test(drops_by_reason),
		cmocka_unit_test(back_pressure),
		cmocka_unit_test(burst_and_call),
		cmocka_unit_test(left_alone),
		cmocka_unit_test(memory_gone),
		cmocka_unit_test(ring_fault),
		cmocka_unit_test(random_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
