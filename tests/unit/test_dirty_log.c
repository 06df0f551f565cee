/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dirty log of live migration (dirty_log.c, and those who write to it): every page that
 * changed is marked, no other is, and nothing is written outside of the log.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "rx_driver.h"

#define PAGE 4096

/* A log of so many bytes; the bytes around it must stay 0xee. */
struct guarded_log {
	struct vhp_dirty_log log;
	uint8_t *bytes;
	size_t size_bytes;
};

static struct guarded_log
new_log(size_t size_bytes)
{
	struct guarded_log g = {.bytes = malloc(size_bytes + 64), .size_bytes = size_bytes};

	memset(g.bytes, 0xee, size_bytes + 64);
	memset(g.bytes + 32, 0, size_bytes);
	g.log = (struct vhp_dirty_log){
		.map = g.bytes + 32,
		.map_bytes = size_bytes,
		.bits = g.bytes + 32,
		.size_bytes = size_bytes,
	};
	return g;
}

static void
free_log(struct guarded_log *g)
{
	for (size_t i = 0; i < 32; i++) {
		assert_int_equal(g->bytes[i], 0xee);
		assert_int_equal(g->bytes[32 + g->size_bytes + i], 0xee);
	}
	free(g->bytes);
}

static bool
is_marked(const struct guarded_log *g, uint64_t page)
{
	return page / 8 < g->size_bytes && (g->log.bits[page / 8] >> page % 8 & 1);
}

/* ---- marks ---------------------------------------------------------------------- */

/* Random ranges, logs that are long enough and logs that are not (case M7). */
static void
ranges(void **state)
{
	static const size_t sizes[] = {1, 2, 7, 8, 9, 4096};
	static const struct vhp_mem_region regions[] = {
		{.gpa = 0x800, .size_bytes = 0x9000},
		{.gpa = 0x9800, .size_bytes = 0x8000},
		{.gpa = 0x40000, .size_bytes = 0x10001},
	};
	uint64_t seed = 80;
	struct guest g;

	(void)state;
	guest_init_regions(&g, regions, 3);
	for (int i = 0; i < 20000; i++) {
		struct guarded_log log = new_log(sizes[i % RTE_DIM(sizes)]);
		const struct vhp_mem_region *r = &g.mem.regions[prng(&seed) % 3];
		uint64_t offset = prng(&seed) % r->size_bytes;
		uint64_t len = prng(&seed) % (r->size_bytes - offset + 1);
		uint64_t first = (r->gpa + offset) / PAGE;

		if (prng(&seed) % 2)
			len = RTE_MIN(len, prng(&seed) % 20);
		vhp_dirty_log_write(&log.log, &g.mem, r->hva + offset, len);
		for (uint64_t page = 0; page < log.size_bytes * 8; page++)
			assert_int_equal(is_marked(&log, page),
				len > 0 && page >= first &&
					page <= (r->gpa + offset + len - 1) / PAGE);
		free_log(&log);
	}
	guest_fini(&g);
}

static void
marks_stay(void **state)
{
	struct guarded_log log = new_log(8);
	struct guest g;

	(void)state;
	guest_init(&g);
	/* The usual guest begins at page 16. */
	log.log.bits[0] = 0x81;
	log.log.bits[2] = 0x55;
	vhp_dirty_log_write(&log.log, &g.mem, guest_byte(&g, GUEST_LOW_GPA + PAGE), 1);
	assert_int_equal(log.log.bits[0], 0x81);
	assert_int_equal(log.log.bits[2], 0x57);
	/* Not guest memory: nothing to mark. */
	vhp_dirty_log_write(&log.log, &g.mem, &g, 1);
	assert_int_equal(log.log.bits[2], 0x57);
	guest_fini(&g);
	free_log(&log);
}

static void
pieces(void **state)
{
	struct guarded_log log = new_log(64);
	struct iovec iov[3];
	struct guest g;

	(void)state;
	guest_init(&g);
	iov[0] = (struct iovec){guest_byte(&g, GUEST_LOW_GPA + PAGE - 1), 1};
	iov[1] = (struct iovec){guest_byte(&g, GUEST_LOW_GPA + 4 * PAGE), 0};
	iov[2] = (struct iovec){guest_byte(&g, GUEST_LOW_GPA + 9 * PAGE - 1), 100};
	vhp_dirty_log_write_iov(&log.log, &g.mem, iov, 3, 2);
	for (uint64_t page = 0; page < 512; page++)
		assert_int_equal(is_marked(&log, page), page == 16 || page == 16 + 8);
	vhp_dirty_log_write_iov(&log.log, &g.mem, iov, 3, 3);
	assert_true(is_marked(&log, 16 + 9));
	guest_fini(&g);
	free_log(&log);
}

/* ---- the log's memory ------------------------------------------------------------- */

