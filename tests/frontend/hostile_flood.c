/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-hostile: too much of everything, and ring areas where they should not be. */
#include "hostile.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SETTLE_US 50000

/* A malloc arena and DPDK's own tables may settle; a leak per round is far above. */
static const struct ho_slack slack = {.fds = 4, .maps = 16, .rss_kb = 16384};

/* Repeat a step; what the process holds must be the same before and after. */
static int
flat(struct ho_run *run, uint32_t rounds, int (*step)(struct ho_run *run, uint32_t round))
{
	int pid = run->opts->second.pid;
	struct ho_proc before;
	int rc = 0;

	for (uint32_t i = 0; i < rounds && rc == 0; i++) {
		/* The first rounds may make caches and arenas. */
		if (i == rounds / 10) {
			usleep(SETTLE_US);
			if (ho_proc_read(pid, &before) != 0)
				return fe_fault(&run->fault, "the back end has died");
		}
		rc = step(run, i);
		if (rc != 0)
			ho_note(run, "round", i);
	}
	/* What came with the last message is closed after its answer. */
	usleep(SETTLE_US);
	return rc != 0 ? rc : ho_proc_flat(pid, &before, &slack, &run->fault);
}

static int
num_with_fds(struct ho_run *run, uint32_t round)
{
	const struct fe_vring_state s = {round % 2, 256};
	struct fe_conn *c = &run->net->conn;
	struct fe_msg reply;
	int fds[8], rc;

	for (int i = 0; i < 8; i++)
		fds[i] = run->net->mem.r[0].fd;
	rc = fe_send(c, FE_SET_VRING_NUM, FE_MSG_NEED_REPLY, &s, sizeof(s), fds, 8);
	if (rc == 0)
		rc = fe_recv(c, &reply, c->timeout_ms);
	if (rc == 0 && reply.payload.u64 == 0)
		return fe_fault(&run->fault, "surplus descriptors accepted");
	return ho_must(run, "refusal", rc);
}

static int
surplus_fds(struct ho_run *run)
{
	return flat(run, ho_rounds(run, 10000), num_with_fds);
}

/* Bare connections: each message ends one. */
static int
closing_message(struct ho_run *run, uint32_t round)
{
	const struct fe_inflight_msg m = {4096, 0, 1, 256};
	int fds[8], rc;
	struct fe_conn c;

	for (int i = 0; i < 8; i++)
		fds[i] = run->host->fd;
	rc = fe_connect(&c, run->opts->second.net.path, 2000);
	if (rc == 0)
		rc = round % 2 ? fe_send(&c, FE_GET_INFLIGHT_FD, 0, &m, sizeof(m), NULL, 0)
			       : fe_send(&c, FE_GET_FEATURES, 0, NULL, 0, fds, 8);
	if (rc == 0)
		rc = fe_wait_closed(&c, 2000);
	fe_conn_close(&c);
	return ho_must(run, "a connection that has to be closed", rc);
}

static int
closing_messages(struct ho_run *run)
{
	fe_net_close(run->net);
	return flat(run, ho_rounds(run, 2000), closing_message);
}

static int
set_num(struct ho_run *run, uint32_t round)
{
	/* The last one fits the ring. */
	return ho_must(
		run, "SET_VRING_NUM", fe_set_vring_num(&run->net->conn, 1, round % 2 ? 256 : 128));
}

static int
set_nums(struct ho_run *run)
{
	int rc = ho_must(run, "GET_VRING_BASE", fe_net_stop(run->net));

	if (rc == 0)
		rc = flat(run, ho_rounds(run, 100000) & ~1U, set_num);
	return rc != 0 ? rc : ho_must(run, "start", fe_net_start(run->net));
}

static int
set_table(struct ho_run *run, uint32_t round)
{
	(void)round;
	return ho_must(run, "SET_MEM_TABLE", fe_mem_announce(&run->net->mem, &run->net->conn));
}

