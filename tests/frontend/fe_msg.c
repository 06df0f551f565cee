/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost-user messages on a socket; see fe_msg.h. */
#include "fe_msg.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fe_util.h"

#define CONNECT_RETRY_US 2000

static int
unix_address(const char *path, struct sockaddr_un *sa)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(sa->sun_path))
		return -ENAMETOOLONG;
	strcpy(sa->sun_path, path);
	return 0;
}

static void
conn_init(struct fe_conn *c, uint32_t timeout_ms)
{
	memset(c, 0, sizeof(*c));
	c->fd = -1;
	c->listen_fd = -1;
	c->timeout_ms = timeout_ms;
}

/* A back end that stops reading must not hang the test in sendmsg. */
static void
limit_sends(const struct fe_conn *c)
{
	struct timeval tv = {
		.tv_sec = c->timeout_ms / 1000, .tv_usec = (c->timeout_ms % 1000) * 1000};

	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

int
fe_connect(struct fe_conn *c, const char *path, uint32_t timeout_ms)
{
	uint64_t end = fe_now_us() + (uint64_t)timeout_ms * 1000;
	struct sockaddr_un sa;
	int rc = unix_address(path, &sa);

	conn_init(c, timeout_ms);
	if (rc != 0)
		return rc;
	for (;;) {
		c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (c->fd < 0)
			return -errno;
		if (connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)) == 0) {
			limit_sends(c);
			return 0;
		}
		rc = -errno;
		close(c->fd);
		c->fd = -1;
		if (rc != -ENOENT && rc != -ECONNREFUSED && rc != -EAGAIN)
			return rc;
		if (fe_now_us() >= end)
			return -ETIMEDOUT;
		usleep(CONNECT_RETRY_US);
	}
}

int
fe_listen(struct fe_conn *c, const char *path, uint32_t timeout_ms)
{
	struct sockaddr_un sa;
	int rc = unix_address(path, &sa);

	conn_init(c, timeout_ms);
	if (rc != 0)
		return rc;
	c->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->listen_fd < 0)
		return -errno;
	unlink(path);
	if (bind(c->listen_fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
		listen(c->listen_fd, 4) < 0) {
		rc = -errno;
		fe_conn_close(c);
	}
	return rc;
}

/* Returns 0 when fd is readable (or closed by its peer), -ETIMEDOUT at end_us. */
static int
wait_readable(int fd, uint64_t end_us)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (;;) {
		uint64_t now = fe_now_us();
		int left_ms = now >= end_us ? 0 : (int)((end_us - now + 999) / 1000);
		int n = poll(&p, 1, left_ms);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0 && left_ms == 0)
			return -ETIMEDOUT;
	}
}

int
fe_accept(struct fe_conn *c, uint32_t timeout_ms)
{
	int rc = wait_readable(c->listen_fd, fe_now_us() + (uint64_t)timeout_ms * 1000);

	if (rc != 0)
		return rc;
	fe_disconnect(c);
	c->proto = 0;
	c->ack = false;
	c->fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	limit_sends(c);
	return 0;
}

void
fe_disconnect(struct fe_conn *c)
{
	if (c != NULL && c->fd >= 0) {
		close(c->fd);
		c->fd = -1;
	}
}

void
fe_conn_close(struct fe_conn *c)
{
	if (c == NULL)
		return;
	fe_disconnect(c);
	if (c->listen_fd >= 0)
		close(c->listen_fd);
	c->listen_fd = -1;
}

