/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-tap: what the kernel's side of a tap costs by itself. It makes a tap and writes
 * frames of one buffer to it, reads frames from it into one buffer, or both in turn, for as
 * long as it is told; no ring, no guest. Writes go by io_uring in batches.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <liburing.h>

#include "bench_util.h"
#include "fe_util.h"

#define BATCH      32
#define BUF_BYTES  2048
#define WARM_UP_NS 300000000ULL
#define TOKEN_READ 1ULL

enum mode { TX, RX, BOTH };

static const char *const modes[] = {"tx", "rx", "both", NULL};

struct run {
	struct io_uring ring;
	int fd;
	enum mode mode;
	uint32_t bytes;
	uint64_t n_read, n_written, n_empty;
	uint8_t out[BUF_BYTES], in[BUF_BYTES];
	struct iovec iov[2];
};

/* A burst of writes with one system call, as the kernel completes them while it takes them. */
static void
write_batch(struct run *r)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	for (int i = 0; i < BATCH; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);

		io_uring_prep_writev(sqe, 0, &r->iov[0], 1, 0);
		sqe->flags |= IOSQE_FIXED_FILE;
	}
	if (io_uring_submit_and_wait(&r->ring, BATCH) < 0)
		bn_die("io_uring_submit_and_wait");
	io_uring_for_each_cqe(&r->ring, head, cqe)
	{
		n++;
		r->n_written += cqe->res > 0;
	}
	io_uring_cq_advance(&r->ring, n);
}

/* By readv: io_uring would wait for a frame where none is. */
static void
read_batch(struct run *r)
{
	for (int i = 0; i < BATCH; i++) {
		if (readv(r->fd, &r->iov[1], 1) < 0) {
			r->n_empty++;
			break;
		}
		r->n_read++;
	}
}

static void
loop(struct run *r, uint64_t ns)
{
	uint64_t end = fe_now_ns() + ns;

	while (fe_now_ns() < end && !bn_stop) {
		if (r->mode != RX)
			write_batch(r);
		if (r->mode != TX)
			read_batch(r);
	}
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {{"iface", 1, NULL, 'i'}, {"mode", 1, NULL, 'm'},
		{"bytes", 1, NULL, 'b'}, {"ms", 1, NULL, 't'}, {"cpu", 1, NULL, 'c'},
		{NULL, 0, NULL, 0}};
	static struct run r = {.bytes = 64};
	const char *iface = "tap0";
	uint64_t ns = 1000000000, begin;
	struct io_uring_params params = {
		.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG};
	int c, cpu = 1;
	double s;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'i':
			iface = optarg;
			break;
		case 'm':
			r.mode = fe_opt_choice("--mode", optarg, modes);
			break;
		case 'b':
			r.bytes = fe_opt_number("--bytes", optarg, BN_FRAME_MIN, BN_FRAME_MAX);
			break;
		case 't':
			ns = fe_opt_number("--ms", optarg, 10, 3600000) * 1000000;
			break;
		case 'c':
			cpu = fe_opt_number("--cpu", optarg, 0, 1023);
			break;
		default:
			return 2;
		}
	}
	bn_catch_signals();
	bn_pin(cpu);
	r.fd = bn_tap_open(iface, 0);
	if (io_uring_queue_init_params(4 * BATCH, &r.ring, &params) < 0 ||
		io_uring_register_files(&r.ring, &r.fd, 1) < 0)
		bn_die("io_uring");
	bn_frame_fill(r.out + BN_HDR_BYTES, r.bytes);
	r.iov[0] = (struct iovec){r.out, BN_HDR_BYTES + r.bytes};
	r.iov[1] = (struct iovec){r.in, sizeof(r.in)};
	fprintf(stderr, "ready\n");
	loop(&r, WARM_UP_NS);
	r.n_read = r.n_written = r.n_empty = 0;
	begin = fe_now_ns();
	loop(&r, ns);
	s = (double)(fe_now_ns() - begin) / 1e9;
	printf("{\"to_host_mpps\": %.6f, \"to_guest_mpps\": %.6f, \"empty_mpps\": %.6f}\n",
		(double)r.n_written / s / 1e6, (double)r.n_read / s / 1e6,
		(double)r.n_empty / s / 1e6);
	close(r.fd);
	return 0;
}
