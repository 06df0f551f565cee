/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-guests: two guests that a back end joins. What fe-wake asks of a guest and an interface, here
 * of the two: whoever sleeps is woken, a sender whose receiver has no buffers keeps its
 * descriptors and goes on with the receiver's kick, and rings that stop in the middle of a burst
 * are left alone, with nothing lost or doubled.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fe_net.h"
#include "fe_sched.h"
#include "fe_util.h"

#define FRAME_BYTES 60
#define MOST        40U
/* A sleep that nothing ends lasts half a second: what takes so long was forgotten. */
#define LOST_NS     300000000ULL
#define HOLD_NS     1500000000ULL
#define QUIET_NS    1000000ULL

static struct {
	const char *paths[2];
	uint64_t seed;
	uint32_t rounds, poll_us;
	int pid;
	const char *only;
} opt = {.seed = 1, .rounds = 1000, .poll_us = 50};

/* Guest g sends stream g; the other receives it. */
static struct pair {
	struct fe_net net[2];
	struct fe_stream stream[2];
	uint32_t sent[2], reaped[2], seen[2]; /* of stream g */
	struct fe_rng rng;
	struct fe_sched sched;
	struct fe_fault fault;
	uint64_t max_ns, n_calls_missing;
} pair;

struct mode {
	const char *name;
	bool packed[2];
	bool event_idx;
};

static const struct mode modes[] = {
	{"split-split", {false, false}, true},
	{"packed-split", {true, false}, true},
	{"split-packed", {false, true}, false},
	{"packed-packed", {true, true}, false},
};

static int
send_some(int from, uint32_t n)
{
	static uint8_t frame[FRAME_BYTES];
	struct fe_net *net = &pair.net[from];

	for (uint32_t i = 0; i < n; i++) {
		struct fe_spec spec = {
			.kind = FE_RAW, .len = FRAME_BYTES, .seq = pair.sent[from]++};

		fe_frame_build(&pair.stream[from], &spec, frame, NULL);
		if (fe_net_send(net, 0, NULL, frame, spec.len, NULL) != 0)
			return fe_fault(&pair.fault, "transmitq is full");
	}
	fe_ring_kick(&net->tx[0].ring);
	return 0;
}

/* The next frames of the other's stream, in order. Returns how many, or -EPROTO. */
static int
receive(int to)
{
	struct fe_rxframe f;
	int from = 1 - to;
	uint32_t seq;
	int n = 0, rc;

	while ((rc = fe_net_recv(&pair.net[to], 0, &f)) > 0) {
		if (!fe_frame_seq(&pair.stream[from], f.data, f.len, &seq) ||
			seq != pair.seen[from] || f.len != FRAME_BYTES)
			return fe_fault(&pair.fault, "a frame of %u bytes, frame %u was due", f.len,
				pair.seen[from]);
		pair.seen[from]++;
		n++;
	}
	return rc < 0 ? rc : n;
}

static int
reap(int from)
{
	int n = fe_net_reap(&pair.net[from], 0);

	pair.reaped[from] += n > 0 ? (uint32_t)n : 0;
	return n < 0 ? n : 0;
}

static bool
is_lost(uint64_t start)
{
	uint64_t ns = fe_now_ns() - start;

	return ns > LOST_NS && ns - LOST_NS > fe_sched_waited_ns(&pair.sched);
}

/* Until all that `from` has sent, but for `but` frames, has arrived and is used. */
static int
await(int from, uint32_t but)
{
	uint64_t start = fe_now_ns(), ns;

	fe_sched_mark(&pair.sched);
	while (pair.seen[from] + but != pair.sent[from] ||
		(int32_t)(pair.reaped[from] - pair.seen[from]) < 0) {
		if (receive(1 - from) < 0 || reap(from) < 0)
			return -EPROTO;
		if (is_lost(start))
			return fe_fault(&pair.fault,
				"guest %d sent %u frames, %u used, %u arrived: lost wake-up", from,
				pair.sent[from], pair.reaped[from], pair.seen[from]);
	}
	ns = fe_now_ns() - start;
	pair.max_ns = ns > pair.max_ns ? ns : pair.max_ns;
	return 0;
}

/* Around the moment at which a poller goes to sleep, or any other. */
static void
random_gap(void)
{
	uint32_t window_ns = opt.poll_us * 1000;

	if (fe_rng_one_in(&pair.rng, 2))
		fe_spin_ns((window_ns > 20000 ? window_ns - 20000 : 0) +
			   fe_rng_range(&pair.rng, 0, 60000));
	else
		fe_spin_ns(fe_rng_range(&pair.rng, 0, 2 * window_ns + 50000));
}

static void
post(int g, uint32_t n)
{
	fe_net_post(&pair.net[g], 0, n, 256, 256, NULL);
	fe_ring_kick(&pair.net[g].rx[0].ring);
}

/* ---- cases ------------------------------------------------------------------- */

