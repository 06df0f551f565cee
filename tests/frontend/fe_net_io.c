/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames through a virtio-net device's rings; see fe_net.h. */
#include "fe_net.h"

#include <errno.h>
#include <string.h>

#define CANARY 0xfec0ffee5afe0badULL

static const struct fe_how plain_how = {.max_segs = 1};

/*
 * A legacy driver that did not accept ANY_LAYOUT puts the header into a descriptor of
 * its own (virtio 1.2, 2.7.4.1 and 5.1.6.6.1).
 */
static bool
header_stands_alone(const struct fe_net *n, const struct fe_how *how)
{
	return how->hdr == FE_HDR_ALONE ||
	       (!fe_net_has(n, VIRTIO_F_VERSION_1) && !fe_net_has(n, VIRTIO_F_ANY_LAYOUT));
}

/*
 * Cut bytes into 1..max random lengths, none 0, in len[]; the first is at least first_min,
 * or exactly that if first_exact. Returns the number of pieces.
 */
static uint32_t
cut(struct fe_rng *rng, uint32_t bytes, uint32_t max, uint32_t first_min, bool first_exact,
	uint32_t *len)
{
	uint32_t n = 0, want;

	if (first_exact && bytes > first_min) {
		len[n++] = first_min;
		bytes -= first_min;
		max = max > 1 ? max - 1 : 1;
		first_min = 0;
	}
	want = rng == NULL ? 1 : fe_rng_range(rng, 1, max);
	for (; want > 1 && bytes > first_min + 1; want--) {
		uint32_t lo = first_min > 0 ? first_min : 1;
		/* Twice the fair share at most, so that late pieces are not all tiny. */
		uint32_t hi = 2 * (bytes / want);

		if (hi < lo)
			hi = lo;
		if (hi > bytes - 1)
			hi = bytes - 1;
		len[n] = fe_rng_range(rng, lo, hi);
		bytes -= len[n++];
		first_min = 0;
	}
	len[n++] = bytes;
	return n;
}

/* How many of n segments go into direct descriptors. */
static uint32_t
choose_direct(
	const struct fe_net *n, const struct fe_ring *r, const struct fe_how *how, uint32_t nseg)
{
	enum fe_chain chain = how->chain;

	if (!fe_net_has(n, VIRTIO_RING_F_INDIRECT_DESC) || nseg > r->cfg.indirect_max)
		return nseg;
	if (chain == FE_CHAIN_MIXED && how->rng != NULL && !r->cfg.packed)
		return fe_rng_range(how->rng, 0, nseg);
	if (chain >= FE_CHAIN_RANDOM && how->rng != NULL)
		return fe_rng_one_in(how->rng, 2) ? nseg : 0;
	return chain == FE_CHAIN_INDIRECT ? 0 : nseg;
}

/* Copies piecewise from two sources: the header, then the frame. */
static void
copy_in(uint8_t *dst, uint32_t at, uint32_t bytes, const uint8_t *hdr, uint32_t hdr_bytes,
	const uint8_t *frame)
{
	if (at < hdr_bytes) {
		uint32_t k = bytes < hdr_bytes - at ? bytes : hdr_bytes - at;

		memcpy(dst, hdr + at, k);
		dst += k;
		at += k;
		bytes -= k;
	}
	if (bytes > 0)
		memcpy(dst, frame + (at - hdr_bytes), bytes);
}

int
fe_net_send(struct fe_net *n, uint32_t q, const struct virtio_net_hdr_v1 *hdr, const void *frame,
	uint32_t len, const struct fe_how *how)
{
	static const struct virtio_net_hdr_v1 none;
	struct fe_transmitq *t = &n->tx[q];
	struct fe_seg seg[FE_SEGS_MAX];
	uint32_t cuts[FE_SEGS_MAX], nseg, at = 0, buf, min;
	uint64_t gpa;
	int rc;

	how = how != NULL ? how : &plain_how;
	if (n->hdr_bytes + len > n->cfg.tx_buf_bytes)
		return -EINVAL;
	if (t->nfree == 0)
		return -ENOSPC;
	buf = t->free[t->nfree - 1];
	gpa = t->buf_gpa[buf];
	min = how->hdr == FE_HDR_ANY && !header_stands_alone(n, how) ? 0 : n->hdr_bytes;
	if (how->hdr == FE_HDR_JOINED)
		min++;
	nseg = cut(how->rng, n->hdr_bytes + len, how->max_segs, min, header_stands_alone(n, how),
		cuts);
	for (uint32_t i = 0; i < nseg; i++) {
		seg[i] = (struct fe_seg){.gpa = gpa, .len = cuts[i]};
		copy_in(fe_mem_ptr(&n->mem, gpa), at, cuts[i],
			(const uint8_t *)(hdr != NULL ? hdr : &none), n->hdr_bytes, frame);
		at += cuts[i];
		gpa += cuts[i] + (nseg > 1 ? FE_TX_GAP_BYTES : 0);
	}
	rc = fe_ring_add(&t->ring, seg, nseg, choose_direct(n, &t->ring, how, nseg), buf);
	if (rc < 0)
		return rc;
	t->nfree--;
	t->n_sent++;
	return 0;
}

