/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-rings: well-formed and malformed rings, one row after the other (see rings.h).
 *
 * Prints one line per row and layout, and one result line; exit status 0 only if every
 * expectation was met and everything was alive after each row.
 */
#include "rings.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const layout_names[RG_LAYOUTS] = {
	"split", "split+indirect", "packed", "packed+indirect"};

static const struct rg_case *const tables[] = {
	rg_tx_cases, rg_table_cases, rg_rx_cases, rg_net_cases, rg_offload_cases, rg_log_cases};

static const char usage[] =
	"usage: fe-rings --socket PATH --iface TAP [options]\n"
	"  --second PATH --second-iface TAP  a second device that has to go on meanwhile\n"
	"  --case NAME   only rows whose name begins so; may be given several times\n"
	"  --list        print the rows\n"
	"  --split --packed  only that ring layout\n"
	"  --gap-ms N    longest pause of the second device (50)\n"
	"  --used-ms N   limit for everything awaited (1000)\n"
	"  --pid N       process of the back end: has to live, and may have waited for a CPU\n"
	"  --seed N      of contents (1)\n"
	"  --lenient     accept deviations that drivers do not mind (other back ends)\n";

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'},
	{"iface", required_argument, NULL, 'i'},
	{"second", required_argument, NULL, 'S'},
	{"second-iface", required_argument, NULL, 'I'},
	{"case", required_argument, NULL, 'c'},
	{"list", no_argument, NULL, 'l'},
	{"split", no_argument, NULL, '1'},
	{"packed", no_argument, NULL, '2'},
	{"gap-ms", required_argument, NULL, 'g'},
	{"used-ms", required_argument, NULL, 'u'},
	{"pid", required_argument, NULL, 'P'},
	{"seed", required_argument, NULL, 'd'},
	{"lenient", no_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

#define NAMES_MAX 64

struct selection {
	const char *name[NAMES_MAX];
	uint32_t n;
	uint32_t layouts;
};

struct counts {
	uint32_t passed, failed, skipped;
};

/* Connects with the row's features; -ENOTSUP if the back end does not offer them. */
static int
open_device(struct rg_run *run)
{
	struct fe_net_cfg cfg = run->opts->net;
	int rc;

	cfg.features = (cfg.features | run->c->need) & ~run->c->without;
	cfg.need_features = run->c->need;
	if (run->packed)
		cfg.need_features |= FE_BIT(VIRTIO_F_RING_PACKED);
	if (run->indirect)
		cfg.need_features |= FE_BIT(VIRTIO_RING_F_INDIRECT_DESC);
	rc = fe_net_open(run->net, &cfg);
	if (rc != 0)
		return rc;
	run->slab = fe_mem_alloc(&run->net->mem, 4096, 16, FE_ALLOC_ONE_REGION);
	run->ring = run->c->queue == RG_TX ? &run->net->tx[0].ring : &run->net->rx[0].ring;
	run->n_chains = 0;
	memset(run->chain, 0, sizeof(run->chain));
	return fe_net_start(run->net);
}

/* A frame each way, on the connection as it is or on a new one. */
static int
check_alive(struct rg_run *run, bool reconnect)
{
	if (reconnect) {
		fe_net_close(run->net);
		if (open_device(run) != 0)
			return fe_fault(&run->fault, "reconnect: %s", fe_net_fault(run->net));
		fe_host_flush(run->host);
		/* A frame that the host sent to the old connection may still come. */
		fe_net_post(run->net, 0, 8, 2048, 2048, NULL);
	}
	if (rg_good_tx(run) != 0)
		return -EPROTO;
	if (reconnect) {
		struct fe_rxframe f;
		struct fe_spec spec;
		uint32_t seq = 0;
		uint64_t end = fe_now_us() + run->opts->used_ms * 1000ULL;

		fe_ring_kick(&run->net->rx[0].ring);
		if (rg_host_send(run, 200, &spec) != 0)
			return -EPROTO;
		while (fe_net_recv(run->net, 0, &f) <= 0 ||
			!fe_frame_seq(&run->to_guest, f.data, f.len, &seq) || seq != spec.seq)
			if (fe_now_us() > end || fe_net_fault(run->net)[0] != '\0')
				return fe_fault(&run->fault, "no frame reaches the guest: %s",
					fe_net_fault(run->net));
	} else if (rg_good_rx(run) != 0) {
		return -EPROTO;
	}
	if (run->opts->pid > 0 && kill(run->opts->pid, 0) != 0)
		return fe_fault(&run->fault, "the back end has died");
	if (run->second != NULL)
		return rg_second_check(run->second, &run->fault);
	return 0;
}

static int
run_row(struct rg_run *run)
{
	int rc;

	fe_host_flush(run->host);
	if (rg_good_tx(run) != 0 || rg_good_rx(run) != 0) {
		fe_fault(&run->fault, "warm-up failed");
		return -EPROTO;
	}
	rc = run->c->fill(run);
	if (rc == 0)
		rc = rg_check(run);
	return rc < 0 ? rc : check_alive(run, rc == RG_RECONNECT);
}

/* One row in one layout; 1 passed, 0 skipped, -1 failed. */
static int
run_case(
	const struct rg_opts *o, const struct rg_case *c, uint32_t layout, struct rg_second *second)
{
	static struct fe_net net;
	static struct rg_run run;
	struct fe_host host;
	int rc, open;

	memset(&run, 0, sizeof(run));
	run.opts = o;
	run.c = c;
	run.net = &net;
	run.host = &host;
	run.second = second;
	run.packed = layout >= 2;
	run.indirect = (layout & 1) != 0;
	fe_rng_seed(&run.rng, o->seed);
	open = open_device(&run);
	if (open == -ENOTSUP) {
		fe_net_close(&net);
		return 0;
	}
	run.buf = malloc(FE_BUF_MAX);
	run.expected = malloc(FE_BUF_MAX);
	host.fd = -1;
	if (open != 0)
		rc = fe_fault(&run.fault, "%s", fe_net_fault(&net));
	else if (fe_host_open(&host, o->iface, 5000) != 0 || run.buf == NULL ||
		 run.expected == NULL || fe_stream_init(&run.to_host, 1, o->seed) != 0 ||
		 fe_stream_init(&run.to_guest, 2, o->seed) != 0)
		rc = fe_fault(&run.fault, "test: cannot set up");
	else
		rc = run_row(&run);
	printf("%-4s %-26s %-15s %s%s%s\n", rc == 0 ? "ok" : "FAIL", c->name, layout_names[layout],
		c->what, rc == 0 ? "" : ": ", run.fault.text);
	fflush(stdout);
	free(run.buf);
	free(run.expected);
	fe_stream_free(&run.to_host);
	fe_stream_free(&run.to_guest);
	fe_host_close(&host);
	fe_net_close(&net);
	return rc == 0 ? 1 : -1;
}

static bool
chosen(const struct selection *sel, const char *name)
{
	if (sel->n == 0)
		return true;
	for (uint32_t i = 0; i < sel->n; i++)
		if (strncmp(name, sel->name[i], strlen(sel->name[i])) == 0)
			return true;
	return false;
}

static void
run_table(const struct rg_opts *o, const struct selection *sel, const struct rg_case *c,
	struct rg_second *second, struct counts *n)
{
	for (; c->name != NULL; c++) {
		if (!chosen(sel, c->name))
			continue;
		for (uint32_t l = 0; l < RG_LAYOUTS; l++) {
			int rc;

			if ((c->layouts & sel->layouts & 1U << l) == 0)
				continue;
			rc = run_case(o, c, l, second);
			n->passed += rc > 0;
			n->failed += rc < 0;
			n->skipped += rc == 0;
			if (o->pid > 0 && kill(o->pid, 0) != 0) {
				printf("FAIL the back end has died, the rest was not run\n");
				n->failed++;
				return;
			}
		}
	}
}

static int
run_all(const struct rg_opts *o, const struct selection *sel)
{
	struct rg_second *second = NULL;
	struct counts n = {0, 0, 0};

	if (o->second != NULL) {
		second = rg_second_start(o);
		if (second == NULL) {
			fprintf(stderr, "fe-rings: the second device does not work\n");
			return 2;
		}
	}
	for (size_t t = 0; t < FE_ARRAY_SIZE(tables); t++)
		run_table(o, sel, tables[t], second, &n);
	rg_second_stop(second);
	printf("RESULT fe-rings %s: %u passed, %u failed, %u skipped (feature not offered)\n",
		n.failed == 0 && n.passed > 0 ? "PASS" : "FAIL", n.passed, n.failed, n.skipped);
	return n.failed == 0 && n.passed > 0 ? 0 : 1;
}

static void
list_rows(void)
{
	for (size_t t = 0; t < FE_ARRAY_SIZE(tables); t++)
		for (const struct rg_case *c = tables[t]; c->name != NULL; c++)
			printf("%-26s %s\n", c->name, c->what);
}

static void
parse(struct rg_opts *o, struct selection *sel, int argc, char **argv)
{
	int id;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (id) {
		case 's':
			o->net.path = optarg;
			break;
		case 'i':
			o->iface = optarg;
			break;
		case 'S':
			o->second = optarg;
			break;
		case 'I':
			o->second_iface = optarg;
			break;
		case 'c':
			if (sel->n < NAMES_MAX)
				sel->name[sel->n++] = optarg;
			break;
		case 'l':
			list_rows();
			exit(0);
		case '1':
			sel->layouts = RG_SPLIT_DIRECT | RG_SPLIT_INDIRECT;
			break;
		case '2':
			sel->layouts = RG_PACKED_DIRECT | RG_PACKED_INDIRECT;
			break;
		case 'g':
			o->gap_ms = (uint32_t)fe_opt_number("gap-ms", optarg, 1, 60000);
			break;
		case 'u':
			o->used_ms = (uint32_t)fe_opt_number("used-ms", optarg, 1, 60000);
			break;
		case 'P':
			o->pid = (int)fe_opt_number("pid", optarg, 1, INT32_MAX);
			break;
		case 'd':
			o->seed = fe_opt_number("seed", optarg, 0, UINT64_MAX);
			break;
		case 'n':
			o->net.lenient = true;
			break;
		default:
			fputs(usage, id == 'h' ? stdout : stderr);
			exit(id == 'h' ? 0 : 2);
		}
	}
	if (optind < argc || o->net.path == NULL || o->iface == NULL ||
		(o->second == NULL) != (o->second_iface == NULL)) {
		fputs(usage, stderr);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	struct rg_opts o = {
		.net = {.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
				    FE_BIT(VIRTIO_RING_F_INDIRECT_DESC),
			.regions = 3,
			.layout = FE_MEM_ADJACENT,
			.ring_size = 1024,
			.tx_bufs = 1,
			.rx_bufs = 64,
			.tx_buf_bytes = 2048,
			.rx_buf_bytes = 2048,
			.extra_bytes = 16 << 20},
		.seed = 1,
		.gap_ms = 50,
		.used_ms = 1000,
	};
	struct selection sel = {.layouts = ~0U};

	parse(&o, &sel, argc, argv);
	return run_all(&o, &sel);
}
