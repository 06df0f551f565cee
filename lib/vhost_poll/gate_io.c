/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost-user messages on Unix sockets: whole, with their descriptors, without waiting. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "gate.h"

/* More than a message may bring, so that surplus descriptors are seen, and closed. */
#define CONTROL_FDS (VU_MAX_FDS + 8)

struct vhp_vu_msg
vhp_vu_make_u64(uint32_t request, uint32_t flags, uint64_t value)
{
	return (struct vhp_vu_msg){
		.header = {request, VU_VERSION | flags, sizeof(value)},
		.u64 = value,
	};
}

void
vhp_vu_reader_reset(struct vhp_vu_reader *reader)
{
	for (unsigned int i = 0; i < reader->msg.n_fds; i++)
		if (reader->msg.fds[i] >= 0)
			close(reader->msg.fds[i]);
	reader->msg.n_fds = 0;
	reader->have_bytes = 0;
}

/* Keep the descriptors of one recvmsg; those beyond the limit are closed. */
static const char *
take_fds(struct vhp_vu_msg *msg, struct msghdr *hdr)
{
	const char *why = hdr->msg_flags & MSG_CTRUNC ? "too many descriptors" : NULL;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c != NULL; c = CMSG_NXTHDR(hdr, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fds[CONTROL_FDS];

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = RTE_MIN(n, RTE_DIM(fds));
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
		for (size_t i = 0; i < n; i++) {
			if (msg->n_fds < VU_MAX_FDS) {
				msg->fds[msg->n_fds++] = fds[i];
				continue;
			}
			close(fds[i]);
			why = "too many descriptors";
		}
	}
	return why;
}

int
vhp_vu_read(int fd, struct vhp_vu_reader *reader, const char **why)
{
	struct vhp_vu_msg *msg = &reader->msg;
	const size_t header_bytes = sizeof(msg->header);

	for (;;) {
		bool in_header = reader->have_bytes < header_bytes;
		size_t whole = in_header ? header_bytes : header_bytes + msg->header.size;
		uint8_t *dst = in_header ? (uint8_t *)&msg->header + reader->have_bytes
					 : msg->bytes + (reader->have_bytes - header_bytes);
		char control[CMSG_SPACE(sizeof(int) * CONTROL_FDS)];
		struct iovec iov = {dst, whole - reader->have_bytes};
		struct msghdr hdr = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};

		if (iov.iov_len == 0)
			return 1;
		ssize_t n = recvmsg(fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		*why = n < 0 ? strerror(errno) : "closed by the front end";
		if (n <= 0)
			return n < 0 ? -errno : -EPIPE;
		*why = take_fds(msg, &hdr);
		if (*why != NULL)
			return -EPROTO;
		reader->have_bytes += n;
		if (in_header && reader->have_bytes == header_bytes &&
			msg->header.size > VU_MAX_PAYLOAD_BYTES) {
			*why = "payload too long";
			return -EPROTO;
		}
	}
}

int
vhp_vu_send(int fd, const struct vhp_vu_msg *msg)
{
	char control[CMSG_SPACE(sizeof(int) * VU_MAX_FDS)] = {0};
	struct iovec iov[2] = {
		{(void *)(uintptr_t)&msg->header, sizeof(msg->header)},
		{(void *)(uintptr_t)msg->bytes, msg->header.size},
	};
	struct msghdr hdr = {.msg_iov = iov, .msg_iovlen = 2};
	size_t whole = sizeof(msg->header) + msg->header.size;

	if (msg->n_fds > 0) {
		struct cmsghdr *c;

		hdr.msg_control = control;
		hdr.msg_controllen = CMSG_SPACE(sizeof(int) * msg->n_fds);
		c = CMSG_FIRSTHDR(&hdr);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * msg->n_fds);
		memcpy(CMSG_DATA(c), msg->fds, sizeof(int) * msg->n_fds);
	}
	ssize_t n = sendmsg(fd, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	/* Half a message cannot be taken back. */
	return (size_t)n == whole ? 0 : -EMSGSIZE;
}
