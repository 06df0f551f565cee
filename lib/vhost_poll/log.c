/* SPDX-License-Identifier: BSD-3-Clause */
#include <time.h>

#include "log.h"

/* Lines a front end can cause in a second. */
#define LINES_PER_SECOND 10

RTE_LOG_REGISTER(vhp_logtype, vhp, INFO)

bool
vhp_log_limit_pass(struct vhp_log_limit *limit)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec != limit->second) {
		if (limit->suppressed > 0)
			VHP_LOG(WARNING, "%u more lines of this kind were left out",
				limit->suppressed);
		*limit = (struct vhp_log_limit){.second = now.tv_sec};
	}
	if (limit->lines++ < LINES_PER_SECOND)
		return true;
	limit->suppressed++;
	return false;
}
