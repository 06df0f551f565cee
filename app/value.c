/* SPDX-License-Identifier: BSD-3-Clause */
/* Text to value; see value.h. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

static_assert(VHP_POLL_MAX_US == 1000000, "VALUE_WINDOW_ALLOWED names another limit");

const char *
value_number(const char *text, int base, int64_t min, int64_t max, int64_t *out)
{
	char *end;
	long long n;

	if (!isdigit((unsigned char)text[0]) &&
		!(text[0] == '-' && isdigit((unsigned char)text[1])))
		return "not a number";
	errno = 0;
	n = strtoll(text, &end, base);
	if (*end != '\0')
		return "not a number";
	if (errno == ERANGE || n < min || n > max)
		return "out of range";
	*out = n;
	return NULL;
}

const char *
value_bool(const char *text, bool *out)
{
	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return "not a switch";
	*out = text[0] == '1';
	return NULL;
}

const char *
value_window(const char *text, uint32_t *out_us)
{
	const char *wrong;
	int64_t n;

	if (strcmp(text, "forever") == 0) {
		*out_us = VHP_POLL_FOREVER;
		return NULL;
	}
	if (strcmp(text, "auto") == 0) {
		*out_us = VHP_POLL_AUTO;
		return NULL;
	}
	wrong = value_number(text, 0, 0, VHP_POLL_MAX_US, &n);
	if (wrong == NULL)
		*out_us = (uint32_t)n;
	return wrong;
}

const char *
value_rx_poll(const char *text, enum vhp_rx_poll *out)
{
	if (strcmp(text, "interleave") == 0)
		*out = VHP_RX_INTERLEAVE;
	else if (strcmp(text, "deferred") == 0)
		*out = VHP_RX_DEFERRED;
	else
		return "unknown word";
	return NULL;
}

/* One rate, up to a slash or the end. */
static const char *
value_rate(const char *text, uint64_t min, uint64_t max, uint64_t *out, const char **end)
{
	static const char suffixes[] = "kMG";
	unsigned long long n;
	const char *suffix;
	char *after;

	if (!isdigit((unsigned char)text[0]))
		return "not a number";
	errno = 0;
	n = strtoull(text, &after, 10);
	suffix = *after != '\0' ? strchr(suffixes, *after) : NULL;
	if (errno == ERANGE || n > max)
		return "out of range";
	if (suffix != NULL)
		after++;
	/* max is 10^12, so a product that is too large has not wrapped. */
	for (const char *s = suffixes; suffix != NULL && s <= suffix && n <= max; s++)
		n *= 1000;
	if (*after != '\0' && *after != '/')
		return "not a number";
	if (n != 0 && (n < min || n > max))
		return "out of range";
	*out = n;
	*end = after;
	return NULL;
}

const char *
value_rates(const char *text, uint64_t min, uint64_t max, uint64_t out[2])
{
	uint64_t rates[2];
	const char *end;
	const char *wrong = value_rate(text, min, max, &rates[0], &end);

	rates[1] = rates[0];
	if (wrong == NULL && *end == '/') {
		wrong = value_rate(end + 1, min, max, &rates[1], &end);
		if (wrong == NULL && *end != '\0')
			wrong = "not a number";
	}
	if (wrong == NULL) {
		out[0] = rates[0];
		out[1] = rates[1];
	}
	return wrong;
}

const char *
value_text(const char *text, char *out, size_t out_bytes)
{
	size_t len_bytes = strlen(text);

	if (len_bytes == 0)
		return "empty";
	if (len_bytes >= out_bytes)
		return "too long";
	memcpy(out, text, len_bytes + 1);
	return NULL;
}

/* The kernel's own rules, dev_valid_name() and dev_alloc_name(). */
const char *
value_iface(const char *text, bool pattern, char *out)
{
	const char *percent = strchr(text, '%');

	if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return "not an interface name";
	for (const char *c = text; *c != '\0'; c++)
		if (*c == '/' || *c == ':' || isspace((unsigned char)*c))
			return "not an interface name";
	if (percent != NULL && (!pattern || percent[1] != 'd' || strchr(percent + 1, '%') != NULL))
		return "not an interface name";
	return value_text(text, out, IFNAMSIZ);
}

const char *
value_mac(const char *text, struct ether_addr *out)
{
	struct ether_addr mac;
	uint8_t any = 0;

	for (int i = 0; i < ETH_ALEN; i++) {
		const char *byte = text + 3 * i;
		char end = i == ETH_ALEN - 1 ? '\0' : ':';

		if (!isxdigit((unsigned char)byte[0]) || !isxdigit((unsigned char)byte[1]) ||
			byte[2] != end)
			return "not an Ethernet address";
		mac.ether_addr_octet[i] = (uint8_t)strtoul(byte, NULL, 16);
		any |= mac.ether_addr_octet[i];
	}
	if (any == 0 || (mac.ether_addr_octet[0] & 1) != 0)
		return "not a unicast address";
	*out = mac;
	return NULL;
}
