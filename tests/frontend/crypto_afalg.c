/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs in a guest: drives a cipher of the kernel through AF_ALG.
 *
 *   crypto-afalg crypt DRIVER SEED COUNT    prints a CRC of COUNT results of random inputs; the
 *                                           same inputs are made by tests/system/test_crypto.py
 *   crypto-afalg rekey DRIVER WORKERS KEYS  so many processes set so many keys each
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/if_alg.h>

#define POOL_BYTES 65536
#define DATA_MAX   (POOL_BYTES / 2)
#define IV_BYTES   16

static uint8_t pool[POOL_BYTES];
static uint64_t state;

/* A linear congruential generator: few lines in any language. */
static uint32_t
next(void)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(state >> 33);
}

static uint32_t
crc32(uint32_t crc, const uint8_t *p, size_t n)
{
	static uint32_t table[256];

	for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
		table[i] = i;
		for (int k = 0; k < 8; k++)
			table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320 : table[i] >> 1;
	}
	crc = ~crc;
	while (n-- > 0)
		crc = table[(crc ^ *p++) & 255] ^ crc >> 8;
	return ~crc;
}

static int
open_cipher(const char *driver)
{
	struct sockaddr_alg sa = {.salg_family = AF_ALG, .salg_type = "skcipher"};
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf((char *)sa.salg_name, sizeof(sa.salg_name), "%s", driver);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
		fprintf(stderr, "crypto-afalg: %s: %s\n", driver, strerror(errno));
		exit(1);
	}
	return fd;
}

/* One operation, its data cut in two parts anywhere. */
static int
run(int op_fd, int op, const uint8_t *iv, const uint8_t *in, size_t cut, uint8_t *out, size_t bytes)
{
	char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct af_alg_iv) + IV_BYTES)] = {
		0};
	struct iovec parts[] = {
		{(void *)(uintptr_t)in, cut}, {(void *)(uintptr_t)(in + cut), bytes - cut}};
	struct msghdr msg = {.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	struct af_alg_iv *alg_iv;

	c->cmsg_level = SOL_ALG;
	c->cmsg_type = ALG_SET_OP;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &op, sizeof(op));
	c = CMSG_NXTHDR(&msg, c);
	c->cmsg_level = SOL_ALG;
	c->cmsg_type = ALG_SET_IV;
	c->cmsg_len = CMSG_LEN(sizeof(*alg_iv) + IV_BYTES);
	alg_iv = (struct af_alg_iv *)CMSG_DATA(c);
	alg_iv->ivlen = IV_BYTES;
	memcpy(alg_iv->iv, iv, IV_BYTES);
	if (sendmsg(op_fd, &msg, 0) != (ssize_t)bytes)
		return -1;
	return read(op_fd, out, bytes) == (ssize_t)bytes ? 0 : -1;
}

static int
crypt_many(const char *driver, uint64_t seed, unsigned long count)
{
	static uint8_t out[DATA_MAX], back[DATA_MAX];
	int fd = open_cipher(driver), op_fd = -1;
	uint32_t crc = 0;

	state = seed;
	for (size_t i = 0; i < sizeof(pool); i++)
		pool[i] = (uint8_t)(next() >> 8);
	for (unsigned long n = 0; n < count; n++) {
		unsigned int key_bytes = 16 + 8 * (next() % 3);
		const uint8_t *key = pool + next() % 4096, *iv = pool + next() % 4096;
		size_t bytes = 16 * (1 + next() % (n % 64 == 0 ? DATA_MAX / 16 : 32));
		const uint8_t *in = pool + next() % (POOL_BYTES - DATA_MAX);
		size_t cut = next() % bytes;

		if (n % 8 == 0) {
			close(op_fd);
			if (setsockopt(fd, SOL_ALG, ALG_SET_KEY, key, key_bytes) != 0)
				return 1;
			op_fd = accept(fd, NULL, NULL);
		}
		if (run(op_fd, ALG_OP_ENCRYPT, iv, in, cut, out, bytes) != 0)
			return 1;
		crc = crc32(crc, out, bytes);
		/* And the way back, from time to time. */
		if (n % 4 == 0 && (run(op_fd, ALG_OP_DECRYPT, iv, out, cut, back, bytes) != 0 ||
					  memcmp(back, in, bytes) != 0))
			return 1;
	}
	printf("crc %08x\n", crc);
	return 0;
}

static int
set_keys(const char *driver, unsigned int worker, unsigned long keys)
{
	uint8_t key[16] = {(uint8_t)worker};
	int fd = open_cipher(driver);

	for (unsigned long n = 0; n < keys; n++) {
		memcpy(key + 1, &n, sizeof(n));
		if (setsockopt(fd, SOL_ALG, ALG_SET_KEY, key, sizeof(key)) != 0)
			return 1;
	}
	return 0;
}

static int
rekey(const char *driver, unsigned int workers, unsigned long keys)
{
	int status, failed = 0;

	for (unsigned int w = 0; w < workers; w++)
		if (fork() == 0)
			_exit(set_keys(driver, w, keys));
	for (unsigned int w = 0; w < workers; w++)
		failed += wait(&status) < 0 || status != 0;
	printf("rekeyed %lu failed %d\n", workers * keys, failed);
	return failed != 0;
}

int
main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "crypt") == 0)
		return crypt_many(argv[2], strtoull(argv[3], NULL, 0), strtoul(argv[4], NULL, 0));
	if (argc == 5 && strcmp(argv[1], "rekey") == 0)
		return rekey(argv[2], (unsigned int)atoi(argv[3]), strtoul(argv[4], NULL, 0));
	fprintf(stderr, "usage: crypto-afalg crypt|rekey ... (see its source)\n");
	return 2;
}
