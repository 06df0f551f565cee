/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is taken away while it is used (guard.c): the access ends well, the device is
 * told, and any other access still ends the process.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"
#include "guard.h"
#include "messages.h"

#define PAGE 4096UL

static volatile sig_atomic_t notified;

static void
notify(void)
{
	notified++;
}

/* The test's framework catches signals, too, from the start of each test. */
static void
install(void)
{
	notified = 0;
	assert_int_equal(vhp_guard_install(notify), 0);
}

static const struct vhp_dirty_log no_log;

/* Guest memory in a file of so many bytes, mapped at gpa 0. */
static struct vhp_mem
map_file(int fd, uint64_t size_bytes)
{
	void *map =
		mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	return (struct vhp_mem){.n_regions = 1, .regions = {{0, size_bytes, map}}};
}

static uint8_t
touch(const struct vhp_mem *mem, uint64_t offset)
{
	return *(volatile uint8_t *)(mem->regions[0].hva + offset);
}

/* Case M13: a file cut short. What is left stays; what is gone reads as zero. */
static void
truncated(void **state)
{
	int fd = messages_memfd(16 * PAGE);
	struct vhp_mem mem = map_file(fd, 16 * PAGE);
	struct vhp_guard *guard = vhp_guard_new();

	(void)state;
	install();
	vhp_guard_set(guard, &mem, &no_log);
	memset(mem.regions[0].hva, 0x77, 16 * PAGE);
	assert_false(vhp_guard_hit(guard));
	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	assert_int_equal(touch(&mem, 4 * PAGE - 1), 0x77);
	assert_int_equal(notified, 0);
	assert_int_equal(touch(&mem, 4 * PAGE), 0);
	assert_int_equal(notified, 1);
	assert_true(vhp_guard_hit(guard));
	assert_false(vhp_guard_hit(guard));
	/* Writing is covered as well, and each page is reported. */
	memset(mem.regions[0].hva + 5 * PAGE, 1, 11 * PAGE);
	assert_int_equal(notified, 12);
	assert_true(vhp_guard_hit(guard));
	assert_int_equal(touch(&mem, 3 * PAGE), 0x77);
	munmap(mem.regions[0].hva, 16 * PAGE);
	vhp_guard_free(guard);
	close(fd);
}

/* Huge pages that nobody has: the hole is as large as they are. */
static void
huge_pages(void **state)
{
	const uint64_t size_bytes = 4 << 20;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	struct vhp_guard *guard = vhp_guard_new();
	struct vhp_mem mem;

	(void)state;
	if (fd < 0 || ftruncate(fd, size_bytes) < 0)
		skip();
	install();
	mem = map_file(fd, size_bytes);
	vhp_guard_set(guard, &mem, &no_log);
	/* Where huge pages are reserved the file has to be cut first. */
	memset(mem.regions[0].hva, 0, 1);
	assert_int_equal(ftruncate(fd, 0), 0);
	notified = 0;
	(void)vhp_guard_hit(guard);
	assert_int_equal(touch(&mem, (2 << 20) + 12345), 0);
	assert_int_equal(notified, 1);
	assert_true(vhp_guard_hit(guard));
	munmap(mem.regions[0].hva, size_bytes);
	vhp_guard_free(guard);
	close(fd);
}

/* The dirty log is guarded, too. */
static void
log_truncated(void **state)
{
	int fd = messages_memfd(PAGE);
	struct vhp_guard *guard = vhp_guard_new();
	struct vhp_dirty_log log = {0};
	const struct vhp_mem mem = {.n_regions = 1, .regions = {{0, 10 * PAGE, (uint8_t *)PAGE}}};

	(void)state;
	install();
	assert_int_equal(vhp_dirty_log_map(&log, fd, PAGE, 0), 0);
	vhp_guard_set(guard, &mem, &log);
	assert_int_equal(ftruncate(fd, 0), 0);
	vhp_dirty_log_write(&log, &mem, (void *)PAGE, 1);
	assert_true(vhp_guard_hit(guard));
	assert_int_equal(log.bits[0], 1);
	vhp_dirty_log_unmap(&log);
	vhp_guard_free(guard);
	close(fd);
}

/* Each device hears of its own memory, and no longer once it is gone. */
static void
several_devices(void **state)
{
	struct vhp_guard *guards[3];
	struct vhp_mem mems[3];
	int fds[3];

	(void)state;
	install();
	for (int i = 0; i < 3; i++) {
		fds[i] = messages_memfd(2 * PAGE);
		mems[i] = map_file(fds[i], 2 * PAGE);
		guards[i] = vhp_guard_new();
		vhp_guard_set(guards[i], &mems[i], &no_log);
		assert_int_equal(ftruncate(fds[i], 0), 0);
	}
	touch(&mems[1], 0);
	assert_false(vhp_guard_hit(guards[0]));
	assert_true(vhp_guard_hit(guards[1]));
	assert_false(vhp_guard_hit(guards[2]));
	/* A guard is used again by the next device, without what the last one had. */
	vhp_guard_free(guards[1]);
	assert_ptr_equal(vhp_guard_new(), guards[1]);
	assert_false(vhp_guard_hit(guards[1]));
	touch(&mems[2], PAGE);
	assert_true(vhp_guard_hit(guards[2]));
	assert_false(vhp_guard_hit(guards[1]));
	for (int i = 0; i < 3; i++) {
		munmap(mems[i].regions[0].hva, 2 * PAGE);
		close(fds[i]);
		vhp_guard_free(guards[i]);
	}
}

/* The signal that ends a process which does this, 0 if it survives. */
static int
dies_of(void (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		install();
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
touch_unguarded(void)
{
	int fd = messages_memfd(PAGE);
	struct vhp_mem mem = map_file(fd, PAGE);

	if (ftruncate(fd, 0) == 0)
		touch(&mem, 0);
}

static void
touch_behind(void)
{
	int fd = messages_memfd(2 * PAGE);
	struct vhp_mem mem = map_file(fd, 2 * PAGE);

	mem.regions[0].size_bytes = PAGE;
	vhp_guard_set(vhp_guard_new(), &mem, &no_log);
	if (ftruncate(fd, 0) == 0)
		touch(&mem, PAGE);
}

static void
touch_freed(void)
{
	int fd = messages_memfd(PAGE);
	struct vhp_mem mem = map_file(fd, PAGE);
	struct vhp_guard *guard = vhp_guard_new();

	vhp_guard_set(guard, &mem, &no_log);
	vhp_guard_free(guard);
	if (ftruncate(fd, 0) == 0)
		touch(&mem, 0);
}

/* Our own mistakes still show. */
static void
other_memory(void **state)
{
	(void)state;
	assert_int_equal(dies_of(touch_unguarded), SIGBUS);
	assert_int_equal(dies_of(touch_behind), SIGBUS);
	assert_int_equal(dies_of(touch_freed), SIGBUS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncated),
		cmocka_unit_test(huge_pages),
		cmocka_unit_test(log_truncated),
		cmocka_unit_test(several_devices),
		cmocka_unit_test(other_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
