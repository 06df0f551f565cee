/* SPDX-License-Identifier: BSD-3-Clause */
/* What both ring layouts share, and the choice between them; see fe_ring.h. */
#include "fe_ring.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fe_ring_impl.h"

static struct fe_ring_areas
area_sizes(const struct fe_ring_cfg *cfg)
{
	uint64_t n = cfg->size;

	if (cfg->packed)
		return (struct fe_ring_areas){
			n * sizeof(struct vring_packed_desc), sizeof(uint32_t), sizeof(uint32_t)};
	return (struct fe_ring_areas){n * sizeof(struct vring_desc), 4 + 2 * n + 2,
		4 + n * sizeof(struct vring_used_elem) + 2};
}

/* The three areas go to different places, as a guest's allocator would have it. */
static int
place_areas(struct fe_ring *r)
{
	struct fe_ring_areas a = area_sizes(&r->cfg);
	uint32_t n = r->cfg.size;

	r->desc_gpa = fe_mem_alloc(r->mem, a.desc_bytes, 16, FE_ALLOC_ONE_REGION);
	r->driver_gpa = fe_mem_alloc(r->mem, a.driver_bytes, 4, FE_ALLOC_ONE_REGION);
	r->device_gpa = fe_mem_alloc(r->mem, a.device_bytes, 4, FE_ALLOC_ONE_REGION);
	if (r->desc_gpa == 0 || r->driver_gpa == 0 || r->device_gpa == 0)
		return -ENOMEM;
	if (r->cfg.packed) {
		r->pdesc = fe_mem_ptr(r->mem, r->desc_gpa);
		r->driver_event = fe_mem_ptr(r->mem, r->driver_gpa);
		r->device_event = fe_mem_ptr(r->mem, r->device_gpa);
	} else {
		r->desc = fe_mem_ptr(r->mem, r->desc_gpa);
		r->avail = fe_mem_ptr(r->mem, r->driver_gpa);
		r->used = fe_mem_ptr(r->mem, r->device_gpa);
		r->used_event = &r->avail->ring[n];
		r->avail_event = (uint16_t *)&r->used->ring[n];
	}
	if (r->cfg.indirect_max == 0)
		return 0;
	r->indirect_gpa = fe_mem_alloc(
		r->mem, (uint64_t)n * r->cfg.indirect_max * sizeof(struct vring_desc), 16, 0);
	return r->indirect_gpa == 0 ? -ENOMEM : 0;
}

int
fe_ring_init(struct fe_ring *r, struct fe_mem *m, const struct fe_ring_cfg *cfg)
{
	int rc;

	memset(r, 0, sizeof(*r));
	r->cfg = *cfg;
	r->mem = m;
	r->kick_fd = r->call_fd = r->err_fd = -1;
	if (cfg->size == 0 || cfg->size > FE_RING_SIZE_MAX ||
		(!cfg->packed && (cfg->size & (cfg->size - 1)) != 0))
		return -EINVAL;
	rc = place_areas(r);
	if (rc != 0)
		return rc;
	r->slot = calloc(cfg->size, sizeof(*r->slot));
	r->free_next = calloc(cfg->size, sizeof(*r->free_next));
	r->order = calloc(cfg->size + 1, sizeof(*r->order));
	r->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->call_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->err_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->slot == NULL || r->free_next == NULL || r->order == NULL || r->kick_fd < 0 ||
		r->call_fd < 0 || r->err_fd < 0) {
		fe_ring_free(r);
		return -ENOMEM;
	}
	fe_ring_reset(r, cfg->start);
	return 0;
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
fe_ring_free(struct fe_ring *r)
{
	if (r == NULL || r->mem == NULL)
		return;
	close_fd(&r->kick_fd);
	close_fd(&r->call_fd);
	close_fd(&r->err_fd);
	free(r->slot);
	free(r->free_next);
	free(r->order);
	r->slot = NULL;
	r->free_next = r->order = NULL;
}