static int
set_tables(struct ho_run *run)
{
	return flat(run, ho_rounds(run, 2000), set_table);
}

static int
set_log(struct ho_run *run, uint32_t round)
{
	const struct fe_log_msg m = {4096 << (round % 3), 0};

	return ho_must(
		run, "SET_LOG_BASE", fe_set_log_base(&run->net->conn, &m, run->net->mem.r[0].fd));
}

static int
set_logs(struct ho_run *run)
{
	return flat(run, ho_rounds(run, 2000), set_log);
}

static int
set_fd(struct ho_run *run, uint32_t round)
{
	static const uint32_t by_fd[] = {FE_SET_VRING_CALL, FE_SET_VRING_ERR, FE_SET_VRING_KICK};
	struct fe_ring *r = round % 2 ? &run->net->tx[0].ring : &run->net->rx[0].ring;
	const int own[] = {r->call_fd, r->err_fd, r->kick_fd};
	uint32_t which = round / 2 % 3;

	return ho_must(run, "a descriptor",
		fe_set_vring_fd(&run->net->conn, by_fd[which], r->index, own[which]));
}

static int
set_fds(struct ho_run *run)
{
	return flat(run, ho_rounds(run, 10000), set_fd);
}

static int
send_rarp(struct ho_run *run, uint32_t round)
{
	const uint8_t mac[6] = {2, 0, 0, 0, (uint8_t)(round >> 8), (uint8_t)round};

	return ho_must(run, "SEND_RARP", fe_send_rarp(&run->net->conn, mac));
}

static int
send_rarps(struct ho_run *run)
{
	int rc = flat(run, ho_rounds(run, 5000), send_rarp);

	fe_host_flush(run->host);
	return rc;
}

/* F3: frames that are too short to be any; nothing of them passes, nothing is kept. */
static int
reject_batch(struct ho_run *run, uint32_t round)
{
	struct fe_net *n = run->net;
	struct fe_transmitq *t = &n->tx[0];
	uint64_t end = fe_now_us() + 3000000;
	uint64_t done = t->n_done;

	for (uint32_t i = 0; i < 64; i++) {
		const uint32_t lens[] = {1, 4, n->hdr_bytes - 1, n->hdr_bytes, n->hdr_bytes + 13};
		uint32_t buf = t->free[t->nfree - 1];
		struct fe_seg s = {.gpa = t->buf_gpa[buf], .len = lens[(i + round) % 5]};

		if (fe_ring_add(&t->ring, &s, 1, 1, buf) < 0)
			return fe_fault(&run->fault, "test: transmitq full");
		t->nfree--;
	}
	fe_ring_kick(&t->ring);
	while (t->n_done - done < 64) {
		if (fe_net_reap(n, 0) < 0)
			return fe_fault(&run->fault, "%s", fe_net_fault(n));
		if (fe_now_us() > end)
			return fe_fault(&run->fault, "%llu of 64 rejected frames came back",
				(unsigned long long)(t->n_done - done));
	}
	return 0;
}

static int
rejected_frames(struct ho_run *run)
{
	return flat(run, ho_rounds(run, 20000), reject_batch);
}

/* F1: receive buffers of a byte each, and a flood from the host. */
static int
tiny_buffers(struct ho_run *run)
{
	struct fe_net *n = run->net;
	uint64_t end = fe_now_us() + 10000ULL * ho_rounds(run, 100);
	struct fe_ring *r = &n->rx[0].ring;
	uint64_t slab = fe_mem_alloc(&n->mem, 4096, 64, FE_ALLOC_ONE_REGION);
	uint64_t frames = 0;

	while (fe_now_us() < end) {
		struct fe_done done[64];

		/* The buffers from before are used up first. */
		for (uint32_t i = 0; r->num_free > 0 && i < 256; i++) {
			struct fe_seg s = {.gpa = slab + i % 4096, .len = 1, .write = true};

			if (fe_ring_add(r, &s, 1, 1, 1ULL << 40) < 0)
				break;
		}
		fe_ring_kick(r);
		for (int i = 0; i < 32; i++)
			if (fe_host_send(run->host, NULL, run->buf, 128) == 0)
				frames++;
		while (fe_ring_used(r, done, FE_ARRAY_SIZE(done)) > 0)
			;
	}
	if (frames < 20)
		return fe_fault(&run->fault, "test: only %llu frames", (unsigned long long)frames);
	return 0;
}

