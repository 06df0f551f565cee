/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a CPU; see fe_sched.h. */
#include "fe_sched.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
watch(struct fe_sched *s, const char *tasks)
{
	DIR *dir = opendir(tasks);
	struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		char path[512];
		int fd;

		if (e->d_name[0] == '.' || s->n == FE_SCHED_THREADS_MAX)
			continue;
		snprintf(path, sizeof(path), "%s/%s/schedstat", tasks, e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			s->fds[s->n++] = fd;
	}
	if (dir != NULL)
		closedir(dir);
}

void
fe_sched_open(struct fe_sched *s, int pid)
{
	char path[64];

	memset(s, 0, sizeof(*s));
	s->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	watch(s, "/proc/self/task");
	s->n_own = s->n;
	if (pid > 0) {
		snprintf(path, sizeof(path), "/proc/%d/task", pid);
		watch(s, path);
	}
	fe_sched_mark(s);
}

void
fe_sched_close(struct fe_sched *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		close(s->fds[i]);
	if (s->stat_fd >= 0)
		close(s->stat_fd);
	memset(s, 0, sizeof(*s));
	s->stat_fd = -1;
}

/* The number-th field of the file's first line, names counted; 0 if there is none. */
static uint64_t
field(int fd, uint32_t number)
{
	char buf[256];
	ssize_t n = pread(fd, buf, sizeof(buf) - 1, 0);
	char *p = buf;

	if (n <= 0)
		return 0;
	buf[n] = '\0';
	while (number-- > 0) {
		p += strcspn(p, " \n");
		p += strspn(p, " ");
	}
	return strtoull(p, NULL, 10);
}

/* Time on CPU, time of waiting, slices. */
static uint64_t
waited(const struct fe_sched *s, uint32_t i)
{
	return field(s->fds[i], 1);
}

void
fe_sched_mark(struct fe_sched *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		s->waited_ns[i] = waited(s, i);
	/* cpu user nice system idle iowait irq softirq steal */
	s->steal = field(s->stat_fd, 8);
}

uint64_t
fe_sched_waited_ns(struct fe_sched *s)
{
	uint64_t ticks = field(s->stat_fd, 8) - s->steal, own = 0, other = 0;

	/* One thread of each side takes part in an exchange; others may wait all the while. */
	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t ns = waited(s, i) - s->waited_ns[i];
		uint64_t *most = i < s->n_own ? &own : &other;

		*most = ns > *most ? ns : *most;
	}
	return own + other + ticks * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
}
