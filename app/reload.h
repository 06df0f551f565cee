/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What has to be done to come from one configuration to another while traffic flows: a
 * plan, made without touching anything. service.c carries it out.
 */
#ifndef APP_RELOAD_H
#define APP_RELOAD_H

#include <stdio.h>

#include "config.h"

/** What becomes of a pair of the new configuration. */
enum reload_action {
	RELOAD_KEEP,    /**< not touched */
	RELOAD_CHANGE,  /**< values that change under traffic: poll-us, mtu, rates */
	RELOAD_REPLACE, /**< made anew: something else of one of its devices differs */
	RELOAD_ADD,     /**< did not exist */
	RELOAD_ACTIONS,
};

struct reload_pair {
	enum reload_action action;
	int old; /**< index of the pair it is or was, -1 with RELOAD_ADD */
};

/**
 * Compare two configurations, both paired and their users resolved.
 * @param plan  (output) one for each pair of the new one
 * @return 0, or -EINVAL with *why filled if that cannot be done while running
 */
int reload_plan(const struct config *running, const struct config *next, struct reload_pair *plan,
	struct mistake *why);

/** One line if something differs that only a restart changes; nothing else is done about it. */
void reload_print_deferred(const struct config *running, const struct config *next, FILE *out);

#endif /* APP_RELOAD_H */