int
fe_net_reap(struct fe_net *n, uint32_t q)
{
	struct fe_transmitq *t = &n->tx[q];
	struct fe_done done[FE_DONE_BATCH];
	int total = 0, got;

	do {
		got = fe_ring_used(&t->ring, done, FE_DONE_BATCH);
		for (int i = 0; i < got; i++) {
			t->free[t->nfree++] = (uint32_t)done[i].token;
			/* The device has written nothing (virtio 1.2, 2.7.8.2). */
			if (done[i].len != 0)
				return fe_fault(&n->fault,
					"vring %u: used length %u of a transmit buffer",
					t->ring.index, done[i].len);
		}
		if (got < 0)
			return got;
		t->n_done += (uint32_t)got;
		total += got;
	} while (got == FE_DONE_BATCH);
	return total;
}

static void
put_canary(struct fe_net *n, uint64_t gpa)
{
	const uint64_t v = CANARY;

	memcpy(fe_mem_ptr(&n->mem, gpa), &v, sizeof(v));
}

static bool
canary_lives(const struct fe_net *n, uint64_t gpa)
{
	const uint64_t v = CANARY;

	return memcmp(fe_mem_ptr(&n->mem, gpa), &v, sizeof(v)) == 0;
}

/* Lays a buffer of bytes out in its slab: canary, segment, canary, segment, ... canary. */
static void
lay_out(struct fe_net *n, struct fe_rxbuf *b, uint32_t bytes, const struct fe_how *how)
{
	bool mrg = fe_net_has(n, VIRTIO_NET_F_MRG_RXBUF);
	bool alone = header_stands_alone(n, how) && !mrg;
	uint32_t min = how->hdr == FE_HDR_ANY && !alone ? 0 : n->hdr_bytes;
	uint32_t cuts[FE_SEGS_MAX];
	uint64_t gpa = b->gpa;

	b->nseg = cut(how->rng, bytes, how->max_segs, min, alone, cuts);
	put_canary(n, gpa);
	for (uint32_t i = 0; i < b->nseg; i++) {
		gpa += FE_CANARY_BYTES;
		b->seg[i] = (struct fe_seg){.gpa = gpa, .len = cuts[i], .write = true};
		gpa += cuts[i];
		put_canary(n, gpa);
	}
}

int
fe_net_post(struct fe_net *n, uint32_t q, uint32_t count, uint32_t min_bytes, uint32_t max_bytes,
	const struct fe_how *how)
{
	struct fe_receiveq *r = &n->rx[q];
	uint32_t posted = 0;

	how = how != NULL ? how : &plain_how;
	if (max_bytes > n->cfg.rx_buf_bytes)
		max_bytes = n->cfg.rx_buf_bytes;
	while (r->nfree > 0 && posted < count) {
		uint32_t i = r->free[r->nfree - 1];
		struct fe_rxbuf *b = &r->buf[i];
		uint32_t bytes = max_bytes;
		int rc;

		if (how->rng != NULL)
			bytes = fe_rng_range(how->rng, min_bytes, max_bytes);
		lay_out(n, b, bytes, how);
		rc = fe_ring_add(
			&r->ring, b->seg, b->nseg, choose_direct(n, &r->ring, how, b->nseg), i);
		if (rc < 0)
			break;
		r->nfree--;
		posted++;
	}
	return (int)posted;
}

/* 1 with *d, 0 nothing used, -EPROTO. */
static int
next_done(struct fe_receiveq *r, struct fe_done *d)
{
	if (r->done_pos == r->done_n) {
		int got = fe_ring_used(&r->ring, r->done, FE_DONE_BATCH);

		if (got <= 0)
			return got;
		r->done_pos = 0;
		r->done_n = (uint32_t)got;
	}
	*d = r->done[r->done_pos++];
	return 1;
}

bool
fe_net_recv_pending(const struct fe_net *n, uint32_t q)
{
	return n->rx[q].done_pos != n->rx[q].done_n || fe_ring_pending(&n->rx[q].ring);
}

/* Copies d->len bytes of the buffer to dst and gives the buffer back; 0 or -EPROTO. */
static int
gather(struct fe_net *n, struct fe_receiveq *r, const struct fe_done *d, uint8_t *dst)
{
	const struct fe_rxbuf *b = &r->buf[d->token];
	uint32_t left = d->len;
	int rc = 0;

	if (!canary_lives(n, b->gpa))
		rc = fe_fault(&n->fault, "vring %u: bytes in front of a receive buffer changed",
			r->ring.index);
	for (uint32_t i = 0; i < b->nseg; i++) {
		uint32_t k = left < b->seg[i].len ? left : b->seg[i].len;

		memcpy(dst, fe_mem_ptr(&n->mem, b->seg[i].gpa), k);
		dst += k;
		left -= k;
		if (!canary_lives(n, b->seg[i].gpa + b->seg[i].len))
			rc = fe_fault(&n->fault, "vring %u: bytes behind segment %u of %u changed",
				r->ring.index, i, b->nseg);
	}
	r->free[r->nfree++] = (uint32_t)d->token;
	return rc;
}

