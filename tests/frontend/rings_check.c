/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-rings: what rows must lead to; see rings.h. */
#include "rings.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Token of good transmit frames. */
#define TOKEN_GOOD (1ULL << 32)

/* After the ring broke, this long nothing more may happen to it. */
#define QUIET_US 30000

#define GOOD_BYTES 300

static uint64_t
deadline(const struct rg_run *run)
{
	return fe_now_us() + run->opts->used_ms * 1000ULL;
}

/* Takes one used entry; 1, 0 at the deadline, -EPROTO. */
static int
next_used(struct rg_run *run, struct fe_done *d, uint64_t end)
{
	for (;;) {
		int n = fe_ring_used(run->ring, d, 1);

		if (n < 0)
			return fe_fault(&run->fault, "%s", run->ring->fault.text);
		if (n > 0)
			return n;
		if (fe_now_us() > end)
			return 0;
	}
}

static void
chain_done(struct rg_run *run, const struct fe_done *d)
{
	struct rg_chain *c = &run->chain[d->token - RG_TOKEN];

	c->done = true;
	c->len = d->len;
}

int
rg_host_expect(struct rg_run *run, const struct fe_spec *spec)
{
	uint64_t end = deadline(run);
	struct virtio_net_hdr_v1 hdr;
	uint32_t seq, diff;
	int len;

	for (;;) {
		len = fe_host_recv(run->host, &hdr, run->buf, FE_BUF_MAX);
		if (len < 0 && fe_now_us() > end)
			return fe_fault(&run->fault, "frame %u did not reach the host", spec->seq);
		if (len < 0) {
			fe_host_wait(run->host, 1000);
			continue;
		}
		if (fe_frame_seq(&run->to_host, run->buf, (size_t)len, &seq))
			break;
	}
	if (seq != spec->seq)
		return fe_fault(&run->fault, "host got frame %u, %u was due", seq, spec->seq);
	fe_frame_build(&run->to_host, spec, run->expected, NULL);
	if ((uint32_t)len != spec->len)
		return fe_fault(&run->fault, "host got %d bytes of %u", len, spec->len);
	diff = (uint32_t)fe_first_diff(run->buf, run->expected, spec->len);
	if (diff != spec->len)
		return fe_fault(
			&run->fault, "frame %u differs at byte %u of %u", seq, diff, spec->len);
	return 0;
}

int
rg_host_send(struct rg_run *run, uint32_t len, struct fe_spec *spec)
{
	int rc;

	*spec = (struct fe_spec){.kind = FE_RAW, .len = len, .seq = run->seq++};
	fe_frame_build(&run->to_guest, spec, run->buf, NULL);
	rc = fe_host_send(run->host, NULL, run->buf, len);
	return rc == 0 ? 0 : fe_fault(&run->fault, "host send: %s", strerror(-rc));
}

static int
compare_received(struct rg_run *run, const struct fe_spec *spec, const uint8_t *data, uint32_t len)
{
	uint32_t seq = 0, diff;

	if (!fe_frame_seq(&run->to_guest, data, len, &seq) || seq != spec->seq)
		return fe_fault(&run->fault, "guest got frame %u of %u bytes, %u was due", seq, len,
			spec->seq);
	fe_frame_build(&run->to_guest, spec, run->expected, NULL);
	if (len != spec->len)
		return fe_fault(&run->fault, "guest got %u bytes of %u", len, spec->len);
	diff = (uint32_t)fe_first_diff(data, run->expected, len);
	if (diff != len)
		return fe_fault(
			&run->fault, "received frame %u differs at byte %u of %u", seq, diff, len);
	return 0;
}

int
rg_guest_expect(struct rg_run *run, const struct fe_spec *spec, struct fe_rxframe *f)
{
	uint64_t end = deadline(run);
	uint32_t seq;
	int rc;

	for (;;) {
		rc = fe_net_recv(run->net, 0, f);
		if (rc < 0)
			return fe_fault(&run->fault, "%s", fe_net_fault(run->net));
		if (rc == 0 && fe_now_us() > end)
			return fe_fault(&run->fault, "frame %u did not reach the guest", spec->seq);
		if (rc == 0)
			continue;
		if (fe_frame_seq(&run->to_guest, f->data, f->len, &seq))
			break;
		/* The host's own chatter, or a frame for an earlier guest: put a buffer back. */
		fe_net_post(run->net, 0, 1, 2048, 2048, NULL);
		fe_ring_kick(&run->net->rx[0].ring);
	}
	return compare_received(run, spec, f->data, f->len);
}

