/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-hostile: what the rows are made with; see hostile.h. */
#include "hostile.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PING_BYTES 128

int
ho_must(struct ho_run *run, const char *what, int rc)
{
	if (rc == 0)
		return 0;
	if (fe_net_fault(run->net)[0] != '\0')
		return fe_fault(&run->fault, "%s: %s", what, fe_net_fault(run->net));
	return fe_fault(&run->fault, "%s: %s", what, strerror(-rc));
}

void
ho_note(struct ho_run *run, const char *what, uint32_t number)
{
	size_t len = strlen(run->fault.text);

	snprintf(run->fault.text + len, sizeof(run->fault.text) - len, " (%s %u)", what, number);
}

bool
ho_process_lives(const struct ho_run *run)
{
	struct ho_proc p;

	/* A process that is dead and not yet buried has no memory. */
	return kill(run->opts->second.pid, 0) == 0 && ho_proc_read(run->opts->second.pid, &p) == 0;
}

uint32_t
ho_rounds(const struct ho_run *run, uint32_t full)
{
	uint64_t n = (uint64_t)full * run->opts->scale / 100;

	return n == 0 ? 1 : (uint32_t)n;
}

bool
ho_is_closed(const struct ho_run *run)
{
	char byte;
	ssize_t n;

	if (run->net->conn.fd < 0)
		return true;
	n = recv(run->net->conn.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static uint64_t
deadline(const struct ho_run *run)
{
	return fe_now_us() + run->opts->second.used_ms * 1000ULL;
}

/* A frame is late: what of it the front end can see. */
static int
stuck(struct ho_run *run, uint32_t seq)
{
	const struct fe_ring *r = &run->net->tx[0].ring;
	struct pollfd p = {.fd = r->kick_fd, .events = POLLIN};
	bool kick_pending = poll(&p, 1, 0) > 0;

	return fe_fault(&run->fault,
		"frame %u did not reach the host: %u outstanding, %sused, back end %s, kick %s",
		seq, fe_ring_outstanding(r), fe_ring_pending(r) ? "" : "not ",
		fe_ring_kick_needed(&run->net->tx[0].ring) ? "waits for kicks" : "polls",
		kick_pending ? "not taken" : "taken");
}

int
ho_ping_tx(struct ho_run *run)
{
	struct fe_spec s = {.kind = FE_RAW, .len = PING_BYTES, .seq = run->seq++};
	struct virtio_net_hdr_v1 hdr;
	uint64_t end = deadline(run);
	uint32_t seq = 0;
	int len;

	fe_frame_build(&run->to_host, &s, run->buf, NULL);
	if (fe_net_reap(run->net, 0) < 0 ||
		fe_net_send(run->net, 0, NULL, run->buf, PING_BYTES, NULL) != 0)
		return fe_fault(&run->fault, "transmitq: %s", fe_net_fault(run->net));
	fe_ring_kick(&run->net->tx[0].ring);
	do {
		if (fe_now_us() > end)
			return stuck(run, s.seq);
		fe_host_wait(run->host, 1000);
		len = fe_host_recv(run->host, &hdr, run->buf, FE_BUF_MAX);
		/* Frames from before may still be on their way; never a later one. */
	} while (len < 0 || !fe_frame_seq(&run->to_host, run->buf, (size_t)len, &seq) ||
		 seq < s.seq);
	fe_frame_build(&run->to_host, &s, run->buf + 2048, NULL);
	if (len != PING_BYTES || memcmp(run->buf, run->buf + 2048, PING_BYTES) != 0)
		return fe_fault(&run->fault, "frame %u reached the host as %u with %d bytes", s.seq,
			seq, len);
	while (fe_net_reap(run->net, 0) == 0)
		if (fe_now_us() > end)
			return fe_fault(&run->fault, "transmit descriptor not used");
	return fe_net_fault(run->net)[0] == '\0'
		       ? 0
		       : fe_fault(&run->fault, "%s", fe_net_fault(run->net));
}

int
ho_ping_rx(struct ho_run *run)
{
	struct fe_spec s = {.kind = FE_RAW, .len = PING_BYTES, .seq = run->seq++};
	uint64_t end = deadline(run);
	struct fe_rxframe f;
	uint32_t seq = 0;
	int rc = 0;

	fe_frame_build(&run->to_guest, &s, run->buf, NULL);
	if (fe_host_send(run->host, NULL, run->buf, PING_BYTES) != 0)
		return fe_fault(&run->fault, "the host cannot send");
	do {
		if (rc == 0 && fe_now_us() > end)
			return fe_fault(&run->fault, "frame %u did not reach the guest", s.seq);
		if (fe_net_post(run->net, 0, FE_ALL, 2048, 2048, NULL) > 0)
			fe_ring_kick(&run->net->rx[0].ring);
		if (!fe_net_recv_pending(run->net, 0) && !fe_ring_arm(&run->net->rx[0].ring, 0))
			fe_ring_wait(&run->net->rx[0].ring, 1000);
		rc = fe_net_recv(run->net, 0, &f);
		if (rc < 0)
			return fe_fault(&run->fault, "%s", fe_net_fault(run->net));
	} while (rc == 0 || !fe_frame_seq(&run->to_guest, f.data, f.len, &seq) || seq < s.seq);
	fe_frame_build(&run->to_guest, &s, run->buf, NULL);
	if (f.len != PING_BYTES || memcmp(run->buf, f.data, PING_BYTES) != 0)
		return fe_fault(&run->fault, "frame %u reached the guest as %u with %u bytes",
			s.seq, seq, f.len);
	return 0;
}

int
ho_ping(struct ho_run *run)
{
	int rc = ho_ping_tx(run);

	return rc != 0 ? rc : ho_ping_rx(run);
}

/* Frames that waited for the guest before: while the queue is full, new ones are lost. */
static void
drain(struct ho_run *run)
{
	uint64_t end = fe_now_us() + 5000000, quiet = fe_now_us();
	struct fe_rxframe f;

	while (fe_now_us() < end && fe_now_us() - quiet < 20000) {
		if (fe_net_post(run->net, 0, FE_ALL, 2048, 2048, NULL) > 0)
			fe_ring_kick(&run->net->rx[0].ring);
		if (fe_net_recv(run->net, 0, &f) > 0)
			quiet = fe_now_us();
	}
}

int
ho_reopen(struct ho_run *run)
{
	struct fe_net_cfg cfg = run->opts->second.net;
	int rc;

	fe_net_close(run->net);
	cfg.features |= run->c->need;
	cfg.need_features = run->c->need;
	if (run->packed)
		cfg.need_features |= FE_BIT(VIRTIO_F_RING_PACKED);
	rc = fe_net_open(run->net, &cfg);
	if (rc == -ENOTSUP)
		return rc;
	if (rc == 0)
		rc = fe_net_start(run->net);
	if (rc != 0)
		return ho_must(run, "connecting anew", rc);
	if (run->c->end == HO_LEAVE)
		drain(run);
	fe_host_flush(run->host);
	return ho_ping(run);
}

int
ho_refused(struct ho_run *run, uint32_t request, uint32_t flags, const void *payload, uint32_t size,
	const int *fds, uint32_t nfds)
{
	struct fe_conn *c = &run->net->conn;
	struct fe_msg reply;
	int rc = fe_send(c, request, flags, payload, size, fds, nfds);

	if (rc != 0 && rc != -ECONNRESET)
		return fe_fault(&run->fault, "request %u of %u bytes: cannot be sent: %s", request,
			size, strerror(-rc));
	rc = fe_recv(c, &reply, c->timeout_ms);
	if (rc == -ECONNRESET)
		return ho_reopen(run);
	if (rc != 0)
		return fe_fault(
			&run->fault, "request %u of %u bytes: %s", request, size, strerror(-rc));
	fe_msg_close_fds(&reply);
	if (!(flags & FE_MSG_NEED_REPLY) || reply.hdr.request != request ||
		reply.hdr.size != sizeof(uint64_t) || reply.payload.u64 == 0)
		return fe_fault(&run->fault, "request %u of %u bytes, %u descriptors: accepted",
			request, size, nfds);
	return ho_ping(run);
}

int
ho_refused_twice(struct ho_run *run, uint32_t request, const void *payload, uint32_t size,
	const int *fds, uint32_t nfds)
{
	int rc = ho_refused(run, request, FE_MSG_NEED_REPLY, payload, size, fds, nfds);

	/* An accepted message without an answer is seen by the one that comes next. */
	return rc != 0 ? rc : ho_refused(run, request, 0, payload, size, fds, nfds);
}
