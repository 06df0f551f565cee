/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the port to the guest's receiveq (receiveq.c): frames of every length into buffers of
 * any size, and what cannot be delivered.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rx_driver.h"

#define MOST_BYTES (VHP_MAX_HDR_BYTES + VHP_MAX_FRAME_BYTES)

/* Each test runs over both layouts of the ring. */
#define FOR_EACH_LAYOUT(p) for (int p = 0; p < 2; p++)

/* Case O5: 10 bytes; 12 with and without mergeable buffers, num_buffers set by us. */
static void
one_frame_a_buffer(void **state)
{
	static const struct {
		uint16_t hdr_bytes;
		bool mergeable;
	} cases[] = {{10, false}, {12, false}, {12, true}};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t c = 0; c < RTE_DIM(cases); c++) {
			struct rx_driver *d =
				rx_new(64, packed, cases[c].hdr_bytes, cases[c].mergeable);
			struct vhp_work work;
			uint64_t bytes = 0;

			rx_post_many(d, 40, 1526);
			for (uint32_t i = 0; i < 40; i++) {
				rx_send(d->w, i, cases[c].hdr_bytes + 14 + i * 37);
				bytes += 14 + i * 37;
			}
			work = rx_fill(d->w);
			assert_int_equal(work.pkts, 32);
			assert_int_equal(rx_fill(d->w).pkts, 8);
			for (uint32_t i = 0; i < 40; i++)
				rx_check(d, i, cases[c].hdr_bytes + 14 + i * 37);
			assert_int_equal(rx_outstanding(d), 0);
			assert_int_equal(rx_stats(d)->pkts, 40);
			assert_int_equal(rx_stats(d)->bytes, bytes);
			assert_int_equal(wire_drops(&d->w->qp.rx), 0);
			rx_free(d);
		}
	}
}

/* Case R5 for the receive side: the header over descriptors, direct and indirect. */
static void
buffer_in_any_layout(void **state)
{
	static const uint32_t layouts[][16] = {
		{1526, 0},
		{12, 1514, 0},
		{5, 7, 1514, 0},
		{5, 1521, 0},
		{13, 1513, 0},
		{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1514, 0},
		{10, 2, 1000, 514, 0},
		{11, 1515, 0},
	};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (int mergeable = 0; mergeable < 2; mergeable++) {
			struct rx_driver *d = rx_new(64, packed, 12, mergeable);

			for (uint32_t i = 0; i < 4 * RTE_DIM(layouts); i++) {
				uint32_t len = i % 2 ? 1526 : 26 + i * 40;

				assert_true(rx_post(d, layouts[i / 4], i & 2));
				rx_send(d->w, i, len);
				assert_int_equal(rx_fill(d->w).pkts, 1);
				rx_check(d, i, len);
			}
			assert_int_equal(wire_drops(&d->w->qp.rx), 0);
			rx_free(d);
		}
	}
}

/* Case R8: a frame over many small buffers. */
static void
many_small_buffers(void **state)
{
	static const uint32_t sizes[] = {12, 13, 40, 64, 200, 1526, 4096};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t s = 0; s < RTE_DIM(sizes); s++) {
			struct rx_driver *d = rx_new(256, packed, 12, true);
			uint32_t len = 12 + 1514;
			uint16_t n = 0;
			uint8_t bytes[MOST_BYTES];

			for (uint32_t i = 0; i < 20; i++) {
				rx_post_many(d, 256 - rx_outstanding(d), sizes[s]);
				rx_send(d->w, i, len);
				assert_int_equal(rx_fill(d->w).pkts, 1);
				rx_check(d, i, len);
			}
			rx_post_many(d, 256 - rx_outstanding(d), sizes[s]);
			rx_send(d->w, 0, len);
			rx_fill(d->w);
			assert_int_equal(rx_take(d, bytes, &n), len);
			assert_int_equal(n, (len + sizes[s] - 1) / sizes[s]);
			assert_int_equal(wire_drops(&d->w->qp.rx), 0);
			rx_free(d);
		}
	}
}

/* Buffers of very many pieces: as many as a frame may have, one less, and so on. */
static void
many_pieces(void **state)
{
	static const uint16_t counts[] = {1024, 1023, 1022, 512, 511, 341, 13};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t c = 0; c < RTE_DIM(counts); c++) {
			struct rx_driver *d = rx_new(64, packed, 12, true);
			uint32_t lens[RX_MOST_PIECES + 1] = {0};
			/* As many pieces as the stash has room for in a ring of 64. */
			uint32_t largest = RTE_MIN(5 * counts[c], VHP_MAX_IOV + 2 * 64);

			for (uint16_t i = 0; i < counts[c]; i++)
				lens[i] = 1;
			for (uint32_t i = 0; i < 12; i++) {
				while (rx_outstanding(d) < 7)
					assert_true(rx_post(d, lens, true));
				rx_send(d->w, i, RTE_MAX(26U, largest * (i + 1) / 12));
				/* Long chains end a burst early; the frame comes all the same. */
				while (rx_stats(d)->pkts == i)
					assert_true(rx_fill(d->w).descs > 0);
				rx_check(d, i, RTE_MAX(26U, largest * (i + 1) / 12));
			}
			assert_int_equal(wire_drops(&d->w->qp.rx), 0);
			rx_free(d);
		}
	}
}

