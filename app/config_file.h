/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The INI file of --config: [options] takes the daemon's options, [poller N] the CPU of
 * a poller, every other section is a device and takes the keys of its kind.
 */
#ifndef APP_CONFIG_FILE_H
#define APP_CONFIG_FILE_H

#include "config.h"

/**
 * Read config->file and add what it says. Devices come in the order of the sections,
 * after those of the command line; an option that the command line has too is checked and
 * not used.
 * @return 0, -EINVAL or -ENOMEM with *why filled: file, section, key, value, what is allowed
 */
int config_file_read(struct config *config, struct mistake *why);

#endif /* APP_CONFIG_FILE_H */
