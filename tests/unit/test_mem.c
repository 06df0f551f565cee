/* SPDX-License-Identifier: BSD-3-Clause */
/* Guest memory (mem.c): from guest-physical addresses to pieces, and copies to and from pieces. */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "guest.h"

/* Touching regions, a hole, one byte, and the two ends of the address space. */
static const struct vhp_mem_region edge_regions[] = {
	{.gpa = 0, .size_bytes = 0x1000},
	{.gpa = 0x2000, .size_bytes = 0x1000},
	{.gpa = 0x3000, .size_bytes = 0x800},
	{.gpa = 0x5000, .size_bytes = 1},
	{.gpa = 0x5001, .size_bytes = 0xfff},
	{.gpa = 0x100000000, .size_bytes = 0x1000},
	/* The last byte of the address space cannot be in a region: the gate refuses it. */
	{.gpa = UINT64_MAX - 0x1000, .size_bytes = 0x1000},
};

static int
setup(void **state)
{
	struct guest *g = malloc(sizeof(*g));

	guest_init_regions(g, edge_regions, RTE_DIM(edge_regions));
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	guest_fini(*state);
	free(*state);
	return 0;
}

/* Each byte around each edge, from each hint, with each length that matters. */
static void
map_at_every_edge(void **state)
{
	const struct guest *g = *state;
	uint64_t mapped = 0;

	for (size_t k = 0; k < RTE_DIM(edge_regions); k++) {
		for (int64_t d = -17; d <= (int64_t)edge_regions[k].size_bytes + 17; d++) {
			uint64_t gpa = edge_regions[k].gpa + (uint64_t)d;
			uint8_t *expected = guest_byte(g, gpa);
			uint32_t hint = (uint32_t)d % 9;
			uint64_t len = 0x900;
			void *got = vhp_mem_map(&g->mem, &hint, gpa, &len);

			assert_ptr_equal(got, expected);
			if (expected == NULL) {
				assert_int_equal(len, 0x900);
				continue;
			}
			/* Cut at the end of the region, not before. */
			const struct vhp_mem_region *r = &g->mem.regions[hint];
			uint64_t left = r->gpa + r->size_bytes - gpa;

			assert_true(gpa >= r->gpa && left <= r->size_bytes);
			assert_int_equal(len, RTE_MIN(left, 0x900U));
			mapped++;
		}
	}
	assert_true(mapped > 0x1000);
}

static void
map_with_any_hint(void **state)
{
	const struct guest *g = *state;

	for (uint32_t h = 0; h < 12; h++) {
		uint32_t hint = h == 11 ? UINT32_MAX : h;
		uint64_t len = 4;

		assert_ptr_equal(
			vhp_mem_map(&g->mem, &hint, 0x2ffe, &len), g->mem.regions[1].hva + 0xffe);
		assert_int_equal(hint, 1);
		assert_int_equal(len, 2);
		hint = h;
		assert_null(vhp_mem_map(&g->mem, &hint, 0x4000, &len));
		/* A miss leaves the hint: the next address is likely where the last hit was. */
		assert_int_equal(hint, h);
	}
}

static void
no_memory_at_all(void **state)
{
	const struct vhp_mem none = {.n_regions = 0};
	struct iovec iov[2];
	uint32_t hint = 0;
	uint64_t len = 1;

	(void)state;
	assert_null(vhp_mem_map(&none, &hint, 0, &len));
	assert_int_equal(vhp_mem_to_iov(&none, &hint, 0, 1, iov, 2), 0);
}

/* Ranges, with room for two pieces. pieces: as vhp_mem_to_iov() returns them. */
static const struct range {
	uint64_t gpa;
	uint32_t len_bytes;
	uint32_t pieces;
} ranges[] = {
	{0, 1, 1},
	{0, 0x1000, 1},
	{0, 0x1001, 0},     /* into the hole */
	{0xfff, 2, 0},      /* the same at the last byte */
	{0x1fff, 1, 0},     /* the byte before a region */
	{0x1fff, 0x100, 0}, /* from there into it */
	{0x2fff, 2, 2},     /* two regions that touch */
	{0x2000, 0x1800, 2},
	{0x2000, 0x1801, 0},
	{0x4fff, 4, 0},
	{0x5000, 1, 1},
	{0x5000, 2, 2}, /* a region of one byte */
	{0x5000, 0x1000, 2},
	{0x5000, 0x1001, 0},
	{0xffffffff, 1, 0},
	{0xffffffff, 2, 0},
	{0x100000000, 0x1000, 1},
	{0x100000fff, 1, 1},
	{0, UINT32_MAX, 0},
	{UINT64_MAX, 1, 0},
	{UINT64_MAX, 2, 0},         /* would wrap to address 0, which is memory */
	{UINT64_MAX - 1, 1, 1},     /* the last byte of the last region */
	{UINT64_MAX - 1, 2, 0},     /* and one more */
	{UINT64_MAX - 1, 0x100, 0}, /* and around the end to 0 */
	{UINT64_MAX - 0x1000, 0x1000, 1},
	{0x8000000000000000, 1, 0},
	{0x8000000000000000, UINT32_MAX, 0},
};

