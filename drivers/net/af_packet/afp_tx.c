/* SPDX-License-Identifier: BSD-3-Clause */
/* From guest memory to the interface: a burst is one system call, one copy. */
#include <errno.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "afp_priv.h"
#include "vhp_iov.h"

/* Bytes of a frame that the kernel puts into one piece; the rest comes in pages. */
#define LINEAR_BYTES 256

enum vhp_drop
afp_judge_error(struct afp_queue *q, int error)
{
	switch (error) {
	case EAGAIN:
		q->pq.wait = VHP_PORT_FULL;
		return VHP_OK;
	case ENOBUFS:
	case ENOMEM:
		/* The interface's own queue is full; nothing tells when it is not. */
		q->pq.wait = VHP_PORT_BUSY;
		return VHP_OK;
	case EINVAL:
		return VHP_DROP_HEADER;
	case EMSGSIZE:
		return VHP_DROP_LONG;
	case EFAULT:
		q->pq.wait = VHP_PORT_MEMORY;
		return VHP_DROP_CHAIN_ADDRESS;
	default:
		/* ENETDOWN, ENXIO. */
		__atomic_store_n(&q->down, true, __ATOMIC_RELAXED);
		q->pq.wait = VHP_PORT_DOWN;
		return VHP_OK;
	}
}

/* Pieces of a frame behind its first skip bytes. */
static uint32_t
tail_of(const struct vhp_frame *f, size_t skip, struct iovec *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->n_iov; i++) {
		const struct iovec *piece = &f->iov[i];

		if (skip >= piece->iov_len) {
			skip -= piece->iov_len;
			continue;
		}
		out[n++] = (struct iovec){(uint8_t *)piece->iov_base + skip, piece->iov_len - skip};
		skip = 0;
	}
	return n;
}

/* The header is read once, and only what is asked for is passed on. */
static void
read_header(const struct vhp_port_queue *pq, const struct vhp_frame *f, struct virtio_net_hdr *hdr)
{
	uint32_t frame_bytes = f->len_bytes - pq->hdr_bytes;

	vhp_iov_read(f->iov, f->n_iov, 0, hdr, AFP_HDR_BYTES);
	hdr->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
	/* Only a hint of the guest's (virtio 1.2, 5.1.6.2), but the kernel insists on it. */
	hdr->hdr_len = RTE_MIN(frame_bytes, (uint32_t)LINEAR_BYTES);
}

/* Messages of the frames; returns how many. */
static unsigned int
build(struct afp_queue *q, struct vhp_frame *frames, uint16_t n)
{
	struct afp_burst *b = q->burst;
	struct iovec *iov = b->iov;
	unsigned int m = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct vhp_frame *f = &frames[i];
		struct msghdr *msg = &b->msgs[m].msg_hdr;

		if (unlikely(f->drop != VHP_OK))
			continue;
		read_header(&q->pq, f, &b->hdrs[m]);
		*msg = (struct msghdr){.msg_iov = iov};
		iov[0] = (struct iovec){&b->hdrs[m], AFP_HDR_BYTES};
		msg->msg_iovlen = 1 + tail_of(f, q->pq.hdr_bytes, iov + 1);
		if (unlikely(msg->msg_iovlen > VHP_MAX_IOV)) {
			f->drop = VHP_DROP_CHAIN_SEGMENTS;
			continue;
		}
		iov += msg->msg_iovlen;
		b->index[m++] = i;
	}
	return m;
}

uint16_t
afp_tx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct afp_queue *q = container_of(pq, struct afp_queue, pq);
	struct afp_burst *b = q->burst;
	unsigned int m, sent = 0;

	if (unlikely(afp_socket_renewed(q)))
		return 0;
	m = build(q, frames, n);
	while (sent < m) {
		int ret = sendmmsg(pq->fd, b->msgs + sent, m - sent, MSG_DONTWAIT);

		if (likely(ret > 0)) {
			sent += ret;
			continue;
		}
		if (ret < 0 && errno == EINTR)
			continue;
		frames[b->index[sent]].drop = afp_judge_error(q, errno);
		if (frames[b->index[sent]].drop == VHP_OK)
			return b->index[sent];
		sent++;
	}
	return n;
}
