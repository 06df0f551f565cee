/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line; see options.h. EAL's options are known by name only, so that
 * devices can be told from them and everything else reaches EAL as it was given.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_version.h>

#include "config_file.h"
#include "options.h"
#include "value.h"

/** Longest interval of --stats: a day. */
#define STATS_MAX_S 86400

/* ---- the daemon's own options -------------------------------------------- */

enum {
	OPT_POLL_US = 256,
	OPT_POLL_MAX,
	OPT_POLL_WASTE,
	OPT_REBALANCE,
	OPT_RX_POLL,
	OPT_STATS,
	OPT_PCAP,
	OPT_CONFIG,
	OPT_CHECK,
	OPT_VERSION,
	OPT_HELP,
	OPT_VERBOSE = 'v',
};

static const struct {
	struct option option; /* first: getopt's table is made of these */
	const char *value;
	const char *help;
} own_options[] = {
	{{"poll-us", required_argument, NULL, OPT_POLL_US}, "N|auto|forever",
		"keep polling for N microseconds after the last packet, then sleep (auto)"},
	{{"poll-us-max", required_argument, NULL, OPT_POLL_MAX}, "N",
		"with auto, for no more than N microseconds (200)"},
	{{"poll-waste", required_argument, NULL, OPT_POLL_WASTE}, "PERCENT",
		"with auto, at most so much of a core for polling in vain (20)"},
	{{"rebalance", required_argument, NULL, OPT_REBALANCE}, "SECONDS|off",
		"how often a queue pair may move to a less loaded poller (5)"},
	{{"rx-poll", required_argument, NULL, OPT_RX_POLL}, "interleave|deferred",
		"look at the host side between transmit bursts, or only after them (interleave)"},
	{{"stats", required_argument, NULL, OPT_STATS}, "SECONDS",
		"print counters at this interval"},
	{{"pcap", required_argument, NULL, OPT_PCAP}, "FILE",
		"capture all frames into a pcapng file"},
	{{"config", required_argument, NULL, OPT_CONFIG}, "FILE",
		"read devices and options from an INI file, too; SIGHUP reads it again"},
	{{"check", no_argument, NULL, OPT_CHECK}, "",
		"check everything, show which devices are joined, and exit"},
	{{"verbose", no_argument, NULL, OPT_VERBOSE}, "",
		"with --check: also the virtio features that each device offers, or why not (-v)"},
	{{"version", no_argument, NULL, OPT_VERSION}, "", "print the version and exit"},
	{{"help", no_argument, NULL, OPT_HELP}, "", "print this help and exit"},
};

#define N_OWN (sizeof(own_options) / sizeof(own_options[0]))

/* 0..max. Returns what is wrong with the value, or NULL. */
static const char *
own_number(const char *value, uint32_t max, uint32_t *out)
{
	int64_t n;
	const char *wrong = value_number(value, 0, 0, max, &n);

	if (wrong == NULL)
		*out = (uint32_t)n;
	return wrong;
}

/* One option after "--". Returns what is wrong with its value, or NULL. */
static const char *
own_option(int opt, const char *value, struct config *config, const char **allowed)
{
	const char *wrong = NULL;
	int64_t n;

	switch (opt) {
	case OPT_POLL_US:
		*allowed = VALUE_WINDOW_ALLOWED;
		return value_window(value, &config->poll_us);
	case OPT_POLL_MAX:
		*allowed = "0..1000000";
		return own_number(value, VHP_POLL_MAX_US, &config->poller.poll_max_us);
	case OPT_POLL_WASTE:
		*allowed = "0..100";
		return own_number(value, 100, &config->poller.poll_waste_percent);
	case OPT_REBALANCE:
		*allowed = "1..86400 or off";
		if (strcmp(value, "off") == 0) {
			config->rebalance_s = 0;
			return NULL;
		}
		wrong = value_number(value, 0, 1, STATS_MAX_S, &n);
		if (wrong == NULL)
			config->rebalance_s = (unsigned int)n;
		return wrong;
	case OPT_RX_POLL:
		*allowed = VALUE_RX_POLL_ALLOWED;
		return value_rx_poll(value, &config->rx_poll);
	case OPT_STATS:
		*allowed = "1..86400";
		wrong = value_number(value, 0, 1, STATS_MAX_S, &n);
		if (wrong == NULL)
			config->stats_s = (unsigned int)n;
		return wrong;
	case OPT_PCAP:
		*allowed = "a file's name, 1..255 bytes";
		return value_text(value, config->pcap, sizeof(config->pcap));
	case OPT_CONFIG:
		*allowed = "a file's name";
		config->file = value;
		return value[0] != '\0' ? NULL : "empty";
	case OPT_CHECK:
		config->action = ACTION_CHECK;
		return NULL;
	case OPT_VERBOSE:
		config->verbose = true;
		return NULL;
	case OPT_VERSION:
		config->action = ACTION_VERSION;
		return NULL;
	default:
		config->action = ACTION_HELP;
		return NULL;
	}
}

