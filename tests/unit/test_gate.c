/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate as a whole (gate.c): what of a message reaches the back end and the device, in which
 * order, what the front end hears of it, and who is hung up on.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "gate_rig.h"
#include "gate_socket.h"

static unsigned int fds_before;

static int
setup(void **state)
{
	static struct gate_rig rig;

	fds_before = messages_open_fds();
	gate_rig_init(&rig, false);
	*state = &rig;
	return 0;
}

static int
teardown(void **state)
{
	gate_rig_fini(*state);
	assert_int_equal(messages_open_fds(), fds_before);
	return 0;
}

/* Send a message and let it take effect. */
static void
say(struct gate_rig *rig, int fd, const struct vhp_vu_msg *msg)
{
	assert_int_equal(vhp_vu_send(fd, msg), 0);
	gate_rig_run(rig);
}

/* What the front end reads: 1 and *out: a message; 0: nothing; -EPIPE: it was hung up on. */
static int
hear(int fd, struct vhp_vu_msg *out)
{
	struct vhp_vu_reader reader = {.have_bytes = 0};
	const char *why;
	int ret = vhp_vu_read(fd, &reader, &why);

	assert_int_equal(reader.msg.n_fds, 0);
	*out = reader.msg;
	return ret;
}

static void
check_answer(int fd, uint32_t request, uint64_t value)
{
	struct vhp_vu_msg msg;

	assert_int_equal(hear(fd, &msg), 1);
	assert_int_equal(msg.header.request, request);
	assert_int_equal(msg.header.flags, VU_VERSION | VU_REPLY);
	assert_int_equal(msg.header.size, sizeof(msg.u64));
	assert_int_equal(msg.u64, value);
	assert_int_equal(hear(fd, &msg), 0);
}

static void
check_silence(int fd)
{
	struct vhp_vu_msg msg;

	assert_int_equal(hear(fd, &msg), 0);
}

static void
check_hung_up(int fd)
{
	struct vhp_vu_msg msg;

	assert_int_equal(hear(fd, &msg), -EPIPE);
}

static uint64_t
refusals(const struct gate_rig *rig)
{
	const struct vhp_refusal *r = vhp_gate_refusals(rig->gate);
	uint64_t n = 0;

	for (int i = 0; i < VHP_GATE_REFUSALS && r[i].why != NULL; i++)
		n += r[i].count;
	return n;
}

/* ---- messages that pass --------------------------------------------------------- */

/* The message itself must have arrived, as number n, with its descriptors. */
static void
check_relayed(const struct gate_rig *rig, unsigned int n, const struct vhp_vu_msg *msg)
{
	const struct vhp_vu_msg *got = &rig->relayed[n];

	assert_true(n < rig->n_relayed);
	assert_int_equal(got->header.request, msg->header.request);
	assert_int_equal(got->header.size, msg->header.size);
	if (msg->header.size > 0)
		assert_memory_equal(got->bytes, msg->bytes, msg->header.size);
	assert_int_equal(rig->n_relayed_fds[n], msg->n_fds);
	/* DPDK says when it is done with each. */
	if (!vhp_request_info(msg->header.request)->replies)
		assert_true(got->header.flags & VU_NEED_REPLY);
}

static void
every_message(void **state)
{
	struct gate_rig *rig = *state;
	int fd = gate_rig_connect(rig);

	assert_string_equal(rig->trace, "c");
	assert_true(vhp_gate_connected(rig->gate));
	for (int reply = 0; reply < 2; reply++) {
		for (const uint32_t *r = messages_known; *r != 0; r++) {
			struct vhp_vu_msg msg = messages_good(*r);
			const struct vhp_request_info *info = vhp_request_info(*r);
			unsigned int clear = *r == VU_SET_MEM_TABLE;

			gate_rig_clear(rig);
			if (reply)
				msg.header.flags |= VU_NEED_REPLY;
			say(rig, fd, &msg);
			if (*r == VU_GET_QUEUE_NUM) {
				/* DPDK is not asked. */
				check_answer(fd, *r, MESSAGES_RINGS / 2);
				assert_int_equal(rig->n_relayed, 0);
				continue;
			}
			assert_string_equal(rig->trace, info->changes ? "ba" : "a");
			if (clear) {
				assert_int_equal(rig->relayed[0].header.request, *r);
				assert_int_equal(rig->relayed[0].mem.n_regions, 0);
				assert_int_equal(rig->n_relayed_fds[0], 0);
			}
			check_relayed(rig, clear, &msg);
			/* The barrier behind what changes rings. */
			assert_int_equal(rig->n_relayed, 1 + clear + info->changes);
			if (info->changes)
				assert_int_equal(
					rig->relayed[1 + clear].header.request, VU_GET_FEATURES);
			if (info->replies)
				check_answer(fd, *r, 0x123456789abcdef0);
			else if (reply)
				check_answer(fd, *r, 0);
			else
				check_silence(fd);
			messages_close(&msg);
		}
	}
	assert_int_equal(refusals(rig), 0);
	close(fd);
	gate_rig_clear(rig);
	gate_rig_run(rig);
	assert_string_equal(rig->trace, "d");
	assert_false(vhp_gate_connected(rig->gate));
}