static void
range_to_pieces(void **state)
{
	const struct guest *g = *state;

	for (size_t i = 0; i < RTE_DIM(ranges); i++) {
		struct iovec iov[2] = {{0}};
		uint32_t hint = i % 9;
		uint32_t n =
			vhp_mem_to_iov(&g->mem, &hint, ranges[i].gpa, ranges[i].len_bytes, iov, 2);
		uint64_t gpa = ranges[i].gpa;

		if (n != ranges[i].pieces)
			fail_msg("range %zu: %u pieces, not %u", i, n, ranges[i].pieces);
		for (uint32_t k = 0; k < n; k++) {
			assert_ptr_equal(iov[k].iov_base, guest_byte(g, gpa));
			gpa += iov[k].iov_len;
		}
		if (n > 0)
			assert_int_equal(gpa - ranges[i].gpa, ranges[i].len_bytes);
	}
}

static void
range_without_room(void **state)
{
	const struct guest *g = *state;
	struct iovec iov[1] = {{0}};
	uint32_t hint = 0;

	assert_int_equal(vhp_mem_to_iov(&g->mem, &hint, 0x2fff, 2, iov, 1), UINT32_MAX);
	assert_int_equal(vhp_mem_to_iov(&g->mem, &hint, 0x2fff, 1, iov, 1), 1);
	assert_int_equal(vhp_mem_to_iov(&g->mem, &hint, 0x2fff, 1, iov, 0), UINT32_MAX);
	/* That it is no memory is the more important fault. */
	assert_int_equal(vhp_mem_to_iov(&g->mem, &hint, 0x4000, 1, iov, 0), 0);
}

/* Random ranges over random regions, compared byte by byte with the model. */
static void
random_ranges(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct vhp_mem_region regions[VHP_MEM_MAX_REGIONS];
		uint32_t n = prng_range(&seed, 1, VHP_MEM_MAX_REGIONS);
		uint64_t gpa = prng(&seed) % 64;
		struct guest g;

		for (uint32_t i = 0; i < n; i++) {
			/* Half of them touch the one before. */
			gpa += prng(&seed) % 2 * prng_range(&seed, 0, 40);
			regions[i] = (struct vhp_mem_region){
				.gpa = gpa, .size_bytes = prng_range(&seed, 1, 50)};
			gpa += regions[i].size_bytes;
		}
		guest_init_regions(&g, regions, n);
		for (int k = 0; k < 200; k++) {
			struct iovec iov[VHP_MEM_MAX_REGIONS];
			uint64_t start = prng_range(&seed, 0, (uint32_t)gpa + 20);
			uint32_t len = prng_range(&seed, 1, 120);
			uint32_t hint = prng(&seed) % 10;
			uint32_t pieces =
				vhp_mem_to_iov(&g.mem, &hint, start, len, iov, VHP_MEM_MAX_REGIONS);
			uint64_t at = start;

			assert_int_equal(pieces > 0, guest_has(&g, start, len));
			assert_true(pieces <= n);
			for (uint32_t p = 0; p < pieces; p++)
				for (size_t b = 0; b < iov[p].iov_len; b++)
					assert_ptr_equal((uint8_t *)iov[p].iov_base + b,
						guest_byte(&g, at++));
			if (pieces > 0)
				assert_int_equal(at - start, len);
		}
		guest_fini(&g);
	}
}

/* Pieces of 3, 0, 5 and 1 bytes: every offset, every length, both directions. */
static void
copies(void **state)
{
	uint8_t a[3], b[5], c[1];
	uint8_t *const flat[] = {&a[0], &a[1], &a[2], &b[0], &b[1], &b[2], &b[3], &b[4], &c[0]};
	const struct iovec iov[] = {{a, 3}, {a, 0}, {b, 5}, {c, 1}};

	(void)state;
	for (size_t offset = 0; offset <= 12; offset++) {
		for (size_t len = 0; len <= 12; len++) {
			size_t fits = offset >= 9 ? 0 : RTE_MIN(len, 9 - offset);
			uint8_t bytes[12];

			for (size_t i = 0; i < 9; i++)
				*flat[i] = 0x10 + i;
			memset(bytes, 0xcc, sizeof(bytes));
			assert_int_equal(vhp_iov_read(iov, 4, offset, bytes, len), fits);
			for (size_t i = 0; i < sizeof(bytes); i++)
				assert_int_equal(bytes[i], i < fits ? 0x10 + offset + i : 0xcc);

			for (size_t i = 0; i < sizeof(bytes); i++)
				bytes[i] = 0xa0 + i;
			assert_int_equal(vhp_iov_write(iov, 4, offset, bytes, len), fits);
			for (size_t i = 0; i < 9; i++)
				assert_int_equal(*flat[i], i >= offset && i < offset + fits
								   ? 0xa0 + i - offset
								   : 0x10 + i);
		}
	}
	assert_int_equal(vhp_iov_read(iov, 0, 0, a, 3), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(map_at_every_edge, setup, teardown),
		cmocka_unit_test_setup_teardown(map_with_any_hint, setup, teardown),
		cmocka_unit_test(no_memory_at_all),
		cmocka_unit_test_setup_teardown(range_to_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(range_without_room, setup, teardown),
		cmocka_unit_test(random_ranges),
		cmocka_unit_test(copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
