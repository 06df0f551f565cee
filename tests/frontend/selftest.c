/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of the test front end itself: that it does what the specifications say, and above
 * all that each of its checks fails when a device does wrong.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "selftest_stub.h"

#define ALL_FEATURES                                                                               \
	(FE_NET_BASE | FE_NET_OFFLOADS | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |                          \
		FE_BIT(VIRTIO_RING_F_EVENT_IDX) | FE_BIT(VIRTIO_RING_F_INDIRECT_DESC) |            \
		FE_BIT(VIRTIO_F_RING_PACKED) | FE_BIT(VIRTIO_F_IN_ORDER))

static struct stub stub;
static struct fe_net net;
static struct stub_ring dev;

/* A device with these features and 8 descriptors per ring, of which ring `rx` is watched. */
static void
open_net(uint64_t features, bool rx)
{
	struct fe_net_cfg cfg = {.path = stub.path,
		.features = FE_NET_BASE | features,
		.ring_size = 8,
		.tx_bufs = 8,
		.rx_bufs = 8,
		.rx_buf_bytes = 256,
		.tx_buf_bytes = 512,
		.ack = true};

	assert_int_equal(fe_net_open(&net, &cfg), 0);
	assert_int_equal(fe_net_start(&net), 0);
	stub_ring_init(&dev, rx ? &net.rx[0].ring : &net.tx[0].ring);
}

static int
setup(void **state)
{
	(void)state;
	stub_start(&stub, ALL_FEATURES);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fe_net_close(&net);
	stub_stop(&stub);
	return 0;
}

/* Puts a merged or single frame of `len` bytes into the next receive buffers. */
static void
device_sends(uint32_t len, uint16_t num_buffers, uint8_t flags, uint8_t gso_type)
{
	struct virtio_net_hdr_v1 h = {
		.flags = flags, .gso_type = gso_type, .num_buffers = num_buffers};
	struct fe_seg first;
	uint16_t ndesc;
	int id = stub_take(&dev, &first, &ndesc);

	assert_true(id >= 0);
	assert_true(first.write);
	memcpy(fe_mem_ptr(&net.mem, first.gpa), &h, net.hdr_bytes);
	stub_use(&dev, (uint32_t)id, net.hdr_bytes + len, ndesc);
}

static void
expect_fault(int rc, const char *part)
{
	assert_int_equal(rc, -EPROTO);
	if (strstr(fe_net_fault(&net), part) == NULL)
		fail_msg("fault is \"%s\", not \"%s\"", fe_net_fault(&net), part);
}

/* ---- rings ---- */

/* Many laps of chains of every make-up through a ring of 8. */
static void
laps(uint64_t features)
{
	struct fe_rng rng;
	struct fe_how how = {.rng = &rng, .max_segs = 4, .chain = FE_CHAIN_RANDOM};
	uint8_t frame[300] = {0};

	fe_rng_seed(&rng, 1);
	open_net(features, false);
	for (uint32_t i = 0; i < 2000; i++) {
		struct fe_seg first;
		uint16_t ndesc;
		int sent = 0, id;

		while (fe_net_send(&net, 0, NULL, frame, fe_rng_range(&rng, 60, 300), &how) == 0)
			sent++;
		assert_true(sent > 0);
		assert_int_equal(stub_take(&dev, &first, &ndesc), -1);
		fe_ring_publish(dev.r);
		while ((id = stub_take(&dev, &first, &ndesc)) >= 0) {
			assert_false(first.write);
			stub_use(&dev, (uint32_t)id, 0, ndesc);
			sent--;
		}
		assert_int_equal(sent, 0);
		assert_true(fe_net_reap(&net, 0) > 0);
		assert_int_equal(fe_ring_outstanding(dev.r), 0);
	}
	assert_string_equal(fe_net_fault(&net), "");
}

static void
laps_split(void **state)
{
	(void)state;
	laps(FE_BIT(VIRTIO_RING_F_INDIRECT_DESC));
}

static void
laps_packed(void **state)
{
	(void)state;
	laps(FE_BIT(VIRTIO_RING_F_INDIRECT_DESC) | FE_BIT(VIRTIO_F_RING_PACKED));
}

