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
	"  --early          rings that are not set up yet (crypto_cases.c)\n"
	"  --reversed       heads in falling order\n"
	"  --latency N      create and close N sessions by messages and N by the ring\n"
	"  --pause-us N     before each of them is created, default 0\n"
	"  --bench MODE     create and destroy sessions; MODE: busy or wait\n"
	"  --workers N      threads that do so (1..64), default 1\n"
	"  --seconds N      for so long, default 2\n"
	"  --data BYTES     AES-CBC, so many bytes a request (16..65536), and how fast that is\n"
	"  --depth N        so many of them in flight (1..256), default 64\n"
	"  --ms N           for so long, default 1000\n"
	"  --config         print the device's configuration\n"
	"  --seed N         of where data is cut\n";

struct options {
	struct cfe_cfg cfg;
	const char *vectors, *rsa, *hostile, *bench;
	bool config, early, reversed;
	struct cfe_latency latency;
	uint64_t seed;
	struct cfe_bench how;
	struct cfe_data data;
};

/* Options that are numbers. */
static const struct number {
	int option;
	const char *name;
	uint32_t least, most;
	size_t at; /* of an unsigned int */
} numbers[] = {
	{'w', "workers", 1, 64, offsetof(struct options, how.workers)},
	{'t', "seconds", 1, 60, offsetof(struct options, how.seconds)},
	{'l', "latency", 1, 1000000, offsetof(struct options, latency.sessions)},
	{'D', "data", 16, 65536, offsetof(struct options, data.bytes)},
	{'q', "depth", 1, 256, offsetof(struct options, data.depth)},
	{'m', "ms", 1, 60000, offsetof(struct options, data.ms)},
	{'u', "pause-us", 0, 100000, offsetof(struct options, latency.pause_us)},
};

/* Options that are files or sockets. */
static const struct text {
	int option;
	size_t at;
} texts[] = {
	{'s', offsetof(struct options, cfg.path)},
	{'v', offsetof(struct options, vectors)},
	{'r', offsetof(struct options, rsa)},
	{'h', offsetof(struct options, hostile)},
	{'b', offsetof(struct options, bench)},
};

/* Options that are said or not. */
static const struct flag {
	int option;
	size_t at;
} flags[] = {
	{'p', offsetof(struct options, cfg.packed)},
	{'e', offsetof(struct options, cfg.event_idx)},
	{'c', offsetof(struct options, config)},
	{'y', offsetof(struct options, early)},
	{'d', offsetof(struct options, reversed)},
};

/* Store one option. Returns false if it is none. */
static bool
store(struct options *o, int option, const char *value)
{
	for (size_t i = 0; i < FE_ARRAY_SIZE(flags); i++)
		if (flags[i].option == option)
			return *(bool *)((char *)o + flags[i].at) = true;
	for (size_t i = 0; i < FE_ARRAY_SIZE(texts); i++) {
		if (texts[i].option != option)
			continue;
		*(const char **)(void *)((char *)o + texts[i].at) = value;
		return true;
	}
	for (size_t i = 0; i < FE_ARRAY_SIZE(numbers); i++) {
		const struct number *n = &numbers[i];

		if (n->option != option)
			continue;
		*(unsigned int *)(void *)((char *)o + n->at) =
			(unsigned int)fe_opt_number(n->name, value, n->least, n->most);
		return true;
	}
	if (option == 'x')
		o->seed = fe_opt_number("seed", value, 0, UINT64_MAX);
	return option == 'x';
}

static void
parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {{"socket", 1, NULL, 's'}, {"packed", 0, NULL, 'p'},
		{"event-idx", 0, NULL, 'e'}, {"vectors", 1, NULL, 'v'}, {"hostile", 1, NULL, 'h'},
		{"bench", 1, NULL, 'b'}, {"workers", 1, NULL, 'w'}, {"seconds", 1, NULL, 't'},
		{"config", 0, NULL, 'c'}, {"seed", 1, NULL, 'x'}, {"help", 0, NULL, '?'},
		{"rsa", 1, NULL, 'r'}, {"early", 0, NULL, 'y'}, {"reversed", 0, NULL, 'd'},
		{"latency", 1, NULL, 'l'}, {"pause-us", 1, NULL, 'u'}, {"data", 1, NULL, 'D'},
		{"depth", 1, NULL, 'q'}, {"ms", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
	static const char *const modes[] = {"busy", "wait", NULL};
	bool known = true;
	int option;

	while (known && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		known = store(o, option, optarg);
	if (!known || o->cfg.path == NULL) {
		fputs(usage, stderr);
		exit(2);
	}
	/* A cipher of whole blocks. */
	o->data.bytes &= ~15U;
	if (o->data.bytes > 0)
		o->cfg.buffer_bytes = 8192 + o->data.depth * (2ULL * o->data.bytes + 256);
	if (o->bench != NULL)
		o->how.wait = fe_opt_choice("bench", o->bench, modes) == 1;
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
		.how = {.workers = 1, .seconds = 2},
		.data = {.depth = 64, .ms = 1000}};
	struct cfe c;
	int failed = 0;

	parse(argc, argv, &o);
	if (o.early)
		failed += cfe_early(&o.cfg);
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
	if (o.reversed)
		failed += cfe_reversed(&c);
	if (o.latency.sessions > 0)
		failed += cfe_latency(&c, &o.latency);
	if (o.bench != NULL)
		failed += cfe_bench(&c, &o.how);
	if (o.data.bytes > 0)
		failed += cfe_data(&c, &o.data);
	if (c.fault.text[0] != '\0')
		fprintf(stderr, "fe-crypto: %s\n", c.fault.text);
	printf("RESULT fe-crypto %s: %d failed\n", failed == 0 ? "PASS" : "FAIL", failed);
	cfe_close(&c);
	return failed != 0;
}
