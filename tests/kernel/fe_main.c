// SPDX-License-Identifier: BSD-3-Clause
/* Command line of the test front end of the kernel rig. */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fe.h"

static const char usage[] =
	"usage: fe -m echo|flood|paced|bounce|hang|pair [-i DEV] [-o PEER] [-s SOCKET] [-p] [-e]\n"
	"          [-r RING] [-t WINDOW_US] [-w FLIGHT] [-b FRAME_BYTES] [-d SECONDS]\n"
	"          [-n ROUNDS] [-c CPU] [-v VHOST_CPU]\n"
	"  -s  vhost-user socket of a back end that serves DEV; else /dev/vhost-net\n"
	"  -p  the back end is a packet socket on DEV, the source sends to PEER\n";

uint64_t
fe_now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

int
fe_pin_self(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static unsigned
num(const char *s)
{
	char *end;
	unsigned long v = strtoul(s, &end, 0);

	if (*end || end == s || v > 1u << 30) {
		fprintf(stderr, "fe: \"%s\" is not a number\n", s);
		exit(2);
	}
	return (unsigned)v;
}

static void
parse(struct fe_opts *o, int argc, char **argv)
{
	int c;

	*o = (struct fe_opts){.dev = "tapfe",
		.ring = 256,
		.flight = 128,
		.frame_bytes = 60,
		.seconds = 5,
		.rounds = 12,
		.cpu = 0,
		.vhost_cpu = 1};
	while ((c = getopt(argc, argv, "m:i:o:s:per:t:w:b:d:n:c:v:")) != -1) {
		switch (c) {
		case 'm':
			o->mode = optarg;
			break;
		case 'i':
			o->dev = optarg;
			break;
		case 'o':
			o->peer = optarg;
			break;
		case 's':
			o->socket = optarg;
			break;
		case 'p':
			o->packet = true;
			break;
		case 'e':
			o->event_idx = true;
			break;
		case 'r':
			o->ring = num(optarg);
			break;
		case 't':
			o->window_us = num(optarg);
			break;
		case 'w':
			o->flight = num(optarg);
			break;
		case 'b':
			o->frame_bytes = num(optarg);
			break;
		case 'd':
			o->seconds = num(optarg);
			break;
		case 'n':
			o->rounds = num(optarg);
			break;
		case 'c':
			o->cpu = (int)num(optarg);
			break;
		case 'v':
			o->vhost_cpu = (int)num(optarg);
			break;
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (!o->mode || !o->ring || o->ring > FE_RING_MAX || (o->ring & (o->ring - 1)) ||
		o->frame_bytes < 60 || o->frame_bytes > FE_BUF_BYTES - FE_HDR_BYTES) {
		fputs(usage, stderr);
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	static struct fe fe;
	int r;

	parse(&fe.o, argc, argv);
	fe.dev_fd = fe.back_fd = fe.src_fd = -1;
	if (fe_pin_self(fe.o.cpu)) {
		fprintf(stderr, "fe: cpu %d: %s\n", fe.o.cpu, strerror(errno));
		return 1;
	}
	if (!strcmp(fe.o.mode, "hang"))
		return fe_run_hang(&fe);
	if (!strcmp(fe.o.mode, "pair"))
		return fe_run_pair(&fe);
	if (!strcmp(fe.o.mode, "bounce"))
		return fe_run_bounce(&fe);
	r = fe_mem_init(&fe);
	if (!r && !fe.o.socket)
		r = fe_kernel_open(&fe) ? -1 : fe_kernel_pin_worker(&fe);
	if (r)
		return 1;
	if (!strcmp(fe.o.mode, "paced"))
		return fe_run_paced(&fe);
	if (!strcmp(fe.o.mode, "echo") || !strcmp(fe.o.mode, "flood"))
		return fe_run_traffic(&fe);
	fputs(usage, stderr);
	return 2;
}