static int
add_good(struct rg_run *run, struct fe_spec *spec)
{
	struct fe_ring *r = &run->net->tx[0].ring;
	struct fe_raw_desc d = {.addr = run->slab, .len = rg_bytes(run, GOOD_BYTES)};
	uint8_t *p = fe_mem_ptr(&run->net->mem, run->slab);

	*spec = (struct fe_spec){.kind = FE_RAW, .len = GOOD_BYTES, .seq = run->seq++};
	memset(p, 0, run->net->hdr_bytes);
	fe_frame_build(&run->to_host, spec, p + run->net->hdr_bytes, NULL);
	if (fe_ring_add_raw(r, &d, 1, TOKEN_GOOD) < 0)
		return fe_fault(&run->fault, "test: no descriptor for a good frame");
	fe_ring_kick(r);
	return 0;
}

int
rg_good_tx(struct rg_run *run)
{
	struct fe_ring *r = &run->net->tx[0].ring;
	uint64_t end = deadline(run);
	struct fe_spec spec;
	struct fe_done d;
	int n;

	if (add_good(run, &spec) != 0)
		return -EPROTO;
	while ((n = fe_ring_used(r, &d, 1)) == 0)
		if (fe_now_us() > end)
			return fe_fault(&run->fault, "good frame: descriptor not used");
	if (n < 0)
		return fe_fault(&run->fault, "%s", r->fault.text);
	if (d.token != TOKEN_GOOD || d.len != 0)
		return fe_fault(&run->fault, "good frame: used token 0x%llx length %u",
			(unsigned long long)d.token, d.len);
	return rg_host_expect(run, &spec);
}

int
rg_good_rx(struct rg_run *run)
{
	struct fe_rxframe f;
	struct fe_spec spec;

	fe_net_post(run->net, 0, 1, 2048, 2048, NULL);
	fe_ring_kick(&run->net->rx[0].ring);
	if (rg_host_send(run, GOOD_BYTES, &spec) != 0)
		return -EPROTO;
	return rg_guest_expect(run, &spec, &f);
}

int
rg_await_chains(struct rg_run *run)
{
	uint64_t end = deadline(run);
	uint32_t left = run->n_chains;
	struct fe_done d;

	for (; left > 0; left--) {
		int n = next_used(run, &d, end);

		if (n < 0)
			return n;
		if (n == 0)
			return fe_fault(&run->fault, "%u of %u chains never came back%s", left,
				run->n_chains,
				fe_ring_take_error(run->ring) ? " (ring reported broken)" : "");
		if (d.token < RG_TOKEN)
			return fe_fault(
				&run->fault, "a later buffer came before a chain of the row");
		chain_done(run, &d);
	}
	return 0;
}

static int
all_empty(struct rg_run *run)
{
	for (uint32_t i = 0; i < run->n_chains; i++)
		if (run->chain[i].len != 0)
			return fe_fault(&run->fault, "chain %u came back with length %u", i,
				run->chain[i].len);
	return 0;
}

/* Transmitq: chains come back with length 0; of their frames all or none pass. */
static int
check_tx(struct rg_run *run, bool pass)
{
	if (rg_await_chains(run) != 0 || all_empty(run) != 0)
		return -EPROTO;
	for (uint32_t i = 0; pass && i < run->n_chains; i++)
		if (run->chain[i].has_frame && rg_host_expect(run, &run->chain[i].spec) != 0)
			return -EPROTO;
	return 0;
}

/*
 * Receiveq, chains that cannot be used: each comes back empty, and the frame that was
 * sent lands in the good buffer behind them.
 */
static int
check_rx_drop(struct rg_run *run)
{
	struct fe_rxframe f;
	struct fe_spec spec;

	fe_net_post(run->net, 0, 1, 2048, 2048, NULL);
	fe_ring_kick(run->ring);
	if (rg_host_send(run, GOOD_BYTES, &spec) != 0 || rg_await_chains(run) != 0 ||
		all_empty(run) != 0)
		return -EPROTO;
	return rg_guest_expect(run, &spec, &f);
}

/* Receiveq, a chain that may or may not take the frame: it only has to come back. */
static int
check_rx_return(struct rg_run *run)
{
	struct fe_spec spec;

	fe_net_post(run->net, 0, 1, 2048, 2048, NULL);
	fe_ring_kick(run->ring);
	if (rg_host_send(run, GOOD_BYTES, &spec) != 0)
		return -EPROTO;
	return rg_await_chains(run) != 0 ? -EPROTO : RG_RECONNECT;
}

