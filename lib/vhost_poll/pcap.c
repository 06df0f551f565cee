/* SPDX-License-Identifier: BSD-3-Clause */
/* From the pollers to a file; see pcap.h. The format: pcapng, as IETF's opsawg drafts it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <linux/virtio_net.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "log.h"
#include "pcap_file.h"
#include "qpair.h"
#include "vhp_iov.h"

/* Some thousand small frames, some dozen large ones. */
#define RING_BYTES  (4U << 20)
/* The main thread looks so often. */
#define DRAIN_NS    20000000
/* Records begin at multiples of this. */
#define ALIGN_BYTES 8

/* Before each frame in the ring. */
struct record {
	uint64_t tsc;
	uint32_t len_bytes; /* with the header; SKIP: the next record is at the ring's start */
	uint16_t hdr_bytes;
	uint16_t direction;
};

#define SKIP UINT32_MAX

static_assert(sizeof(struct record) % ALIGN_BYTES == 0, "records are aligned");

struct vhp_pcap_ring {
	uint64_t head; /* poller: wo, main thread: ro; counts on and on */
	uint64_t tail; /* main thread: wo, poller: ro */
	uint64_t lost; /* poller: wo */
	uint64_t lost_reported;
	uint32_t interface;         /* of the file */
	struct vhp_pcap_file *file; /* main thread; NULL: not captured */
	struct vhp_qpair *qp;
	struct vhp_pcap_ring *next; /* of all rings */
	uint8_t bytes[RING_BYTES];
};

static struct vhp_pcap_ring *rings;
static struct vhp_pcap_file *file_of_all;
static struct vhp_loop *main_loop;
static int timer_fd = -1;

/* ---- poller ------------------------------------------------------------------------ */

static uint32_t
room_of(uint32_t len_bytes)
{
	return RTE_ALIGN_CEIL((uint32_t)sizeof(struct record) + len_bytes, ALIGN_BYTES);
}

void
vhp_pcap_add(struct vhp_pcap_ring *ring, enum vhp_pcap_direction direction, const struct iovec *iov,
	uint32_t n_iov, uint32_t len_bytes, uint32_t hdr_bytes)
{
	uint64_t head = ring->head;
	uint32_t at = head % RING_BYTES;
	uint32_t room = room_of(len_bytes);
	uint32_t skipped = at + room > RING_BYTES ? RING_BYTES - at : 0;
	uint64_t used = head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	struct record *record = (struct record *)(void *)(ring->bytes + at);

	if (used + skipped + room > RING_BYTES) {
		__atomic_store_n(&ring->lost, ring->lost + 1, __ATOMIC_RELAXED);
		return;
	}
	if (skipped > 0) {
		/* There is room for a record's start: all are aligned to its size's unit. */
		if (skipped >= sizeof(*record))
			record->len_bytes = SKIP;
		record = (struct record *)(void *)ring->bytes;
	}
	*record = (struct record){
		.tsc = rte_rdtsc(),
		.len_bytes = len_bytes,
		.hdr_bytes = (uint16_t)hdr_bytes,
		.direction = direction,
	};
	vhp_iov_read(iov, n_iov, 0, record + 1, len_bytes);
	__atomic_store_n(&ring->head, head + skipped + room, __ATOMIC_RELEASE);
}

/* ---- main thread --------------------------------------------------------------------- */

static void
write_record(struct vhp_pcap_ring *ring, const struct record *record)
{
	const uint8_t *frame = (const uint8_t *)(record + 1);
	struct vhp_pcap_frame out = {
		.interface = ring->interface,
		.flags = record->direction,
		.ago_ns = (uint64_t)((double)(rte_rdtsc() - record->tsc) * 1e9 /
				     (double)rte_get_tsc_hz()),
		.data = frame + record->hdr_bytes,
		.len_bytes = record->len_bytes - record->hdr_bytes,
	};

	memcpy(&out.hdr, frame, RTE_MIN(record->hdr_bytes, sizeof(out.hdr)));
	vhp_pcap_file_frame(ring->file, &out);
}

static void
drain(struct vhp_pcap_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	while (ring->tail != head) {
		uint32_t at = ring->tail % RING_BYTES;
		const struct record *record = (const struct record *)(void *)(ring->bytes + at);
		uint64_t next = ring->tail + RING_BYTES - at;

		if (RING_BYTES - at >= sizeof(*record) && record->len_bytes != SKIP) {
			if (ring->file != NULL)
				write_record(ring, record);
			next = ring->tail + room_of(record->len_bytes);
		}
		__atomic_store_n(&ring->tail, next, __ATOMIC_RELEASE);
	}
}

