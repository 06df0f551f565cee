/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receive side that has to wait (receiveq.c): for buffers, for more of them than a frame has
 * found, for a start; and whom it calls then.
 */
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "rx_driver.h"

#define MOST_BYTES (VHP_MAX_HDR_BYTES + VHP_MAX_FRAME_BYTES)

/* Each test runs over both layouts of the ring. */
#define FOR_EACH_LAYOUT(p) for (int p = 0; p < 2; p++)

/* Without buffers nothing is read: frames wait in the port, in order. */
static void
no_buffers(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(64, packed, 12, true);

		for (uint32_t i = 0; i < 10; i++)
			rx_send(d->w, i, 100 + i);
		assert_int_equal(rx_fill(d->w).pkts, 0);
		assert_true(d->w->qp.starved);
		assert_int_equal(d->w->qp.stats.no_buffers, 1);
		assert_int_equal(memory_queue_count(&d->w->port.host), 10);
		for (uint32_t i = 0; i < 10; i++) {
			rx_post_many(d, 1, 1526);
			assert_int_equal(rx_fill(d->w).pkts, 1);
			rx_check(d, i, 100 + i);
			assert_int_equal(d->w->qp.starved, true);
		}
		rx_post_many(d, 1, 1526);
		assert_int_equal(rx_fill(d->w).pkts, 0);
		/* Now it is the port that has nothing. */
		assert_false(d->w->qp.starved);
		rx_free(d);
	}
}

/* A frame that ran over waits for buffers, then comes whole; later ones stay behind it. */
static void
pending_frame(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (uint32_t step = 1; step <= 60; step += 7) {
			struct rx_driver *d = rx_new(256, packed, 12, true);
			uint32_t posted = 3;

			rx_post_many(d, 3, 1526);
			rx_send(d->w, 0, MOST_BYTES);
			rx_send(d->w, 1, 60);
			assert_int_equal(rx_fill(d->w).pkts, 0);
			assert_true(d->w->qp.starved);
			assert_int_equal(memory_queue_count(&d->w->port.host), 1);
			while (posted < 43) {
				rx_check_none(d);
				rx_post_many(d, step, 1526);
				posted += step;
				rx_fill(d->w);
			}
			rx_check(d, 0, MOST_BYTES);
			rx_post_many(d, 1, 1526);
			rx_fill(d->w);
			rx_check(d, 1, 60);
			rx_check_none(d);
			assert_int_equal(d->n_returned, 0);
			assert_int_equal(wire_drops(&d->w->qp.rx), 0);
			rx_free(d);
		}
	}
}

/* A ring that is full of buffers that together cannot hold the frame: it is dropped. */
static void
ring_too_small(void **state)
{
	/* The second of two descriptors each: half as many buffers fill the ring. */
	static const uint32_t one[] = {40, 0}, two[] = {12, 28, 0}, three[] = {12, 14, 14, 0};
	static const uint32_t *const layouts[] = {one, two, three};

	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		for (size_t i = 0; i < RTE_DIM(layouts); i++) {
			struct rx_driver *d = rx_new(64, packed, 12, true);
			uint32_t n = 0;

			while (rx_post(d, layouts[i], false))
				n++;
			assert_int_equal(n, 64 / (i + 1));
			rx_send(d->w, 0, n * 40 + 1);
			rx_send(d->w, 1, n * 40);
			rx_fill(d->w);
			/* Three do not divide 64, so one descriptor is free, and time decides. */
			if (i == 2) {
				assert_int_equal(rx_stats(d)->drops[VHP_DROP_NO_ROOM], 0);
				wire_tsc_hz = 0;
				rx_fill(d->w);
			}
			assert_int_equal(rx_stats(d)->drops[VHP_DROP_NO_ROOM], 1);
			rx_check(d, 1, n * 40);
			assert_int_equal(rx_outstanding(d), 0);
			assert_int_equal(d->n_returned, 0);
			rx_free(d);
		}
	}
}

/* A guest that posts few buffers and no more gets the next frame, in the end. */
static void
guest_that_posts_few(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(256, packed, 12, true);

		rx_post_many(d, 8, 1526);
		rx_send(d->w, 0, 8 * 1526 + 1);
		rx_send(d->w, 1, 60);
		for (int i = 0; i < 10; i++)
			assert_int_equal(rx_fill(d->w).pkts, 0);
		rx_check_none(d);
		wire_tsc_hz = 0;
		assert_int_equal(rx_fill(d->w).pkts, 2);
		rx_check(d, 1, 60);
		assert_int_equal(rx_stats(d)->drops[VHP_DROP_NO_ROOM], 1);
		rx_free(d);
	}
}

/* Stopped while buffers are taken and a frame waits: buffers go back, the frame is kept. */
static void
stop_and_start(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(64, packed, 12, true);
		struct vhp_vring *vr = &d->w->qp.rx;
		uint32_t base = vr->ops->base(vr);

		rx_post_many(d, 10, 200);
		rx_send(d->w, 0, 5000);
		assert_int_equal(rx_fill(d->w).pkts, 0);
		vhp_receiveq_untake(&d->w->qp);
		assert_int_equal(vr->ops->base(vr), base);
		assert_true(vr->ops->start(vr, base));
		rx_check_none(d);
		rx_post_many(d, 20, 200);
		assert_int_equal(rx_fill(d->w).pkts, 1);
		rx_check(d, 0, 5000);
		assert_int_equal(rx_outstanding(d), 5);
		rx_free(d);
	}
}

/* One call for a burst, and none without a used buffer. */
static void
calls(void **state)
{
	(void)state;
	FOR_EACH_LAYOUT(packed)
	{
		struct rx_driver *d = rx_new(256, packed, 12, true);

		d->w->qp.rx.call_fd = eventfd(0, EFD_NONBLOCK);
		rx_fill(d->w);
		rx_post_many(d, 200, 1526);
		rx_fill(d->w);
		assert_int_equal(rx_stats(d)->calls, 0);
		for (uint32_t i = 0; i < 70; i++)
			rx_send(d->w, i, 1000);
		rx_fill(d->w);
		assert_int_equal(rx_stats(d)->calls, 1);
		rx_fill(d->w);
		rx_fill(d->w);
		assert_int_equal(rx_stats(d)->calls, 3);
		for (uint32_t i = 0; i < 70; i++)
			rx_check(d, i, 1000);
		rx_fill(d->w);
		assert_int_equal(rx_stats(d)->calls, 3);
		close(d->w->qp.rx.call_fd);
		rx_free(d);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_buffers),
		cmocka_unit_test(pending_frame),
		cmocka_unit_test(ring_too_small),
		cmocka_unit_test(guest_that_posts_few),
		cmocka_unit_test(stop_and_start),
		cmocka_unit_test(calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
