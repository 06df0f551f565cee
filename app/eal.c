/* SPDX-License-Identifier: BSD-3-Clause */
/* See eal.h; lcores.c, hugepages.c, drivers.c and capture.c are its parts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_eal.h>

#include "capture.h"
#include "drivers.h"
#include "eal.h"
#include "hugepages.h"

/** Less than this in free hugepages is no use. */
#define MIN_HUGE_BYTES (64ULL << 20)
/** Memory without hugepages, --no-huge -m. */
#define NO_HUGE_MB     "256"

/* ---- arguments -------------------------------------------------------------- */

/* CPUs that threads may be bound to: cgroup and hot-plug limit them, taskset does not. */
static void
available_cpus(const cpu_set_t *allowed, cpu_set_t *out)
{
	CPU_ZERO(out);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		CPU_SET(cpu, out);
	if (sched_setaffinity(0, sizeof(*out), out) != 0 ||
		sched_getaffinity(0, sizeof(*out), out) != 0)
		*out = *allowed;
	sched_setaffinity(0, sizeof(*allowed), allowed);
}

static int
choose_lcores(struct eal *eal, struct mistake *why)
{
	const struct eal_conf *conf = &eal->config->eal;
	cpu_set_t allowed, available;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return mistake(why, "cannot read the CPU affinity: %s", strerror(errno));
	if (conf->lcores != NULL) {
		available_cpus(&allowed, &available);
		return lcores_parse(conf, &available, &eal->lcores, why);
	}
	if (conf->main_lcore != NULL)
		return mistake(
			why, "--main-lcore %s: not without -l, -c or --lcores", conf->main_lcore);
	if (conf->service != NULL)
		return mistake(why, "%s %s: not without -l, -c or --lcores", conf->service_option,
			conf->service);
	if (eal->config->n_poller_cpus > 0) {
		int rc;

		available_cpus(&allowed, &available);
		rc = lcores_pollers(eal->config->poller_cpu, eal->config->n_poller_cpus, &available,
			&eal->lcores, why);
		if (rc != 0)
			return rc;
	} else {
		lcores_default(&allowed, &eal->lcores);
	}
	lcores_option(&eal->lcores, eal->lcores_text, sizeof(eal->lcores_text));
	return 0;
}

int
eal_check_pollers(const struct config *config, unsigned int n_pollers, struct mistake *why)
{
	char given[16], allowed[32];

	snprintf(allowed, sizeof(allowed), "0..%u", n_pollers - 1);
	for (unsigned int i = 0; i < config->n_devices; i++) {
		const struct device *dev = &config->devices[i];

		if (dev->kind != DEVICE_NET_VHOST && dev->kind != DEVICE_VHOST_CRYPTO)
			continue;
		if (dev->net.poller < (int)n_pollers)
			continue;
		snprintf(given, sizeof(given), "%d", dev->net.poller);
		return mistake_value(why, dev->name, "poller", given, "no such poller", allowed);
	}
	return 0;
}

static void
add(struct eal *eal, const char *arg)
{
	eal->argv[eal->argc++] = (char *)(uintptr_t)arg;
}

/* Our choices first, so that the user's come later and win. */
static void
build_argv(struct eal *eal)
{
	const struct eal_conf *conf = &eal->config->eal;

	add(eal, "dpdk-vhost-rxpoll");
	if (!conf->log_given) {
		add(eal, "--log-level=lib.eal:warning");
		add(eal, "--log-level=lib.telemetry:error");
		add(eal, "--log-level=lib.vhost*:warning");
	}
	if (eal->lcores_text[0] != '\0') {
		add(eal, "--lcores");
		add(eal, eal->lcores_text);
	}
	if (!conf->pci_given)
		add(eal, "--no-pci");
	if (eal->no_huge) {
		add(eal, "--no-huge");
		add(eal, "-m");
		add(eal, NO_HUGE_MB);
	} else if (!conf->huge_files_given) {
		/* Not even kill -9 leaves files in hugetlbfs then. */
		add(eal, "--huge-unlink");
	}
	for (int i = 0; i < conf->argc; i++)
		add(eal, conf->argv[i]);
	for (unsigned int i = 0; i < conf->n_lines; i++) {
		add(eal, "--vdev");
		add(eal, conf->lines[i]);
	}
}

int
eal_prepare(const struct config *config, struct eal *eal, struct mistake *why)
{
	int rc;

	memset(eal, 0, sizeof(*eal));
	eal->config = config;
	rc = choose_lcores(eal, why);
	if (rc == 0)
		rc = eal_check_pollers(config, eal->lcores.n_pollers, why);
	if (rc != 0)
		return rc;
	eal->no_huge = !config->eal.memory_given && hugepages_free_bytes() < MIN_HUGE_BYTES;
	eal->argv =
		calloc((size_t)config->eal.argc + 2 * config->eal.n_lines + 16, sizeof(*eal->argv));
	if (eal->argv == NULL) {
		mistake(why, "out of memory");
		return -ENOMEM;
	}
	build_argv(eal);
	return 0;
}

