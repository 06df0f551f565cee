/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-hostile: messages that are not what they should be. */
#include "hostile.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Every request that the back end knows, and the size of its payload. */
static const struct {
	uint32_t request;
	uint32_t bytes;
} requests[] = {
	{FE_GET_FEATURES, 0},
	{FE_SET_FEATURES, 8},
	{FE_SET_OWNER, 0},
	{FE_RESET_OWNER, 0},
	{FE_SET_MEM_TABLE, 8 + 32},
	{FE_SET_LOG_BASE, 16},
	{FE_SET_VRING_NUM, 8},
	{FE_SET_VRING_ADDR, 40},
	{FE_SET_VRING_BASE, 8},
	{FE_GET_VRING_BASE, 8},
	{FE_SET_VRING_KICK, 8},
	{FE_SET_VRING_CALL, 8},
	{FE_SET_VRING_ERR, 8},
	{FE_GET_PROTOCOL_FEATURES, 0},
	{FE_SET_PROTOCOL_FEATURES, 8},
	{FE_GET_QUEUE_NUM, 0},
	{FE_SET_VRING_ENABLE, 8},
	{FE_SEND_RARP, 8},
	{FE_NET_SET_MTU, 8},
};

static int
wrong_size(struct ho_run *run)
{
	static const uint8_t zeros[FE_MSG_PAYLOAD_MAX];

	for (size_t i = 0; i < FE_ARRAY_SIZE(requests); i++) {
		uint32_t right = requests[i].bytes;
		const uint32_t sizes[] = {0, 1, right - 1, right + 1, right + 8, 1024, 1025, 4096};

		for (size_t k = 0; k < FE_ARRAY_SIZE(sizes); k++) {
			if (sizes[k] == right || sizes[k] > sizeof(zeros))
				continue;
			if (ho_refused_twice(run, requests[i].request, zeros, sizes[k], NULL, 0) !=
				0)
				return -EPROTO;
		}
	}
	return 0;
}

/* The header's size is a lie of 4 GiB. */
static int
huge_size(struct ho_run *run)
{
	const struct fe_msg_hdr h = {FE_SET_FEATURES, FE_MSG_VERSION, UINT32_MAX};

	return ho_must(run, "send", fe_send_raw(&run->net->conn, &h, sizeof(h), NULL, 0));
}

static int
part(struct ho_run *run, size_t bytes)
{
	struct {
		struct fe_msg_hdr hdr;
		struct fe_vring_addr addr;
	} m = {.hdr = {FE_SET_VRING_ADDR, FE_MSG_VERSION, sizeof(m.addr)}};
	uint64_t start = fe_now_us();
	int rc = fe_send_raw(&run->net->conn, &m, bytes, NULL, 0);

	/* Rings go on while the rest is awaited. */
	if (rc == 0 && ho_ping(run) != 0)
		return -EPROTO;
	if (rc == 0)
		rc = fe_wait_closed(&run->net->conn, 3000);
	if (rc == 0 && fe_now_us() - start < 500000)
		return fe_fault(&run->fault, "closed after %llu us: that is no time",
			(unsigned long long)(fe_now_us() - start));
	return ho_must(run, "half a message is waited for without end", rc);
}

static int
half_header(struct ho_run *run)
{
	return part(run, 6);
}

static int
half_payload(struct ho_run *run)
{
	return part(run, sizeof(struct fe_msg_hdr) + 20);
}

static int
dripped(struct ho_run *run, uint32_t pause_us, bool whole)
{
	struct {
		struct fe_msg_hdr hdr;
		struct fe_vring_state state;
	} m = {.hdr = {FE_SET_VRING_ENABLE, FE_MSG_VERSION | FE_MSG_NEED_REPLY, 8},
		.state = {1, 1}};
	struct fe_msg reply;

	for (size_t i = 0; i < sizeof(m); i++) {
		int rc = fe_send_raw(&run->net->conn, (uint8_t *)&m + i, 1, NULL, 0);

		if (rc == -ECONNRESET && !whole)
			return 0;
		if (rc != 0)
			return ho_must(run, "a byte", rc);
		usleep(pause_us);
	}
	if (!whole)
		return ho_must(run, "waits without end", fe_wait_closed(&run->net->conn, 3000));
	if (fe_recv(&run->net->conn, &reply, 2000) != 0 || reply.payload.u64 != 0)
		return fe_fault(&run->fault, "a message in single bytes was not carried out");
	return 0;
}

