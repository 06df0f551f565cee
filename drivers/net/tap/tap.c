/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tap as a host port: frames go by writev and readv between the kernel and guest
 * memory, with one copy; the kernel checks the virtio-net header. Bursts go through
 * io_uring (tap_uring.c) where the kernel lets us.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/virtio_net.h>

#include <rte_branch_prediction.h>

#include "log.h"
#include "tap_priv.h"

/* A deleted interface is looked for so often. */
#define REVIVE_S 1

/* What became of a frame when the kernel said no; VHP_OK: offer it again later. */
static enum vhp_drop
judge_error(struct tap_queue *q, int error)
{
	switch (error) {
	case EAGAIN:
		q->pq.wait = VHP_PORT_FULL;
		return VHP_OK;
	case EBADFD:
		__atomic_store_n(&q->gone, true, __ATOMIC_RELAXED);
		q->pq.wait = VHP_PORT_DOWN;
		return VHP_OK;
	case EINVAL:
	case EMSGSIZE:
	case E2BIG:
		return VHP_DROP_HEADER;
	case EFAULT:
		q->pq.wait = VHP_PORT_MEMORY;
		return VHP_DROP_CHAIN_ADDRESS;
	default:
		/* EIO: link down. ENOMEM, ENOBUFS: passes; waiting a little is right as well. */
		q->pq.wait = VHP_PORT_DOWN;
		return VHP_OK;
	}
}

/*
 * hdr_len is a hint for the device (virtio 1.2, 5.1.6.2.1), but the kernel refuses a frame
 * whose hint is longer than itself. Send such a frame with a hint that fits, from a copy of its
 * header, as the original is the guest's.
 */
static bool
resend_with_sane_hint(struct tap_queue *q, const struct vhp_frame *f)
{
	uint8_t copy[VHP_MAX_HDR_BYTES];
	struct virtio_net_hdr hdr;
	struct iovec iov[VHP_MAX_IOV + 1] = {{copy, q->pq.hdr_bytes}};
	uint32_t payload_bytes = f->len_bytes - q->pq.hdr_bytes;
	size_t done = 0;
	int n = 1;

	for (uint16_t i = 0; i < f->n_iov; i++) {
		size_t len = RTE_MIN(f->iov[i].iov_len, q->pq.hdr_bytes - done);

		memcpy(copy + done, f->iov[i].iov_base, len);
		done += len;
		if (f->iov[i].iov_len > len)
			iov[n++] = (struct iovec){
				(uint8_t *)f->iov[i].iov_base + len, f->iov[i].iov_len - len};
	}
	memcpy(&hdr, copy, sizeof(hdr));
	if (hdr.hdr_len <= payload_bytes || n > VHP_MAX_IOV)
		return false;
	hdr.hdr_len = 0;
	memcpy(copy, &hdr, sizeof(hdr));
	return writev(q->pq.fd, iov, n) > 0;
}

/*
 * The C library's functions of these names are points of cancellation, which in a program of
 * several threads costs some per cent of a small frame.
 */
static inline ssize_t
read_frame(int fd, const struct vhp_frame *f)
{
	return syscall(SYS_readv, fd, f->iov, f->n_iov);
}

/* A frame in one piece costs the kernel less without a list of pieces. */
static inline ssize_t
write_frame(int fd, const struct vhp_frame *f)
{
	if (f->n_iov == 1)
		return syscall(SYS_write, fd, f->iov->iov_base, f->iov->iov_len);
	return syscall(SYS_writev, fd, f->iov, f->n_iov);
}

static uint16_t
tx_writev(struct tap_queue *q, struct vhp_frame *frames, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++) {
		struct vhp_frame *f = &frames[i];

		if (unlikely(f->drop != VHP_OK))
			continue;
		if (likely(write_frame(q->pq.fd, f) >= 0))
			continue;
		f->drop = judge_error(q, errno);
		if (f->drop == VHP_DROP_HEADER && resend_with_sane_hint(q, f))
			f->drop = VHP_OK;
		else if (f->drop == VHP_OK)
			break;
	}
	return i;
}

static bool
any_sent(const int *results, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		if (results[i] > 0)
			return true;
	return false;
}

static uint16_t
tx_uring(struct tap_queue *q, struct vhp_frame *frames, uint16_t n)
{
	int results[VHP_BURST_PKTS];

	tap_uring_tx(q, frames, n, results);
	for (uint16_t i = 0; i < n; i++) {
		struct vhp_frame *f = &frames[i];

		if (likely(results[i] >= 0))
			continue;
		f->drop = judge_error(q, -results[i]);
		if (f->drop == VHP_DROP_HEADER && resend_with_sane_hint(q, f)) {
			f->drop = VHP_OK;
			continue;
		}
		if (f->drop != VHP_OK)
			continue;
		if (!any_sent(results + i + 1, n - i - 1))
			return i;
		/* It cannot wait: frames behind it are out. One more try, out of order. */
		if (write_frame(q->pq.fd, f) < 0)
			f->drop = VHP_DROP_PORT;
		q->pq.wait = VHP_PORT_READY;
	}
	return n;
}

