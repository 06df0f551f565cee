/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole command lines: every mistake with its exact line, which devices are joined, what
 * they inherit, and what reaches EAL. No EAL runs here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "options.h"

#define MAX_ARGS     64
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* A command line and its message; NULL: it is right. */
struct wrong {
	const char *line;
	const char *message;
};

struct command {
	char text[4096];
	char *argv[MAX_ARGS];
	int argc;
};

/* Splits at blanks; the program's name comes first. */
static void
split(struct command *command, const char *line)
{
	char *save = NULL;

	assert_true(strlen(line) < sizeof(command->text));
	strcpy(command->text, line);
	command->argc = 0;
	command->argv[command->argc++] = (char *)(uintptr_t) "dpdk-vhost-rxpoll";
	for (char *arg = strtok_r(command->text, " ", &save); arg != NULL;
		arg = strtok_r(NULL, " ", &save)) {
		assert_true(command->argc < MAX_ARGS - 1);
		command->argv[command->argc++] = arg;
	}
	command->argv[command->argc] = NULL;
}

static int
read_line(struct command *command, const char *line, struct config *config, struct mistake *why)
{
	int rc;

	split(command, line);
	config_init(config);
	why->text[0] = '\0';
	rc = options_parse(command->argc, command->argv, config, why);
	if (rc == 0 && (config->action == ACTION_RUN || config->action == ACTION_CHECK))
		rc = config_pair(config, why);
	return rc;
}

#define V0   "--vdev net_vhost0,iface=/v0 "
#define V1   "--vdev net_vhost1,iface=/v1 "
#define T0   "--vdev net_tap0 "
#define T1   "--vdev net_tap1 "
#define PAIR V0 T0

#define OWN                                                                                        \
	"--poll-us, --poll-us-max, --poll-waste, --rebalance, --rx-poll, --stats, --pcap, "        \
	"--config, "                                                                               \
	"--check, --verbose, "                                                                     \
	"--version, --help"
#define EAL  "EAL's before \"--\", others after it"
#define KIND "two net_vhost, or one and a host port"

