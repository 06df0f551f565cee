// SPDX-License-Identifier: BSD-3-Clause
/*
 * Drives a cipher of the kernel through AF_ALG.
 *
 *   alg rekey DRIVER WORKERS SECONDS   keys set per second and guest CPU per key; each
 *                                      makes four requests on the control queue
 *   alg crypt DRIVER REFERENCE         both encrypt and decrypt the same, bytes compared
 *   alg setkey DRIVER                  one key: the error and how long it took
 *   alg calib                          us that fixed work takes with all CPUs at it
 *   alg twice DRIVER                   a key, then for each line: k sets a key, e encrypts
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_alg.h>

#define KEY_BYTES   16
#define BLOCK_BYTES 16
#define DATA_MAX    16384
#define WORKERS_MAX 64
/* Some 100 ms of an emulated CPU: many of its timer ticks, or where it starts decides. */
#define CALIB_LOOPS 20000000

static double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int
open_alg(const char *driver)
{
	struct sockaddr_alg sa = {.salg_family = AF_ALG};
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf((char *)sa.salg_type, sizeof(sa.salg_type), "skcipher");
	snprintf((char *)sa.salg_name, sizeof(sa.salg_name), "%s", driver);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa))) {
		fprintf(stderr, "alg: %s: %s\n", driver, strerror(errno));
		exit(1);
	}
	return fd;
}

static int
set_key(int fd, unsigned n)
{
	unsigned char key[KEY_BYTES];

	for (unsigned i = 0; i < KEY_BYTES; i++)
		key[i] = (unsigned char)(n * 13 + i);
	return setsockopt(fd, SOL_ALG, ALG_SET_KEY, key, sizeof(key)) ? -errno : 0;
}

/* One operation with an IV of n; the data may lie in several parts. */
static int
run_op(int op_fd, unsigned op, unsigned n, struct iovec *in, size_t parts, void *out, size_t bytes)
{
	char buf[CMSG_SPACE(sizeof(unsigned)) + CMSG_SPACE(sizeof(struct af_alg_iv) + BLOCK_BYTES)];
	struct msghdr msg = {.msg_iov = in,
		.msg_iovlen = parts,
		.msg_control = buf,
		.msg_controllen = sizeof(buf)};
	struct af_alg_iv *iv;
	struct cmsghdr *c;
	ssize_t r;

	memset(buf, 0, sizeof(buf));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_ALG;
	c->cmsg_type = ALG_SET_OP;
	c->cmsg_len = CMSG_LEN(sizeof(unsigned));
	memcpy(CMSG_DATA(c), &op, sizeof(op));
	c = CMSG_NXTHDR(&msg, c);
	c->cmsg_level = SOL_ALG;
	c->cmsg_type = ALG_SET_IV;
	c->cmsg_len = CMSG_LEN(sizeof(*iv) + BLOCK_BYTES);
	iv = (void *)CMSG_DATA(c);
	iv->ivlen = BLOCK_BYTES;
	memset(iv->iv, (int)n, BLOCK_BYTES);
	r = sendmsg(op_fd, &msg, 0);
	if (r >= 0)
		r = read(op_fd, out, bytes);
	if (r < 0)
		return -errno;
	return (size_t)r == bytes ? 0 : -EIO;
}

/* Busy time of all CPUs in s, interrupts included. */
static double
cpu_busy_s(void)
{
	unsigned long long t[7] = {0};
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
			  &t[4], &t[5], &t[6]) != 7)
		return 0;
	fclose(f);
	return (double)(t[0] + t[1] + t[2] + t[5] + t[6]) / (double)sysconf(_SC_CLK_TCK);
}

