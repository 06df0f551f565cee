/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's environment abstraction layer: its arguments, its start with its threads off
 * the pollers' CPUs, its end with nothing left on the host.
 */
#ifndef APP_EAL_H
#define APP_EAL_H

#include <stdio.h>

#include "config.h"
#include "lcores.h"
#include "mistake.h"

/** What EAL is started with. */
struct eal {
	const struct config *config;
	struct lcores lcores;
	char lcores_text[LCORES_TEXT_BYTES]; /**< value of our --lcores, "" if the user's hold */
	char **argv;                         /**< owned, the strings are not */
	int argc;
	bool no_huge; /**< --no-huge is ours */
};

/**
 * Choose lcores and memory, check what the user chose; nothing is created. The
 * configuration must outlive *eal.
 * @return 0, -EINVAL or -ENOMEM with *why filled
 */
int eal_prepare(const struct config *config, struct eal *eal, struct mistake *why);

/** Does every device name a poller that there is? 0 or -EINVAL with *why filled. */
int eal_check_pollers(const struct config *config, unsigned int n_pollers, struct mistake *why);

/**
 * rte_eal_init(). The caller's thread is bound to the CPUs of the main lcore, and so is
 * every thread that it makes from then on. Notes for the user go to standard error.
 * @return 0, or -EINVAL with *why filled
 */
int eal_start(const struct eal *eal, struct mistake *why);

/** rte_eal_cleanup(). What EAL leaves in its runtime directory is removed at exit. */
void eal_stop(void);

/** Free what eal_prepare() allocated. */
void eal_free(struct eal *eal);

#endif /* APP_EAL_H */
