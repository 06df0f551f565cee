/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-relay: what two taps allow with nothing between them but the kernel's calls. It has
 * the guest's tap in its own network namespace and the host's tap in another, with the same
 * offloads and placement as the guest of bench-guest and a back end have: one thread on the
 * guest's CPU reads and writes the guest's tap, one on the back end's CPU the host's.
 * Between them are two queues of buffers without descriptors, notifications or checks.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/if_tun.h>

#include "bench_util.h"
#include "fe_util.h"

#define SLOTS      256
#define SLOT_BYTES 69632
#define BURST      32
#define OFFLOADS   (TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)

/* One writer moves tail, one reader moves head. */
struct queue {
	uint32_t head __attribute__((aligned(64)));
	uint32_t tail __attribute__((aligned(64)));
	uint32_t len[SLOTS] __attribute__((aligned(64)));
	uint8_t *buf;
};

/* A thread: what its tap says goes to out, what is in in goes to its tap. */
struct side {
	int fd, cpu;
	struct queue *in, *out;
};

static uint32_t
from_tap(const struct side *s)
{
	struct queue *q = s->out;
	uint32_t n;

	for (n = 0; n < BURST; n++) {
		uint32_t slot = q->tail % SLOTS;
		ssize_t len;

		if (q->tail - __atomic_load_n(&q->head, __ATOMIC_ACQUIRE) == SLOTS)
			break;
		len = read(s->fd, q->buf + (size_t)slot * SLOT_BYTES, SLOT_BYTES);
		if (len <= 0)
			break;
		q->len[slot] = (uint32_t)len;
		__atomic_store_n(&q->tail, q->tail + 1, __ATOMIC_RELEASE);
	}
	return n;
}

static uint32_t
to_tap(const struct side *s)
{
	struct queue *q = s->in;
	uint32_t n;

	for (n = 0; n < BURST && q->head != __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE); n++) {
		uint32_t slot = q->head % SLOTS;

		if (write(s->fd, q->buf + (size_t)slot * SLOT_BYTES, q->len[slot]) < 0 &&
			errno != EIO)
			bn_die("tap");
		__atomic_store_n(&q->head, q->head + 1, __ATOMIC_RELEASE);
	}
	return n;
}

static void *
run(void *arg)
{
	const struct side *s = arg;

	bn_pin(s->cpu);
	while (!bn_stop)
		if (from_tap(s) + to_tap(s) == 0)
			/* The guest's side shares its CPU with both ends of the connection. */
			sched_yield();
	return NULL;
}

static int
tap_in(const char *netns, const char *name)
{
	int before_fd = bn_enter_netns(netns);
	int fd = bn_tap_open(name, OFFLOADS);

	bn_leave_netns(before_fd);
	return fd;
}

int
main(int argc, char **argv)
{
	static struct queue queues[2];
	struct side guest = {.in = &queues[0], .out = &queues[1], .cpu = 0};
	struct side host = {.in = &queues[1], .out = &queues[0], .cpu = 1};
	pthread_t thread;

	if (argc != 4) {
		fprintf(stderr, "usage: bench-relay HOST-NETNS HOST-IFACE GUEST-IFACE\n");
		return 2;
	}
	bn_catch_signals();
	host.fd = tap_in(argv[1], argv[2]);
	guest.fd = bn_tap_open(argv[3], OFFLOADS);
	for (int i = 0; i < 2; i++) {
		queues[i].buf = malloc((size_t)SLOTS * SLOT_BYTES);
		if (queues[i].buf == NULL)
			bn_die("memory");
	}
	printf("ready: taps\n");
	fflush(stdout);
	if (pthread_create(&thread, NULL, run, &host) != 0)
		bn_die("pthread_create");
	run(&guest);
	pthread_join(thread, NULL);
	return 0;
}
