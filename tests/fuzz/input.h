/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzzer's input, read from the front. What lies behind its end reads as zero, so that
 * every input is a right one.
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
	const uint8_t *bytes;
	size_t left;
};

/** The next byte. */
static inline uint8_t
input_u8(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->bytes++;
}

/** The next two bytes, little endian. */
static inline uint16_t
input_u16(struct input *in)
{
	uint16_t low = input_u8(in);

	return low | input_u8(in) << 8;
}

/** The next n bytes, or fewer at the end; the rest of dst is zero. Returns how many there were. */
static inline size_t
input_bytes(struct input *in, void *dst, size_t n)
{
	size_t have = n < in->left ? n : in->left;

	memset(dst, 0, n);
	if (have > 0)
		memcpy(dst, in->bytes, have);
	in->bytes += have;
	in->left -= have;
	return have;
}

/** What libFuzzer calls. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif /* FUZZ_INPUT_H */
