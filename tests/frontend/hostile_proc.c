/* SPDX-License-Identifier: BSD-3-Clause */
#include "hostile_proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static FILE *
open_file(int pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return fopen(path, "re");
}

static uint32_t
count_fds(int pid)
{
	char path[64];
	uint32_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (dir == NULL)
		return 0;
	for (const struct dirent *e; (e = readdir(dir)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static uint32_t
count_lines(int pid, const char *name)
{
	FILE *f = open_file(pid, name);
	uint32_t n = 0;
	int c;

	if (f == NULL)
		return 0;
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static uint64_t
read_cpu_ms(int pid)
{
	unsigned long user = 0, sys = 0;
	char line[1024], *p;
	FILE *f = open_file(pid, "stat");

	if (f == NULL)
		return 0;
	/* The name in parentheses may hold anything. */
	p = fgets(line, sizeof(line), f) == NULL ? NULL : strrchr(line, ')');
	if (p != NULL && sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
				 &user, &sys) != 2)
		user = sys = 0;
	fclose(f);
	return (user + sys) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

int
ho_proc_read(int pid, struct ho_proc *p)
{
	unsigned long pages = 0;
	FILE *f = open_file(pid, "statm");
	int got;

	memset(p, 0, sizeof(*p));
	if (f == NULL)
		return -errno;
	got = fscanf(f, "%*u %lu", &pages);
	fclose(f);
	if (got != 1)
		return -EIO;
	p->rss_kb = pages * ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
	p->fds = count_fds(pid);
	p->maps = count_lines(pid, "maps");
	p->cpu_ms = read_cpu_ms(pid);
	return p->fds == 0 || p->maps == 0 ? -EIO : 0;
}

int
ho_proc_flat(
	int pid, const struct ho_proc *before, const struct ho_slack *slack, struct fe_fault *fault)
{
	struct ho_proc now;
	int rc = ho_proc_read(pid, &now);

	if (rc != 0)
		return fe_fault(fault, "process %d: %s", pid, strerror(-rc));
	if (now.fds > before->fds + slack->fds || now.maps > before->maps + slack->maps ||
		now.rss_kb > before->rss_kb + slack->rss_kb)
		return fe_fault(fault,
			"descriptors %u -> %u, mappings %u -> %u, resident %llu -> %llu KiB",
			before->fds, now.fds, before->maps, now.maps,
			(unsigned long long)before->rss_kb, (unsigned long long)now.rss_kb);
	return 0;
}
