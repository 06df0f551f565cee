/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed vhost-user requests; see fe_req.h. */
#include "fe_req.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fe_util.h"

#define CONFIG_MAX 256

/* 20 bytes by the specification; QEMU sends its structure with the padding behind it. */
#define INFLIGHT_MIN 20

static_assert(sizeof(struct fe_vring_addr) == 40, "vring address payload");
static_assert(sizeof(struct fe_region_msg) == 32, "memory region payload");
static_assert(sizeof(struct fe_crypto_session) == 632, "crypto session payload");

static int
get_u64(struct fe_conn *c, uint32_t request, uint64_t *v)
{
	struct fe_msg m;
	int rc = fe_call(c, request, NULL, 0, NULL, 0, &m);

	if (rc != 0)
		return rc;
	fe_msg_close_fds(&m);
	if (m.hdr.size != sizeof(*v))
		return -EBADMSG;
	*v = m.payload.u64;
	return 0;
}

static int
set_u64(struct fe_conn *c, uint32_t request, uint64_t v)
{
	return fe_set(c, request, &v, sizeof(v), NULL, 0);
}

static int
set_state(struct fe_conn *c, uint32_t request, uint32_t index, uint32_t num)
{
	struct fe_vring_state s = {.index = index, .num = num};

	return fe_set(c, request, &s, sizeof(s), NULL, 0);
}

int
fe_get_features(struct fe_conn *c, uint64_t *features)
{
	return get_u64(c, FE_GET_FEATURES, features);
}

int
fe_set_features(struct fe_conn *c, uint64_t features)
{
	return set_u64(c, FE_SET_FEATURES, features);
}

int
fe_get_protocol_features(struct fe_conn *c, uint64_t *features)
{
	return get_u64(c, FE_GET_PROTOCOL_FEATURES, features);
}

int
fe_set_protocol_features(struct fe_conn *c, uint64_t features)
{
	int rc = set_u64(c, FE_SET_PROTOCOL_FEATURES, features);

	if (rc == 0)
		c->proto = features;
	return rc;
}

int
fe_set_owner(struct fe_conn *c)
{
	return fe_set(c, FE_SET_OWNER, NULL, 0, NULL, 0);
}

int
fe_reset_owner(struct fe_conn *c)
{
	return fe_set(c, FE_RESET_OWNER, NULL, 0, NULL, 0);
}

int
fe_reset_device(struct fe_conn *c)
{
	return fe_set(c, FE_RESET_DEVICE, NULL, 0, NULL, 0);
}

int
fe_get_queue_num(struct fe_conn *c, uint64_t *queues)
{
	return get_u64(c, FE_GET_QUEUE_NUM, queues);
}

int
fe_set_mem_table(struct fe_conn *c, const struct fe_region_msg *r, const int *fds, uint32_t n)
{
	struct {
		uint32_t n;
		uint32_t padding;
		struct fe_region_msg r[FE_REGIONS_MAX];
	} m = {.n = n};

	if (n > FE_REGIONS_MAX)
		return -EINVAL;
	memcpy(m.r, r, n * sizeof(*r));
	return fe_set(c, FE_SET_MEM_TABLE, &m, (uint32_t)(8 + n * sizeof(*r)), fds, n);
}

int
fe_add_mem_reg(struct fe_conn *c, const struct fe_region_msg *r, int fd)
{
	struct {
		uint64_t padding;
		struct fe_region_msg r;
	} m = {.r = *r};

	return fe_set(c, FE_ADD_MEM_REG, &m, sizeof(m), &fd, 1);
}

int
fe_rem_mem_reg(struct fe_conn *c, const struct fe_region_msg *r)
{
	struct {
		uint64_t padding;
		struct fe_region_msg r;
	} m = {.r = *r};

	return fe_set(c, FE_REM_MEM_REG, &m, sizeof(m), NULL, 0);
}

int
fe_get_max_mem_slots(struct fe_conn *c, uint64_t *slots)
{
	return get_u64(c, FE_GET_MAX_MEM_SLOTS, slots);
}

int
fe_set_log_base(struct fe_conn *c, const struct fe_log_msg *log, int fd)
{
	struct fe_msg m;
	int rc = fe_call(c, FE_SET_LOG_BASE, log, sizeof(*log), &fd, 1, &m);

	if (rc == 0)
		fe_msg_close_fds(&m);
	return rc;
}

int
fe_set_log_fd(struct fe_conn *c, int fd)
{
	return fe_set(c, FE_SET_LOG_FD, NULL, 0, &fd, fd >= 0 ? 1 : 0);
}

