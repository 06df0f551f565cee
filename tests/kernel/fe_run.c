// SPDX-License-Identifier: BSD-3-Clause
/*
 * Traffic of the test front end. One thread is source and front end at once: on
 * two CPUs a third busy thread would end the polling that is measured, since
 * vhost's worker stops to poll as soon as somebody else wants its CPU.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fe.h"

#define GAP_US   10000u
#define STALL_US 4000u
#define DRAIN_US 3000000u

/* What one run saw. */
struct run {
	uint32_t seq;      /* next frame of the source */
	uint64_t rx_pkts;  /* frames in the receive ring */
	uint64_t tx_pkts;  /* answers put into the transmit ring */
	uint64_t back;     /* answers that came out at the host side */
	uint64_t bad;      /* wrong bytes, wrong length, wrong header */
	uint64_t disorder; /* receive out of order */
	uint64_t gaps;     /* silences of GAP_US or more */
	uint64_t stalls;   /* this thread itself did not run for STALL_US or more */
	uint64_t max_gap_us;
	uint64_t last_us; /* when a frame was received last */
	uint32_t expect;
	unsigned unseen; /* answers put since the source socket was read */
};

static void
take_one(struct fe *fe, struct run *r, const struct vring_used_elem *e, bool answer)
{
	struct fe_vq *vq = &fe->vq[FE_RX];
	const uint8_t *buf = vq->bufs + (size_t)e->id * FE_BUF_BYTES;
	uint16_t num_buffers;
	int64_t seq;

	memcpy(&num_buffers, buf + 10, sizeof(num_buffers));
	seq = fe_frame_check(buf + FE_HDR_BYTES, e->len - FE_HDR_BYTES, fe->o.frame_bytes);
	if (seq < 0 || num_buffers != 1)
		r->bad++;
	else if ((uint32_t)seq != r->expect)
		r->disorder++;
	r->expect = (uint32_t)seq + 1;
	r->rx_pkts++;
	if (answer && seq % 2 == 0) {
		/* The ring has room for every answer to the frames in flight. */
		if (fe_tx_put(fe, buf + FE_HDR_BYTES, fe->o.frame_bytes)) {
			r->tx_pkts++;
			r->unseen++;
		}
	}
	fe_rx_repost(vq, e->id);
}

static bool
take_received(struct fe *fe, struct run *r, bool answer)
{
	struct fe_vq *vq = &fe->vq[FE_RX];
	const struct vring_used_elem *e;
	uint64_t now;
	unsigned n = 0;

	while (n < 64 && (e = fe_used(vq)) != NULL) {
		take_one(fe, r, e, answer);
		n++;
	}
	if (!n)
		return false;
	now = fe_now_us();
	if (now - r->last_us >= GAP_US)
		r->gaps++;
	if (now - r->last_us > r->max_gap_us)
		r->max_gap_us = now - r->last_us;
	r->last_us = now;
	fe_publish(fe, vq);
	return true;
}

static void
turn(struct fe *fe, struct run *r, bool send, bool answer)
{
	bool busy;

	if (send && r->seq - (uint32_t)r->rx_pkts < fe->o.flight)
		r->seq += fe_src_send(fe, r->seq, fe->o.flight - (r->seq - (uint32_t)r->rx_pkts));
	busy = take_received(fe, r, answer);
	fe_tx_reclaim(fe);
	fe_publish(fe, &fe->vq[FE_TX]);
	/* A system call costs more than all of the above: only when it pays. */
	if (answer && (r->unseen >= 32 || (!send && !busy))) {
		r->back += fe_src_recv(fe, &r->bad);
		r->unseen = 0;
	}
}

static void
start_both(struct fe *fe)
{
	fe_rx_fill(&fe->vq[FE_RX], fe, fe->o.ring);
	fe_publish(fe, &fe->vq[FE_RX]);
}