static int
do_rekey(const char *driver, unsigned workers, double seconds)
{
	unsigned long *count = mmap(NULL, WORKERS_MAX * sizeof(*count), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double start, busy, stop, took;
	unsigned long all = 0;
	int status, bad = 0;

	if (count == MAP_FAILED || !workers || workers > WORKERS_MAX)
		return 2;
	start = now_s();
	busy = cpu_busy_s();
	stop = start + seconds;
	for (unsigned w = 0; w < workers; w++) {
		if (fork())
			continue;
		for (int fd = open_alg(driver); now_s() < stop; count[w]++)
			if (set_key(fd, w))
				_exit(1);
		_exit(0);
	}
	for (unsigned w = 0; w < workers; w++)
		bad += wait(&status) < 0 || status;
	took = now_s() - start;
	busy = cpu_busy_s() - busy;
	for (unsigned w = 0; w < workers; w++)
		all += count[w];
	printf("workers=%u rekey=%lu per_s=%.0f cpu_ms_each=%.3f failed=%d\n", workers, all,
		(double)all / took, all ? busy * 1000 / (double)all : 0.0, bad);
	return bad || !all;
}

static int
do_crypt(const char *driver, const char *reference)
{
	static unsigned char plain[DATA_MAX], mine[DATA_MAX], theirs[DATA_MAX], back[DATA_MAX];
	int fd = open_alg(driver), ref = open_alg(reference);
	unsigned long done = 0;

	for (unsigned n = 1; n <= 24; n++) {
		size_t bytes = n < 20 ? n * BLOCK_BYTES : (size_t)(n - 19) * 3072 + 16;
		size_t cut = bytes / 3; /* parts that end within a block */
		struct iovec two[] = {{plain, cut}, {plain + cut, bytes - cut}};
		struct iovec one = {mine, bytes};
		int a, b;

		for (size_t i = 0; i < bytes; i++)
			plain[i] = (unsigned char)(i * n + (i >> 8));
		if (set_key(fd, n) || set_key(ref, n))
			return 1;
		a = accept(fd, NULL, NULL);
		b = accept(ref, NULL, NULL);
		if (run_op(a, ALG_OP_ENCRYPT, n, two, 2, mine, bytes) ||
			run_op(b, ALG_OP_ENCRYPT, n, two, 2, theirs, bytes) ||
			run_op(a, ALG_OP_DECRYPT, n, &one, 1, back, bytes) ||
			memcmp(mine, theirs, bytes) || memcmp(back, plain, bytes)) {
			fprintf(stderr, "alg: %zu bytes: not as %s does it\n", bytes, reference);
			return 1;
		}
		close(a);
		close(b);
		done += bytes;
	}
	printf("crypt bytes=%lu ok\n", done);
	return 0;
}

static int
do_setkey(const char *driver)
{
	int fd = open_alg(driver);
	double start = now_s();
	int r = set_key(fd, 1);

	printf("setkey error=%d ms=%.0f\n", -r, (now_s() - start) * 1000);
	return 0;
}

static int
do_twice(const char *driver)
{
	unsigned char block[BLOCK_BYTES] = {0}, out[BLOCK_BYTES];
	struct iovec iov = {block, sizeof(block)};
	int fd = open_alg(driver), op, r;
	char line[8];

	if (set_key(fd, 1))
		return 1;
	op = accept(fd, NULL, NULL);
	printf("twice keyed\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		double start = now_s();

		if (line[0] == 'k') {
			/* A key that is in use cannot be changed. */
			close(op);
			r = set_key(fd, 2);
			op = accept(fd, NULL, NULL);
		} else {
			r = run_op(op, ALG_OP_ENCRYPT, 1, &iov, 1, out, sizeof(out));
		}
		printf("twice %c error=%d ms=%.0f\n", line[0], -r, (now_s() - start) * 1000);
		fflush(stdout);
	}
	return 0;
}

static int
do_calib(void)
{
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	volatile unsigned n = 0;
	double start = now_s();

	for (unsigned i = 0; i < cpus; i++) {
		cpu_set_t set;

		if (fork())
			continue;
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		sched_setaffinity(0, sizeof(set), &set);
		for (unsigned k = 0; k < CALIB_LOOPS; k++)
			n += k;
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	printf("%.0f\n", (now_s() - start) * 1e6);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "rekey"))
		return do_rekey(argv[2], (unsigned)atoi(argv[3]), atof(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "crypt"))
		return do_crypt(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "setkey"))
		return do_setkey(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "calib"))
		return do_calib();
	if (argc == 3 && !strcmp(argv[1], "twice"))
		return do_twice(argv[2]);
	fprintf(stderr, "usage: alg rekey|crypt|setkey|calib|twice ... (see alg.c)\n");
	return 2;
}