void
fe_ring_reset(struct fe_ring *r, uint16_t start)
{
	struct fe_ring_areas a = area_sizes(&r->cfg);

	r->cfg.start = r->base = start;
	memset(r->slot, 0, r->cfg.size * sizeof(*r->slot));
	memset(fe_mem_ptr(r->mem, r->desc_gpa), 0, a.desc_bytes);
	memset(fe_mem_ptr(r->mem, r->driver_gpa), 0, a.driver_bytes);
	memset(fe_mem_ptr(r->mem, r->device_gpa), 0, a.device_bytes);
	r->order_head = r->order_tail = 0;
	r->batch_left = 0;
	if (r->cfg.packed)
		fe_packed_reset(r);
	else
		fe_split_reset(r);
}

uint16_t
fe_ring_position(const struct fe_ring *r)
{
	if (!r->cfg.packed)
		return r->last_used;
	return (uint16_t)(r->last_used | (r->used_wrap ? 0x8000 : 0));
}

int
fe_ring_start(struct fe_ring *r, struct fe_conn *c, uint32_t index)
{
	struct fe_vring_addr a = {
		.index = index,
		.desc = fe_mem_uva(r->mem, r->desc_gpa),
		.avail = fe_mem_uva(r->mem, r->driver_gpa),
		.used = fe_mem_uva(r->mem, r->device_gpa),
		.log = r->device_gpa,
	};
	uint32_t base = r->base;
	int rc;

	/* Packed: available position in the low half, used position in the high one. */
	if (r->cfg.packed)
		base |= base << 16;
	r->index = index;
	rc = fe_set_vring_num(c, index, r->cfg.size);
	if (rc == 0)
		rc = fe_set_vring_base(c, index, base);
	if (rc == 0)
		rc = fe_set_vring_addr(c, &a);
	if (rc == 0)
		rc = fe_set_vring_fd(c, FE_SET_VRING_ERR, index, r->err_fd);
	if (rc == 0)
		rc = fe_set_vring_fd(c, FE_SET_VRING_CALL, index, r->call_fd);
	if (rc == 0)
		rc = fe_set_vring_fd(c, FE_SET_VRING_KICK, index, r->kick_fd);
	return rc;
}

int
fe_ring_stop(struct fe_ring *r, struct fe_conn *c)
{
	uint32_t v = 0;
	int rc = fe_get_vring_base(c, r->index, &v);

	if (rc == 0)
		r->base = (uint16_t)v;
	return rc;
}

uint16_t
fe_ring_used_end(const struct fe_ring *r)
{
	struct fe_ring copy = *r;

	if (!r->cfg.packed)
		return __atomic_load_n(&r->used->idx, __ATOMIC_ACQUIRE);
	while (fe_packed_pending(&copy)) {
		uint16_t id = copy.pdesc[copy.last_used].id;

		if (id >= copy.cfg.size || copy.slot[id].ndesc == 0 ||
			copy.num_free == copy.cfg.size)
			break;
		fe_packed_skip(&copy, copy.slot[id].ndesc);
		copy.num_free += copy.slot[id].ndesc;
	}
	return fe_ring_position(&copy);
}

int
fe_ring_add(
	struct fe_ring *r, const struct fe_seg *seg, uint32_t n, uint32_t ndirect, uint64_t token)
{
	if (n == 0 || (ndirect < n && n - ndirect > r->cfg.indirect_max))
		return -EINVAL;
	if (r->cfg.packed)
		return fe_packed_add(r, seg, n, ndirect, token);
	return fe_split_add(r, seg, n, ndirect, token);
}

int
fe_ring_add_raw(struct fe_ring *r, const struct fe_raw_desc *d, uint32_t n, uint64_t token)
{
	if (n == 0)
		return -EINVAL;
	if (r->cfg.packed)
		return fe_packed_add_raw(r, d, n, token);
	return fe_split_add_raw(r, d, n, token);
}