static int
single_bytes(struct ho_run *run)
{
	return dripped(run, 2000, true);
}

static int
slow_bytes(struct ho_run *run)
{
	return dripped(run, 150000, false);
}

/* Descriptors that come with the payload only, or with both halves. */
static int
late_fds(struct ho_run *run)
{
	struct {
		struct fe_msg_hdr hdr;
		uint64_t u64;
	} m = {.hdr = {FE_SET_VRING_CALL, FE_MSG_VERSION | FE_MSG_NEED_REPLY, 8}, .u64 = 1};
	const int fds[2] = {run->net->tx[0].ring.call_fd, run->net->tx[0].ring.call_fd};
	struct fe_conn *c = &run->net->conn;
	struct fe_msg reply;

	for (uint32_t first = 0; first < 2; first++) {
		int rc = fe_send_raw(c, &m.hdr, sizeof(m.hdr), fds, first);

		usleep(2000);
		if (rc == 0)
			rc = fe_send_raw(c, &m.u64, sizeof(m.u64), fds, 1);
		if (rc == 0)
			rc = fe_recv(c, &reply, c->timeout_ms);
		/* One may be taken; two are too many. */
		if (rc == -ECONNRESET ? ho_reopen(run) != 0 : rc != 0)
			return ho_must(run, "descriptors in the middle", rc);
		if (rc == 0 && first == 1 && reply.payload.u64 == 0)
			return fe_fault(&run->fault, "two descriptors for one ring accepted");
		if (ho_ping(run) != 0)
			return -EPROTO;
	}
	return 0;
}

static int
many_fds(struct ho_run *run)
{
	static const uint32_t counts[] = {2, 8, 9, 16, 17, FE_MSG_FDS_MAX};
	const struct fe_vring_state state = {1, 256};
	int fds[FE_MSG_FDS_MAX];
	int rc = 0;

	for (uint32_t i = 0; i < FE_MSG_FDS_MAX; i++)
		fds[i] = run->net->mem.r[0].fd;
	for (size_t i = 0; i < FE_ARRAY_SIZE(counts) && rc == 0; i++) {
		/* A new connection has new memory. */
		for (uint32_t k = 0; k < FE_MSG_FDS_MAX; k++)
			fds[k] = run->net->mem.r[0].fd;
		rc = ho_refused(run, FE_SET_VRING_NUM, FE_MSG_NEED_REPLY, &state, sizeof(state),
			fds, counts[i]);
	}
	return rc;
}

/* fe_send() adds the version bit, so these go out by hand. */
static int
flags_refused(struct ho_run *run, uint32_t request, uint32_t flags)
{
	const struct fe_msg_hdr h = {request, flags, 0};
	struct fe_msg reply;
	int rc = fe_send_raw(&run->net->conn, &h, sizeof(h), NULL, 0);

	if (rc == 0)
		rc = fe_recv(&run->net->conn, &reply, run->net->conn.timeout_ms);
	if (rc == 0)
		return fe_fault(&run->fault, "request %u, flags 0x%x: answered", request, flags);
	return rc == -ECONNRESET ? ho_reopen(run) : ho_must(run, "not refused", rc);
}

static int
wrong_version(struct ho_run *run)
{
	static const uint32_t flags[] = {0, 2, 3, 0xfffffff0, 0xfffffffe};

	for (size_t i = 0; i < FE_ARRAY_SIZE(flags); i++)
		if (flags_refused(run, FE_GET_FEATURES, flags[i]) != 0)
			return -EPROTO;
	return 0;
}

static int
reply_as_request(struct ho_run *run)
{
	for (size_t i = 0; i < FE_ARRAY_SIZE(requests); i++)
		if (requests[i].bytes == 0 &&
			flags_refused(run, requests[i].request, FE_MSG_VERSION | FE_MSG_REPLY) != 0)
			return -EPROTO;
	return 0;
}

static int
unknown_request(struct ho_run *run)
{
	static const uint32_t unknown[] = {0, FE_SET_LOG_FD, FE_SET_BACKEND_REQ_FD, FE_IOTLB_MSG,
		FE_SET_VRING_ENDIAN, FE_POSTCOPY_ADVISE, FE_VRING_KICK, FE_ADD_MEM_REG,
		FE_REQUEST_MAX, 47, 48, 49, 10000, 0x80000001, UINT32_MAX};
	static const uint8_t zeros[8];

	for (size_t i = 0; i < FE_ARRAY_SIZE(unknown); i++)
		if (ho_refused_twice(run, unknown[i], zeros, sizeof(zeros), NULL, 0) != 0)
			return -EPROTO;
	return 0;
}

