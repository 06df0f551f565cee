/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the interface to guest memory. What fits into a slot of the receive ring is copied
 * from there; what does not comes straight from the socket (afp_ring.c). Two kinds of frame
 * take more work: a tagged one, since the kernel keeps the tag beside the frame and it has to
 * be put back; and one that asks for an offload which the guest has not accepted, since no
 * setting of a packet socket keeps the sender from asking.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_prefetch.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "afp_priv.h"
#include "vhp_iov.h"

/* Addresses before the tag. */
#define MACS_BYTES   (2 * ETH_ALEN)
/* How often an idle socket is asked whether its interface is still there. */
#define CHECKS_PER_S 1000

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

/* Where the header points to is further behind with the tag. */
static void
shift_header(struct received *r)
{
	r->hdr.hdr_len += r->hdr.hdr_len > 0 ? AFP_VLAN_BYTES : 0;
	if (r->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		r->hdr.csum_start += AFP_VLAN_BYTES;
}

/* Put the tag back; the frame has room for it. */
static void
insert_tag(struct received *r, uint8_t *frame)
{
	uint16_t tag[2] = {htons(r->tpid), htons(r->tci)};

	memmove(frame + MACS_BYTES + AFP_VLAN_BYTES, frame + MACS_BYTES, r->len_bytes - MACS_BYTES);
	memcpy(frame + MACS_BYTES, tag, sizeof(tag));
	r->len_bytes += AFP_VLAN_BYTES;
	shift_header(r);
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

/* One frame from the socket. Returns 0 or a positive errno value; EBADMSG: try the next. */
static int
rx_socket(struct afp_queue *q, struct vhp_frame *f)
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

static struct tpacket2_hdr *
slot_at(const struct afp_ring *ring)
{
	return (struct tpacket2_hdr *)(ring->map + (size_t)ring->block * ring->block_bytes +
				       (size_t)ring->slot * ring->slot_bytes);
}

/* The slot is the kernel's again. */
static void
release_slot(struct afp_ring *ring, struct tpacket2_hdr *slot)
{
	__atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	if (++ring->slot == ring->per_block) {
		ring->slot = 0;
		if (++ring->block == ring->blocks)
			ring->block = 0;
	}
	rte_prefetch0(slot_at(ring));
}

/* Its tag goes between the addresses and the rest. */
static void
write_tagged(struct afp_queue *q, struct vhp_frame *f, struct received *r, const uint8_t *frame)
{
	const uint16_t tag[2] = {htons(r->tpid), htons(r->tci)};
	uint32_t at = q->pq.hdr_bytes;

	shift_header(r);
	vhp_iov_write(f->iov, f->n_iov, 0, &r->hdr, AFP_HDR_BYTES);
	vhp_iov_write(f->iov, f->n_iov, at, frame, MACS_BYTES);
	vhp_iov_write(f->iov, f->n_iov, at + MACS_BYTES, tag, sizeof(tag));
	vhp_iov_write(f->iov, f->n_iov, at + MACS_BYTES + AFP_VLAN_BYTES, frame + MACS_BYTES,
		r->len_bytes - MACS_BYTES);
	f->len_bytes = at + r->len_bytes + AFP_VLAN_BYTES;
}

/* A whole frame in a slot. */
static int
rx_slot(struct afp_queue *q, struct vhp_frame *f, const struct tpacket2_hdr *slot, uint32_t status)
{
	const uint8_t *frame = (const uint8_t *)slot + slot->tp_mac;
	struct received r = {.len_bytes = slot->tp_snaplen};

	if (unlikely(slot->tp_len != r.len_bytes || r.len_bytes < ETH_HLEN))
		return EBADMSG;
	memcpy(&r.hdr, frame - AFP_HDR_BYTES, AFP_HDR_BYTES);
	if (unlikely(status & TP_STATUS_VLAN_VALID)) {
		r.tci = slot->tp_vlan_tci;
		r.tpid = status & TP_STATUS_VLAN_TPID_VALID ? slot->tp_vlan_tpid : ETH_P_8021Q;
	}
	if (unlikely(!vhp_offload_guest_takes(&r.hdr, q->features))) {
		memcpy(q->bounce, frame, r.len_bytes);
		return finish(q, f, &r) ? 0 : EBADMSG;
	}
	if (unlikely(r.tpid != 0)) {
		write_tagged(q, f, &r, frame);
		return 0;
	}
	vhp_iov_write(f->iov, f->n_iov, 0, &r.hdr, AFP_HDR_BYTES);
	vhp_iov_write(f->iov, f->n_iov, q->pq.hdr_bytes, frame, r.len_bytes);
	f->len_bytes = q->pq.hdr_bytes + r.len_bytes;
	return 0;
}

/* Nothing in the ring; whether there will be, only a system call tells: not at every look. */
static int
check_socket(struct afp_queue *q)
{
	uint64_t now_tsc = rte_rdtsc();
	int error = 0;
	socklen_t len = sizeof(error);

	if (likely(now_tsc - q->checked_tsc < rte_get_tsc_hz() / CHECKS_PER_S))
		return EAGAIN;
	q->checked_tsc = now_tsc;
	if (getsockopt(q->pq.fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return errno;
	return error != 0 ? error : EAGAIN;
}

/* One frame. Returns 0 or a positive errno value; EBADMSG: try the next. */
static int
rx_one(struct afp_queue *q, struct vhp_frame *f)
{
	struct tpacket2_hdr *slot;
	uint32_t status;
	int error;

	if (unlikely(q->ring.map == NULL))
		return rx_socket(q, f);
	slot = slot_at(&q->ring);
	status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
	if (!(status & TP_STATUS_USER))
		return check_socket(q);
	if (unlikely(status & TP_STATUS_COPY))
		error = rx_socket(q, f);
	else
		error = rx_slot(q, f, slot, status);
	release_slot(&q->ring, slot);
	return error;
}

uint16_t
afp_rx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct afp_queue *q = container_of(pq, struct afp_queue, pq);
	uint16_t i = 0;

	if (unlikely(afp_socket_renewed(q)))
		return 0;
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