static const struct wrong command_lines[] = {
	/* options after -- */
	{PAIR "-- --poll-us automatic",
		"--poll-us = \"automatic\": not a number (0..1000000, auto or forever)"},
	{PAIR "-- --poll-us 1000001",
		"--poll-us = \"1000001\": out of range (0..1000000, auto or forever)"},
	{PAIR "-- --poll-us=5us",
		"--poll-us = \"5us\": not a number (0..1000000, auto or forever)"},
	{PAIR "-- --poll-us-max 1000001", "--poll-us-max = \"1000001\": out of range (0..1000000)"},
	{PAIR "-- --poll-us-max auto", "--poll-us-max = \"auto\": not a number (0..1000000)"},
	{PAIR "-- --poll-waste 101", "--poll-waste = \"101\": out of range (0..100)"},
	{PAIR "-- --poll-waste 20%", "--poll-waste = \"20%\": not a number (0..100)"},
	{PAIR "-- --rebalance 0", "--rebalance = \"0\": out of range (1..86400 or off)"},
	{PAIR "-- --rebalance on", "--rebalance = \"on\": not a number (1..86400 or off)"},
	{PAIR "-- --rebalance off", NULL},
	{PAIR "-- --poll-us auto --poll-us-max 0 --poll-waste 100", NULL},
	{PAIR "-- --poll-us", "--poll-us: needs a value (see --help)"},
	{PAIR "-- --rx-poll both", "--rx-poll = \"both\": unknown word (interleave or deferred)"},
	{PAIR "-- --stats 0", "--stats = \"0\": out of range (1..86400)"},
	{PAIR "-- --stats 0.5", "--stats = \"0.5\": not a number (1..86400)"},
	{PAIR "-- --stats 86401", "--stats = \"86401\": out of range (1..86400)"},
	{PAIR "-- --check=1", "--check=1: takes no value (see --help)"},
	{PAIR "-- --pol-us=1", "--pol-us=1: unknown option (" OWN ")"},
	{PAIR "-- --vdev net_tap1", "--vdev: unknown option (" OWN ")"},
	{PAIR "-- -l 0,1", "-l: unknown option (" OWN ")"},
	{PAIR "-- --check now", "now: not an option (" OWN ")"},
	{PAIR "-- --rx-poll deferred --poll-us forever",
		"net_vhost0: rx-poll = \"deferred\": not with a poll window that never closes (a "
		"finite poll-us)"},
	{"--vdev net_vhost0,iface=/v0,rx-poll=deferred " T0 "-- --poll-us forever",
		"net_vhost0: rx-poll = \"deferred\": not with a poll window that never closes (a "
		"finite poll-us)"},
	{"--vdev net_vhost0,iface=/v0,rx-poll=interleave " T0
	 "-- --rx-poll deferred --poll-us forever",
		NULL},
	{PAIR "-- --poll-us forever --rx-poll interleave --stats 86400", NULL},
	{PAIR "--", NULL},

	/* options before -- */
	{PAIR "--foo", "--foo: unknown option (" EAL ")"},
	{PAIR "--foo=1", "--foo=1: unknown option (" EAL ")"},
	{PAIR "-x", "-x: unknown option (" EAL ")"},
	{PAIR "net_tap1", "net_tap1: not an option (" EAL ")"},
	{PAIR "--no-huge=1", "--no-huge=1: takes no value (see --help)"},
	{PAIR "--vdev", "--vdev: needs a value (see --help)"},
	{PAIR "-l", "-l: needs a value (see --help)"},
	{PAIR "--poll-us 50", "--poll-us: on the wrong side (after \"--\")"},
	{PAIR "--rx-poll=deferred", "--rx-poll=deferred: on the wrong side (after \"--\")"},
	{PAIR "--stats 1", "--stats: on the wrong side (after \"--\")"},
	{PAIR "--check", "--check: on the wrong side (after \"--\")"},
	{PAIR "-l 0,1 -c 3", "-c 3: the lcores are given by -l already (once)"},
	{PAIR "--lcores 0,1 -l 0,1", "-l 0,1: the lcores are given by --lcores already (once)"},

	/* devices */
	{"", "no device given (--vdev net_vhost0,iface=PATH --vdev net_tap0; see --help)"},
	{"-l 0,1", "no device given (--vdev net_vhost0,iface=PATH --vdev net_tap0; see --help)"},
	{"--vdev crypto_null0",
		"no device given (--vdev net_vhost0,iface=PATH --vdev net_tap0; see --help)"},
	{V0 V0 T0, "net_vhost0: given twice (once)"},
	{PAIR "--vdev crypto_null0 --vdev crypto_null0", "crypto_null0: given twice (once)"},
	{PAIR "--vdev net_vhost1,iface=/v0 " T1,
		"net_vhost1: iface = \"/v0\": net_vhost0 has it (one device each)"},
	{V0 "--vdev net_tap0,iface=t " V1 "--vdev net_tap1,iface=t",
		"net_tap1: iface = \"t\": net_tap0 has it (one device each)"},
	{V0 "--vdev net_tap0,iface=t%d " V1 "--vdev net_tap1,iface=t%d", NULL},
	{PAIR "-a ,", "-a = \",\": not a device (a PCI address)"},
	{"--vdev net_vhost0,iface=/v0,queues=0 " T0,
		"net_vhost0: queues = \"0\": out of range (1..128)"},

	/* pairing */
	{V0, "net_vhost0: no device left to join it with (an even number of devices, or "
	     "peer=NAME)"},
	{PAIR V1, "net_vhost1: no device left to join it with (an even number of devices, or "
		  "peer=NAME)"},
	{PAIR V1 T1, NULL},
	{T0 V0, NULL},
	{T0 T1, "net_tap0: cannot be joined with net_tap1 (" KIND ")"},
	{V0 V1, NULL},
	{V0 V1 T0 T1, "net_tap0: cannot be joined with net_tap1 (" KIND ")"},
	{V0 "--vdev net_vhost1,iface=/v1,queues=2",
		"net_vhost1: queues = \"2\": not the number of its peer (1, as net_vhost0 has)"},
	{V0 "--vdev net_null0", NULL},
	{"--vdev eth_null0 " V0, NULL},
	{V0 "-a 0000:03:00.0", NULL},
	{"--vdev net_null0 --vdev net_null1",
		"net_null0: cannot be joined with net_null1 (" KIND ")"},
	{PAIR "-a 0000:03:00.0", "net_tap0: no device left to join it with (an even number of "
				 "devices, or peer=NAME)"},
	{PAIR "--vdev crypto_null0", NULL},
	{"--vdev net_vhost0,iface=/v0,peer=net_tap9 " T0 T1,
		"net_vhost0: peer = \"net_tap9\": no such device (net_tap0, net_tap1)"},
	{"--vdev net_vhost0,iface=/v0,peer=crypto_null0 --vdev crypto_null0 " T0,
		"net_vhost0: peer = \"crypto_null0\": no such device (net_tap0)"},
	{"--vdev net_vhost0,iface=/v0,peer=net_tap0",
		"net_vhost0: peer = \"net_tap0\": no such device (no other device is given)"},
	{"--vdev net_vhost0,iface=/v0,peer=net_vhost0 " T0,
		"net_vhost0: peer = \"net_vhost0\": the device itself (net_tap0)"},
	{"--vdev net_vhost0,iface=/v0,peer=net_tap0 --vdev net_vhost1,iface=/v1,peer=net_tap0 " T0
			T1,
		"net_vhost1: peer = \"net_tap0\": net_vhost0 has it (one peer each)"},
	{T0 "--vdev net_vhost0,iface=/v0,peer=net_vhost1 " V1 "--vdev net_vhost2,iface=/v2", NULL},
	{"--vdev net_vhost0,iface=/v0,peer=net_null0 --vdev net_null0 " V1 T0, NULL},
	{"--vdev net_vhost0,iface=/v0,queues=4 --vdev net_tap0,queues=2",
		"net_tap0: queues = \"2\": not the number of its peer (4, as net_vhost0 has)"},
	{V0 "--vdev net_tap0,queues=2",
		"net_tap0: queues = \"2\": not the number of its peer (1, as net_vhost0 has)"},
};

