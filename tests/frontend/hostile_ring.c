/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-hostile: rings started, stopped, moved and changed when nobody would expect it. */
#include "hostile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* M12: after the answer nobody looks at the ring; with the base it goes on. */
static int
stop_and_start(struct ho_run *run)
{
	struct fe_ring *rings[] = {&run->net->rx[0].ring, &run->net->tx[0].ring};
	uint32_t rounds = ho_rounds(run, 100);
	uint8_t *saved = malloc(2 * 3 * 16384);
	int rc = saved == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; i < rounds && rc == 0; i++) {
		struct ho_traffic *t = ho_traffic_start(run);
		uint8_t *at = saved;

		usleep(fe_rng_range(&run->rng, 500, 3000));
		ho_traffic_hold(t);
		rc = fe_net_stop(run->net);
		/* The areas of a ring of 256 entries are below 16 KiB each. */
		for (int r = 0; r < 2; r++) {
			const uint64_t gpa[] = {
				rings[r]->desc_gpa, rings[r]->driver_gpa, rings[r]->device_gpa};
			const size_t bytes[] = {4096, rings[r]->cfg.packed ? 4 : 518,
				rings[r]->cfg.packed ? 4 : 2054};

			for (int a = 0; a < 3; a++, at += 16384) {
				memcpy(at, fe_mem_ptr(&run->net->mem, gpa[a]), bytes[a]);
				memset(fe_mem_ptr(&run->net->mem, gpa[a]), 0xff, bytes[a]);
			}
		}
		eventfd_write(rings[1]->kick_fd, 1);
		usleep(1000);
		at = saved;
		for (int r = 0; r < 2; r++) {
			const uint64_t gpa[] = {
				rings[r]->desc_gpa, rings[r]->driver_gpa, rings[r]->device_gpa};
			const size_t bytes[] = {4096, rings[r]->cfg.packed ? 4 : 518,
				rings[r]->cfg.packed ? 4 : 2054};

			for (int a = 0; a < 3; a++, at += 16384) {
				uint8_t *p = fe_mem_ptr(&run->net->mem, gpa[a]);

				for (size_t k = 0; k < bytes[a] && rc == 0; k++)
					if (p[k] != 0xff)
						rc = fe_fault(&run->fault,
							"ring %d area %d written after it was "
							"stopped",
							r, a);
				memcpy(p, at, bytes[a]);
			}
		}
		if (rc == 0)
			rc = fe_net_start(run->net);
		ho_traffic_go(t);
		usleep(500);
		if (rc != 0) {
			ho_traffic_abandon(t);
			rc = ho_must(run, "stop and start", rc);
		} else {
			rc = ho_traffic_stop(t);
		}
		if (rc != 0)
			ho_note(run, "round", i);
	}
	free(saved);
	return rc;
}

static int
enable_first(struct ho_run *run)
{
	struct fe_conn *c = &run->net->conn;

	for (int round = 0; round < 20; round++) {
		int rc = fe_net_stop(run->net);

		for (uint32_t i = 0; i < 2 && rc == 0; i++) {
			rc = fe_set_vring_enable(c, i, 0);
			if (rc == 0)
				rc = fe_set_vring_enable(c, i, 1);
		}
		if (rc == 0)
			rc = fe_ring_start(&run->net->rx[0].ring, c, 0);
		if (rc == 0)
			rc = fe_ring_start(&run->net->tx[0].ring, c, 1);
		if (rc != 0 || ho_ping(run) != 0)
			return ho_must(run, "ENABLE before KICK", rc != 0 ? rc : -EPROTO);
	}
	return 0;
}

/* M9: the device is taken back to its beginning, on the same connection. */
static int
reset_owner(struct ho_run *run)
{
	for (int round = 0; round < 10; round++) {
		struct fe_net *n = run->net;
		int rc = fe_net_stop(n);

		if (rc == 0)
			rc = fe_reset_owner(&n->conn);
		if (rc == 0)
			rc = fe_set_owner(&n->conn);
		if (rc == 0)
			rc = fe_set_features(&n->conn, n->features);
		if (rc == 0)
			rc = fe_mem_announce(&n->mem, &n->conn);
		if (rc == 0)
			rc = fe_net_start(n);
		if (rc != 0)
			return ho_must(run, "RESET_OWNER and what follows", rc);
		if (ho_ping(run) != 0)
			return -EPROTO;
	}
	return 0;
}