int
fe_set_vring_num(struct fe_conn *c, uint32_t index, uint32_t num)
{
	return set_state(c, FE_SET_VRING_NUM, index, num);
}

int
fe_set_vring_addr(struct fe_conn *c, const struct fe_vring_addr *a)
{
	return fe_set(c, FE_SET_VRING_ADDR, a, sizeof(*a), NULL, 0);
}

int
fe_set_vring_base(struct fe_conn *c, uint32_t index, uint32_t base)
{
	return set_state(c, FE_SET_VRING_BASE, index, base);
}

int
fe_get_vring_base(struct fe_conn *c, uint32_t index, uint32_t *base)
{
	struct fe_vring_state s = {.index = index};
	struct fe_msg m;
	int rc = fe_call(c, FE_GET_VRING_BASE, &s, sizeof(s), NULL, 0, &m);

	if (rc != 0)
		return rc;
	fe_msg_close_fds(&m);
	if (m.hdr.size != sizeof(s))
		return -EBADMSG;
	memcpy(&s, &m.payload, sizeof(s));
	if (s.index != index)
		return -EBADMSG;
	*base = s.num;
	return 0;
}

int
fe_set_vring_enable(struct fe_conn *c, uint32_t index, uint32_t enable)
{
	return set_state(c, FE_SET_VRING_ENABLE, index, enable);
}

int
fe_set_vring_endian(struct fe_conn *c, uint32_t index, uint32_t big)
{
	return set_state(c, FE_SET_VRING_ENDIAN, index, big);
}

int
fe_set_vring_fd(struct fe_conn *c, uint32_t request, uint64_t index, int fd)
{
	uint64_t v = fd >= 0 ? index : index | FE_VRING_NOFD;

	return fe_set(c, request, &v, sizeof(v), &fd, fd >= 0 ? 1 : 0);
}

int
fe_vring_kick(struct fe_conn *c, uint32_t index)
{
	return set_state(c, FE_VRING_KICK, index, 0);
}

int
fe_send_rarp(struct fe_conn *c, const uint8_t *mac)
{
	uint64_t v = 0;

	memcpy(&v, mac, 6);
	return set_u64(c, FE_SEND_RARP, v);
}

int
fe_net_set_mtu(struct fe_conn *c, uint64_t mtu)
{
	return set_u64(c, FE_NET_SET_MTU, mtu);
}

int
fe_set_backend_req_fd(struct fe_conn *c, int fd)
{
	return fe_set(c, FE_SET_BACKEND_REQ_FD, NULL, 0, &fd, 1);
}

int
fe_set_status(struct fe_conn *c, uint64_t status)
{
	return set_u64(c, FE_SET_STATUS, status);
}

int
fe_get_status(struct fe_conn *c, uint64_t *status)
{
	return get_u64(c, FE_GET_STATUS, status);
}

struct config_msg {
	uint32_t offset;
	uint32_t size;
	uint32_t flags;
	uint8_t data[CONFIG_MAX];
};

int
fe_get_config(struct fe_conn *c, uint32_t offset, uint32_t bytes, void *data)
{
	struct config_msg q = {.offset = offset, .size = bytes};
	struct fe_msg m;
	int rc;

	if (bytes > CONFIG_MAX)
		return -EINVAL;
	rc = fe_call(c, FE_GET_CONFIG, &q, 12 + bytes, NULL, 0, &m);
	if (rc != 0)
		return rc;
	fe_msg_close_fds(&m);
	if (m.hdr.size != 12 + bytes)
		return -EBADMSG;
	memcpy(data, m.payload.bytes + 12, bytes);
	return 0;
}

int
fe_set_config(struct fe_conn *c, uint32_t offset, uint32_t flags, const void *data, uint32_t bytes)
{
	struct config_msg q = {.offset = offset, .size = bytes, .flags = flags};

	if (bytes > CONFIG_MAX)
		return -EINVAL;
	memcpy(q.data, data, bytes);
	return fe_set(c, FE_SET_CONFIG, &q, 12 + bytes, NULL, 0);
}

int
fe_get_inflight_fd(
	struct fe_conn *c, const struct fe_inflight_msg *want, struct fe_inflight_msg *got, int *fd)
{
	struct fe_msg m;
	int rc = fe_call(c, FE_GET_INFLIGHT_FD, want, sizeof(*want), NULL, 0, &m);

	if (rc != 0)
		return rc;
	if (m.hdr.size < INFLIGHT_MIN || m.nfds != 1) {
		fe_msg_close_fds(&m);
		return -EBADMSG;
	}
	memcpy(got, &m.payload, INFLIGHT_MIN);
	*fd = m.fds[0];
	return 0;
}

