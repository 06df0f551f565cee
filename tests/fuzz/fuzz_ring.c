/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings and chains (lib/vhost_poll: vring_*.c, transmitq.c, receiveq.c, interleave.c): bytes
 * become guest memory, rings included, and a list of steps what guest, host and poller do.
 * Everything must end after bounded work, stay inside of guest memory, and add up.
 *
 * Input: features, ring size, base, number of steps; the steps; the rest is memory from address
 * 0 on. See set_up() and step().
 */
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "checks.h"
#include "input.h"
#include "ledger.h"
#include "memory_port.h"
#include "qpair.h"

/*
 * The first region of a guest begins with the two descriptor tables and the driver's two areas,
 * close together, so that a short input is enough to fill them. What the device writes, used
 * rings and event structures, lies at its end.
 */
#define DEVICE_GPA    0x3000
#define TX_DEVICE_GPA DEVICE_GPA
#define RX_DEVICE_GPA 0x4000
#define REGION_BYTES  0x5000
#define MOST_SIZE     256
#define DESC_BYTES    16

#define MOST_STEPS 40
#define PAGE_BYTES 4096

static const struct vhp_mem_region regions[] = {
	{.gpa = 0, .size_bytes = REGION_BYTES},
	{.gpa = REGION_BYTES, .size_bytes = REGION_BYTES},
	{.gpa = 0x100000, .size_bytes = 0x2000},
};

static struct {
	struct guest g;
	struct vhp_qpair qp;
	struct memory_port port;
	struct ledger tx, rx;
	struct vhp_dirty_log log;
	uint8_t log_bits[0x102000 / PAGE_BYTES / 8 + 1];
	uint64_t pushed; /* frames that the host sent */
	bool packed;
} f;

/* Time moves when a step says so. */
static uint64_t tsc_hz;

uint64_t
rte_get_tsc_hz(void)
{
	return tsc_hz;
}

/* ---- setting up ----------------------------------------------------------------- */

static void
check_piece(void *ctx, const struct iovec *piece)
{
	const uint8_t *start = piece->iov_base;

	(void)ctx;
	if (start >= f.qp.bounce && start < f.qp.bounce + VHP_BOUNCE_BYTES)
		CHECK(piece->iov_len <= (size_t)(f.qp.bounce + VHP_BOUNCE_BYTES - start));
	else
		CHECK(ledger_is_guest(&f.g, piece));
}

static void
set_ring(struct vhp_vring *vr, uint64_t desc, uint64_t driver, uint64_t device, uint8_t features)
{
	vr->ops = f.packed ? &vhp_vring_packed : &vhp_vring_split;
	vr->mem = &f.g.mem;
	vr->areas[VHP_AREA_DESC] = guest_byte(&f.g, desc);
	vr->areas[VHP_AREA_DRIVER] = guest_byte(&f.g, driver);
	vr->areas[VHP_AREA_DEVICE] = guest_byte(&f.g, device);
	vr->event_idx = features & 2;
	vr->indirect = features & 4;
	vr->notify_on_empty = features & 8;
	vr->log = features & 0x10 ? &f.log : NULL;
	vr->running = true;
}

/* Returns false if a ring cannot start as the input wants it. */
static bool
set_up(struct input *in)
{
	uint8_t features = input_u8(in);
	uint16_t size = input_u8(in) + 1;
	uint16_t base = input_u16(in);
	uint16_t driver_bytes;

	memset(&f, 0, sizeof(f));
	tsc_hz = UINT64_MAX / 1024;
	f.packed = features & 1;
	if (!f.packed)
		size = 1 << size % 9;
	guest_init_regions(&f.g, regions, RTE_DIM(regions));
	for (size_t i = 0; i < RTE_DIM(regions); i++)
		memset(f.g.mem.regions[i].hva, 0, regions[i].size_bytes);
	f.log = (struct vhp_dirty_log){
		.map = f.log_bits, .bits = f.log_bits, .size_bytes = sizeof(f.log_bits)};
	CHECK(vhp_qpair_init(&f.qp, "net_vhost0", 0) == 0);
	CHECK(vhp_qpair_resize(&f.qp, size) == 0);
	f.qp.hdr_bytes = features & 0x20 ? 10 : 12;
	f.qp.mergeable = features & 0x40;
	memory_port_init(&f.port, f.qp.hdr_bytes);
	f.port.check_piece = check_piece;
	f.qp.pq = &f.port.pq;
	f.qp.port = f.port.port.ops;
	vhp_receiveq_start(&f.qp);
	f.qp.tx.size = f.qp.rx.size = size;
	/* Flags, index, entries, event index; of packed rings only the event structure. */
	driver_bytes = f.packed ? 4 : RTE_ALIGN_CEIL(6 + 2 * size, 4);
	set_ring(&f.qp.tx, 0, 2 * DESC_BYTES * size, TX_DEVICE_GPA, features);
	set_ring(&f.qp.rx, DESC_BYTES * size, 2 * DESC_BYTES * size + driver_bytes, RX_DEVICE_GPA,
		features);
	ledger_attach(&f.tx, &f.qp.tx, &f.g);
	ledger_attach(&f.rx, &f.qp.rx, &f.g);
	return f.qp.tx.ops->start(&f.qp.tx, base) && f.qp.rx.ops->start(&f.qp.rx, base);
}

