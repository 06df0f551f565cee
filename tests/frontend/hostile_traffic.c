/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-hostile: traffic under which messages are sent. The rings belong to this thread, the
 * connection to the main thread.
 */
#include "hostile.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW   32
#define BYTES    200
#define STUCK_US 3000000
#define IDLE_US  20

struct ho_traffic {
	struct ho_run *run;
	pthread_t thread;
	pthread_mutex_t lock; /* held by the thread while it uses the rings */
	bool wanted;          /* main thread: let me have the lock; atomic */
	bool ending;          /* main thread: send no more; under the lock */
	bool leave;           /* main thread: end at once; under the lock */
	uint64_t passed;      /* atomic */
	struct fe_fault fault;
	uint32_t tx_seq, tx_seen, rx_seq, rx_seen;
	uint8_t buf[FE_BUF_MAX];
};

static int
send_tx(struct ho_traffic *t)
{
	struct fe_net *n = t->run->net;
	int moved = fe_net_reap(n, 0);

	if (moved < 0)
		return fe_fault(&t->fault, "%s", fe_net_fault(n));
	while (!t->ending && t->tx_seq - t->tx_seen < WINDOW) {
		struct fe_spec s = {.kind = FE_RAW, .len = BYTES, .seq = t->tx_seq};

		fe_frame_build(&t->run->to_host, &s, t->buf, NULL);
		if (fe_net_send(n, 0, NULL, t->buf, BYTES, NULL) != 0)
			break;
		t->tx_seq++;
		moved++;
	}
	fe_ring_kick(&n->tx[0].ring);
	return moved;
}

static int
take_host(struct ho_traffic *t)
{
	struct virtio_net_hdr_v1 hdr;
	int moved = 0, len;
	uint32_t seq;

	while ((len = fe_host_recv(t->run->host, &hdr, t->buf, sizeof(t->buf))) >= 0) {
		if (!fe_frame_seq(&t->run->to_host, t->buf, (size_t)len, &seq))
			continue;
		if (seq != t->tx_seen || len != BYTES)
			return fe_fault(&t->fault, "host got frame %u of %d bytes, %u was due", seq,
				len, t->tx_seen);
		t->tx_seen++;
		moved++;
	}
	return moved;
}

static int
send_rx(struct ho_traffic *t)
{
	int moved = 0;

	while (!t->ending && t->rx_seq - t->rx_seen < WINDOW) {
		struct fe_spec s = {.kind = FE_RAW, .len = BYTES, .seq = t->rx_seq};

		fe_frame_build(&t->run->to_guest, &s, t->buf, NULL);
		if (fe_host_send(t->run->host, NULL, t->buf, BYTES) != 0)
			break;
		t->rx_seq++;
		moved++;
	}
	return moved;
}

static int
take_guest(struct ho_traffic *t)
{
	struct fe_net *n = t->run->net;
	struct fe_rxframe f;
	int moved = 0, rc;
	uint32_t seq;

	if (fe_net_post(n, 0, FE_ALL, 2048, 2048, NULL) > 0)
		fe_ring_kick(&n->rx[0].ring);
	while ((rc = fe_net_recv(n, 0, &f)) > 0) {
		if (!fe_frame_seq(&t->run->to_guest, f.data, f.len, &seq))
			continue;
		if (seq != t->rx_seen || f.len != BYTES)
			return fe_fault(&t->fault, "guest got frame %u of %u bytes, %u was due",
				seq, f.len, t->rx_seen);
		t->rx_seen++;
		moved++;
	}
	return rc < 0 ? fe_fault(&t->fault, "%s", fe_net_fault(n)) : moved;
}

static int
turn(struct ho_traffic *t)
{
	int (*const steps[])(struct ho_traffic *) = {send_tx, take_host, send_rx, take_guest};
	int moved = 0;

	for (size_t i = 0; i < FE_ARRAY_SIZE(steps); i++) {
		int rc = steps[i](t);

		if (rc < 0)
			return rc;
		moved += rc;
	}
	__atomic_store_n(&t->passed, (uint64_t)t->tx_seen + t->rx_seen, __ATOMIC_RELAXED);
	return moved;
}

static bool
all_seen(const struct ho_traffic *t)
{
	return t->tx_seen == t->tx_seq && t->rx_seen == t->rx_seq;
}

static void *
loop(void *arg)
{
	struct ho_traffic *t = arg;
	uint64_t since = fe_now_us();
	bool done = false;

	while (!done) {
		int moved;

		while (__atomic_load_n(&t->wanted, __ATOMIC_ACQUIRE)) {
			usleep(IDLE_US);
			since = fe_now_us();
		}
		pthread_mutex_lock(&t->lock);
		moved = t->leave ? 0 : turn(t);
		if (moved > 0)
			since = fe_now_us();
		else if (moved == 0 && !all_seen(t) && fe_now_us() - since > STUCK_US)
			moved = fe_fault(&t->fault,
				"traffic stands: to the host %u of %u, to the guest %u of %u",
				t->tx_seen, t->tx_seq, t->rx_seen, t->rx_seq);
		done = t->leave || moved < 0 || (t->ending && all_seen(t));
		pthread_mutex_unlock(&t->lock);
		if (moved == 0)
			usleep(IDLE_US);
	}
	return NULL;
}

struct ho_traffic *
ho_traffic_start(struct ho_run *run)
{
	struct ho_traffic *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->run = run;
	/* Streams count on from the single frames. */
	t->tx_seq = t->tx_seen = t->rx_seq = t->rx_seen = run->seq;
	pthread_mutex_init(&t->lock, NULL);
	if (pthread_create(&t->thread, NULL, loop, t) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

void
ho_traffic_hold(struct ho_traffic *t)
{
	__atomic_store_n(&t->wanted, true, __ATOMIC_RELEASE);
	pthread_mutex_lock(&t->lock);
}

void
ho_traffic_go(struct ho_traffic *t)
{
	pthread_mutex_unlock(&t->lock);
	__atomic_store_n(&t->wanted, false, __ATOMIC_RELEASE);
}

uint64_t
ho_traffic_count(struct ho_traffic *t)
{
	return __atomic_load_n(&t->passed, __ATOMIC_RELAXED);
}

static int
finish(struct ho_traffic *t, bool leave)
{
	int rc = 0;

	ho_traffic_hold(t);
	t->ending = true;
	t->leave = leave;
	ho_traffic_go(t);
	pthread_join(t->thread, NULL);
	if (!leave && t->fault.text[0] != '\0')
		rc = fe_fault(&t->run->fault, "%s", t->fault.text);
	t->run->seq = t->tx_seq > t->rx_seq ? t->tx_seq : t->rx_seq;
	pthread_mutex_destroy(&t->lock);
	free(t);
	return rc;
}

int
ho_traffic_stop(struct ho_traffic *t)
{
	return finish(t, false);
}

void
ho_traffic_abandon(struct ho_traffic *t)
{
	finish(t, true);
}
