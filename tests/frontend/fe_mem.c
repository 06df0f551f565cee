/* SPDX-License-Identifier: BSD-3-Clause */
/* Guest memory; see fe_mem.h. */
#include "fe_mem.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_GPA  0x40000000ULL
#define HOLE_BYTES 0x200000ULL
/* Room behind the regions for those added later. */
#define GROW_BYTES 0x20000000ULL
/* Announced user addresses: far apart, so that they never look contiguous. */
#define UVA_BASE   0x500000000000ULL
#define UVA_STRIDE 0x010000003000ULL
/* Offset into the memfd of every second region. */
#define FD_OFFSET  0x10000ULL

static int
map_region(struct fe_mem *m, uint32_t i, uint64_t gpa, uint64_t bytes)
{
	struct fe_region *r = &m->r[i];
	uint64_t offset = (i & 1) != 0 ? FD_OFFSET : 0;
	void *want = m->base + (gpa - m->first_gpa);

	r->msg.gpa = gpa;
	r->msg.bytes = bytes;
	r->msg.uva = UVA_BASE + i * UVA_STRIDE;
	r->msg.mmap_offset = offset;
	r->fd = memfd_create("fe-guest-memory", MFD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	if (ftruncate(r->fd, (off_t)(offset + bytes)) < 0)
		return -errno;
	r->ptr = mmap(
		want, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, r->fd, (off_t)offset);
	return r->ptr == MAP_FAILED ? -errno : 0;
}

/* The region joins the area before it when no hole lies between. */
static void
join_area(struct fe_mem *m, uint64_t gpa, uint64_t bytes)
{
	struct fe_area *last = m->n_areas > 0 ? &m->area[m->n_areas - 1] : NULL;

	if (last != NULL && last->gpa + last->bytes == gpa) {
		last->bytes += bytes;
		return;
	}
	m->area[m->n_areas++] = (struct fe_area){.gpa = gpa, .bytes = bytes};
}

int
fe_mem_add(struct fe_mem *m, uint64_t bytes, enum fe_mem_layout layout)
{
	uint64_t gpa = m->first_gpa;
	int rc;

	if (m->n > 0)
		gpa = fe_mem_end(m, m->n - 1) + (layout == FE_MEM_GAPS ? HOLE_BYTES : 0);
	if (m->n == FE_REGIONS_MAX || gpa - m->first_gpa + bytes > m->span_bytes)
		return -ENOSPC;
	rc = map_region(m, m->n, gpa, bytes);
	if (rc != 0) {
		if (m->r[m->n].fd >= 0)
			close(m->r[m->n].fd);
		return rc;
	}
	join_area(m, gpa, bytes);
	return (int)m->n++;
}

int
fe_mem_init(struct fe_mem *m, uint32_t n, uint64_t region_bytes, enum fe_mem_layout layout)
{
	int rc = 0;

	memset(m, 0, sizeof(*m));
	if (n == 0 || n > FE_REGIONS_MAX || region_bytes == 0 || region_bytes % 4096 != 0)
		return -EINVAL;
	m->first_gpa = FIRST_GPA;
	m->span_bytes = n * (region_bytes + HOLE_BYTES) + GROW_BYTES;
	m->base = mmap(
		NULL, m->span_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->base == MAP_FAILED) {
		m->base = NULL;
		return -errno;
	}
	for (uint32_t i = 0; i < n && rc >= 0; i++)
		rc = fe_mem_add(m, region_bytes, layout);
	if (rc < 0) {
		fe_mem_free(m);
		return rc;
	}
	return 0;
}

void
fe_mem_free(struct fe_mem *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->r[i].fd >= 0)
			close(m->r[i].fd);
	if (m->base != NULL)
		munmap(m->base, m->span_bytes);
	memset(m, 0, sizeof(*m));
}

int
fe_mem_announce(const struct fe_mem *m, struct fe_conn *c)
{
	struct fe_region_msg msg[FE_REGIONS_MAX];
	int fds[FE_REGIONS_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		if (m->r[i].fd < 0)
			continue;
		msg[n] = m->r[i].msg;
		fds[n++] = m->r[i].fd;
	}
	return fe_set_mem_table(c, msg, fds, n);
}

static const struct fe_region *
find_region(const struct fe_mem *m, uint64_t gpa)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->r[i].fd >= 0 && gpa >= m->r[i].msg.gpa &&
			gpa - m->r[i].msg.gpa < m->r[i].msg.bytes)
			return &m->r[i];
	return NULL;
}

/* Returns the address for a piece in this area, 0 if it does not fit. */
static uint64_t
place(const struct fe_mem *m, const struct fe_area *a, uint64_t bytes, uint64_t align,
	uint32_t flags)
{
	uint64_t gpa = (a->gpa + a->used_bytes + align - 1) & ~(align - 1);
	uint64_t end = a->gpa + a->bytes;

	while (gpa < end && end - gpa >= bytes) {
		const struct fe_region *r = find_region(m, gpa);

		if (r == NULL)
			return 0;
		if ((flags & FE_ALLOC_ONE_REGION) == 0 || r->msg.gpa + r->msg.bytes - gpa >= bytes)
			return gpa;
		gpa = r->msg.gpa + r->msg.bytes;
		gpa = (gpa + align - 1) & ~(align - 1);
	}
	return 0;
}

uint64_t
fe_mem_alloc(struct fe_mem *m, uint64_t bytes, uint64_t align, uint32_t flags)
{
	for (uint32_t i = 0; i < m->n_areas; i++) {
		struct fe_area *a = &m->area[(m->next_area + i) % m->n_areas];
		uint64_t gpa = place(m, a, bytes, align, flags);

		if (gpa != 0) {
			a->used_bytes = gpa + bytes - a->gpa;
			m->next_area = (m->next_area + i + 1) % m->n_areas;
			return gpa;
		}
	}
	return 0;
}

uint64_t
fe_mem_end(const struct fe_mem *m, uint32_t index)
{
	return m->r[index].msg.gpa + m->r[index].msg.bytes;
}

uint64_t
fe_mem_alloc_across(struct fe_mem *m, uint64_t bytes, uint64_t before)
{
	for (uint32_t i = 0; i < m->n_areas; i++) {
		struct fe_area *a = &m->area[i];

		for (uint32_t k = 0; k < m->n; k++) {
			uint64_t gpa = fe_mem_end(m, k) - before;

			if (gpa < a->gpa + a->used_bytes || gpa + bytes > a->gpa + a->bytes)
				continue;
			a->used_bytes = gpa + bytes - a->gpa;
			return gpa;
		}
	}
	return 0;
}

uint64_t
fe_mem_uva(const struct fe_mem *m, uint64_t gpa)
{
	const struct fe_region *r = find_region(m, gpa);

	return r == NULL ? 0 : r->msg.uva + (gpa - r->msg.gpa);
}

void
fe_mem_remove(struct fe_mem *m, uint32_t index)
{
	struct fe_region *r = &m->r[index];

	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	/* No allocation from it any more. */
	for (uint32_t i = 0; i < m->n_areas; i++)
		if (r->msg.gpa >= m->area[i].gpa && r->msg.gpa - m->area[i].gpa < m->area[i].bytes)
			m->area[i].used_bytes = m->area[i].bytes;
}
