/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 10^5 random chains, split and packed, for both directions, about half of them damaged in
 * one place; what the library makes of each is compared with a second walker, written
 * from the specification without a thought for speed.
 */
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "rig.h"

#define SIZE       64
#define MOST       12
#define CHAINS     26000
#define TABLE_AREA (MOST * 16)
#define TABLE(i)   (GUEST_HIGH_GPA + (i)*TABLE_AREA)

/* ---- the model --------------------------------------------------------------- */

struct model {
	const struct rig *e;
	enum vhp_drop drop;
	uint64_t len_bytes;
	uint32_t n_pieces;
	struct iovec pieces[8 * 1024];
};

/* One buffer. Returns false if the chain is at fault. */
static bool
model_buffer(struct model *m, uint64_t addr, uint32_t len, uint16_t flags)
{
	uint64_t left = len;

	m->drop = VHP_DROP_CHAIN_DIRECTION;
	if (!!(flags & VRING_DESC_F_WRITE) != m->e->vr.device_writes)
		return false;
	m->drop = VHP_DROP_CHAIN_LENGTH;
	m->len_bytes += len;
	if (m->len_bytes > UINT32_MAX)
		return false;
	m->drop = VHP_DROP_CHAIN_ADDRESS;
	while (left > 0) {
		const struct vhp_mem_region *r = m->e->g.mem.regions;
		uint8_t *first = guest_byte(&m->e->g, addr);
		uint64_t n;

		if (first == NULL)
			return false;
		while (first < r->hva || first >= r->hva + r->size_bytes)
			r++;
		n = RTE_MIN(left, (uint64_t)(r->hva + r->size_bytes - first));
		m->pieces[m->n_pieces++] = (struct iovec){first, n};
		addr += n;
		left -= n;
	}
	m->drop = m->n_pieces > VHP_MAX_IOV ? VHP_DROP_CHAIN_SEGMENTS : VHP_OK;
	return m->drop == VHP_OK;
}

/* An indirect table. */
static void
model_table(struct model *m, uint64_t table, uint32_t len, uint16_t flags)
{
	static bool visited[65536];
	uint32_t entries = len / 16;
	uint32_t i = 0;

	m->drop = VHP_DROP_CHAIN_INDIRECT;
	if (len == 0 || len % 16 != 0 || entries > 65536 || (flags & VRING_DESC_F_NEXT))
		return;
	if (m->e->r.packed && entries > VHP_MAX_CHAIN_DESCS) {
		m->drop = VHP_DROP_CHAIN_LOOP;
		return;
	}
	memset(visited, 0, sizeof(visited));
	for (;;) {
		struct vring_desc d;
		struct vring_packed_desc p;

		m->drop = VHP_DROP_CHAIN_LOOP;
		if (visited[i])
			return;
		visited[i] = true;
		m->drop = VHP_DROP_CHAIN_ADDRESS;
		if (!guest_has(&m->e->g, table + i * 16, 16))
			return;
		guest_read(&m->e->g, table + i * 16, &d, 16);
		memcpy(&p, &d, 16);
		if (m->e->r.packed)
			d = (struct vring_desc){p.addr, p.len, p.flags & ~VRING_DESC_F_NEXT, i + 1};
		m->drop = VHP_DROP_CHAIN_INDIRECT;
		if (d.flags & VRING_DESC_F_INDIRECT)
			return;
		if (!model_buffer(m, d.addr, d.len, d.flags))
			return;
		if (m->e->r.packed ? i + 1 == entries : !(d.flags & VRING_DESC_F_NEXT))
			return;
		m->drop = VHP_DROP_CHAIN_NEXT;
		i = d.next;
		if (i >= entries)
			return;
	}
}

static void
model_split(struct model *m, uint16_t head)
{
	bool visited[SIZE] = {false};
	uint16_t i = head;

	for (;;) {
		const struct vring_desc *d = &m->e->r.desc[i];

		m->drop = VHP_DROP_CHAIN_LOOP;
		if (visited[i])
			return;
		visited[i] = true;
		if (d->flags & VRING_DESC_F_INDIRECT) {
			model_table(m, d->addr, d->len, d->flags);
			return;
		}
		if (!model_buffer(m, d->addr, d->len, d->flags))
			return;
		if (!(d->flags & VRING_DESC_F_NEXT))
			return;
		m->drop = VHP_DROP_CHAIN_NEXT;
		i = d->next;
		if (i >= SIZE)
			return;
	}
}

