/* SPDX-License-Identifier: BSD-3-Clause */
/* The poll window of poll-us=auto (window.c): what makes it grow and shrink, and its budget. */
#include "checks.h"
#include "window.h"

#define HZ        2000000000ULL
#define US(n)     ((n) * (HZ / 1000000))
#define MAX_US    200
#define WASTE     20
#define START_TSC 12345
#define N(array)  (sizeof(array) / sizeof((array)[0]))

static struct vhp_window
window(uint32_t max_us, uint32_t waste_percent)
{
	struct vhp_window w;

	vhp_window_init(&w, HZ, max_us, waste_percent, START_TSC);
	return w;
}

static void
grows_to_the_maximum_by_sleeps_that_were_short(void **state)
{
	const uint64_t expected_us[] = {20, 40, 80, 160, 200, 200};
	struct vhp_window w = window(MAX_US, WASTE);

	(void)state;
	assert_int_equal(w.cycles, US(VHP_WINDOW_FIRST_US));
	for (unsigned int i = 0; i < N(expected_us); i++) {
		vhp_window_woken(&w, US(MAX_US));
		assert_int_equal(w.cycles, US(expected_us[i]));
	}
	assert_int_equal(w.grown, 5);
	assert_int_equal(w.shrunk, 0);
}

static void
shrinks_to_nothing_by_sleeps_that_were_long(void **state)
{
	const uint64_t expected_us[] = {100, 50, 25, 12, 0, 0};
	struct vhp_window w = window(MAX_US, WASTE);

	(void)state;
	w.cycles = US(200);
	for (unsigned int i = 0; i < N(expected_us); i++) {
		vhp_window_woken(&w, US(MAX_US) + 1);
		assert_int_equal(w.cycles / US(1), expected_us[i]);
	}
	assert_int_equal(w.shrunk, 5);
	/* And comes back at once. */
	vhp_window_woken(&w, US(1));
	assert_int_equal(w.cycles, US(VHP_WINDOW_FIRST_US));
}

static void
grows_when_work_comes_late_in_it(void **state)
{
	struct vhp_window w = window(MAX_US, WASTE);

	(void)state;
	w.cycles = US(50);
	vhp_window_found(&w, 0);
	vhp_window_found(&w, US(25));
	assert_int_equal(w.cycles, US(50));
	vhp_window_found(&w, US(25) + 1);
	assert_int_equal(w.cycles, US(100));
}

static void
a_maximum_of_zero_never_polls(void **state)
{
	struct vhp_window w = window(0, WASTE);

	(void)state;
	vhp_window_woken(&w, 0);
	vhp_window_found(&w, 1);
	assert_int_equal(vhp_window_open(&w, START_TSC + HZ), 0);
}

/* Polls in vain as much as it is let, from *now on; returns what was wasted in cycles. */
static uint64_t
waste(struct vhp_window *w, uint64_t *now, uint64_t duration, uint64_t work_cycles)
{
	uint64_t end = *now + duration, wasted = 0;

	while (*now < end) {
		uint64_t open = vhp_window_open(w, *now);

		*now += open + work_cycles;
		wasted += open;
		vhp_window_closed(w, open);
	}
	return wasted;
}

static void
no_second_wastes_more_than_was_allowed(void **state)
{
	(void)state;
	for (uint32_t percent = 1; percent < 100; percent += 7) {
		for (uint64_t idle_s = 0; idle_s < 20; idle_s += 5) {
			struct vhp_window w = window(MAX_US, percent);
			uint64_t now = START_TSC + idle_s * HZ;

			w.cycles = w.max_cycles;
			/* The first second has what was saved, each has what comes in. */
			for (int second = 0; second < 3; second++) {
				uint64_t wasted = waste(&w, &now, HZ, US(3));

				/* The last window may end after its second. */
				assert_true(wasted <= HZ / 100 * percent + w.max_cycles);
				assert_true(wasted >= HZ / 100 * percent * 85 / 100);
			}
			assert_true(w.refused > 0);
		}
	}
}

static void
waste_is_without_limit_at_100_percent_and_forbidden_at_0(void **state)
{
	struct vhp_window all = window(MAX_US, 100), none = window(MAX_US, 0);
	uint64_t now = START_TSC;

	(void)state;
	all.cycles = none.cycles = US(200);
	assert_true(waste(&all, &now, HZ, 0) >= HZ);
	assert_int_equal(waste(&none, &now, HZ, US(10)), 0);
}

static void
windows_that_found_work_cost_nothing(void **state)
{
	struct vhp_window w = window(MAX_US, WASTE);
	uint64_t now = START_TSC;

	(void)state;
	w.cycles = US(200);
	for (int i = 0; i < 100000; i++) {
		assert_int_equal(vhp_window_open(&w, now), US(200));
		vhp_window_found(&w, US(90));
		now += US(91);
	}
	assert_int_equal(w.refused, 0);
}

/* A budget that is spent comes back with time, whatever the steps in which it is asked. */
static void
refills_without_rounding_away(void **state)
{
	struct vhp_window w = window(MAX_US, WASTE);

	(void)state;
	w.budget_cycles = 0;
	for (uint64_t now = START_TSC; now < START_TSC + HZ / 20; now += 7)
		vhp_window_open(&w, now);
	/* 18 % of a twentieth of a second */
	assert_in_range(w.budget_cycles, HZ / 20 / 100 * 18 - 1000, HZ / 20 / 100 * 18);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_to_the_maximum_by_sleeps_that_were_short),
		cmocka_unit_test(shrinks_to_nothing_by_sleeps_that_were_long),
		cmocka_unit_test(grows_when_work_comes_late_in_it),
		cmocka_unit_test(a_maximum_of_zero_never_polls),
		cmocka_unit_test(no_second_wastes_more_than_was_allowed),
		cmocka_unit_test(waste_is_without_limit_at_100_percent_and_forbidden_at_0),
		cmocka_unit_test(windows_that_found_work_cost_nothing),
		cmocka_unit_test(refills_without_rounding_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
