/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test front end of the kernel rig: split rings in memory of its own, one
 * thread, joined to /dev/vhost-net (fe_kernel.c) or to a vhost-user socket
 * (fe_user.c). fe_run.c holds the traffic, fe_main.c the command line.
 * Everything here belongs to that one thread.
 */
#ifndef FE_H
#define FE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/virtio_ring.h>

#define FE_HDR_BYTES 12u      /* virtio_net_hdr_v1 */
#define FE_BUF_BYTES 2048u    /* one buffer, header included */
#define FE_GPA_BASE  0x100000 /* so that an offset is never taken for an address */
#define FE_RING_MAX  1024u
#define FE_RX        0
#define FE_TX        1

/* What the user asked for. */
struct fe_opts {
	const char *mode;   /* echo, flood, paced, bounce, hang, pair */
	const char *dev;    /* tap to make, or interface to bind to */
	const char *peer;   /* where the source sends, default dev */
	const char *socket; /* vhost-user socket, NULL: /dev/vhost-net */
	bool packet;        /* back end is a packet socket on dev, not a tap */
	bool event_idx;     /* VIRTIO_F_RING_EVENT_IDX */
	unsigned ring;      /* descriptors in each ring, a power of two */
	unsigned window_us; /* VHOST_SET_VRING_BUSYLOOP_TIMEOUT, 0: not set */
	unsigned flight;    /* frames that the source keeps on the way */
	unsigned frame_bytes;
	unsigned seconds;
	unsigned rounds; /* hang, pair: how often */
	int cpu;         /* of this thread, -1: anywhere */
	int vhost_cpu;   /* of the vhost worker, -1: anywhere */
};

/* One virtqueue, as its driver sees it. */
struct fe_vq {
	unsigned num;
	struct vring vr;
	uint16_t avail_idx; /* next to publish */
	uint16_t shown_idx; /* published */
	uint16_t last_used;
	uint16_t free[FE_RING_MAX]; /* transmit: heads not in the ring */
	unsigned nfree;
	uint8_t *bufs; /* num buffers of FE_BUF_BYTES */
	int kick_fd;
	int call_fd;
	uint64_t kicks; /* sent */
};

struct fe {
	struct fe_opts o;
	int mem_fd;
	uint8_t *mem;
	size_t mem_bytes;
	uint64_t features;
	struct fe_vq vq[2];
	int dev_fd;  /* /dev/vhost-net or the vhost-user connection */
	int back_fd; /* tap or packet socket that vhost serves, or -1 */
	int src_fd;  /* packet socket of the source */
	int src_ifindex;
};

/* fe_ring.c: returns 0 or -errno. */
int fe_mem_init(struct fe *fe);
uint64_t fe_gpa(const struct fe *fe, const void *p);
void fe_rx_fill(struct fe_vq *vq, const struct fe *fe, unsigned count);
void fe_rx_repost(struct fe_vq *vq, uint32_t head);
/* Puts one frame into the transmit ring; false if it is full. */
bool fe_tx_put(struct fe *fe, const uint8_t *frame, unsigned bytes);
unsigned fe_tx_reclaim(struct fe *fe);
/* Next used element of a ring, or NULL. */
const struct vring_used_elem *fe_used(struct fe_vq *vq);
/* Publishes what was put, and kicks if the back end wants it. Returns true if it kicked. */
bool fe_publish(struct fe *fe, struct fe_vq *vq);
void fe_kick(struct fe_vq *vq);

/* fe_kernel.c and fe_user.c: both return 0 or -errno after a message. */
int fe_kernel_open(struct fe *fe);
int fe_kernel_start(struct fe *fe, int index);
int fe_kernel_pin_worker(const struct fe *fe);
void fe_kernel_close(struct fe *fe);
int fe_user_start(struct fe *fe);

/* fe_src.c: the source, a packet socket on the host side of the device. */
int fe_src_open(struct fe *fe);
void fe_frame_build(uint8_t *frame, unsigned bytes, uint32_t seq);
/* The frame's number, or -1 if any byte is not as it was built. */
int64_t fe_frame_check(const uint8_t *frame, unsigned bytes, unsigned expect_bytes);
/* Sends count frames from number seq on; returns how many went out. */
unsigned fe_src_send(struct fe *fe, uint32_t seq, unsigned count);
/* Takes what came back; returns the number of frames, bad ones in *bad. */
unsigned fe_src_recv(struct fe *fe, uint64_t *bad);

/* fe_run.c, fe_lost.c: return the exit status. */
int fe_run_traffic(struct fe *fe);
int fe_run_paced(struct fe *fe);
int fe_run_bounce(struct fe *fe);
int fe_run_hang(struct fe *fe);
int fe_run_pair(struct fe *fe);

uint64_t fe_now_us(void);
int fe_pin_self(int cpu);

#endif