/* F1: the other direction, one byte in each descriptor. */
static int
tiny_chains(struct ho_run *run)
{
	struct fe_net *n = run->net;
	struct fe_ring *r = &n->tx[0].ring;
	uint64_t end = fe_now_us() + 10000ULL * ho_rounds(run, 100);
	uint64_t slab = fe_mem_alloc(&n->mem, 4096, 64, FE_ALLOC_ONE_REGION), back = 0;

	while (fe_now_us() < end) {
		struct fe_done done[64];
		struct fe_seg s[100];
		int got;

		for (uint32_t i = 0; i < FE_ARRAY_SIZE(s); i++)
			s[i] = (struct fe_seg){.gpa = slab + i, .len = 1};
		while (fe_ring_add(r, s, FE_ARRAY_SIZE(s), FE_ARRAY_SIZE(s), 1ULL << 40) >= 0)
			;
		fe_ring_kick(r);
		while ((got = fe_ring_used(r, done, FE_ARRAY_SIZE(done))) > 0)
			back += (uint64_t)got;
		fe_host_flush(run->host);
	}
	return back > 20 ? 0
			 : fe_fault(&run->fault, "only %llu chains came back",
				   (unsigned long long)back);
}

/* Kicks without work, as fast as a guest can. */
static int
kick_storm(struct ho_run *run)
{
	uint64_t end = fe_now_us() + 10000ULL * ho_rounds(run, 50);

	while (fe_now_us() < end) {
		fe_ring_kick_always(&run->net->tx[0].ring);
		fe_ring_kick_always(&run->net->rx[0].ring);
	}
	return 0;
}

/* Where each of a ring's areas is put. */
enum place { P_KEEP, P_LAST_BYTE, P_ODD, P_NOWHERE, P_TOP, P_SAME, P_HOLE, P_PLACES };

static uint64_t
place(const struct ho_run *run, enum place where, uint64_t keep, uint64_t same)
{
	const struct fe_region_msg *r = &run->net->mem.r[0].msg;

	switch (where) {
	case P_LAST_BYTE:
		return r->uva + r->bytes - 1;
	case P_ODD:
		return keep + 1;
	case P_NOWHERE:
		return 16;
	case P_TOP:
		return UINT64_MAX - 7;
	case P_SAME:
		return same;
	case P_HOLE:
		return r->uva + r->bytes;
	default:
		return keep;
	}
}

static int
move_areas(struct ho_run *run, const enum place where[3])
{
	struct fe_ring *r = &run->net->tx[0].ring;
	const uint64_t desc = fe_mem_uva(r->mem, r->desc_gpa);
	const struct fe_vring_addr a = {
		.index = 1,
		.desc = place(run, where[0], desc, desc),
		.avail = place(run, where[1], fe_mem_uva(r->mem, r->driver_gpa), desc),
		.used = place(run, where[2], fe_mem_uva(r->mem, r->device_gpa), desc),
	};
	int rc = fe_net_stop(run->net);

	if (rc == 0)
		rc = fe_set_vring_addr(&run->net->conn, &a);
	if (rc == 0)
		rc = fe_set_vring_fd(&run->net->conn, FE_SET_VRING_KICK, 1, r->kick_fd);
	if (rc != 0)
		return rc == -EREMOTEIO || rc == -ECONNRESET ? 0
							     : ho_must(run, "SET_VRING_ADDR", rc);
	/* Something to read for whoever looks there. */
	memset(run->buf, 0xff, 128);
	fe_net_send(run->net, 0, NULL, run->buf, 128, NULL);
	fe_ring_kick(r);
	fe_ring_kick_always(r);
	usleep(5000);
	fe_host_flush(run->host);
	return 0;
}

