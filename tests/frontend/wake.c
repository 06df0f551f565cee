/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-wake: no wake-up is lost, on either side, in any of the four ways to notify.
 *
 * Prints one line per mode and case and one result line; exit status 0 only if nothing was
 * lost or late. A round that is late while a thread of either side waited for a CPU that
 * long is counted apart: a machine with other work on it makes those, not the back end.
 */
#include "wake.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mode {
	const char *name;
	uint64_t need;
	uint64_t without;
};

static const struct mode modes[] = {
	{"split-flags", 0, FE_BIT(VIRTIO_RING_F_EVENT_IDX)},
	{"split-event", FE_BIT(VIRTIO_RING_F_EVENT_IDX), 0},
	{"packed-flags", FE_BIT(VIRTIO_F_RING_PACKED), FE_BIT(VIRTIO_RING_F_EVENT_IDX)},
	{"packed-event", FE_BIT(VIRTIO_F_RING_PACKED) | FE_BIT(VIRTIO_RING_F_EVENT_IDX), 0},
};

static const char usage[] =
	"usage: fe-wake --socket PATH --iface TAP [options]\n"
	"  --server       listen at PATH, the back end connects\n"
	"  --case A,B,... W1-tx W1-rx W1-refill W1-mix W3 W4 W5 W7 W9, or W1 (all)\n"
	"  --mode A,B,... split-flags split-event packed-flags packed-event (those offered)\n"
	"  --rounds N     per case and mode (10000)\n"
	"  --poll-us N    poll window that the back end runs with (50)\n"
	"  --limit-us N   later than this is late (10000)\n"
	"  --lost-us N    later than this is lost (2000000)\n"
	"  --pid N        process of the back end, to know when it waited for a CPU\n"
	"  --seed N       of gaps and choices (1)\n"
	"  --histogram    print the latencies of each case: kick, or frame sent, to served\n"
	"  --lenient      accept deviations that drivers do not mind (other back ends)\n";

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'},
	{"server", no_argument, NULL, 'S'},
	{"iface", required_argument, NULL, 'i'},
	{"case", required_argument, NULL, 'c'},
	{"mode", required_argument, NULL, 'm'},
	{"rounds", required_argument, NULL, 'r'},
	{"poll-us", required_argument, NULL, 'p'},
	{"limit-us", required_argument, NULL, 'l'},
	{"lost-us", required_argument, NULL, 'L'},
	{"pid", required_argument, NULL, 'P'},
	{"seed", required_argument, NULL, 'd'},
	{"histogram", no_argument, NULL, 'H'},
	{"lenient", no_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

void
wk_served(struct wk_run *run, uint64_t ns)
{
	struct wk_latency *l = &run->lat;
	uint64_t limit = run->opts->limit_us * 1000ULL;
	uint32_t log2 = ns < 8 ? 3 : 63 - (uint32_t)__builtin_clzll(ns);

	l->n++;
	l->sum_ns += ns;
	l->max_ns = ns > l->max_ns ? ns : l->max_ns;
	l->step[log2 * 8 + ((ns >> (log2 - 3)) & 7)]++;
	if (ns > limit) {
		if (fe_sched_waited_ns(&run->sched) >= ns - limit)
			l->excused++;
		else
			l->late++;
	}
	fe_sched_mark(&run->sched);
}

uint64_t
wk_percentile(const struct wk_latency *l, double percent)
{
	uint64_t want = (uint64_t)((double)l->n * percent / 100.0), sum = 0;

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(l->step); i++) {
		sum += l->step[i];
		if (sum > want)
			return (8ULL + i % 8) << (i / 8) >> 3;
	}
	return l->max_ns;
}

static int
net_fault(struct wk_run *run)
{
	return fe_fault(&run->fault, "%s", fe_net_fault(run->net));
}

int
wk_guest_add(struct wk_run *run)
{
	struct fe_spec s = {.kind = FE_RAW, .len = WK_FRAME_BYTES, .seq = run->seq_to_host++};

	fe_frame_build(&run->to_host, &s, run->buf, NULL);
	if (fe_net_send(run->net, 0, NULL, run->buf, s.len, NULL) != 0)
		return fe_fault(&run->fault, "transmitq is full");
	return 0;
}

int
wk_host_send(struct wk_run *run)
{
	struct fe_spec s = {.kind = FE_RAW, .len = WK_FRAME_BYTES, .seq = run->seq_to_guest++};
	int rc;

	fe_frame_build(&run->to_guest, &s, run->buf, NULL);
	rc = fe_host_send(run->host, NULL, run->buf, s.len);
	return rc == 0 ? 0 : fe_fault(&run->fault, "host send: %s", strerror(-rc));
}

