/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two guests that send to each other at random, while one poller serves both and while two do,
 * and while one of them stops, or loses its memory (straight.c, drivers/net/vm).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "guard.h"
#include "joined.h"

#define FRAMES 4000

static uint64_t seed;

static uint32_t
size_of(int from, uint32_t number)
{
	uint64_t s = 2 * number + from + 1;

	return prng(&s) % 8 == 0 ? prng_range(&s, 14, 65535) : prng_range(&s, 14, 1514);
}

/* What one guest does between two turns of the poller. */
static void
act(struct joined *j, int g, uint32_t *sent, uint32_t *received)
{
	while (*sent < FRAMES && prng(&seed) % 4 != 0 &&
		joined_send(j, g, *sent, size_of(g, *sent), prng_range(&seed, 1, 6),
			prng(&seed) % 2, NULL))
		(*sent)++;
	for (uint32_t n = prng(&seed) % 30; n > 0; n--) {
		const uint32_t lens[] = {prng_range(&seed, 64, 2000), prng(&seed) % 2000, 0};

		/* More than memory has room for would overwrite what is out. */
		if (rx_outstanding(j->d[g]) > 250 || !rx_post(j->d[g], lens, prng(&seed) % 2))
			break;
	}
	joined_reap(j, g);
	for (; ring_used_count(&j->d[g]->w->rx) > 0; (*received)++)
		joined_check(j, g, *received, size_of(1 - g, *received));
}

/* Every frame of both arrives once, in order, by whichever way. */
static void
both_ways(void **state)
{
	static const uint64_t accepted[] = {0, JOINED_OFFLOADS};

	(void)state;
	for (unsigned int bits = 0; bits < 4; bits++) {
		const struct joined_guest a = {256, bits & 1, 12, true, accepted[bits >> 1]};
		const struct joined_guest b = {512, bits & 2, 12, true, JOINED_OFFLOADS};
		struct joined *j = joined_new(&a, &b);
		uint32_t sent[2] = {0}, received[2] = {0};
		uint32_t rounds = 0;

		seed = bits + 1;
		while (received[0] < FRAMES || received[1] < FRAMES) {
			int g = prng(&seed) % 2;

			assert_true(++rounds < 1000000);
			if (prng(&seed) % 50 == 0)
				joined_same_poller(j, prng(&seed) % 2);
			joined_turn(j, g);
			g = prng(&seed) % 2;
			act(j, g, &sent[g], &received[g]);
		}
		for (int g = 0; g < 2; g++) {
			const struct vhp_qpair *qp = joined_qpair(j, g);

			joined_turn(j, 0);
			joined_reap(j, g);
			assert_int_equal(j->n_used[g], FRAMES);
			assert_int_equal(qp->tx.stats.pkts, FRAMES);
			assert_int_equal(qp->rx.stats.pkts, FRAMES);
			assert_int_equal(wire_drops(&qp->tx) + wire_drops(&qp->rx), 0);
			/* Both ways were in use. */
			assert_true(qp->stats.straight > FRAMES / 20);
			assert_true(qp->stats.straight < FRAMES - FRAMES / 20);
		}
		joined_free(j);
	}
}

/*
 * The sender stops while its frames wait for buffers. Whoever asks it to stop may have the
 * memory of its rings afterwards: nothing of them is touched any more, and when it starts
 * again at the same place, nothing is missing.
 */
static void
stops_in_mid_burst(void **state)
{
	(void)state;
	for (int layout = 0; layout < 2; layout++) {
		const struct joined_guest a = {256, layout, 12, true, 0};
		struct joined *j = joined_new(&a, &a);
		struct vhp_vring *tx = &joined_qpair(j, 0)->tx;
		struct vhp_vring saved;
		void *nowhere;
		uint32_t base;

		rx_post_many(j->d[1], 50, 1526);
		for (uint32_t i = 0; i < 80; i++)
			assert_true(joined_send(j, 0, i, 100, 1, false, NULL));
		assert_int_equal(joined_turn(j, 0).pkts, 50);
		assert_int_equal(joined_reap(j, 0), 50);
		/* As net_rings.c stops a ring, after handoff.c took the qpair away. */
		joined_same_poller(j, false);
		base = tx->ops->base(tx);
		saved = *tx;
		nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(nowhere != MAP_FAILED);
		tx->areas[0] = tx->areas[1] = tx->areas[2] = nowhere;
		rx_post_many(j->d[1], 50, 1526);
		for (int i = 0; i < 10; i++)
			joined_turn(j, 1);
		assert_int_equal(rx_stats(j->d[1])->pkts, 50);
		*tx = saved;
		assert_true(tx->ops->start(tx, base));
		joined_same_poller(j, true);
		joined_turn(j, 1);
		for (uint32_t i = 0; i < 80; i++)
			joined_check(j, 1, i, 100);
		assert_int_equal(joined_reap(j, 0), 30);
		munmap(nowhere, 4096);
		joined_free(j);
	}
}

static unsigned int n_holes;

static void
on_hole(void)
{
	n_holes++;
}

/* Memory that one guest cuts away is that guest's fault, whichever side of the copy it is on. */
static void
memory_cut_away(void **state)
{
	static const struct joined_guest conf = {64, false, 12, true, 0};
	static const struct vhp_dirty_log no_log;

	(void)state;
	assert_int_equal(vhp_guard_install(on_hole), 0);
	for (int guilty = 0; guilty < 2; guilty++) {
		struct joined *j = joined_new(&conf, &conf);
		struct vhp_guard *guards[2];
		int fd = memfd_create("guest", MFD_CLOEXEC);
		/* The sender's frame, or the receiver's buffer, on a page of that file. */
		struct vhp_mem_region *region = &j->d[guilty]->w->g.mem.regions[3];
		struct vring_desc buf = {
			.addr = guilty == 1 ? region->gpa + (1 << 20) : GUEST_LOW_GPA,
			.len = 1526,
			.flags = VRING_DESC_F_WRITE,
		};
		uint8_t *page = region->hva + (1 << 20);

		assert_int_equal(ftruncate(fd, 4096), 0);
		assert_ptr_equal(
			mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
			page);
		for (int g = 0; g < 2; g++) {
			guards[g] = vhp_guard_new();
			vhp_guard_set(guards[g], &j->d[g]->w->g.mem, &no_log);
		}
		j->tx_at[0] += guilty == 0 ? 1 << 20 : 0;
		assert_true(joined_send(j, 0, 0, 200, 1, false, NULL));
		assert_true(ring_post(&j->d[1]->w->rx, &buf, 1, 0) >= 0);
		assert_int_equal(ftruncate(fd, 0), 0);
		n_holes = 0;
		assert_int_equal(joined_turn(j, 0).pkts, 1);
		assert_true(n_holes > 0);
		assert_true(vhp_guard_hit(guards[guilty]));
		assert_false(vhp_guard_hit(guards[1 - guilty]));
		/* Those who go on have whole rings. */
		assert_int_equal(joined_reap(j, 0), 1);
		assert_int_equal(ring_pop_used(&j->d[1]->w->rx).len_bytes, 212);
		for (int g = 0; g < 2; g++)
			vhp_guard_free(guards[g]);
		close(fd);
		joined_free(j);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways),
		cmocka_unit_test(stops_in_mid_burst),
		cmocka_unit_test(memory_cut_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
