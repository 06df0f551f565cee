/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the gate lets through (gate_check.c): each request with each thing wrong that it can
 * have, one at a time.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "gate.h"
#include "messages.h"

static void
check_refused(const char *what, const struct vhp_vu_msg *msg)
{
	if (vhp_gate_check(msg, MESSAGES_RINGS) == NULL)
		fail_msg("request %u let through: %s", msg->header.request, what);
}

static void
check_passes(const char *what, const struct vhp_vu_msg *msg)
{
	const char *why = vhp_gate_check(msg, MESSAGES_RINGS);

	if (why != NULL)
		fail_msg("request %u refused: %s: %s", msg->header.request, what, why);
}

/* Requests of crypto devices; other devices refuse them later. */
static const uint32_t crypto_requests[] = {
	VU_GET_CONFIG, VU_CREATE_CRYPTO_SESSION, VU_CLOSE_CRYPTO_SESSION};

static bool
is_known(uint32_t request)
{
	for (size_t i = 0; i < RTE_DIM(crypto_requests); i++)
		if (crypto_requests[i] == request)
			return true;
	for (const uint32_t *r = messages_known; *r != 0; r++)
		if (*r == request)
			return true;
	return false;
}

/* ---- every request ----------------------------------------------------------- */

static void
good_messages_pass(void **state)
{
	(void)state;
	for (const uint32_t *r = messages_known; *r != 0; r++) {
		struct vhp_vu_msg msg = messages_good(*r);

		check_passes("as it should be", &msg);
		msg.header.flags |= VU_NEED_REPLY;
		check_passes("with a reply asked for", &msg);
		messages_close(&msg);
	}
}

/* Payloads of a wrong size are answered with an error, but for CLOSE, which has none. */
static void
crypto_messages(void **state)
{
	static const uint32_t sizes[] = {0, 8, 631, 632, 633, VU_MAX_PAYLOAD_BYTES};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(crypto_requests); i++) {
		for (size_t k = 0; k < RTE_DIM(sizes); k++) {
			struct vhp_vu_msg msg = {
				.header = {crypto_requests[i], VU_VERSION, sizes[k]}};

			if (sizes[k] == 8 || crypto_requests[i] != VU_CLOSE_CRYPTO_SESSION)
				check_passes("of any size", &msg);
			else
				check_refused("of the wrong size", &msg);
			assert_true(vhp_request_info(crypto_requests[i])->own);
			msg.n_fds = 1;
			check_refused("with a descriptor", &msg);
			msg.n_fds = 0;
			msg.header.size = VU_MAX_PAYLOAD_BYTES + 1;
			check_refused("too long", &msg);
		}
	}
}

static void
unknown_requests(void **state)
{
	static const uint32_t others[] = {0, 7, 100, 255, 256 + VU_SET_OWNER,
		0x10000 + VU_SET_OWNER, VU_REQUESTS, 0x7fffffff, 0x80000000, UINT32_MAX};
	struct vhp_vu_msg msg = {.header = {.flags = VU_VERSION}};

	(void)state;
	for (uint32_t request = 0; request < 300; request++) {
		msg.header.request = request;
		if (!is_known(request))
			check_refused("unknown", &msg);
		assert_int_equal(vhp_request_info(request)->name != NULL, is_known(request));
	}
	for (size_t i = 0; i < RTE_DIM(others); i++) {
		msg.header.request = others[i];
		check_refused("unknown", &msg);
		assert_null(vhp_request_info(others[i])->name);
	}
}

static void
wrong_flags(void **state)
{
	static const uint32_t flags[] = {
		0, 2, 3, VU_VERSION | VU_REPLY, VU_VERSION | VU_REPLY | VU_NEED_REPLY};

	(void)state;
	for (const uint32_t *r = messages_known; *r != 0; r++) {
		struct vhp_vu_msg msg = messages_good(*r);

		for (size_t i = 0; i < RTE_DIM(flags); i++) {
			msg.header.flags = flags[i];
			check_refused("flags", &msg);
		}
		messages_close(&msg);
	}
}

