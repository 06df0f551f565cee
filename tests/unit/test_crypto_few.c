/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Case C7: a cryptodev that takes fewer operations than it is given, and gives back fewer than
 * it has. Between the daemon and a real one (crypto_openssl) stand two functions that do so;
 * a guest's ring is on the other end. Every request is answered once, in its place, and right.
 */
#define ALLOW_EXPERIMENTAL_API
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cryptodev.h>
#include <rte_eal.h>

#include "checks.h"
#include "crypto_dev.h"
#include "cryptodev.h"
#include "ring.h"

#define RING_SIZE  128
#define REQUESTS   3000
/* Guest memory of one request: what is read, what is written. */
#define SLOT_BYTES 512
#define OUT        256
#define BLOCKS     4

/* CBC-AES128.Encrypt of SP 800-38A, F.2.1: any number of its blocks is a known answer. */
static const uint8_t key[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15,
	0x88, 0x09, 0xcf, 0x4f, 0x3c};
static const uint8_t iv[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t plain[16 * BLOCKS] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9,
	0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a, 0xae, 0x2d, 0x8a, 0x57, 0x1e, 0x03, 0xac, 0x9c,
	0x9e, 0xb7, 0x6f, 0xac, 0x45, 0xaf, 0x8e, 0x51, 0x30, 0xc8, 0x1c, 0x46, 0xa3, 0x5c, 0xe4,
	0x11, 0xe5, 0xfb, 0xc1, 0x19, 0x1a, 0x0a, 0x52, 0xef, 0xf6, 0x9f, 0x24, 0x45, 0xdf, 0x4f,
	0x9b, 0x17, 0xad, 0x2b, 0x41, 0x7b, 0xe6, 0x6c, 0x37, 0x10};
static const uint8_t ciphered[16 * BLOCKS] = {0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce,
	0xe9, 0x8e, 0x9b, 0x12, 0xe9, 0x19, 0x7d, 0x50, 0x86, 0xcb, 0x9b, 0x50, 0x72, 0x19, 0xee,
	0x95, 0xdb, 0x11, 0x3a, 0x91, 0x76, 0x78, 0xb2, 0x73, 0xbe, 0xd6, 0xb8, 0xe3, 0xc1, 0x74,
	0x3b, 0x71, 0x16, 0xe6, 0x9e, 0x22, 0x22, 0x95, 0x16, 0x3f, 0xf1, 0xca, 0xa1, 0x68, 0x1f,
	0xac, 0x09, 0x12, 0x0e, 0xca, 0x30, 0x75, 0x86, 0xe1, 0xa7};

/* ---- a cryptodev that takes and gives few ---------------------------------------------------- */

static struct rte_crypto_fp_ops real;
static uint64_t numbers = 7;
static uint32_t most_taken; /* of one call; the least is 0 */
static uint64_t n_given, n_taken, n_cut;

static uint16_t
take_few(void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	uint16_t few = RTE_MIN(n, (uint16_t)prng_range(&numbers, 0, most_taken));

	few = few > 0 ? real.enqueue_burst(qp, ops, few) : 0;
	n_given += n;
	n_taken += few;
	n_cut += few < n;
	return few;
}

static uint16_t
give_few(void *qp, struct rte_crypto_op **ops, uint16_t n)
{
	uint16_t few = RTE_MIN(n, (uint16_t)prng_range(&numbers, 0, 3));

	return few > 0 ? real.dequeue_burst(qp, ops, few) : 0;
}

/* ---- a device with one data queue, by hand --------------------------------------------------- */

struct rig {
	struct guest g;
	struct ring r;
	struct vhp_qpair qp;
	struct vhp_crypto_dev dev;
	struct vhp_crypto_queue queue;
	uint64_t session;
	uint32_t blocks[RING_SIZE];  /* of the request in this slot */
	uint32_t slot_of[RING_SIZE]; /* by head or id */
	uint32_t order[RING_SIZE];   /* heads that are out, oldest first */
	uint32_t n_out, first_out;
};

