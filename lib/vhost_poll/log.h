/* SPDX-License-Identifier: BSD-3-Clause */
/* One log type for the project; its level is set with --log-level vhp,LEVEL. */
#ifndef VHP_LOG_H
#define VHP_LOG_H

#include <rte_log.h>

extern int vhp_logtype;

/** One line; never on the path of a frame. The format has at least one argument. */
#define VHP_LOG(level, fmt, ...)                                                                   \
	rte_log(RTE_LOG_##level, vhp_logtype, "vhp: " fmt "\n", __VA_ARGS__)

#endif /* VHP_LOG_H */