static void
command_messages(void **state)
{
	struct command command;
	struct config config;
	struct mistake why;

	(void)state;
	for (size_t i = 0; i < COUNT(command_lines); i++) {
		int rc = read_line(&command, command_lines[i].line, &config, &why);

		assert_string_equal(
			why.text, command_lines[i].message != NULL ? command_lines[i].message : "");
		assert_int_equal(rc == 0, command_lines[i].message == NULL);
		config_free(&config);
	}
}

/* Good lines and the pairs they make, "vhost-port" by name. */
static const struct {
	const char *line;
	const char *pairs;
} pairings[] = {
	{"--vdev net_vhost0,iface=/tmp/s --vdev net_tap0", "net_vhost0-net_tap0"},
	{"--vdev=net_vhost0,iface=/tmp/s,queues=1,client=0 --vdev=net_tap0,iface=tap0",
		"net_vhost0-net_tap0"},
	{"--no-pci --vdev net_tap0,iface=x,mac=fixed --vdev net_vhost0,iface=/s,tso=1",
		"net_vhost0-net_tap0"},
	{"--vdev eth_vhost0,iface=/s --vdev eth_tap0", "eth_vhost0-eth_tap0"},
	{V0 T0 V1 T1, "net_vhost0-net_tap0 net_vhost1-net_tap1"},
	{V0 T1 V1 T0, "net_vhost0-net_tap1 net_vhost1-net_tap0"},
	{T0 V0 V1 T1, "net_vhost0-net_tap0 net_vhost1-net_tap1"},
	{"--vdev net_vhost0,iface=/v0,peer=net_tap1 " V1 T0 T1,
		"net_vhost0-net_tap1 net_vhost1-net_tap0"},
	{V0 "--vdev net_vhost1,iface=/v1,peer=net_tap0 " T0 T1,
		"net_vhost1-net_tap0 net_vhost0-net_tap1"},
	{V0 "--vdev crypto_null0 " T0, "net_vhost0-net_tap0"},
};

static void
pairs(void **state)
{
	struct command command;
	struct config config;
	struct mistake why;

	(void)state;
	for (size_t i = 0; i < COUNT(pairings); i++) {
		char text[256] = "";
		size_t at = 0;

		assert_int_equal(read_line(&command, pairings[i].line, &config, &why), 0);
		for (unsigned int p = 0; p < config.n_pairs; p++) {
			const struct device *vhost = &config.devices[config.pairs[p].vhost];
			const struct device *port = &config.devices[config.pairs[p].port];

			assert_ptr_equal(&config.devices[vhost->peer], port);
			assert_ptr_equal(&config.devices[port->peer], vhost);
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s-%s",
				p > 0 ? " " : "", vhost->name, port->name);
		}
		assert_string_equal(text, pairings[i].pairs);
		config_free(&config);
	}
}

/* A device's own key wins over the option, wherever the option stands. */
static void
inheritance(void **state)
{
	static const uint8_t fixed[2][ETH_ALEN] = {
		{0x02, 0x64, 0x74, 0x61, 0x70, 0x30}, {0x02, 0x64, 0x74, 0x61, 0x70, 0x31}};
	struct command command;
	struct config config;
	struct mistake why;

	(void)state;
	assert_int_equal(
		read_line(&command,
			"--vdev net_vhost0,iface=/v0,poll-us=7,queues=3 --vdev net_tap0,mac=fixed "
			"--vdev net_vhost1,iface=/v1,rx-poll=interleave --vdev net_tap1,mac=FIXED "
			"-- --poll-us 0x64 --rx-poll=deferred --stats 5 --check",
			&config, &why),
		0);
	assert_int_equal(config.action, ACTION_CHECK);
	assert_int_equal(config.stats_s, 5);
	assert_int_equal(config.n_devices, 4);
	assert_int_equal(config.devices[0].net.poll_us, 7);
	assert_int_equal(config.devices[0].net.rx_poll, VHP_RX_DEFERRED);
	assert_int_equal(config.devices[2].net.poll_us, 100);
	assert_int_equal(config.devices[2].net.rx_poll, VHP_RX_INTERLEAVE);
	assert_int_equal(config.devices[1].tap.queues, 3);
	assert_int_equal(config.devices[3].tap.queues, 1);
	assert_memory_equal(&config.devices[1].tap.mac, fixed[0], ETH_ALEN);
	assert_memory_equal(&config.devices[3].tap.mac, fixed[1], ETH_ALEN);
	config_free(&config);
}