void
eal_free(struct eal *eal)
{
	free(eal->argv);
	eal->argv = NULL;
}

/* ---- runtime directory ---------------------------------------------------------- */

/* Is the runtime directory's EAL this process, or one that has ended? */
static bool
runtime_dir_is_ours(int dir_fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = openat(dir_fd, "config", O_RDWR | O_CLOEXEC);
	bool ours = fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;

	if (fd >= 0)
		close(fd);
	return ours;
}

/* A socket whose process has ended. A datagram socket asks: a living stream does not notice it. */
static bool
is_dead_socket(const char *dir, const char *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd, len_bytes;
	bool dead;

	len_bytes = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	if (len_bytes >= (int)sizeof(addr.sun_path))
		return false;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	dead = fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 &&
	       errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return dead;
}

static bool
is_eal_file(const char *name)
{
	static const char *const patterns[] = {"config", "hugepage_info", "fbarray_*", "mp_socket"};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

/*
 * At exit, after DPDK's own exit handlers: EAL removes its sockets, but neither its
 * files nor the directory; a process that was killed leaves its sockets, too.
 */
static void
remove_runtime_dir(void)
{
	const char *path = rte_eal_get_runtime_dir();
	struct dirent *entry;
	DIR *dir;

	dir = path[0] != '\0' ? opendir(path) : NULL;
	if (dir == NULL)
		return;
	if (runtime_dir_is_ours(dirfd(dir)))
		while ((entry = readdir(dir)) != NULL)
			if (is_eal_file(entry->d_name) ||
				(entry->d_type == DT_SOCK && is_dead_socket(path, entry->d_name)))
				unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
	rmdir(path); /* stays if another EAL of this prefix uses it */
}

/* ---- start and end ----------------------------------------------------------------- */

/* The line that explains a failure best: the last one before the one with the mark. */
static const char *
reason(char *log, const char *mark)
{
	const char *best = "its log says why";
	char *save = NULL;

	for (char *line = strtok_r(log, "\n", &save); line != NULL;
		line = strtok_r(NULL, "\n", &save)) {
		if (strstr(line, mark) != NULL)
			break;
		if (strncmp(line, "EAL: ", 5) == 0)
			line += 5;
		if (line[0] != '\0')
			best = line;
	}
	return best;
}

/* EAL's log as one line that names the option. */
static int
explain(const struct eal *eal, char *log, struct mistake *why)
{
	const char *prefix = eal->config->eal.file_prefix;
	char given[512] = "";
	size_t used_bytes = 0;

	if (strstr(log, "Is another primary") != NULL)
		return mistake(why,
			"--file-prefix %s: another DPDK process runs with it (one process each)",
			prefix != NULL ? prefix : "rte");
	if (strstr(log, "Cannot get hugepage information") != NULL)
		return mistake(why, "no free hugepages (reserve some, sysctl vm.nr_hugepages=512, "
				    "or give --no-huge)");
	for (int i = 0; i < eal->config->eal.argc && used_bytes < sizeof(given); i++)
		used_bytes += (size_t)snprintf(given + used_bytes, sizeof(given) - used_bytes,
			" %s", eal->config->eal.argv[i]);
	return mistake(why, "EAL cannot start: %s (options given:%s)", reason(log, "EAL: FATAL: "),
		given[0] != '\0' ? given : " none");
}

static int
check_devices(const struct eal *eal, char *log, struct mistake *why)
{
	const struct device *failed = drivers_failed(eal->config);

	char mark[CONFIG_NAME_BYTES + 32];

	if (failed == NULL)
		return 0;
	snprintf(mark, sizeof(mark), "failed to initialize %s", failed->name);
	return mistake(why, "%s: DPDK could not start it: %s", failed->name, reason(log, mark));
}

int
eal_start(const struct eal *eal, struct mistake *why)
{
	const cpu_set_t *main_cpus = &eal->lcores.cpus[eal->lcores.main];
	char *log;
	int rc;

	/* EAL's control threads run where the process may and no lcore does, else with main. */
	if (sched_setaffinity(0, sizeof(*main_cpus), main_cpus) != 0)
		return mistake(why, "cannot bind the main thread to its CPUs: %s", strerror(errno));
	atexit(remove_runtime_dir);
	if (!eal->config->eal.log_given)
		capture_begin();
	rc = rte_eal_init(eal->argc, eal->argv);
	log = capture_end();
	if (log == NULL)
		return mistake(why, "out of memory");
	if (rc < 0) {
		rc = explain(eal, log, why);
	} else {
		rc = check_devices(eal, log, why);
		if (rc < 0)
			rte_eal_cleanup();
	}
	if (rc == 0) {
		fputs(log, stderr);
		if (eal->no_huge)
			fprintf(stderr, "dpdk-vhost-rxpoll: no free hugepages: running with "
					"--no-huge -m " NO_HUGE_MB "\n");
	}
	free(log);
	return rc;
}

void
eal_stop(void)
{
	rte_eal_cleanup();
}