/* M5: an index that only looks right when it is cut to 8 or 16 bits. */
static int
ring_index(struct ho_run *run)
{
	static const uint32_t index[] = {
		2, 3, 0x80, 0xff, 0x100, 0x101, 0x10000, 0x10001, 0x7fffffff, UINT32_MAX};
	static const uint32_t by_state[] = {
		FE_SET_VRING_NUM, FE_SET_VRING_BASE, FE_GET_VRING_BASE, FE_SET_VRING_ENABLE};

	for (size_t i = 0; i < FE_ARRAY_SIZE(index); i++) {
		struct fe_vring_addr addr = {.index = index[i]};

		for (size_t k = 0; k < FE_ARRAY_SIZE(by_state); k++) {
			struct fe_vring_state s = {index[i], by_state[k] == FE_SET_VRING_NUM};

			if (ho_refused_twice(run, by_state[k], &s, sizeof(s), NULL, 0) != 0)
				return -EPROTO;
		}
		if (ho_refused_twice(run, FE_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0) != 0)
			return -EPROTO;
	}
	return 0;
}

static int
ring_index_of_fd(struct ho_run *run)
{
	static const uint64_t index[] = {2, 0x80, 0xff, 0x100, 0x101, 0x200, 0x201, 0x10000,
		1ULL << 32, 1ULL << 63, UINT64_MAX};
	static const uint32_t by_fd[] = {FE_SET_VRING_KICK, FE_SET_VRING_CALL, FE_SET_VRING_ERR};
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int rc = 0;

	for (size_t i = 0; i < FE_ARRAY_SIZE(index) && rc == 0; i++)
		for (size_t k = 0; k < FE_ARRAY_SIZE(by_fd) && rc == 0; k++)
			rc = ho_refused_twice(run, by_fd[k], &index[i], sizeof(index[i]), &fd, 1);
	close(fd);
	return rc;
}

static int
ring_size(struct ho_run *run)
{
	/* Only a split ring's size must be a power of two (virtio 1.2, 2.7 and 2.8.10.1). */
	static const uint32_t sizes[] = {0, 32769, 65536, 0x10100, 1U << 31, UINT32_MAX, 3, 255};
	uint32_t n = FE_ARRAY_SIZE(sizes) - (run->packed ? 2 : 0);

	for (uint32_t i = 0; i < n; i++) {
		const struct fe_vring_state s = {1, sizes[i]};

		if (ho_refused_twice(run, FE_SET_VRING_NUM, &s, sizeof(s), NULL, 0) != 0)
			return -EPROTO;
	}
	return 0;
}

static int
enable_value(struct ho_run *run)
{
	static const uint32_t values[] = {2, 0x100, UINT32_MAX};

	for (size_t i = 0; i < FE_ARRAY_SIZE(values); i++) {
		const struct fe_vring_state s = {1, values[i]};

		if (ho_refused_twice(run, FE_SET_VRING_ENABLE, &s, sizeof(s), NULL, 0) != 0)
			return -EPROTO;
	}
	return 0;
}

/* M8; also the inflight region itself, which this back end does not offer. */
static int
inflight(struct ho_run *run)
{
	static const uint16_t queues[] = {0, 1, 257, 65535};
	int fd = run->net->mem.r[0].fd;

	for (size_t i = 0; i < FE_ARRAY_SIZE(queues); i++) {
		const struct fe_inflight_msg m = {4096, 0, queues[i], 256};

		fd = run->net->mem.r[0].fd;
		if (ho_refused_twice(run, FE_SET_INFLIGHT_FD, &m, sizeof(m), &fd, 1) != 0 ||
			ho_refused_twice(run, FE_GET_INFLIGHT_FD, &m, sizeof(m), NULL, 0) != 0)
			return -EPROTO;
	}
	return 0;
}

static int
features_not_offered(struct ho_run *run)
{
	const uint64_t all = UINT64_MAX, one = run->net->features | 1ULL << 63;

	if (ho_refused_twice(run, FE_SET_FEATURES, &all, sizeof(all), NULL, 0) != 0)
		return -EPROTO;
	return ho_refused_twice(run, FE_SET_FEATURES, &one, sizeof(one), NULL, 0);
}

