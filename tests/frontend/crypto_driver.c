/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-crypto: a virtio-crypto driver in user space. Checks a device's answers, breaks its
 * rules, or measures how fast sessions are made (crypto_bench.c).
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto_fe.h"

static const char usage[] =
	"usage: fe-crypto --socket S [--packed] [--event-idx] ACTION\n"
	"  --vectors FILE   known answers, a session and a request a line (crypto_vectors.c)\n"
	"  --rsa FILE       RSA sessions and requests with their answers (crypto_rsa.c)\n"
	"  --hostile S2     requests that break rules; S2: another device\n"
	"  --bench MODE     create and destroy sessions; MODE: busy or wait\n"
	"  --workers N      threads that do so (1..64), default 1\n"
	"  --seconds N      for so long, default 2\n"
	"  --config         print the device's configuration\n"
	"  --seed N         of where data is cut\n";

struct options {
	struct cfe_cfg cfg;
	const char *vectors, *rsa, *hostile, *bench;
	bool config;
	uint64_t seed;
	struct cfe_bench how;
};

static void
parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {{"socket", 1, NULL, 's'}, {"packed", 0, NULL, 'p'},
		{"event-idx", 0, NULL, 'e'}, {"vectors", 1, NULL, 'v'}, {"hostile", 1, NULL, 'h'},
		{"bench", 1, NULL, 'b'}, {"workers", 1, NULL, 'w'}, {"seconds", 1, NULL, 't'},
		{"config", 0, NULL, 'c'}, {"seed", 1, NULL, 'x'}, {"help", 0, NULL, '?'},
		{"rsa", 1, NULL, 'r'}, {NULL, 0, NULL, 0}};
	static const char *const modes[] = {"busy", "wait", NULL};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			o->cfg.path = optarg;
			break;
		case 'p':
			o->cfg.packed = true;
			break;
		case 'e':
			o->cfg.event_idx = true;
			break;
		case 'v':
			o->vectors = optarg;
			break;
		case 'r':
			o->rsa = optarg;
			break;
		case 'h':
			o->hostile = optarg;
			break;
		case 'b':
			o->bench = optarg;
			o->how.wait = fe_opt_choice("--bench", optarg, modes) == 1;
			break;
		case 'w':
			o->how.workers = (unsigned int)fe_opt_number("--workers", optarg, 1, 64);
			break;
		case 't':
			o->how.seconds = (unsigned int)fe_opt_number("--seconds", optarg, 1, 60);
			break;
		case 'c':
			o->config = true;
			break;
		case 'x':
			o->seed = fe_opt_number("--seed", optarg, 0, UINT64_MAX);
			break;
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (o->cfg.path == NULL) {
		fputs(usage, stderr);
		exit(2);
	}
}

static void
print_config(const struct virtio_crypto_config *config)
{
	printf("config status %u dataqueues %u services 0x%x ciphers 0x%x hashes 0x%x macs 0x%x "
	       "aeads 0x%x akciphers 0x%x max_key %u max_auth_key %u max_size %llu\n",
		config->status, config->max_dataqueues, config->crypto_services,
		config->cipher_algo_l, config->hash_algo, config->mac_algo_l, config->aead_algo,
		config->akcipher_algo, config->max_cipher_key_len, config->max_auth_key_len,
		(unsigned long long)config->max_size);
}

static int
run_hostile(struct cfe *c, const struct options *o)
{
	struct cfe_cfg cfg = o->cfg;
	struct cfe other;
	int failed = 1;

	cfg.path = o->hostile;
	if (cfe_open(&other, &cfg) == 0)
		failed = cfe_hostile(c, &other);
	else
		fprintf(stderr, "fe-crypto: %s\n", other.fault.text);
	cfe_close(&other);
	return failed;
}

int
main(int argc, char **argv)
{
	struct options o = {.cfg = {.ring_size = 256, .buffer_bytes = 4 << 20, .timeout_ms = 10000},
		.how = {.workers = 1, .seconds = 2}};
	struct cfe c;
	int failed = 0;

	parse(argc, argv, &o);
	if (cfe_open(&c, &o.cfg) != 0) {
		fprintf(stderr, "fe-crypto: %s\n", c.fault.text);
		return 2;
	}
	if (o.config)
		print_config(&c.config);
	if (o.vectors != NULL)
		failed += cfe_vectors(&c, o.vectors, o.seed);
	if (o.rsa != NULL)
		failed += cfe_rsa(&c, o.rsa, o.seed);
	if (o.hostile != NULL)
		failed += run_hostile(&c, &o);
	if (o.bench != NULL)
		failed += cfe_bench(&c, &o.how);
	if (c.fault.text[0] != '\0')
		fprintf(stderr, "fe-crypto: %s\n", c.fault.text);
	printf("RESULT fe-crypto %s: %d failed\n", failed == 0 ? "PASS" : "FAIL", failed);
	cfe_close(&c);
	return failed != 0;
}