/* One frame; its receiver polls, or waits to be called. */
static int
wake(void)
{
	int from = (int)fe_rng_range(&pair.rng, 0, 1);
	struct fe_ring *rx = &pair.net[1 - from].rx[0].ring;
	bool by_call = fe_rng_one_in(&pair.rng, 2);
	uint64_t start;
	int rc = 0;

	post(1 - from, 4);
	fe_ring_take_calls(rx);
	if (!by_call)
		fe_ring_disarm(rx);
	else if (fe_ring_arm(rx, 0))
		return fe_fault(&pair.fault, "used before a frame was sent");
	random_gap();
	fe_sched_mark(&pair.sched);
	start = fe_now_ns();
	if (send_some(from, 1) != 0)
		return -EPROTO;
	if (by_call) {
		do
			rc = fe_ring_wait(rx, 10000);
		while (rc == 0 && !is_lost(start));
		if (rc != 1)
			return fe_fault(
				&pair.fault, rc == 0 ? "nothing came" : "used, but no call came");
	}
	return await(from, 0);
}

/* Give the receiver no more buffers than it has frames to wait for. */
static int
use_up(int to)
{
	while (fe_ring_outstanding(&pair.net[to].rx[0].ring) > 0) {
		uint32_t n = fe_ring_outstanding(&pair.net[to].rx[0].ring);

		if (send_some(1 - to, n < MOST ? n : MOST) != 0 || await(1 - to, 0) != 0)
			return -EPROTO;
	}
	return 0;
}

/* Frames without buffers; these come one by one, at any moment. */
static int
refill(void)
{
	int from = (int)fe_rng_range(&pair.rng, 0, 1);
	uint32_t n = fe_rng_range(&pair.rng, 1, 8);

	if (use_up(1 - from) != 0)
		return -EPROTO;
	random_gap();
	if (send_some(from, n) != 0)
		return -EPROTO;
	for (; n > 0; n--) {
		random_gap();
		if (receive(1 - from) != 0 || reap(from) != 0 ||
			pair.reaped[from] != pair.seen[from])
			return fe_fault(&pair.fault, "%u frames used of %u that arrived",
				pair.reaped[from], pair.seen[from]);
		post(1 - from, 1);
		if (await(from, n - 1) != 0)
			return -EPROTO;
	}
	return 0;
}

/* A stopped ring is the guest's: nothing in it changes, whatever the other side does. */
static int
check_quiet(int g)
{
	struct fe_ring *tx = &pair.net[g].tx[0].ring, *rx = &pair.net[g].rx[0].ring;
	uint64_t start = fe_now_ns();

	while (fe_now_ns() - start < QUIET_NS)
		if (fe_ring_pending(tx) || fe_ring_pending(rx))
			return fe_fault(&pair.fault, "a stopped ring was used");
	return 0;
}

/* One of the two stops while a burst waits, or moves, and starts again. */
static int
restart(void)
{
	int from = (int)fe_rng_range(&pair.rng, 0, 1);
	int who = (int)fe_rng_range(&pair.rng, 0, 1);
	uint32_t n = fe_rng_range(&pair.rng, 1, MOST);

	if (use_up(1 - from) != 0)
		return -EPROTO;
	post(1 - from, fe_rng_range(&pair.rng, 0, n));
	if (send_some(from, n) != 0)
		return -EPROTO;
	fe_spin_ns(fe_rng_range(&pair.rng, 0, 50000));
	if (fe_net_stop(&pair.net[who]) != 0)
		return fe_fault(&pair.fault, "stop: %s", fe_net_fault(&pair.net[who]));
	if (receive(who) < 0 || reap(who) < 0)
		return -EPROTO;
	post(1 - who, MOST);
	if (send_some(1 - who, 3) != 0 || check_quiet(who) != 0)
		return -EPROTO;
	if (fe_net_start(&pair.net[who]) != 0)
		return fe_fault(&pair.fault, "start: %s", fe_net_fault(&pair.net[who]));
	post(who, MOST);
	post(1 - who, MOST);
	return await(0, 0) != 0 || await(1, 0) != 0 ? -EPROTO : 0;
}

/* For others to see what the daemon does while a sender waits for its receiver. */
static int
hold(void)
{
	uint64_t start;

	if (use_up(1) != 0 || send_some(0, 10) != 0)
		return -EPROTO;
	printf("holding\n");
	fflush(stdout);
	for (start = fe_now_ns(); fe_now_ns() - start < HOLD_NS;)
		if (receive(1) != 0 || reap(0) != 0 || pair.reaped[0] != pair.seen[0])
			return fe_fault(&pair.fault, "without buffers: %u used, %u arrived",
				pair.reaped[0], pair.seen[0]);
	post(1, 10);
	return await(0, 0);
}

static const struct {
	const char *name;
	int (*round)(void);
	uint32_t every; /**< one round in place of so many */
} cases[] = {{"wake", wake, 1}, {"refill", refill, 4}, {"restart", restart, 20}, {"hold", hold, 0}};

