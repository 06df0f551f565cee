/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See config_file.h. rte_cfgfile reads the file; before that each line is looked at here,
 * since it passes over what it does not understand and cuts what is too long.
 */
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>

#include "config_file.h"
#include "options.h"
#include "value.h"

/** What rte_cfgfile takes in a line, with its end. */
#define LINE_BYTES (CFG_NAME_LEN + CFG_VALUE_LEN)
/** Most keys of a section that are looked at; there is no kind with so many. */
#define MAX_KEYS   64
#define COMMENT    '#'

#define POLLER_SECTION "poller "

/* ---- lines --------------------------------------------------------------------- */

/* Cut blanks off both ends. Returns the first byte that is none. */
static char *
strip(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	for (n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

static const char *
check_section_line(char *line)
{
	char *end = strchr(line, ']');

	if (end == NULL || end[1] != '\0')
		return "not a section ([name])";
	*end = '\0';
	if (*strip(line + 1) == '\0')
		return "a section without a name ([options], [poller N] or [device])";
	return strlen(line + 1) < CFG_NAME_LEN ? NULL : "name too long (1..63 bytes)";
}

/* What is wrong with a line that has no comment and no blanks around it, or NULL. */
static const char *
check_line(char *line, bool *in_section)
{
	char *equals;

	if (line[0] == '\0')
		return NULL;
	if (line[0] == '[') {
		*in_section = true;
		return check_section_line(line);
	}
	equals = strchr(line, '=');
	if (equals == NULL || equals == line)
		return "neither a section nor a key (key = value; comments begin with #)";
	if (!*in_section)
		return "a key before the first section ([options], [poller N] or [device])";
	*equals = '\0';
	if (strlen(strip(line)) >= CFG_NAME_LEN)
		return "key too long (1..63 bytes)";
	return strlen(strip(equals + 1)) < CFG_VALUE_LEN ? NULL : "value too long (1..255 bytes)";
}

static int
check_lines(FILE *in, struct mistake *why)
{
	char line[LINE_BYTES + 2];
	bool in_section = false;

	for (unsigned int n = 1; fgets(line, sizeof(line), in) != NULL; n++) {
		const char *wrong = NULL;
		char shown[81];
		char *comment;

		if (strchr(line, '\n') == NULL && strlen(line) > LINE_BYTES)
			return mistake(why, "line %u: too long (1..%d bytes)", n, LINE_BYTES);
		comment = strchr(line, COMMENT);
		if (comment != NULL && (comment == line || comment[-1] != '\\'))
			*comment = '\0';
		snprintf(shown, sizeof(shown), "%s", strip(line));
		wrong = check_line(strip(line), &in_section);
		if (wrong != NULL)
			return mistake(why, "line %u: \"%s\": %s", n, shown, wrong);
	}
	return ferror(in) ? mistake(why, "cannot be read: %s", strerror(errno)) : 0;
}

/* ---- sections -------------------------------------------------------------------- */

static int
read_options(
	struct config *config, const struct rte_cfgfile_entry *entries, int n, struct mistake *why)
{
	int rc = 0;

	for (int i = 0; i < n && rc == 0; i++)
		rc = options_set(config, entries[i].name, entries[i].value, why);
	return rc;
}

/* [poller N]: one key. */
static int
read_poller(struct config *config, const char *section, const struct rte_cfgfile_entry *entries,
	int n, struct mistake *why)
{
	const char *wrong;
	int64_t index, cpu;

	wrong = value_number(
		section + strlen(POLLER_SECTION), 10, 0, CONFIG_MAX_POLLERS - 1, &index);
	if (wrong != NULL)
		return mistake(
			why, "[%s]: %s (poller 0..%d)", section, wrong, CONFIG_MAX_POLLERS - 1);
	if (config->poller_cpu[index] >= 0)
		return mistake(why, "[%s]: given twice (once)", section);
	for (int i = 0; i < n; i++)
		if (strcmp(entries[i].name, "cpu") != 0)
			return mistake_value(why, section, entries[i].name, entries[i].value,
				"unknown key", "cpu");
	if (n != 1)
		return mistake(
			why, "%s: cpu: %s (once)", section, n == 0 ? "missing" : "given twice");
	wrong = value_number(entries[0].value, 10, 0, CPU_SETSIZE - 1, &cpu);
	if (wrong != NULL)
		return mistake_value(
			why, section, "cpu", entries[0].value, wrong, "a CPU's number");
	config->poller_cpu[index] = (int)cpu;
	config->n_poller_cpus++;
	return 0;
}

static int
read_device(struct config *config, const char *section, const struct rte_cfgfile_entry *entries,
	int n, struct mistake *why)
{
	struct device_key keys[MAX_KEYS];

	for (int i = 0; i < n; i++)
		keys[i] = (struct device_key){
			.name = entries[i].name,
			.value = entries[i].value[0] != '\0' ? entries[i].value : NULL,
		};
	return config_add_keys(config, section, keys, (unsigned int)n, why);
}

static int
read_section(struct config *config, struct rte_cfgfile *file, int index, struct mistake *why)
{
	struct rte_cfgfile_entry entries[MAX_KEYS];
	char section[CFG_NAME_LEN];
	int n = rte_cfgfile_section_num_entries_by_index(file, section, index);

	if (n > MAX_KEYS)
		return mistake(why, "[%s]: too many keys (1..%d)", section, MAX_KEYS);
	n = rte_cfgfile_section_entries_by_index(file, index, section, entries, MAX_KEYS);
	if (strcmp(section, "options") == 0)
		return read_options(config, entries, n, why);
	if (strncmp(section, POLLER_SECTION, strlen(POLLER_SECTION)) == 0)
		return read_poller(config, section, entries, n, why);
	return read_device(config, section, entries, n, why);
}

/* Pollers are numbered without gaps, each has its CPU. */
static int
check_pollers(const struct config *config, struct mistake *why)
{
	for (unsigned int i = 0; i < config->n_poller_cpus; i++) {
		if (config->poller_cpu[i] < 0)
			return mistake(
				why, "[poller %u]: missing (pollers are numbered from 0)", i);
		for (unsigned int k = 0; k < i; k++)
			if (config->poller_cpu[k] == config->poller_cpu[i])
				return mistake(why,
					"poller %u: cpu = \"%d\": poller %u has it (one CPU each)",
					i, config->poller_cpu[i], k);
	}
	if (config->n_poller_cpus > 0 && config->eal.lcores != NULL)
		return mistake(why, "[poller 0]: the lcores are given by %s already (once)",
			config->eal.lcores_option);
	return 0;
}

/* ---- the file --------------------------------------------------------------------- */

static int
read_file(struct config *config, struct mistake *why)
{
	const struct rte_cfgfile_parameters params = {.comment_character = COMMENT};
	struct rte_cfgfile *file;
	FILE *in;
	int rc;

	in = fopen(config->file, "re");
	if (in == NULL)
		return mistake(why, "cannot be opened: %s", strerror(errno));
	rc = check_lines(in, why);
	fclose(in);
	if (rc != 0)
		return rc;
	file = rte_cfgfile_load_with_params(config->file, CFG_FLAG_EMPTY_VALUES, &params);
	if (file == NULL)
		return mistake(why, "cannot be read");
	for (int i = 0; i < rte_cfgfile_num_sections(file, "", 0) && rc == 0; i++)
		rc = read_section(config, file, i, why);
	rte_cfgfile_close(file);
	return rc == 0 ? check_pollers(config, why) : rc;
}

int
config_file_read(struct config *config, struct mistake *why)
{
	struct mistake inner = {""};
	int rc = read_file(config, &inner);

	if (rc != 0)
		mistake(why, "%s: %.800s", config->file, inner.text);
	return rc;
}