/* Case M3. Already the header says it, before a byte of the payload is read. */
static void
wrong_size(void **state)
{
	static const uint32_t others[] = {
		0, 1, 4, 7, 8, 9, 12, 16, 40, 39, 41, 264, 272, 1024, 1025, 0x80000000, UINT32_MAX};

	(void)state;
	for (const uint32_t *r = messages_known; *r != 0; r++) {
		struct vhp_vu_msg msg = messages_good(*r);
		uint32_t right = msg.header.size;

		for (size_t i = 0; i < RTE_DIM(others) + 2; i++) {
			uint32_t size = i < RTE_DIM(others)    ? others[i]
					: i == RTE_DIM(others) ? right - 1
							       : right + 1;

			msg.header.size = size;
			if (size == right)
				continue;
			check_refused("size", &msg);
			/* A memory table has more than one size. */
			if (*r != VU_SET_MEM_TABLE || size > sizeof(msg.mem))
				assert_non_null(vhp_gate_check_header(&msg.header));
		}
		messages_close(&msg);
	}
}

/* Descriptors where none belong, too few and too many. */
static void
wrong_number_of_fds(void **state)
{
	(void)state;
	for (const uint32_t *r = messages_known; *r != 0; r++) {
		struct vhp_vu_msg msg = messages_good(*r);
		unsigned int right = msg.n_fds;
		int extra = eventfd(0, EFD_CLOEXEC);

		for (unsigned int n = 0; n <= VU_MAX_FDS; n++) {
			for (unsigned int k = right; k < n; k++)
				msg.fds[k] = right > 0 ? msg.fds[0] : extra;
			msg.n_fds = n;
			if (n != right)
				check_refused("number of descriptors", &msg);
		}
		msg.n_fds = right;
		messages_close(&msg);
		close(extra);
	}
}

/* Case M5: indices that become right when they are cut to 8 or 16 bits. */
static void
ring_index(void **state)
{
	static const uint32_t indices[] = {MESSAGES_RINGS, 5, 255, 0x100, 0x101, 0x10000, 0x10001,
		0x1000000, 0x80000000, UINT32_MAX};

	(void)state;
	for (const uint32_t *r = messages_known; *r != 0; r++) {
		struct vhp_vu_msg msg = messages_good(*r);
		int index = vhp_gate_ring_index(&msg);
		enum vhp_payload payload = vhp_request_info(*r)->payload;

		assert_int_equal(index >= 0, payload == VHP_PAYLOAD_STATE ||
						     payload == VHP_PAYLOAD_ADDR ||
						     payload == VHP_PAYLOAD_FILE);
		if (index >= 0)
			assert_int_equal(index, MESSAGES_RINGS - 1);
		for (size_t i = 0; index >= 0 && i < RTE_DIM(indices); i++) {
			/* All three forms begin with the index. */
			msg.state.index = indices[i];
			check_refused("ring index", &msg);
			/* 0x100 means "without a descriptor" there, and none comes with it. */
			if (payload == VHP_PAYLOAD_FILE) {
				unsigned int n = msg.n_fds;

				msg.n_fds = 0;
				if (indices[i] < 0x100 || indices[i] >= 0x100 + MESSAGES_RINGS)
					check_refused("ring index", &msg);
				msg.n_fds = n;
			}
		}
		messages_close(&msg);
	}
}

/* ---- rings ------------------------------------------------------------------- */

