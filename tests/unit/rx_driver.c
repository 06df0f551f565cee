/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rx_driver.h"

#define FIFO        65536
#define MOST_BYTES  (VHP_MAX_HDR_BYTES + VHP_MAX_FRAME_BYTES)
/* Buffers come from the two touching regions, again and again; tables from the third. */
#define ARENA_BYTES (GUEST_LOW_BYTES + GUEST_NEXT_BYTES)

static struct rx_buffer *
oldest(struct rx_driver *d)
{
	return &d->fifo[d->head % FIFO];
}

struct rx_driver *
rx_new(uint16_t ring_size, bool packed, uint16_t hdr_bytes, bool mergeable)
{
	const struct wire_conf conf = {
		.ring_size = ring_size,
		.packed = packed,
		.base = packed ? 0x8000 : 65530,
		.hdr_bytes = hdr_bytes,
		.mergeable = mergeable,
	};
	struct rx_driver *d = calloc(1, sizeof(*d));

	CHECK(d != NULL);
	d->w = wire_new(&conf);
	d->next_gpa = GUEST_LOW_GPA;
	d->next_table = GUEST_HIGH_GPA;
	d->fifo = calloc(FIFO, sizeof(d->fifo[0]));
	CHECK(d->fifo != NULL);
	return d;
}

void
rx_free(struct rx_driver *d)
{
	for (; d->head != d->tail; d->head++)
		free(oldest(d)->pieces);
	free(d->fifo);
	wire_free(d->w);
	free(d);
}

const struct vhp_ring_stats *
rx_stats(const struct rx_driver *d)
{
	return &d->w->qp.rx.stats;
}

uint32_t
rx_outstanding(const struct rx_driver *d)
{
	return d->tail - d->head;
}

/* Memory for a piece, 0xbb where nothing was written. */
static uint64_t
arena(struct rx_driver *d, uint32_t len_bytes)
{
	uint64_t gpa = d->next_gpa;

	CHECK(len_bytes <= ARENA_BYTES / 2);
	if (gpa + len_bytes > GUEST_LOW_GPA + ARENA_BYTES)
		gpa = GUEST_LOW_GPA;
	d->next_gpa = gpa + len_bytes;
	guest_fill(&d->w->g, gpa, 0xbb, len_bytes);
	return gpa;
}

/* Memory for a table of n descriptors. */
static uint64_t
table_arena(struct rx_driver *d, uint16_t n)
{
	uint64_t gpa = d->next_table;

	if (gpa + n * sizeof(struct vring_desc) > GUEST_HIGH_GPA + GUEST_HIGH_BYTES)
		gpa = GUEST_HIGH_GPA;
	d->next_table = gpa + n * sizeof(struct vring_desc);
	return gpa;
}

static bool
post(struct rx_driver *d, struct rx_buffer *b, uint64_t table)
{
	b->id = ring_post(&d->w->rx, b->pieces, b->n, table);
	if (b->id < 0) {
		free(b->pieces);
		return false;
	}
	CHECK(rx_outstanding(d) < FIFO);
	d->fifo[d->tail++ % FIFO] = *b;
	return true;
}

bool
rx_post(struct rx_driver *d, const uint32_t *lens, bool indirect)
{
	struct rx_buffer b = {.n = 0};
	uint64_t table = 0;

	while (lens[b.n] != 0)
		b.n++;
	if (d->w->rx.n_free < (indirect ? 1 : b.n))
		return false;
	CHECK(b.n > 0 && b.n <= RX_MOST_PIECES);
	b.pieces = calloc(b.n, sizeof(b.pieces[0]));
	CHECK(b.pieces != NULL);
	for (uint16_t i = 0; i < b.n; i++) {
		b.pieces[i] = (struct vring_desc){
			.addr = arena(d, lens[i]), .len = lens[i], .flags = VRING_DESC_F_WRITE};
		b.len_bytes += lens[i];
	}
	if (indirect)
		table = table_arena(d, b.n);
	return post(d, &b, table);
}

void
rx_post_many(struct rx_driver *d, uint32_t n, uint32_t len_bytes)
{
	const uint32_t lens[] = {len_bytes, 0};

	while (n-- > 0)
		CHECK(rx_post(d, lens, false));
}

