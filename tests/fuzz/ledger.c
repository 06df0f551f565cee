/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_common.h>

#include "checks.h"
#include "ledger.h"

static struct ledger *attached[2];

static struct ledger *
ledger_of(const struct vhp_vring *vr)
{
	return attached[0]->vr == vr ? attached[0] : attached[1];
}

bool
ledger_is_guest(const struct guest *g, const struct iovec *piece)
{
	const uint8_t *start = piece->iov_base;

	for (uint32_t i = 0; i < g->mem.n_regions; i++) {
		const struct vhp_mem_region *r = &g->mem.regions[i];

		if (start >= r->hva && start < r->hva + r->size_bytes)
			return piece->iov_len <= (size_t)(r->hva + r->size_bytes - start);
	}
	return false;
}

static void
check_taken(const struct ledger *l, const struct vhp_frame *f)
{
	uint64_t sum = 0;

	CHECK(f->drop < VHP_DROP_COUNT);
	CHECK(f->n_desc >= 1 && f->n_desc <= l->vr->size);
	if (l->inner == &vhp_vring_split)
		CHECK(f->id < l->vr->size);
	if (f->drop != VHP_OK) {
		CHECK(f->n_iov == 0);
		return;
	}
	CHECK(f->n_iov <= VHP_MAX_IOV);
	for (uint16_t i = 0; i < f->n_iov; i++) {
		CHECK(f->iov[i].iov_len > 0);
		CHECK(ledger_is_guest(l->g, &f->iov[i]));
		sum += f->iov[i].iov_len;
	}
	CHECK(sum == f->len_bytes);
}

static uint16_t
ledger_take(struct vhp_vring *vr, struct vhp_frame *frames, uint16_t n, struct iovec *iov,
	uint32_t room)
{
	struct ledger *l = ledger_of(vr);
	uint16_t got = l->inner->take(vr, frames, n, iov, room);
	uint32_t pieces = 0;

	CHECK(got <= n);
	for (uint16_t i = 0; i < got; i++) {
		CHECK(frames[i].iov == iov + pieces);
		check_taken(l, &frames[i]);
		pieces += frames[i].n_iov;
	}
	CHECK(pieces <= room);
	/* One chain more than the limit, and each as long as it may be. */
	CHECK(vr->steps <= VHP_TAKE_DESCS + 2 * VHP_MAX_CHAIN_DESCS + vr->size);
	l->taken += got;
	return got;
}

static void
ledger_untake(struct vhp_vring *vr, const struct vhp_frame *frames, uint16_t n)
{
	struct ledger *l = ledger_of(vr);

	CHECK(n <= l->taken - l->put);
	l->taken -= n;
	l->inner->untake(vr, frames, n);
}

static void
ledger_put(struct vhp_vring *vr, const struct vhp_frame *frames, uint16_t n)
{
	struct ledger *l = ledger_of(vr);

	CHECK(n <= l->taken - l->put);
	for (uint16_t i = 0; i < n; i++) {
		CHECK(frames[i].used_bytes <= (frames[i].drop == VHP_OK ? frames[i].len_bytes : 0));
		CHECK(vr->device_writes || frames[i].used_bytes == 0);
		l->used_bytes += frames[i].used_bytes;
	}
	l->put += n;
	l->inner->put(vr, frames, n);
}

void
ledger_attach(struct ledger *l, struct vhp_vring *vr, const struct guest *g)
{
	*l = (struct ledger){.vr = vr, .g = g, .ops = *vr->ops, .inner = vr->ops};
	l->ops.take = ledger_take;
	l->ops.untake = ledger_untake;
	l->ops.put = ledger_put;
	vr->ops = &l->ops;
	attached[vr->device_writes] = l;
}
