/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on a socket (gate_io.c): whole ones and pieces, descriptors that belong to them and
 * those that do not; after all of it as many descriptors are open as before.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "gate.h"
#include "messages.h"

/* Most that the kernel takes with one message. */
#define SCM_MAX 253

struct pair {
	int front, back;
	struct vhp_vu_reader reader;
	unsigned int fds; /**< open when it began */
};

static int
setup(void **state)
{
	static struct pair p;
	int fds[2];

	memset(&p, 0, sizeof(p));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	p.front = fds[0];
	p.back = fds[1];
	p.fds = messages_open_fds();
	*state = &p;
	return 0;
}

static int
teardown(void **state)
{
	struct pair *p = *state;

	vhp_vu_reader_reset(&p->reader);
	assert_int_equal(messages_open_fds(), p->fds);
	close(p->front);
	close(p->back);
	return 0;
}

/* Send bytes with n times the same descriptor. */
static void
send_bytes(const struct pair *p, const void *bytes, size_t len_bytes, int fd, unsigned int n)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * SCM_MAX)];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, len_bytes};
	struct msghdr hdr = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n > 0) {
		struct cmsghdr *c;

		hdr.msg_control = &control;
		hdr.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		c = CMSG_FIRSTHDR(&hdr);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		for (unsigned int i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	}
	assert_int_equal(sendmsg(p->front, &hdr, 0), len_bytes);
}

static int
read_on(struct pair *p)
{
	const char *why = NULL;
	int ret = vhp_vu_read(p->back, &p->reader, &why);

	/* There is a reason exactly when it failed. */
	if (ret < 0)
		assert_non_null(why);
	return ret;
}

/* The same file behind both descriptors? */
static bool
is_same(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

static void
check_got(const struct pair *p, const struct vhp_vu_msg *msg)
{
	assert_memory_equal(&p->reader.msg.header, &msg->header, sizeof(msg->header));
	if (msg->header.size > 0)
		assert_memory_equal(p->reader.msg.bytes, msg->bytes, msg->header.size);
	assert_int_equal(p->reader.msg.n_fds, msg->n_fds);
	for (unsigned int i = 0; i < msg->n_fds; i++)
		assert_true(is_same(p->reader.msg.fds[i], msg->fds[i]));
}

/* ---- whole messages and pieces ------------------------------------------------ */

static void
every_request(void **state)
{
	struct pair *p = *state;

	for (const uint32_t *r = messages_known; *r != 0; r++) {
		struct vhp_vu_msg msg = messages_good(*r);

		assert_int_equal(vhp_vu_send(p->front, &msg), 0);
		assert_int_equal(read_on(p), 1);
		check_got(p, &msg);
		/* Asked again it is the same message still. */
		assert_int_equal(read_on(p), 1);
		check_got(p, &msg);
		vhp_vu_reader_reset(&p->reader);
		assert_int_equal(read_on(p), 0);
		messages_close(&msg);
	}
}

/* Split at every byte, the descriptors with the first piece or with the second. */
static void
two_pieces(void **state)
{
	struct pair *p = *state;
	struct vhp_vu_msg msg = messages_good(VU_SET_VRING_KICK);
	uint8_t bytes[sizeof(msg.header) + sizeof(uint64_t)];

	memcpy(bytes, &msg.header, sizeof(msg.header));
	memcpy(bytes + sizeof(msg.header), msg.bytes, sizeof(uint64_t));
	for (size_t cut = 1; cut < sizeof(bytes); cut++) {
		for (int with = 0; with < 2; with++) {
			send_bytes(p, bytes, cut, msg.fds[0], with == 0);
			assert_int_equal(read_on(p), 0);
			assert_int_equal(p->reader.have_bytes, cut);
			send_bytes(p, bytes + cut, sizeof(bytes) - cut, msg.fds[0], with == 1);
			assert_int_equal(read_on(p), 1);
			check_got(p, &msg);
			vhp_vu_reader_reset(&p->reader);
		}
	}
	messages_close(&msg);
}

static void
byte_by_byte(void **state)
{
	struct pair *p = *state;
	struct vhp_vu_msg msg = messages_good(VU_SET_MEM_TABLE);
	const uint8_t *header = (const uint8_t *)&msg.header;
	size_t whole = sizeof(msg.header) + msg.header.size;

	for (size_t i = 0; i < whole; i++) {
		const uint8_t *byte =
			i < sizeof(msg.header) ? header + i : msg.bytes + i - sizeof(msg.header);

		/* Both descriptors, apart from each other. */
		send_bytes(p, byte, 1, msg.fds[i == 50], i == 3 || i == 50);
		assert_int_equal(read_on(p), i + 1 == whole);
	}
	check_got(p, &msg);
	messages_close(&msg);
}

/* Messages that arrive in one go are read one at a time, each with its own descriptors. */
static void
many_at_once(void **state)
{
	struct pair *p = *state;
	struct vhp_vu_msg msgs[40];

	for (size_t i = 0; i < RTE_DIM(msgs); i++) {
		msgs[i] = messages_good(messages_known[i % 19]);
		assert_int_equal(vhp_vu_send(p->front, &msgs[i]), 0);
	}
	for (size_t i = 0; i < RTE_DIM(msgs); i++) {
		assert_int_equal(read_on(p), 1);
		check_got(p, &msgs[i]);
		vhp_vu_reader_reset(&p->reader);
	}
	assert_int_equal(read_on(p), 0);
	for (size_t i = 0; i < RTE_DIM(msgs); i++)
		messages_close(&msgs[i]);
}

/* ---- what is refused before it is whole --------------------------------------- */

static void
payload_too_long(void **state)
{
	static const uint32_t sizes[] = {VU_MAX_PAYLOAD_BYTES + 1, 4096, 0x80000000, UINT32_MAX};
	struct pair *p = *state;

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		struct vhp_vu_header header = {VU_SET_OWNER, VU_VERSION, sizes[i]};

		send_bytes(p, &header, sizeof(header), p->front, i % 2);
		assert_int_equal(read_on(p), -EPROTO);
		vhp_vu_reader_reset(&p->reader);
	}
}

