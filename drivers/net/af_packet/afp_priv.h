/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the driver: af_packet.c is the port, afp_socket.c and afp_ring.c open
 * sockets, afp_probe.c asks the kernel, afp_tx.c and afp_rx.c move frames.
 */
#ifndef VHP_AFP_PRIV_H
#define VHP_AFP_PRIV_H

#include <sys/socket.h>

#include <linux/virtio_net.h>

#include "af_packet.h"
#include "offload.h"

/** The header that the kernel speaks; num_buffers of ours is not for it. */
#define AFP_HDR_BYTES    sizeof(struct virtio_net_hdr)
/** An 802.1Q or 802.1ad tag. */
#define AFP_VLAN_BYTES   4
/** Frames are put together here when they cannot go straight into guest memory. */
#define AFP_BOUNCE_BYTES (VHP_MAX_FRAME_BYTES + AFP_VLAN_BYTES + 1)

/** Slots of the receive rings of all queues of a port. */
#define AFP_RINGS_BYTES    (256U << 20)
/** Smallest slot: the kernel's header and the start of a frame. */
#define AFP_SLOT_MIN_BYTES 256

/** A receive ring shared with the kernel. Whoever has the queue has the ring. */
struct afp_ring {
	uint8_t *map; /**< NULL: there is none, frames are read one by one */
	size_t map_bytes;
	uint32_t slot_bytes, block_bytes;
	uint32_t per_block;   /**< slots of a block; the rest of it is empty */
	uint32_t blocks;      /**< of the ring */
	uint32_t block, slot; /**< of the next frame */
};

/** A socket of a queue. */
struct afp_socket {
	int fd;
	struct afp_ring ring;
};

/** Room for one transmit burst: the frames' pieces, each frame's header before them. */
struct afp_burst {
	struct mmsghdr msgs[VHP_BURST_PKTS];
	uint16_t index[VHP_BURST_PKTS]; /**< of the frame that msgs[i] is */
	struct virtio_net_hdr hdrs[VHP_BURST_PKTS];
	struct iovec iov[2 * VHP_MAX_IOV + 2 * VHP_BURST_PKTS];
};

struct afp_queue {
	struct vhp_port_queue pq;
	bool steered;             /**< the host sends to it; main thread */
	bool down;                /**< link down or gone; poller sets, main thread clears */
	struct afp_socket *fresh; /**< to be used from now on; main thread gives, poller takes */
	uint64_t features; /**< what the guest accepted; main thread, while no poller has it */

	/* Poller. */
	struct afp_ring ring;
	uint64_t checked_tsc; /**< when the socket was asked for an error */
	struct afp_burst *burst;
	struct iovec *iov;       /**< VHP_MAX_IOV + 1, for one received frame */
	uint8_t *bounce;         /**< AFP_BOUNCE_BYTES */
	struct vhp_segments cut; /**< of the frame in bounce; cut.n 0: none */
	uint16_t cut_next;       /**< its next segment */
};

struct afp_port {
	struct vhp_port port;
	struct vhp_af_packet_conf conf;
	struct vhp_loop *loop;
	int ifindex;
	int timer_fd;  /**< looks after an interface that is down or gone */
	int fanout_id; /**< of the sockets that share frames, -1: not yet chosen */
	struct afp_queue *queues;
};

/**
 * Open a socket on the interface, and its ring if it receives; without one if memory is short.
 * @param receives  it gets frames and, if there are more queues, a share of them
 * @param out       (output) its descriptor and ring, the caller's
 * @return 0 or -errno
 */
int afp_socket_open(struct afp_port *afp, bool receives, struct afp_socket *out);

/** Undo it; NULL-safe. */
void afp_socket_close(struct afp_socket *s);

/** Put a socket behind the queue's descriptor, and end the one before; owner of the queue. */
int afp_socket_adopt(struct afp_queue *q, struct afp_socket *s);

/** Is there a new socket? Then it is adopted; to be called before the old one is used. Poller. */
bool afp_socket_renewed(struct afp_queue *q);

/**
 * Make the receive ring of a socket that is not yet bound.
 * @return 0 or -errno: undo with afp_ring_close() in either case
 */
int afp_ring_open(struct afp_ring *ring, int fd, const struct vhp_af_packet_conf *conf);
void afp_ring_close(struct afp_ring *ring);

/** Does the kernel's packet socket know UDP segmentation? Asked once; main thread. */
bool afp_has_uso(void);

/** See vhp_port_ops::tx. */
uint16_t afp_tx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n);

/** See vhp_port_ops::rx. */
uint16_t afp_rx(struct vhp_port_queue *pq, struct vhp_frame *frames, uint16_t n);

/** What became of the call: sets q->pq.wait where it is to be repeated, and returns VHP_OK. */
enum vhp_drop afp_judge_error(struct afp_queue *q, int error);

#endif /* VHP_AFP_PRIV_H */
