/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often a poller looks at a qpair that is idle while another is busy: seldom, and never
 * later than poller.h says. The loop's inner part is tested as it is, with turns that only
 * take time.
 */
#include "poller.c"

#include "checks.h"

/* So many ticks are a microsecond here: the clock of a slow machine, as a fast one sees it. */
#define US_CYCLES   2000ULL
#define BUSY_US     5
#define PASSES      4000
#define IDLE_QPAIRS 3

static struct vhp_qpair busy, idle[IDLE_QPAIRS];
static struct vhp_qpair_list list;
static bool is_busy;
static uint64_t last_look[IDLE_QPAIRS], looks[IDLE_QPAIRS];
static uint64_t longest_gap; /* from look to look, of those that ended in the pass at hand */
static uint64_t longest_pass, longest_over;

static void
busy_turn(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work)
{
	uint64_t end = rte_rdtsc() + BUSY_US * US_CYCLES;

	(void)qp;
	(void)now_tsc;
	if (!is_busy)
		return;
	while (rte_rdtsc() < end)
		;
	work->pkts = 1;
}

static void
idle_turn(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work)
{
	unsigned int i = qp - idle;

	(void)work;
	if (last_look[i] != 0)
		longest_gap = RTE_MAX(longest_gap, now_tsc - last_look[i]);
	last_look[i] = now_tsc;
	looks[i]++;
}

/* What poller_loop() does of it, without sleep. */
static void
run(struct loop *loop, unsigned int passes)
{
	for (unsigned int n = 0; n < passes; n++) {
		struct vhp_work work = {0};
		uint64_t now, bound;

		pass(&list, loop, &work);
		now = rte_rdtsc();
		longest_pass = RTE_MAX(longest_pass, now - loop->last_tsc);
		/* Due in the course of one pass at the latest, looked at in the next. */
		bound = VHP_REST_MAX_US * US_CYCLES + 2 * longest_pass;
		if (longest_gap > bound)
			longest_over = RTE_MAX(longest_over, longest_gap - bound);
		longest_gap = 0;
		if (work.pkts > 0)
			loop->work_tsc = now;
		loop->last_tsc = now;
		loop->was_busy = work.pkts > 0;
	}
}

static int
start(void **state)
{
	(void)state;
	memset(&busy, 0, sizeof(busy));
	memset(idle, 0, sizeof(idle));
	memset(last_look, 0, sizeof(last_look));
	memset(looks, 0, sizeof(looks));
	longest_gap = longest_over = longest_pass = 0;
	is_busy = true;
	busy.turn = busy_turn;
	list.n = 0;
	for (unsigned int i = 0; i < IDLE_QPAIRS; i++) {
		idle[i].turn = idle_turn;
		list.qpairs[list.n++] = &idle[i];
	}
	list.qpairs[list.n++] = &busy;
	return 0;
}

static void
seldom_and_within_the_bound(void **state)
{
	struct loop loop = {.last_tsc = rte_rdtsc(), .us_cycles = US_CYCLES};

	(void)state;
	loop.work_tsc = loop.last_tsc;
	run(&loop, PASSES);
	assert_int_equal(busy.stats.turns, PASSES);
	assert_int_equal(longest_over, 0);
	for (unsigned int i = 0; i < IDLE_QPAIRS; i++) {
		/* Every 100 us at best, of 5 us each; far more often on a machine that stalls. */
		assert_true(looks[i] < PASSES / 2);
		assert_true(looks[i] >= PASSES / VHP_REST_MAX_US);
	}
}

/* When nobody has work they are looked at in each pass, however long they have rested. */
static void
rest_ends_with_the_work(void **state)
{
	struct loop loop = {.last_tsc = rte_rdtsc(), .us_cycles = US_CYCLES};
	uint64_t before;

	(void)state;
	loop.work_tsc = loop.last_tsc;
	run(&loop, PASSES);
	is_busy = false;
	while (loop.last_tsc - loop.work_tsc <= REST_WHILE_US * US_CYCLES)
		run(&loop, 1);
	before = looks[0];
	run(&loop, 100);
	assert_int_equal(looks[0], before + 100);
	/* And in the pass after a sleep. */
	is_busy = true;
	run(&loop, PASSES);
	before = looks[0];
	loop.look_at_all = true;
	run(&loop, 1);
	assert_int_equal(looks[0], before + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(seldom_and_within_the_bound, start),
		cmocka_unit_test_setup(rest_ends_with_the_work, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