/* IN_ORDER: one used entry for a whole batch. */
static void
in_order_batch(void **state)
{
	uint8_t frame[60] = {0};
	struct fe_done done[8];
	struct fe_seg first;
	uint16_t ndesc;
	int id = -1;

	(void)state;
	open_net(FE_BIT(VIRTIO_F_IN_ORDER), false);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	fe_ring_publish(dev.r);
	for (uint32_t i = 0; i < 5; i++)
		id = stub_take(&dev, &first, &ndesc);
	dev.r->used->ring[0] = (struct vring_used_elem){.id = (uint32_t)id};
	dev.r->used->idx = 5;
	assert_int_equal(fe_ring_used(dev.r, done, 8), 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(done[i].skipped, i < 4);
}

static void
unknown_id(void **state)
{
	uint64_t features = *state != NULL ? FE_BIT(VIRTIO_F_RING_PACKED) : 0;
	uint8_t frame[60] = {0};

	open_net(features, false);
	assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	fe_ring_publish(dev.r);
	stub_use(&dev, 8, 0, 1);
	expect_fault(fe_net_reap(&net, 0), "used id 8, ring size 8");
}

static void
id_twice(void **state)
{
	uint8_t frame[60] = {0};

	(void)state;
	open_net(0, false);
	assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	fe_ring_publish(dev.r);
	stub_use(&dev, 0, 0, 1);
	stub_use(&dev, 0, 0, 1);
	expect_fault(fe_net_reap(&net, 0), "is not outstanding");
}

static void
index_ahead(void **state)
{
	(void)state;
	open_net(0, false);
	dev.r->used->idx = 9;
	expect_fault(fe_net_reap(&net, 0), "ran 9 ahead");
}

static void
transmit_length(void **state)
{
	uint8_t frame[60] = {0};

	(void)state;
	open_net(0, false);
	assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	fe_ring_publish(dev.r);
	stub_use(&dev, 0, 1, 1);
	expect_fault(fe_net_reap(&net, 0), "used len 1 above the 0 writable");
}

/* ---- receive ---- */

static void
open_rx(uint64_t features, uint32_t buffers)
{
	open_net(features, true);
	assert_int_equal(fe_net_post(&net, 0, buffers, 200, 200, NULL), buffers);
	fe_ring_publish(dev.r);
}

static void
receive_right(void **state)
{
	struct fe_rxframe f;

	(void)state;
	open_rx(FE_BIT(VIRTIO_NET_F_MRG_RXBUF), 4);
	device_sends(188, 3, 0, 0);
	assert_true(fe_net_recv_pending(&net, 0));
	device_sends(188, 0, 0, 0);
	device_sends(10, 0, 0, 0);
	assert_int_equal(fe_net_recv(&net, 0, &f), 1);
	assert_int_equal(f.buffers, 3);
	assert_int_equal(f.len, 188 + 200 + 22);
	assert_int_equal(fe_net_recv(&net, 0, &f), 0);
}

static void
receive_missing(void **state)
{
	struct fe_rxframe f;

	(void)state;
	open_rx(FE_BIT(VIRTIO_NET_F_MRG_RXBUF), 4);
	device_sends(188, 3, 0, 0);
	device_sends(188, 0, 0, 0);
	expect_fault(fe_net_recv(&net, 0, &f), "num_buffers 3 but 2 are used");
}

static void
receive_no_buffers(void **state)
{
	struct fe_rxframe f;

	(void)state;
	open_rx(0, 1);
	device_sends(100, 0, 0, 0);
	expect_fault(fe_net_recv(&net, 0, &f), "num_buffers 0");
}

static void
receive_too_long(void **state)
{
	struct fe_rxframe f;

	(void)state;
	open_rx(0, 1);
	device_sends(189, 1, 0, 0);
	expect_fault(fe_net_recv(&net, 0, &f), "used len 201 above the 200");
}

static void
receive_too_short(void **state)
{
	struct fe_rxframe f;

	(void)state;
	open_rx(0, 1);
	device_sends((uint32_t)-1, 1, 0, 0);
	expect_fault(fe_net_recv(&net, 0, &f), "below the header");
}

static void
receive_overrun(void **state)
{
	const struct fe_seg *seg;
	struct fe_rxframe f;

	(void)state;
	open_rx(0, 1);
	seg = &net.rx[0].buf[0].seg[0];
	device_sends(100, 1, 0, 0);
	*(uint8_t *)fe_mem_ptr(&net.mem, seg->gpa + seg->len) ^= 1;
	expect_fault(fe_net_recv(&net, 0, &f), "bytes behind segment 0");
}

static void
receive_underrun(void **state)
{
	struct fe_rxframe f;

	(void)state;
	open_rx(0, 1);
	device_sends(100, 1, 0, 0);
	*(uint8_t *)fe_mem_ptr(&net.mem, net.rx[0].buf[0].seg[0].gpa - 1) ^= 1;
	expect_fault(fe_net_recv(&net, 0, &f), "bytes in front");
}

static void
receive_csum_refused(void **state)
{
	struct fe_rxframe f;

	(void)state;
	open_rx(0, 1);
	device_sends(100, 1, VIRTIO_NET_HDR_F_NEEDS_CSUM, 0);
	expect_fault(fe_net_recv(&net, 0, &f), "without GUEST_CSUM");
}

static void
receive_gso_refused(void **state)
{
	struct fe_rxframe f;

	(void)state;
	open_rx(FE_BIT(VIRTIO_NET_F_GUEST_CSUM) | FE_BIT(VIRTIO_NET_F_GUEST_TSO6), 1);
	device_sends(100, 1, VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_TCPV4);
	expect_fault(fe_net_recv(&net, 0, &f), "gso type 1 was not negotiated");
}

/* ---- notifications ---- */

static void
kick_event(void **state)
{
	bool packed = *state != NULL;
	uint8_t frame[60] = {0};

	open_net(FE_BIT(VIRTIO_RING_F_EVENT_IDX) | (packed ? FE_BIT(VIRTIO_F_RING_PACKED) : 0),
		false);
	/* The device wants to hear when its third descriptor comes. */
	if (packed) {
		dev.r->device_event->off_wrap = 2 | 0x8000;
		dev.r->device_event->flags = VRING_PACKED_EVENT_FLAG_DESC;
	} else {
		*dev.r->avail_event = 2;
	}
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
		assert_int_equal(fe_ring_kick(dev.r), i == 2);
	}
	assert_int_equal(dev.r->n_kicks, 1);
	assert_int_equal(dev.r->n_kicks_saved, 4);
}