/* Is there an io_uring to use? One system call for a single frame is as good without. */
static bool
use_uring(struct tap_queue *q)
{
	return q->uring != NULL && tap_uring_current(q);
}

static uint16_t
tap_tx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct tap_queue *q = container_of(pq, struct tap_queue, pq);
	const struct tap_port *tap = container_of(pq->port, struct tap_port, port);

	/* With a limit on bytes in flight the kernel may refuse one and take the next. */
	if (n > 1 && tap->conf.sndbuf_bytes == 0 && use_uring(q))
		return tx_uring(q, frames, n);
	return tx_writev(q, frames, n);
}

static uint16_t
tap_rx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n)
{
	struct tap_queue *q = container_of(pq, struct tap_queue, pq);
	bool uring = use_uring(q);
	uint16_t i;

	if (uring && !tap_uring_readable(q))
		return 0;
	for (i = 0; i < n; i++) {
		ssize_t len = read_frame(pq->fd, &frames[i]);

		if (len < 0) {
			if (unlikely(errno != EAGAIN))
				judge_error(q, errno);
			else if (uring)
				tap_uring_drained(q);
			break;
		}
		frames[i].len_bytes = len;
	}
	return i;
}

static int
tap_configure(struct vhp_port_queue *pq, uint64_t virtio_features)
{
	struct tap_port *tap = container_of(pq->port, struct tap_port, port);
	struct tap_queue *q = container_of(pq, struct tap_queue, pq);
	int ret = tap_if_configure(pq->fd, pq->hdr_bytes, virtio_features);
	unsigned int before = q->offloads;

	tap->virtio_features = virtio_features;
	if (ret < 0)
		/* Of a deleted interface: set when it comes back. */
		return ret == -EBADFD ? 0 : ret;
	q->offloads = ret;
	/* Frames that wait may need an offload that this guest did not accept. */
	return before & ~q->offloads ? tap_if_discard(pq->fd) : 0;
}

static int
tap_steer(struct vhp_port_queue *pq, bool on)
{
	struct tap_port *tap = container_of(pq->port, struct tap_port, port);
	struct tap_queue *q = container_of(pq, struct tap_queue, pq);
	int ret;

	if (tap->port.n_queues == 1 || q->detached == !on)
		return 0;
	ret = tap_if_steer(pq->fd, on);
	if (ret == 0)
		q->detached = !on;
	return ret == -EBADFD ? 0 : ret;
}

static int
tap_set_mtu(struct vhp_port *port, uint16_t mtu_bytes)
{
	const struct tap_port *tap = container_of(port, struct tap_port, port);

	return tap_if_set_mtu(tap->iface, mtu_bytes);
}

static uint64_t
features(const struct vhp_tap_conf *conf, bool has_uso)
{
	if (!conf->offload)
		return 0;
	return 1ULL << VIRTIO_NET_F_CSUM | 1ULL << VIRTIO_NET_F_GUEST_CSUM |
	       1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6 |
	       1ULL << VIRTIO_NET_F_HOST_ECN | 1ULL << VIRTIO_NET_F_GUEST_TSO4 |
	       1ULL << VIRTIO_NET_F_GUEST_TSO6 | 1ULL << VIRTIO_NET_F_GUEST_ECN |
	       1ULL << VIRTIO_NET_F_GUEST_UFO | 1ULL << VIRTIO_NET_F_HOST_UFO |
	       (has_uso ? VHP_NET_F_USO : 0);
}

