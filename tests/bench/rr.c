/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-rr: request and response of one byte each over TCP, one at a time. "server" answers
 * until it is told to end; "client" measures each round trip and prints percentiles.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_util.h"
#include "fe_util.h"

#define PORT       48358
#define WARM_UP_NS 200000000ULL

static void
serve(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
		bind(fd, (struct sockaddr *)at, sizeof(*at)) < 0 || listen(fd, 1) < 0)
		bn_die("listen");
	while (!bn_stop) {
		int c = accept(fd, NULL, NULL);
		char byte;

		if (c < 0)
			break;
		bn_no_delay(c);
		while (read(c, &byte, 1) == 1 && write(c, &byte, 1) == 1)
			;
		close(c);
	}
	close(fd);
}

static uint32_t
round_trip_ns(int fd)
{
	uint64_t begin = fe_now_ns();
	char byte = 'r';

	if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
		bn_die("round trip");
	return (uint32_t)(fe_now_ns() - begin);
}

static void
ask(const struct sockaddr_in *to, uint64_t ns)
{
	struct timeval limit = {.tv_sec = 5};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct bn_rtt rtt;
	uint64_t begin, end;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
		connect(fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
		bn_die("connect");
	bn_no_delay(fd);
	bn_rtt_init(&rtt);
	for (end = fe_now_ns() + WARM_UP_NS; fe_now_ns() < end;)
		round_trip_ns(fd);
	begin = fe_now_ns();
	for (end = begin + ns; fe_now_ns() < end && bn_rtt_add(&rtt, round_trip_ns(fd));)
		;
	bn_rtt_print(&rtt, fe_now_ns() - begin);
	close(fd);
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"cpu", 1, NULL, 'c'}, {"ms", 1, NULL, 't'}, {NULL, 0, NULL, 0}};
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	uint64_t ns = 1000000000;
	int c, cpu = 0;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			cpu = fe_opt_number("--cpu", optarg, 0, 1023);
			break;
		case 't':
			ns = fe_opt_number("--ms", optarg, 10, 3600000) * 1000000;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2 || inet_pton(AF_INET, argv[optind + 1], &addr.sin_addr) != 1) {
		fprintf(stderr, "usage: bench-rr [--cpu N] [--ms N] server|client ADDRESS\n");
		return 2;
	}
	bn_catch_signals();
	bn_pin(cpu);
	if (strcmp(argv[optind], "server") == 0)
		serve(&addr);
	else
		ask(&addr, ns);
	return 0;
}