/* What getopt has refused: the argument it stopped at. */
static int
refused(int opt, const char *arg, const char *known, struct mistake *why)
{
	if (opt == ':')
		return mistake(why, "%s: needs a value (see --help)", arg);
	if (strncmp(arg, "--", 2) == 0 && strchr(arg, '=') != NULL && optopt != 0)
		return mistake(why, "%s: takes no value (see --help)", arg);
	return mistake(why, "%s: unknown option (%s)", arg, known);
}

#define OWN_NAMES                                                                                  \
	"--poll-us, --poll-us-max, --poll-waste, --rebalance, --rx-poll, --stats, --pcap, "        \
	"--config, "                                                                               \
	"--check, --verbose, "                                                                     \
	"--version, --help"

/* The part after "--"; argv[0] is not looked at. */
static int
parse_own(int argc, char **argv, struct config *config, struct mistake *why)
{
	struct option options[N_OWN + 1] = {{NULL, 0, NULL, 0}};

	for (size_t i = 0; i < N_OWN; i++)
		options[i] = own_options[i].option;
	optind = 0; /* glibc: start anew */
	opterr = 0;
	while (config->action != ACTION_HELP && config->action != ACTION_VERSION) {
		int at = optind > 0 ? optind : 1;
		int index = -1;
		int opt = getopt_long(argc, argv, "+:hv", options, &index);
		const char *allowed = "";
		const char *wrong;

		if (opt == -1)
			break;
		if (opt == '?' || opt == ':')
			return refused(opt, argv[at], OWN_NAMES, why);
		wrong = own_option(opt, optarg, config, &allowed);
		if (index >= 0)
			config->options_given |= 1u << index;
		if (wrong != NULL) {
			char name[32] = "--";

			strncat(name, options[index].name, sizeof(name) - 3);
			return mistake_value(why, "", name, optarg, wrong, allowed);
		}
	}
	if (optind < argc && config->action != ACTION_HELP && config->action != ACTION_VERSION)
		return mistake(why, "%s: not an option (" OWN_NAMES ")", argv[optind]);
	return 0;
}

/* Options that a file may have: those with a value, but for the file's own name. */
static int
unknown_option(const char *name, const char *value, struct mistake *why)
{
	char names[256] = "";
	size_t used_bytes = 0;

	for (size_t i = 0; i < N_OWN && used_bytes < sizeof(names); i++)
		if (own_options[i].option.has_arg && own_options[i].option.val != OPT_CONFIG)
			used_bytes += (size_t)snprintf(names + used_bytes,
				sizeof(names) - used_bytes, "%s%s", used_bytes > 0 ? ", " : "",
				own_options[i].option.name);
	return mistake_value(why, "options", name, value, "unknown key", names);
}

int
options_set(struct config *config, const char *name, const char *value, struct mistake *why)
{
	struct config unused = {0};
	const char *allowed = "";
	const char *wrong;
	size_t i;

	for (i = 0; i < N_OWN; i++)
		if (own_options[i].option.has_arg && own_options[i].option.val != OPT_CONFIG &&
			strcmp(own_options[i].option.name, name) == 0)
			break;
	if (i == N_OWN)
		return unknown_option(name, value, why);
	wrong = own_option(own_options[i].option.val, value,
		(config->options_given & 1u << i) != 0 ? &unused : config, &allowed);
	return wrong == NULL ? 0 : mistake_value(why, "options", name, value, wrong, allowed);
}

/* ---- EAL's options ---------------------------------------------------------- */

enum {
	EAL_OTHER = 512, /* passes through, without meaning here */
	EAL_VDEV,
	EAL_MEMORY,
	EAL_HUGE_FILES,
	EAL_LCORES,
	EAL_MAIN_LCORE,
	EAL_NO_PCI,
	EAL_FILE_PREFIX,
	EAL_LOG_LEVEL,
	EAL_HELP,
	EAL_OURS, /* not EAL's: stands before "--" by mistake */
};

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
#define SYSLOG_ARGUMENT optional_argument
#else
#define SYSLOG_ARGUMENT required_argument
#endif

