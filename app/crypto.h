/* SPDX-License-Identifier: BSD-3-Clause */
/* The crypto devices of the configuration, and the cryptodevs that they use. */
#ifndef APP_CRYPTO_H
#define APP_CRYPTO_H

#include "config.h"

struct crypto_devices;

/**
 * Is each one's cryptodev among the devices? Gives them what the options say.
 * @return 0 or -EINVAL with *why filled
 */
int crypto_check(struct config *config, struct mistake *why);

/**
 * Start the cryptodevs. After EAL, on the main thread.
 * @param out  (output) also on error; crypto_close() ends it
 * @return 0 or -errno, logged
 */
int crypto_open(const struct config *config, struct crypto_devices **out);

/** Make the devices and their sockets. Returns 0 or -errno, logged. */
int crypto_create(struct crypto_devices *crypto, struct vhp_loop *loop);

/** The devices end, before the pollers. Takes NULL. */
void crypto_destroy(struct crypto_devices *crypto);

/** The cryptodevs end; frees everything. Takes NULL. */
void crypto_close(struct crypto_devices *crypto);

#endif /* APP_CRYPTO_H */
