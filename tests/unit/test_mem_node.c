/* SPDX-License-Identifier: BSD-3-Clause */
/* The node of a guest's memory (mem_node.c), on a machine of two nodes that libnuma is made to see.
 */
#include "checks.h"
#include "mem_node.h"

int __wrap_numa_available(void);
int __wrap_numa_max_node(void);
int __wrap_numa_move_pages(
	int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags);

static int max_node;
static int answer;          /* of move_pages */
static uintptr_t border;    /* pages from here on are on node 1, those before on node 0, */
static uintptr_t untouched; /* or have none from here on */
static unsigned long asked;

int
__wrap_numa_available(void)
{
	return 0;
}

int
__wrap_numa_max_node(void)
{
	return max_node;
}

int
__wrap_numa_move_pages(
	int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags)
{
	assert_int_equal(pid, 0);
	assert_null(nodes); /* asks, and moves nothing */
	assert_int_equal(flags, 0);
	asked = n;
	for (unsigned long i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)pages[i];

		assert_int_equal(at % 4096, 0);
		status[i] = at >= untouched ? -14 : at >= border;
	}
	return answer;
}

#define MIB 0x100000ULL

static const struct vhp_mem guest = {
	.n_regions = 2,
	.regions = {{.gpa = 0, .size_bytes = MIB, .hva = (uint8_t *)0x10000000},
		{.gpa = MIB, .size_bytes = 64 * MIB, .hva = (uint8_t *)0x20000000}},
};

static void
one_node_is_none(void **state)
{
	(void)state;
	max_node = 0;
	asked = 0;
	assert_int_equal(vhp_numa_node(&guest, 0), -1);
	assert_int_equal(asked, 0);
}

static void
most_pages_decide(void **state)
{
	(void)state;
	max_node = 1;
	answer = 0;
	untouched = UINTPTR_MAX;
	border = 0x20000000 + 48 * MIB;
	assert_int_equal(vhp_numa_node(&guest, 1), 0);
	border = 0x20000000;
	assert_int_equal(vhp_numa_node(&guest, 0), 0); /* a tie: the lower */
	border = 0x10000000 + MIB / 2;
	assert_int_equal(vhp_numa_node(&guest, 0), 1);
	assert_int_equal(asked, 256);
}

static void
untouched_pages_do_not_count(void **state)
{
	(void)state;
	max_node = 1;
	answer = 0;
	border = 0x10000000;
	untouched = 0x10000000 + MIB / 8;
	assert_int_equal(vhp_numa_node(&guest, 0), 1);
	untouched = 0;
	assert_int_equal(vhp_numa_node(&guest, 1), 1);
	assert_int_equal(vhp_numa_node(&guest, -1), -1);
}

static void
the_kernel_refuses(void **state)
{
	(void)state;
	max_node = 1;
	answer = -1;
	untouched = border = UINTPTR_MAX;
	assert_int_equal(vhp_numa_node(&guest, 1), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_node_is_none),
		cmocka_unit_test(most_pages_decide),
		cmocka_unit_test(untouched_pages_do_not_count),
		cmocka_unit_test(the_kernel_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