/* All of DPDK 22.11 to 24.11, and those of ours that are often put on the wrong side. */
static const struct option eal_options[] = {
	{"vdev", required_argument, NULL, EAL_VDEV},
	{"allow", required_argument, NULL, 'a'},
	{"block", required_argument, NULL, 'b'},
	{"lcores", required_argument, NULL, EAL_LCORES},
	{"main-lcore", required_argument, NULL, EAL_MAIN_LCORE},
	{"file-prefix", required_argument, NULL, EAL_FILE_PREFIX},
	{"log-level", required_argument, NULL, EAL_LOG_LEVEL},
	{"no-pci", no_argument, NULL, EAL_NO_PCI},
	{"no-huge", no_argument, NULL, EAL_HUGE_FILES},
	{"in-memory", no_argument, NULL, EAL_HUGE_FILES},
	{"huge-dir", required_argument, NULL, EAL_MEMORY},
	{"huge-unlink", optional_argument, NULL, EAL_HUGE_FILES},
	{"huge-worker-stack", optional_argument, NULL, EAL_MEMORY},
	{"socket-mem", required_argument, NULL, EAL_MEMORY},
	{"socket-limit", required_argument, NULL, EAL_MEMORY},
	{"legacy-mem", no_argument, NULL, EAL_MEMORY},
	{"single-file-segments", no_argument, NULL, EAL_HUGE_FILES},
	{"match-allocations", no_argument, NULL, EAL_MEMORY},
	{"base-virtaddr", required_argument, NULL, EAL_OTHER},
	{"create-uio-dev", no_argument, NULL, EAL_OTHER},
	{"force-max-simd-bitwidth", required_argument, NULL, EAL_OTHER},
	{"iova-mode", required_argument, NULL, EAL_OTHER},
	{"log-color", optional_argument, NULL, EAL_OTHER},
	{"log-timestamp", optional_argument, NULL, EAL_OTHER},
	{"mbuf-pool-ops-name", required_argument, NULL, EAL_OTHER},
	{"no-hpet", no_argument, NULL, EAL_OTHER},
	{"no-shconf", no_argument, NULL, EAL_OTHER},
	{"no-telemetry", no_argument, NULL, EAL_OTHER},
	{"proc-type", required_argument, NULL, EAL_OTHER},
	{"syslog", SYSLOG_ARGUMENT, NULL, EAL_OTHER},
	{"telemetry", no_argument, NULL, EAL_OTHER},
	{"trace", required_argument, NULL, EAL_OTHER},
	{"trace-bufsz", required_argument, NULL, EAL_OTHER},
	{"trace-dir", required_argument, NULL, EAL_OTHER},
	{"trace-mode", required_argument, NULL, EAL_OTHER},
	{"vfio-intr", required_argument, NULL, EAL_OTHER},
	{"vfio-vf-token", required_argument, NULL, EAL_OTHER},
	{"vmware-tsc-map", no_argument, NULL, EAL_OTHER},
	{"help", no_argument, NULL, EAL_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{"poll-us", required_argument, NULL, EAL_OURS},
	{"rx-poll", required_argument, NULL, EAL_OURS},
	{"stats", required_argument, NULL, EAL_OURS},
	{"config", required_argument, NULL, EAL_OURS},
	{"check", no_argument, NULL, EAL_OURS},
	{NULL, 0, NULL, 0},
};

#define EAL_SHORT "+:a:b:c:s:d:hl:S:m:n:r:v"

/* The first of -l, -c and --lcores decides; EAL refuses a second. */
static int
note_lcores(struct eal_conf *eal, const char *option, const char *value, struct mistake *why)
{
	if (eal->lcores != NULL)
		return mistake(why, "%s %s: the lcores are given by %s already (once)", option,
			value, eal->lcores_option);
	eal->lcores_option = option;
	eal->lcores = value;
	return 0;
}

/* Remember what eal.c has to know of an option. */
static int
note_eal_option(int opt, struct config *config, struct mistake *why)
{
	struct eal_conf *eal = &config->eal;

	switch (opt) {
	case 'a':
		eal->pci_given = true;
		return config_add_allowed(config, optarg, why);
	case 'b':
	case EAL_NO_PCI:
		eal->pci_given = true;
		break;
	case 'c':
		return note_lcores(eal, "-c", optarg, why);
	case 'l':
		return note_lcores(eal, "-l", optarg, why);
	case EAL_LCORES:
		return note_lcores(eal, "--lcores", optarg, why);
	case 's':
	case 'S':
		eal->service_option = opt == 's' ? "-s" : "-S";
		eal->service = optarg;
		break;
	case EAL_HUGE_FILES:
		eal->huge_files_given = true;
		eal->memory_given = true;
		break;
	case 'm':
	case EAL_MEMORY:
		eal->memory_given = true;
		break;
	case 'd':
		eal->drivers_given = true;
		break;
	case EAL_MAIN_LCORE:
		eal->main_lcore = optarg;
		break;
	case EAL_FILE_PREFIX:
		eal->file_prefix = optarg;
		break;
	case EAL_LOG_LEVEL:
		eal->log_given = true;
		break;
	}
	return 0;
}

/* --vdev: ours is taken, DPDK's stays among EAL's arguments. */
static int
take_vdev(struct config *config, bool *ours, struct mistake *why)
{
	int rc = config_add(config, optarg, why);

	if (rc == 0)
		*ours = config->devices[config->n_devices - 1].kind != DEVICE_EAL;
	return rc;
}

/* One option before "--"; *ours: its arguments are not for EAL. */
static int
eal_option(int opt, const char *arg, struct config *config, bool *ours, struct mistake *why)
{
	*ours = false;
	switch (opt) {
	case EAL_VDEV:
		return take_vdev(config, ours, why);
	case 'h':
	case EAL_HELP:
		config->action = ACTION_HELP;
		return 0;
	case OPT_VERSION:
		config->action = ACTION_VERSION;
		return 0;
	case EAL_OURS:
		return mistake(why, "%s: on the wrong side (after \"--\")", arg);
	case '?':
	case ':':
		return refused(opt, arg, "EAL's before \"--\", others after it", why);
	default:
		return note_eal_option(opt, config, why);
	}
}

/* The part before "--". *next: index of the argument that ended it, argc if none. */
static int
parse_eal(int argc, char **argv, struct config *config, int *next, struct mistake *why)
{
	struct eal_conf *eal = &config->eal;
	int copied = 1;
	bool ours;
	int rc;

	optind = 0;
	opterr = 0;
	for (;;) {
		int at = optind > 0 ? optind : 1;
		int opt = getopt_long(argc, argv, EAL_SHORT, eal_options, NULL);

		if (opt == -1) {
			*next = at;
			break;
		}
		rc = eal_option(opt, argv[at], config, &ours, why);
		if (rc != 0)
			return rc;
		if (config->action == ACTION_HELP || config->action == ACTION_VERSION)
			return 0;
		for (; copied < optind; copied++)
			if (!ours)
				eal->argv[eal->argc++] = argv[copied];
	}
	/* getopt steps over "--", and stops at whatever is not an option. */
	if (optind == *next && optind < argc)
		return mistake(why, "%s: not an option (EAL's before \"--\", others after it)",
			argv[optind]);
	return 0;
}

int
options_parse(int argc, char **argv, struct config *config, struct mistake *why)
{
	int next = argc;
	int rc;

	config->argc = argc;
	config->argv = argv;
	config->eal.argv = calloc((size_t)argc + 1, sizeof(*config->eal.argv));
	if (config->eal.argv == NULL) {
		mistake(why, "out of memory");
		return -ENOMEM;
	}
	rc = parse_eal(argc, argv, config, &next, why);
	if (rc == 0 && config->action == ACTION_RUN && next < argc)
		rc = parse_own(argc - next, argv + next, config, why);
	if (rc == 0 && config->file != NULL &&
		(config->action == ACTION_RUN || config->action == ACTION_CHECK))
		rc = config_file_read(config, why);
	return rc;
}

/* ---- help --------------------------------------------------------------------- */

static void
key_help(const struct key *key, FILE *out)
{
	char allowed[80];

	key_allowed(key, allowed, sizeof(allowed));
	fprintf(out, "  %-17s %s: %s ", key->name, key->help, allowed);
	if (key->preset == NULL)
		fprintf(out, "(mandatory)\n");
	else
		fprintf(out, "(default: %s)\n", key->preset);
}

void
options_help(FILE *out)
{
	char left[64];

	fprintf(out,
		"usage: dpdk-vhost-rxpoll [EAL options] --vdev DEVICE [--vdev DEVICE ...]"
		" [-- options]\n\n"
		"Serves vhost-user-net devices and joins each to a port of the host.\n"
		"Devices are joined in the order given, 0-1, 2-3, ..., as testpmd joins them;\n"
		"every --vdev and -a not listed here goes to DPDK, as all EAL options do.\n");
	for (int i = 0; i < DEVICE_KINDS; i++) {
		const struct kind *kind = &kinds[i];

		fprintf(out, "\n--vdev %s<N>,key=value,...   %s\n", kind->prefix, kind->help);
		for (unsigned int k = 0; k < kind->n_keys; k++)
			key_help(&kind->keys[k], out);
	}
	fprintf(out, "\nOptions:\n");
	for (size_t i = 0; i < N_OWN; i++) {
		snprintf(left, sizeof(left), "--%s %s", own_options[i].option.name,
			own_options[i].value);
		fprintf(out, "  %-30s %s\n", left, own_options[i].help);
	}
	fprintf(out, "\nExit status: 0 after SIGINT or SIGTERM, 2 if something given is wrong, 1 if"
		     " it fails while running.\n");
}
