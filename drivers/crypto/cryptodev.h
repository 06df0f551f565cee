/* SPDX-License-Identifier: BSD-3-Clause */
/* Engine on a cryptodev of DPDK's (crypto_openssl, crypto_aesni_mb, ...); see vhp_crypto.h. */
#ifndef VHP_CRYPTODEV_H
#define VHP_CRYPTODEV_H

#include "vhp_crypto.h"

/** One cryptodev. */
struct vhp_cryptodev_conf {
	char name[64];     /**< "crypto_openssl0", as given to EAL by --vdev */
	uint16_t n_queues; /**< virtio-crypto devices that use it */
	uint32_t sessions; /**< of all of them */
};

/**
 * Configure and start the cryptodev. Main thread. Only software devices can be used: the
 * data is guest memory, which no hardware is given access to.
 * @return 0; -ENODEV: EAL has none of that name; -ENOSPC: fewer queues than devices;
 *         -ENOTSUP: not a software device; else what the driver gave
 */
int vhp_cryptodev_open(const struct vhp_cryptodev_conf *conf, struct vhp_crypto_engine **out);

#endif /* VHP_CRYPTODEV_H */