/* Several in one go: each has its answer, in order, before the next is relayed. */
static void
messages_in_a_row(void **state)
{
	struct gate_rig *rig = *state;
	int fd = gate_rig_connect(rig);
	struct vhp_vu_msg get = messages_good(VU_GET_FEATURES);
	struct vhp_vu_msg num = messages_good(VU_SET_VRING_NUM);

	gate_rig_clear(rig);
	for (int i = 0; i < 3; i++) {
		num.state.num = 1 << i;
		assert_int_equal(vhp_vu_send(fd, &num), 0);
		assert_int_equal(vhp_vu_send(fd, &get), 0);
	}
	gate_rig_run(rig);
	assert_string_equal(rig->trace, "baabaabaa");
	assert_int_equal(rig->n_relayed, 9);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rig->relayed[3 * i].state.num, 1 << i);
		assert_int_equal(rig->relayed[3 * i + 2].header.request, VU_GET_FEATURES);
	}
	for (int i = 0; i < 3; i++) {
		struct vhp_vu_msg answer;

		assert_int_equal(hear(fd, &answer), 1);
		assert_int_equal(answer.header.request, VU_GET_FEATURES);
	}
	check_silence(fd);
	close(fd);
}

/* ---- messages that do not -------------------------------------------------------- */

/* With an answer asked for: "no", and the connection lives. Without one: hung up on. */
static void
refused(void **state)
{
	struct gate_rig *rig = *state;

	for (const uint32_t *r = messages_known; *r != 0; r++) {
		const struct vhp_request_info *info = vhp_request_info(*r);

		for (int reply = 0; reply < 2; reply++) {
			struct vhp_vu_msg msg = messages_good(*r);
			int fd = gate_rig_connect(rig);
			uint64_t before = refusals(rig);

			gate_rig_clear(rig);
			/* The one fault that every request can have. */
			if (msg.n_fds == 0)
				msg.fds[msg.n_fds++] = messages_memfd(1);
			else
				close(msg.fds[--msg.n_fds]);
			if (reply)
				msg.header.flags |= VU_NEED_REPLY;
			say(rig, fd, &msg);
			assert_int_equal(rig->n_relayed, 0);
			assert_int_equal(refusals(rig), before + 1);
			if (reply && !info->replies) {
				assert_string_equal(rig->trace, "");
				check_answer(fd, *r, 1);
			} else {
				assert_string_equal(rig->trace, "d");
				check_hung_up(fd);
			}
			messages_close(&msg);
			close(fd);
			gate_rig_run(rig);
		}
	}
}

static void
unknown_request(void **state)
{
	struct gate_rig *rig = *state;

	for (int reply = 0; reply < 2; reply++) {
		struct vhp_vu_msg msg = {
			.header = {77, VU_VERSION | (reply ? VU_NEED_REPLY : 0), 16}};
		int fd = gate_rig_connect(rig);

		say(rig, fd, &msg);
		check_hung_up(fd);
		close(fd);
	}
	assert_int_equal(refusals(rig), 2);
}

static void
backend_refuses(void **state)
{
	struct gate_rig *rig = *state;
	struct vhp_vu_msg msg = messages_good(VU_SET_VRING_NUM);
	int fd = gate_rig_connect(rig);

	rig->mode = BACKEND_REFUSES;
	gate_rig_clear(rig);
	msg.header.flags |= VU_NEED_REPLY;
	say(rig, fd, &msg);
	assert_string_equal(rig->trace, "bf");
	check_answer(fd, VU_SET_VRING_NUM, 1);
	msg.header.flags &= ~VU_NEED_REPLY;
	say(rig, fd, &msg);
	assert_string_equal(rig->trace, "bfbfd");
	check_hung_up(fd);
	close(fd);
}

/* ---- ends ------------------------------------------------------------------------- */

