/* SPDX-License-Identifier: BSD-3-Clause */
/* One log type for the project; its level is set with --log-level vhp,LEVEL. */
#ifndef VHP_LOG_H
#define VHP_LOG_H

#include <stdbool.h>

#include <rte_log.h>

extern int vhp_logtype;

/** One line; never on the path of a frame. The format has at least one argument. */
#define VHP_LOG(level, fmt, ...)                                                                   \
	rte_log(RTE_LOG_##level, vhp_logtype, "vhp: " fmt "\n", __VA_ARGS__)

/** Keeps a front end from filling the log. Main thread; all zero at first. */
struct vhp_log_limit {
	long second;
	unsigned int lines;
	unsigned int suppressed;
};

/** May one more line be written in this second? */
bool vhp_log_limit_pass(struct vhp_log_limit *limit);

/** VHP_LOG for what a front end can cause as often as it likes. */
#define VHP_LOG_LIMITED(limit, level, fmt, ...)                                                    \
	do {                                                                                       \
		if (vhp_log_limit_pass(limit))                                                     \
			VHP_LOG(level, fmt, __VA_ARGS__);                                          \
	} while (0)

#endif /* VHP_LOG_H */