void
fe_ring_publish(struct fe_ring *r)
{
	if (r->cfg.packed)
		fe_packed_publish(r);
	else
		__atomic_store_n(&r->avail->idx, r->next_avail, __ATOMIC_RELEASE);
}

bool
fe_ring_kick_needed(struct fe_ring *r)
{
	/* The device's wish must not be read before our index is visible to it. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return r->cfg.packed ? fe_packed_kick_needed(r) : fe_split_kick_needed(r);
}

bool
fe_ring_kick(struct fe_ring *r)
{
	fe_ring_publish(r);
	if (!fe_ring_kick_needed(r)) {
		r->n_kicks_saved++;
		return false;
	}
	fe_ring_kick_always(r);
	return true;
}

void
fe_ring_kick_always(struct fe_ring *r)
{
	uint64_t one = 1;

	r->n_kicks++;
	/* A full counter is a pending kick as well. */
	if (r->kick_fd >= 0 && write(r->kick_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		fe_fault(&r->fault, "kick: %s", strerror(errno));
}

bool
fe_ring_pending(const struct fe_ring *r)
{
	if (r->batch_left > 0)
		return true;
	return r->cfg.packed ? fe_packed_pending(r) : fe_split_pending(r);
}

int
fe_used_check(struct fe_ring *r, uint32_t id, uint32_t len)
{
	if (id >= r->cfg.size)
		return fe_fault(
			&r->fault, "vring %u: used id %u, ring size %u", r->index, id, r->cfg.size);
	if (r->slot[id].ndesc == 0)
		return fe_fault(&r->fault, "vring %u: used id %u is not outstanding", r->index, id);
	if (len > r->slot[id].in_bytes)
		return fe_fault(&r->fault, "vring %u: used len %u above the %u writable bytes",
			r->index, len, r->slot[id].in_bytes);
	return 0;
}

int
fe_ring_used(struct fe_ring *r, struct fe_done *out, uint32_t max)
{
	return r->cfg.packed ? fe_packed_used(r, out, max) : fe_split_used(r, out, max);
}

bool
fe_ring_arm(struct fe_ring *r, uint16_t after)
{
	if (r->cfg.packed)
		fe_packed_arm(r, after);
	else
		fe_split_arm(r, after);
	/* Our wish must be visible before the last look at the used ring. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return fe_ring_pending(r);
}

void
fe_ring_disarm(struct fe_ring *r)
{
	if (r->cfg.packed)
		fe_packed_disarm(r);
	else
		fe_split_disarm(r);
}

uint64_t
fe_ring_take_calls(struct fe_ring *r)
{
	uint64_t n = 0;

	if (r->call_fd < 0 || read(r->call_fd, &n, sizeof(n)) != (ssize_t)sizeof(n))
		return 0;
	r->n_calls += n;
	return n;
}

bool
fe_ring_take_error(struct fe_ring *r)
{
	uint64_t n;

	return read(r->err_fd, &n, sizeof(n)) == (ssize_t)sizeof(n);
}

int
fe_ring_wait(struct fe_ring *r, uint32_t timeout_us)
{
	uint64_t end = fe_now_us() + timeout_us;

	for (;;) {
		struct pollfd p = {.fd = r->call_fd, .events = POLLIN};
		uint64_t now = fe_now_us();
		uint64_t left = now >= end ? 0 : end - now;
		struct timespec ts = {.tv_sec = (time_t)(left / 1000000),
			.tv_nsec = (long)(left % 1000000) * 1000};

		if (ppoll(&p, 1, &ts, NULL) > 0 && fe_ring_take_calls(r) > 0)
			return 1;
		if (left == 0)
			return fe_ring_pending(r) ? -ENOMSG : 0;
	}
}

uint32_t
fe_ring_outstanding(const struct fe_ring *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->cfg.size; i++)
		n += r->slot[i].ndesc != 0;
	return n;
}
