/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small things that every layer of the test front end needs: a seeded random
 * generator whose sequence is the same on every machine, clocks, option values,
 * and faults (a printable reason beside the errno).
 *
 * Nothing here is thread safe unless it says so; each thread owns its objects.
 */
#ifndef FE_UTIL_H
#define FE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FE_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/** xoshiro256** generator, see prng.di.unimi.it (public domain algorithm). */
struct fe_rng {
	uint64_t s[4];
};

/** Start @p rng from @p seed; any value will do, equal seeds give equal sequences. */
void fe_rng_seed(struct fe_rng *rng, uint64_t seed);

/** Next 64 random bits. */
uint64_t fe_rng_u64(struct fe_rng *rng);

/** Random number in [@p lo, @p hi], both included; needs @p lo <= @p hi. */
uint32_t fe_rng_range(struct fe_rng *rng, uint32_t lo, uint32_t hi);

/** True once in @p n times on average, @p n >= 1. */
bool fe_rng_one_in(struct fe_rng *rng, uint32_t n);

/** Fill @p bytes bytes at @p dst. */
void fe_rng_fill(struct fe_rng *rng, void *dst, size_t bytes);

/** CLOCK_MONOTONIC in nanoseconds. Any thread. */
uint64_t fe_now_ns(void);

/** CLOCK_MONOTONIC in microseconds. Any thread. */
uint64_t fe_now_us(void);

/** Burn the CPU for @p ns nanoseconds (shorter than any sleep can be). */
void fe_spin_ns(uint64_t ns);

/** Reason of the last deviation an object has seen; empty text means none. */
struct fe_fault {
	char text[240];
};

/**
 * Keep a printf-style reason, unless an earlier one is kept already.
 * @return always -EPROTO, so that callers write `return fe_fault(...)`.
 */
int fe_fault(struct fe_fault *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * Describe the first difference of two equally long byte arrays.
 * @return offset of the first difference, or @p bytes if they are equal.
 */
size_t fe_first_diff(const void *a, const void *b, size_t bytes);

/**
 * Read a whole decimal (or 0x...) number of an option.
 *
 * Prints one line naming option, value and range to stderr and exits with status 2
 * when @p text is no number in [@p min, @p max]; only for the main() of a test program.
 */
uint64_t fe_opt_number(const char *option, const char *text, uint64_t min, uint64_t max);

/**
 * Position of @p text in the NULL-terminated @p names.
 * Same way of failing as fe_opt_number().
 */
unsigned int fe_opt_choice(const char *option, const char *text, const char *const *names);

#endif
