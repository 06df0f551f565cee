/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line: EAL's options and the devices before "--", the daemon's own
 * options after it.
 */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include <stdio.h>

#include "config.h"

/**
 * Read the command line, and the file of --config, into a configuration made by
 * config_init(); prints nothing.
 * Devices are read and added, not yet paired. --help and --version end the reading.
 * Uses getopt's global state: one thread.
 * @param argv  must live as long as the configuration
 * @return 0, -EINVAL or -ENOMEM with *why filled
 */
int options_parse(int argc, char **argv, struct config *config, struct mistake *why);

/**
 * Set one of the daemon's own options by its name, as [options] of the file has it. One
 * that the command line has, too, is checked and not used.
 * @return 0 or -EINVAL with *why filled
 */
int options_set(struct config *config, const char *name, const char *value, struct mistake *why);

/** Print --help: the options, the devices and their keys. */
void options_help(FILE *out);

#endif /* APP_OPTIONS_H */
