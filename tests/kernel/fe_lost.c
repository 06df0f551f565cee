// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two orders of events that a back end must get right, made on purpose: a refill
 * while the transmit side polls (hang), and both kinds of work queued before the
 * worker runs (pair).
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fe.h"

#define WAITING_PKTS 40u
#define ROUND_MAX    64u

static bool
wait_used(struct fe *fe, unsigned *got, unsigned want, uint64_t limit_us, bool repost)
{
	const struct vring_used_elem *e;
	uint64_t stop = fe_now_us() + limit_us;

	while (*got < want && fe_now_us() < stop) {
		while ((e = fe_used(&fe->vq[FE_RX])) != NULL) {
			(*got)++;
			if (repost)
				fe_rx_repost(&fe->vq[FE_RX], e->id);
		}
		if (repost)
			fe_publish(fe, &fe->vq[FE_RX]);
	}
	return *got >= want;
}

static int
round_open(struct fe *fe)
{
	if (fe_mem_init(fe) || fe_kernel_open(fe) || fe_kernel_pin_worker(fe))
		return -1;
	return fe_src_open(fe);
}

static void
round_close(struct fe *fe)
{
	close(fe->src_fd);
	fe_kernel_close(fe);
	close(fe->mem_fd);
}

static void
send_tx(struct fe *fe)
{
	uint8_t frame[FE_BUF_BYTES];

	fe_frame_build(frame, fe->o.frame_bytes, 0);
	fe_tx_put(fe, frame, fe->o.frame_bytes);
}

/* 1: all frames arrived, 0: receive hangs, -1: could not be tried. */
static int
hang_round(struct fe *fe)
{
	unsigned got = 0;
	uint64_t until;

	if (round_open(fe))
		return -1;
	fe_rx_fill(&fe->vq[FE_RX], fe, fe->o.ring);
	fe_publish(fe, &fe->vq[FE_RX]);
	/* These wait in the tap; vhost takes all of them in its first batch. */
	if (fe_src_send(fe, 0, 32) + fe_src_send(fe, 32, WAITING_PKTS - 32) != WAITING_PKTS)
		return -1;
	if (fe_kernel_start(fe, FE_TX) || fe_kernel_start(fe, FE_RX))
		return -1;
	if (!wait_used(fe, &got, fe->o.ring, 1000000, false))
		return -1;
	/* Past any window of its own, receive waits for buffers now. */
	usleep(fe->o.window_us + 20000);

	send_tx(fe);
	fe_publish(fe, &fe->vq[FE_TX]);
	until = fe_now_us() + fe->o.window_us / 4;
	while (fe_now_us() < until)
		;
	for (unsigned i = 0; i < fe->o.ring; i++)
		fe_rx_repost(&fe->vq[FE_RX], i);
	fe_publish(fe, &fe->vq[FE_RX]);
	wait_used(fe, &got, WAITING_PKTS, 10ull * fe->o.window_us + 500000, true);
	round_close(fe);
	return got == WAITING_PKTS;
}

int
fe_run_hang(struct fe *fe)
{
	unsigned hangs = 0;

	for (unsigned i = 0; i < fe->o.rounds; i++) {
		int r = hang_round(fe);

		if (r < 0)
			return 1;
		hangs += !r;
	}
	printf("mode=hang rounds=%u hangs=%u\n", fe->o.rounds, hangs);
	return 0;
}

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/*
 * Both kinds of work are queued while the worker cannot run, because a thread of
 * higher priority has its CPU; then the CPU is left to it. Returns the time until
 * the frame is in the receive ring, in us, or -1.
 */
static int64_t
pair_round(struct fe *fe)
{
	struct sched_param rt = {.sched_priority = 10}, normal = {0};
	unsigned got = 0;
	uint64_t start;
	int64_t us = -1;

	if (round_open(fe))
		return -1;
	fe_rx_fill(&fe->vq[FE_RX], fe, fe->o.ring);
	fe_publish(fe, &fe->vq[FE_RX]);
	if (fe_kernel_start(fe, FE_TX) || fe_kernel_start(fe, FE_RX))
		return -1;
	usleep(2 * fe->o.window_us + 20000); /* asleep: receive on its socket, transmit on kicks */

	if (fe_pin_self(fe->o.vhost_cpu) || sched_setscheduler(0, SCHED_FIFO, &rt))
		return -1;
	send_tx(fe);
	fe_publish(fe, &fe->vq[FE_TX]);
	start = fe_now_us();
	if (fe_src_send(fe, 0, 1) == 1 && !fe_pin_self(fe->o.cpu) &&
		wait_used(fe, &got, 1, 20ull * fe->o.window_us, false))
		us = (int64_t)(fe_now_us() - start);
	sched_setscheduler(0, SCHED_OTHER, &normal);
	round_close(fe);
	return us;
}

int
fe_run_pair(struct fe *fe)
{
	unsigned n = fe->o.rounds < ROUND_MAX ? fe->o.rounds : ROUND_MAX;
	uint64_t us[ROUND_MAX];

	for (unsigned i = 0; i < n; i++) {
		int64_t r = pair_round(fe);

		if (r < 0)
			return 1;
		us[i] = (uint64_t)r;
	}
	qsort(us, n, sizeof(us[0]), by_value);
	printf("mode=pair rounds=%u window_us=%u min_us=%llu median_us=%llu max_us=%llu\n", n,
		fe->o.window_us, (unsigned long long)us[0], (unsigned long long)us[n / 2],
		(unsigned long long)us[n - 1]);
	return 0;
}