int
fe_run_traffic(struct fe *fe)
{
	bool answer = !strcmp(fe->o.mode, "echo");
	struct run r = {0};
	uint64_t start, prev, end, stop, kicks_rx, kicks_tx, n;
	double secs;

	start_both(fe);
	if (!fe->o.socket && (fe_kernel_start(fe, FE_RX) || fe_kernel_start(fe, FE_TX)))
		return 1;
	if (fe->o.socket && fe_user_start(fe))
		return 1;
	if (fe_src_open(fe))
		return 1;

	r.last_us = prev = start = fe_now_us();
	stop = start + fe->o.seconds * 1000000ull;
	while ((end = fe_now_us()) < stop) {
		r.stalls += end - prev >= STALL_US;
		prev = end;
		turn(fe, &r, true, answer);
	}
	n = r.rx_pkts;
	kicks_rx = fe->vq[FE_RX].kicks;
	kicks_tx = fe->vq[FE_TX].kicks;
	secs = (double)(end - start) / 1e6;
	printf("mode=%s rx_pkts=%llu secs=%.2f rx_per_s=%.0f gaps_per_s=%.2f max_gap_us=%llu "
	       "kicks_rx=%llu kicks_tx=%llu kicks_pct=%.3f stalls_per_s=%.1f",
		fe->o.mode, (unsigned long long)n, secs, (double)n / secs, (double)r.gaps / secs,
		(unsigned long long)r.max_gap_us, (unsigned long long)kicks_rx,
		(unsigned long long)kicks_tx,
		n ? 100.0 * (double)(kicks_rx + kicks_tx) / (double)(n + r.tx_pkts) : 0.0,
		(double)r.stalls / secs);

	while (fe_now_us() < end + DRAIN_US &&
		((uint32_t)r.rx_pkts != r.seq || (answer && r.back != r.tx_pkts)))
		turn(fe, &r, false, answer);
	printf(" tx_pkts=%llu back=%llu lost=%lld bad=%llu disorder=%llu\n",
		(unsigned long long)r.tx_pkts, (unsigned long long)r.back,
		(long long)(r.seq - (uint32_t)r.rx_pkts) + (long long)(r.tx_pkts - r.back),
		(unsigned long long)r.bad, (unsigned long long)r.disorder);
	return !(n && (uint32_t)r.rx_pkts == r.seq && (!answer || r.back == r.tx_pkts) && !r.bad &&
		 !r.disorder);
}

/*
 * Transmit frames one at a time with a pause that is far below the window: a
 * back end that polls while it waits needs a kick for the first of them only.
 */
int
fe_run_paced(struct fe *fe)
{
	const uint64_t pause_us = 300;
	uint8_t frame[FE_BUF_BYTES];
	uint64_t bad = 0, back = 0, stop, next;
	uint32_t seq = 0;

	start_both(fe);
	if (fe_kernel_start(fe, FE_RX) || fe_kernel_start(fe, FE_TX) || fe_src_open(fe))
		return 1;
	usleep(50000); /* the worker has been woken by both starts: let it go to sleep */
	stop = fe_now_us() + fe->o.seconds * 1000000ull;
	while ((next = fe_now_us()) < stop) {
		fe_frame_build(frame, fe->o.frame_bytes, seq);
		if (fe_tx_put(fe, frame, fe->o.frame_bytes))
			seq++;
		fe_publish(fe, &fe->vq[FE_TX]);
		while (fe_now_us() < next + pause_us)
			fe_tx_reclaim(fe);
	}
	stop += DRAIN_US;
	while (back < seq && fe_now_us() < stop)
		back += fe_src_recv(fe, &bad);
	printf("mode=paced tx_pkts=%u back=%llu bad=%llu kicks_tx=%llu kicks_rx=%llu "
	       "kicks_pct=%.2f\n",
		seq, (unsigned long long)back, (unsigned long long)bad,
		(unsigned long long)fe->vq[FE_TX].kicks, (unsigned long long)fe->vq[FE_RX].kicks,
		seq ? 100.0 * (double)fe->vq[FE_TX].kicks / seq : 0.0);
	return !(seq && back == seq && !bad);
}

/* Only the source: somebody else serves DEV and sends every frame back. */
int
fe_run_bounce(struct fe *fe)
{
	uint64_t bad = 0, back = 0, start, stop, limit;
	uint32_t seq = 0;

	if (fe_src_open(fe))
		return 1;
	start = fe_now_us();
	stop = start + fe->o.seconds * 1000000ull;
	limit = stop + DRAIN_US;
	for (uint64_t now = start; now < stop || (now < limit && back < seq); now = fe_now_us()) {
		if (now < stop && seq - (uint32_t)back < fe->o.flight)
			seq += fe_src_send(fe, seq, fe->o.flight - (seq - (uint32_t)back));
		back += fe_src_recv(fe, &bad);
	}
	printf("mode=bounce sent=%u back=%llu bad=%llu\n", seq, (unsigned long long)back,
		(unsigned long long)bad);
	return !(seq && back == seq && !bad);
}