static void
model_packed(struct model *m, uint16_t position, uint16_t n_desc)
{
	for (uint16_t k = 0; k < n_desc; k++) {
		const struct vring_packed_desc *d = &m->e->r.descs[(position + k) % SIZE];

		if (d->flags & VRING_DESC_F_INDIRECT) {
			model_table(m, d->addr, d->len, d->flags);
			if (m->drop != VHP_OK)
				return;
		} else if (!model_buffer(m, d->addr, d->len, d->flags)) {
			return;
		}
	}
}

/* ---- chains ------------------------------------------------------------------ */

struct posted {
	int id;
	uint16_t position; /* packed */
};

/* A buffer somewhere in memory, often at an edge of a region. */
static struct vring_desc
random_buffer(const struct rig *e, uint64_t *seed)
{
	struct vring_desc d = {.len = prng_range(seed, 0, 3000)};

	if (prng(seed) % 8 == 0)
		d.len = 0;
	d.addr = GUEST_LOW_GPA + prng(seed) % (GUEST_LOW_BYTES + GUEST_NEXT_BYTES - d.len);
	if (prng(seed) % 4 == 0)
		d.addr = GUEST_NEXT_GPA - prng(seed) % (d.len + 1);
	if (prng(seed) % 16 == 0)
		d.addr = GUEST_NEXT_END - d.len;
	if (e->vr.device_writes)
		d.flags = VRING_DESC_F_WRITE;
	return d;
}

/* Damage one field. A packed chain keeps its end and its id: they say where the next begins. */
static void
damage(struct vring_desc *d, bool in_packed_ring, uint64_t *seed)
{
	static const uint64_t addresses[] = {0, GUEST_LOW_GPA - 1, GUEST_NEXT_END - 1,
		GUEST_NEXT_END, GUEST_NOWHERE_GPA, GUEST_HIGH_GPA - 1, UINT64_MAX, UINT64_MAX - 64};
	static const uint32_t lengths[] = {0, 1, 15, 16, 17, 32, 48, 16 * 1024, 16 * 1025, 0x100000,
		0x100010, GUEST_LOW_BYTES, 0x80000000, UINT32_MAX};
	uint16_t bit = 1U << prng(seed) % 3;

	switch (prng(seed) % (in_packed_ring ? 3 : 4)) {
	case 0:
		d->addr = prng(seed) % 2 ? addresses[prng(seed) % RTE_DIM(addresses)]
					 : (uint64_t)prng(seed) << 4;
		break;
	case 1:
		d->len = prng(seed) % 4 ? lengths[prng(seed) % RTE_DIM(lengths)] : prng(seed);
		break;
	case 2:
		if (in_packed_ring)
			bit = bit == VRING_DESC_F_NEXT ? VRING_DESC_F_WRITE : bit;
		d->flags ^= bit;
		break;
	default:
		d->next = prng(seed) % 4 ? prng(seed) % (SIZE + 1) : prng(seed);
	}
}

/* Damage a descriptor of the ring, or one of its table. */
static void
damage_chain(struct rig *e, const struct posted *p, uint64_t table, uint16_t n, uint64_t *seed)
{
	uint16_t k = prng(seed) % n;
	struct vring_desc d;

	if (table != 0 && prng(seed) % 3 > 0) {
		uint64_t gpa = table + k * sizeof(d);

		guest_read(&e->g, gpa, &d, sizeof(d));
		damage(&d, false, seed);
		guest_write(&e->g, gpa, &d, sizeof(d));
	} else if (e->r.packed) {
		struct vring_packed_desc *q =
			&e->r.descs[(p->position + (table != 0 ? 0 : k)) % SIZE];

		d = (struct vring_desc){q->addr, q->len, q->flags, 0};
		damage(&d, true, seed);
		q->addr = d.addr;
		q->len = d.len;
		q->flags = d.flags;
	} else {
		uint16_t i = p->id;

		while (table == 0 && k-- > 0)
			i = e->r.next[i];
		damage(&e->r.desc[i], false, seed);
	}
}

