/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-rings: chains as long as the ring, mostly of descriptors of length 0, while writes to
 * guest memory are logged (case R11); see rings.h.
 */
#include "rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE     4096ULL
/* The frame of rg_check(), and how header and frame are cut. */
#define GOOD     300U
#define LAST_AT  1022U
#define LAST_OFF 4000U

static const struct {
	uint32_t at, len;
} pieces[] = {{1, 7}, {300, 5}, {511, 1}, {777, 150}};

struct log {
	int fd;
	uint8_t *bits;
	uint64_t bytes;
	uint8_t *allowed; /* pages that may be marked, as bits */
};

/* ---- the log ------------------------------------------------------------------------ */

static int
open_log(struct rg_run *run, struct log *log)
{
	const struct fe_mem *mem = &run->net->mem;

	log->bytes = (fe_mem_end(mem, mem->n - 1) / PAGE / 8 / PAGE + 1) * PAGE;
	log->allowed = calloc(1, log->bytes);
	log->fd = memfd_create("fe-log", MFD_CLOEXEC);
	log->bits = MAP_FAILED;
	if (log->fd >= 0 && ftruncate(log->fd, (off_t)log->bytes) == 0)
		log->bits = mmap(NULL, log->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, log->fd, 0);
	if (log->allowed == NULL || log->bits == MAP_FAILED)
		return fe_fault(&run->fault, "test: memfd");
	return 0;
}

static void
close_log(struct log *log)
{
	free(log->allowed);
	if (log->bits != MAP_FAILED)
		munmap(log->bits, log->bytes);
	if (log->fd >= 0)
		close(log->fd);
}

static int
switch_log(struct rg_run *run, const struct log *log, bool on)
{
	struct fe_conn *c = &run->net->conn;
	int rc = 0;

	if (on)
		rc = fe_set_log_base(c, &(struct fe_log_msg){log->bytes, 0}, log->fd);
	if (rc == 0)
		rc = fe_set_features(c, run->net->features | (on ? FE_BIT(FE_F_LOG_ALL) : 0));
	if (rc == 0)
		rc = fe_sync(c);
	return rc == 0 ? 0 : fe_fault(&run->fault, "dirty log: %s", strerror(-rc));
}

static bool
is_marked(const uint8_t *bits, uint64_t page)
{
	return bits[page / 8] >> page % 8 & 1;
}

static void
allow(struct log *log, uint64_t gpa, uint64_t bytes)
{
	for (uint64_t page = gpa / PAGE; page <= (gpa + bytes - 1) / PAGE; page++)
		log->allowed[page / 8] |= (uint8_t)(1U << page % 8);
}

/* A page that must be marked. */
static int
must(struct rg_run *run, struct log *log, uint64_t gpa, const char *what)
{
	allow(log, gpa, 1);
	if (!is_marked(log->bits, gpa / PAGE))
		return fe_fault(&run->fault, "a page is not marked: %s", what);
	return 0;
}

/* What a back end may write of a ring at any time: used entries, and what it wants to know. */
static void
allow_ring(struct log *log, const struct fe_ring *r)
{
	if (r->cfg.packed) {
		allow(log, r->desc_gpa, r->cfg.size * sizeof(struct vring_packed_desc));
		allow(log, r->device_gpa, sizeof(struct vring_packed_desc_event));
	} else {
		allow(log, r->device_gpa,
			sizeof(struct vring_used) + r->cfg.size * sizeof(struct vring_used_elem) +
				2);
	}
}

/* The used entry of the chain, which was the first one logged. */
static int
check_used(struct rg_run *run, struct log *log, uint16_t position)
{
	const struct fe_ring *r = run->ring;
	uint32_t i = position & (r->cfg.size - 1);

	if (r->cfg.packed)
		return must(run, log, r->desc_gpa + i * sizeof(struct vring_packed_desc),
			"the used descriptor");
	if (must(run, log, r->device_gpa + 2, "the used index") != 0)
		return -EPROTO;
	return must(
		run, log, r->device_gpa + 4 + i * sizeof(struct vring_used_elem), "the used entry");
}

static int
check_rest(struct rg_run *run, const struct log *log)
{
	for (uint64_t page = 0; page / 8 < log->bytes; page++)
		if (is_marked(log->bits, page) && !is_marked(log->allowed, page))
			return fe_fault(&run->fault, "page 0x%llx is marked, nothing was written",
				(unsigned long long)(page * PAGE));
	return 0;
}

