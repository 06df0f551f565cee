/* SPDX-License-Identifier: BSD-3-Clause */
/* See hugepages.h; EAL finds its hugepages in the same places. */
#include <ctype.h>
#include <dirent.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hugepages.h"

#define SYS_DIR "/sys/kernel/mm/hugepages"

/* A file with one number in it; 0 if it cannot be read. */
static uint64_t
read_number(const char *dir, const char *file)
{
	unsigned long long n = 0;
	char path[256];
	FILE *in;

	snprintf(path, sizeof(path), SYS_DIR "/%.64s/%s", dir, file);
	in = fopen(path, "re");
	if (in == NULL)
		return 0;
	if (fscanf(in, "%llu", &n) != 1)
		n = 0;
	fclose(in);
	return n;
}

static uint64_t
default_size_kb(void)
{
	unsigned long long kb = 0;
	char line[128];
	FILE *in = fopen("/proc/meminfo", "re");

	while (in != NULL && fgets(line, sizeof(line), in) != NULL)
		if (sscanf(line, "Hugepagesize: %llu kB", &kb) == 1)
			break;
	if (in != NULL)
		fclose(in);
	return kb;
}

/* The page size of a mount, from "pagesize=2M"; without that option the default. */
static uint64_t
mount_size_kb(const struct mntent *mount)
{
	const char *option = hasmntopt(mount, "pagesize");
	unsigned long long n;
	char *end;

	if (option == NULL)
		return default_size_kb();
	n = strtoull(option + strcspn(option, "=") + 1, &end, 10);
	switch (toupper((unsigned char)*end)) {
	case 'G':
		return n << 20;
	case 'M':
		return n << 10;
	case 'K':
		return n;
	default:
		return n >> 10;
	}
}

static bool
mounted(uint64_t size_kb)
{
	FILE *mounts = setmntent("/proc/mounts", "re");
	struct mntent entry, *mount;
	char text[4096];
	bool found = false;

	while (mounts != NULL && !found &&
		(mount = getmntent_r(mounts, &entry, text, sizeof(text))) != NULL)
		found = strcmp(mount->mnt_type, "hugetlbfs") == 0 &&
			mount_size_kb(mount) == size_kb && access(mount->mnt_dir, W_OK) == 0;
	if (mounts != NULL)
		endmntent(mounts);
	return found;
}

uint64_t
hugepages_free_bytes(void)
{
	DIR *dir = opendir(SYS_DIR);
	struct dirent *entry;
	uint64_t sum_bytes = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		unsigned long long size_kb;
		uint64_t free_pages, reserved, overcommit, surplus;

		if (sscanf(entry->d_name, "hugepages-%llukB", &size_kb) != 1 || !mounted(size_kb))
			continue;
		free_pages = read_number(entry->d_name, "free_hugepages");
		reserved = read_number(entry->d_name, "resv_hugepages");
		overcommit = read_number(entry->d_name, "nr_overcommit_hugepages");
		surplus = read_number(entry->d_name, "surplus_hugepages");
		sum_bytes += (free_pages > reserved ? free_pages - reserved : 0) * size_kb << 10;
		sum_bytes += (overcommit > surplus ? overcommit - surplus : 0) * size_kb << 10;
	}
	if (dir != NULL)
		closedir(dir);
	return sum_bytes;
}
