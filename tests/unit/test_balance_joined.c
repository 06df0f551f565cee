/* SPDX-License-Identifier: BSD-3-Clause */
/* Qpairs of guests that are joined (balance.c): chosen for each other, and moved together. */
#include <string.h>

#include <rte_cycles.h>

#include "checks.h"
#include "balance.h"
#include "net_dev.h"

#define DEVS    4
#define POLLERS 2

static struct vhp_poller pollers[POLLERS];
static struct vhp_net_dev devs[DEVS];
static struct vhp_qpair qpairs[DEVS];
static struct vhp_port_queue queues[DEVS];

unsigned int __wrap_vhp_poller_count(void);
struct vhp_poller *__wrap_vhp_poller_get(unsigned int index);
int __wrap_vhp_move(struct vhp_qpair *qp, struct vhp_poller *to);
unsigned int __wrap_rte_lcore_to_socket_id(unsigned int lcore);

unsigned int
__wrap_vhp_poller_count(void)
{
	return POLLERS;
}

struct vhp_poller *
__wrap_vhp_poller_get(unsigned int index)
{
	return &pollers[index];
}

int
__wrap_vhp_move(struct vhp_qpair *qp, struct vhp_poller *to)
{
	qp->poller = qp->home = to;
	return 0;
}

unsigned int
__wrap_rte_lcore_to_socket_id(unsigned int lcore)
{
	return lcore * 0;
}

/* In the place of EAL's: what is sampled is long enough. */
uint64_t
rte_get_tsc_hz(void)
{
	return 10;
}

/* Devices 0 and 1 are joined, the others have ports of their own. */
static int
setup(void **state)
{
	(void)state;
	memset(devs, 0, sizeof(devs));
	memset(qpairs, 0, sizeof(qpairs));
	memset(queues, 0, sizeof(queues));
	queues[0].far = &queues[1];
	queues[1].far = &queues[0];
	TAILQ_INIT(&vhp_net_devs);
	for (unsigned int i = 0; i < POLLERS; i++) {
		pollers[i].index = i;
		pollers[i].list = &pollers[i].lists[0];
		pollers[i].list->n = 0;
	}
	for (int i = 0; i < DEVS; i++) {
		qpairs[i].pq = &queues[i];
		qpairs[i].turn = vhp_turn_interleave;
		devs[i].qpairs = &qpairs[i];
		devs[i].conf.queues = 1;
		devs[i].conf.poller = devs[i].node = -1;
		TAILQ_INSERT_TAIL(&vhp_net_devs, &devs[i], link);
	}
	return 0;
}

static void
serve(int dev, unsigned int poller)
{
	qpairs[dev].poller = qpairs[dev].home = &pollers[poller];
	pollers[poller].list->n++;
}

static void
chosen_for_each_other(void **state)
{
	(void)state;
	/* Nobody is there yet. */
	assert_ptr_equal(vhp_balance_choose(&qpairs[0], -1), &pollers[0]);
	/* The more loaded one, as its peer is there. */
	serve(1, 1);
	serve(2, 1);
	assert_ptr_equal(vhp_balance_choose(&qpairs[0], -1), &pollers[1]);
	/* Also while that is between two pollers. */
	qpairs[1].poller = NULL;
	assert_ptr_equal(vhp_balance_choose(&qpairs[0], -1), &pollers[1]);
	/* Where the operator wants the peer, though it is not there. */
	qpairs[1].home = NULL;
	assert_ptr_equal(vhp_balance_choose(&qpairs[0], -1), &pollers[0]);
	devs[1].conf.poller = 1;
	assert_ptr_equal(vhp_balance_choose(&qpairs[0], -1), &pollers[1]);
	/* Others go where there is least to do. */
	assert_ptr_equal(vhp_balance_choose(&qpairs[2], -1), &pollers[0]);
	assert_ptr_equal(vhp_balance_choose(NULL, -1), &pollers[0]);
}

/*
 * Let them work in this proportion. A core cannot do a hundred times what it can, but if this
 * thread has to wait for one between here and the sample, it still is a busy one.
 */
static void
work(const uint32_t load[DEVS])
{
	uint64_t start_tsc, cycles;

	vhp_balance_run();
	start_tsc = rte_rdtsc();
	do
		cycles = rte_rdtsc() - start_tsc;
	while (cycles < 20000000);
	for (int i = 0; i < DEVS; i++)
		qpairs[i].stats.busy_cycles += load[i] * (cycles / 10);
}

/* All on one poller: the pair goes as a whole, or stays as a whole. */
static void
moved_together(void **state)
{
	static const struct {
		uint32_t load[DEVS];
		int pinned; /* that device; -1: none */
		unsigned int to[DEVS];
	} rows[] = {
		{{200, 200, 350, 250}, -1, {1, 1, 0, 0}},
		{{100, 100, 500, 300}, -1, {0, 0, 1, 0}},
		/* One of the two would be the better choice, were it alone. */
		{{400, 400, 100, 100}, -1, {1, 1, 0, 0}},
		{{200, 200, 350, 250}, 1, {0, 0, 1, 0}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(state);
		for (int d = 0; d < DEVS; d++)
			serve(d, 0);
		if (rows[i].pinned >= 0)
			devs[rows[i].pinned].conf.poller = 0;
		work(rows[i].load);
		vhp_balance_run();
		for (int d = 0; d < DEVS; d++)
			assert_int_equal(qpairs[d].poller->index, rows[i].to[d]);
	}
}

/* Two that share a core with nobody stay there: apart, each frame would be copied twice. */
static void
not_parted(void **state)
{
	static const uint32_t load[DEVS] = {500, 500, 0, 0};

	(void)state;
	for (int d = 0; d < DEVS; d++)
		serve(d, d / 2);
	work(load);
	vhp_balance_run();
	assert_int_equal(qpairs[0].poller->index, 0);
	assert_int_equal(qpairs[1].poller->index, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(chosen_for_each_other, setup),
		cmocka_unit_test(moved_together),
		cmocka_unit_test_setup(not_parted, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
