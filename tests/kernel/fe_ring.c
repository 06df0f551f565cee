// SPDX-License-Identifier: BSD-3-Clause
/* Memory and split rings of the test front end (virtio 1.2, 2.7). */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fe.h"

#define ALIGN_BYTES 4096u

static uint16_t
load16(const __virtio16 *p)
{
	return __atomic_load_n((const uint16_t *)p, __ATOMIC_ACQUIRE);
}

static size_t
ring_bytes(unsigned num)
{
	return (vring_size(num, ALIGN_BYTES) + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
}

int
fe_mem_init(struct fe *fe)
{
	size_t per_vq = ring_bytes(fe->o.ring) + (size_t)fe->o.ring * FE_BUF_BYTES;
	uint8_t *p;

	/* Whole huge pages, so that a back end may map with any page size. */
	fe->mem_bytes = (2 * per_vq + (2u << 20) - 1) & ~(size_t)((2u << 20) - 1);
	fe->mem_fd = memfd_create("fe", MFD_CLOEXEC);
	if (fe->mem_fd < 0 || ftruncate(fe->mem_fd, (off_t)fe->mem_bytes))
		return -errno;
	fe->mem = mmap(NULL, fe->mem_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		fe->mem_fd, 0);
	if (fe->mem == MAP_FAILED)
		return -errno;

	p = fe->mem;
	for (int i = 0; i < 2; i++) {
		struct fe_vq *vq = &fe->vq[i];

		memset(vq, 0, sizeof(*vq));
		vq->num = fe->o.ring;
		vring_init(&vq->vr, vq->num, p, ALIGN_BYTES);
		vq->bufs = p + ring_bytes(vq->num);
		p += per_vq;
		/* This front end looks at the used ring, it needs no calls. */
		vq->vr.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
		vq->kick_fd = vq->call_fd = -1;
	}
	for (unsigned i = 0; i < fe->o.ring; i++)
		fe->vq[FE_TX].free[fe->vq[FE_TX].nfree++] = (uint16_t)i;
	return 0;
}

uint64_t
fe_gpa(const struct fe *fe, const void *p)
{
	return FE_GPA_BASE + (uint64_t)((const uint8_t *)p - fe->mem);
}

static void
put_head(struct fe_vq *vq, uint16_t head)
{
	vq->vr.avail->ring[vq->avail_idx % vq->num] = head;
	vq->avail_idx++;
}

void
fe_rx_fill(struct fe_vq *vq, const struct fe *fe, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct vring_desc *d = &vq->vr.desc[i];

		d->addr = fe_gpa(fe, vq->bufs + (size_t)i * FE_BUF_BYTES);
		d->len = FE_BUF_BYTES;
		d->flags = VRING_DESC_F_WRITE;
		d->next = 0;
		put_head(vq, (uint16_t)i);
	}
}

void
fe_rx_repost(struct fe_vq *vq, uint32_t head)
{
	put_head(vq, (uint16_t)head);
}

bool
fe_tx_put(struct fe *fe, const uint8_t *frame, unsigned bytes)
{
	struct fe_vq *vq = &fe->vq[FE_TX];
	struct vring_desc *d;
	uint16_t head;
	uint8_t *buf;

	if (!vq->nfree)
		return false;
	head = vq->free[--vq->nfree];
	buf = vq->bufs + (size_t)head * FE_BUF_BYTES;
	memset(buf, 0, FE_HDR_BYTES);
	memcpy(buf + FE_HDR_BYTES, frame, bytes);
	d = &vq->vr.desc[head];
	d->addr = fe_gpa(fe, buf);
	d->len = FE_HDR_BYTES + bytes;
	d->flags = 0;
	d->next = 0;
	put_head(vq, head);
	return true;
}

const struct vring_used_elem *
fe_used(struct fe_vq *vq)
{
	if (load16(&vq->vr.used->idx) == vq->last_used)
		return NULL;
	return &vq->vr.used->ring[vq->last_used++ % vq->num];
}

unsigned
fe_tx_reclaim(struct fe *fe)
{
	struct fe_vq *vq = &fe->vq[FE_TX];
	const struct vring_used_elem *e;
	unsigned n = 0;

	while ((e = fe_used(vq)) != NULL) {
		vq->free[vq->nfree++] = (uint16_t)e->id;
		n++;
	}
	return n;
}

void
fe_kick(struct fe_vq *vq)
{
	uint64_t one = 1;

	if (write(vq->kick_fd, &one, sizeof(one)) == sizeof(one))
		vq->kicks++;
}

bool
fe_publish(struct fe *fe, struct fe_vq *vq)
{
	uint16_t old = vq->shown_idx;
	bool want;

	if (old == vq->avail_idx)
		return false;
	__atomic_store_n((uint16_t *)&vq->vr.avail->idx, vq->avail_idx, __ATOMIC_RELEASE);
	vq->shown_idx = vq->avail_idx;
	/* Index first, then the question: virtio 1.2, 2.7.13.4.1. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (fe->o.event_idx)
		want = vring_need_event(load16((const __virtio16 *)&vring_avail_event(&vq->vr)),
			vq->avail_idx, old);
	else
		want = !(load16(&vq->vr.used->flags) & VRING_USED_F_NO_NOTIFY);
	if (want)
		fe_kick(vq);
	return want;
}