uint64_t
vhp_tap_features(const struct vhp_tap_conf *conf)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		struct vhp_tap_conf probe = {.queues = 1};
		char iface[IFNAMSIZ] = "";
		int fd = unshare(CLONE_NEWNET) < 0 ? -1 : tap_if_open(&probe, iface);

		_exit(fd >= 0 && tap_if_has_uso(fd));
	}
	return features(conf, child > 0 && waitpid(child, &status, 0) == child &&
				      WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static uint64_t
tap_features(const struct vhp_port *port)
{
	const struct tap_port *tap = container_of(port, struct tap_port, port);

	return features(&tap->conf, tap->has_uso);
}

static void
tap_close(struct vhp_port *port)
{
	struct tap_port *tap = container_of(port, struct tap_port, port);

	if (tap->timer_fd >= 0) {
		vhp_loop_unwatch(tap->loop, tap->timer_fd);
		close(tap->timer_fd);
	}
	for (uint16_t i = 0; tap->queues != NULL && i < port->n_queues; i++) {
		tap_uring_close(&tap->queues[i]);
		if (tap->queues[i].pq.fd >= 0)
			close(tap->queues[i].pq.fd);
	}
	free(port->queues);
	free(tap->queues);
	free(tap);
}

static const struct vhp_port_ops tap_ops = {
	.tx = tap_tx,
	.rx = tap_rx,
	.configure = tap_configure,
	.steer = tap_steer,
	.set_mtu = tap_set_mtu,
	.features = tap_features,
	.close = tap_close,
};

/*
 * An interface that was deleted and made again by the administrator: attach to the new
 * one behind the same descriptor number, under the poller's hands.
 */
static void
revive(struct tap_port *tap, struct tap_queue *q)
{
	char iface[IFNAMSIZ];
	int fd;

	if (if_nametoindex(tap->iface) == 0)
		return;
	memcpy(iface, tap->iface, sizeof(iface));
	fd = tap_if_open(&tap->conf, iface);
	if (fd < 0)
		return;
	if (tap_if_configure(fd, q->pq.hdr_bytes, tap->virtio_features) >= 0 &&
		tap_if_setup(&tap->conf, iface, fd) == 0 && dup2(fd, q->pq.fd) >= 0) {
		__atomic_store_n(&q->generation, q->generation + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&q->gone, false, __ATOMIC_RELAXED);
		VHP_LOG(NOTICE, "%s: interface %s is back", tap->port.name, tap->iface);
	}
	close(fd);
}

static void
timer_ready(void *ctx, uint32_t events)
{
	struct tap_port *tap = ctx;
	uint64_t expirations;

	(void)events;
	if (read(tap->timer_fd, &expirations, sizeof(expirations)) < 0)
		return;
	for (uint16_t i = 0; i < tap->port.n_queues; i++)
		if (__atomic_load_n(&tap->queues[i].gone, __ATOMIC_RELAXED))
			revive(tap, &tap->queues[i]);
}

static int
start_timer(struct tap_port *tap)
{
	struct itimerspec ts = {.it_interval = {REVIVE_S, 0}, .it_value = {REVIVE_S, 0}};

	tap->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (tap->timer_fd < 0 || timerfd_settime(tap->timer_fd, 0, &ts, NULL) < 0)
		return -errno;
	return vhp_loop_watch(tap->loop, tap->timer_fd, EPOLLIN, timer_ready, tap);
}

static int
open_queues(struct tap_port *tap)
{
	uint16_t n = tap->conf.queues;

	tap->queues = calloc(n, sizeof(tap->queues[0]));
	tap->port.queues = calloc(n, sizeof(tap->port.queues[0]));
	if (tap->queues == NULL || tap->port.queues == NULL)
		return -ENOMEM;
	tap->port.n_queues = n;
	for (uint16_t i = 0; i < n; i++)
		tap->queues[i].pq = (struct vhp_port_queue){.port = &tap->port, .fd = -1};
	for (uint16_t i = 0; i < n; i++) {
		struct vhp_port_queue *pq = &tap->queues[i].pq;

		tap->port.queues[i] = pq;
		pq->fd = tap_if_open_patiently(&tap->conf, tap->iface);
		if (pq->fd < 0)
			return pq->fd;
	}
	tap->has_uso = tap_if_has_uso(tap->queues[0].pq.fd);
	return tap_if_setup(&tap->conf, tap->iface, tap->queues[0].pq.fd);
}

/* The daemon works without, more slowly; say so once. */
static void
open_urings(struct tap_port *tap)
{
	for (uint16_t i = 0; i < tap->port.n_queues; i++) {
		int ret = tap_uring_open(&tap->queues[i]);

		if (ret == 0)
			continue;
		VHP_LOG(NOTICE, "%s: no io_uring (%s): a system call for each frame",
			tap->port.name, strerror(-ret));
		return;
	}
}

int
vhp_tap_open(struct vhp_loop *loop, const struct vhp_tap_conf *conf, struct vhp_port **out)
{
	struct tap_port *tap = calloc(1, sizeof(*tap));
	int ret;

	if (tap == NULL)
		return -ENOMEM;
	memcpy(tap->port.name, conf->name, sizeof(tap->port.name));
	memcpy(tap->iface, conf->iface, sizeof(tap->iface));
	tap->port.ops = &tap_ops;
	tap->conf = *conf;
	tap->loop = loop;
	tap->timer_fd = -1;
	ret = open_queues(tap);
	if (ret == 0)
		ret = start_timer(tap);
	if (ret < 0) {
		VHP_LOG(ERR, "%s: iface = \"%s\": %s", conf->name, conf->iface, strerror(-ret));
		tap_close(&tap->port);
		return ret;
	}
	open_urings(tap);
	*out = &tap->port;
	return 0;
}