static void
kick_flags(void **state)
{
	bool packed = *state != NULL;
	uint8_t frame[60] = {0};

	open_net(packed ? FE_BIT(VIRTIO_F_RING_PACKED) : 0, false);
	assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	assert_true(fe_ring_kick(dev.r));
	if (packed)
		dev.r->device_event->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	else
		dev.r->used->flags = VRING_USED_F_NO_NOTIFY;
	assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	assert_false(fe_ring_kick(dev.r));
}

static void
call_lost(void **state)
{
	const uint64_t one = 1;
	uint8_t frame[60] = {0};

	(void)state;
	open_net(0, false);
	assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	fe_ring_publish(dev.r);
	assert_false(fe_ring_arm(dev.r, 0));
	assert_int_equal(fe_ring_wait(dev.r, 1000), 0);
	stub_use(&dev, 0, 0, 1);
	assert_int_equal(fe_ring_wait(dev.r, 1000), -ENOMSG);
	assert_int_equal(write(dev.r->call_fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(fe_ring_wait(dev.r, 1000), 1);
	assert_int_equal(dev.r->n_calls, 1);
}

/* ---- messages, memory, frames ---- */

static void
stop_position(void **state)
{
	uint8_t frame[60] = {0};

	(void)state;
	open_net(0, false);
	assert_int_equal(fe_net_stop(&net), 0);
	assert_int_equal(fe_net_start(&net), 0);
	assert_int_equal(fe_net_send(&net, 0, NULL, frame, 60, NULL), 0);
	fe_ring_publish(dev.r);
	stub_use(&dev, 0, 0, 1);
	/* The back end says 0, but one buffer has come back. */
	expect_fault(fe_net_stop(&net), "stopped at 0x0, used ring ends at 0x1");
}

static void
acknowledge(void **state)
{
	(void)state;
	open_net(0, false);
	assert_int_equal(fe_set_vring_num(&net.conn, 0, 8), 0);
	assert_int_equal(fe_set_vring_num(&net.conn, 0, 3), -EREMOTEIO);
	assert_int_equal(net.queue_num, 4);
	net.cfg.timeout_ms = net.conn.timeout_ms = 50;
	assert_int_equal(fe_call(&net.conn, FE_VRING_KICK, NULL, 0, NULL, 0, &(struct fe_msg){0}),
		-ETIMEDOUT);
}

static void
memory(void **state)
{
	struct fe_mem m;
	uint64_t gpa;

	(void)state;
	assert_int_equal(fe_mem_init(&m, 3, 65536, FE_MEM_ADJACENT), 0);
	gpa = fe_mem_alloc_across(&m, 100, 40);
	assert_int_equal(gpa + 40, fe_mem_end(&m, 0));
	memset(fe_mem_ptr(&m, gpa), 1, 100);
	/* Addresses announced to the back end do not run on across the border. */
	assert_true(fe_mem_uva(&m, gpa + 40) != fe_mem_uva(&m, gpa) + 40);
	gpa = fe_mem_alloc(&m, 65000, 1, FE_ALLOC_ONE_REGION);
	assert_true(gpa != 0);
	assert_true(gpa + 65000 <= fe_mem_end(&m, 1));
	assert_int_equal(fe_mem_alloc(&m, 200000, 1, 0), 0);
	fe_mem_free(&m);
	assert_int_equal(fe_mem_init(&m, 2, 65536, FE_MEM_GAPS), 0);
	assert_int_equal(fe_mem_alloc_across(&m, 100, 40), 0);
	assert_int_equal(fe_mem_uva(&m, fe_mem_end(&m, 1)), 0);
	fe_mem_free(&m);
}

static void
frames(void **state)
{
	struct fe_stream s, other;
	uint8_t a[2000], b[2000];

	(void)state;
	assert_int_equal(fe_stream_init(&s, 1, 7), 0);
	assert_int_equal(fe_stream_init(&other, 2, 7), 0);
	for (uint32_t k = 0; k < FE_KINDS; k++) {
		struct fe_spec spec = {.kind = (enum fe_kind)k,
			.len = 1501,
			.seq = 1000 + k,
			.gso_size = 500,
			.vlans = (uint8_t)(k % 3)};
		struct virtio_net_hdr_v1 hdr;
		uint32_t seq = 0;

		fe_frame_build(&s, &spec, a, &hdr);
		assert_true(fe_frame_seq(&s, a, spec.len, &seq));
		assert_int_equal(seq, spec.seq);
		assert_false(fe_frame_seq(&other, a, spec.len, &seq));
		assert_int_equal(fe_frame_csum_ok(a, spec.len), k == FE_RAW);
		fe_frame_finish_csum(a, spec.len, &hdr);
		assert_true(fe_frame_csum_ok(a, spec.len));
		spec.seq++;
		fe_frame_build(&s, &spec, b, &hdr);
		assert_true(fe_first_diff(a, b, spec.len) < spec.len);
	}
	fe_stream_free(&s);
	fe_stream_free(&other);
}

#define RING_TEST(f, packed)                                                                       \
	{                                                                                          \
#f, f, setup, teardown, (packed) ? (void *)1 : NULL                                \
	}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(laps_split, false),
		RING_TEST(laps_packed, false),
		RING_TEST(in_order_batch, false),
		RING_TEST(unknown_id, false),
		RING_TEST(unknown_id, true),
		RING_TEST(kick_event, false),
		RING_TEST(kick_event, true),
		RING_TEST(kick_flags, false),
		RING_TEST(kick_flags, true),
		RING_TEST(id_twice, false),
		RING_TEST(index_ahead, false),
		RING_TEST(transmit_length, false),
		RING_TEST(receive_right, false),
		RING_TEST(receive_missing, false),
		RING_TEST(receive_no_buffers, false),
		RING_TEST(receive_too_long, false),
		RING_TEST(receive_too_short, false),
		RING_TEST(receive_overrun, false),
		RING_TEST(receive_underrun, false),
		RING_TEST(receive_csum_refused, false),
		RING_TEST(receive_gso_refused, false),
		RING_TEST(call_lost, false),
		RING_TEST(stop_position, false),
		RING_TEST(acknowledge, false),
		cmocka_unit_test(memory),
		cmocka_unit_test(frames),
	};

	return cmocka_run_group_tests_name("frontend", tests, NULL, NULL);
}
