/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is wrong with the command line, as the one line that the user gets. The
 * parsers fill it and return; only main.c prints.
 */
#ifndef APP_MISTAKE_H
#define APP_MISTAKE_H

/** The line without the program's name and without its end; control characters are '?'. */
struct mistake {
	char text[1024];
};

/**
 * Fill the line from a printf format. Always returns -EINVAL, so that a parser can
 * end with "return mistake(why, ...)".
 */
int mistake(struct mistake *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * "net_vhost0: queues = "0x": not a number (1..128)".
 * @param where    device or "" for an option
 * @param key      key or option
 * @param value    as the user gave it; shown in part if it is very long; NULL: none given
 * @param reason   what is wrong
 * @param allowed  what would be right
 */
int mistake_value(struct mistake *why, const char *where, const char *key, const char *value,
	const char *reason, const char *allowed);

#endif /* APP_MISTAKE_H */