/* Receiveq, a chain that is strange but right: the frame lies in it. */
static int
check_rx_pass(struct rg_run *run)
{
	uint32_t hdr = run->net->hdr_bytes;

	for (uint32_t i = 0; i < run->n_chains; i++) {
		struct rg_chain *c = &run->chain[i];
		uint32_t at = 0, left;
		struct fe_spec spec;
		struct fe_done d;
		int n;

		if (rg_host_send(run, GOOD_BYTES, &spec) != 0)
			return -EPROTO;
		n = next_used(run, &d, deadline(run));
		if (n <= 0)
			return fe_fault(&run->fault, "chain %u was not used", i);
		if (d.token != RG_TOKEN + i || d.len != hdr + spec.len)
			return fe_fault(&run->fault, "chain %u: used %llu with length %u, not %u",
				i, (unsigned long long)(d.token - RG_TOKEN), d.len, hdr + spec.len);
		left = d.len;
		for (uint32_t k = 0; k < c->nseg && left > 0; k++) {
			uint32_t take = left < c->seg[k].len ? left : c->seg[k].len;

			memcpy(run->buf + at, fe_mem_ptr(&run->net->mem, c->seg[k].gpa), take);
			at += take;
			left -= take;
		}
		if (compare_received(run, &spec, run->buf + hdr, spec.len) != 0)
			return -EPROTO;
	}
	return 0;
}

int
rg_passes(struct rg_run *run)
{
	fe_ring_kick(run->ring);
	return run->c->queue == RG_TX ? check_tx(run, true) : check_rx_pass(run);
}

/* The error fd is signalled, and after that the ring is left alone. */
static int
check_broken(struct rg_run *run)
{
	uint64_t end = deadline(run);
	struct fe_done d;
	struct fe_spec spec;

	while (!fe_ring_take_error(run->ring)) {
		if (fe_now_us() > end)
			return fe_fault(&run->fault, "the error fd was not signalled");
		usleep(100);
	}
	/* What was right in front of the fault may have come back; from now on nothing. */
	while (next_used(run, &d, 0) == 1)
		;
	if (run->c->queue == RG_TX) {
		if (add_good(run, &spec) != 0)
			return -EPROTO;
	} else {
		fe_net_post(run->net, 0, 1, 2048, 2048, NULL);
		if (rg_host_send(run, GOOD_BYTES, &spec) != 0)
			return -EPROTO;
	}
	fe_ring_kick_always(run->ring);
	usleep(QUIET_US);
	if (fe_ring_pending(run->ring))
		return fe_fault(&run->fault, "a broken ring is still served");
	return RG_RECONNECT;
}

static int
check_any(struct rg_run *run)
{
	uint64_t end = deadline(run);
	struct fe_spec spec;
	uint32_t left = run->n_chains;

	if (run->c->queue == RG_RX) {
		fe_net_post(run->net, 0, 1, 2048, 2048, NULL);
		fe_ring_kick(run->ring);
		if (rg_host_send(run, GOOD_BYTES, &spec) != 0)
			return -EPROTO;
	}
	/* Whichever comes first. */
	while (left > 0 && !fe_ring_take_error(run->ring)) {
		struct fe_done d;
		int n = next_used(run, &d, 0);

		if (n < 0)
			return n;
		left -= n > 0 && d.token >= RG_TOKEN;
		if (fe_now_us() > end)
			return fe_fault(&run->fault, "chains neither came back nor broke the ring");
	}
	return RG_RECONNECT;
}

int
rg_check(struct rg_run *run)
{
	bool tx = run->c->queue == RG_TX;

	if (tx && run->c->expect != RG_SELF)
		fe_ring_kick(run->ring);
	switch (run->c->expect) {
	case RG_DROP:
		return tx ? check_tx(run, false) : check_rx_drop(run);
	case RG_PASS:
		return rg_passes(run);
	case RG_RETURN:
		if (!tx)
			return check_rx_return(run);
		return check_tx(run, false) != 0 ? -EPROTO : RG_RECONNECT;
	case RG_BROKEN:
		fe_ring_kick(run->ring);
		return check_broken(run);
	case RG_ANY:
		return check_any(run);
	case RG_SELF:
		return 0;
	}
	return 0;
}