/* Once the log is taken away, frames leave it as it is. */
static int
check_off(struct rg_run *run, struct log *log)
{
	if (switch_log(run, log, false) != 0)
		return -EPROTO;
	memset(log->bits, 0, log->bytes);
	if (rg_good_tx(run) != 0 || rg_good_rx(run) != 0)
		return -EPROTO;
	for (uint64_t i = 0; i < log->bytes; i++)
		if (log->bits[i] != 0)
			return fe_fault(&run->fault, "writes are logged that nobody asks for");
	return 0;
}

/* ---- the chain ---------------------------------------------------------------------- */

/*
 * As many descriptors as the ring has, five of them with bytes, each on pages of its own.
 * The last one begins at the end of a page, and has room that the frame does not need.
 */
static int
post_chain(struct rg_run *run, uint64_t area, uint64_t empty)
{
	bool rx = run->c->queue == RG_RX;
	uint32_t n = run->ring->cfg.size, total = rg_bytes(run, GOOD), at = 0;
	uint64_t frame = rx ? 0 : rg_frame(run, GOOD), gpa = area;
	struct fe_raw_desc *d = calloc(n, sizeof(*d));
	int rc;

	if (d == NULL || (!rx && frame == 0))
		return fe_fault(&run->fault, "test: no memory");
	for (uint32_t i = 0; i < n; i++)
		d[i] = (struct fe_raw_desc){.addr = empty,
			.flags = (uint16_t)((i + 1 < n ? VRING_DESC_F_NEXT : 0) |
					    (rx ? VRING_DESC_F_WRITE : 0)),
			.next = FE_NEXT_AUTO};
	for (uint32_t i = 0; i < FE_ARRAY_SIZE(pieces); i++, gpa += 2 * PAGE) {
		d[pieces[i].at].addr = gpa;
		d[pieces[i].at].len = pieces[i].len;
		if (!rx)
			memcpy(fe_mem_ptr(&run->net->mem, gpa),
				(uint8_t *)fe_mem_ptr(&run->net->mem, frame) + at, pieces[i].len);
		at += pieces[i].len;
	}
	d[LAST_AT].addr = gpa + LAST_OFF;
	d[LAST_AT].len = rx ? 2 * PAGE : total - at;
	if (!rx)
		memcpy(fe_mem_ptr(&run->net->mem, gpa + LAST_OFF),
			(uint8_t *)fe_mem_ptr(&run->net->mem, frame) + at, total - at);
	rc = rg_post(run, d, n);
	free(d);
	return rc;
}

/* Where bytes of the frame were received. */
static int
check_received(struct rg_run *run, struct log *log, uint64_t area)
{
	for (uint32_t i = 0; i <= FE_ARRAY_SIZE(pieces); i++, area += 2 * PAGE)
		if (must(run, log, area + (i < FE_ARRAY_SIZE(pieces) ? 0 : LAST_OFF),
			    "received bytes") != 0)
			return -EPROTO;
	return must(run, log, area - PAGE, "received bytes behind the end of a page");
}

static int
logged(struct rg_run *run, struct log *log)
{
	struct fe_mem *mem = &run->net->mem;
	uint64_t area = fe_mem_alloc(mem, 16 * PAGE, PAGE, FE_ALLOC_ONE_REGION);
	uint16_t position = fe_ring_position(run->ring);
	int rc;

	if (area == 0)
		return fe_fault(&run->fault, "test: no guest memory");
	rc = switch_log(run, log, true);
	if (rc == 0)
		rc = post_chain(run, area, area + 15 * PAGE);
	if (rc == 0)
		rc = rg_passes(run);
	/* What comes after the frame, such as a wish for kicks, is logged then, too. */
	if (rc == 0)
		rc = switch_log(run, log, false);
	if (rc == 0 && run->c->queue == RG_RX)
		rc = check_received(run, log, area);
	if (rc == 0)
		rc = check_used(run, log, position);
	allow_ring(log, &run->net->tx[0].ring);
	allow_ring(log, &run->net->rx[0].ring);
	if (rc == 0)
		rc = check_rest(run, log);
	return rc == 0 ? check_off(run, log) : rc;
}

static int
log_long_chain(struct rg_run *run)
{
	struct log log;
	int rc = open_log(run, &log);

	if (rc == 0)
		rc = logged(run, &log);
	close_log(&log);
	return rc;
}

#define ROW(name_, what_, queue_)                                                                  \
	{                                                                                          \
		.name = name_, .what = what_, .queue = queue_, .layouts = RG_EVERY,                \
		.fill = log_long_chain, .expect = RG_SELF                                          \
	}

const struct rg_case rg_log_cases[] = {
	ROW("R11-tx-log", "1,024 descriptors, five not empty, writes logged", RG_TX),
	ROW("R11-rx-log", "1,024 descriptors, five not empty, writes logged", RG_RX),
	{.name = NULL},
};
