/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-soak: front ends that are killed under load and come back, again and again, while another
 * device has traffic and statistics are read a thousand times a second; then a peer that hangs
 * up at once on a device that connects. What the back end holds must stay the same.
 *
 * Prints one line per part and "N passed, N failed" at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile_proc.h"
#include "rings.h"

#define STARTED_MS 10000

struct soak {
	struct rg_opts second; /* net.path: the device under test; see rings.h */
	const char *telemetry, *client;
	uint32_t rounds, seconds;
	bool flood;
	struct fe_rng rng;
	struct fe_fault fault;
};

/* ---- statistics ------------------------------------------------------------------- */

struct reader {
	const char *path;
	bool stop; /* atomic; main thread writes */
	uint64_t answers;
	uint64_t longest_us;
	struct fe_fault fault;
	pthread_t thread;
};

static int
open_telemetry(struct reader *r)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const struct timeval limit = {.tv_sec = 5};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char hello[1024];

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", r->path);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0 ||
		connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
		recv(fd, hello, sizeof(hello), 0) <= 0) {
		fe_fault(&r->fault, "statistics: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static void *
read_statistics(void *arg)
{
	static const char *const asks[] = {
		"/vhp/qpair,net_vhost0:0", "/vhp/devices", "/vhp/refusals", "/vhp/poller,0"};
	struct reader *r = arg;
	char answer[16384];
	int fd = open_telemetry(r);

	while (fd >= 0 && !__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		const char *ask = asks[r->answers % FE_ARRAY_SIZE(asks)];
		uint64_t start = fe_now_us(), took;

		if (send(fd, ask, strlen(ask), MSG_NOSIGNAL) < 0 ||
			recv(fd, answer, sizeof(answer), 0) <= 2) {
			fe_fault(&r->fault, "no answer to %s: %s", ask, strerror(errno));
			break;
		}
		took = fe_now_us() - start;
		r->longest_us = took > r->longest_us ? took : r->longest_us;
		r->answers++;
		if (took < 1000)
			usleep((useconds_t)(1000 - took));
	}
	if (fd >= 0)
		close(fd);
	return NULL;
}

/* ---- killed front ends ------------------------------------------------------------ */

/* A front end that sends as fast as it can in both directions, until it is killed. */
static void
load(const struct soak *s, int started_fd)
{
	static struct fe_net net;
	static uint8_t frame[1514];
	struct fe_net_cfg cfg = s->second.net;
	struct fe_host host;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fe_rng_one_in((struct fe_rng *)(uintptr_t)&s->rng, 2))
		cfg.features |= FE_BIT(VIRTIO_F_RING_PACKED);
	memset(frame, 0xff, 6);
	frame[12] = FE_ETHERTYPE >> 8;
	frame[13] = FE_ETHERTYPE & 0xff;
	if (fe_host_open(&host, s->second.iface, 5000) != 0 || fe_net_open(&net, &cfg) != 0 ||
		fe_net_start(&net) != 0)
		_exit(1);
	if (write(started_fd, "s", 1) != 1)
		_exit(1);
	for (;;) {
		struct fe_rxframe f;

		if (fe_net_reap(&net, 0) < 0)
			_exit(1);
		while (fe_net_send(&net, 0, NULL, frame, sizeof(frame), NULL) == 0)
			;
		fe_ring_kick(&net.tx[0].ring);
		for (int i = 0; i < 16; i++)
			fe_host_send(&host, NULL, frame, sizeof(frame));
		fe_net_post(&net, 0, FE_ALL, 2048, 2048, NULL);
		fe_ring_kick(&net.rx[0].ring);
		while (fe_net_recv(&net, 0, &f) > 0)
			;
		fe_host_flush(&host);
	}
}

/* One life and death. Every fourth dies at any moment of its set-up. */
static int
one_round(struct soak *s, uint32_t round)
{
	int started[2], status, rc = 0;
	char byte;
	pid_t child;

	if (pipe2(started, O_CLOEXEC) != 0)
		return fe_fault(&s->fault, "test: pipe: %s", strerror(errno));
	(void)fe_rng_u64(&s->rng);
	child = fork();
	if (child == 0)
		load(s, started[1]);
	close(started[1]);
	if (round % 4 != 3 && read(started[0], &byte, 1) != 1)
		rc = fe_fault(&s->fault, "round %u: the front end could not start", round);
	usleep(fe_rng_range(&s->rng, 0, 15000));
	if (rc == 0 && waitpid(child, &status, WNOHANG) != 0)
		rc = fe_fault(
			&s->fault, "round %u: the front end gave up, status 0x%x", round, status);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	close(started[0]);
	return rc;
}

/* Pages that were touched once stay; what grows with each round does not fit in here. */
static const struct ho_slack slack = {.fds = 4, .maps = 16, .rss_kb = 8192};

static int
rounds(struct soak *s)
{
	struct ho_proc before, now;
	int rc = 0;

	for (uint32_t i = 0; i < s->rounds && rc == 0; i++) {
		if (i == s->rounds / 5 && ho_proc_read(s->second.pid, &before) != 0)
			return fe_fault(&s->fault, "the back end has died");
		rc = one_round(s, i);
	}
	usleep(100000);
	if (rc == 0)
		rc = ho_proc_flat(s->second.pid, &before, &slack, &s->fault);
	if (rc == 0 && ho_proc_read(s->second.pid, &now) == 0)
		printf("held after %u and %u rounds: descriptors %u %u, mappings %u %u, resident "
		       "%llu %llu KiB\n",
			s->rounds / 5, s->rounds, before.fds, now.fds, before.maps, now.maps,
			(unsigned long long)before.rss_kb, (unsigned long long)now.rss_kb);
	return rc;
}

static int
killed_front_ends(struct soak *s)
{
	struct reader r = {.path = s->telemetry};
	struct rg_second *second = rg_second_start(&s->second);
	uint64_t start = fe_now_us();
	int rc;

	if (second == NULL)
		return fe_fault(&s->fault, "the second device does not work");
	if (pthread_create(&r.thread, NULL, read_statistics, &r) != 0) {
		rg_second_stop(second);
		return fe_fault(&s->fault, "test: thread");
	}
	rc = rounds(s);
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(r.thread, NULL);
	if (rc == 0)
		rc = rg_second_check(second, &s->fault);
	rg_second_stop(second);
	if (rc == 0 && r.fault.text[0] != '\0')
		rc = fe_fault(&s->fault, "%s", r.fault.text);
	printf("statistics: %llu answers in %.1f s, longest %.1f ms\n",
		(unsigned long long)r.answers, (double)(fe_now_us() - start) / 1e6,
		(double)r.longest_us / 1e3);
	return rc;
}

/* ---- client mode ------------------------------------------------------------------ */

static int
client_alive(struct soak *s)
{
	static struct fe_net net;
	struct fe_net_cfg cfg = s->second.net;
	uint8_t frame[64] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	int rc;

	cfg.path = s->client;
	cfg.server = true;
	rc = fe_net_open(&net, &cfg);
	if (rc == 0)
		rc = fe_net_start(&net);
	if (rc == 0)
		rc = fe_net_send(&net, 0, NULL, frame, sizeof(frame), NULL);
	if (rc == 0) {
		uint64_t end = fe_now_us() + 2000000;

		fe_ring_kick(&net.tx[0].ring);
		while (fe_net_reap(&net, 0) == 0 && rc == 0)
			rc = fe_now_us() > end ? -ETIMEDOUT : 0;
	}
	if (rc != 0)
		fe_fault(&s->fault, "afterwards: %s %s", strerror(-rc), fe_net_fault(&net));
	fe_net_close(&net);
	return rc == 0 ? 0 : -EPROTO;
}

/* The peer accepts and hangs up at once: the back end has to lose patience, not CPU time. */
static int
hanging_up(struct soak *s)
{
	/* Pauses grow to a second: 50, 100, 200, 400, 800 ms, then one a second. */
	uint32_t limit = 6 + 2 * s->seconds, accepted = 0;
	uint64_t end = fe_now_us() + s->seconds * 1000000ULL;
	struct ho_proc before, after;
	struct fe_conn c;
	int rc = fe_listen(&c, s->client, 5000);

	if (rc != 0)
		return fe_fault(&s->fault, "test: listen: %s", strerror(-rc));
	ho_proc_read(s->second.pid, &before);
	while (fe_now_us() < end)
		if (fe_accept(&c, 100) == 0) {
			accepted++;
			fe_disconnect(&c);
		}
	fe_conn_close(&c);
	rc = ho_proc_flat(s->second.pid, &before, &slack, &s->fault);
	if (rc == 0)
		rc = ho_proc_read(s->second.pid, &after);
	if (rc != 0)
		return fe_fault(&s->fault, "the back end has died");
	printf("hung up on %u times in %u s, %llu ms of CPU\n", accepted, s->seconds,
		(unsigned long long)(after.cpu_ms - before.cpu_ms));
	if (accepted < 3 || accepted > limit)
		return fe_fault(
			&s->fault, "%u connections in %u s: no back-off", accepted, s->seconds);
	if (after.cpu_ms - before.cpu_ms > s->seconds * 100)
		return fe_fault(&s->fault, "more than 10 %% of a CPU");
	return client_alive(s);
}

/* ---- program ---------------------------------------------------------------------- */

static const char usage[] =
	"usage: fe-soak --socket PATH --iface TAP --second PATH --second-iface TAP --pid N\n"
	"               --telemetry PATH [options]\n"
	"  --telemetry PATH  the back end's statistics socket\n"
	"  --client PATH     socket that a further device of the back end connects to\n"
	"  --rounds N        front ends that are started and killed (50)\n"
	"  --seconds N       of hanging up on the connecting device (5)\n"
	"  --gap-ms N        longest pause of the second device (50)\n"
	"  --seed N          of the moments (1)\n"
	"usage: fe-soak --socket PATH --iface TAP --flood\n"
	"  no test: sends as fast as it can in both directions until it is killed\n";

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'},
	{"iface", required_argument, NULL, 'i'},
	{"second", required_argument, NULL, 'S'},
	{"second-iface", required_argument, NULL, 'I'},
	{"telemetry", required_argument, NULL, 't'},
	{"client", required_argument, NULL, 'c'},
	{"rounds", required_argument, NULL, 'r'},
	{"seconds", required_argument, NULL, 'n'},
	{"gap-ms", required_argument, NULL, 'g'},
	{"pid", required_argument, NULL, 'P'},
	{"seed", required_argument, NULL, 'd'},
	{"flood", no_argument, NULL, 'f'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static void
set_option(struct soak *s, int id, const char *arg)
{
	switch (id) {
	case 's':
		s->second.net.path = arg;
		break;
	case 'i':
		s->second.iface = arg;
		break;
	case 'S':
		s->second.second = arg;
		break;
	case 'I':
		s->second.second_iface = arg;
		break;
	case 't':
		s->telemetry = arg;
		break;
	case 'c':
		s->client = arg;
		break;
	case 'r':
		s->rounds = (uint32_t)fe_opt_number("rounds", arg, 5, 1000000);
		break;
	case 'n':
		s->seconds = (uint32_t)fe_opt_number("seconds", arg, 1, 100000);
		break;
	case 'g':
		s->second.gap_ms = (uint32_t)fe_opt_number("gap-ms", arg, 1, 60000);
		break;
	case 'P':
		s->second.pid = (int)fe_opt_number("pid", arg, 1, INT32_MAX);
		break;
	case 'f':
		s->flood = true;
		break;
	case 'd':
		s->second.seed = fe_opt_number("seed", arg, 0, UINT64_MAX);
		break;
	default:
		fputs(usage, id == 'h' ? stdout : stderr);
		exit(id == 'h' ? 0 : 2);
	}
}

static int
part(struct soak *s, const char *name, int (*run)(struct soak *s))
{
	int rc;

	memset(&s->fault, 0, sizeof(s->fault));
	rc = run(s);
	printf("%-4s %s%s%s\n", rc == 0 ? "ok" : "FAIL", name, rc == 0 ? "" : ": ", s->fault.text);
	fflush(stdout);
	return rc == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	static struct soak s = {
		.second = {.net = {.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
					       FE_BIT(VIRTIO_RING_F_INDIRECT_DESC),
				   .tx_bufs = 64,
				   .rx_bufs = 64,
				   .tx_buf_bytes = 2048,
				   .rx_buf_bytes = 2048,
				   .timeout_ms = STARTED_MS},
			.seed = 1,
			.gap_ms = 50,
			.used_ms = 1000},
		.rounds = 50,
		.seconds = 5,
	};
	int id, failed = 0, parts = 1;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(&s, id, optarg);
	signal(SIGPIPE, SIG_IGN);
	fe_rng_seed(&s.rng, s.second.seed);
	if (optind == argc && s.flood && s.second.net.path != NULL && s.second.iface != NULL)
		load(&s, STDOUT_FILENO);
	if (optind < argc || s.second.net.path == NULL || s.second.iface == NULL ||
		s.second.second == NULL || s.second.second_iface == NULL || s.telemetry == NULL ||
		s.second.pid == 0) {
		fputs(usage, stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	failed += part(&s, "front ends killed under load", killed_front_ends);
	if (s.client != NULL) {
		parts++;
		failed += part(&s, "peer that hangs up at once", hanging_up);
	}
	printf("%d passed, %d failed\n", parts - failed, failed);
	return failed == 0 ? 0 : 1;
}
