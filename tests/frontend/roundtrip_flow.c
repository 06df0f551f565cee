/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-roundtrip: which frame is the n-th of a direction, and whether it arrived whole. */
#include "roundtrip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Kinds that the tap never hands over whole (its driver has no fragmentation offload), and
 * that the host's socket cannot describe in a virtio-net header.
 */
#define KINDS_UFO (1U << FE_UFO4 | 1U << FE_UFO6)

static uint32_t
allowed_kinds(const struct rt_opts *o, bool from_host, uint64_t features)
{
	uint32_t kinds = 0;

	for (uint32_t k = 0; k < FE_KINDS; k++) {
		uint64_t need = fe_kind_features((enum fe_kind)k, from_host);

		/* The host's kernel completes checksums for a guest that wants no partial ones. */
		if (from_host && k >= FE_UDP4 && k <= FE_TCP6)
			need = 0;
		/* And somebody cuts what it did not accept whole. */
		if (from_host && o->cut)
			need = 0;
		if ((need & ~features) == 0)
			kinds |= 1U << k;
	}
	if (from_host || !o->plain_host)
		kinds &= ~KINDS_UFO;
	kinds &= o->kinds;
	return kinds == 0 ? 1U << FE_RAW : kinds;
}

int
rt_flow_init(struct rt_flow *f, const struct rt_opts *o, bool from_host, uint64_t features)
{
	memset(f, 0, sizeof(*f));
	f->opts = o;
	f->from_host = from_host;
	f->kinds = allowed_kinds(o, from_host, features);
	f->finish_csum = from_host && (features & FE_BIT(VIRTIO_NET_F_GUEST_CSUM)) == 0;
	f->out = malloc(FE_BUF_MAX);
	f->expected = malloc(FE_BUF_MAX);
	f->part = malloc(2 * FE_BUF_MAX);
	if (f->out == NULL || f->expected == NULL || f->part == NULL)
		return -ENOMEM;
	return fe_stream_init(&f->stream, from_host ? 2 : 1, o->seed);
}

void
rt_flow_free(struct rt_flow *f)
{
	fe_stream_free(&f->stream);
	free(f->out);
	free(f->expected);
	free(f->part);
}

static uint32_t
choose_len(const struct rt_opts *o, struct fe_rng *rng, uint32_t min)
{
	static const uint32_t edges[] = {60, 61, 1514, 4096, 9014, 65535};
	uint32_t lo = min > o->min_len ? min : o->min_len;
	uint32_t hi = o->max_len > lo ? o->max_len : lo, len;

	switch (fe_rng_range(rng, 0, 15)) {
	case 0:
		len = edges[fe_rng_range(rng, 0, FE_ARRAY_SIZE(edges) - 1)];
		break;
	case 1:
	case 2:
	case 3:
	case 4:
		len = fe_rng_range(rng, 60, 1514);
		break;
	default:
		len = fe_rng_range(rng, lo, hi);
	}
	return len < lo ? lo : len > hi ? hi : len;
}

/* Every frame is drawn from a generator of its own, so both ends get the same one. */
static struct fe_spec
spec_of(const struct rt_flow *f, uint32_t seq)
{
	struct fe_spec s = {.seq = seq};
	struct fe_rng rng;
	uint32_t nth, min, payload, gso_min;

	fe_rng_seed(&rng, f->opts->seed * 1000003 + seq * 2ULL + f->from_host);
	nth = fe_rng_range(&rng, 1, (uint32_t)__builtin_popcount(f->kinds));
	for (uint32_t k = 0; k < FE_KINDS; k++)
		if ((f->kinds & 1U << k) != 0 && --nth == 0)
			s.kind = (enum fe_kind)k;
	s.vlans = (uint8_t)fe_rng_range(&rng, 0, f->opts->vlans);
	/* The kernel itself cuts doubly tagged frames into segments before the tap. */
	if (s.kind >= FE_TSO4 && s.vlans > 1 && !f->opts->cut)
		s.vlans = 1;
	min = fe_frame_min(s.kind, s.vlans);
	if (s.kind < FE_TSO4) {
		s.len = choose_len(f->opts, &rng, min);
		return s;
	}
	/* More payload than one segment, else it is none; not above 60 segments. */
	s.len = choose_len(f->opts, &rng, min + 256);
	payload = s.len - min;
	gso_min = payload / 60 + 64;
	s.gso_size = (uint16_t)fe_rng_range(
		&rng, gso_min, payload / 2 > gso_min ? payload / 2 : gso_min);
	if (s.gso_size > 1448 && gso_min <= 1448)
		s.gso_size = 1448;
	return s;
}

void
rt_flow_build(struct rt_flow *f)
{
	if (f->built)
		return;
	f->spec = spec_of(f, f->n_sent);
	fe_frame_build(&f->stream, &f->spec, f->out, &f->hdr);
	f->built = true;
}

static const char *
flow_name(const struct rt_flow *f)
{
	return f->from_host ? "host to guest" : "guest to host";
}