int
wk_host_take(struct wk_run *run)
{
	struct virtio_net_hdr_v1 hdr;
	uint32_t seq;
	int n = 0, len;

	while ((len = fe_host_recv(run->host, &hdr, run->buf, FE_BUF_MAX)) >= 0) {
		if (!fe_frame_seq(&run->to_host, run->buf, (size_t)len, &seq))
			continue;
		if (seq != run->seen_by_host || len != WK_FRAME_BYTES)
			return fe_fault(&run->fault, "host got frame %u of %d bytes, %u was due",
				seq, len, run->seen_by_host);
		run->seen_by_host++;
		n++;
	}
	return n;
}

int
wk_guest_take(struct wk_run *run)
{
	struct fe_rxframe f;
	uint32_t seq;
	int n = 0, rc;

	while ((rc = fe_net_recv(run->net, 0, &f)) > 0) {
		if (!fe_frame_seq(&run->to_guest, f.data, f.len, &seq))
			continue;
		if (seq != run->seen_by_guest || f.len != WK_FRAME_BYTES)
			return fe_fault(&run->fault, "guest got frame %u of %u bytes, %u was due",
				seq, f.len, run->seen_by_guest);
		run->seen_by_guest++;
		n++;
	}
	return rc < 0 ? net_fault(run) : n;
}

void
wk_guest_post(struct wk_run *run)
{
	if (fe_net_post(run->net, 0, FE_ALL, 2048, 2048, NULL) > 0)
		fe_ring_kick(&run->net->rx[0].ring);
}

int
wk_guest_reap(struct wk_run *run)
{
	int n = fe_net_reap(run->net, 0);

	return n < 0 ? net_fault(run) : n;
}

int
wk_host_all(struct wk_run *run)
{
	uint64_t end = fe_now_us() + run->opts->lost_us;
	int rc = 0;

	while (rc >= 0 && run->seen_by_host != run->seq_to_host) {
		if (fe_now_us() > end)
			return fe_fault(&run->fault, "%u of %u frames did not reach the host",
				run->seq_to_host - run->seen_by_host, run->seq_to_host);
		fe_host_wait(run->host, 1000);
		rc = wk_host_take(run);
	}
	return rc < 0 ? rc : 0;
}

static bool
listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	if (list == NULL)
		return true;
	while (*list != '\0') {
		size_t item = strcspn(list, ",");

		if ((item == len && strncmp(list, name, len) == 0) ||
			/* W1 names all of its parts. */
			(item == 2 && strncmp(list, name, 2) == 0 && name[2] == '-'))
			return true;
		list += item + (list[item] == ',');
	}
	return false;
}

/* Latencies by powers of two of microseconds, in the form of the back end's own. */
static void
print_histogram(const struct wk_latency *l)
{
	static const char bar[] = "****************************************";
	uint64_t bins[64] = {0}, most = 0;
	int first = 63, last = 0;

	for (uint32_t i = 0; i < FE_ARRAY_SIZE(l->step); i++) {
		uint64_t us = ((8ULL + i % 8) << (i / 8) >> 3) / 1000;
		int bin = us == 0 ? 0 : 64 - __builtin_clzll(us);

		if (l->step[i] == 0)
			continue;
		bins[bin] += l->step[i];
		most = bins[bin] > most ? bins[bin] : most;
		first = bin < first ? bin : first;
		last = bin > last ? bin : last;
	}
	if (most > 0)
		printf("%24s : %-10s : distribution\n", "usecs", "count");
	for (int bin = first; bin <= last && most > 0; bin++)
		printf("%10llu -> %-10llu : %-10llu |%-40.*s|\n",
			bin == 0 ? 0ULL : 1ULL << (bin - 1), (1ULL << bin) - 1,
			(unsigned long long)bins[bin], (int)(bins[bin] * 40 / most), bar);
}

static bool
run_case(struct wk_run *run, const struct wk_case *c)
{
	const struct fe_ring *tx = &run->net->tx[0].ring, *rx = &run->net->rx[0].ring;
	uint64_t kicks = tx->n_kicks + rx->n_kicks, start = fe_now_us();
	uint64_t saved = tx->n_kicks_saved + rx->n_kicks_saved;
	bool pass;

	memset(&run->lat, 0, sizeof(run->lat));
	run->note[0] = '\0';
	pass = c->run(run) == 0 && run->lat.late == 0;
	printf("%-4s %-9s %-12s: served %llu, kicks %llu, saved %llu, us p50 %.1f p99 %.1f max "
	       "%.1f, "
	       "late %llu, late for want of CPU %llu%s, %.1f s\n",
		pass ? "ok" : "FAIL", c->name, run->mode, (unsigned long long)run->lat.n,
		(unsigned long long)(tx->n_kicks + rx->n_kicks - kicks),
		(unsigned long long)(tx->n_kicks_saved + rx->n_kicks_saved - saved),
		(double)wk_percentile(&run->lat, 50) / 1e3,
		(double)wk_percentile(&run->lat, 99) / 1e3, (double)run->lat.max_ns / 1e3,
		(unsigned long long)run->lat.late, (unsigned long long)run->lat.excused, run->note,
		(double)(fe_now_us() - start) / 1e6);
	if (run->fault.text[0] != '\0')
		printf("     %s\n", run->fault.text);
	if (run->opts->histogram)
		print_histogram(&run->lat);
	fflush(stdout);
	return pass;
}

