/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See drivers.h. rte_devargs_reset() and RTE_DEV_FOREACH are still called experimental by
 * DPDK 22.11, unchanged since 18.05; no stable call says whether a vdev has started.
 */
#define ALLOW_EXPERIMENTAL_API
#include <dirent.h>
#include <dlfcn.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_config.h>
#include <rte_dev.h>
#include <rte_devargs.h>

#include "capture.h"
#include "drivers.h"

/* A driver registers itself when it is loaded; with a static DPDK all are there already. */
static void
load_drivers(void)
{
	void *eal = dlsym(RTLD_DEFAULT, "rte_eal_init");
	struct dirent *entry;
	char path[512];
	Dl_info info;
	DIR *dir;

	if (eal == NULL || dladdr(eal, &info) == 0 || strstr(info.dli_fname, ".so") == NULL)
		return;
	dir = opendir(RTE_EAL_PMD_PATH);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (fnmatch("*.so*", entry->d_name, 0) != 0)
			continue;
		snprintf(path, sizeof(path), RTE_EAL_PMD_PATH "/%.255s", entry->d_name);
		dlopen(path, RTLD_NOW); /* stays loaded: EAL needs it in a moment */
	}
	if (dir != NULL)
		closedir(dir);
}

/* Asks the buses whether one knows the name; EAL's log about it is dropped. */
static bool
known(const struct device *dev)
{
	struct rte_devargs args;
	int rc;

	capture_begin();
	rc = rte_devargs_parse(&args, dev->name);
	free(capture_end());
	if (rc == 0)
		rte_devargs_reset(&args);
	return rc == 0;
}

int
drivers_check(const struct config *config, struct mistake *why)
{
	bool loaded = false;

	for (unsigned int i = config->n_allowed; i < config->n_devices; i++) {
		const struct device *dev = &config->devices[i];

		if (dev->kind != DEVICE_EAL || config->eal.drivers_given)
			continue;
		if (!loaded)
			load_drivers();
		loaded = true;
		if (!known(dev))
			return mistake(why,
				"%s: unknown device (net_vhost<N>, net_tap<N>, net_af_packet<N>, "
				"vhost_crypto<N>, or one that DPDK has a driver for)",
				dev->name);
	}
	return 0;
}

const struct device *
drivers_failed(const struct config *config)
{
	struct rte_dev_iterator it;
	struct rte_device *rte_dev;

	RTE_DEV_FOREACH(rte_dev, "bus=vdev", &it)
	{
		const struct device *dev = config_find(config, rte_dev_name(rte_dev));

		if (dev != NULL && !rte_dev_is_probed(rte_dev))
			return dev;
	}
	return NULL;
}
