/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The gate as a whole (lib/vhost_poll/gate.c and what it uses): the input is what front ends do
 * to its socket. Whatever that is, the device hears of it in order, the back end gets whole and
 * checked messages only, and in the end no descriptor is left over.
 *
 * Input: steps, each a byte that says what, and what that needs; see step().
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "checks.h"
#include "gate_rig.h"
#include "gate_socket.h"
#include "input.h"

#define MOST_STEPS  24
#define MOST_FDS    20
/* A message and its barrier come to rest within so many rounds of the loop. */
#define STEP_ROUNDS 16
#define END_ROUNDS  60

static struct gate_rig rig;
static int kinds[6];

static void
remove_dir(void)
{
	gate_rig_fini(&rig);
}

static void
set_up(void)
{
	if (rig.loop != NULL)
		return;
	gate_rig_init(&rig, false);
	atexit(remove_dir);
	kinds[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	kinds[1] = messages_memfd(0x20000);
	kinds[2] = messages_memfd(0x1000);
	kinds[3] = open("/dev/null", O_RDWR | O_CLOEXEC);
	kinds[4] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kinds[5] = messages_memfd(0x20000);
	gate_rig_rounds(&rig, END_ROUNDS);
}

/* Send bytes with n descriptors; that the gate has hung up, or is full, is no fault. */
static void
send_bytes(int fd, const void *bytes, size_t len_bytes, const int *fds, unsigned int n)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * MOST_FDS)];
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
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	}
	(void)!sendmsg(fd, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static unsigned int
pick_fds(struct input *in, int *fds)
{
	unsigned int n = input_u8(in) % (MOST_FDS + 1);

	for (unsigned int i = 0; i < n; i++)
		fds[i] = kinds[input_u8(in) % 6];
	return n;
}

/* A message whose size fits its payload, so that changed inputs stay near what is let through. */
static void
send_message(struct input *in, int front)
{
	struct vhp_vu_msg msg;
	int fds[MOST_FDS];
	unsigned int n;

	memset(&msg, 0, sizeof(msg));
	msg.header.request = input_u8(in);
	msg.header.flags = input_u8(in);
	n = pick_fds(in, fds);
	msg.header.size = input_u16(in) % (VU_MAX_PAYLOAD_BYTES + 1);
	input_bytes(in, msg.bytes, msg.header.size);
	send_bytes(front, &msg.header, sizeof(msg.header) + msg.header.size, fds, n);
}

/* Bytes as they are: half a message, two of them, or neither. */
static void
send_raw(struct input *in, int front)
{
	uint8_t bytes[256];
	int fds[MOST_FDS];
	unsigned int n = pick_fds(in, fds);
	size_t len = input_u8(in);

	input_bytes(in, bytes, len);
	if (len > 0)
		send_bytes(front, bytes, len, fds, n);
}

/* What the gate answers is read, so that it can go on answering. */
static void
read_answers(int front)
{
	struct vhp_vu_reader reader = {.have_bytes = 0};
	const char *why;

	while (vhp_vu_read(front, &reader, &why) > 0) {
		CHECK(reader.msg.header.flags == (VU_VERSION | VU_REPLY));
		CHECK(reader.msg.header.size == sizeof(uint64_t));
		CHECK(reader.msg.n_fds == 0);
		vhp_vu_reader_reset(&reader);
	}
	vhp_vu_reader_reset(&reader);
}

static void
step(struct input *in, int *front)
{
	switch (input_u8(in) % 8) {
	case 0:
	case 1:
	case 2:
		send_message(in, *front);
		break;
	case 3:
		send_raw(in, *front);
		break;
	case 4:
		rig.mode = input_u8(in) % 4;
		break;
	case 5:
		close(*front);
		if (input_u8(in) % 2)
			gate_rig_rounds(&rig, STEP_ROUNDS);
		*front = vhp_socket_connect(rig.path);
		CHECK(*front >= 0);
		break;
	case 6:
		read_answers(*front);
		break;
	default:
		gate_rig_rounds(&rig, input_u8(in) % STEP_ROUNDS + 1);
		return;
	}
	/* Some steps follow each other without the gate in between. */
	if (input_u8(in) % 4)
		gate_rig_rounds(&rig, STEP_ROUNDS);
}

/*
 * What the device may hear: connected, then before/after or after alone, then disconnected,
 * which may come in the place of an after.
 */
static void
check_trace(void)
{
	bool connected = false, before = false;

	for (unsigned int i = 0; i < rig.n_trace; i++) {
		switch (rig.trace[i]) {
		case 'c':
			CHECK(!connected);
			connected = true;
			break;
		case 'b':
			CHECK(connected && !before);
			before = true;
			break;
		case 'a':
		case 'f':
			CHECK(connected);
			before = false;
			break;
		case 'd':
			CHECK(connected);
			connected = before = false;
			break;
		}
	}
	if (rig.n_trace < sizeof(rig.trace) - 1)
		CHECK(!connected);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	unsigned int fds;
	int front;

	set_up();
	fds = messages_open_fds();
	gate_rig_clear(&rig);
	rig.mode = BACKEND_GOOD;
	front = vhp_socket_connect(rig.path);
	CHECK(front >= 0);
	for (int i = 0; i < MOST_STEPS && in.left > 0; i++)
		step(&in, &front);
	close(front);
	gate_rig_rounds(&rig, END_ROUNDS);
	CHECK(!vhp_gate_connected(rig.gate));
	check_trace();
	if (rig.taken_fd >= 0) {
		close(rig.taken_fd);
		rig.taken_fd = -1;
	}
	CHECK(messages_open_fds() == fds);
	return 0;
}