static void
count_frame(struct rt_flow *f, uint32_t len)
{
	f->n_received++;
	f->bytes += len;
	f->segment = 0;
}

/* Part of frame n_received, whose checksum the receiver need not have been left. */
static int
check_segment(struct rt_flow *f, const struct fe_spec *s, const uint8_t *frame, uint32_t len,
	const struct virtio_net_hdr_v1 *hdr, struct fe_fault *fault)
{
	uint8_t *got = f->part, *want = f->part + FE_BUF_MAX;
	uint32_t want_len = fe_frame_segment(s, f->expected, f->segment, want);
	struct virtio_net_hdr_v1 h = *hdr;
	uint32_t diff;

	if (len != want_len)
		return fe_fault(fault, "%s: segment %u of frame %u (%s): %u bytes instead of %u",
			flow_name(f), f->segment, s->seq, fe_kind_names[s->kind], len, want_len);
	memcpy(got, frame, len);
	fe_frame_finish_csum(got, len, &h);
	if (h.gso_type != VIRTIO_NET_HDR_GSO_NONE || !fe_frame_csum_ok(got, len))
		return fe_fault(fault, "%s: segment %u of frame %u (%s): type %u, checksum %s",
			flow_name(f), f->segment, s->seq, fe_kind_names[s->kind], h.gso_type,
			fe_frame_csum_ok(got, len) ? "right" : "wrong");
	/* It was right, in one of the two forms that 0 has. */
	fe_frame_clear_csum(got, len);
	fe_frame_clear_csum(want, len);
	diff = (uint32_t)fe_first_diff(got, want, len);
	if (diff != len)
		return fe_fault(fault,
			"%s: segment %u of frame %u (%s) differs at byte %u: %02x, not %02x",
			flow_name(f), f->segment, s->seq, fe_kind_names[s->kind], diff, got[diff],
			want[diff]);
	if (++f->segment == fe_frame_segments(s)) {
		f->n_cut++;
		count_frame(f, s->len);
	}
	return 0;
}

/* The whole frame, as it was sent. */
static int
check_whole(struct rt_flow *f, const struct fe_spec *s, const uint8_t *frame, uint32_t len,
	const struct virtio_net_hdr_v1 *hdr, struct virtio_net_hdr_v1 want, struct fe_fault *fault)
{
	/* Where frames may be cut, so may checksums be completed on the way. */
	bool completed = f->opts->cut && want.gso_type == VIRTIO_NET_HDR_GSO_NONE &&
			 (hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) == 0;
	uint32_t diff;

	if (f->finish_csum || completed)
		fe_frame_finish_csum(f->expected, s->len, &want);
	if (len != s->len)
		return fe_fault(fault, "%s: frame %u (%s): %u bytes instead of %u", flow_name(f),
			s->seq, fe_kind_names[s->kind], len, s->len);
	diff = (uint32_t)fe_first_diff(frame, f->expected, len);
	if (diff != len)
		return fe_fault(fault,
			"%s: frame %u (%s, %u bytes) differs at byte %u: %02x, not %02x",
			flow_name(f), s->seq, fe_kind_names[s->kind], len, diff, frame[diff],
			f->expected[diff]);
	if (!f->opts->plain_host && !fe_hdr_equal(hdr, &want))
		return fe_fault(fault,
			"%s: frame %u (%s, %u bytes): header flags %u type %u size %u csum %u+%u, "
			"not flags %u type %u size %u csum %u+%u",
			flow_name(f), s->seq, fe_kind_names[s->kind], len, hdr->flags,
			hdr->gso_type, hdr->gso_size, hdr->csum_start, hdr->csum_offset, want.flags,
			want.gso_type, want.gso_size, want.csum_start, want.csum_offset);
	count_frame(f, len);
	return 0;
}

int
rt_flow_check(struct rt_flow *f, const uint8_t *frame, uint32_t len,
	const struct virtio_net_hdr_v1 *hdr, struct fe_fault *fault)
{
	struct virtio_net_hdr_v1 want;
	struct fe_spec s;
	uint32_t seq;

	if (!fe_frame_seq(&f->stream, frame, len, &seq)) {
		if (f->segment == 0) {
			f->strays++;
			return 1;
		}
		/* Only the first segment is marked. */
		seq = f->n_received;
	} else if (f->segment > 0) {
		return fe_fault(fault, "%s: frame %u arrived while segment %u of %u was due",
			flow_name(f), seq, f->segment, f->n_received);
	}
	if (seq != f->n_received)
		return fe_fault(fault, "%s: frame %u arrived where %u was due: %s", flow_name(f),
			seq, f->n_received,
			seq < f->n_received ? "doubled or late" : "some are lost");
	s = spec_of(f, seq);
	fe_frame_build(&f->stream, &s, f->expected, &want);
	if (f->opts->cut && s.gso_size > 0 && len != s.len)
		return check_segment(f, &s, frame, len, hdr, fault);
	return check_whole(f, &s, frame, len, hdr, want, fault);
}
