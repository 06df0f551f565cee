/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the interface to guest memory, with one copy by the kernel. Two kinds of frame take
 * another: a tagged one, since the kernel keeps the tag beside the frame (PACKET_AUXDATA)
 * and it has to be put back; and one that asks for an offload which the guest has not
 * accepted, since no setting of a packet socket keeps the sender from asking.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "afp_priv.h"
#include "vhp_iov.h"

/* Addresses before the tag. */
#define MACS_BYTES (2 * ETH_ALEN)

/* One received frame, its pieces behind the place of the header. */
struct received {
	struct virtio_net_hdr hdr;
	uint32_t len_bytes; /* without header */
	uint16_t tpid;      /* 0: no tag beside it */
	uint16_t tci;
};

/* The tag that the kernel took out of the frame. */
static void
find_tag(struct msghdr *msg, struct received *r)
{
	struct cmsghdr *cm;

	for (cm = CMSG_FIRSTHDR(msg); cm != NULL; cm = CMSG_NXTHDR(msg, cm)) {
		struct tpacket_auxdata aux;

		if (cm->cmsg_level != SOL_PACKET || cm->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(cm), sizeof(aux));
		if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
			continue;
		r->tci = aux.tp_vlan_tci;
		r->tpid =
			aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : ETH_P_8021Q;
	}
}

/*
 * Receive a frame into iov[1..n_iov); iov[0] is ours, for the header.
 * Returns 0, or a positive errno value.
 */
static int
receive(struct afp_queue *q, struct iovec *iov, uint32_t n_iov, struct received *r)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = n_iov,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t len;

	iov[0] = (struct iovec){&r->hdr, AFP_HDR_BYTES};
	len = recvmsg(q->pq.fd, &msg, MSG_DONTWAIT);
	if (len < (ssize_t)AFP_HDR_BYTES)
		return len < 0 ? errno : EBADMSG;
	if (unlikely(msg.msg_flags & MSG_TRUNC))
		return EMSGSIZE;
	r->len_bytes = len - AFP_HDR_BYTES;
	r->tpid = 0;
	find_tag(&msg, r);
	return 0;
}

/* Put the tag back; the frame has room for it. */
static void
insert_tag(struct received *r, uint8_t *frame)
{
	uint16_t tag[2] = {htons(r->tpid), htons(r->tci)};

	memmove(frame + MACS_BYTES + AFP_VLAN_BYTES, frame + MACS_BYTES, r->len_bytes - MACS_BYTES);
	memcpy(frame + MACS_BYTES, tag, sizeof(tag));
	r->len_bytes += AFP_VLAN_BYTES;
	r->hdr.hdr_len += r->hdr.hdr_len > 0 ? AFP_VLAN_BYTES : 0;
	if (r->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		r->hdr.csum_start += AFP_VLAN_BYTES;
}

/* The next segment of the frame in the bounce buffer. */
static void
next_segment(struct afp_queue *q, struct vhp_frame *f)
{
	static const struct virtio_net_hdr plain;
	uint8_t hdr[VHP_OFFLOAD_HDR_BYTES];
	uint32_t payload_at;
	uint32_t payload_bytes = vhp_segment(&q->cut, q->cut_next, hdr, &payload_at);
	uint32_t at = q->pq.hdr_bytes;

	vhp_iov_write(f->iov, f->n_iov, 0, &plain, sizeof(plain));
	vhp_iov_write(f->iov, f->n_iov, at, hdr, q->cut.hdr_bytes);
	at += q->cut.hdr_bytes;
	vhp_iov_write(f->iov, f->n_iov, at, q->bounce + payload_at, payload_bytes);
	f->len_bytes = at + payload_bytes;
	if (++q->cut_next == q->cut.n)
		q->cut.n = 0;
	q->pq.pending = q->cut.n > 0;
}

/* Write a whole frame from the bounce buffer. */
static void
write_frame(struct afp_queue *q, struct vhp_frame *f, const struct received *r)
{
	vhp_iov_write(f->iov, f->n_iov, 0, &r->hdr, AFP_HDR_BYTES);
	vhp_iov_write(f->iov, f->n_iov, q->pq.hdr_bytes, q->bounce, r->len_bytes);
	f->len_bytes = q->pq.hdr_bytes + r->len_bytes;
}

/* What the guest cannot be given as it is. Returns false if it cannot be given at all. */
static bool
finish(struct afp_queue *q, struct vhp_frame *f, struct received *r)
{
	if (r->tpid != 0)
		insert_tag(r, q->bounce);
	if (vhp_offload_guest_takes(&r->hdr, q->features)) {
		write_frame(q, f, r);
		return true;
	}
	if (r->hdr.gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		if (vhp_segments_start(&q->cut, &r->hdr, q->bounce, r->len_bytes) < 0)
			return false;
		q->cut_next = 0;
		next_segment(q, f);
		return true;
	}
	if (vhp_offload_checksum(&r->hdr, q->bounce, r->len_bytes) < 0)
		return false;
	r->hdr = (struct virtio_net_hdr){0};
	write_frame(q, f, r);
	return true;
}

/* Pieces behind the header, for a system call; 0: there are too many. */
static uint32_t
frame_pieces(const struct afp_queue *q, const struct vhp_frame *f, struct iovec *out)
{
	size_t skip = q->pq.hdr_bytes;
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
	return n < VHP_MAX_IOV ? n : 0;
}

/* One frame. Returns 0 or a positive errno value; EBADMSG: try the next. */
static int
rx_one(struct afp_queue *q, struct vhp_frame *f)
{
	struct received r;
	uint32_t n = frame_pieces(q, f, q->iov + 1);
	bool direct = n > 0;
	int error;

	if (unlikely(!direct)) {
		q->iov[1] = (struct iovec){q->bounce, AFP_BOUNCE_BYTES - AFP_VLAN_BYTES};
		n = 1;
	}
	error = receive(q, q->iov, n + 1, &r);
	if (error != 0)
		return error == EINVAL || error == EMSGSIZE ? EBADMSG : error;
	if (likely(direct && r.tpid == 0 && vhp_offload_guest_takes(&r.hdr, q->features))) {
		vhp_iov_write(f->iov, f->n_iov, 0, &r.hdr, AFP_HDR_BYTES);
		f->len_bytes = q->pq.hdr_bytes + r.len_bytes;
		return 0;
	}
	if (r.len_bytes < ETH_HLEN || r.len_bytes > VHP_MAX_FRAME_BYTES)
		return EBADMSG;
	if (direct)
		vhp_iov_read(q->iov + 1, n, 0, q->bounce, r.len_bytes);
	return finish(q, f, &r) ? 0 : EBADMSG;
}

uint16_t
afp_rx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct afp_queue *q = container_of(pq, struct afp_queue, pq);
	uint16_t i = 0;

	/* Frames that are no good must not keep the others waiting, nor the poller for ever. */
	for (uint16_t tries = 0; i < n && tries < n + VHP_BURST_PKTS; tries++) {
		int error;

		if (unlikely(q->cut.n > 0)) {
			next_segment(q, &frames[i++]);
			continue;
		}
		error = rx_one(q, &frames[i]);
		if (likely(error == 0)) {
			i++;
			continue;
		}
		if (error == EAGAIN) {
			if (unlikely(__atomic_load_n(&q->down, __ATOMIC_RELAXED)))
				pq->wait = VHP_PORT_DOWN;
			break;
		}
		if (error == EBADMSG) {
			pq->refused++;
			continue;
		}
		if (error != EINTR) {
			afp_judge_error(q, error);
			break;
		}
	}
	return i;
}
