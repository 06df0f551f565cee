/* SPDX-License-Identifier: BSD-3-Clause */
/* See guest_rr.h. */
#include "guest_rr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fe_util.h"

#define PORT       48359
#define WARM_UP_NS 300000000ULL

static int
tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		bn_die("socket");
	bn_no_delay(fd);
	return fd;
}

/* A socket stays in the namespace in which it was made. */
static int
socket_in(const char *netns)
{
	int before_fd = bn_enter_netns(netns);
	int fd = tcp_socket();

	bn_leave_netns(before_fd);
	return fd;
}

void
guest_rr_open(struct guest_rr *r, const char *netns, const char *address, uint64_t ns)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	int one = 1;

	if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
		bn_die(address);
	r->server = -1;
	r->outstanding = false;
	r->listener = tcp_socket();
	if (setsockopt(r->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
		bind(r->listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(r->listener, 1) < 0)
		bn_die("listen");
	r->client = socket_in(netns);
	if (connect(r->client, (struct sockaddr *)&at, sizeof(at)) < 0 && errno != EINPROGRESS)
		bn_die("connect");
	bn_rtt_init(&r->rtt);
	r->begin_ns = fe_now_ns();
	r->from_ns = r->begin_ns + WARM_UP_NS;
	r->until_ns = r->from_ns + ns;
}

static void
serve(struct guest_rr *r)
{
	char byte;

	if (r->server < 0) {
		r->server = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (r->server >= 0)
			bn_no_delay(r->server);
	} else if (recv(r->server, &byte, 1, 0) == 1 && send(r->server, &byte, 1, 0) != 1) {
		bn_die("answer");
	}
}

static void
finish(struct guest_rr *r)
{
	bn_rtt_print(&r->rtt, r->until_ns - r->from_ns);
	close(r->client);
	close(r->server);
	close(r->listener);
}

bool
guest_rr_step(struct guest_rr *r)
{
	uint64_t now = fe_now_ns();
	char byte = 'r';

	serve(r);
	if (!r->outstanding) {
		if (now > r->until_ns) {
			finish(r);
			return false;
		}
		/* EAGAIN: still connecting. */
		r->sent_ns = now;
		r->outstanding = send(r->client, &byte, 1, MSG_NOSIGNAL) == 1;
	} else if (recv(r->client, &byte, 1, 0) == 1) {
		r->outstanding = false;
		if (r->sent_ns >= r->from_ns)
			bn_rtt_add(&r->rtt, fe_now_ns() - r->sent_ns);
	}
	if (now > r->until_ns + 10000000000ULL) {
		errno = ETIMEDOUT;
		bn_die("round trip");
	}
	return true;
}
