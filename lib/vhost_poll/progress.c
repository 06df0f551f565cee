/* SPDX-License-Identifier: BSD-3-Clause */
/* Do all pollers come round? For the service manager's watchdog. */
#include "poller.h"

/* As of the last question; main thread. */
static uint64_t passes_seen[RTE_MAX_LCORE];

bool
vhp_pollers_progress(void)
{
	bool all = true;

	for (unsigned int i = 0; i < vhp_poller_count() && i < RTE_MAX_LCORE; i++) {
		const struct vhp_poller_stats *s = &vhp_poller_get(i)->stats;
		uint64_t passes = __atomic_load_n(&s->passes, __ATOMIC_RELAXED);
		bool asleep = __atomic_load_n(&s->asleep_since_tsc, __ATOMIC_RELAXED) != 0;

		all = all && (asleep || passes != passes_seen[i]);
		passes_seen[i] = passes;
	}
	return all;
}