static int
areas(struct ho_run *run)
{
	for (int area = 0; area < 3; area++)
		for (int p = P_KEEP + 1; p < P_PLACES; p++) {
			enum place where[3] = {P_KEEP, P_KEEP, P_KEEP};

			where[area] = (enum place)p;
			if (move_areas(run, where) != 0 || ho_reopen(run) != 0) {
				ho_note(run, "area", (uint32_t)area);
				ho_note(run, "place", (uint32_t)p);
				return -EPROTO;
			}
		}
	return move_areas(run, (const enum place[]){P_SAME, P_SAME, P_SAME});
}

/* The smallest and the largest ring that virtio allows. */
static int
extreme_sizes(struct ho_run *run)
{
	static const uint32_t sizes[] = {1, 2, 32768, 3, 32767};
	uint32_t n = FE_ARRAY_SIZE(sizes) - (run->packed ? 0 : 2);

	for (uint32_t i = 0; i < n; i++) {
		struct fe_net_cfg cfg = run->opts->second.net;

		fe_net_close(run->net);
		cfg.ring_size = sizes[i];
		cfg.tx_bufs = cfg.rx_bufs = sizes[i] < 64 ? sizes[i] : 64;
		cfg.indirect_max = 2;
		if (run->packed)
			cfg.need_features = FE_BIT(VIRTIO_F_RING_PACKED);
		if (ho_must(run, "connecting", fe_net_open(run->net, &cfg)) != 0 ||
			ho_must(run, "start", fe_net_start(run->net)) != 0)
			return -EPROTO;
		fe_host_flush(run->host);
		for (int k = 0; k < 100; k++)
			if (ho_ping(run) != 0) {
				ho_note(run, "ring size", sizes[i]);
				return -EPROTO;
			}
	}
	return 0;
}

const struct ho_case ho_flood_cases[] = {
	{"ring-areas", "ring areas outside, at the end, unaligned, on top of each other", areas,
		HO_LEAVE, 0, NULL, 0},
	{"ring-extreme-sizes", "rings of 1, 2 and 32768 entries work, packed of 3 and 32767",
		extreme_sizes, HO_OPEN, 0, NULL, 0},
	{"M6-surplus-fds", "10,000 messages with 8 surplus descriptors", surplus_fds, HO_OPEN,
		HO_ONE, NULL, 0},
	{"M6-closing", "2,000 connections with a message each that ends it", closing_messages,
		HO_LEAVE, HO_ONE, NULL, 0},
	{"M6-vring-num", "100,000 SET_VRING_NUM", set_nums, HO_OPEN, HO_ONE, NULL, 0},
	{"M6-mem-table", "2,000 memory tables while rings run", set_tables, HO_OPEN, 0, NULL, 0},
	{"M6-log", "2,000 dirty logs", set_logs, HO_OPEN, HO_ONE, NULL, 0},
	{"M6-fds", "10,000 kick, call and error descriptors", set_fds, HO_OPEN, HO_ONE, NULL, 0},
	{"flood-rarp", "5,000 SEND_RARP", send_rarps, HO_OPEN, HO_ONE, NULL, 0},
	{"F1-tiny-buffers", "receive buffers of one byte, host floods", tiny_buffers, HO_LEAVE, 0,
		NULL, 0},
	{"F1-tiny-chains", "frames of one byte per descriptor", tiny_chains, HO_LEAVE, 0, NULL, 0},
	{"F3-rejected", "1,280,000 frames that are rejected", rejected_frames, HO_OPEN, 0, NULL, 0},
	{"flood-kicks", "kicks without work, without pause", kick_storm, HO_OPEN, 0, NULL, 0},
	{0},
};
