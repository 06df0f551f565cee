/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast sessions come and go. W workers create and destroy one after the other through
 * the control queue, in one of two ways:
 *
 *   busy  a worker holds the lock from its request until it has seen the answer, for which it
 *         looks without pause: one request in flight, and a CPU for each worker
 *   wait  a worker holds the lock to add its request and sleeps; one thread takes calls and
 *         wakes those whose requests are done: as many in flight as there are workers
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "crypto_fe.h"

#define WORKERS_MAX 64
/* Powers of two of a microsecond, each in as many parts. */
#define POWERS      24
#define PARTS       8
#define BINS        (POWERS * PARTS)
/* A call that has not come in so long is late; one that has not in LOST_US more is lost. */
#define CALL_US     20000
#define LOST_US     1000000
/* Guest memory of one worker. */
#define SLOT_BYTES  1024
#define ANSWER_AT   512

static const uint8_t key[16] = "bench";

struct worker {
	struct bench *bench;
	unsigned int index;
	pthread_t thread;
	sem_t done;
	uint32_t len; /* used.len of the answer at hand */
	uint64_t requests;
	uint64_t bins[BINS];
	bool failed;
};

struct bench {
	struct cfe *c;
	bool wait;
	bool stop;            /* of the workers */
	bool all_done;        /* of the thread that takes calls */
	pthread_mutex_t lock; /* of the control queue, and of what follows */
	uint32_t in_flight;
	pthread_t caller;
	/* Of the thread that takes calls: waits that no call ended, until much later or at all. */
	uint64_t late, lost;
	struct worker workers[WORKERS_MAX];
};

/* Under the lock. Returns how many are done. */
static int
reap(struct bench *b, struct fe_done *done)
{
	int n = fe_ring_used(&b->c->ctrl, done, WORKERS_MAX);

	if (n < 0) {
		/* Nobody would wake the workers. */
		fprintf(stderr, "fe-crypto: %s\n", b->c->ctrl.fault.text);
		exit(1);
	}
	b->in_flight -= (uint32_t)n;
	return n;
}

/* Not under the lock, which those that are woken want next. */
static void
wake(struct bench *b, const struct fe_done *done, int n)
{
	for (int i = 0; i < n; i++) {
		b->workers[done[i].token].len = done[i].len;
		sem_post(&b->workers[done[i].token].done);
	}
}

/*
 * Wait for a call. One that does not come in time is waited for with the lock held: nobody
 * adds a request then, whose call could pass for it.
 */
static void
await_call(struct bench *b)
{
	if (fe_ring_wait(&b->c->ctrl, CALL_US) > 0)
		return;
	pthread_mutex_lock(&b->lock);
	if (b->in_flight > 0) {
		bool came = fe_ring_wait(&b->c->ctrl, LOST_US) > 0;

		b->late += came;
		b->lost += !came;
	}
	pthread_mutex_unlock(&b->lock);
}

/* As the driver's interrupt handler. */
static void *
take_calls(void *arg)
{
	struct bench *b = arg;

	while (!__atomic_load_n(&b->all_done, __ATOMIC_RELAXED)) {
		struct fe_done done[WORKERS_MAX];
		bool ready;
		int n;

		pthread_mutex_lock(&b->lock);
		n = reap(b, done);
		ready = fe_ring_arm(&b->c->ctrl, 0);
		pthread_mutex_unlock(&b->lock);
		wake(b, done, n);
		if (!ready)
			await_call(b);
	}
	return NULL;
}

/* Send one request and see its answer. */
static void
roundtrip(struct worker *w, const struct fe_seg *seg, uint32_t n)
{
	struct bench *b = w->bench;
	uint64_t start = fe_now_ns(), us;
	unsigned int bin = 0;

	pthread_mutex_lock(&b->lock);
	w->failed |= fe_ring_add(&b->c->ctrl, seg, n, n, w->index) < 0;
	b->in_flight++;
	fe_ring_kick(&b->c->ctrl);
	while (!b->wait && sem_trywait(&w->done) != 0 && !w->failed) {
		struct fe_done done[WORKERS_MAX];

		wake(b, done, reap(b, done));
	}
	pthread_mutex_unlock(&b->lock);
	if (b->wait && !w->failed)
		while (sem_wait(&w->done) != 0)
			;
	us = (fe_now_ns() - start) / 1000;
	/* Below PARTS one bin a microsecond; then by the leading bits. */
	if (us < PARTS) {
		bin = (unsigned int)us;
	} else {
		unsigned int power = 63 - (unsigned int)__builtin_clzll(us);

		bin = (power - 2) * PARTS + (unsigned int)((us >> (power - 3)) % PARTS);
		bin = bin < BINS ? bin : BINS - 1;
	}
	w->bins[bin]++;
	w->requests++;
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	struct bench *b = w->bench;
	uint64_t gpa = b->c->buffer_gpa + (uint64_t)w->index * SLOT_BYTES;
	struct virtio_crypto_op_ctrl_req *req = fe_mem_ptr(&b->c->mem, gpa);
	struct virtio_crypto_session_input *in = fe_mem_ptr(&b->c->mem, gpa + ANSWER_AT);
	const struct fe_seg create[] = {
		{gpa, sizeof(*req) + sizeof(key), false}, {gpa + ANSWER_AT, sizeof(*in), true}};
	const struct fe_seg destroy[] = {{gpa, sizeof(*req), false}, {gpa + ANSWER_AT, 1, true}};

	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED) && !w->failed) {
		memset(req, 0, sizeof(*req));
		req->header.opcode = VIRTIO_CRYPTO_CIPHER_CREATE_SESSION;
		req->u.sym_create_session.op_type = VIRTIO_CRYPTO_SYM_OP_CIPHER;
		req->u.sym_create_session.u.cipher.para =
			(struct virtio_crypto_cipher_session_para){VIRTIO_CRYPTO_CIPHER_AES_CBC,
				sizeof(key), VIRTIO_CRYPTO_OP_ENCRYPT, 0};
		memcpy(req + 1, key, sizeof(key));
		in->status = 0xee;
		roundtrip(w, create, 2);
		w->failed |= w->len != sizeof(*in) || in->status != VIRTIO_CRYPTO_OK;
		req->header.opcode = VIRTIO_CRYPTO_CIPHER_DESTROY_SESSION;
		req->u.destroy_session.session_id = in->session_id;
		roundtrip(w, destroy, 2);
		w->failed |= w->len != 1 || *(uint8_t *)in != VIRTIO_CRYPTO_OK;
	}
	return NULL;
}

