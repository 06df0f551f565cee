/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One sleep at a time (idle.c) with a port whose descriptor tells of frames only if asked to:
 * a frame in between, an interrupt, a port that cannot tell after all.
 */
#include <sys/eventfd.h>
#include <unistd.h>

#include "bare_poller.h"
#include "checks.h"
#include "rx_driver.h"

#define LEN_BYTES 100

/* A poller, and a qpair of it whose port has interrupts. */
struct bed {
	struct vhp_poller *poller;
	struct rx_driver *d;
};

static struct bed
bed_new(bool packed)
{
	struct bed b = {.poller = bare_poller_new(0), .d = rx_new(256, packed, 12, true)};
	struct vhp_qpair *qp = &b.d->w->qp;
	eventfd_t count;

	memory_port_intr(&b.d->w->port);
	qp->port = b.d->w->port.port.ops;
	qp->tx.kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(qp->tx.kick_fd >= 0);
	assert_int_equal(vhp_attach(b.poller, qp), 0);
	/* That it has come is known. */
	assert_int_equal(eventfd_read(b.poller->control_fd, &count), 0);
	return b;
}

static void
bed_free(struct bed *b)
{
	struct vhp_qpair *qp = &b->d->w->qp;

	vhp_detach(&qp, 1);
	close(qp->tx.kick_fd);
	rx_free(b->d);
	bare_poller_free(b->poller);
}

static enum vhp_idle_end
sleep_once(struct bed *b)
{
	struct vhp_poller *p = b->poller;
	enum vhp_idle_end end;

	rte_rcu_qsbr_thread_online(p->qsbr, 0);
	end = vhp_idle(p, p->list, p->generation);
	rte_rcu_qsbr_thread_offline(p->qsbr, 0);
	/* Whatever the end, nothing is asked for any more. */
	assert_false(b->d->w->port.pq.armed);
	assert_false(b->d->w->port.tells);
	assert_false(b->d->w->qp.tx.armed);
	assert_false(b->d->w->qp.rx.armed);
	return end;
}

static void
arrive(struct memory_port *port, uint32_t number)
{
	uint8_t frame[LEN_BYTES];

	wire_fill(frame, sizeof(frame), 12, number);
	memory_port_arrive(port, frame, sizeof(frame));
}

/* After the last poll, before the descriptor was asked: it tells nothing, and no one sleeps. */
static void
frame_before_arming(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct bed b = bed_new(packed);

		rx_post_many(b.d, 4, 1526);
		assert_int_equal(rx_fill(b.d->w).pkts, 0);
		arrive(&b.d->w->port, 0);
		assert_int_equal(sleep_once(&b), VHP_IDLE_WORK);
		assert_int_equal(b.poller->stats.sleeps, 0);
		assert_int_equal(b.d->w->port.arm_calls, 1);
		assert_int_equal(b.d->w->port.disarm_calls, 1);
		assert_int_equal(rx_fill(b.d->w).pkts, 1);
		rx_check(b.d, 0, LEN_BYTES);
		bed_free(&b);
	}
}

static int
arrive_armed(struct memory_port *port, int found)
{
	assert_int_equal(found, 0);
	arrive(port, port->arm_calls);
	return found;
}

/* Right after the look: the descriptor tells, once. */
static void
frame_after_arming(void **state)
{
	struct bed b = bed_new(false);
	struct memory_port *port = &b.d->w->port;

	(void)state;
	rx_post_many(b.d, 8, 1526);
	port->on_arm = arrive_armed;
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(sleep_once(&b), VHP_IDLE_EVENT);
		assert_int_equal(b.poller->stats.sleeps, i);
		assert_int_equal(b.d->w->qp.stats.wakes[VHP_WAKE_PORT], i);
		assert_int_equal(rx_fill(b.d->w).pkts, 1);
		rx_check(b.d, i, LEN_BYTES);
	}
	/* What it told is over: this sleep is as long as one may be. */
	port->on_arm = NULL;
	assert_int_equal(sleep_once(&b), VHP_IDLE_TIMEOUT);
	assert_int_equal(b.d->w->qp.stats.wakes[VHP_WAKE_PORT], 3);
	assert_int_equal(b.poller->stats.wakes_lost, 0);
	bed_free(&b);
}