/* The back end goes while each message is on its way. */
static void
backend_closes(void **state)
{
	struct gate_rig *rig = *state;

	for (const uint32_t *r = messages_known; *r != 0; r++) {
		struct vhp_vu_msg msg = messages_good(*r);
		int fd;

		if (*r == VU_GET_QUEUE_NUM)
			continue;
		rig->mode = BACKEND_GOOD;
		fd = gate_rig_connect(rig);
		rig->mode = BACKEND_CLOSES;
		gate_rig_clear(rig);
		say(rig, fd, &msg);
		assert_string_equal(rig->trace, vhp_request_info(*r)->changes ? "bd" : "d");
		check_hung_up(fd);
		messages_close(&msg);
		close(fd);
	}
}

/* The front end goes while its message is with the back end: noticed without an answer. */
static void
front_closes_while_waiting(void **state)
{
	struct gate_rig *rig = *state;
	struct vhp_vu_msg msg = messages_good(VU_SET_VRING_KICK);
	int fd = gate_rig_connect(rig);

	rig->mode = BACKEND_SILENT;
	gate_rig_clear(rig);
	say(rig, fd, &msg);
	assert_string_equal(rig->trace, "b");
	/* More of it is not read meanwhile. */
	assert_int_equal(vhp_vu_send(fd, &msg), 0);
	gate_rig_run(rig);
	assert_string_equal(rig->trace, "b");
	close(fd);
	gate_rig_run(rig);
	assert_string_equal(rig->trace, "bd");
	messages_close(&msg);
}

static void
second_front_end(void **state)
{
	struct gate_rig *rig = *state;
	struct vhp_vu_msg msg = messages_good(VU_GET_FEATURES);
	int first = gate_rig_connect(rig);
	int second = gate_rig_connect(rig);

	check_hung_up(second);
	close(second);
	say(rig, first, &msg);
	check_answer(first, VU_GET_FEATURES, 0x123456789abcdef0);
	/* The first has died, and nobody had the time to notice: the next is taken. */
	close(first);
	first = vhp_socket_connect(rig->path);
	gate_rig_clear(rig);
	gate_rig_run(rig);
	assert_string_equal(rig->trace, "dc");
	say(rig, first, &msg);
	check_answer(first, VU_GET_FEATURES, 0x123456789abcdef0);
	close(first);
}

/* Case M11: connected and gone, in each state of a message. */
static void
many_connections(void **state)
{
	struct gate_rig *rig = *state;
	struct vhp_vu_msg msg = messages_good(VU_SET_MEM_TABLE);
	unsigned int fds;

	gate_rig_run(rig);
	fds = messages_open_fds();
	for (int i = 0; i < 300; i++) {
		int fd = vhp_socket_connect(rig->path);

		assert_true(fd >= 0);
		if (i % 3 == 1)
			gate_rig_run(rig);
		if (i % 2 == 1)
			assert_int_equal(vhp_vu_send(fd, &msg), 0);
		else
			assert_int_equal(write(fd, &msg, i % 12), i % 12);
		if (i % 5 == 1)
			gate_rig_run(rig);
		close(fd);
		gate_rig_run(rig);
		assert_false(vhp_gate_connected(rig->gate));
	}
	assert_int_equal(messages_open_fds(), fds);
	messages_close(&msg);
}

static double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Case M1: half a message is waited for, but not for ever; a silent front end may stay. */
static void
half_a_message(void **state)
{
	struct gate_rig *rig = *state;
	struct vhp_vu_header header = {VU_SET_FEATURES, VU_VERSION, 8};
	struct pollfd pfd = {.fd = gate_rig_connect(rig), .events = POLLIN};
	double start;

	assert_int_equal(poll(&pfd, 1, 1300), 0);
	gate_rig_run(rig);
	check_silence(pfd.fd);
	assert_int_equal(write(pfd.fd, &header, sizeof(header)), sizeof(header));
	for (start = now_s(); poll(&pfd, 1, 10) == 0 && now_s() - start < 3;)
		gate_rig_run(rig);
	assert_true(now_s() - start > 0.9);
	assert_true(now_s() - start < 2.5);
	check_hung_up(pfd.fd);
	assert_int_equal(refusals(rig), 1);
	close(pfd.fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_message, setup, teardown),
		cmocka_unit_test_setup_teardown(messages_in_a_row, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_request, setup, teardown),
		cmocka_unit_test_setup_teardown(backend_refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(backend_closes, setup, teardown),
		cmocka_unit_test_setup_teardown(front_closes_while_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(second_front_end, setup, teardown),
		cmocka_unit_test_setup_teardown(many_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(half_a_message, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