static double
cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* First microsecond of a bin; see roundtrip(). */
static uint64_t
bin_us(unsigned int bin)
{
	unsigned int power = bin / PARTS + 2;

	return bin < PARTS ? bin : (uint64_t)(PARTS + bin % PARTS) << (power - 3);
}

/* "usecs : count : distribution", by powers of two from the first that has any to the last. */
static void
print_histogram(const uint64_t *bins)
{
	uint64_t powers[POWERS + 3] = {0}, most = 1;
	unsigned int first = FE_ARRAY_SIZE(powers), last = 0;

	for (unsigned int i = 0; i < BINS; i++) {
		uint64_t us = bin_us(i);
		unsigned int power = us == 0 ? 0 : 64 - (unsigned int)__builtin_clzll(us);

		if (bins[i] == 0)
			continue;
		powers[power] += bins[i];
		first = first < power ? first : power;
		last = power;
		most = powers[power] > most ? powers[power] : most;
	}
	printf("     usecs           : count    : distribution\n");
	for (unsigned int i = first; i <= last; i++)
		printf("%9llu -> %-9llu : %-8llu |%-40.*s|\n", i == 0 ? 0ULL : 1ULL << (i - 1),
			(1ULL << i) - 1, (unsigned long long)powers[i],
			(int)(powers[i] * 40 / most), "****************************************");
}

/* Upper end of the bin that holds this share of all. */
static unsigned long long
quantile_us(const uint64_t *bins, uint64_t all, double share)
{
	uint64_t seen = 0;

	for (unsigned int i = 0; i < BINS; i++) {
		seen += bins[i];
		if ((double)seen >= share * (double)all)
			return bin_us(i + 1) - 1;
	}
	return bin_us(BINS);
}

int
cfe_bench(struct cfe *c, const struct cfe_bench *how)
{
	static struct bench b;
	uint64_t bins[BINS] = {0}, requests = 0;
	uint64_t start = fe_now_ns();
	double cpu = cpu_s(), took;
	bool failed = false;

	b.c = c;
	b.wait = how->wait;
	pthread_mutex_init(&b.lock, NULL);
	fe_ring_disarm(&c->ctrl);
	for (unsigned int i = 0; i < how->workers; i++) {
		b.workers[i] = (struct worker){.bench = &b, .index = i};
		sem_init(&b.workers[i].done, 0, 0);
	}
	if (b.wait)
		pthread_create(&b.caller, NULL, take_calls, &b);
	for (unsigned int i = 0; i < how->workers; i++)
		pthread_create(&b.workers[i].thread, NULL, work, &b.workers[i]);
	while (fe_now_ns() - start < how->seconds * 1000000000ULL)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	took = (double)(fe_now_ns() - start) / 1e9;
	__atomic_store_n(&b.stop, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < how->workers; i++) {
		pthread_join(b.workers[i].thread, NULL);
		requests += b.workers[i].requests;
		failed |= b.workers[i].failed;
		for (unsigned int k = 0; k < BINS; k++)
			bins[k] += b.workers[i].bins[k];
	}
	/* Only now: their last answers still needed somebody to take the call. */
	__atomic_store_n(&b.all_done, true, __ATOMIC_RELAXED);
	if (b.wait)
		pthread_join(b.caller, NULL);
	cpu = cpu_s() - cpu;
	printf("crypto %s workers %u: %.0f operations/s, CPU %.0f %%, p50 %llu us, p99 %llu us, "
	       "p99.9 %llu us, kicks %llu calls %llu late %llu lost %llu\n",
		b.wait ? "wait" : "busy", how->workers, (double)requests / took, 100 * cpu / took,
		quantile_us(bins, requests, 0.5), quantile_us(bins, requests, 0.99),
		quantile_us(bins, requests, 0.999), (unsigned long long)c->ctrl.n_kicks,
		(unsigned long long)c->ctrl.n_calls, (unsigned long long)b.late,
		(unsigned long long)b.lost);
	print_histogram(bins);
	return failed || requests == 0 || b.lost > 0;
}