/* Each case has a connection of its own: one that fails leaves nothing to the next. */
static int
run_mode_case(const struct wk_opts *o, const struct mode *m, const struct wk_case *c)
{
	static struct fe_net net;
	struct fe_host host;
	struct wk_run run = {.opts = o, .mode = m->name, .net = &net, .host = &host};
	struct fe_net_cfg cfg = o->net;
	bool pass = false;
	int rc;

	cfg.features &= ~m->without;
	cfg.need_features |= m->need;
	rc = fe_net_open(&net, &cfg);
	if (rc == -ENOTSUP) {
		fe_net_close(&net);
		return 0;
	}
	run.event_idx = fe_net_has(&net, VIRTIO_RING_F_EVENT_IDX);
	run.buf = malloc(FE_BUF_MAX);
	fe_rng_seed(&run.rng, o->seed);
	fe_sched_open(&run.sched, o->pid);
	if (rc == 0 && run.buf != NULL && fe_stream_init(&run.to_host, 1, o->seed) == 0 &&
		fe_stream_init(&run.to_guest, 2, o->seed) == 0 &&
		fe_host_open(&host, o->iface, 5000) == 0) {
		if (fe_net_start(&net) == 0)
			pass = run_case(&run, c);
		fe_host_close(&host);
	}
	if (fe_net_fault(&net)[0] != '\0')
		printf("     %s %s: %s\n", m->name, c->name, fe_net_fault(&net));
	fe_stream_free(&run.to_host);
	fe_stream_free(&run.to_guest);
	fe_sched_close(&run.sched);
	free(run.buf);
	fe_net_close(&net);
	return pass ? 1 : -1;
}

static int
run_all(const struct wk_opts *o, const char *mode_list, const char *case_list)
{
	const struct wk_case *const tables[] = {wk_round_cases, wk_call_cases};
	unsigned int passed = 0, failed = 0, skipped = 0;

	for (size_t m = 0; m < FE_ARRAY_SIZE(modes); m++) {
		if (!listed(mode_list, modes[m].name))
			continue;
		for (size_t t = 0; t < FE_ARRAY_SIZE(tables); t++)
			for (const struct wk_case *c = tables[t]; c->name != NULL; c++) {
				int rc = listed(case_list, c->name) ? run_mode_case(o, &modes[m], c)
								    : 2;

				passed += rc == 1;
				failed += rc < 0;
				skipped += rc == 0;
			}
	}
	printf("RESULT fe-wake %s: %u passed, %u failed, %u skipped (mode not offered)\n",
		failed == 0 && passed > 0 ? "PASS" : "FAIL", passed, failed, skipped);
	return failed == 0 && passed > 0 ? 0 : 1;
}

static void
set_number(uint32_t *dst, const char *name, const char *text)
{
	*dst = (uint32_t)fe_opt_number(name, text, 0, 1000000000);
}

static void
parse(struct wk_opts *o, const char **mode_list, const char **case_list, int argc, char **argv)
{
	uint32_t pid = 0;
	int id;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (id) {
		case 's':
			o->net.path = optarg;
			break;
		case 'S':
			o->net.server = true;
			break;
		case 'i':
			o->iface = optarg;
			break;
		case 'c':
			*case_list = optarg;
			break;
		case 'm':
			*mode_list = optarg;
			break;
		case 'r':
			set_number(&o->rounds, "rounds", optarg);
			break;
		case 'p':
			set_number(&o->poll_us, "poll-us", optarg);
			break;
		case 'l':
			set_number(&o->limit_us, "limit-us", optarg);
			break;
		case 'L':
			set_number(&o->lost_us, "lost-us", optarg);
			break;
		case 'P':
			set_number(&pid, "pid", optarg);
			break;
		case 'd':
			o->seed = fe_opt_number("seed", optarg, 0, UINT64_MAX);
			break;
		case 'n':
			o->net.lenient = true;
			break;
		case 'H':
			o->histogram = true;
			break;
		default:
			fputs(usage, id == 'h' ? stdout : stderr);
			exit(id == 'h' ? 0 : 2);
		}
	}
	if (optind < argc || o->net.path == NULL || o->iface == NULL) {
		fputs(usage, stderr);
		exit(2);
	}
	o->pid = (int)pid;
}

int
main(int argc, char **argv)
{
	struct wk_opts o = {
		.net = {.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
				    FE_BIT(VIRTIO_RING_F_EVENT_IDX),
			.tx_buf_bytes = 2048,
			.rx_buf_bytes = 2048},
		.seed = 1,
		.rounds = 10000,
		.poll_us = 50,
		.limit_us = 10000,
		.lost_us = 2000000,
	};
	const char *mode_list = NULL, *case_list = NULL;

	parse(&o, &mode_list, &case_list, argc, argv);
	return run_all(&o, mode_list, case_list);
}
