/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-hostile: memory tables, and memory that goes away. */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1ULL << 20)

struct table {
	uint32_t n, padding;
	struct fe_region_msg r[9];
};

static int
table_refused(
	struct ho_run *run, const struct table *t, uint32_t regions, const int *fds, uint32_t nfds)
{
	return ho_refused_twice(
		run, FE_SET_MEM_TABLE, t, (uint32_t)(8 + regions * sizeof(t->r[0])), fds, nfds);
}

static void
two_regions(struct table *t)
{
	memset(t, 0, sizeof(*t));
	t->n = 2;
	t->r[0] = (struct fe_region_msg){MIB, MIB, 64 * MIB, 0};
	t->r[1] = (struct fe_region_msg){4 * MIB, MIB, 128 * MIB, 0};
}

/* M4 */
static int
bad_tables(struct ho_run *run)
{
	static const struct {
		uint32_t which;
		struct fe_region_msg r;
	} bad[] = {
		{1, {MIB, MIB, 128 * MIB, 0}},               /* same place */
		{1, {2 * MIB - 4096, MIB, 128 * MIB, 0}},    /* by a page */
		{1, {2 * MIB - 1, 1, 128 * MIB, 0}},         /* by a byte */
		{0, {0, 16 * MIB, 64 * MIB, 0}},             /* around the other */
		{1, {4 * MIB, MIB, 65 * MIB - 4096, 0}},     /* in user addresses */
		{1, {UINT64_MAX - 4095, MIB, 128 * MIB, 0}}, /* wraps */
		{1, {4 * MIB, MIB, UINT64_MAX - 4095, 0}},
		{1, {4 * MIB, MIB, 128 * MIB, UINT64_MAX - 4095}},
		{1, {4 * MIB, 1ULL << 63, 128 * MIB, 0}},
		{1, {4 * MIB, UINT64_MAX, 128 * MIB, 0}},
		{1, {4 * MIB, 0, 128 * MIB, 0}},
		{1, {4 * MIB, 64 * MIB, 128 * MIB, 0}}, /* larger than its file */
		{1, {4 * MIB, MIB, 128 * MIB, 8 * MIB - 4096}},
	};
	struct table t;
	int rc = 0, fds[2];

	fds[0] = fds[1] = memfd_create("fe-bad", MFD_CLOEXEC);
	if (fds[0] < 0 || ftruncate(fds[0], 8 * MIB) != 0)
		return fe_fault(&run->fault, "test: memfd");
	for (size_t i = 0; i < FE_ARRAY_SIZE(bad) && rc == 0; i++) {
		two_regions(&t);
		t.r[bad[i].which] = bad[i].r;
		rc = table_refused(run, &t, 2, fds, 2);
		if (rc != 0)
			ho_note(run, "table", (uint32_t)i);
	}
	close(fds[0]);
	return rc;
}

static int
bad_counts(struct ho_run *run)
{
	static const struct {
		uint32_t n, regions, nfds;
	} bad[] = {{0, 0, 0}, {2, 2, 0}, {2, 2, 1}, {1, 1, 2}, {2, 1, 2}, {1, 2, 1}, {8, 2, 8},
		{9, 9, 9}, {9, 8, 8}, {0, 2, 2}, {0x10002, 2, 2}, {UINT32_MAX, 2, 2}};
	struct table t;
	int rc = 0, fds[9];

	for (size_t i = 0; i < FE_ARRAY_SIZE(bad) && rc == 0; i++) {
		two_regions(&t);
		t.n = bad[i].n;
		for (int k = 0; k < 9; k++)
			fds[k] = run->net->mem.r[0].fd;
		rc = table_refused(run, &t, bad[i].regions, fds, bad[i].nfds);
	}
	return rc;
}

