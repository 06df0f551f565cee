/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk-vhost-rxpoll: what is done, in order, and undone in reverse. All knowledge of how
 * is elsewhere.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rte_version.h>

#include "check.h"
#include "crypto.h"
#include "drivers.h"
#include "eal.h"
#include "notify.h"
#include "options.h"
#include "service.h"
#include "vhp_crypto.h"
#include "vhp_port.h"

/** Exit statuses. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,  /* while running */
	EXIT_MISTAKE = 2, /* what was given cannot be done; nothing is left on the host */
};

static void
print_version(void)
{
	printf("dpdk-vhost-rxpoll " VHP_VERSION " (%s)\n", rte_version());
}

static void
print_ready(const struct config *config, const struct lcores *lcores)
{
	unsigned int n_devices = config->n_pairs + config_count(config, DEVICE_VHOST_CRYPTO);
	char text[LCORES_TEXT_BYTES];
	cpu_set_t cpus;

	lcores_poller_cpus(lcores, &cpus);
	printf("ready: %u device%s, %u poller%s on CPU%s %s\n", n_devices,
		n_devices == 1 ? "" : "s", lcores->n_pollers, lcores->n_pollers == 1 ? "" : "s",
		CPU_COUNT(&cpus) == 1 ? "" : "s", lcores_cpus_text(&cpus, text, sizeof(text)));
}

/* From EAL's start to its end. Returns an exit status. */
static int
run(struct config *config, const struct eal *eal)
{
	int status = EXIT_MISTAKE;
	struct service *service;

	service = service_create(config, eal->lcores.n_pollers);
	if (service == NULL) {
		fprintf(stderr, "dpdk-vhost-rxpoll: event loop: %s\n", strerror(errno));
		return EXIT_MISTAKE;
	}
	if (vhp_pollers_start(&config->poller) < 0)
		goto destroy_service;
	if (config->pcap[0] != '\0' && vhp_capture_all(service_loop(service), config->pcap) < 0)
		goto stop_pollers;
	if (service_open_ports(service) < 0)
		goto close_ports;
	if (service_create_devices(service) < 0)
		goto destroy_devices;
	if (vhp_stats_telemetry() < 0 || vhp_crypto_telemetry() < 0)
		goto destroy_devices;

	print_ready(config, &eal->lcores);
	notify("READY=1");
	status = service_run(service) == 0 ? EXIT_OK : EXIT_FAILED;
	notify("STOPPING=1");
	vhp_stats_summary(stdout);

destroy_devices:
	service_destroy_devices(service);
close_ports:
	service_close_ports(service);
stop_pollers:
	vhp_capture_end();
	vhp_pollers_stop();
destroy_service:
	service_destroy(service);
	return status;
}

/* Checks that create nothing, then the run, or what --check prints. */
static int
check_and_run(struct config *config, struct mistake *why)
{
	int status = EXIT_MISTAKE;
	struct eal eal = {0};

	if (drivers_check(config, why) < 0 || config_pair(config, why) < 0 ||
		crypto_check(config, why) < 0 || check_host(config, NULL, why) < 0 ||
		eal_prepare(config, &eal, why) < 0)
		goto free_eal;
	if (config->action == ACTION_CHECK) {
		check_print_ignored(config, stderr);
		check_print_pairs(config, stdout);
		if (config->verbose)
			check_print_features(config, stdout);
		status = EXIT_OK;
		goto free_eal;
	}
	service_block_signals(config);
	if (eal_start(&eal, why) < 0)
		goto free_eal;
	check_print_ignored(config, stderr);
	status = run(config, &eal);
	eal_stop();
free_eal:
	eal_free(&eal);
	return status;
}

/* vhost-user, "Backend program conventions": other options do not count then. */
static bool
asks_capabilities(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--print-capabilities") == 0)
			return true;
	return false;
}

int
main(int argc, char **argv)
{
	struct mistake why = {""};
	struct config config;
	int status = EXIT_OK;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (asks_capabilities(argc, argv)) {
		printf("{\n  \"type\": \"net\"\n}\n");
		return EXIT_OK;
	}
	config_init(&config);
	if (options_parse(argc, argv, &config, &why) < 0)
		status = EXIT_MISTAKE;
	else if (config.action == ACTION_HELP)
		options_help(stdout);
	else if (config.action == ACTION_VERSION)
		print_version();
	else
		status = check_and_run(&config, &why);
	if (why.text[0] != '\0')
		fprintf(stderr, "dpdk-vhost-rxpoll: %s\n", why.text);
	config_free(&config);
	return status;
}