/* RESET_OWNER while the rings run: they stop, the connection and the process go on. */
static int
reset_owner_running(struct ho_run *run)
{
	struct ho_traffic *t = ho_traffic_start(run);
	int rc;

	usleep(20000);
	rc = fe_reset_owner(&run->net->conn);
	usleep(20000);
	ho_traffic_abandon(t);
	return ho_must(run, "RESET_OWNER", rc);
}

/* A message under traffic, again and again; no frame may be lost by it. */
static int
under_traffic(struct ho_run *run, uint32_t rounds, uint32_t pause_us,
	int (*send)(struct ho_run *run, struct ho_traffic *t, uint32_t round))
{
	struct ho_traffic *t = ho_traffic_start(run);
	int rc = 0;

	for (uint32_t i = 0; i < rounds && rc == 0; i++) {
		rc = send(run, t, i);
		if (pause_us > 0)
			usleep(pause_us);
	}
	if (rc != 0) {
		ho_traffic_abandon(t);
		return ho_must(run, "message under traffic", rc);
	}
	/* Some must have passed, or nothing was tested. */
	for (int i = 0; i < 200 && ho_traffic_count(t) < 1000; i++)
		usleep(10000);
	if (ho_traffic_count(t) < 1000)
		rc = fe_fault(&run->fault, "only %llu frames passed in 2 s",
			(unsigned long long)ho_traffic_count(t));
	if (rc != 0)
		ho_traffic_abandon(t);
	return rc != 0 ? rc : ho_traffic_stop(t);
}

static int
toggle_log(struct ho_run *run, struct ho_traffic *t, uint32_t round)
{
	(void)t;
	return fe_set_features(
		&run->net->conn, run->net->features ^ (round % 2 == 0 ? FE_BIT(FE_F_LOG_ALL) : 0));
}

/* The log is a page; what of it lies behind the announced size stays as it was. */
static int
log_toggles(struct ho_run *run)
{
	int fd = memfd_create("fe-log", MFD_CLOEXEC), rc;
	uint8_t *page = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, 4096) == 0)
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return fe_fault(&run->fault, "test: memfd");
	rc = ho_must(run, "SET_LOG_BASE",
		fe_set_log_base(&run->net->conn, &(struct fe_log_msg){64, 0}, fd));
	if (rc == 0)
		rc = under_traffic(run, ho_rounds(run, 400), 500, toggle_log);
	for (int i = 64; i < 4096 && rc == 0; i++)
		if (page[i] != 0)
			rc = fe_fault(&run->fault, "byte %d of the log, which ends at 64", i);
	munmap(page, 4096);
	close(fd);
	return rc;
}

static int
replace_kick(struct ho_run *run, struct ho_traffic *t, uint32_t round)
{
	struct fe_ring *r = round % 2 ? &run->net->tx[0].ring : &run->net->rx[0].ring;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), old = r->kick_fd;
	int rc = fe_set_vring_fd(&run->net->conn, FE_SET_VRING_KICK, r->index, fd);

	if (rc != 0) {
		close(fd);
		return rc;
	}
	/* Kicks that went to the old one in between are made good with one. */
	ho_traffic_hold(t);
	r->kick_fd = fd;
	fe_ring_kick_always(r);
	ho_traffic_go(t);
	close(old);
	return 0;
}

static int
kick_replaced(struct ho_run *run)
{
	return under_traffic(run, ho_rounds(run, 400), 300, replace_kick);
}

static int
replace_call(struct ho_run *run, struct ho_traffic *t, uint32_t round)
{
	struct fe_ring *r = round % 2 ? &run->net->tx[0].ring : &run->net->rx[0].ring;

	(void)t;
	return fe_set_vring_fd(&run->net->conn, round % 3 ? FE_SET_VRING_CALL : FE_SET_VRING_ERR,
		r->index, round % 5 ? r->call_fd : -1);
}

static int
call_replaced(struct ho_run *run)
{
	return under_traffic(run, ho_rounds(run, 1000), 100, replace_call);
}