static int
arrive_silently(struct memory_port *port, int found)
{
	port->tells = false;
	if (!found)
		arrive(port, 0);
	port->tells = true;
	return found;
}

/* Asked for, and it did not come: seen when the longest sleep ends. */
static void
interrupt_that_is_lost(void **state)
{
	struct bed b = bed_new(false);

	(void)state;
	rx_post_many(b.d, 8, 1526);
	b.d->w->port.on_arm = arrive_silently;
	assert_int_equal(sleep_once(&b), VHP_IDLE_TIMEOUT);
	assert_int_equal(b.poller->stats.wakes_lost, 1);
	assert_int_equal(rx_fill(b.d->w).pkts, 1);
	rx_check(b.d, 0, LEN_BYTES);
	bed_free(&b);
}

static int
cannot_tell(struct memory_port *port, int found)
{
	(void)found;
	/* An interrupt that means nothing. */
	CHECK(eventfd_write(port->pq.fd, 1) == 0);
	return -1;
}

/* The timed look, less and less often, and not for what the descriptor says. */
static void
port_that_cannot_tell(void **state)
{
	struct bed b = bed_new(true);
	struct memory_port *port = &b.d->w->port;

	(void)state;
	rx_post_many(b.d, 8, 1526);
	port->on_arm = cannot_tell;
	for (uint32_t i = 1; i <= 20; i++) {
		assert_int_equal(sleep_once(&b), VHP_IDLE_TIMEOUT);
		assert_int_equal(b.poller->stats.sleeps, i);
	}
	assert_int_equal(port->pq.look_ns, 1000000);
	assert_int_equal(b.d->w->qp.stats.wakes[VHP_WAKE_PORT], 0);
	arrive(port, 7);
	assert_int_equal(rx_fill(b.d->w).pkts, 1);
	rx_check(b.d, 7, LEN_BYTES);
	assert_int_equal(sleep_once(&b), VHP_IDLE_TIMEOUT);
	assert_int_equal(port->pq.look_ns, 100000);
	bed_free(&b);
}

/* A guest without buffers waits for itself: no interrupt is asked for. */
static void
starved_guest(void **state)
{
	struct bed b = bed_new(false);

	(void)state;
	arrive(&b.d->w->port, 0);
	assert_int_equal(rx_fill(b.d->w).pkts, 0);
	assert_true(b.d->w->qp.starved);
	assert_int_equal(sleep_once(&b), VHP_IDLE_TIMEOUT);
	assert_int_equal(b.d->w->port.arm_calls, 0);
	rx_post_many(b.d, 1, 1526);
	assert_int_equal(sleep_once(&b), VHP_IDLE_WORK);
	assert_int_equal(rx_fill(b.d->w).pkts, 1);
	rx_check(b.d, 0, LEN_BYTES);
	bed_free(&b);
}

/* Taken away while its poller slept: whoever gets it is not armed. */
static void
taken_away_asleep(void **state)
{
	struct bed b = bed_new(false);
	struct vhp_qpair *qp = &b.d->w->qp;

	(void)state;
	qp->pq->armed = true;
	assert_int_equal(qp->port->arm(qp->pq), 0);
	arrive(&b.d->w->port, 0);
	vhp_detach(&qp, 1);
	assert_int_equal(vhp_attach(b.poller, qp), 0);
	assert_int_equal(b.d->w->port.disarm_calls, 1);
	assert_false(qp->pq->armed);
	rx_post_many(b.d, 1, 1526);
	assert_int_equal(rx_fill(b.d->w).pkts, 1);
	rx_check(b.d, 0, LEN_BYTES);
	bed_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_before_arming),
		cmocka_unit_test(frame_after_arming),
		cmocka_unit_test(interrupt_that_is_lost),
		cmocka_unit_test(port_that_cannot_tell),
		cmocka_unit_test(starved_guest),
		cmocka_unit_test(taken_away_asleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
