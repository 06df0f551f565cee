/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-hostile: connections that are not what they should be. */
#include "hostile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ask and never listen: the answers fill the socket. */
static int
never_reads(struct ho_run *run)
{
	const struct fe_msg_hdr h = {FE_GET_FEATURES, FE_MSG_VERSION, 0};
	int fd = run->net->conn.fd;
	uint64_t end = fe_now_us() + 10000000;

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	while (fe_now_us() < end) {
		ssize_t n = send(fd, &h, sizeof(h), MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			usleep(1000);
		else if (n < 0)
			return 0;
		else if (n != (ssize_t)sizeof(h))
			return fe_fault(&run->fault, "test: partial send");
	}
	return fe_fault(&run->fault, "still connected after 10 s");
}

/* Many messages in one piece: each is answered, in order. */
static int
merged(struct ho_run *run)
{
	struct fe_msg_hdr h[300];
	struct fe_msg reply;

	for (size_t i = 0; i < FE_ARRAY_SIZE(h); i++)
		h[i] = (struct fe_msg_hdr){
			i % 2 == 0 ? FE_GET_FEATURES : FE_GET_QUEUE_NUM, FE_MSG_VERSION, 0};
	if (fe_send_raw(&run->net->conn, h, sizeof(h), NULL, 0) != 0)
		return fe_fault(&run->fault, "test: cannot send");
	for (size_t i = 0; i < FE_ARRAY_SIZE(h); i++) {
		int rc = fe_recv(&run->net->conn, &reply, 2000);

		if (rc != 0 || reply.hdr.request != h[i].request)
			return fe_fault(&run->fault, "answer %zu: %s, to request %u", i,
				strerror(-rc), reply.hdr.request);
		if (i % 2 == 0 && reply.payload.u64 != run->net->offered)
			return fe_fault(&run->fault, "answer %zu is wrong", i);
	}
	return 0;
}

/* Two messages in one piece, of which the second is nonsense. */
static int
merged_bad(struct ho_run *run)
{
	const struct fe_msg_hdr h[2] = {
		{FE_GET_FEATURES, FE_MSG_VERSION, 0}, {10000, FE_MSG_VERSION, 0}};

	return ho_must(run, "send", fe_send_raw(&run->net->conn, h, sizeof(h), NULL, 0));
}

static int
half_closed(struct ho_run *run)
{
	shutdown(run->net->conn.fd, SHUT_WR);
	return ho_must(run, "half-closed", fe_wait_closed(&run->net->conn, 2000));
}

/* It will not read: the first answer ends the connection. */
static int
half_closed_read(struct ho_run *run)
{
	const struct fe_msg_hdr h = {FE_GET_FEATURES, FE_MSG_VERSION, 0};

	shutdown(run->net->conn.fd, SHUT_RD);
	fe_send_raw(&run->net->conn, &h, sizeof(h), NULL, 0);
	usleep(20000);
	return 0;
}

/* M11: others at the door while one is inside. */
static int
second_front_end(struct ho_run *run)
{
	uint32_t rounds = ho_rounds(run, 1000);

	for (uint32_t i = 0; i < rounds; i++) {
		struct fe_conn c;
		int rc = fe_connect(&c, run->opts->second.net.path, 1000);

		if (rc == 0)
			rc = fe_wait_closed(&c, 2000);
		fe_conn_close(&c);
		if (rc != 0)
			return ho_must(run, "a second front end is not turned away", rc);
	}
	return 0;
}

/* M11: a peer that connects and leaves at once, or after half a word. */
static int
knock_and_run(struct ho_run *run)
{
	uint32_t rounds = ho_rounds(run, 1000);
	struct ho_proc before;

	fe_net_close(run->net);
	usleep(50000);
	if (ho_proc_read(run->opts->second.pid, &before) != 0)
		return fe_fault(&run->fault, "the back end has died");
	for (uint32_t i = 0; i < rounds; i++) {
		struct fe_conn c;
		int rc = fe_connect(&c, run->opts->second.net.path, 1000);

		if (rc == 0 && i % 3 == 1)
			fe_send_raw(&c, "\1\0\0", 3, NULL, 0);
		fe_conn_close(&c);
		if (rc != 0)
			return ho_must(run, "connecting", rc);
	}
	usleep(200000);
	return ho_proc_flat(run->opts->second.pid, &before,
		&(struct ho_slack){.fds = 2, .maps = 8, .rss_kb = 8192}, &run->fault);
}

/* Both directions of the rings go on when nobody speaks for a while. */
static int
silence(struct ho_run *run)
{
	for (int i = 0; i < 15; i++) {
		usleep(100000);
		if (ho_ping(run) != 0)
			return -EPROTO;
	}
	return 0;
}

/* The connection is cut while a message is being carried out. */
static int
cut_in_message(struct ho_run *run)
{
	uint32_t rounds = ho_rounds(run, 100);

	for (uint32_t i = 0; i < rounds; i++) {
		struct fe_conn *c = &run->net->conn;

		c->ack = false;
		if (i % 2 == 0)
			fe_mem_announce(&run->net->mem, c);
		else
			fe_set_vring_enable(c, 1, 0);
		fe_spin_ns(fe_rng_range(&run->rng, 0, 300000));
		fe_disconnect(c);
		if (ho_reopen(run) != 0)
			return -EPROTO;
	}
	return 0;
}

/* Each message before the device has memory, right or wrong, on a connection of its own. */
static int
early(struct ho_run *run)
{
	static const struct {
		uint32_t request, size;
		uint64_t payload;
	} m[] = {{FE_SET_FEATURES, 8, UINT64_MAX}, {FE_SET_FEATURES, 8, 0},
		{FE_SET_PROTOCOL_FEATURES, 8, UINT64_MAX}, {FE_RESET_OWNER, 0, 0},
		{FE_SET_VRING_NUM, 8, 256ULL << 32}, {FE_SET_VRING_BASE, 8, 5ULL << 32},
		{FE_GET_VRING_BASE, 8, 0}, {FE_SET_VRING_ENABLE, 8, 1ULL << 32},
		{FE_SET_VRING_KICK, 8, FE_VRING_NOFD}, {FE_SET_VRING_CALL, 8, FE_VRING_NOFD},
		{FE_SET_VRING_ERR, 8, FE_VRING_NOFD}, {FE_SEND_RARP, 8, 0x123456789abcULL},
		{FE_NET_SET_MTU, 8, 9000}, {FE_SET_VRING_ADDR, 40, 0}};
	static const uint64_t zeros[5];

	for (size_t i = 0; i < FE_ARRAY_SIZE(m); i++)
		for (uint32_t flags = 0; flags <= FE_MSG_NEED_REPLY; flags += FE_MSG_NEED_REPLY) {
			const void *payload = m[i].size == 40 ? zeros : &m[i].payload;
			uint64_t features;
			int rc;

			fe_net_close(run->net);
			rc = fe_connect(&run->net->conn, run->opts->second.net.path, 2000);
			/* Before and after RESET_OWNER. */
			for (int again = 0; again < 2 && rc == 0; again++) {
				rc = fe_send(&run->net->conn, m[i].request, flags, payload,
					m[i].size, NULL, 0);
				if (rc == 0)
					rc = fe_send(&run->net->conn, FE_RESET_OWNER, 0, NULL, 0,
						NULL, 0);
			}
			/* Answered or hung up on; silence is wrong. */
			if (rc == 0)
				rc = fe_get_features(&run->net->conn, &features);
			if (rc != 0 && rc != -ECONNRESET && rc != -EBADMSG)
				return ho_must(run, "early message", rc);
			if (!ho_process_lives(run))
				return fe_fault(&run->fault, "died of request %u", m[i].request);
		}
	return 0;
}

const struct ho_case ho_conn_cases[] = {
	{"conn-early", "messages before there is memory", early, HO_LEAVE, HO_ONE, NULL, 0},
	{"conn-never-reads", "asks on and on and never reads an answer", never_reads, HO_CLOSED,
		HO_ONE, NULL, 0},
	{"conn-merged", "300 messages in one piece", merged, HO_OPEN, HO_ONE, NULL, 0},
	{"conn-merged-bad", "a good and a bad message in one piece", merged_bad, HO_CLOSED, HO_ONE,
		NULL, 0},
	{"conn-half-closed", "the front end will write no more", half_closed, HO_CLOSED, 0, NULL,
		0},
	{"conn-half-closed-read", "the front end will read no more", half_closed_read, HO_LEAVE, 0,
		NULL, 0},
	{"conn-silence", "no message for longer than one may take", silence, HO_OPEN, 0, NULL, 0},
	{"conn-cut", "cut while a message is being carried out", cut_in_message, HO_OPEN, 0, NULL,
		0},
	{"M11-second", "more front ends at one socket", second_front_end, HO_OPEN, HO_ONE, NULL, 0},
	{"M11-knock-and-run", "front ends that leave at once", knock_and_run, HO_LEAVE, HO_ONE,
		NULL, 0},
	{0},
};
