/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A back end of a few lines for testing the test front end: a thread that answers the
 * vhost-user messages and does nothing else, and the device's side of rings, done by hand
 * by whoever tests. It can be told to do wrong.
 */
#ifndef SELFTEST_STUB_H
#define SELFTEST_STUB_H

#include <pthread.h>

#include "fe_net.h"

struct stub {
	char path[64];
	uint64_t features; /**< offered */
	uint64_t base[8];  /**< answers to GET_VRING_BASE */
	pthread_t thread;
	int listen_fd;
	/* Written by the thread, read after stub_stop(). */
	uint32_t n_messages;
	uint32_t n_ack_asked;
};

/** Listen at a fresh path; asserts on failure. */
void stub_start(struct stub *s, uint64_t features);
void stub_stop(struct stub *s);

/** The device's side of a ring: where it stands. */
struct stub_ring {
	struct fe_ring *r;
	uint16_t next;
	bool wrap;
};

void stub_ring_init(struct stub_ring *d, struct fe_ring *r);

/**
 * Take the next available chain. @return its head or id, -1 if there is none.
 * @param first (output) address and length of its first piece, behind any indirection
 * @param ndesc (output) ring descriptors that it takes
 */
int stub_take(struct stub_ring *d, struct fe_seg *first, uint16_t *ndesc);

/** Put a used entry out, however wrong. */
void stub_use(struct stub_ring *d, uint32_t id, uint32_t len, uint16_t ndesc);

#endif