static void
on_timer(void *ctx, uint32_t events)
{
	struct vhp_pcap_ring *ring;
	uint64_t ticks;

	(void)ctx;
	(void)events;
	if (read(timer_fd, &ticks, sizeof(ticks)) != sizeof(ticks))
		return;
	for (ring = rings; ring != NULL; ring = ring->next) {
		if (ring->file == NULL)
			continue;
		drain(ring);
		if (vhp_pcap_file_flush(ring->file) < 0) {
			VHP_LOG(ERR, "%s: capture ends: its file cannot be written: %s",
				ring->qp->name, strerror(errno));
			vhp_pcap_stop(ring->qp);
		}
	}
}

static int
start_timer(struct vhp_loop *loop)
{
	const struct itimerspec every = {
		.it_interval.tv_nsec = DRAIN_NS, .it_value.tv_nsec = DRAIN_NS};

	if (timer_fd >= 0)
		return 0;
	main_loop = loop;
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer_fd < 0 || timerfd_settime(timer_fd, 0, &every, NULL) < 0)
		return -errno;
	return vhp_loop_watch(loop, timer_fd, EPOLLIN, on_timer, NULL);
}

static void
stop_timer(void)
{
	if (timer_fd < 0)
		return;
	vhp_loop_unwatch(main_loop, timer_fd);
	close(timer_fd);
	timer_fd = -1;
}

/* The ring of a qpair; made when it is first needed, and kept while the qpair lasts. */
static struct vhp_pcap_ring *
ring_of(struct vhp_qpair *qp)
{
	struct vhp_pcap_ring *ring = qp->pcap_ring;

	if (ring != NULL)
		return ring;
	ring = calloc(1, sizeof(*ring));
	if (ring == NULL)
		return NULL;
	ring->qp = qp;
	ring->next = rings;
	rings = ring;
	qp->pcap_ring = ring;
	return ring;
}

/* Takes over one use of the file. */
static int
begin(struct vhp_qpair *qp, struct vhp_pcap_file *file)
{
	struct vhp_pcap_ring *ring = ring_of(qp);

	if (ring == NULL) {
		vhp_pcap_file_put(file);
		return -ENOMEM;
	}
	drain(ring); /* what came late the last time */
	ring->interface = vhp_pcap_file_interface(file, qp->name);
	ring->file = file;
	__atomic_store_n(&qp->pcap, ring, __ATOMIC_RELEASE);
	return 0;
}

int
vhp_pcap_start(struct vhp_loop *loop, struct vhp_qpair *qp, const char *path)
{
	struct vhp_pcap_file *file;
	int ret;

	if (qp->pcap != NULL)
		return -EBUSY;
	ret = start_timer(loop);
	if (ret < 0)
		return ret;
	file = vhp_pcap_file_open(path);
	return file != NULL ? begin(qp, file) : -errno;
}

int
vhp_pcap_stop(struct vhp_qpair *qp)
{
	struct vhp_pcap_ring *ring = qp->pcap_ring;

	if (qp->pcap == NULL)
		return -ENOENT;
	__atomic_store_n(&qp->pcap, NULL, __ATOMIC_RELEASE);
	drain(ring);
	if (ring->lost != ring->lost_reported)
		VHP_LOG(WARNING, "%s: %llu frames are missing in the capture", qp->name,
			(unsigned long long)(ring->lost - ring->lost_reported));
	ring->lost_reported = ring->lost;
	vhp_pcap_file_put(ring->file);
	ring->file = NULL;
	return 0;
}

int
vhp_capture_all(struct vhp_loop *loop, const char *path)
{
	int ret = start_timer(loop);

	if (ret == 0) {
		file_of_all = vhp_pcap_file_open(path);
		ret = file_of_all != NULL ? 0 : -errno;
	}
	if (ret < 0)
		VHP_LOG(ERR, "capture file \"%s\": %s", path, strerror(-ret));
	return ret;
}

void
vhp_capture_end(void)
{
	vhp_pcap_file_put(file_of_all);
	file_of_all = NULL;
	stop_timer();
}

void
vhp_pcap_qpair_made(struct vhp_qpair *qp)
{
	if (file_of_all == NULL)
		return;
	vhp_pcap_file_get(file_of_all);
	if (begin(qp, file_of_all) < 0)
		VHP_LOG(ERR, "%s: no memory to capture it", qp->name);
}

void
vhp_pcap_qpair_gone(struct vhp_qpair *qp)
{
	struct vhp_pcap_ring **at;

	vhp_pcap_stop(qp);
	for (at = &rings; *at != NULL && *at != qp->pcap_ring; at = &(*at)->next)
		;
	if (*at != NULL)
		*at = (*at)->next;
	free(qp->pcap_ring);
	qp->pcap_ring = NULL;
}
