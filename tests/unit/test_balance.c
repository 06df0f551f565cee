/* SPDX-License-Identifier: BSD-3-Clause */
/* Which qpair moves to which poller (balance.c), and the bins of histograms (hist.h). */
#include <string.h>

#include "checks.h"
#include "balance.h"

#define P(load, n)                                                                                 \
	{                                                                                          \
		.load_permille = (load), .node = (n)                                               \
	}
#define Q(p, load, pin, n)                                                                         \
	{                                                                                          \
		.poller = (p), .load_permille = (load), .pinned = (pin), .node = (n)               \
	}
#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct rule {
	const char *what;
	struct vhp_balance_poller pollers[3];
	struct vhp_balance_qpair qpairs[3];
	int picked;
	unsigned int to;
} rules[] = {
	{"two that share a full core part", {P(1000, 0), P(0, 0), P(100, 0)},
		{Q(0, 500, 0, -1), Q(0, 480, 0, -1), Q(2, 100, 0, -1)}, 0, 1},
	{"one that is alone stays", {P(900, 0), P(0, 0), P(0, 0)},
		{Q(0, 900, 0, -1), Q(1, 0, 0, -1), Q(2, 0, 0, -1)}, -1, 0},
	{"a core that is half idle is left alone", {P(499, 0), P(0, 0), P(0, 0)},
		{Q(0, 250, 0, -1), Q(0, 249, 0, -1), Q(2, 0, 0, -1)}, -1, 0},
	{"the pinned one stays", {P(900, 0), P(0, 0), P(0, 0)},
		{Q(0, 500, 1, -1), Q(0, 400, 0, -1), Q(2, 0, 0, -1)}, 1, 1},
	{"a gain below a tenth is none", {P(900, 0), P(850, 0), P(850, 0)},
		{Q(0, 99, 0, -1), Q(0, 801, 0, -1), Q(2, 0, 0, -1)}, -1, 0},
	{"not away from the guest's memory", {P(900, 1), P(0, 0), P(300, 1)},
		{Q(0, 450, 0, 1), Q(0, 450, 0, 1), Q(2, 300, 0, 1)}, 0, 2},
	{"but away from the wrong node", {P(900, 1), P(0, 0), P(880, 1)},
		{Q(0, 450, 0, 0), Q(0, 450, 1, 1), Q(2, 880, 0, 1)}, 0, 1},
};

static void
picks(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(rules); i++) {
		const struct rule *r = &rules[i];
		unsigned int to = 0;
		int picked = vhp_balance_pick(r->pollers, 3, r->qpairs, 3, &to);

		if (picked != r->picked || to != r->to)
			print_error("%s: %d to %u\n", r->what, picked, to);
		assert_int_equal(picked, r->picked);
		assert_int_equal(to, r->to);
	}
}

/* Moved until nothing helps, it ends, and no poller is then above the others by a qpair. */
static void
comes_to_rest(void **state)
{
	struct vhp_balance_qpair q[12];
	struct vhp_balance_poller p[4];
	unsigned int moves = 0, to;
	int picked;

	(void)state;
	for (unsigned int i = 0; i < N(q); i++)
		q[i] = (struct vhp_balance_qpair){.load_permille = 200, .node = -1};
	for (;;) {
		memset(p, 0, sizeof(p));
		for (unsigned int i = 0; i < N(q); i++)
			p[q[i].poller].load_permille += q[i].load_permille;
		picked = vhp_balance_pick(p, N(p), q, N(q), &to);
		if (picked < 0)
			break;
		q[picked].poller = to;
		assert_true(++moves < 100);
	}
	for (unsigned int i = 0; i < N(p); i++)
		assert_int_equal(p[i].load_permille, 600);
}

static void
bins_of_a_histogram(void **state)
{
	const struct {
		uint64_t us;
		unsigned int bin;
	} expected[] = {{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {1023, 10}, {1024, 11},
		{2097151, 21}, {2097152, 22}, {UINT64_MAX, 22}};

	(void)state;
	for (size_t i = 0; i < N(expected); i++) {
		struct vhp_hist h = {0};

		vhp_hist_add(&h, expected[i].us);
		assert_int_equal(h.bins[expected[i].bin], 1);
		assert_int_equal(vhp_hist_total(&h), 1);
	}
}

static void
histogram_as_text(void **state)
{
	struct vhp_hist h = {.bins = {[1] = 4, [3] = 2}};
	char text[1024] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	(void)state;
	vhp_hist_print(out, "title", &h);
	fclose(out);
	assert_string_equal(text,
		"title\n"
		"                   usecs : count      : distribution\n"
		"         1 -> 1          : 4          |****************************************|\n"
		"         2 -> 3          : 0          |                                        |\n"
		"         4 -> 7          : 2          |********************                    "
		"|\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(picks),
		cmocka_unit_test(comes_to_rest),
		cmocka_unit_test(bins_of_a_histogram),
		cmocka_unit_test(histogram_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
