/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "gate_rig.h"
#include "gate_socket.h"
#include "log.h"

/* More than the messages of a test take. */
#define ROUNDS 60

static void
note(struct gate_rig *rig, char what)
{
	if (rig->n_trace < sizeof(rig->trace) - 1)
		rig->trace[rig->n_trace++] = what;
}

/* ---- the device --------------------------------------------------------------- */

static void
on_before(void *ctx, const struct vhp_vu_msg *msg)
{
	CHECK(vhp_request_info(msg->header.request)->changes);
	note(ctx, 'b');
}

static void
on_after(void *ctx, struct vhp_vu_msg *msg, struct vhp_vu_msg *answer, bool ok)
{
	struct gate_rig *rig = ctx;

	CHECK(vhp_gate_check(msg, MESSAGES_RINGS) == NULL);
	CHECK(answer->header.request == msg->header.request);
	if (ok && msg->header.request == VU_SET_VRING_KICK && msg->n_fds == 1) {
		if (rig->taken_fd >= 0)
			close(rig->taken_fd);
		rig->taken_fd = msg->fds[0];
		msg->fds[0] = -1;
	}
	note(rig, ok ? 'a' : 'f');
}

static void
on_connected(void *ctx)
{
	note(ctx, 'c');
}

static void
on_disconnected(void *ctx)
{
	note(ctx, 'd');
}

static const struct vhp_gate_ops gate_ops = {
	.before = on_before,
	.after = on_after,
	.connected = on_connected,
	.disconnected = on_disconnected,
};

/* ---- the back end --------------------------------------------------------------- */

static void
hang_up(struct gate_rig *rig)
{
	if (rig->backend_fd < 0)
		return;
	vhp_loop_unwatch(rig->loop, rig->backend_fd);
	close(rig->backend_fd);
	rig->backend_fd = -1;
	vhp_vu_reader_reset(&rig->reader);
}

/* Answer as DPDK does: to what has an answer, and to what asks for one. */
static void
answer(struct gate_rig *rig)
{
	const struct vhp_vu_msg *msg = &rig->reader.msg;
	struct vhp_vu_msg out = {.header = msg->header};

	out.header.flags = VU_VERSION | VU_REPLY;
	if (vhp_request_info(msg->header.request)->replies) {
		out.header.size = sizeof(out.u64);
		out.u64 = 0x123456789abcdef0;
	} else if (msg->header.flags & VU_NEED_REPLY) {
		out.header.size = sizeof(out.u64);
		out.u64 = rig->mode == BACKEND_REFUSES;
	} else {
		return;
	}
	/* The gate may have hung up meanwhile. */
	vhp_vu_send(rig->backend_fd, &out);
}

static void
backend_ready(void *ctx, uint32_t events)
{
	struct gate_rig *rig = ctx;
	const struct vhp_vu_msg *msg = &rig->reader.msg;
	const char *why;
	int ret = vhp_vu_read(rig->backend_fd, &rig->reader, &why);

	(void)events;
	if (ret == 0)
		return;
	if (ret < 0 || rig->mode == BACKEND_CLOSES) {
		hang_up(rig);
		return;
	}
	/* One message is one send, its descriptors with it: DPDK's reader relies on that. */
	CHECK(vhp_request_info(msg->header.request)->name != NULL);
	if (rig->n_relayed < RTE_DIM(rig->relayed)) {
		rig->relayed[rig->n_relayed] = *msg;
		rig->n_relayed_fds[rig->n_relayed++] = msg->n_fds;
	}
	if (rig->mode != BACKEND_SILENT)
		answer(rig);
	vhp_vu_reader_reset(&rig->reader);
}

static void
backend_accept(void *ctx, uint32_t events)
{
	struct gate_rig *rig = ctx;
	int fd = accept4(rig->listen_fd, NULL, NULL, SOCK_CLOEXEC);

	(void)events;
	CHECK(fd >= 0);
	hang_up(rig);
	rig->backend_fd = fd;
	CHECK(vhp_loop_watch(rig->loop, fd, EPOLLIN, backend_ready, rig) == 0);
}

/* ---- all together --------------------------------------------------------------- */

static void
idle_ready(void *ctx, uint32_t events)
{
	struct gate_rig *rig = ctx;

	(void)events;
	if (--rig->rounds == 0)
		vhp_loop_stop(rig->loop);
}

static struct vhp_gate_conf
make_conf(const struct gate_rig *rig, const char *path, bool client)
{
	return (struct vhp_gate_conf){
		.name = "net_vhost0",
		.path = path,
		.backend_path = rig->backend_path,
		.client = client,
		.n_rings = MESSAGES_RINGS,
		.n_queues = MESSAGES_RINGS / 2,
		.socket_owner = (uid_t)-1,
		.socket_group = (gid_t)-1,
	};
}

void
gate_rig_init(struct gate_rig *rig, bool client)
{
	struct vhp_gate_conf conf;
	struct stat st;

	memset(rig, 0, sizeof(*rig));
	/* What the gate says of each message is right, and much. */
	rte_log_set_level(vhp_logtype, RTE_LOG_ERR);
	rig->backend_fd = rig->taken_fd = -1;
	strcpy(rig->dir, "/tmp/vhp-gate-XXXXXX");
	CHECK(mkdtemp(rig->dir) != NULL);
	snprintf(rig->path, sizeof(rig->path), "%s/public", rig->dir);
	snprintf(rig->backend_path, sizeof(rig->backend_path), "%s/private", rig->dir);
	rig->loop = vhp_loop_create();
	CHECK(rig->loop != NULL);
	rig->idle_fd = eventfd(1, EFD_CLOEXEC);
	CHECK(vhp_loop_watch(rig->loop, rig->idle_fd, EPOLLIN, idle_ready, rig) == 0);
	conf = make_conf(rig, rig->backend_path, false);
	rig->listen_fd = vhp_socket_listen(&conf, &st);
	CHECK(rig->listen_fd >= 0);
	CHECK(vhp_loop_watch(rig->loop, rig->listen_fd, EPOLLIN, backend_accept, rig) == 0);
	conf = make_conf(rig, rig->path, client);
	CHECK(vhp_gate_open(rig->loop, &conf, &gate_ops, rig, &rig->gate) == 0);
}

void
gate_rig_fini(struct gate_rig *rig)
{
	vhp_gate_close(rig->gate);
	hang_up(rig);
	close(rig->listen_fd);
	close(rig->idle_fd);
	if (rig->taken_fd >= 0)
		close(rig->taken_fd);
	vhp_loop_destroy(rig->loop);
	unlink(rig->path);
	unlink(rig->backend_path);
	CHECK(rmdir(rig->dir) == 0);
}

void
gate_rig_run(struct gate_rig *rig)
{
	gate_rig_rounds(rig, ROUNDS);
}

void
gate_rig_rounds(struct gate_rig *rig, unsigned int rounds)
{
	rig->rounds = rounds;
	CHECK(vhp_loop_run(rig->loop) == 0);
}

int
gate_rig_connect(struct gate_rig *rig)
{
	int fd = vhp_socket_connect(rig->path);

	CHECK(fd >= 0);
	gate_rig_run(rig);
	return fd;
}

void
gate_rig_clear(struct gate_rig *rig)
{
	memset(rig->trace, 0, sizeof(rig->trace));
	rig->n_trace = 0;
	rig->n_relayed = 0;
}
