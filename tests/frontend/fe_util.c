/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the test front end; see fe_util.h. */
#include "fe_util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t
rotl(uint64_t v, unsigned int by)
{
	return (v << by) | (v >> (64 - by));
}

void
fe_rng_seed(struct fe_rng *rng, uint64_t seed)
{
	/* splitmix64 spreads a small seed over the whole state. */
	for (size_t i = 0; i < FE_ARRAY_SIZE(rng->s); i++) {
		uint64_t z = seed += 0x9e3779b97f4a7c15ULL;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
		rng->s[i] = z ^ (z >> 31);
	}
}

uint64_t
fe_rng_u64(struct fe_rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint32_t
fe_rng_range(struct fe_rng *rng, uint32_t lo, uint32_t hi)
{
	uint64_t span = (uint64_t)hi - lo + 1;

	return lo + (uint32_t)(((fe_rng_u64(rng) >> 32) * span) >> 32);
}

bool
fe_rng_one_in(struct fe_rng *rng, uint32_t n)
{
	return fe_rng_range(rng, 1, n) == 1;
}

void
fe_rng_fill(struct fe_rng *rng, void *dst, size_t bytes)
{
	uint8_t *p = dst;

	while (bytes > 0) {
		uint64_t v = fe_rng_u64(rng);
		size_t n = bytes < sizeof(v) ? bytes : sizeof(v);

		memcpy(p, &v, n);
		p += n;
		bytes -= n;
	}
}

uint64_t
fe_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

uint64_t
fe_now_us(void)
{
	return fe_now_ns() / 1000;
}

void
fe_spin_ns(uint64_t ns)
{
	uint64_t end = fe_now_ns() + ns;

	while (fe_now_ns() < end)
		;
}

int
fe_fault(struct fe_fault *f, const char *fmt, ...)
{
	va_list ap;

	if (f->text[0] == '\0') {
		va_start(ap, fmt);
		vsnprintf(f->text, sizeof(f->text), fmt, ap);
		va_end(ap);
	}
	return -EPROTO;
}

size_t
fe_first_diff(const void *a, const void *b, size_t bytes)
{
	const uint8_t *x = a, *y = b;
	size_t i = 0;

	if (memcmp(a, b, bytes) == 0)
		return bytes;
	while (x[i] == y[i])
		i++;
	return i;
}

uint64_t
fe_opt_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || v < min || v > max) {
		fprintf(stderr, "error: --%s: \"%s\": not a number in %llu..%llu\n", option, text,
			(unsigned long long)min, (unsigned long long)max);
		exit(2);
	}
	return v;
}

unsigned int
fe_opt_choice(const char *option, const char *text, const char *const *names)
{
	unsigned int i;

	for (i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], text) == 0)
			return i;
	fprintf(stderr, "error: --%s: \"%s\": not one of", option, text);
	for (i = 0; names[i] != NULL; i++)
		fprintf(stderr, " %s", names[i]);
	fprintf(stderr, "\n");
	exit(2);
}