static void
tear_down(void)
{
	memory_port_fini(&f.port);
	vhp_qpair_fini(&f.qp);
	guest_fini(&f.g);
}

/* ---- what must hold --------------------------------------------------------------- */

static uint64_t
drops(const struct vhp_vring *vr)
{
	uint64_t sum = 0;

	CHECK(vr->stats.drops[VHP_OK] == 0);
	for (int i = VHP_OK + 1; i < VHP_DROP_COUNT; i++)
		sum += vr->stats.drops[i];
	return sum;
}

/* Every chain and every frame is where it should be, once. */
static void
check_sums(void)
{
	const struct vhp_ring_stats *rx = &f.qp.rx.stats;
	const struct vhp_stash *st = &f.qp.stash;

	CHECK(f.tx.taken == f.tx.put);
	CHECK(f.tx.put == f.qp.tx.stats.pkts + drops(&f.qp.tx));
	CHECK(f.rx.taken - f.rx.put == st->tail - st->head);
	CHECK(f.rx.used_bytes == rx->bytes + rx->pkts * f.qp.hdr_bytes);
	CHECK(f.pushed == rx->pkts + rx->drops[VHP_DROP_NO_ROOM] + (f.qp.pending_bytes > 0) +
				  memory_queue_count(&f.port.host));
	CHECK(f.qp.pending_bytes < VHP_BOUNCE_BYTES);
	CHECK(st->head <= st->tail && st->tail <= st->room);
	CHECK(st->iov_head <= st->iov_tail && st->iov_tail <= st->iov_room);
}

static void
check_work(const struct vhp_work *work, uint32_t bursts)
{
	uint32_t longest = 3 * VHP_TAKE_DESCS + 2 * VHP_MAX_CHAIN_DESCS + 2 * MOST_SIZE;

	CHECK(work->descs <= bursts * longest);
	CHECK(work->pkts <= bursts * VHP_TAKE_DESCS);
}

/* Each page that changed is in the dirty log. */
static void
check_log(void)
{
	for (size_t i = 0; i < RTE_DIM(regions); i++) {
		const uint8_t *now = f.g.mem.regions[i].hva;

		for (uint64_t at = 0; at < regions[i].size_bytes; at += PAGE_BYTES) {
			uint64_t page = (regions[i].gpa + at) / PAGE_BYTES;

			if (memcmp(now + at, f.g.copy[i] + at, PAGE_BYTES) != 0)
				CHECK(f.log_bits[page / 8] >> page % 8 & 1);
		}
	}
}

/* The transmit side writes to its ring and to nothing else. */
static void
check_only_rings_changed(void)
{
	const uint8_t *now = f.g.mem.regions[0].hva;
	size_t skip = f.packed ? DESC_BYTES * f.qp.tx.size : 0;

	CHECK(memcmp(now + skip, f.g.copy[0] + skip, DEVICE_GPA - skip) == 0);
	for (size_t i = 1; i < RTE_DIM(regions); i++)
		CHECK(memcmp(f.g.mem.regions[i].hva, f.g.copy[i], regions[i].size_bytes) == 0);
}

/* ---- steps -------------------------------------------------------------------------- */

static void
run_turn(bool drain, bool fill, bool deferred, uint64_t now_tsc)
{
	bool tx_ok = f.qp.tx.fault == VHP_RING_OK, rx_ok = f.qp.rx.fault == VHP_RING_OK;
	uint64_t tx_put = f.tx.put, rx_put = f.rx.put;
	struct vhp_work work = {0};

	guest_snapshot(&f.g);
	memset(f.log_bits, 0, sizeof(f.log_bits));
	if (drain && fill) {
		f.qp.window_cycles = 100;
		(deferred ? vhp_turn_deferred : vhp_turn_interleave)(&f.qp, now_tsc, &work);
		/* 256 packets of one each, at most, and a look at the end. */
		check_work(&work, 2 * 257);
	} else if (drain) {
		vhp_transmitq_drain(&f.qp, &work);
		check_only_rings_changed();
		check_work(&work, 1);
	} else {
		vhp_receiveq_fill(&f.qp, &work);
		check_work(&work, 1);
	}
	if (f.qp.rx.log != NULL)
		check_log();
	/* A broken ring is left alone. */
	CHECK(tx_ok || f.tx.put == tx_put);
	CHECK(rx_ok || f.rx.put == rx_put);
	memory_queue_clear(&f.port.sent);
	f.port.pq.wait = VHP_PORT_READY;
}