static struct vhp_crypto_engine *engine;

static void
make_session(struct rig *rig)
{
	struct vhp_crypto_params params;

	vhp_crypto_params_init(&params);
	params.kind = VHP_CRYPTO_CIPHER;
	params.encrypt = true;
	params.cipher_algo = VIRTIO_CRYPTO_CIPHER_AES_CBC;
	params.cipher_key_bytes = sizeof(key);
	memcpy(params.cipher_key, key, sizeof(key));
	CHECK(vhp_crypto_session_create(&rig->dev, &params, &rig->session) == VIRTIO_CRYPTO_OK);
}

static struct rig *
new_rig(bool packed)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	CHECK(rig != NULL);
	guest_init(&rig->g);
	rig->qp.tx.mixed = true;
	ring_init(&rig->r, &rig->qp.tx, &rig->g, RING_SIZE, packed, packed ? 0x8000 : 65530);
	rig->dev.engine = engine;
	rig->dev.n_data = 1;
	rig->queue.dev = &rig->dev;
	rig->queue.burst = calloc(1, sizeof(*rig->queue.burst));
	CHECK(rig->queue.burst != NULL && vhp_crypto_table_init(&rig->dev.table, 4) == 0);
	rig->qp.pq = &rig->queue.pq;
	make_session(rig);
	return rig;
}

static void
free_rig(struct rig *rig)
{
	vhp_crypto_session_clear(&rig->dev);
	vhp_crypto_table_fini(&rig->dev.table);
	free(rig->queue.burst);
	ring_fini(&rig->r);
	guest_fini(&rig->g);
	free(rig);
}

/* A request of 1..4 blocks, in the slot that is its turn. */
static void
post(struct rig *rig, uint32_t number)
{
	uint32_t slot = number % RING_SIZE, blocks = 1 + number % BLOCKS;
	uint64_t gpa = GUEST_NEXT_GPA + (uint64_t)slot * SLOT_BYTES;
	struct virtio_crypto_op_data_req req = {.header = {
							.opcode = VIRTIO_CRYPTO_CIPHER_ENCRYPT,
							.session_id = rig->session,
						}};
	const struct vring_desc bufs[] = {
		{.addr = gpa, .len = sizeof(req) + sizeof(iv) + 16 * blocks},
		{.addr = gpa + OUT, .len = 16 * blocks + 1, .flags = VRING_DESC_F_WRITE}};
	int id;

	req.u.sym_req.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
	req.u.sym_req.u.cipher.para =
		(struct virtio_crypto_cipher_para){16, 16 * blocks, 16 * blocks, 0};
	guest_write(&rig->g, gpa, &req, sizeof(req));
	guest_write(&rig->g, gpa + sizeof(req), iv, sizeof(iv));
	guest_write(&rig->g, gpa + sizeof(req) + sizeof(iv), plain, 16 * blocks);
	guest_fill(&rig->g, gpa + OUT, 0xee, 16 * blocks + 2);
	id = ring_post(&rig->r, bufs, 2, 0);
	CHECK(id >= 0);
	rig->blocks[slot] = blocks;
	rig->slot_of[id] = slot;
	rig->order[(rig->first_out + rig->n_out++) % RING_SIZE] = (uint32_t)id;
}

/* All that is used is what comes next, and right. */
static uint32_t
check_used(struct rig *rig)
{
	uint32_t n = ring_used_count(&rig->r);

	CHECK(n <= rig->n_out);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = rig->order[rig->first_out++ % RING_SIZE];
		uint32_t slot = rig->slot_of[id], bytes = 16 * rig->blocks[slot];
		uint8_t out[16 * BLOCKS + 2];

		rig->n_out--;
		ring_check_used(&rig->r, id, bytes + 1);
		guest_read(&rig->g, GUEST_NEXT_GPA + (uint64_t)slot * SLOT_BYTES + OUT, out,
			bytes + 2);
		assert_memory_equal(out, ciphered, bytes);
		assert_int_equal(out[bytes], VIRTIO_CRYPTO_OK);
		assert_int_equal(out[bytes + 1], 0xee);
	}
	return n;
}

