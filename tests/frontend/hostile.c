/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-hostile: hostile front ends, one row after the other (see hostile.h).
 *
 * Prints one line per row and layout, and "N passed, N failed, N skipped" at the end; exit
 * status 0 only if all went as it must.
 */
#include "hostile.h"

#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THIRD_MS 1000

/*
 * A row that fails while a thread of either side waited so long for a CPU is run again, so
 * often. What is wrong fails each time.
 */
#define EXCUSE_NS 200000000
#define ATTEMPTS  3

static const struct ho_case *const tables[] = {
	ho_msg_cases, ho_conn_cases, ho_mem_cases, ho_fd_cases, ho_ring_cases, ho_flood_cases};

static const char usage[] =
	"usage: fe-hostile --socket PATH --iface TAP --pid N [options]\n"
	"  --pid N       process of the back end\n"
	"  --second PATH --second-iface TAP  a device whose traffic must not pause meanwhile\n"
	"  --third PATH  a device that must answer messages within a second meanwhile\n"
	"  --case GLOB   only rows of such names; may be given several times\n"
	"  --list        print the rows\n"
	"  --split --packed  only that ring layout\n"
	"  --gap-ms N    longest pause of the second device (50)\n"
	"  --limit-ms N  limit for each frame that is awaited (3000)\n"
	"  --scale N     percent of the full rounds of rows that repeat something (100)\n"
	"  --seed N      of contents (1)\n";

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'},
	{"iface", required_argument, NULL, 'i'},
	{"second", required_argument, NULL, 'S'},
	{"second-iface", required_argument, NULL, 'I'},
	{"third", required_argument, NULL, 't'},
	{"case", required_argument, NULL, 'c'},
	{"list", no_argument, NULL, 'l'},
	{"split", no_argument, NULL, '1'},
	{"packed", no_argument, NULL, '2'},
	{"gap-ms", required_argument, NULL, 'g'},
	{"limit-ms", required_argument, NULL, 'u'},
	{"scale", required_argument, NULL, 'x'},
	{"pid", required_argument, NULL, 'P'},
	{"seed", required_argument, NULL, 'd'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

#define GLOBS_MAX 32

struct selection {
	const char *glob[GLOBS_MAX];
	uint32_t n;
	bool split, packed;
};

struct counts {
	uint32_t passed, failed, skipped;
};

/* The device that nobody touches answers while this one is being attacked. */
static int
check_third(struct ho_run *run)
{
	uint64_t features = 0, start = fe_now_us();
	struct fe_conn c;
	int rc;

	if (run->opts->third == NULL)
		return 0;
	rc = fe_connect(&c, run->opts->third, THIRD_MS);
	if (rc == 0)
		rc = fe_get_features(&c, &features);
	fe_conn_close(&c);
	if (rc != 0 || features == 0 || fe_now_us() - start > THIRD_MS * 1000)
		return fe_fault(&run->fault, "another device does not answer: %s", strerror(-rc));
	return 0;
}

static int
check_alive(struct ho_run *run, struct rg_second *second)
{
	if (!ho_process_lives(run))
		return fe_fault(&run->fault, "the back end has died");
	if (ho_is_closed(run) || run->c->end == HO_LEAVE) {
		if (ho_reopen(run) != 0)
			return -EPROTO;
	} else if (ho_ping(run) != 0) {
		return -EPROTO;
	}
	if (check_third(run) != 0)
		return -EPROTO;
	return second == NULL ? 0 : rg_second_check(second, &run->fault);
}

static int
check_end(struct ho_run *run)
{
	bool closed = ho_is_closed(run);

	if (run->c->end == HO_OPEN && closed)
		return fe_fault(&run->fault, "the connection was closed");
	if (run->c->end == HO_CLOSED && !closed &&
		fe_wait_closed(&run->net->conn, run->opts->second.used_ms) != 0)
		return fe_fault(&run->fault, "the connection was not closed");
	return 0;
}

static int
run_row(struct ho_run *run, struct rg_second *second)
{
	struct fe_fault ignored = {""};
	int rc = ho_reopen(run);

	/* What was before this row is not its fault. */
	if (rc == 0 && second != NULL)
		rg_second_check(second, &ignored);
	if (rc == 0)
		rc = run->c->run(run);
	if (rc == 0)
		rc = check_end(run);
	return rc == 0 ? check_alive(run, second) : rc;
}

/* One that failed does not come back by itself. */
static int
renew_second(const struct ho_run *run, struct rg_second **second)
{
	if (run->opts->second.second == NULL)
		return 0;
	rg_second_stop(*second);
	*second = rg_second_start(&run->opts->second);
	return *second == NULL ? -EPROTO : 0;
}

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* One row in one layout; 1 passed, 0 skipped, -1 failed. */
static int
run_case(struct ho_run *run, struct rg_second **second)
{
	int rc = -1;

	for (int attempt = 1; attempt <= ATTEMPTS && rc < 0; attempt++) {
		uint64_t start = fe_now_us(), waited;
		struct fe_sched sched;

		memset(&run->fault, 0, sizeof(run->fault));
		fe_sched_open(&sched, run->opts->second.pid);
		fe_sched_mark(&sched);
		rc = run_row(run, *second);
		/* A thread that has ended counts as having waited all the time. */
		waited = min_u64(fe_sched_waited_ns(&sched), (fe_now_us() - start) * 1000);
		fe_sched_close(&sched);
		fe_net_close(run->net);
		if (rc == -ENOTSUP)
			return 0;
		printf("%-4s %-26s %-6s %6.2f s  %s%s%s\n", rc == 0 ? "ok" : "FAIL", run->c->name,
			run->packed ? "packed" : "split", (double)(fe_now_us() - start) / 1e6,
			run->c->what, rc == 0 ? "" : ": ", run->fault.text);
		fflush(stdout);
		if (rc == 0 || !ho_process_lives(run) || waited < EXCUSE_NS)
			break;
		printf("     waited %.0f ms for a CPU\n", (double)waited / 1e6);
		if (renew_second(run, second) != 0)
			break;
	}
	memset(&run->fault, 0, sizeof(run->fault));
	return rc == 0 ? 1 : -1;
}

static bool
chosen(const struct selection *sel, const char *name)
{
	if (sel->n == 0)
		return true;
	for (uint32_t i = 0; i < sel->n; i++)
		if (fnmatch(sel->glob[i], name, 0) == 0)
			return true;
	return false;
}

static void
run_table(struct ho_run *run, const struct ho_case *table, const struct selection *sel,
	struct rg_second **second, struct counts *n)
{
	for (const struct ho_case *c = table; c->name != NULL; c++) {
		if (!chosen(sel, c->name))
			continue;
		run->c = c;
		for (int packed = 0; packed < 2; packed++) {
			int rc;

			if (!(packed ? sel->packed && !(c->flags & HO_ONE) : sel->split))
				continue;
			run->packed = packed;
			rc = run_case(run, second);
			n->passed += rc > 0;
			n->failed += rc < 0;
			n->skipped += rc == 0;
			if (!ho_process_lives(run))
				return;
		}
	}
}

static int
run_all(struct ho_run *run, const struct selection *sel)
{
	struct rg_second *second = NULL;
	struct counts n = {0, 0, 0};

	if (run->opts->second.second != NULL) {
		second = rg_second_start(&run->opts->second);
		if (second == NULL) {
			fprintf(stderr, "fe-hostile: the second device does not work\n");
			return 2;
		}
	}
	for (size_t t = 0; t < FE_ARRAY_SIZE(tables) && ho_process_lives(run); t++)
		run_table(run, tables[t], sel, &second, &n);
	if (!ho_process_lives(run)) {
		printf("FAIL the back end has died, the rest was not run\n");
		n.failed++;
	}
	rg_second_stop(second);
	printf("%u passed, %u failed, %u skipped\n", n.passed, n.failed, n.skipped);
	return n.failed == 0 && n.passed > 0 ? 0 : 1;
}

static int
list_rows(void)
{
	for (size_t t = 0; t < FE_ARRAY_SIZE(tables); t++)
		for (const struct ho_case *c = tables[t]; c->name != NULL; c++)
			printf("%-26s %s\n", c->name, c->what);
	return 0;
}

static void
set_option(struct ho_opts *o, struct selection *sel, int id, const char *arg)
{
	switch (id) {
	case 's':
		o->second.net.path = arg;
		break;
	case 'i':
		o->second.iface = arg;
		break;
	case 'S':
		o->second.second = arg;
		break;
	case 'I':
		o->second.second_iface = arg;
		break;
	case 't':
		o->third = arg;
		break;
	case 'c':
		if (sel->n < GLOBS_MAX)
			sel->glob[sel->n++] = arg;
		break;
	case '1':
		sel->packed = false;
		break;
	case '2':
		sel->split = false;
		break;
	case 'g':
		o->second.gap_ms = (uint32_t)fe_opt_number("gap-ms", arg, 1, 60000);
		break;
	case 'u':
		o->second.used_ms = (uint32_t)fe_opt_number("limit-ms", arg, 1, 60000);
		break;
	case 'x':
		o->scale = (uint32_t)fe_opt_number("scale", arg, 1, 1000);
		break;
	case 'P':
		o->second.pid = (int)fe_opt_number("pid", arg, 1, INT32_MAX);
		break;
	case 'd':
		o->second.seed = fe_opt_number("seed", arg, 0, UINT64_MAX);
		break;
	case 'l':
		exit(list_rows());
	default:
		fputs(usage, id == 'h' ? stdout : stderr);
		exit(id == 'h' ? 0 : 2);
	}
}

int
main(int argc, char **argv)
{
	struct ho_opts o = {
		.second = {.net = {.ack = true,
				   .features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
					       FE_BIT(VIRTIO_RING_F_INDIRECT_DESC),
				   .tx_bufs = 64,
				   .rx_bufs = 64,
				   .tx_buf_bytes = 2048,
				   .rx_buf_bytes = 2048,
				   .extra_bytes = 1 << 20},
			.seed = 1,
			.gap_ms = 50,
			.used_ms = 3000},
		.scale = 100,
	};
	struct selection sel = {.split = true, .packed = true};
	static struct fe_net net;
	struct fe_host host;
	struct ho_run run = {.opts = &o, .net = &net, .host = &host};
	int id, rc = 2;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(&o, &sel, id, optarg);
	if (optind < argc || o.second.net.path == NULL || o.second.iface == NULL ||
		o.second.pid == 0 || (o.second.second == NULL) != (o.second.second_iface == NULL)) {
		fputs(usage, stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	fe_rng_seed(&run.rng, o.second.seed);
	run.buf = malloc(FE_BUF_MAX);
	if (fe_host_open(&host, o.second.iface, 5000) != 0 || run.buf == NULL ||
		fe_stream_init(&run.to_host, 1, o.second.seed) != 0 ||
		fe_stream_init(&run.to_guest, 2, o.second.seed) != 0)
		fprintf(stderr, "fe-hostile: cannot use %s\n", o.second.iface);
	else
		rc = run_all(&run, &sel);
	fe_stream_free(&run.to_host);
	fe_stream_free(&run.to_guest);
	fe_host_close(&host);
	free(run.buf);
	return rc;
}
