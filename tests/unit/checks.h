/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks for code that unit tests and fuzzers share: a violated check ends a unit test
 * through cmocka, which prints where, and a fuzzer through abort().
 */
#ifndef TEST_CHECKS_H
#define TEST_CHECKS_H

#ifdef FUZZING
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)
#else
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CHECK(condition) assert_true(condition)
#endif

#endif /* TEST_CHECKS_H */