/* ---- what EAL gets ------------------------------------------------------------------ */

static const struct {
	const char *line;
	const char *eal; /* EAL's part, in order */
} eal_lines[] = {
	{PAIR, ""},
	{"-l 0,1 " PAIR "-n 4 -- --check", "-l 0,1 -n 4"},
	{"-l0,1 --file-prefix=a " V0 "--no-huge -m 64 " T0 "--in-memory",
		"-l0,1 --file-prefix=a --no-huge -m 64 --in-memory"},
	{"-v " PAIR "--vdev crypto_null0,x=1 --vdev=crypto_openssl0 --log-level lib.eal:debug",
		"-v --vdev crypto_null0,x=1 --vdev=crypto_openssl0 --log-level lib.eal:debug"},
	{"-c 0x3 --main-lcore 1 " PAIR "--huge-dir /mnt --huge-unlink --socket-mem=64,64 -d /x.so",
		"-c 0x3 --main-lcore 1 --huge-dir /mnt --huge-unlink --socket-mem=64,64 -d /x.so"},
	{"--lcores (0,1)@0,2@1 " PAIR "-b 0000:00:01.0 --iova-mode va --no-telemetry",
		"--lcores (0,1)@0,2@1 -b 0000:00:01.0 --iova-mode va --no-telemetry"},
	{"-vl 0,1 " PAIR, "-vl 0,1"},
	{"--file-p=x --vde net_vhost0,iface=/v0 --vd=net_tap0", "--file-p=x"},
	{"-l -- " PAIR, "-l --"},
};

static void
eal_arguments(void **state)
{
	struct command command;
	struct config config;
	struct mistake why;

	(void)state;
	for (size_t i = 0; i < COUNT(eal_lines); i++) {
		char text[512] = "";
		size_t at = 0;

		read_line(&command, eal_lines[i].line, &config, &why);
		assert_string_equal(why.text, "");
		for (int arg = 0; arg < config.eal.argc; arg++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s",
				arg > 0 ? " " : "", config.eal.argv[arg]);
		assert_string_equal(text, eal_lines[i].eal);
		config_free(&config);
	}
}

static void
eal_notes(void **state)
{
	struct command command;
	struct config config;
	struct mistake why;

	(void)state;
	read_line(&command, PAIR, &config, &why);
	assert_null(config.eal.lcores);
	assert_null(config.eal.file_prefix);
	assert_false(config.eal.memory_given);
	assert_false(config.eal.pci_given);
	assert_false(config.eal.log_given);
	config_free(&config);

	read_line(&command, PAIR "-c 3 --main-lcore=1 -s 4 --file-prefix p --in-memory --no-pci",
		&config, &why);
	assert_string_equal(config.eal.lcores_option, "-c");
	assert_string_equal(config.eal.lcores, "3");
	assert_string_equal(config.eal.main_lcore, "1");
	assert_string_equal(config.eal.service, "4");
	assert_string_equal(config.eal.file_prefix, "p");
	assert_true(config.eal.memory_given);
	assert_true(config.eal.huge_files_given);
	assert_true(config.eal.pci_given);
	config_free(&config);

	read_line(&command, PAIR "-m 64 --log-level=8", &config, &why);
	assert_true(config.eal.memory_given);
	assert_false(config.eal.huge_files_given);
	assert_true(config.eal.log_given);
	config_free(&config);
}

/* --help and --version work on either side, whatever else is there. */
static void
help_and_version(void **state)
{
	static const struct {
		const char *line;
		enum action action;
	} lines[] = {
		{"--help", ACTION_HELP},
		{"-h", ACTION_HELP},
		{"-- --help", ACTION_HELP},
		{"-- -h", ACTION_HELP},
		{"-l 0,9 --help --nonsense", ACTION_HELP},
		{"--version", ACTION_VERSION},
		{V0 "-- --version --nonsense", ACTION_VERSION},
	};
	struct command command;
	struct config config;
	struct mistake why;

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		assert_int_equal(read_line(&command, lines[i].line, &config, &why), 0);
		assert_int_equal(config.action, lines[i].action);
		config_free(&config);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_messages),
		cmocka_unit_test(pairs),
		cmocka_unit_test(inheritance),
		cmocka_unit_test(eal_arguments),
		cmocka_unit_test(eal_notes),
		cmocka_unit_test(help_and_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
