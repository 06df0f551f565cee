/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tap by io_uring: a burst of frames is one system call, and whether a frame waits is
 * a load from memory.
 *
 * Readiness: a read that found nothing ends "readable", and the next look arms a poll of one
 * shot, which the kernel completes at once if a frame came in between. The completion, or the
 * kernel's mark that it has one to post, makes it readable again. While frames pour in no poll
 * is armed: one that stays armed costs a completion for each frame.
 *
 * A completion is taken before a read, never after it: one that shows after a read belongs to
 * an arrival that the read may not have seen.
 *
 * A ring belongs to the thread that submits to it. When the queue moves to another poller,
 * or its interface was deleted and came back, the ring is made anew.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdlib.h>

#include <rte_branch_prediction.h>
#include <rte_lcore.h>

#include "log.h"
#include "tap_priv.h"

/* Completions that are not of a frame's index. */
#define POLL_DATA  UINT64_MAX
#define SQ_ENTRIES (2 * VHP_BURST_PKTS)

struct tap_uring {
	struct io_uring ring;
	unsigned int lcore;
	uint32_t generation; /* of the queue, when the ring was made */
	bool readable;       /* the last read found a frame, or nobody read since one came */
	bool armed;          /* the kernel has the poll, or its completion was not taken yet */
};

static void
arm_poll(struct tap_uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	io_uring_prep_poll_add(sqe, 0, POLLIN);
	sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data64(sqe, POLL_DATA);
	u->armed = io_uring_submit(&u->ring) == 1;
	if (unlikely(!u->armed)) {
		/* It must not be with the next burst: a new ring, and until then by reading. */
		u->generation--;
		u->readable = true;
	}
}

static int
make_ring(struct tap_queue *q, struct tap_uring *u)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	};
	int ret = io_uring_queue_init_params(SQ_ENTRIES, &u->ring, &params);

	if (ret < 0)
		return ret;
	ret = io_uring_register_files(&u->ring, &q->pq.fd, 1);
	if (ret < 0) {
		io_uring_queue_exit(&u->ring);
		return ret;
	}
	u->lcore = rte_lcore_id();
	u->generation = __atomic_load_n(&q->generation, __ATOMIC_ACQUIRE);
	u->readable = true;
	u->armed = false;
	return 0;
}

int
tap_uring_open(struct tap_queue *q)
{
	struct tap_uring *u = calloc(1, sizeof(*u));
	int ret;

	if (u == NULL)
		return -ENOMEM;
	ret = make_ring(q, u);
	if (ret < 0) {
		free(u);
		return ret;
	}
	q->uring = u;
	return 0;
}

void
tap_uring_close(struct tap_queue *q)
{
	struct io_uring_sync_cancel_reg all = {
		.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
		.timeout = {-1, -1},
	};

	if (q->uring == NULL)
		return;
	/* Else the kernel keeps the tap, and its interface, for a while. */
	io_uring_register_sync_cancel(&q->uring->ring, &all);
	io_uring_unregister_files(&q->uring->ring);
	io_uring_queue_exit(&q->uring->ring);
	free(q->uring);
	q->uring = NULL;
}

bool
tap_uring_current(struct tap_queue *q)
{
	struct tap_uring *u = q->uring;

	if (likely(u->lcore == rte_lcore_id() &&
		    u->generation == __atomic_load_n(&q->generation, __ATOMIC_RELAXED)))
		return true;
	io_uring_queue_exit(&u->ring);
	if (make_ring(q, u) == 0)
		return true;
	free(u);
	q->uring = NULL;
	return false;
}

/* Take what is in the completion ring; results[] by frame, where frames were sent. */
static void
reap(struct tap_uring *u, int *results)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		if (cqe->user_data == POLL_DATA) {
			u->readable = true;
			u->armed = false;
		} else if (results != NULL) {
			results[cqe->user_data] = cqe->res;
		}
		n++;
	}
	io_uring_cq_advance(&u->ring, n);
}

bool
tap_uring_readable(struct tap_queue *q)
{
	struct tap_uring *u = q->uring;

	if (io_uring_cq_ready(&u->ring) > 0)
		reap(u, NULL);
	if (u->readable)
		return true;
	if (!u->armed) {
		arm_poll(u);
		if (io_uring_cq_ready(&u->ring) > 0)
			reap(u, NULL);
	}
	/* A mark says that a completion is to come: the read to come makes the kernel post it. */
	return u->readable || unlikely(IO_URING_READ_ONCE(*u->ring.sq.kflags) & IORING_SQ_TASKRUN);
}

void
tap_uring_drained(struct tap_queue *q)
{
	q->uring->readable = false;
}

/* Submit and wait for all; the kernel completes writes to a tap while it takes them. */
static void
submit(struct tap_uring *u, unsigned int n, int *results)
{
	unsigned int done = 0;

	while (done < n) {
		int ret = io_uring_submit_and_wait(&u->ring, n - done);

		if (ret >= 0)
			done += ret;
		else if (ret != -EINTR)
			break;
		reap(u, results);
	}
	if (unlikely(done < n))
		/* The rest was not taken; it must not be with the next burst. */
		u->generation--;
}

void
tap_uring_tx(struct tap_queue *q, const struct vhp_frame *frames, uint16_t n, int *results)
{
	struct tap_uring *u = q->uring;
	unsigned int submitted = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct io_uring_sqe *sqe;

		results[i] = 0;
		if (unlikely(frames[i].drop != VHP_OK))
			continue;
		sqe = io_uring_get_sqe(&u->ring);
		if (frames[i].n_iov == 1)
			io_uring_prep_write(
				sqe, 0, frames[i].iov->iov_base, frames[i].iov->iov_len, 0);
		else
			io_uring_prep_writev(sqe, 0, frames[i].iov, frames[i].n_iov, 0);
		sqe->flags |= IOSQE_FIXED_FILE;
		io_uring_sqe_set_data64(sqe, i);
		/* What became of it if nobody tells: the kernel was short of memory. */
		results[i] = -ENOMEM;
		submitted++;
	}
	if (submitted > 0)
		submit(u, submitted, results);
}