/* ---- program ----------------------------------------------------------------- */

static int
open_pair(const struct mode *m)
{
	int rc = 0;

	memset(&pair, 0, sizeof(pair));
	fe_rng_seed(&pair.rng, opt.seed);
	fe_sched_open(&pair.sched, opt.pid);
	for (uint32_t g = 0; g < 2 && rc == 0; g++) {
		struct fe_net_cfg cfg = {
			.path = opt.paths[g],
			.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
				    (m->event_idx ? FE_BIT(VIRTIO_RING_F_EVENT_IDX) : 0),
			.need_features = m->packed[g] ? FE_BIT(VIRTIO_F_RING_PACKED) : 0,
			.tx_buf_bytes = 2048,
			.rx_buf_bytes = 2048,
		};

		rc = fe_stream_init(&pair.stream[g], g, opt.seed);
		if (rc == 0)
			rc = fe_net_open(&pair.net[g], &cfg);
		if (rc == 0)
			rc = fe_net_start(&pair.net[g]);
		if (rc != 0)
			fe_fault(&pair.fault, "open: %s %s", strerror(-rc),
				fe_net_fault(&pair.net[g]));
	}
	return rc;
}

static void
close_pair(void)
{
	for (int g = 0; g < 2; g++) {
		fe_net_close(&pair.net[g]);
		fe_stream_free(&pair.stream[g]);
	}
	fe_sched_close(&pair.sched);
}

static bool
run(const struct mode *m, size_t c)
{
	uint32_t rounds = cases[c].every == 0 ? 1 : 1 + opt.rounds / cases[c].every;
	int rc = open_pair(m);
	uint32_t i;

	for (i = 0; i < rounds && rc == 0; i++)
		rc = cases[c].round();
	printf("%-4s %-8s %-14s: %u rounds, %u and %u frames, longest wait %.1f us\n",
		rc == 0 ? "ok" : "FAIL", cases[c].name, m->name, i, pair.seen[0], pair.seen[1],
		(double)pair.max_ns / 1e3);
	if (rc != 0)
		printf("     %s %s %s\n", pair.fault.text, fe_net_fault(&pair.net[0]),
			fe_net_fault(&pair.net[1]));
	fflush(stdout);
	close_pair();
	return rc == 0;
}

static const char usage[] =
	"usage: fe-guests --socket PATH --peer PATH [options]\n"
	"  --case NAME         wake, refill, restart (all three), or hold: a receiver without\n"
	"                      buffers, for a while\n"
	"  --rounds N          of wake; a quarter of refill, a twentieth of restart (1000)\n"
	"  --poll-us N         the window that the back end runs with (50)\n"
	"  --pid PID           of the back end, to know what it waited for a CPU\n"
	"  --seed N            (1)\n";

static void
parse(int argc, char **argv)
{
	static const struct option longs[] = {{"socket", 1, NULL, 's'}, {"peer", 1, NULL, 'p'},
		{"case", 1, NULL, 'c'}, {"rounds", 1, NULL, 'r'}, {"poll-us", 1, NULL, 'u'},
		{"pid", 1, NULL, 'P'}, {"seed", 1, NULL, 'd'}, {"help", 0, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 's')
			opt.paths[0] = optarg;
		else if (c == 'p')
			opt.paths[1] = optarg;
		else if (c == 'c')
			opt.only = optarg;
		else if (c == 'r')
			opt.rounds = (uint32_t)fe_opt_number("rounds", optarg, 1, 1000000000);
		else if (c == 'u')
			opt.poll_us = (uint32_t)fe_opt_number("poll-us", optarg, 0, 1000000);
		else if (c == 'P')
			opt.pid = (int)fe_opt_number("pid", optarg, 1, 1 << 30);
		else if (c == 'd')
			opt.seed = fe_opt_number("seed", optarg, 0, UINT64_MAX);
		else
			fputs(usage, c == 'h' ? stdout : stderr), exit(c == 'h' ? 0 : 2);
	}
	if (optind < argc || opt.paths[0] == NULL || opt.paths[1] == NULL) {
		fputs(usage, stderr);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	unsigned int passed = 0, failed = 0;

	parse(argc, argv);
	for (size_t c = 0; c < FE_ARRAY_SIZE(cases); c++) {
		bool wanted = opt.only != NULL ? strcmp(opt.only, cases[c].name) == 0
					       : cases[c].every > 0;

		/* It takes its time: the first mode and the last. */
		size_t step = cases[c].every > 0 ? 1 : FE_ARRAY_SIZE(modes) - 1;

		for (size_t m = 0; wanted && m < FE_ARRAY_SIZE(modes); m += step) {
			bool pass = run(&modes[m], c);

			passed += pass;
			failed += !pass;
		}
	}
	printf("RESULT fe-guests %s: %u passed, %u failed\n",
		failed == 0 && passed > 0 ? "PASS" : "FAIL", passed, failed);
	return failed == 0 && passed > 0 ? 0 : 1;
}