int
fe_send_raw(struct fe_conn *c, const void *bytes, size_t len, const int *fds, uint32_t nfds)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(FE_MSG_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (nfds > FE_MSG_FDS_MAX)
		return -EINVAL;
	if (nfds > 0) {
		struct cmsghdr *cm;

		memset(&control, 0, sizeof(control));
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	do
		n = sendmsg(c->fd, &mh, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return -ETIMEDOUT;
	if (n < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int
fe_send(struct fe_conn *c, uint32_t request, uint32_t flags, const void *payload, uint32_t size,
	const int *fds, uint32_t nfds)
{
	struct {
		struct fe_msg_hdr hdr;
		uint8_t payload[FE_MSG_PAYLOAD_MAX];
	} m = {.hdr = {.request = request, .flags = FE_MSG_VERSION | flags, .size = size}};

	if (size > sizeof(m.payload))
		return -EMSGSIZE;
	if (size > 0)
		memcpy(m.payload, payload, size);
	return fe_send_raw(c, &m, sizeof(m.hdr) + size, fds, nfds);
}

/* Fds may come with any part of the message; all of them are kept. */
static void
collect_fds(struct msghdr *mh, struct fe_msg *m)
{
	struct cmsghdr *cm;

	for (cm = CMSG_FIRSTHDR(mh); cm != NULL; cm = CMSG_NXTHDR(mh, cm)) {
		size_t n;

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int), sizeof(fd));
			if (m->nfds < FE_MSG_FDS_MAX)
				m->fds[m->nfds++] = fd;
			else
				close(fd);
		}
	}
}

static int
recv_exactly(struct fe_conn *c, void *dst, size_t len, struct fe_msg *m, uint64_t end_us)
{
	uint8_t *p = dst;

	while (len > 0) {
		union {
			struct cmsghdr align;
			char buf[CMSG_SPACE(FE_MSG_FDS_MAX * sizeof(int))];
		} control;
		struct iovec iov = {.iov_base = p, .iov_len = len};
		struct msghdr mh = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.buf,
			.msg_controllen = sizeof(control)};
		ssize_t n;
		int rc = wait_readable(c->fd, end_us);

		if (rc != 0)
			return rc;
		n = recvmsg(c->fd, &mh, MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 || errno == ECONNRESET ? -ECONNRESET : -errno;
		collect_fds(&mh, m);
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
fe_recv(struct fe_conn *c, struct fe_msg *m, uint32_t timeout_ms)
{
	uint64_t end = fe_now_us() + (uint64_t)timeout_ms * 1000;
	int rc;

	m->nfds = 0;
	memset(&m->payload, 0, sizeof(m->payload));
	if (c->fd < 0)
		return -ECONNRESET;
	rc = recv_exactly(c, &m->hdr, sizeof(m->hdr), m, end);
	if (rc == 0 && m->hdr.size > FE_MSG_PAYLOAD_MAX)
		rc = -EBADMSG;
	if (rc == 0)
		rc = recv_exactly(c, &m->payload, m->hdr.size, m, end);
	if (rc != 0)
		fe_msg_close_fds(m);
	return rc;
}

void
fe_msg_close_fds(struct fe_msg *m)
{
	for (uint32_t i = 0; i < m->nfds; i++)
		close(m->fds[i]);
	m->nfds = 0;
}

static int
recv_reply(struct fe_conn *c, uint32_t request, struct fe_msg *reply)
{
	int rc = fe_recv(c, reply, c->timeout_ms);

	if (rc != 0)
		return rc;
	if (reply->hdr.request == request && (reply->hdr.flags & FE_MSG_REPLY) != 0)
		return 0;
	fe_msg_close_fds(reply);
	return -EBADMSG;
}

int
fe_call(struct fe_conn *c, uint32_t request, const void *payload, uint32_t size, const int *fds,
	uint32_t nfds, struct fe_msg *reply)
{
	int rc = fe_send(c, request, 0, payload, size, fds, nfds);

	return rc != 0 ? rc : recv_reply(c, request, reply);
}

int
fe_set(struct fe_conn *c, uint32_t request, const void *payload, uint32_t size, const int *fds,
	uint32_t nfds)
{
	struct fe_msg reply;
	int rc = fe_send(c, request, c->ack ? FE_MSG_NEED_REPLY : 0, payload, size, fds, nfds);

	if (rc != 0 || !c->ack)
		return rc;
	rc = recv_reply(c, request, &reply);
	if (rc != 0)
		return rc;
	fe_msg_close_fds(&reply);
	if (reply.hdr.size != sizeof(uint64_t))
		return -EBADMSG;
	return reply.payload.u64 == 0 ? 0 : -EREMOTEIO;
}

int
fe_wait_closed(struct fe_conn *c, uint32_t timeout_ms)
{
	uint64_t end = fe_now_us() + (uint64_t)timeout_ms * 1000;
	struct fe_msg m;
	int rc;

	do {
		uint64_t now = fe_now_us();

		rc = fe_recv(c, &m, now >= end ? 0 : (uint32_t)((end - now) / 1000));
		if (rc == 0)
			fe_msg_close_fds(&m);
	} while (rc == 0);
	return rc == -ECONNRESET ? 0 : rc;
}