/* A receiveq that is off takes nothing; a transmitq that is off is emptied: frames are lost. */
static int
enable_storm(struct ho_run *run)
{
	struct ho_traffic *t = ho_traffic_start(run);
	uint32_t rounds = ho_rounds(run, 10000);
	uint64_t start = fe_now_us();
	int rc = 0;

	for (uint32_t i = 0; i < rounds && rc == 0; i++) {
		rc = fe_set_vring_enable(&run->net->conn, i / 2 % 2, i % 2);
		while (fe_now_us() < start + i * 100ULL)
			;
	}
	ho_traffic_abandon(t);
	for (uint32_t i = 0; i < 2 && rc == 0; i++)
		rc = fe_set_vring_enable(&run->net->conn, i, 1);
	return ho_must(run, "ENABLE", rc);
}

static int
enable_again(struct ho_run *run, struct ho_traffic *t, uint32_t round)
{
	(void)t;
	return fe_set_vring_enable(&run->net->conn, round % 2, 1);
}

static int
enabled_again(struct ho_run *run)
{
	return under_traffic(run, ho_rounds(run, 2000), 0, enable_again);
}

static int
toggle_features(struct ho_run *run, struct ho_traffic *t, uint32_t round)
{
	/* Header and layout stay: those the guest cannot change under way. */
	const uint64_t some = FE_BIT(VIRTIO_NET_F_CSUM) | FE_BIT(VIRTIO_NET_F_HOST_TSO4);

	int rc = fe_set_features(&run->net->conn,
		run->net->features | (round % 2 == 0 ? run->net->offered & some : 0));

	(void)t;
	/* A device that runs may refuse; then nothing has changed. */
	return rc == -EREMOTEIO ? 0 : rc;
}

static int
feature_toggles(struct ho_run *run)
{
	return under_traffic(run, ho_rounds(run, 400), 300, toggle_features);
}

/* Every ring setting is given again while the rings run: same values, so nothing changes. */
static int
set_again(struct ho_run *run, struct ho_traffic *t, uint32_t round)
{
	struct fe_ring *r = round % 2 ? &run->net->tx[0].ring : &run->net->rx[0].ring;
	const struct fe_vring_addr a = {
		.index = r->index,
		.desc = fe_mem_uva(r->mem, r->desc_gpa),
		.avail = fe_mem_uva(r->mem, r->driver_gpa),
		.used = fe_mem_uva(r->mem, r->device_gpa),
	};

	(void)t;
	return round % 4 < 2 ? fe_set_vring_num(&run->net->conn, r->index, r->cfg.size)
			     : fe_set_vring_addr(&run->net->conn, &a);
}

static int
settings_again(struct ho_run *run)
{
	return under_traffic(run, ho_rounds(run, 400), 300, set_again);
}

/* Size, base and features that do not fit the rings that run. */
static int
num_while_running(struct ho_run *run)
{
	static const uint32_t sizes[] = {1, 2, 128, 512, 32768};

	for (size_t i = 0; i < FE_ARRAY_SIZE(sizes); i++) {
		struct ho_traffic *t = ho_traffic_start(run);
		int rc;

		usleep(5000);
		rc = fe_set_vring_num(&run->net->conn, (uint32_t)(i % 2), sizes[i]);
		usleep(20000);
		ho_traffic_abandon(t);
		if (rc != 0 && rc != -EREMOTEIO && rc != -ECONNRESET)
			return ho_must(run, "SET_VRING_NUM", rc);
		if (ho_reopen(run) != 0)
			return -EPROTO;
	}
	return 0;
}

static int
other_layout(struct ho_run *run)
{
	struct ho_traffic *t = ho_traffic_start(run);
	int rc;

	usleep(5000);
	rc = fe_set_features(&run->net->conn, run->net->features ^ FE_BIT(VIRTIO_F_RING_PACKED));
	usleep(50000);
	ho_traffic_abandon(t);
	return rc == -EREMOTEIO ? 0 : ho_must(run, "SET_FEATURES", rc);
}

