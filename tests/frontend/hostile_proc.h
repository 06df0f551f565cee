/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process holds, read from /proc: to see that nothing leaks. Any thread. */
#ifndef HOSTILE_PROC_H
#define HOSTILE_PROC_H

#include <stdbool.h>
#include <stdint.h>

#include "fe_util.h"

struct ho_proc {
	uint32_t fds;
	uint32_t maps;
	uint64_t rss_kb;
	uint64_t cpu_ms; /**< user and system, all threads, since its start */
};

/** @return 0 or -errno: the process is not there or may not be read. */
int ho_proc_read(int pid, struct ho_proc *p);

/** What may be more than before and is no leak. */
struct ho_slack {
	uint32_t fds, maps;
	uint64_t rss_kb;
};

/** Compare with @p before. 0, or -EPROTO with what has grown in @p fault. */
int ho_proc_flat(int pid, const struct ho_proc *before, const struct ho_slack *slack,
	struct fe_fault *fault);

#endif
