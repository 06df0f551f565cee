/* SPDX-License-Identifier: BSD-3-Clause */
/* See crypto.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto.h"
#include "drivers/crypto/cryptodev.h"

/* A device and what it computes with; engines that several use stand at the first of them. */
struct crypto_device {
	const struct device *conf;
	struct vhp_crypto_engine *owned; /* NULL: another device's */
	struct vhp_crypto_engine *engine;
	uint16_t engine_queue;
	struct vhp_net_dev *dev; /* NULL: not made */
};

struct crypto_devices {
	unsigned int n;
	struct crypto_device devices[];
};

int
crypto_check(struct config *config, struct mistake *why)
{
	for (unsigned int i = 0; i < config->n_devices; i++) {
		struct device *dev = &config->devices[i];
		const struct device *engine;

		if (dev->kind != DEVICE_VHOST_CRYPTO)
			continue;
		engine = config_find(config, dev->cryptodev);
		if (engine == NULL || engine->kind != DEVICE_EAL || engine->is_port)
			return mistake_value(why, dev->name, "cryptodev", dev->cryptodev,
				"no such device is given", "as in --vdev crypto_openssl0");
		if (!key_given(dev, "poll-us"))
			dev->net.poll_us = config->poll_us;
	}
	return 0;
}

/* How many devices use the cryptodev, and how many sessions they may have. */
static struct vhp_cryptodev_conf
engine_conf(const struct crypto_devices *crypto, const char *name)
{
	struct vhp_cryptodev_conf conf = {0};

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	for (unsigned int i = 0; i < crypto->n; i++) {
		const struct device *dev = crypto->devices[i].conf;

		if (strcmp(dev->cryptodev, name) != 0)
			continue;
		conf.n_queues++;
		conf.sessions += (uint32_t)dev->sessions;
	}
	return conf;
}

/* The engine of a device: an earlier one's, or its own. */
static int
find_engine(struct crypto_devices *crypto, unsigned int index)
{
	struct crypto_device *device = &crypto->devices[index];

	for (unsigned int i = 0; i < index; i++) {
		if (strcmp(crypto->devices[i].conf->cryptodev, device->conf->cryptodev) != 0)
			continue;
		device->engine = crypto->devices[i].engine;
		device->engine_queue = crypto->devices[i].engine_queue + 1;
	}
	if (device->engine != NULL)
		return 0;

	struct vhp_cryptodev_conf conf = engine_conf(crypto, device->conf->cryptodev);
	int rc = vhp_cryptodev_open(&conf, &device->owned);

	device->engine = device->owned;
	return rc;
}

int
crypto_open(const struct config *config, struct crypto_devices **out)
{
	unsigned int n = config_count(config, DEVICE_VHOST_CRYPTO);
	struct crypto_devices *crypto;
	int rc = 0;

	*out = NULL;
	if (n == 0)
		return 0;
	crypto = calloc(1, sizeof(*crypto) + n * sizeof(crypto->devices[0]));
	if (crypto == NULL)
		return -ENOMEM;
	*out = crypto;
	for (unsigned int i = 0; i < config->n_devices; i++)
		if (config->devices[i].kind == DEVICE_VHOST_CRYPTO)
			crypto->devices[crypto->n++].conf = &config->devices[i];
	for (unsigned int i = 0; i < crypto->n && rc == 0; i++)
		rc = find_engine(crypto, i);
	return rc;
}

int
crypto_create(struct crypto_devices *crypto, struct vhp_loop *loop)
{
	int rc = 0;

	for (unsigned int i = 0; crypto != NULL && i < crypto->n && rc == 0; i++) {
		struct crypto_device *device = &crypto->devices[i];
		struct vhp_crypto_conf conf = {
			.dev = device->conf->net,
			.sessions = (uint32_t)device->conf->sessions,
			.engine_queue = device->engine_queue,
		};

		rc = vhp_crypto_dev_create(loop, &conf, device->engine, &device->dev);
	}
	return rc;
}

void
crypto_destroy(struct crypto_devices *crypto)
{
	for (unsigned int i = crypto == NULL ? 0 : crypto->n; i-- > 0;) {
		vhp_net_dev_destroy(crypto->devices[i].dev);
		crypto->devices[i].dev = NULL;
	}
}

void
crypto_close(struct crypto_devices *crypto)
{
	for (unsigned int i = crypto == NULL ? 0 : crypto->n; i-- > 0;)
		if (crypto->devices[i].owned != NULL)
			crypto->devices[i].owned->ops->close(crypto->devices[i].owned);
	free(crypto);
}