/* Post a chain, perhaps a damaged one. Returns false if the ring is full. */
static bool
post(struct rig *e, struct posted *p, uint64_t *seed)
{
	struct vring_desc bufs[MOST];
	uint16_t n = prng_range(seed, 1, MOST);
	uint64_t table = prng(seed) % 2 ? TABLE(prng(seed) % SIZE) : 0;

	/* A table may be anywhere, also at an odd address or over an edge. */
	if (table != 0 && prng(seed) % 4 == 0)
		table = GUEST_NEXT_GPA - prng(seed) % (n * 16);
	for (uint16_t i = 0; i < n; i++)
		bufs[i] = random_buffer(e, seed);
	p->position = e->r.avail_idx;
	p->id = ring_post(&e->r, bufs, n, table);
	if (p->id < 0)
		return false;
	if (prng(seed) % 2)
		damage_chain(e, p, table, n, seed);
	return true;
}

/* ---- comparison -------------------------------------------------------------- */

static struct model model;

static void
check_frame(const struct rig *e, const struct vhp_frame *f, const struct posted *p)
{
	struct model *m = &model;

	m->e = e;
	m->drop = VHP_OK;
	m->len_bytes = m->n_pieces = 0;
	if (e->r.packed)
		model_packed(m, p->position, e->r.n_desc[p->id]);
	else
		model_split(m, p->id);
	assert_int_equal(f->id, p->id);
	/* A table that loops over an edge: it depends on the turns which limit is hit first. */
	if (m->drop == VHP_DROP_CHAIN_LOOP && f->drop == VHP_DROP_CHAIN_SEGMENTS)
		m->drop = VHP_DROP_CHAIN_SEGMENTS;
	assert_int_equal(f->drop, m->drop);
	if (f->drop != VHP_OK) {
		assert_int_equal(f->n_iov, 0);
		return;
	}
	assert_int_equal(f->len_bytes, m->len_bytes);
	assert_int_equal(f->n_iov, m->n_pieces);
	for (uint16_t i = 0; i < f->n_iov; i++) {
		assert_ptr_equal(f->iov[i].iov_base, m->pieces[i].iov_base);
		assert_int_equal(f->iov[i].iov_len, m->pieces[i].iov_len);
	}
}

/* Tables and rings are shared by all chains, so one burst is compared before the next is posted. */
static void
run(bool packed, bool device_writes, uint64_t seed)
{
	struct rig *e = rig_new(SIZE, packed, packed ? 0x8007 : 65000);
	uint32_t drops[VHP_DROP_COUNT] = {0};
	uint32_t done = 0;

	e->vr.device_writes = device_writes;
	while (done < CHAINS) {
		struct posted posted[SIZE];
		uint16_t n = 0, taken = 0;

		for (uint32_t k = prng_range(&seed, 1, SIZE); k > 0; k--)
			if (!post(e, &posted[n], &seed))
				break;
			else
				n++;
		while (taken < n) {
			uint16_t got = rig_take(e, prng_range(&seed, 1, VHP_BURST_PKTS));
			uint16_t back = prng(&seed) % (got + 1U);

			assert_int_equal(e->vr.fault, VHP_RING_OK);
			assert_true(got > 0);
			for (uint16_t i = 0; i < got; i++)
				check_frame(e, &e->frames[i], &posted[taken + i]);
			e->vr.ops->untake(&e->vr, e->frames + got - back, back);
			got -= back;
			for (uint16_t i = 0; i < got; i++) {
				e->frames[i].used_bytes = prng(&seed) % 5;
				drops[e->frames[i].drop]++;
			}
			rig_put(e, got);
			for (uint16_t i = 0; i < got; i++)
				ring_check_used(
					&e->r, posted[taken + i].id, e->frames[i].used_bytes);
			taken += got;
		}
		done += n;
	}
	/* The damage did reach each rule. */
	for (int i = VHP_OK; i <= VHP_DROP_CHAIN_DIRECTION; i++)
		if (!packed || i != VHP_DROP_CHAIN_NEXT)
			assert_true(drops[i] > 20);
	rig_free(e);
}

static void
split_transmitq(void **state)
{
	(void)state;
	run(false, false, 11);
}

static void
split_receiveq(void **state)
{
	(void)state;
	run(false, true, 12);
}

static void
packed_transmitq(void **state)
{
	(void)state;
	run(true, false, 13);
}

static void
packed_receiveq(void **state)
{
	(void)state;
	run(true, true, 14);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(split_transmitq),
		cmocka_unit_test(split_receiveq),
		cmocka_unit_test(packed_transmitq),
		cmocka_unit_test(packed_receiveq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