static int
protocol_not_offered(struct ho_run *run)
{
	const uint64_t all = UINT64_MAX;

	return ho_refused_twice(run, FE_SET_PROTOCOL_FEATURES, &all, sizeof(all), NULL, 0);
}

/* M7 */
static int
log_bounds(struct ho_run *run)
{
	static const struct fe_log_msg logs[] = {{UINT64_MAX, 4096}, {4096, UINT64_MAX},
		{4096, UINT64_MAX - 4095}, {0, 0}, {1ULL << 63, 1ULL << 63}, {1ULL << 40, 0},
		{4096, 1ULL << 40}};

	for (size_t i = 0; i < FE_ARRAY_SIZE(logs); i++) {
		int fd = run->net->mem.r[0].fd;

		if (ho_refused(run, FE_SET_LOG_BASE, 0, &logs[i], sizeof(logs[i]), &fd, 1) != 0 ||
			ho_refused(run, FE_SET_LOG_BASE, 0, &logs[i], sizeof(logs[i]), NULL, 0) !=
				0)
			return -EPROTO;
	}
	return 0;
}

static int
odd_mtu(struct ho_run *run)
{
	static const uint64_t mtus[] = {0, 1, 67, 65536, 1ULL << 32, UINT64_MAX};

	for (size_t i = 0; i < FE_ARRAY_SIZE(mtus); i++) {
		int rc = fe_net_set_mtu(&run->net->conn, mtus[i]);

		if (rc != 0 && rc != -EREMOTEIO)
			return ho_must(run, "NET_SET_MTU", rc);
		if (ho_ping(run) != 0)
			return -EPROTO;
	}
	return 0;
}

const struct ho_case ho_msg_cases[] = {
	{"M1-half-header", "six bytes of a header, then silence", half_header, HO_CLOSED, HO_ONE,
		NULL, 0},
	{"M1-half-payload", "half a payload, then silence", half_payload, HO_CLOSED, 0, NULL, 0},
	{"M1-single-bytes", "a whole message in single bytes", single_bytes, HO_OPEN, 0, NULL, 0},
	{"M1-slow-bytes", "a message that takes 3 s", slow_bytes, HO_CLOSED, HO_ONE, NULL, 0},
	{"M3-wrong-size", "each request with payloads of other sizes", wrong_size, HO_OPEN, HO_ONE,
		NULL, 0},
	{"M3-huge-size", "payload of 4 GiB announced", huge_size, HO_CLOSED, HO_ONE, NULL, 0},
	{"M5-ring-index", "ring indices that look right when cut", ring_index, HO_OPEN, 0, NULL, 0},
	{"M5-ring-index-fd", "the same in KICK, CALL, ERR", ring_index_of_fd, HO_OPEN, HO_ONE, NULL,
		0},
	{"M7-log-bounds", "dirty log that wraps, is empty or larger than its file", log_bounds,
		HO_OPEN, HO_ONE, NULL, 0},
	{"M8-inflight", "inflight regions", inflight, HO_OPEN, HO_ONE, NULL, 0},
	{"msg-ring-size", "ring sizes that no ring has", ring_size, HO_OPEN, 0, NULL, 0},
	{"msg-enable-value", "ENABLE of 2 and more", enable_value, HO_OPEN, HO_ONE, NULL, 0},
	{"msg-version", "version 0, 2, 3 in the header", wrong_version, HO_OPEN, HO_ONE, NULL, 0},
	{"msg-reply", "replies sent as requests", reply_as_request, HO_OPEN, HO_ONE, NULL, 0},
	{"msg-unknown", "requests 0, 47, 10000 and others", unknown_request, HO_OPEN, HO_ONE, NULL,
		0},
	{"msg-late-fds", "descriptors in the middle of a message", late_fds, HO_OPEN, HO_ONE, NULL,
		0},
	{"msg-many-fds", "up to 64 descriptors with one message", many_fds, HO_OPEN, HO_ONE, NULL,
		0},
	{"msg-features", "virtio features that were not offered", features_not_offered, HO_OPEN, 0,
		NULL, 0},
	{"msg-protocol", "protocol features that were not offered", protocol_not_offered, HO_OPEN,
		HO_ONE, NULL, 0},
	{"msg-mtu", "MTUs that no link has", odd_mtu, HO_OPEN, HO_ONE, NULL, 0},
	{0},
};