bool
rx_post_bad(struct rx_driver *d)
{
	struct rx_buffer b = {.n = 1, .bad = true, .pieces = calloc(1, sizeof(*b.pieces))};

	CHECK(b.pieces != NULL);
	*b.pieces = (struct vring_desc){.addr = GUEST_LOW_GPA, .len = 100};
	return post(d, &b, 0);
}

/* Take the oldest buffer back. Returns what the device says it wrote, after checks. */
static uint32_t
take_back(struct rx_driver *d, struct rx_buffer *b)
{
	struct ring_used u = ring_pop_used(&d->w->rx);

	CHECK(rx_outstanding(d) > 0);
	*b = *oldest(d);
	d->head++;
	CHECK(u.id == (uint32_t)b->id);
	CHECK(u.len_bytes <= b->len_bytes);
	CHECK(!b->bad || u.len_bytes == 0);
	return u.len_bytes;
}

/* Append a buffer's first len_bytes to the frame. */
static void
collect(const struct rx_driver *d, const struct rx_buffer *b, uint32_t len_bytes, uint8_t *bytes)
{
	for (uint16_t i = 0; i < b->n && len_bytes > 0; i++) {
		uint32_t len = RTE_MIN(len_bytes, b->pieces[i].len);

		guest_read(&d->w->g, b->pieces[i].addr, bytes, len);
		bytes += len;
		len_bytes -= len;
	}
}

static uint16_t
num_buffers_of(const struct rx_driver *d, const uint8_t *header)
{
	uint16_t n = 1;

	if (d->w->qp.hdr_bytes == VHP_MAX_HDR_BYTES)
		memcpy(&n, header + 10, sizeof(n));
	return n;
}

uint32_t
rx_take(struct rx_driver *d, uint8_t *bytes, uint16_t *n_buffers)
{
	struct rx_buffer b;
	uint32_t len = 0, used;
	uint16_t n = 1;

	while (ring_used_count(&d->w->rx) > 0 && len == 0) {
		len = take_back(d, &b);
		if (len == 0) {
			free(b.pieces);
			d->n_bad += b.bad;
			d->n_returned += !b.bad;
		}
	}
	if (len == 0)
		return 0;
	CHECK(len >= d->w->qp.hdr_bytes);
	collect(d, &b, len, bytes);
	n = num_buffers_of(d, bytes);
	CHECK(n >= 1);
	CHECK(d->w->qp.mergeable || n == 1);
	used = len;
	for (uint16_t i = 1; i < n; i++) {
		/* All that belong to a frame come at once, and each but the last is full. */
		CHECK(used == b.len_bytes);
		free(b.pieces);
		CHECK(ring_used_count(&d->w->rx) > 0);
		used = take_back(d, &b);
		CHECK(used > 0 && len + used <= MOST_BYTES);
		collect(d, &b, used, bytes + len);
		len += used;
	}
	free(b.pieces);
	if (n_buffers != NULL)
		*n_buffers = n;
	return len;
}

void
rx_check(struct rx_driver *d, uint32_t number, uint32_t len_bytes)
{
	static uint8_t got[MOST_BYTES], expected[MOST_BYTES];
	uint16_t n = 0;

	CHECK(rx_take(d, got, &n) == len_bytes);
	wire_fill(expected, len_bytes, d->w->qp.hdr_bytes, number);
	if (d->w->qp.hdr_bytes == VHP_MAX_HDR_BYTES)
		memcpy(expected + 10, &n, sizeof(n));
	CHECK(memcmp(got, expected, len_bytes) == 0);
}

void
rx_check_none(struct rx_driver *d)
{
	uint8_t bytes[MOST_BYTES];

	CHECK(rx_take(d, bytes, NULL) == 0);
}

void
rx_send(struct wire *w, uint32_t number, uint32_t len_bytes)
{
	uint8_t *bytes = malloc(len_bytes);

	CHECK(bytes != NULL);
	wire_fill(bytes, len_bytes, w->qp.hdr_bytes, number);
	/* The port leaves num_buffers to us, whatever it holds. */
	if (w->qp.hdr_bytes == VHP_MAX_HDR_BYTES)
		memset(bytes + 10, 0x99, 2);
	memory_queue_push(&w->port.host, bytes, len_bytes);
	free(bytes);
}

struct vhp_work
rx_fill(struct wire *w)
{
	struct vhp_work work = {0};

	vhp_receiveq_fill(&w->qp, &work);
	return work;
}