static int
sealed(int seals)
{
	int fd = memfd_create("fe-sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, 8 * MIB) != 0 || fcntl(fd, F_ADD_SEALS, seals) != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
read_only(void)
{
	char path[64];
	int fd = sealed(0), ro;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	close(fd);
	return ro;
}

/* M2: files that cannot be memory, while the rings of the old table run. */
static int
bad_files(struct ho_run *run)
{
	int pipes[2], rc = 0;
	struct table t;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return fe_fault(&run->fault, "test: pipe");
	const int files[] = {pipes[0], pipes[1], eventfd(0, EFD_CLOEXEC),
		open("/dev/zero", O_RDWR | O_CLOEXEC), open("/dev/null", O_RDWR | O_CLOEXEC),
		open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), open("/tmp", O_PATH | O_CLOEXEC),
		read_only(), sealed(F_SEAL_WRITE), sealed(F_SEAL_FUTURE_WRITE),
		memfd_create("fe-empty", MFD_CLOEXEC), open("/proc/self/mem", O_RDWR | O_CLOEXEC),
		open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDWR | O_CLOEXEC)};

	for (size_t i = 0; i < FE_ARRAY_SIZE(files) && rc == 0; i++) {
		const int fds[2] = {run->net->mem.r[0].fd, files[i]};

		/* Not every system has each of them. */
		if (files[i] < 0)
			continue;
		two_regions(&t);
		/* The file in /sys is one page long. */
		t.r[1].bytes = 4096;
		rc = table_refused(run, &t, 2, fds, 2);
		if (rc != 0)
			ho_note(run, "file", (uint32_t)i);
	}
	for (size_t i = 0; i < FE_ARRAY_SIZE(files); i++)
		if (files[i] >= 0)
			close(files[i]);
	return rc;
}

/* The same layout, another file: frames written there must be the ones that go out. */
static int
another_file(struct ho_run *run)
{
	struct fe_mem *m = &run->net->mem;

	for (int round = 0; round < 10; round++) {
		if (fe_net_stop(run->net) != 0)
			return ho_must(run, "GET_VRING_BASE", -EPROTO);
		for (uint32_t i = 0; i < m->n; i++) {
			struct fe_region *r = &m->r[i];
			uint64_t whole = r->msg.mmap_offset + r->msg.bytes;
			int fd = memfd_create("fe-another", MFD_CLOEXEC);

			if (fd < 0 || ftruncate(fd, (off_t)whole) != 0 ||
				pwrite(fd, r->ptr, r->msg.bytes, (off_t)r->msg.mmap_offset) !=
					(ssize_t)r->msg.bytes)
				return fe_fault(&run->fault, "test: memfd");
			/* What is left behind is not to be used any more. */
			memset(r->ptr, 0xff, r->msg.bytes);
			if (mmap(r->ptr, r->msg.bytes, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_FIXED, fd,
				    (off_t)r->msg.mmap_offset) == MAP_FAILED)
				return fe_fault(&run->fault, "test: mmap");
			close(r->fd);
			r->fd = fd;
		}
		if (ho_must(run, "SET_MEM_TABLE", fe_mem_announce(m, &run->net->conn)) != 0 ||
			ho_must(run, "start", fe_net_start(run->net)) != 0 || ho_ping(run) != 0)
			return -EPROTO;
	}
	return 0;
}

/* A frame in memory that was added a moment ago. */
static int
send_from(struct ho_run *run, uint32_t region)
{
	struct fe_transmitq *t = &run->net->tx[0];
	uint64_t saved = t->buf_gpa[t->free[t->nfree - 1]];
	uint32_t slot = t->free[t->nfree - 1];
	int rc;

	t->buf_gpa[slot] = run->net->mem.r[region].msg.gpa + 64;
	rc = ho_ping_tx(run);
	t->buf_gpa[slot] = saved;
	return rc;
}

/* M10 */
static int
hot_plug(struct ho_run *run)
{
	struct fe_mem *m = &run->net->mem;
	uint32_t keep = m->n;

	for (int round = 0; round < 12; round++) {
		int i = fe_mem_add(m, MIB, round % 2 ? FE_MEM_ADJACENT : FE_MEM_GAPS);

		if (i < 0)
			return fe_fault(&run->fault, "test: no more regions: %d", i);
		if (ho_must(run, "region added", fe_mem_announce(m, &run->net->conn)) != 0 ||
			send_from(run, (uint32_t)i) != 0 || ho_ping(run) != 0)
			return -EPROTO;
		fe_mem_remove(m, (uint32_t)i);
		if (ho_must(run, "region removed", fe_mem_announce(m, &run->net->conn)) != 0 ||
			ho_ping(run) != 0)
			return -EPROTO;
		/* Slots of the library are not reused; the message has 8. */
		if (m->n == FE_REGIONS_MAX)
			break;
	}
	return m->n > keep ? 0 : fe_fault(&run->fault, "test: nothing was added");
}

static int
plug_under_traffic(struct ho_run *run)
{
	struct ho_traffic *t = ho_traffic_start(run);
	struct fe_mem *m = &run->net->mem;
	uint64_t seen = 0;
	int rc = 0;

	for (int round = 0; round < 10 && rc == 0; round++) {
		int i = fe_mem_add(m, MIB, FE_MEM_GAPS);

		rc = i < 0 ? i : fe_mem_announce(m, &run->net->conn);
		usleep(3000);
		if (rc == 0) {
			fe_mem_remove(m, (uint32_t)i);
			rc = fe_mem_announce(m, &run->net->conn);
		}
		usleep(3000);
	}
	seen = ho_traffic_count(t);
	if (ho_traffic_stop(t) != 0)
		return -EPROTO;
	if (seen == 0)
		return fe_fault(&run->fault, "test: no traffic");
	return ho_must(run, "SET_MEM_TABLE", rc);
}