static void
map_and_unmap(void **state)
{
	struct vhp_dirty_log log = {0};
	int fd = memfd_create("log", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 3 * PAGE), 0);
	/* The offset need not be a page's. */
	assert_int_equal(vhp_dirty_log_map(&log, fd, PAGE, 1234), 0);
	assert_int_equal(log.size_bytes, PAGE);
	log.bits[0] = 0x42;
	log.bits[PAGE - 1] = 0x43;
	vhp_dirty_log_unmap(&log);
	assert_null(log.map);
	vhp_dirty_log_unmap(&log);
	for (int i = 0; i < 2; i++) {
		uint8_t byte = 0;

		assert_int_equal(pread(fd, &byte, 1, 1234 + i * (PAGE - 1)), 1);
		assert_int_equal(byte, 0x42 + i);
	}
	close(fd);
	assert_true(vhp_dirty_log_map(&log, fd, PAGE, 0) < 0);
	assert_null(log.map);
}

/* ---- who writes to it ------------------------------------------------------------- */

/* Does the log hold each page that is not as in the snapshot? Returns how many there are. */
static unsigned int
check_pages(const struct guest *g, const struct guarded_log *log)
{
	unsigned int n_changed = 0;

	for (uint32_t i = 0; i < g->mem.n_regions; i++) {
		const struct vhp_mem_region *r = &g->mem.regions[i];

		for (uint64_t at = 0; at < r->size_bytes; at += PAGE) {
			if (memcmp(r->hva + at, g->copy[i] + at, PAGE) == 0)
				continue;
			assert_true(is_marked(log, (r->gpa + at) / PAGE));
			n_changed++;
		}
	}
	return n_changed;
}

/* Case R11: frames of all sizes into buffers of all shapes, and bad ones in their way. */
static void
received_frames(void **state)
{
	(void)state;
	for (int run = 0; run < 4; run++) {
		struct rx_driver *d = rx_new(256, run % 2, 12, true);
		struct guarded_log log = new_log(0x100020000 / PAGE / 8);
		uint64_t seed = 81;
		unsigned int n_changed = 0;
		bool large = run / 2;

		d->w->qp.rx.log = &log.log;
		for (uint32_t i = 0; i < 200; i++) {
			uint32_t len = 26 + prng(&seed) % (large ? 60000 : 1500);

			while (rx_outstanding(d) < 80) {
				const uint32_t lens[] = {1 + prng(&seed) % 11,
					1500 + prng(&seed) % 2000, 1 + prng(&seed) % 50, 0};

				assert_true(rx_post(d, lens, prng(&seed) % 2));
				if (!large && prng(&seed) % 5 == 0)
					assert_true(rx_post_bad(d));
			}
			guest_snapshot(&d->w->g);
			memset(log.log.bits, 0, log.size_bytes);
			rx_send(d->w, i, len);
			for (int k = 0; k < 5; k++)
				rx_fill(d->w);
			n_changed += check_pages(&d->w->g, &log);
			/* The hole between the regions was not written. */
			assert_false(is_marked(&log, 0));
			assert_false(is_marked(&log, GUEST_NOWHERE_GPA / PAGE));
			rx_check(d, i, len);
		}
		assert_true(n_changed > 200);
		d->w->qp.rx.log = NULL;
		free_log(&log);
		rx_free(d);
	}
}

/* Used entries, the used index, and both ways to ask for kicks. */
static void
ring_writes(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct rx_driver *d = rx_new(1024, packed, 12, true);
		struct vhp_vring *vr = &d->w->qp.tx;
		const struct vring_desc buf = {.addr = GUEST_LOW_GPA, .len = 100};
		struct guarded_log log = new_log(2);
		/* What the device writes is all the memory that there is, for the log. */
		struct vhp_mem mem = {.n_regions = 1,
			.regions = {{PAGE, packed ? 1024 * 16 : 1024 * 8 + 6,
				packed ? (uint8_t *)vr->packed : (uint8_t *)vr->used}}};
		struct vhp_frame frames[700];
		struct iovec iov[2048];

		for (int i = 0; i < 700; i++)
			assert_true(ring_post(&d->w->tx, &buf, 1, 0) >= 0);
		assert_int_equal(vr->ops->take(vr, frames, 700, iov, 2048), 700);
		vr->log = &log.log;
		vr->mem = &mem;
		/* Entry 1,018 of the split ring, and its index; the first of the packed one. */
		vr->ops->put(vr, frames, 1);
		assert_int_equal(log.log.bits[0], packed ? 0x02 : 0x06);
		/* 16 bytes each; or 8, around the end, where the last entry crosses a page. */
		vr->ops->put(vr, frames + 1, 699);
		assert_int_equal(log.log.bits[0], 0x0e);
		log.log.bits[0] = 0;
		vr->event_idx = true;
		if (packed)
			mem.regions[0].hva = (uint8_t *)vr->device_event;
		vr->ops->arm(vr);
		/* The event index lies behind the last entry. */
		assert_int_equal(log.log.bits[0], packed ? 0x02 : 0x08);
		log.log.bits[0] = 0;
		vr->event_idx = false;
		vr->ops->arm(vr);
		assert_int_equal(log.log.bits[0], 0x02);
		log.log.bits[0] = 0;
		vr->ops->disarm(vr);
		assert_int_equal(log.log.bits[0], 0x02);
		vr->log = NULL;
		free_log(&log);
		rx_free(d);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges),
		cmocka_unit_test(marks_stay),
		cmocka_unit_test(pieces),
		cmocka_unit_test(map_and_unmap),
		cmocka_unit_test(received_frames),
		cmocka_unit_test(ring_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
