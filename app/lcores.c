/* SPDX-License-Identifier: BSD-3-Clause */
/* EAL's options about lcores; see lcores.h. The grammar is EAL's own. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lcores.h"
#include "value.h"

static const char *
skip_blanks(const char *text)
{
	while (isblank((unsigned char)*text))
		text++;
	return text;
}

/* "3" or "3-5" into the set. Returns what follows, NULL if it is neither. */
static const char *
parse_range(const char *text, cpu_set_t *set)
{
	unsigned long first, last;
	char *end;

	text = skip_blanks(text);
	if (!isdigit((unsigned char)*text))
		return NULL;
	first = last = strtoul(text, &end, 10);
	text = skip_blanks(end);
	if (*text == '-') {
		text = skip_blanks(text + 1);
		if (!isdigit((unsigned char)*text))
			return NULL;
		last = strtoul(text, &end, 10);
		text = skip_blanks(end);
	}
	if (first >= CPU_SETSIZE || last >= CPU_SETSIZE || first > last)
		return NULL;
	for (unsigned long i = first; i <= last; i++)
		CPU_SET(i, set);
	return text;
}

/* "3", "3-5,7" up to the closing character, which is stepped over unless it is zero. */
static const char *
parse_list(const char *text, char close, cpu_set_t *set)
{
	for (;;) {
		text = parse_range(text, set);
		if (text == NULL)
			return NULL;
		if (*text == close)
			return close == '\0' ? text : skip_blanks(text + 1);
		if (*text != ',')
			return NULL;
		text++;
	}
}

/* "3", "3-5" or "(3-5,7)". *group: it has brackets. */
static const char *
parse_set(const char *text, cpu_set_t *set, bool *group)
{
	CPU_ZERO(set);
	text = skip_blanks(text);
	*group = *text == '(';
	return *group ? parse_list(text + 1, ')', set) : parse_range(text, set);
}

/* Hexadecimal, the lowest digit last. Returns NULL if it is not. */
static const char *
parse_mask(const char *text, cpu_set_t *set)
{
	size_t digits;

	text = skip_blanks(text);
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	digits = strspn(text, "0123456789abcdefABCDEF");
	if (digits == 0 || *skip_blanks(text + digits) != '\0')
		return NULL;
	for (size_t i = 0; i < digits; i++) {
		char digit[2] = {text[digits - 1 - i], '\0'};
		unsigned long bits = strtoul(digit, NULL, 16);

		for (size_t bit = 0; bit < 4; bit++) {
			if ((bits >> bit & 1) == 0)
				continue;
			if (4 * i + bit >= CPU_SETSIZE)
				return NULL;
			CPU_SET(4 * i + bit, set);
		}
	}
	return text + digits;
}

/* -l, -c, -S, -s: a set of lcores, each on the CPU of its own number. */
static int
parse_plain(const char *option, const char *value, cpu_set_t *set, struct mistake *why)
{
	bool mask = option[1] == 'c' || option[1] == 's';
	const char *end;

	CPU_ZERO(set);
	end = mask ? parse_mask(value, set) : parse_list(value, '\0', set);
	if (end == NULL || CPU_COUNT(set) == 0)
		return mistake(why, "%s %s: not a %s", option, value,
			mask ? "hexadecimal mask of lcores (0x3)" : "list of lcores (0,2-3)");
	for (unsigned int i = RTE_MAX_LCORE; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, set))
			return mistake(why,
				"%s %s: lcore %u is too large (0..%d; --lcores puts a small one on "
				"CPU %u)",
				option, value, i, RTE_MAX_LCORE - 1, i);
	return 0;
}

static int
use_plain(const struct eal_conf *eal, const cpu_set_t *available, struct lcores *out,
	struct mistake *why)
{
	char text[256];
	cpu_set_t set;
	int rc;

	rc = parse_plain(eal->lcores_option, eal->lcores, &set, why);
	if (rc != 0)
		return rc;
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		if (!CPU_ISSET(i, available))
			return mistake(why, "%s %s: lcore %u is not available (%s are)",
				eal->lcores_option, eal->lcores, i,
				lcores_cpus_text(available, text, sizeof(text)));
		out->used[i] = true;
		CPU_SET(i, &out->cpus[i]);
	}
	return 0;
}

/* One "lcores[@cpus]". Returns what follows, NULL if it is wrong. */
static const char *
parse_mapping(const char *text, struct lcores *out)
{
	cpu_set_t lcores, cpus;
	bool group, cpus_group, own;

	text = parse_set(text, &lcores, &group);
	if (text == NULL)
		return NULL;
	own = *text != '@' && !group; /* "3-5": each on the CPU of its own number */
	cpus = lcores;
	if (*text == '@') {
		text = parse_set(text + 1, &cpus, &cpus_group);
		if (text == NULL)
			return NULL;
	}
	for (unsigned int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &lcores))
			continue;
		if (i >= RTE_MAX_LCORE)
			return NULL;
		out->used[i] = true;
		out->cpus[i] = cpus;
		if (own) {
			CPU_ZERO(&out->cpus[i]);
			CPU_SET(i, &out->cpus[i]);
		}
	}
	return text;
}

static int
use_mappings(const struct eal_conf *eal, const cpu_set_t *available, struct lcores *out,
	struct mistake *why)
{
	const char *text = eal->lcores;
	char list[256];