/* The longest that is let through is read as a whole, and not a byte past it. */
static void
longest_payload(void **state)
{
	struct pair *p = *state;
	struct {
		struct vhp_vu_header header;
		uint8_t bytes[VU_MAX_PAYLOAD_BYTES + 5];
	} sent = {.header = {VU_SET_OWNER, VU_VERSION, VU_MAX_PAYLOAD_BYTES}};
	struct {
		struct vhp_vu_reader reader;
		uint8_t behind[64];
	} guarded = {.behind = {1, 2, 3}};
	const char *why;
	char rest[64];

	for (size_t i = 0; i < sizeof(sent.bytes); i++)
		sent.bytes[i] = i * 7;
	send_bytes(p, &sent, sizeof(sent.header) + sizeof(sent.bytes), -1, 0);
	assert_int_equal(vhp_vu_read(p->back, &guarded.reader, &why), 1);
	assert_memory_equal(guarded.reader.msg.bytes, sent.bytes, VU_MAX_PAYLOAD_BYTES);
	assert_int_equal(guarded.reader.msg.n_fds, 0);
	assert_int_equal(guarded.behind[0], 1);
	assert_int_equal(recv(p->back, rest, sizeof(rest), MSG_DONTWAIT), 5);
}

/* Case M6: surplus descriptors, in one message or collected over its pieces. */
static void
surplus_descriptors(void **state)
{
	struct pair *p = *state;
	const struct vhp_vu_header header = {VU_SET_FEATURES, VU_VERSION, 8};
	const uint8_t *bytes = (const uint8_t *)&header;

	for (unsigned int n = 0; n <= SCM_MAX; n += n < 20 ? 1 : 29) {
		send_bytes(p, &header, sizeof(header), p->front, n);
		assert_int_equal(read_on(p), n <= VU_MAX_FDS ? 0 : -EPROTO);
		assert_int_equal(p->reader.msg.n_fds, RTE_MIN(n, (unsigned int)VU_MAX_FDS));
		vhp_vu_reader_reset(&p->reader);
		assert_int_equal(messages_open_fds(), p->fds);
	}
	/* Two with each byte: the fifth is too much. */
	for (int i = 0; i < 5; i++) {
		send_bytes(p, bytes + i, 1, p->front, 2);
		assert_int_equal(read_on(p), i < 4 ? 0 : -EPROTO);
	}
	assert_int_equal(p->reader.msg.n_fds, VU_MAX_FDS);
	vhp_vu_reader_reset(&p->reader);
	assert_int_equal(messages_open_fds(), p->fds);
}

/* Our own limit of descriptors is reached: refused, and nothing leaks. */
static void
no_more_descriptors(void **state)
{
	struct pair *p = *state;
	const struct vhp_vu_header header = {VU_SET_FEATURES, VU_VERSION, 0};
	struct rlimit saved, tight;
	int ret;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
	send_bytes(p, &header, sizeof(header), p->front, 6);
	tight = saved;
	tight.rlim_cur = p->fds + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	ret = read_on(p);
	setrlimit(RLIMIT_NOFILE, &saved);
	assert_int_equal(ret, -EPROTO);
	assert_in_range(p->reader.msg.n_fds, 0, 5);
}

/* Closed between messages, in a header, in a payload, with descriptors already here. */
static void
closed(void **state)
{
	struct pair *p = *state;
	const struct vhp_vu_header header = {VU_SET_FEATURES, VU_VERSION, 8};

	for (size_t sent = 0; sent <= sizeof(header); sent += 6) {
		int fds[2];
		struct pair q;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		q = (struct pair){.front = fds[0], .back = fds[1]};
		if (sent > 0)
			send_bytes(&q, &header, sent, p->front, 3);
		close(q.front);
		assert_int_equal(read_on(&q), -EPIPE);
		vhp_vu_reader_reset(&q.reader);
		close(q.back);
	}
}

/* ---- sending ------------------------------------------------------------------ */

static void
send_to_nobody(void **state)
{
	struct pair *p = *state;
	struct vhp_vu_msg msg = {.header = {VU_GET_FEATURES, VU_VERSION | VU_REPLY, 8}};
	int fds[2];
	int ret = 0;

	(void)p;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	/* Nobody reads: an error in the end, but never waiting. */
	for (int i = 0; i < 100000 && ret == 0; i++)
		ret = vhp_vu_send(fds[0], &msg);
	assert_true(ret == -EAGAIN || ret == -EMSGSIZE);
	close(fds[1]);
	assert_int_equal(vhp_vu_send(fds[0], &msg), -EPIPE);
	close(fds[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_request, setup, teardown),
		cmocka_unit_test_setup_teardown(two_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(byte_by_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(many_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(payload_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(longest_payload, setup, teardown),
		cmocka_unit_test_setup_teardown(surplus_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(no_more_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(closed, setup, teardown),
		cmocka_unit_test_setup_teardown(send_to_nobody, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
