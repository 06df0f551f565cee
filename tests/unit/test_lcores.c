/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's options about lcores: what they mean, and each mistake with its exact line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lcores.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void
set_cpus(const char *text, cpu_set_t *out)
{
	char *end;

	CPU_ZERO(out);
	while (*text != '\0') {
		CPU_SET(strtoul(text, &end, 10), out);
		text = *end == ',' ? end + 1 : end;
	}
}

static const struct {
	const char *option, *value, *main_lcore, *service;
	const char *lcores; /* as --lcores would say it, or the message */
	unsigned int main, n_pollers;
	const char *poller_cpus;
} lcore_lines[] = {
	{"-l", "0,1", NULL, NULL, "0@0,1@1", 0, 1, "1"},
	{"-l", "1-3", NULL, NULL, "1@1,2@2,3@3", 1, 2, "2-3"},
	{"-l", "3,1,1", NULL, NULL, "1@1,3@3", 1, 1, "3"},
	{"-l", " 0 , 2 - 3 ", "3", NULL, "0@0,2@2,3@3", 3, 2, "0,2"},
	{"-c", "0x3", NULL, NULL, "0@0,1@1", 0, 1, "1"},
	{"-c", "00a", NULL, NULL, "1@1,3@3", 1, 1, "3"},
	{"--lcores", "0@0,1@0", NULL, NULL, "0@0,1@0", 0, 1, "0"},
	{"--lcores", "0-2", NULL, NULL, "0@0,1@1,2@2", 0, 2, "1-2"},
	{"--lcores", "(0,1)", NULL, NULL, "0@(0-1),1@(0-1)", 0, 1, "0-1"},
	{"--lcores", "0@(0,2-3),(4-5)@1", NULL, NULL, "0@(0,2-3),4@1,5@1", 0, 2, "1"},
	{"--lcores", "7@0-1,9@3", "9", NULL, "7@(0-1),9@3", 9, 1, "0-1"},
	{"-l", "0-3", NULL, "c", "0@0,1@1,2@2,3@3", 0, 1, "1"},

	{"-l", "0,9", NULL, NULL, "-l 0,9: lcore 9 is not available (0-3 are)", 0, 0, NULL},
	{"-c", "0x30", NULL, NULL, "-c 0x30: lcore 4 is not available (0-3 are)", 0, 0, NULL},
	{"--lcores", "0@0,1@7", NULL, NULL, "--lcores 0@0,1@7: CPU 7 is not available (0-3 are)", 0,
		0, NULL},
	{"-l", "0", NULL, NULL,
		"-l 0: no lcore for a poller (two at least: main thread and poller)", 0, 0, NULL},
	{"-c", "8", NULL, NULL,
		"-c 8: no lcore for a poller (two at least: main thread and poller)", 0, 0, NULL},
	{"--lcores", "0@(0-3)", NULL, NULL,
		"--lcores 0@(0-3): no lcore for a poller (two at least: main thread and poller)", 0,
		0, NULL},
	{"-l", "0,1", NULL, "2",
		"-l 0,1: no lcore for a poller (two at least: main thread and poller)", 0, 0, NULL},
	{"-l", "0,200", NULL, NULL,
		"-l 0,200: lcore 200 is too large (0..127; --lcores puts a small one on CPU 200)",
		0, 0, NULL},
	{"-l", "0,x", NULL, NULL, "-l 0,x: not a list of lcores (0,2-3)", 0, 0, NULL},
	{"-l", "", NULL, NULL, "-l : not a list of lcores (0,2-3)", 0, 0, NULL},
	{"-l", "0,", NULL, NULL, "-l 0,: not a list of lcores (0,2-3)", 0, 0, NULL},
	{"-l", "2-0", NULL, NULL, "-l 2-0: not a list of lcores (0,2-3)", 0, 0, NULL},
	{"-l", "0,1-", NULL, NULL, "-l 0,1-: not a list of lcores (0,2-3)", 0, 0, NULL},
	{"-l", "0,99999999999", NULL, NULL, "-l 0,99999999999: not a list of lcores (0,2-3)", 0, 0,
		NULL},
	{"-c", "0", NULL, NULL, "-c 0: not a hexadecimal mask of lcores (0x3)", 0, 0, NULL},
	{"-c", "0x", NULL, NULL, "-c 0x: not a hexadecimal mask of lcores (0x3)", 0, 0, NULL},
	{"-c", "3g", NULL, NULL, "-c 3g: not a hexadecimal mask of lcores (0x3)", 0, 0, NULL},
	{"-l", "0,1", NULL, "zz", "-s zz: not a hexadecimal mask of lcores (0x3)", 0, 0, NULL},
	{"--lcores", "0@0,1@", NULL, NULL,
		"--lcores 0@0,1@: not a list of lcores below 128 (0@0,(1,2)@(1-3))", 0, 0, NULL},
	{"--lcores", "0@0,(1@1", NULL, NULL,
		"--lcores 0@0,(1@1: not a list of lcores below 128 (0@0,(1,2)@(1-3))", 0, 0, NULL},
	{"--lcores", "0@0,128@1", NULL, NULL,
		"--lcores 0@0,128@1: not a list of lcores below 128 (0@0,(1,2)@(1-3))", 0, 0, NULL},
	{"-l", "0,1", "2", NULL, "--main-lcore 2: not one of the lcores (-l 0,1)", 0, 0, NULL},
	{"-l", "0,1", "x", NULL, "--main-lcore x: not one of the lcores (-l 0,1)", 0, 0, NULL},
};