/* Frames of all lengths, runs of small ones and runs of large ones, into buffers of 1,526. */
static void
every_length(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(256, packed, 12, true);
		uint32_t number = 0;

		for (uint32_t len = 14; len <= VHP_MAX_FRAME_BYTES; len += len < 4000 ? 3 : 97) {
			/* Every 40th size many times, so that the window adapts both ways. */
			for (int k = 0; k < (len % 40 ? 1 : 40); k++, number++) {
				rx_post_many(d, 256 - rx_outstanding(d), 1526);
				rx_send(d->w, number, 12 + len);
				assert_int_equal(rx_fill(d->w).pkts, 1);
				rx_check(d, number, 12 + len);
			}
		}
		/* The longest of all. */
		rx_post_many(d, 256 - rx_outstanding(d), 1526);
		rx_send(d->w, number, MOST_BYTES);
		assert_int_equal(rx_fill(d->w).pkts, 1);
		rx_check(d, number, MOST_BYTES);
		assert_int_equal(wire_drops(&d->w->qp.rx), 0);
		assert_int_equal(d->n_returned, 0);
		rx_free(d);
	}
}

/* One byte longer than the longest is dropped, whatever buffers there are. */
static void
too_long(void **state)
{
	static const struct {
		uint32_t n, len_bytes;
	} buffers[] = {{200, 1526}, {40, 4096}, {2, 70000}, {1, 65569}, {4, 300000}};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t i = 0; i < 2 * RTE_DIM(buffers); i++) {
			struct rx_driver *d = rx_new(256, packed, 12, true);
			uint32_t extra = i % 2 ? 1 : 60000;

			rx_post_many(d, buffers[i / 2].n, buffers[i / 2].len_bytes);
			/* Let the window grow first. */
			d->w->qp.want_bytes = MOST_BYTES;
			rx_send(d->w, 0, MOST_BYTES + extra);
			assert_int_equal(rx_fill(d->w).pkts, 1);
			rx_check_none(d);
			assert_int_equal(rx_stats(d)->drops[VHP_DROP_NO_ROOM], 1);
			assert_int_equal(rx_stats(d)->pkts, 0);
			rx_send(d->w, 1, 100);
			assert_int_equal(rx_fill(d->w).pkts, 1);
			rx_check(d, 1, 100);
			assert_int_equal(d->n_returned, 0);
			rx_free(d);
		}
	}
}

/* Case R9: without mergeable buffers a large frame is dropped; the buffer stays for the next. */
static void
not_mergeable(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(64, packed, 12, false);

		rx_post_many(d, 3, 1526);
		rx_send(d->w, 0, MOST_BYTES);
		rx_send(d->w, 1, 1526);
		rx_send(d->w, 2, 1527);
		rx_send(d->w, 3, 60);
		rx_send(d->w, 4, 3000);
		assert_int_equal(rx_fill(d->w).pkts, 5);
		rx_check(d, 1, 1526);
		rx_check(d, 3, 60);
		rx_check_none(d);
		assert_int_equal(rx_stats(d)->drops[VHP_DROP_NO_ROOM], 3);
		assert_int_equal(wire_drops(&d->w->qp.rx), 3);
		assert_int_equal(rx_stats(d)->pkts, 2);
		/* The third buffer is still there. */
		assert_int_equal(rx_outstanding(d), 1);
		rx_send(d->w, 5, 777);
		assert_int_equal(rx_fill(d->w).pkts, 1);
		rx_check(d, 5, 777);
		assert_int_equal(d->n_returned, 0);
		rx_free(d);
	}
}

/* The stash's arrays go round: many frames with as many buffers out as the ring holds. */
static void
long_run(void **state)
{
	static const uint16_t sizes[] = {1, 2, 4, 64, 512};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t s = 0; s < RTE_DIM(sizes); s++) {
			struct rx_driver *d = rx_new(sizes[s], packed, 12, true);
			uint32_t sent = 0, got = 0;

			while (got < 5000) {
				rx_post_many(d, sizes[s] - rx_outstanding(d), 2048);
				for (uint32_t i = got % 5; i < 50 && sent < got + sizes[s]; i++) {
					rx_send(d->w, sent, 12 + 14 + sent % 2022);
					sent++;
				}
				rx_fill(d->w);
				while (got < sent && ring_used_count(&d->w->rx) > 0) {
					rx_check(d, got, 12 + 14 + got % 2022);
					got++;
				}
			}
			assert_int_equal(wire_drops(&d->w->qp.rx), 0);
			rx_free(d);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_frame_a_buffer),
		cmocka_unit_test(buffer_in_any_layout),
		cmocka_unit_test(many_small_buffers),
		cmocka_unit_test(many_pieces),
		cmocka_unit_test(every_length),
		cmocka_unit_test(too_long),
		cmocka_unit_test(not_mergeable),
		cmocka_unit_test(long_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
