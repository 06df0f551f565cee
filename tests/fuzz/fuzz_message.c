/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks of whole messages (lib/vhost_poll/gate_check.c): what passes them must keep every
 * rule that the code behind relies on, looked at once more in another way.
 *
 * Input: number of rings, number and kinds of descriptors, header, payload.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checks.h"
#include "gate.h"
#include "input.h"
#include "messages.h"

#define SMALL_BYTES 0x1800
#define LARGE_BYTES 0x20000

/* One of each kind, open all the time. */
static int kinds[8];

static void
open_kinds(void)
{
	if (kinds[0] != 0)
		return;
	kinds[0] = messages_memfd(SMALL_BYTES);
	kinds[1] = messages_memfd(LARGE_BYTES);
	kinds[2] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	kinds[3] = open("/dev/null", O_RDWR | O_CLOEXEC);
	kinds[4] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kinds[5] = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	kinds[6] = messages_memfd(0);
	kinds[7] = -1;
	for (int i = 0; i < 7; i++)
		CHECK(kinds[i] >= 0);
}

static uint64_t
file_bytes(int fd)
{
	struct stat st;

	CHECK(fstat(fd, &st) == 0);
	CHECK(S_ISREG(st.st_mode));
	return (uint64_t)st.st_size;
}

/* Sums in 128 bits cannot wrap. */
typedef unsigned __int128 u128;

static void
check_disjoint(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	CHECK((u128)a + a_bytes <= b || (u128)b + b_bytes <= a);
}

static void
check_mem(const struct vhp_vu_msg *msg)
{
	uint32_t n = msg->mem.n_regions;

	CHECK(n >= 1 && n <= VHP_MEM_MAX_REGIONS);
	CHECK(msg->n_fds == n);
	CHECK(msg->header.size == 8 + 32 * n);
	for (uint32_t i = 0; i < n; i++) {
		const struct vhp_vu_region *r = &msg->mem.regions[i];

		CHECK(r->size_bytes > 0);
		CHECK((u128)r->gpa + r->size_bytes <= UINT64_MAX);
		CHECK((u128)r->user_addr + r->size_bytes <= UINT64_MAX);
		CHECK((u128)r->mmap_offset + r->size_bytes <= file_bytes(msg->fds[i]));
		for (uint32_t j = 0; j < i; j++) {
			const struct vhp_vu_region *o = &msg->mem.regions[j];

			check_disjoint(r->gpa, r->size_bytes, o->gpa, o->size_bytes);
			check_disjoint(r->user_addr, r->size_bytes, o->user_addr, o->size_bytes);
		}
	}
}

static void
check_payload(const struct vhp_vu_msg *msg)
{
	switch (msg->header.request) {
	case VU_SET_MEM_TABLE:
		check_mem(msg);
		break;
	case VU_SET_LOG_BASE:
		CHECK(msg->n_fds == 1);
		CHECK(msg->log.size_bytes > 0);
		CHECK((u128)msg->log.offset + msg->log.size_bytes <= file_bytes(msg->fds[0]));
		break;
	case VU_SET_VRING_NUM:
		CHECK(msg->state.num >= 1 && msg->state.num <= 32768);
		break;
	case VU_SET_VRING_ENABLE:
		CHECK(msg->state.num <= 1);
		break;
	case VU_SET_VRING_KICK:
	case VU_SET_VRING_CALL:
	case VU_SET_VRING_ERR:
		CHECK(msg->n_fds == !(msg->u64 & VU_RING_NO_FD));
		CHECK(msg->u64 < 0x200);
		break;
	default:
		CHECK(msg->n_fds == 0);
	}
}

static void
check_passed(const struct vhp_vu_msg *msg, uint16_t n_rings)
{
	const struct vhp_request_info *info = vhp_request_info(msg->header.request);
	int index = vhp_gate_ring_index(msg);

	CHECK(info->name != NULL);
	CHECK(vhp_gate_check_header(&msg->header) == NULL);
	CHECK((msg->header.flags & (VU_VERSION_MASK | VU_REPLY)) == VU_VERSION);
	CHECK(msg->header.size <= VU_MAX_PAYLOAD_BYTES);
	CHECK(index >= -1 && index < n_rings);
	CHECK((index >= 0) ==
		(info->payload == VHP_PAYLOAD_STATE || info->payload == VHP_PAYLOAD_ADDR ||
			info->payload == VHP_PAYLOAD_FILE));
	if (index >= 0)
		CHECK((uint32_t)index == (msg->state.index & ~VU_RING_NO_FD));
	check_payload(msg);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input in = {bytes, size};
	struct vhp_vu_msg msg;
	uint16_t n_rings;

	open_kinds();
	memset(&msg, 0, sizeof(msg));
	n_rings = 1 + input_u8(&in);
	msg.n_fds = input_u8(&in) % (VU_MAX_FDS + 1);
	for (unsigned int i = 0; i < msg.n_fds; i++)
		msg.fds[i] = kinds[input_u8(&in) % 8];
	input_bytes(&in, &msg.header, sizeof(msg.header));
	input_bytes(&in, msg.bytes, sizeof(msg.bytes));
	if (vhp_gate_check(&msg, n_rings) == NULL)
		check_passed(&msg, n_rings);
	return 0;
}
