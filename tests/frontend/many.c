/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-many: many devices in one process, to see what the idle ones cost the back end and the
 * busy one; and devices that keep it waiting.
 *
 * Prints lines with figures, which the caller judges, and one result line; exit status 0 only
 * if every frame was served.
 */
#include "many.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile_proc.h"

static const char usage[] = "usage: fe-many --socket PREFIX --pid N --case NAME [options]\n"
			    "  --socket PREFIX  sockets of the devices, followed by 0, 1, ...\n"
			    "  --pid N          process of the back end\n"
			    "  --case NAME      idle, busy, starved, mute, sparse\n"
			    "  --iface TAP      of device 0 (starved)\n"
			    "  --devices N      1..256, busy: 2..256 (64)\n"
			    "  --rounds N       measurements (5)\n"
			    "  --slice-ms N     length of each (500)\n"
			    "  --limit-us N     busy: an idle device served later is late (10000)\n"
			    "  --packed         packed rings\n";

static const struct option options[] = {
	{"socket", required_argument, NULL, 's'},
	{"pid", required_argument, NULL, 'P'},
	{"case", required_argument, NULL, 'c'},
	{"iface", required_argument, NULL, 'i'},
	{"devices", required_argument, NULL, 'd'},
	{"rounds", required_argument, NULL, 'r'},
	{"slice-ms", required_argument, NULL, 't'},
	{"limit-us", required_argument, NULL, 'l'},
	{"packed", no_argument, NULL, 'p'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

int
many_connect(struct many *m, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i < last; i++) {
		struct fe_net_cfg cfg = {
			.path = m->paths[i],
			.features = FE_NET_BASE | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
				    FE_BIT(VIRTIO_RING_F_EVENT_IDX),
			.need_features = m->packed ? FE_BIT(VIRTIO_F_RING_PACKED) : 0,
			.tx_buf_bytes = 256,
			.rx_buf_bytes = 2048,
			.rx_bufs = 64,
			.timeout_ms = 20000,
		};

		if (m->open[i])
			continue;
		m->open[i] = true;
		if (fe_net_open(&m->nets[i], &cfg) != 0 || fe_net_start(&m->nets[i]) != 0)
			return fe_fault(
				&m->fault, "%s: %s", m->paths[i], fe_net_fault(&m->nets[i]));
		fe_ring_disarm(&m->nets[i].tx[0].ring);
	}
	return 0;
}

void
many_disconnect(struct many *m, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i < last; i++)
		if (m->open[i]) {
			fe_net_close(&m->nets[i]);
			m->open[i] = false;
		}
}

double
many_cpu_percent(const struct many *m, uint32_t ms)
{
	struct ho_proc before, after;
	uint64_t start = fe_now_us();

	if (ho_proc_read(m->pid, &before) != 0)
		return -1;
	usleep(ms * 1000);
	if (ho_proc_read(m->pid, &after) != 0)
		return -1;
	return (double)(after.cpu_ms - before.cpu_ms) * 1e5 / (double)(fe_now_us() - start);
}

static const struct many_case *
find_case(const char *name)
{
	const struct many_case *const tables[] = {many_load_cases, many_wait_cases};

	for (size_t t = 0; t < FE_ARRAY_SIZE(tables); t++)
		for (const struct many_case *c = tables[t]; c->name != NULL; c++)
			if (strcmp(c->name, name) == 0)
				return c;
	return NULL;
}

static void
bad_usage(int status)
{
	fputs(usage, status == 0 ? stdout : stderr);
	exit(status);
}

static const struct many_case *
parse(struct many *m, int argc, char **argv)
{
	const struct many_case *c = NULL;
	int id;

	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (id) {
		case 's':
			m->prefix = optarg;
			break;
		case 'P':
			m->pid = (int)fe_opt_number("pid", optarg, 1, INT32_MAX);
			break;
		case 'c':
			c = find_case(optarg);
			break;
		case 'i':
			m->iface = optarg;
			break;
		case 'd':
			m->devices = (uint32_t)fe_opt_number("devices", optarg, 1, MANY_MAX);
			break;
		case 'r':
			m->rounds = (uint32_t)fe_opt_number("rounds", optarg, 1, 1000);
			break;
		case 't':
			m->slice_ms = (uint32_t)fe_opt_number("slice-ms", optarg, 1, 60000);
			break;
		case 'l':
			m->limit_us = (uint32_t)fe_opt_number("limit-us", optarg, 1, 10000000);
			break;
		case 'p':
			m->packed = true;
			break;
		default:
			bad_usage(id == 'h' ? 0 : 2);
		}
	}
	if (optind < argc || m->prefix == NULL || m->pid == 0 || c == NULL ||
		(strcmp(c->name, "starved") == 0 && m->iface == NULL) ||
		(strcmp(c->name, "busy") == 0 && m->devices < 2))
		bad_usage(2);
	return c;
}

int
main(int argc, char **argv)
{
	static struct many m = {.devices = 64, .rounds = 5, .slice_ms = 500, .limit_us = 10000};
	const struct many_case *c = parse(&m, argc, argv);
	int rc;

	setvbuf(stdout, NULL, _IOLBF, 0);
	fe_rng_seed(&m.rng, 1);
	for (uint32_t i = 0; i < m.devices; i++)
		snprintf(m.paths[i], sizeof(m.paths[i]), "%s%u", m.prefix, i);
	memset(m.frame, 0xff, 6);
	m.frame[6] = 2;
	m.frame[12] = FE_ETHERTYPE >> 8;
	m.frame[13] = FE_ETHERTYPE & 0xff;
	rc = c->run(&m);
	many_disconnect(&m, 0, m.devices);
	printf("RESULT fe-many %s: %s%s%s\n", rc == 0 ? "PASS" : "FAIL", c->name,
		rc == 0 ? "" : ": ", m.fault.text);
	return rc == 0 ? 0 : 1;
}
