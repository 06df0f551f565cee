/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which lcore runs on which CPUs: what -l, -c, --lcores and the rest of EAL's options
 * about lcores mean, known before EAL starts. Pure functions.
 */
#ifndef APP_LCORES_H
#define APP_LCORES_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include <rte_config.h>

#include "config.h"
#include "mistake.h"

/** Room for any set of CPUs, or any lcores of lcores_default(), as text. */
#define LCORES_TEXT_BYTES 4096

/** The lcores of an EAL. */
struct lcores {
	bool used[RTE_MAX_LCORE];
	bool service[RTE_MAX_LCORE];   /**< of -s and -S: no poller */
	cpu_set_t cpus[RTE_MAX_LCORE]; /**< where a used one may run */
	unsigned int main;             /**< lcore of the main thread */
	unsigned int n_pollers;        /**< the others; poller i is the i-th in rising order */
};

/**
 * Read the options that the user gave (eal->lcores is not NULL).
 * @param available  CPUs that a thread may be bound to
 * @return 0 or -EINVAL with *why filled
 */
int lcores_parse(const struct eal_conf *eal, const cpu_set_t *available, struct lcores *out,
	struct mistake *why);

/**
 * Choose for a user who gave none: one poller, lcore 1, on the highest CPU, and the main
 * thread, lcore 0, on all others; on a single CPU both share it.
 * @param allowed  CPUs that this process was given; one at least
 */
void lcores_default(const cpu_set_t *allowed, struct lcores *out);

/**
 * One poller on each of these CPUs, in their order, lcores 1 and up; the main thread, lcore
 * 0, on all others, or if there is none, on all.
 * @param cpus       n of them, all different, 0..CPU_SETSIZE-1
 * @param available  CPUs that a thread may be bound to
 * @return 0 or -EINVAL with *why filled
 */
int lcores_pollers(const int *cpus, unsigned int n, const cpu_set_t *available, struct lcores *out,
	struct mistake *why);

/** The lcores as a value for --lcores, "0@(0-2),1@3". Returns out. */
const char *lcores_option(const struct lcores *lcores, char *out, size_t out_bytes);

/** CPUs of all pollers. */
void lcores_poller_cpus(const struct lcores *lcores, cpu_set_t *out);

/** A set of CPUs as "0-2,5". Returns out. */
const char *lcores_cpus_text(const cpu_set_t *cpus, char *out, size_t out_bytes);

#endif /* APP_LCORES_H */
