/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for the user's mistakes; see mistake.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mistake.h"

/** Longest piece of a value that a message repeats: a socket path with some excess. */
#define SHOWN_BYTES 160

int
mistake(struct mistake *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, args);
	va_end(args);
	/* A value with a line feed in it must not make two lines of one. */
	for (char *c = why->text; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	return -EINVAL;
}

int
mistake_value(struct mistake *why, const char *where, const char *key, const char *value,
	const char *reason, const char *allowed)
{
	const char *colon = where[0] != '\0' ? ": " : "";

	if (value == NULL)
		return mistake(why, "%s%s%s: %s (%s)", where, colon, key, reason, allowed);
	return mistake(why, "%s%s%s = \"%.*s%s\": %s (%s)", where, colon, key, SHOWN_BYTES, value,
		strlen(value) > SHOWN_BYTES ? "..." : "", reason, allowed);
}