static void
ring_numbers(void **state)
{
	static const struct {
		uint32_t request, num;
		bool passes;
	} cases[] = {
		{VU_SET_VRING_NUM, 0, false},
		{VU_SET_VRING_NUM, 1, true},
		{VU_SET_VRING_NUM, 255, true},
		{VU_SET_VRING_NUM, 32769, false},
		{VU_SET_VRING_NUM, 32768, true},
		{VU_SET_VRING_NUM, 65536, false},
		{VU_SET_VRING_NUM, 0x10100, false},
		{VU_SET_VRING_NUM, 0x80000000, false},
		{VU_SET_VRING_NUM, UINT32_MAX, false},
		{VU_SET_VRING_ENABLE, 0, true},
		{VU_SET_VRING_ENABLE, 1, true},
		{VU_SET_VRING_ENABLE, 2, false},
		{VU_SET_VRING_ENABLE, 0x100, false},
		{VU_SET_VRING_ENABLE, UINT32_MAX, false},
		{VU_SET_VRING_BASE, UINT32_MAX, true},
		{VU_GET_VRING_BASE, UINT32_MAX, true},
	};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct vhp_vu_msg msg = messages_good(cases[i].request);

		msg.state.num = cases[i].num;
		if (cases[i].passes)
			check_passes("number", &msg);
		else
			check_refused("number", &msg);
	}
}

/* Kick, call, error: with the flag that none comes, and reserved bits. */
static void
ring_descriptors(void **state)
{
	static const uint32_t requests[] = {VU_SET_VRING_KICK, VU_SET_VRING_CALL, VU_SET_VRING_ERR};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(requests); i++) {
		struct vhp_vu_msg msg = messages_good(requests[i]);

		msg.u64 |= VU_RING_NO_FD;
		check_refused("a descriptor although the flag says none", &msg);
		msg.n_fds = 0;
		check_passes("none, and the flag", &msg);
		msg.u64 &= VU_RING_INDEX_MASK;
		check_refused("none, without the flag", &msg);
		msg.n_fds = 1;
		check_passes("one", &msg);
		for (int bit = 9; bit < 64; bit++) {
			msg.u64 = 1 | 1ULL << bit;
			check_refused("reserved bit", &msg);
		}
		messages_close(&msg);
	}
}