static int
bad_base(struct ho_run *run)
{
	static const uint32_t bases[] = {
		256, 257, 0x8100, 0x7fff, 0xffff, 0x10000, 0x81008100, 0x7fff7fff, UINT32_MAX};

	for (size_t i = 0; i < FE_ARRAY_SIZE(bases); i++) {
		struct fe_ring *r = &run->net->tx[0].ring;
		int rc = fe_net_stop(run->net);

		if (rc == 0)
			rc = fe_set_vring_base(&run->net->conn, 1, bases[i]);
		if (rc == 0)
			rc = fe_set_vring_fd(&run->net->conn, FE_SET_VRING_KICK, 1, r->kick_fd);
		if (rc != 0 && rc != -EREMOTEIO && rc != -ECONNRESET)
			return ho_must(run, "SET_VRING_BASE", rc);
		fe_ring_kick_always(r);
		usleep(10000);
		if (ho_reopen(run) != 0)
			return -EPROTO;
	}
	return 0;
}

static int
base_of_unstarted(struct ho_run *run)
{
	uint32_t first = 0, second = 0;
	int rc = fe_net_stop(run->net);

	if (rc == 0)
		rc = fe_get_vring_base(&run->net->conn, 1, &first);
	if (rc == 0)
		rc = fe_get_vring_base(&run->net->conn, 1, &second);
	if (rc != 0)
		return ho_must(run, "GET_VRING_BASE of a stopped ring", rc);
	if ((uint16_t)first != run->net->tx[0].ring.base || first != second)
		return fe_fault(&run->fault, "base 0x%x, then 0x%x, 0x%x",
			run->net->tx[0].ring.base, first, second);
	return ho_must(run, "start", fe_net_start(run->net));
}

/* A connection that asks for the base of a ring it has never spoken of. */
static int
base_of_unknown(struct ho_run *run)
{
	struct fe_conn *c = &run->net->conn;
	uint32_t base = 1;
	int rc;

	fe_disconnect(c);
	rc = fe_connect(c, run->opts->second.net.path, 2000);
	if (rc == 0)
		rc = fe_get_vring_base(c, 0, &base);
	if (rc != 0 && rc != -ECONNRESET)
		return ho_must(run, "GET_VRING_BASE", rc);
	return 0;
}

const struct ho_case ho_ring_cases[] = {
	{"M12-stop-and-start", "GET_VRING_BASE under traffic, ring overwritten, started again",
		stop_and_start, HO_OPEN, 0, NULL, 0},
	{"M9-enable-first", "ENABLE before KICK", enable_first, HO_OPEN, 0, NULL, 0},
	{"M9-reset-owner", "RESET_OWNER, then everything anew", reset_owner, HO_OPEN, 0, NULL, 0},
	{"M9-reset-owner-running", "RESET_OWNER while rings run", reset_owner_running, HO_LEAVE, 0,
		NULL, 0},
	{"M9-log-toggles", "LOG_ALL toggled under traffic, log shorter than memory", log_toggles,
		HO_OPEN, 0, NULL, 0},
	{"M9-kick-replaced", "kick descriptors replaced under traffic", kick_replaced, HO_OPEN, 0,
		NULL, 0},
	{"ring-call-replaced", "call and error descriptors replaced under traffic", call_replaced,
		HO_OPEN, 0, NULL, 0},
	{"ring-enable-storm", "off and on at 10 kHz under traffic", enable_storm, HO_LEAVE, 0, NULL,
		0},
	{"ring-enabled-again", "ENABLE of what is enabled, as fast as can be", enabled_again,
		HO_OPEN, 0, NULL, 0},
	{"ring-feature-toggles", "offload features toggled under traffic", feature_toggles, HO_OPEN,
		0, NULL, 0},
	{"ring-settings-again", "size and addresses given again under traffic", settings_again,
		HO_OPEN, 0, NULL, 0},
	{"ring-num-running", "another size while the ring runs", num_while_running, HO_EITHER, 0,
		NULL, 0},
	{"ring-other-layout", "the other ring layout while rings run", other_layout, HO_LEAVE, 0,
		NULL, 0},
	{"ring-bad-base", "SET_VRING_BASE outside of the ring", bad_base, HO_EITHER, 0, NULL, 0},
	{"ring-base-stopped", "GET_VRING_BASE of a stopped ring", base_of_unstarted, HO_OPEN, 0,
		NULL, 0},
	{"ring-base-unknown", "GET_VRING_BASE before all else", base_of_unknown, HO_LEAVE, HO_ONE,
		NULL, 0},
	{0},
};
