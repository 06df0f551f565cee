/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "guest.h"

void
guest_init_regions(struct guest *g, const struct vhp_mem_region *regions, uint32_t n)
{
	memset(g, 0, sizeof(*g));
	g->mem.n_regions = n;
	for (uint32_t i = 0; i < n; i++) {
		struct vhp_mem_region *r = &g->mem.regions[i];

		*r = regions[i];
		r->hva = malloc(r->size_bytes);
		g->copy[i] = malloc(r->size_bytes);
		CHECK(r->hva != NULL && g->copy[i] != NULL);
		memset(r->hva, 0x5a + (int)i, r->size_bytes);
	}
}

void
guest_init(struct guest *g)
{
	static const struct vhp_mem_region regions[] = {
		{.gpa = GUEST_LOW_GPA, .size_bytes = GUEST_LOW_BYTES},
		{.gpa = GUEST_NEXT_GPA, .size_bytes = GUEST_NEXT_BYTES},
		{.gpa = GUEST_HIGH_GPA, .size_bytes = GUEST_HIGH_BYTES},
	};

	guest_init_regions(g, regions, 3);
}

void
guest_fini(struct guest *g)
{
	for (uint32_t i = 0; i < g->mem.n_regions; i++) {
		free(g->mem.regions[i].hva);
		free(g->copy[i]);
	}
	memset(g, 0, sizeof(*g));
}

uint8_t *
guest_byte(const struct guest *g, uint64_t gpa)
{
	for (uint32_t i = 0; i < g->mem.n_regions; i++) {
		const struct vhp_mem_region *r = &g->mem.regions[i];

		if (gpa >= r->gpa && gpa <= r->gpa + (r->size_bytes - 1))
			return r->hva + (gpa - r->gpa);
	}
	return NULL;
}

bool
guest_has(const struct guest *g, uint64_t gpa, uint64_t len_bytes)
{
	for (uint64_t i = 0; i < len_bytes; i++)
		if (guest_byte(g, gpa + i) == NULL)
			return false;
	return true;
}

/* Where [gpa, gpa + *len_bytes) begins; cut at the end of its region. It must be memory. */
static uint8_t *
piece(const struct guest *g, uint64_t gpa, size_t *len_bytes)
{
	for (uint32_t i = 0; i < g->mem.n_regions; i++) {
		const struct vhp_mem_region *r = &g->mem.regions[i];

		if (gpa < r->gpa || gpa > r->gpa + (r->size_bytes - 1))
			continue;
		if (*len_bytes > r->gpa + r->size_bytes - gpa)
			*len_bytes = r->gpa + r->size_bytes - gpa;
		return r->hva + (gpa - r->gpa);
	}
	CHECK(!"guest memory");
	return NULL;
}

void
guest_write(struct guest *g, uint64_t gpa, const void *src, size_t len_bytes)
{
	for (size_t done = 0; done < len_bytes;) {
		size_t len = len_bytes - done;
		uint8_t *to = piece(g, gpa + done, &len);

		memcpy(to, (const uint8_t *)src + done, len);
		done += len;
	}
}

void
guest_read(const struct guest *g, uint64_t gpa, void *dst, size_t len_bytes)
{
	for (size_t done = 0; done < len_bytes;) {
		size_t len = len_bytes - done;
		const uint8_t *from = piece(g, gpa + done, &len);

		memcpy((uint8_t *)dst + done, from, len);
		done += len;
	}
}

void
guest_fill(struct guest *g, uint64_t gpa, uint8_t byte, size_t len_bytes)
{
	for (size_t done = 0; done < len_bytes;) {
		size_t len = len_bytes - done;
		uint8_t *to = piece(g, gpa + done, &len);

		memset(to, byte, len);
		done += len;
	}
}

void
guest_snapshot(struct guest *g)
{
	for (uint32_t i = 0; i < g->mem.n_regions; i++)
		memcpy(g->copy[i], g->mem.regions[i].hva, g->mem.regions[i].size_bytes);
}

void
guest_expect(struct guest *g, uint64_t gpa, const void *src, size_t len_bytes)
{
	for (size_t i = 0; i < len_bytes; i++) {
		const uint8_t *byte = guest_byte(g, gpa + i);
		uint32_t n = 0;

		CHECK(byte != NULL);
		while (byte < g->mem.regions[n].hva ||
			byte >= g->mem.regions[n].hva + g->mem.regions[n].size_bytes)
			n++;
		g->copy[n][byte - g->mem.regions[n].hva] = ((const uint8_t *)src)[i];
	}
}

void
guest_check_memory(const struct guest *g)
{
	for (uint32_t i = 0; i < g->mem.n_regions; i++)
		CHECK(memcmp(g->copy[i], g->mem.regions[i].hva, g->mem.regions[i].size_bytes) == 0);
}

uint32_t
prng(uint64_t *state)
{
	/* Marsaglia's xorshift; a state of 0 would stay 0. */
	uint64_t x = *state != 0 ? *state : 0x9e3779b97f4a7c15ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return (uint32_t)(x >> 32);
}

uint32_t
prng_range(uint64_t *state, uint32_t least, uint32_t most)
{
	return least + prng(state) % (most - least + 1);
}
