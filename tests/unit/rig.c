/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "checks.h"
#include "rig.h"

static unsigned int n_faults;

static void
on_fault(void)
{
	n_faults++;
}

struct rig *
rig_new(uint16_t size, bool packed, uint32_t base)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	CHECK(rig != NULL);
	n_faults = 0;
	guest_init(&rig->g);
	rig->vr.on_fault = on_fault;
	ring_init(&rig->r, &rig->vr, &rig->g, size, packed, base);
	return rig;
}

void
rig_free(struct rig *rig)
{
	ring_fini(&rig->r);
	guest_fini(&rig->g);
	free(rig);
}

uint16_t
rig_take(struct rig *rig, uint16_t n)
{
	return rig->vr.ops->take(&rig->vr, rig->frames, n, rig->iov, RIG_IOV);
}

void
rig_put(struct rig *rig, uint16_t n)
{
	rig->vr.ops->put(&rig->vr, rig->frames, n);
}

unsigned int
rig_faults(void)
{
	return n_faults;
}