int
fe_set_inflight_fd(struct fe_conn *c, const struct fe_inflight_msg *m, int fd)
{
	return fe_set(c, FE_SET_INFLIGHT_FD, m, sizeof(*m), &fd, fd >= 0 ? 1 : 0);
}

int
fe_create_crypto_session(struct fe_conn *c, struct fe_crypto_session *s)
{
	struct fe_msg m;
	int rc = fe_call(c, FE_CREATE_CRYPTO_SESSION, s, sizeof(*s), NULL, 0, &m);

	if (rc != 0)
		return rc;
	fe_msg_close_fds(&m);
	if (m.hdr.size < sizeof(s->session_id))
		return -EBADMSG;
	memcpy(&s->session_id, &m.payload, sizeof(s->session_id));
	return 0;
}

int
fe_close_crypto_session(struct fe_conn *c, uint64_t session_id)
{
	return set_u64(c, FE_CLOSE_CRYPTO_SESSION, session_id);
}

int
fe_sync(struct fe_conn *c)
{
	uint64_t features;

	return fe_get_features(c, &features);
}

const char *
fe_request_name(uint32_t request)
{
	static const char *const names[] = {
		[FE_GET_FEATURES] = "GET_FEATURES",
		[FE_SET_FEATURES] = "SET_FEATURES",
		[FE_SET_OWNER] = "SET_OWNER",
		[FE_RESET_OWNER] = "RESET_OWNER",
		[FE_SET_MEM_TABLE] = "SET_MEM_TABLE",
		[FE_SET_LOG_BASE] = "SET_LOG_BASE",
		[FE_SET_LOG_FD] = "SET_LOG_FD",
		[FE_SET_VRING_NUM] = "SET_VRING_NUM",
		[FE_SET_VRING_ADDR] = "SET_VRING_ADDR",
		[FE_SET_VRING_BASE] = "SET_VRING_BASE",
		[FE_GET_VRING_BASE] = "GET_VRING_BASE",
		[FE_SET_VRING_KICK] = "SET_VRING_KICK",
		[FE_SET_VRING_CALL] = "SET_VRING_CALL",
		[FE_SET_VRING_ERR] = "SET_VRING_ERR",
		[FE_GET_PROTOCOL_FEATURES] = "GET_PROTOCOL_FEATURES",
		[FE_SET_PROTOCOL_FEATURES] = "SET_PROTOCOL_FEATURES",
		[FE_GET_QUEUE_NUM] = "GET_QUEUE_NUM",
		[FE_SET_VRING_ENABLE] = "SET_VRING_ENABLE",
		[FE_SEND_RARP] = "SEND_RARP",
		[FE_NET_SET_MTU] = "NET_SET_MTU",
		[FE_SET_BACKEND_REQ_FD] = "SET_BACKEND_REQ_FD",
		[FE_IOTLB_MSG] = "IOTLB_MSG",
		[FE_SET_VRING_ENDIAN] = "SET_VRING_ENDIAN",
		[FE_GET_CONFIG] = "GET_CONFIG",
		[FE_SET_CONFIG] = "SET_CONFIG",
		[FE_CREATE_CRYPTO_SESSION] = "CREATE_CRYPTO_SESSION",
		[FE_CLOSE_CRYPTO_SESSION] = "CLOSE_CRYPTO_SESSION",
		[FE_POSTCOPY_ADVISE] = "POSTCOPY_ADVISE",
		[FE_POSTCOPY_LISTEN] = "POSTCOPY_LISTEN",
		[FE_POSTCOPY_END] = "POSTCOPY_END",
		[FE_GET_INFLIGHT_FD] = "GET_INFLIGHT_FD",
		[FE_SET_INFLIGHT_FD] = "SET_INFLIGHT_FD",
		[FE_GPU_SET_SOCKET] = "GPU_SET_SOCKET",
		[FE_RESET_DEVICE] = "RESET_DEVICE",
		[FE_VRING_KICK] = "VRING_KICK",
		[FE_GET_MAX_MEM_SLOTS] = "GET_MAX_MEM_SLOTS",
		[FE_ADD_MEM_REG] = "ADD_MEM_REG",
		[FE_REM_MEM_REG] = "REM_MEM_REG",
		[FE_SET_STATUS] = "SET_STATUS",
		[FE_GET_STATUS] = "GET_STATUS",
	};

	if (request >= FE_ARRAY_SIZE(names) || names[request] == NULL)
		return "?";
	return names[request];
}