/* The guest makes n more chains available, without a word of what they are. */
static void
offer(struct vhp_vring *vr, uint8_t n)
{
	if (!f.packed) {
		vr->avail->idx += n;
		return;
	}
	for (uint16_t i = 0; i < n && i < vr->size; i++) {
		uint16_t position = vr->last_avail + i;
		bool wrap = vr->avail_wrap ^ (position >= vr->size);
		uint16_t *flags = &vr->packed[position % vr->size].flags;

		*flags &= ~(1U << VRING_PACKED_DESC_F_AVAIL | 1U << VRING_PACKED_DESC_F_USED);
		*flags |= 1U << (wrap ? VRING_PACKED_DESC_F_AVAIL : VRING_PACKED_DESC_F_USED);
	}
}

static void
push(uint32_t len_bytes)
{
	static uint8_t frame[VHP_BOUNCE_BYTES + 1000];

	len_bytes = RTE_MIN(len_bytes + f.qp.hdr_bytes + VHP_MIN_FRAME_BYTES, sizeof(frame));
	if (memory_queue_count(&f.port.host) >= 64)
		return;
	memory_queue_push(&f.port.host, frame, len_bytes);
	f.pushed++;
}

/* What the main thread does between two messages. */
static void
restart(struct vhp_vring *vr, bool forgive)
{
	uint32_t base;

	if (vr->device_writes)
		vhp_receiveq_untake(&f.qp);
	base = vr->ops->base(vr);
	if (forgive)
		vr->fault = VHP_RING_OK;
	CHECK(vr->ops->start(vr, base));
	/* A packed ring knows better than the front end where it is; here it may say anything. */
	if (f.packed)
		CHECK((vr->ops->base(vr) & 0x7fff) < vr->size);
	else
		CHECK((vr->ops->base(vr) & 0xffff) == (base & 0xffff));
}

static void
step(struct input *in, uint64_t now_tsc)
{
	uint8_t what = input_u8(in);
	uint8_t arg = input_u8(in);
	struct vhp_vring *vr = arg & 0x80 ? &f.qp.rx : &f.qp.tx;
	uint16_t at;

	switch (what % 12) {
	case 0:
		run_turn(true, false, false, now_tsc);
		break;
	case 1:
		run_turn(false, true, false, now_tsc);
		break;
	case 2:
		run_turn(true, true, arg & 1, now_tsc);
		break;
	case 3:
		offer(vr, arg & 0x7f);
		break;
	case 4:
		push(arg * 8);
		break;
	case 5:
		push(arg * 264);
		break;
	case 6:
		f.port.tx_room = arg < 200 ? arg : UINT32_MAX;
		break;
	case 7:
		at = input_u16(in) % (2 * REGION_BYTES);
		*guest_byte(&f.g, at) = arg;
		break;
	case 8:
		if (vr->fault == VHP_RING_OK) {
			vr->ops->arm(vr);
			vr->ops->disarm(vr);
		}
		break;
	case 9:
		restart(vr, arg & 1);
		break;
	case 10:
		tsc_hz = arg & 1 ? 0 : UINT64_MAX / 1024;
		break;
	default:
		f.qp.tx.discard = arg & 1;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	struct input steps;
	uint8_t n_steps;

	if (!set_up(&in)) {
		tear_down();
		return 0;
	}
	n_steps = input_u8(&in) % (MOST_STEPS + 1);
	/* Four bytes each, so that steps and memory do not slide into each other. */
	steps = (struct input){in.bytes, RTE_MIN(in.left, 4U * n_steps)};
	in.bytes += steps.left;
	in.left -= steps.left;
	for (size_t i = 0; i < RTE_DIM(regions); i++)
		input_bytes(&in, f.g.mem.regions[i].hva, regions[i].size_bytes);
	for (uint8_t i = 0; i < n_steps; i++) {
		struct input one = {steps.bytes + 4 * i,
			steps.left > 4U * i ? RTE_MIN(steps.left - 4 * i, 4U) : 0};

		step(&one, 1000 + 60 * i);
		check_sums();
	}
	tear_down();
	return 0;
}
