/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A guest on a machine of two NUMA nodes (net_rings.c, balance.c, mem_node.c): which poller it
 * gets, where the qpair's memory goes, and what the operator is told. libnuma and the lcores are
 * made to answer as on such a machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_config.h>

#include <rte_log.h>

#include "checks.h"
#include "memory_port.h"
#include "net_dev.h"
#include "poller.h"

#define RING_SIZE   16
#define USER_ADDR   0x700000000000ULL
#define AREA_BYTES  0x1000
#define GUEST_BYTES (8 * AREA_BYTES)

int __wrap_numa_available(void);
int __wrap_numa_max_node(void);
int __wrap_numa_move_pages(
	int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags);
int __wrap_rte_vhost_get_numa_node(int vid);
unsigned int __wrap_rte_lcore_to_socket_id(unsigned int lcore);
struct vhp_poller *__wrap_vhp_poller_get(unsigned int index);
unsigned int __wrap_vhp_poller_count(void);
int __wrap_vhp_attach(struct vhp_poller *poller, struct vhp_qpair *qp);

static int guest_node;
static unsigned int n_pollers;
static struct vhp_poller pollers[2];
static const struct vhp_poller *attached;
/* Pages that were moved, and where to. */
static void *moved[1024];
static unsigned int n_moved;
static int moved_to;

int
__wrap_numa_available(void)
{
	return 0;
}

int
__wrap_numa_max_node(void)
{
	return 1;
}

int
__wrap_numa_move_pages(
	int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags)
{
	assert_int_equal(pid, 0);
	assert_int_equal(flags, nodes != NULL ? 2 : 0); /* MPOL_MF_MOVE */
	for (unsigned long i = 0; i < n; i++) {
		status[i] = guest_node;
		if (nodes == NULL)
			continue;
		assert_true(n_moved < sizeof(moved) / sizeof(moved[0]));
		moved[n_moved++] = pages[i];
		moved_to = nodes[i];
	}
	return 0;
}

int
__wrap_rte_vhost_get_numa_node(int vid)
{
	(void)vid;
	return -1;
}

/* Lcore 1 is on node 0, lcore 2 on node 1. */
unsigned int
__wrap_rte_lcore_to_socket_id(unsigned int lcore)
{
	return lcore - 1;
}

struct vhp_poller *
__wrap_vhp_poller_get(unsigned int index)
{
	return index < n_pollers ? &pollers[index] : NULL;
}

unsigned int
__wrap_vhp_poller_count(void)
{
	return n_pollers;
}

int
__wrap_vhp_attach(struct vhp_poller *poller, struct vhp_qpair *qp)
{
	qp->poller = qp->home = poller;
	attached = poller;
	return 0;
}

struct world {
	struct vhp_net_dev dev;
	struct vhp_net_ring rings[2];
	struct vhp_qpair qpair;
	struct memory_port port;
	uint8_t *memory;
	char *log;
	size_t log_bytes;
	FILE *log_file;
};

static struct world *
world_new(unsigned int count, int node, int pinned)
{
	struct world *w = calloc(1, sizeof(*w));
	struct vhp_net_dev *dev = &w->dev;

	assert_non_null(w);
	for (unsigned int i = 0; i < 2; i++)
		pollers[i] = (struct vhp_poller){
			.index = i, .lcore = i + 1, .list = &pollers[i].lists[0]};
	n_pollers = count;
	guest_node = node;
	n_moved = 0;
	moved_to = -1;
	attached = NULL;
	w->memory = aligned_alloc(AREA_BYTES, GUEST_BYTES);
	assert_non_null(w->memory);
	memset(w->memory, 0, GUEST_BYTES);
	memory_port_init(&w->port, VHP_MAX_HDR_BYTES);
	assert_int_equal(vhp_qpair_init(&w->qpair, "net_vhost0", 0), 0);
	w->qpair.port = w->port.port.ops;
	w->qpair.pq = &w->port.pq;
	snprintf(dev->conf.name, sizeof(dev->conf.name), "net_vhost0");
	dev->conf.queues = 1;
	dev->conf.poller = pinned;
	dev->features = 1ULL << VIRTIO_F_VERSION_1;
	dev->node = -1;
	dev->port = &w->port.port;
	dev->rings = w->rings;
	dev->qpairs = &w->qpair;
	dev->mem_given = true;
	dev->mem.n_regions = 1;
	dev->mem.regions[0] = (struct vhp_mem_region){.size_bytes = GUEST_BYTES, .hva = w->memory};
	dev->user_addr[0] = USER_ADDR;
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t at = USER_ADDR + 3ULL * AREA_BYTES * i;

		w->rings[i] = (struct vhp_net_ring){.size = RING_SIZE,
			.addr_given = true,
			.started = true,
			.enabled = true,
			.kick_fd = -1,
			.call_fd = -1,
			.err_fd = -1};
		w->rings[i].addr.desc = at;
		w->rings[i].addr.avail = at + AREA_BYTES;
		w->rings[i].addr.used = at + 2 * AREA_BYTES;
	}
	w->log_file = open_memstream(&w->log, &w->log_bytes);
	rte_openlog_stream(w->log_file);
	return w;
}

static unsigned int
warnings(struct world *w)
{
	unsigned int n = 0;

	fflush(w->log_file);
	for (const char *at = w->log; (at = strstr(at, "NUMA node")) != NULL; at++)
		n++;
	return n;
}

static void
world_free(struct world *w)
{
	rte_openlog_stream(NULL);
	fclose(w->log_file);
	free(w->log);
	vhp_qpair_fini(&w->qpair);
	memory_port_fini(&w->port);
	free(w->memory);
	free(w);
}

static bool
was_moved(const void *at)
{
	for (unsigned int i = 0; i < n_moved; i++)
		if (moved[i] == (void *)((uintptr_t)at & ~(uintptr_t)4095))
			return true;
	return false;
}

static void
poller_of_the_guests_node(void **state)
{
	(void)state;
	for (int node = 0; node < 2; node++) {
		struct world *w = world_new(2, node, -1);
		const struct vhp_stash *st = &w->qpair.stash;

		vhp_net_rings_start(&w->dev);
		assert_ptr_equal(attached, &pollers[node]);
		assert_int_equal(w->dev.node, node);
		assert_int_equal(warnings(w), 0);
		assert_int_equal(moved_to, node);
		assert_true(was_moved(&w->qpair));
		assert_true(was_moved(w->qpair.bounce));
		assert_true(was_moved(w->qpair.bounce + VHP_BOUNCE_BYTES - 1));
		assert_true(was_moved(st->frames));
		assert_true(was_moved(st->iov + st->iov_room));
		world_free(w);
	}
}

/* There is no poller of its node, or another one was asked for: said once, with both nodes. */
static void
a_mismatch_is_one_warning(void **state)
{
	(void)state;
	for (unsigned int count = 1; count <= 2; count++) {
		struct world *w = world_new(count, 1, count == 1 ? -1 : 0);

		for (int again = 0; again < 3; again++) {
			attached = NULL;
			w->qpair.poller = NULL;
			vhp_net_rings_start(&w->dev);
			assert_ptr_equal(attached, &pollers[0]);
			assert_int_equal(warnings(w), 1);
		}
		assert_non_null(strstr(w->log, "net_vhost0: the guest's memory is on NUMA node 1, "
					       "poller 0 on node 0\n"));
		world_free(w);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poller_of_the_guests_node),
		cmocka_unit_test(a_mismatch_is_one_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