/* Turns until all of them are answered, with more posted meanwhile. */
static void
run(bool packed, uint32_t most)
{
	struct rig *rig = new_rig(packed);
	uint32_t posted = 0, answered = 0, turns = 0;

	most_taken = most;
	n_given = n_taken = n_cut = 0;
	while (answered < REQUESTS) {
		struct vhp_work work = {0};
		uint32_t room = RING_SIZE / 2 - rig->n_out;

		for (uint32_t i = prng_range(&numbers, 0, room); i > 0 && posted < REQUESTS; i--)
			post(rig, posted++);
		vhp_crypto_turn_data(&rig->qp, 0, &work);
		answered += check_used(rig);
		CHECK(++turns < 1000000);
	}
	assert_int_equal(rig->queue.statuses[VIRTIO_CRYPTO_OK], REQUESTS);
	assert_int_equal(rig->qp.tx.stats.pkts, REQUESTS);
	/* Each of them once, and many of them had to be offered again. */
	assert_int_equal(n_taken, REQUESTS);
	assert_true(n_cut > 0 && n_given > n_taken);
	assert_int_equal(rig->queue.burst->retired, rig->queue.burst->n);
	free_rig(rig);
}

static void
none_is_lost(void **state)
{
	static const uint32_t most[] = {1, 2, 5, 31};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(most); i++) {
		run(false, most[i]);
		run(true, most[i]);
	}
}

/* The queue ends in the middle of a burst: what the cryptodev has is answered, the rest is not. */
static void
ends_in_the_middle(void **state)
{
	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct rig *rig = new_rig(packed);
		uint64_t taken_before = n_taken;
		struct vhp_work work = {0};
		uint32_t answered;

		most_taken = 5;
		for (uint32_t i = 0; i < VHP_CRYPTO_BURST; i++)
			post(rig, i);
		vhp_crypto_turn_data(&rig->qp, 0, &work);
		answered = check_used(rig);
		assert_true(rig->queue.burst->retired < rig->queue.burst->n);
		vhp_crypto_stopped(&rig->qp);
		answered += check_used(rig);
		assert_int_equal(answered, n_taken - taken_before);
		assert_true(answered < VHP_CRYPTO_BURST);
		/* The rest is the guest's: the ring goes on with it. */
		while (answered < VHP_CRYPTO_BURST) {
			work = (struct vhp_work){0};
			vhp_crypto_turn_data(&rig->qp, 0, &work);
			answered += check_used(rig);
		}
		free_rig(rig);
	}
}

static int
open_cryptodev(void **state)
{
	static char *args[] = {"test", "--no-huge", "--no-shconf", "--no-telemetry", "--no-pci",
		"-m", "64", "-l", "0", "--vdev", "crypto_openssl0", NULL};
	const struct vhp_cryptodev_conf conf = {
		.name = "crypto_openssl0", .n_queues = 1, .sessions = 64};
	int id;

	(void)state;
	CHECK(rte_eal_init(RTE_DIM(args) - 1, args) >= 0);
	CHECK(vhp_cryptodev_open(&conf, &engine) == 0);
	id = rte_cryptodev_get_dev_id(conf.name);
	CHECK(id >= 0);
	real = rte_crypto_fp_ops[id];
	rte_crypto_fp_ops[id].enqueue_burst = take_few;
	rte_crypto_fp_ops[id].dequeue_burst = give_few;
	return 0;
}

static int
close_cryptodev(void **state)
{
	(void)state;
	engine->ops->close(engine);
	return rte_eal_cleanup();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_is_lost),
		cmocka_unit_test(ends_in_the_middle),
	};

	return cmocka_run_group_tests(tests, open_cryptodev, close_cryptodev);
}