static void
lcores_given(void **state)
{
	static struct lcores lcores;
	char text[LCORES_TEXT_BYTES];
	cpu_set_t cpus;

	(void)state;
	for (size_t i = 0; i < COUNT(lcore_lines); i++) {
		const struct eal_conf eal = {.lcores_option = lcore_lines[i].option,
			.lcores = lcore_lines[i].value,
			.main_lcore = lcore_lines[i].main_lcore,
			.service_option = "-s",
			.service = lcore_lines[i].service};
		struct mistake why = {""};
		int rc;

		set_cpus("0,1,2,3", &cpus);
		rc = lcores_parse(&eal, &cpus, &lcores, &why);
		if (lcore_lines[i].poller_cpus == NULL) {
			assert_string_equal(why.text, lcore_lines[i].lcores);
			assert_int_not_equal(rc, 0);
			continue;
		}
		assert_string_equal(why.text, "");
		assert_int_equal(rc, 0);
		assert_string_equal(
			lcores_option(&lcores, text, sizeof(text)), lcore_lines[i].lcores);
		assert_int_equal(lcores.main, lcore_lines[i].main);
		assert_int_equal(lcores.n_pollers, lcore_lines[i].n_pollers);
		lcores_poller_cpus(&lcores, &cpus);
		assert_string_equal(
			lcores_cpus_text(&cpus, text, sizeof(text)), lcore_lines[i].poller_cpus);
	}
}

static void
lcores_chosen(void **state)
{
	static const struct {
		const char *allowed, *lcores, *poller_cpus;
	} machines[] = {
		{"0", "0@0,1@0", "0"},
		{"5", "0@5,1@5", "5"},
		{"0,1", "0@0,1@1", "1"},
		{"0,1,2,3", "0@(0-2),1@3", "3"},
		{"2,4,5,300", "0@(2,4-5),1@300", "300"},
	};
	static struct lcores lcores;
	char text[LCORES_TEXT_BYTES];
	cpu_set_t cpus;

	(void)state;
	for (size_t i = 0; i < COUNT(machines); i++) {
		set_cpus(machines[i].allowed, &cpus);
		lcores_default(&cpus, &lcores);
		assert_string_equal(lcores_option(&lcores, text, sizeof(text)), machines[i].lcores);
		lcores_poller_cpus(&lcores, &cpus);
		assert_string_equal(
			lcores_cpus_text(&cpus, text, sizeof(text)), machines[i].poller_cpus);
		assert_int_equal(lcores.main, 0);
		assert_int_equal(lcores.n_pollers, 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lcores_given),
		cmocka_unit_test(lcores_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
