/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "guard.h"

/* Guest memory and the dirty log. */
#define RANGES (VHP_MEM_MAX_REGIONS + 1)

/* Handlers of other threads may be walking the list: guards are reused, never freed. */
struct vhp_guard {
	struct vhp_guard *next; /* set before the guard is on the list, then constant */
	bool used;              /* main thread only */
	bool hit;
	struct {
		uintptr_t start;
		uintptr_t end; /* 0: no range */
	} ranges[RANGES];
};

static struct vhp_guard *guards;
static void (*notify_main)(void);

static struct vhp_guard *
find(uintptr_t addr)
{
	struct vhp_guard *g;

	for (g = __atomic_load_n(&guards, __ATOMIC_ACQUIRE); g != NULL; g = g->next)
		for (int i = 0; i < RANGES; i++)
			if (addr < __atomic_load_n(&g->ranges[i].end, __ATOMIC_ACQUIRE) &&
				addr >= __atomic_load_n(&g->ranges[i].start, __ATOMIC_RELAXED))
				return g;
	return NULL;
}

/* A hole in a file of huge pages can only be covered as large as these. */
static bool
cover(uintptr_t addr)
{
	static const size_t page_bytes[] = {4096, 2 << 20, 1 << 30};

	for (size_t i = 0; i < sizeof(page_bytes) / sizeof(page_bytes[0]); i++) {
		void *page = (void *)(addr & ~(page_bytes[i] - 1));

		if (mmap(page, page_bytes[i], PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
			return true;
	}
	return false;
}

static void
on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved_errno = errno;
	uintptr_t addr = (uintptr_t)info->si_addr;
	struct vhp_guard *g = find(addr);

	(void)context;
	if (g == NULL || !cover(addr)) {
		/* Not ours: the instruction is run again, and ends the process this time. */
		signal(sig, SIG_DFL);
		return;
	}
	__atomic_store_n(&g->hit, true, __ATOMIC_RELEASE);
	notify_main();
	errno = saved_errno;
}

int
vhp_guard_install(void (*notify)(void))
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};

	notify_main = notify;
	sigemptyset(&sa.sa_mask);
	return sigaction(SIGBUS, &sa, NULL) < 0 ? -errno : 0;
}

struct vhp_guard *
vhp_guard_new(void)
{
	struct vhp_guard *g;

	for (g = guards; g != NULL && g->used; g = g->next)
		;
	if (g == NULL) {
		g = calloc(1, sizeof(*g));
		if (g == NULL)
			return NULL;
		g->next = guards;
		__atomic_store_n(&guards, g, __ATOMIC_RELEASE);
	}
	g->used = true;
	return g;
}

void
vhp_guard_free(struct vhp_guard *g)
{
	static const struct vhp_mem no_mem;
	static const struct vhp_dirty_log no_log;

	if (g == NULL)
		return;
	vhp_guard_set(g, &no_mem, &no_log);
	g->hit = false;
	g->used = false;
}

static void
set_range(struct vhp_guard *g, uint32_t i, const void *start, uint64_t size_bytes)
{
	/* Never a range of an old start and a new end. */
	__atomic_store_n(&g->ranges[i].end, 0, __ATOMIC_RELEASE);
	if (size_bytes == 0)
		return;
	__atomic_store_n(&g->ranges[i].start, (uintptr_t)start, __ATOMIC_RELAXED);
	__atomic_store_n(&g->ranges[i].end, (uintptr_t)start + size_bytes, __ATOMIC_RELEASE);
}

void
vhp_guard_set(struct vhp_guard *g, const struct vhp_mem *mem, const struct vhp_dirty_log *log)
{
	for (uint32_t i = 0; i < VHP_MEM_MAX_REGIONS; i++)
		set_range(g, i, mem->regions[i].hva,
			i < mem->n_regions ? mem->regions[i].size_bytes : 0);
	set_range(g, VHP_MEM_MAX_REGIONS, log->map, log->map_bytes);
}

bool
vhp_guard_hit(struct vhp_guard *g)
{
	return __atomic_exchange_n(&g->hit, false, __ATOMIC_ACQUIRE);
}
