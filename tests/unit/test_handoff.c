/* SPDX-License-Identifier: BSD-3-Clause */
/* A qpair that moves between pollers (handoff.c) with all that it holds; no thread runs them. */
#include "bare_poller.h"
#include "checks.h"
#include "rx_driver.h"

#define MOVES     200
/* A second of so many ticks is over between any two looks. */
#define FAST_HZ   1000
/* More looks than a tenth of a second each would take. */
#define LOOKS_MAX 100000

/*
 * A frame waits for buffers while its qpair moves, and moves again: however long that takes,
 * it is not the guest's time.
 */
static void
a_frame_that_waits_is_moved(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct vhp_poller *pollers[] = {bare_poller_new(0), bare_poller_new(1)};
		struct rx_driver *d = rx_new(256, packed, 12, true);
		struct vhp_qpair *qp = &d->w->qp;

		assert_int_equal(vhp_attach(pollers[0], qp), 0);
		rx_post_many(d, 3, 1526);
		rx_send(d->w, 0, 5000);
		rx_send(d->w, 1, 60);
		assert_int_equal(rx_fill(d->w).pkts, 0);
		wire_tsc_hz = FAST_HZ;
		for (int i = 1; i <= MOVES; i++) {
			assert_int_equal(vhp_move(qp, pollers[i % 2]), 0);
			assert_int_equal(pollers[i % 2]->list->n, 1);
			assert_int_equal(pollers[(i + 1) % 2]->list->n, 0);
			assert_int_equal(rx_fill(d->w).pkts, 0);
			assert_int_equal(wire_drops(&qp->rx), 0);
		}
		assert_int_equal(qp->stats.moves, MOVES);
		rx_post_many(d, 2, 1526);
		assert_int_equal(rx_fill(d->w).pkts, 2);
		rx_check(d, 0, 5000);
		rx_check(d, 1, 60);
		assert_int_equal(d->n_returned, 0);
		vhp_detach(&qp, 1);
		assert_null(qp->poller);
		assert_int_equal(vhp_move(qp, pollers[0]), -ENOTCONN);
		rx_free(d);
		bare_poller_free(pollers[0]);
		bare_poller_free(pollers[1]);
	}
}

/* Is this what the poller's list says: n qpairs, and whom the first is joined with? */
static bool
list_is(const struct vhp_poller *p, uint32_t n, const struct vhp_qpair *first_peer)
{
	return p->list->n == n && (n == 0 || p->list->peers[0] == first_peer);
}

/* Two that are joined know each other for as long as one poller has both. */
static void
joined_qpairs(void **state)
{
	struct vhp_poller *p = bare_poller_new(0), *other = bare_poller_new(1);
	struct rx_driver *d[3];
	struct vhp_qpair *qp[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		d[i] = rx_new(256, false, 12, true);
		qp[i] = &d[i]->w->qp;
	}
	qp[0]->pq->far = qp[1]->pq;
	qp[1]->pq->far = qp[0]->pq;
	for (int i = 2; i >= 0; i--)
		assert_int_equal(vhp_attach(p, qp[i]), 0);
	/* 2 1 0 */
	assert_true(list_is(p, 3, NULL));
	assert_ptr_equal(p->list->peers[1], qp[0]);
	assert_ptr_equal(p->list->peers[2], qp[1]);
	vhp_detach(&qp[2], 1);
	assert_true(list_is(p, 2, qp[0]));
	assert_ptr_equal(p->list->peers[1], qp[1]);
	/* The other end stays, and is alone. */
	assert_int_equal(vhp_move(qp[0], other), 0);
	assert_true(list_is(p, 1, NULL) && list_is(other, 1, NULL));
	assert_int_equal(vhp_move(qp[1], other), 0);
	assert_true(list_is(p, 0, NULL) && list_is(other, 2, qp[1]));
	vhp_detach(&qp[0], 1);
	assert_true(list_is(other, 1, NULL));
	/* Whoever defers its receive side takes its own time. */
	qp[0]->turn = vhp_turn_deferred;
	assert_int_equal(vhp_attach(other, qp[0]), 0);
	assert_true(list_is(other, 2, NULL));
	assert_null(other->list->peers[1]);
	vhp_detach(qp, 2);
	for (int i = 0; i < 3; i++)
		rx_free(d[i]);
	bare_poller_free(p);
	bare_poller_free(other);
}

/* A poller that was kept from running does not take that for the guest's time, either. */
static void
time_counts_by_looks(void **state)
{
	struct rx_driver *d = rx_new(256, false, 12, true);
	uint32_t looks = 0;

	(void)state;
	rx_post_many(d, 3, 1526);
	rx_send(d->w, 0, 5000);
	rx_send(d->w, 1, 60);
	assert_int_equal(rx_fill(d->w).pkts, 0);
	wire_tsc_hz = FAST_HZ;
	for (; rx_stats(d)->drops[VHP_DROP_NO_ROOM] == 0; looks++) {
		assert_true(looks < LOOKS_MAX);
		rx_fill(d->w);
	}
	/* A tenth of a second at most for each look. */
	assert_true(looks >= 10);
	rx_check(d, 1, 60);
	rx_free(d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_that_waits_is_moved),
		cmocka_unit_test(joined_qpairs),
		cmocka_unit_test(time_counts_by_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