/* M10: the region that holds posted receive buffers, and perhaps a ring, goes. */
static int
remove_in_use(struct ho_run *run)
{
	const uint32_t victim = *(const uint32_t *)run->c->arg;
	struct ho_traffic *t = ho_traffic_start(run);
	struct fe_mem *m = &run->net->mem;
	int fd = m->r[victim].fd, rc;

	usleep(20000);
	ho_traffic_hold(t);
	fe_net_post(run->net, 0, FE_ALL, 2048, 2048, NULL);
	fe_ring_kick(&run->net->rx[0].ring);
	m->r[victim].fd = -1;
	rc = fe_mem_announce(m, &run->net->conn);
	m->r[victim].fd = fd;
	ho_traffic_go(t);
	usleep(100000);
	ho_traffic_abandon(t);
	/* Either is right: taken, or refused. */
	return rc == -EREMOTEIO ? 0 : ho_must(run, "SET_MEM_TABLE", rc);
}

/* M13 */
static int
truncate_memory(struct ho_run *run)
{
	const uint32_t victim = *(const uint32_t *)run->c->arg;
	struct ho_traffic *t = ho_traffic_start(run);
	struct fe_region *r = &run->net->mem.r[victim];
	int rc = 0;

	usleep(20000);
	/* Our own view must outlive the cut: a private copy takes its place. */
	ho_traffic_hold(t);
	if (mmap(r->ptr, r->msg.bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ||
		ftruncate(r->fd, 0) != 0)
		rc = fe_fault(&run->fault, "test: cannot cut");
	ho_traffic_go(t);
	ho_traffic_abandon(t);
	for (int i = 0; i < 10 && rc == 0; i++) {
		eventfd_write(run->net->tx[0].ring.kick_fd, 1);
		eventfd_write(run->net->rx[0].ring.kick_fd, 1);
		fe_host_send(run->host, NULL, run->buf, 64);
		usleep(5000);
	}
	return rc;
}

static int
punch_holes(struct ho_run *run)
{
	const uint32_t victim = *(const uint32_t *)run->c->arg;
	struct ho_traffic *t = ho_traffic_start(run);
	const struct fe_region *r = &run->net->mem.r[victim];

	usleep(20000);
	ho_traffic_hold(t);
	if (fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		    (off_t)(r->msg.mmap_offset + r->msg.bytes)) != 0)
		fe_fault(&run->fault, "test: cannot punch");
	ho_traffic_go(t);
	usleep(100000);
	ho_traffic_abandon(t);
	return run->fault.text[0] == '\0' ? 0 : -EPROTO;
}

static const uint32_t region[] = {0, 1};

const struct ho_case ho_mem_cases[] = {
	{"M2-bad-files", "tables with files that cannot be memory, rings running", bad_files,
		HO_OPEN, 0, NULL, 0},
	{"M4-bad-tables", "regions that overlap, wrap, are empty or too large", bad_tables, HO_OPEN,
		0, NULL, 0},
	{"M4-bad-counts", "numbers of regions and descriptors that differ", bad_counts, HO_OPEN,
		HO_ONE, NULL, 0},
	{"M2-another-file", "the same table with other files takes effect", another_file, HO_OPEN,
		0, NULL, 0},
	{"M10-hot-plug", "memory added is usable at once, and removed", hot_plug, HO_OPEN, 0, NULL,
		0},
	{"M10-under-traffic", "the same under traffic: no frame lost", plug_under_traffic, HO_OPEN,
		0, NULL, 0},
	{"M10-remove-used-0", "memory in use removed under traffic", remove_in_use, HO_LEAVE, 0,
		&region[0], 0},
	{"M10-remove-used-1", "the same, the other region", remove_in_use, HO_LEAVE, 0, &region[1],
		0},
	{"M13-truncate-0", "memory cut off under traffic", truncate_memory, HO_CLOSED, 0,
		&region[0], 0},
	{"M13-truncate-1", "the same, the other region", truncate_memory, HO_CLOSED, 0, &region[1],
		0},
	{"mem-holes-0", "memory turns to zeros under traffic", punch_holes, HO_LEAVE, 0, &region[0],
		0},
	{"mem-holes-1", "the same, the other region", punch_holes, HO_LEAVE, 0, &region[1], 0},
	{0},
};