/* What cannot be waited for is no kick: files, directories, closed descriptors. */
static void
descriptors_that_cannot_notify(void **state)
{
	const int fds[] = {messages_memfd(4096), open("/", O_RDONLY | O_DIRECTORY), 9999};
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	for (uint32_t request = VU_SET_VRING_KICK; request <= VU_SET_VRING_ERR; request++) {
		struct vhp_vu_msg msg = {
			.header = {request, VU_VERSION, sizeof(uint64_t)}, .u64 = 1, .n_fds = 1};

		for (size_t i = 0; i < RTE_DIM(fds); i++) {
			msg.fds[0] = fds[i];
			check_refused("cannot notify", &msg);
		}
		/* Case W8: a pipe can. */
		msg.fds[0] = pipes[0];
		check_passes("pipe", &msg);
	}
	close(fds[0]);
	close(fds[1]);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- memory ------------------------------------------------------------------ */

/* Change one thing in a good table of two regions (64 KiB each in files of 0x11000). */
struct mem_case {
	const char *name;
	bool passes;
	int region;
	struct vhp_vu_region with;
};

#define U0 0x7f0000000000ULL

static const struct mem_case mem_cases[] = {
	{"as it was", true, 1, {0x10000, 0x10000, U0 + 0x10000, 0x1000}},
	{"smaller", true, 1, {0x10000, 1, U0 + 0x10000, 0}},
	{"not at page's start", true, 1, {0x10000, 0x1001, U0 + 0x10000, 0x123}},
	{"empty", false, 1, {0x10000, 0, U0 + 0x10000, 0}},
	{"overlaps by a byte", false, 1, {0xffff, 0x10000, U0 + 0x10000, 0}},
	{"the same", false, 1, {0, 0x10000, U0 + 0x10000, 0}},
	{"inside of the other", false, 1, {0x100, 0x100, U0 + 0x10000, 0}},
	{"around the other", false, 0, {0xff00, 0x10800, U0 - 0x10800, 0}},
	{"overlaps in the front end", false, 1, {0x10000, 0x10000, U0 + 0xffff, 0}},
	{"the same in the front end", false, 1, {0x10000, 0x10000, U0, 0}},
	{"address wraps", false, 1, {UINT64_MAX - 0xffff, 0x10001, U0 + 0x10000, 0}},
	{"ends at the last byte", false, 1, {UINT64_MAX - 0xffff, 0x10000, U0 + 0x10000, 0}},
	{"ends before the last byte", true, 1, {UINT64_MAX - 0x10000, 0x10000, U0 + 0x10000, 0}},
	{"front end's address wraps", false, 1, {0x10000, 0x10000, UINT64_MAX - 0xfffe, 0}},
	{"offset wraps", false, 1, {0x10000, 0x10000, U0 + 0x10000, UINT64_MAX - 0xfffe}},
	{"size wraps with the offset", false, 1,
		{0x10000, UINT64_MAX - 0xfff, U0 + 0x10000, 0x1000}},
	{"size wraps with the address", false, 1, {0x10000, UINT64_MAX, U0 + 0x10000, 0}},
	{"one byte more than the file", false, 1, {0x10000, 0x10001, U0 + 0x10000, 0x1000}},
	{"offset at the file's end", false, 1, {0x10000, 1, U0 + 0x10000, 0x11000}},
	{"offset behind the file", false, 1, {0x10000, 1, U0 + 0x10000, 0x12000}},
	{"the whole file", true, 1, {0x10000, 0x11000, U0 + 0x10000, 0}},
	{"size of 2^63", false, 1, {0x10000, 1ULL << 63, U0 + 0x10000, 0}},
};

static void
regions(void **state)
{
	(void)state;
	for (size_t i = 0; i < RTE_DIM(mem_cases); i++) {
		struct vhp_vu_msg msg = messages_good(VU_SET_MEM_TABLE);

		msg.mem.regions[mem_cases[i].region] = mem_cases[i].with;
		if (mem_cases[i].passes)
			check_passes(mem_cases[i].name, &msg);
		else
			check_refused(mem_cases[i].name, &msg);
		messages_close(&msg);
	}
}

/* 0 to 8 regions, 9, and numbers that only fit when they are cut. */
static void
number_of_regions(void **state)
{
	static const uint32_t others[] = {0, 9, 0x101, 0x10001, 0x80000001, UINT32_MAX};
	struct vhp_vu_msg msg = messages_good(VU_SET_MEM_TABLE);
	int fd = messages_memfd(0x1000);

	(void)state;
	messages_close(&msg);
	for (uint32_t n = 1; n <= VHP_MEM_MAX_REGIONS; n++) {
		msg.mem.n_regions = msg.n_fds = n;
		msg.mem.regions[n - 1] = (struct vhp_vu_region){n << 12, 0x1000, n << 16, 0};
		msg.fds[n - 1] = fd;
		msg.header.size = offsetof(struct vhp_vu_mem_table, regions) +
				  n * sizeof(struct vhp_vu_region);
		check_passes("regions", &msg);
		msg.n_fds = n - 1;
		check_refused("a descriptor too few", &msg);
		msg.n_fds = n;
	}
	for (size_t i = 0; i < RTE_DIM(others); i++) {
		msg.mem.n_regions = others[i];
		check_refused("number of regions", &msg);
	}
	close(fd);
}

/* Files that would let the front end halt us, or that cannot be mapped. */
static void
files_that_are_no_memory(void **state)
{
	const int fds[] = {eventfd(0, EFD_CLOEXEC), open("/proc/self/maps", O_RDONLY),
		open("/", O_RDONLY | O_DIRECTORY), open("/dev/zero", O_RDWR),
		open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY), 9999};
	struct vhp_vu_msg msg = messages_good(VU_SET_MEM_TABLE);
	char path[64];
	int fd;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(fds); i++) {
		int saved = msg.fds[1];

		msg.fds[1] = fds[i];
		check_refused("no memory", &msg);
		msg.fds[1] = saved;
		close(fds[i]);
	}
	/* Read-only: cannot be mapped for writing. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", msg.fds[1]);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	close(msg.fds[1]);
	msg.fds[1] = fd;
	check_refused("read-only", &msg);
	messages_close(&msg);
	/* Sealed against writing: the same. */
	msg = messages_good(VU_SET_MEM_TABLE);
	fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, 0x11000), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	close(msg.fds[0]);
	msg.fds[0] = fd;
	check_refused("sealed", &msg);
	messages_close(&msg);
}

