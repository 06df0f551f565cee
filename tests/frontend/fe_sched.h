/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long threads had to wait for a CPU.
 *
 * A test that asserts a latency on a busy machine has to tell a program that is late
 * from one that was not let run: runnable threads wait (run delay in schedstat), and
 * under a hypervisor whole CPUs do (steal time). One object per testing thread.
 */
#ifndef FE_SCHED_H
#define FE_SCHED_H

#include <stdint.h>

#define FE_SCHED_THREADS_MAX 64

struct fe_sched {
	int fds[FE_SCHED_THREADS_MAX]; /**< schedstat files */
	uint32_t n, n_own;             /**< all, and of them the caller's: they come first */
	int stat_fd;
	uint64_t waited_ns[FE_SCHED_THREADS_MAX]; /**< at the last fe_sched_mark() */
	uint64_t steal;
};

/**
 * Watch the calling process and, with @p pid > 0, all threads that process @p pid has now.
 * Undo with fe_sched_close(). What cannot be read counts as never having waited.
 */
void fe_sched_open(struct fe_sched *s, int pid);

void fe_sched_close(struct fe_sched *s);

/** Remember how much waiting there has been so far; some microseconds. */
void fe_sched_mark(struct fe_sched *s);

/**
 * Nanoseconds of waiting since the mark: the thread of each side that waited longest, and stolen
 * time, added up.
 */
uint64_t fe_sched_waited_ns(struct fe_sched *s);

#endif