/* Fields that the negotiated features rule out (virtio 1.2, 5.1.6.4.1). */
static int
check_header(struct fe_net *n, const struct virtio_net_hdr_v1 *h)
{
	static const uint32_t bits[] = {
		[VIRTIO_NET_HDR_GSO_TCPV4] = VIRTIO_NET_F_GUEST_TSO4,
		[VIRTIO_NET_HDR_GSO_UDP] = VIRTIO_NET_F_GUEST_UFO,
		[VIRTIO_NET_HDR_GSO_TCPV6] = VIRTIO_NET_F_GUEST_TSO6,
		[VIRTIO_NET_HDR_GSO_UDP_L4] = VIRTIO_NET_F_GUEST_USO4,
	};
	uint8_t type = h->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	bool bad_type =
		type >= FE_ARRAY_SIZE(bits) || bits[type] == 0 || !fe_net_has(n, bits[type]);

	if (!fe_net_has(n, VIRTIO_NET_F_GUEST_CSUM) && h->flags != 0)
		return fe_fault(
			&n->fault, "receive header: flags 0x%x without GUEST_CSUM", h->flags);
	if (type == VIRTIO_NET_HDR_GSO_NONE)
		return 0;
	if (bad_type)
		return fe_fault(
			&n->fault, "receive header: gso type %u was not negotiated", h->gso_type);
	if (h->gso_size == 0 || (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0)
		return fe_fault(&n->fault, "receive header: gso size %u, flags 0x%x", h->gso_size,
			h->flags);
	if ((h->gso_type & VIRTIO_NET_HDR_GSO_ECN) != 0 && !fe_net_has(n, VIRTIO_NET_F_GUEST_ECN))
		return fe_fault(&n->fault, "receive header: ECN was not negotiated");
	return 0;
}

/* Takes the first buffer of a frame; the header tells how many there are. */
static int
first_buffer(struct fe_net *n, struct fe_receiveq *r, const struct fe_done *d, struct fe_rxframe *f)
{
	int rc;

	if (d->len < n->hdr_bytes)
		return fe_fault(&n->fault, "vring %u: used length %u is below the header",
			r->ring.index, d->len);
	if (d->len > FE_BUF_MAX)
		return fe_fault(
			&n->fault, "vring %u: used length %u in one buffer", r->ring.index, d->len);
	rc = gather(n, r, d, n->frame);
	if (rc != 0)
		return rc;
	memset(&f->hdr, 0, sizeof(f->hdr));
	memcpy(&f->hdr, n->frame, n->hdr_bytes);
	if (n->hdr_bytes < sizeof(f->hdr) ||
		(n->cfg.lenient && !fe_net_has(n, VIRTIO_NET_F_MRG_RXBUF)))
		f->hdr.num_buffers = 1;
	if (f->hdr.num_buffers == 0 ||
		(f->hdr.num_buffers != 1 && !fe_net_has(n, VIRTIO_NET_F_MRG_RXBUF)))
		return fe_fault(&n->fault, "receive header: num_buffers %u", f->hdr.num_buffers);
	return check_header(n, &f->hdr);
}

int
fe_net_recv(struct fe_net *n, uint32_t q, struct fe_rxframe *f)
{
	struct fe_receiveq *r = &n->rx[q];
	uint32_t total = 0;
	struct fe_done d;
	int rc = next_done(r, &d);

	if (rc <= 0)
		return rc;
	rc = first_buffer(n, r, &d, f);
	total = d.len;
	for (f->buffers = 1; rc == 0 && f->buffers < f->hdr.num_buffers; f->buffers++) {
		/* All buffers of a frame become used together (virtio 1.2, 5.1.6.4). */
		if (next_done(r, &d) <= 0)
			return fe_fault(&n->fault, "vring %u: num_buffers %u but %u are used",
				r->ring.index, f->hdr.num_buffers, f->buffers);
		if (d.skipped || total + d.len > FE_BUF_MAX)
			return fe_fault(&n->fault, "vring %u: merged frame of more than %u bytes",
				r->ring.index, total);
		rc = gather(n, r, &d, n->frame + total);
		total += d.len;
	}
	if (rc != 0)
		return rc;
	f->data = n->frame + n->hdr_bytes;
	f->len = total - n->hdr_bytes;
	f->used_bytes = total;
	r->n_received++;
	return 1;
}

uint64_t
fe_net_posted_bytes(const struct fe_net *n, uint32_t q)
{
	const struct fe_ring *r = &n->rx[q].ring;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->cfg.size; i++)
		if (r->slot[i].ndesc != 0)
			sum += r->slot[i].in_bytes;
	return sum;
}