/* Checking leaves nothing behind: no mapping, no descriptor; also with huge pages. */
static void
checks_leave_nothing(void **state)
{
	struct vhp_vu_msg msg = messages_good(VU_SET_MEM_TABLE);
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	unsigned int fds, before = 0, after = 0;
	char line[512];

	(void)state;
	if (fd >= 0) {
		assert_int_equal(ftruncate(fd, 4 << 20), 0);
		close(msg.fds[1]);
		msg.fds[1] = fd;
	}
	fds = messages_open_fds();
	for (int round = 0; round < 2; round++) {
		FILE *maps;
		unsigned int n = 0;

		for (int i = 0; i < 100; i++)
			check_passes("table", &msg);
		maps = fopen("/proc/self/maps", "r");
		assert_non_null(maps);
		while (fgets(line, sizeof(line), maps) != NULL)
			n++;
		fclose(maps);
		*(round == 0 ? &before : &after) = n;
	}
	assert_int_equal(after, before);
	assert_int_equal(messages_open_fds(), fds);
	messages_close(&msg);
}

/* ---- the dirty log ----------------------------------------------------------- */

static void
dirty_log(void **state)
{
	/* Case M7. The file has 4,096 bytes. */
	static const struct {
		uint64_t size_bytes, offset;
		bool passes;
	} cases[] = {
		{4096, 0, true},
		{1, 4095, true},
		{4095, 1, true},
		{4096, 1, false},
		{4097, 0, false},
		{0, 0, false},
		{1, 4096, false},
		{UINT64_MAX, 1, false},
		{1, UINT64_MAX, false},
		{UINT64_MAX - 1, 2, false},
		{0x8000000000000000, 0x8000000000001000, false},
	};
	struct vhp_vu_msg msg = messages_good(VU_SET_LOG_BASE);
	const int others[] = {eventfd(0, EFD_CLOEXEC), open("/dev/zero", O_RDWR), 9999};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		msg.log = (struct vhp_vu_log){cases[i].size_bytes, cases[i].offset};
		if (cases[i].passes)
			check_passes("log", &msg);
		else
			check_refused("log", &msg);
	}
	messages_close(&msg);
	msg = messages_good(VU_SET_LOG_BASE);
	for (size_t i = 0; i < RTE_DIM(others); i++) {
		int saved = msg.fds[0];

		msg.fds[0] = others[i];
		check_refused("log of another kind", &msg);
		msg.fds[0] = saved;
		close(others[i]);
	}
	messages_close(&msg);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_messages_pass),
		cmocka_unit_test(unknown_requests),
		cmocka_unit_test(crypto_messages),
		cmocka_unit_test(wrong_flags),
		cmocka_unit_test(wrong_size),
		cmocka_unit_test(wrong_number_of_fds),
		cmocka_unit_test(ring_index),
		cmocka_unit_test(ring_numbers),
		cmocka_unit_test(ring_descriptors),
		cmocka_unit_test(descriptors_that_cannot_notify),
		cmocka_unit_test(regions),
		cmocka_unit_test(number_of_regions),
		cmocka_unit_test(files_that_are_no_memory),
		cmocka_unit_test(checks_leave_nothing),
		cmocka_unit_test(dirty_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