	do {
		text = parse_mapping(text, out);
		if (text == NULL || (*text != ',' && *text != '\0'))
			return mistake(why,
				"--lcores %s: not a list of lcores below %d (0@0,(1,2)@(1-3))",
				eal->lcores, RTE_MAX_LCORE);
	} while (*text++ == ',');
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		for (unsigned int cpu = 0; out->used[i] && cpu < CPU_SETSIZE; cpu++)
			if (CPU_ISSET(cpu, &out->cpus[i]) && !CPU_ISSET(cpu, available))
				return mistake(why, "--lcores %s: CPU %u is not available (%s are)",
					eal->lcores, cpu,
					lcores_cpus_text(available, list, sizeof(list)));
	return 0;
}

/* --main-lcore, else the lowest. */
static int
choose_main(const struct eal_conf *eal, struct lcores *out, struct mistake *why)
{
	int64_t n;

	if (eal->main_lcore == NULL) {
		while (!out->used[out->main])
			out->main++;
		return 0;
	}
	if (value_number(eal->main_lcore, 0, 0, RTE_MAX_LCORE - 1, &n) != NULL || !out->used[n])
		return mistake(why, "--main-lcore %s: not one of the lcores (%s %s)",
			eal->main_lcore, eal->lcores_option, eal->lcores);
	out->main = (unsigned int)n;
	return 0;
}

int
lcores_parse(const struct eal_conf *eal, const cpu_set_t *available, struct lcores *out,
	struct mistake *why)
{
	cpu_set_t service;
	int rc;

	memset(out, 0, sizeof(*out));
	if (eal->lcores_option[1] == '-')
		rc = use_mappings(eal, available, out, why);
	else
		rc = use_plain(eal, available, out, why);
	if (rc == 0)
		rc = choose_main(eal, out, why);
	CPU_ZERO(&service);
	if (rc == 0 && eal->service != NULL)
		rc = parse_plain(eal->service_option, eal->service, &service, why);
	if (rc != 0)
		return rc;
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++) {
		out->service[i] = CPU_ISSET(i, &service);
		out->n_pollers += out->used[i] && !out->service[i] && i != out->main;
	}
	if (out->n_pollers == 0)
		return mistake(why,
			"%s %s: no lcore for a poller (two at least: main thread and poller)",
			eal->lcores_option, eal->lcores);
	return 0;
}

void
lcores_default(const cpu_set_t *allowed, struct lcores *out)
{
	unsigned int last = 0;

	memset(out, 0, sizeof(*out));
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, allowed))
			last = cpu;
	out->used[0] = out->used[1] = true;
	out->cpus[0] = *allowed;
	if (CPU_COUNT(allowed) > 1)
		CPU_CLR(last, &out->cpus[0]);
	CPU_SET(last, &out->cpus[1]);
	out->n_pollers = 1;
}

int
lcores_pollers(const int *cpus, unsigned int n, const cpu_set_t *available, struct lcores *out,
	struct mistake *why)
{
	char where[32], given[16], allowed[LCORES_TEXT_BYTES];

	memset(out, 0, sizeof(*out));
	out->used[0] = true;
	out->cpus[0] = *available;
	for (unsigned int i = 0; i < n; i++) {
		if (!CPU_ISSET(cpus[i], available)) {
			snprintf(where, sizeof(where), "poller %u", i);
			snprintf(given, sizeof(given), "%d", cpus[i]);
			return mistake_value(why, where, "cpu", given, "no such CPU",
				lcores_cpus_text(available, allowed, sizeof(allowed)));
		}
		if (i + 1 >= RTE_MAX_LCORE)
			return mistake(
				why, "poller %u: too many lcores (1..%d)", i, RTE_MAX_LCORE - 1);
		CPU_CLR(cpus[i], &out->cpus[0]);
		out->used[i + 1] = true;
		CPU_SET(cpus[i], &out->cpus[i + 1]);
	}
	if (CPU_COUNT(&out->cpus[0]) == 0)
		out->cpus[0] = *available;
	out->n_pollers = n;
	return 0;
}

const char *
lcores_option(const struct lcores *lcores, char *out, size_t out_bytes)
{
	size_t used_bytes = 0;
	char cpus[LCORES_TEXT_BYTES];

	out[0] = '\0';
	for (unsigned int i = 0; i < RTE_MAX_LCORE && used_bytes < out_bytes; i++) {
		bool one = CPU_COUNT(&lcores->cpus[i]) == 1;

		if (!lcores->used[i])
			continue;
		lcores_cpus_text(&lcores->cpus[i], cpus, sizeof(cpus));
		used_bytes +=
			(size_t)snprintf(out + used_bytes, out_bytes - used_bytes, "%s%u@%s%s%s",
				used_bytes > 0 ? "," : "", i, one ? "" : "(", cpus, one ? "" : ")");
	}
	return out;
}

void
lcores_poller_cpus(const struct lcores *lcores, cpu_set_t *out)
{
	CPU_ZERO(out);
	for (unsigned int i = 0; i < RTE_MAX_LCORE; i++)
		if (lcores->used[i] && !lcores->service[i] && i != lcores->main)
			CPU_OR(out, out, &lcores->cpus[i]);
}

const char *
lcores_cpus_text(const cpu_set_t *cpus, char *out, size_t out_bytes)
{
	size_t used_bytes = 0;

	out[0] = '\0';
	for (unsigned int i = 0; i < CPU_SETSIZE && used_bytes < out_bytes; i++) {
		unsigned int last = i;

		if (!CPU_ISSET(i, cpus))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus))
			last++;
		used_bytes += (size_t)snprintf(out + used_bytes, out_bytes - used_bytes, "%s%u",
			used_bytes > 0 ? "," : "", i);
		if (last > i && used_bytes < out_bytes)
			used_bytes += (size_t)snprintf(
				out + used_bytes, out_bytes - used_bytes, "-%u", last);
		i = last;
	}
	return out;
}
