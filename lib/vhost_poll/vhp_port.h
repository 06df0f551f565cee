/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a host port is to the poller: an array of queues that take frames from a
 * transmitq and give frames to a receiveq. drivers/net/ implement it; a port never
 * sees a ring, only iovecs that point into guest memory.
 *
 * Every frame starts with the virtio-net header (virtio 1.2, 5.1.6) of
 * vhp_port_queue::hdr_bytes bytes, in whatever pieces the guest chose.
 */
#ifndef VHP_PORT_H
#define VHP_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "vhost_poll.h"

struct virtio_net_hdr;

/** Frames moved between a ring and a port in one call. */
#define VHP_BURST_PKTS      32
/** Pieces of one frame, the kernel's UIO_MAXIOV. */
#define VHP_MAX_IOV         1024
/** Shortest frame without its virtio-net header: an Ethernet header. */
#define VHP_MIN_FRAME_BYTES 14
/** Longest frame without its virtio-net header: Ethernet, two VLAN tags, 64 KiB of IP. */
#define VHP_MAX_FRAME_BYTES (14 + 8 + 65535)
/** Longest virtio-net header without hash report. */
#define VHP_MAX_HDR_BYTES   12

/* UDP segmentation (virtio 1.3, 5.1.3); Debian 12's headers do not have the bits yet. */
#define VHP_NET_F_GUEST_USO4 54
#define VHP_NET_F_GUEST_USO6 55
#define VHP_NET_F_HOST_USO   56
#define VHP_NET_F_USO                                                                              \
	(1ULL << VHP_NET_F_GUEST_USO4 | 1ULL << VHP_NET_F_GUEST_USO6 | 1ULL << VHP_NET_F_HOST_USO)

/** Why a frame or a descriptor chain was not forwarded. VHP_OK is "it was". */
enum vhp_drop {
	VHP_OK,
	VHP_DROP_CHAIN_LOOP,      /**< more descriptors than the table holds, or than 1,024 */
	VHP_DROP_CHAIN_NEXT,      /**< next index outside the table */
	VHP_DROP_CHAIN_ADDRESS,   /**< not in guest memory */
	VHP_DROP_CHAIN_INDIRECT,  /**< indirect table of a bad size, nested, or not negotiated */
	VHP_DROP_CHAIN_DIRECTION, /**< device-writable in a transmitq or -readable in a receiveq */
	VHP_DROP_CHAIN_SEGMENTS,  /**< more than VHP_MAX_IOV pieces */
	VHP_DROP_CHAIN_LENGTH,    /**< lengths sum to 2^32 or more */
	VHP_DROP_SHORT,           /**< shorter than the headers */
	VHP_DROP_LONG,            /**< longer than VHP_MAX_FRAME_BYTES */
	VHP_DROP_HEADER,          /**< the port refused the virtio-net header */
	VHP_DROP_NO_ROOM,         /**< larger than the guest's receive buffers can ever hold */
	VHP_DROP_PORT,     /**< the port was short of resources, and frames behind it were sent */
	VHP_DROP_DISABLED, /**< its ring was switched off by the front end */
	VHP_DROP_STOPPED,  /**< was on its way when the device went away */
	VHP_DROP_COUNT,
};

/** A frame (transmitq) or an empty buffer (receiveq) in guest memory. */
struct vhp_frame {
	struct iovec *iov;   /**< n_iov pieces, owned by the caller of the port */
	uint32_t len_bytes;  /**< transmit: length; receive: (output) bytes the port wrote */
	uint32_t used_bytes; /**< ring: what the used element will say */
	uint16_t n_iov;
	uint16_t id;              /**< ring: head (split) or buffer id (packed) */
	uint16_t n_desc;          /**< ring: descriptors of the ring that the chain takes */
	uint16_t n_read, n_write; /**< mixed chains: pieces of each kind, see vring.h */
	uint8_t drop;             /**< enum vhp_drop */
};

/** What a port queue waits for before it takes more frames; poller only. */
enum vhp_port_wait {
	VHP_PORT_READY,
	VHP_PORT_FULL,   /**< wait until the descriptor is writable */
	VHP_PORT_BUSY,   /**< full, and no descriptor tells when it is not: look again soon */
	VHP_PORT_DOWN,   /**< link down or gone: look again from time to time */
	VHP_PORT_PEER,   /**< full, and the same poller's qpair at the far end waits for what
			      will change that: wait with it */
	VHP_PORT_MEMORY, /**< the kernel found guest memory gone (EFAULT): the device ends */
};

/** One queue of a port. The driver embeds it in its own structure. */
struct vhp_port_queue {
	struct vhp_port *port;
	/** The queue whose qpair receives what this one sends; NULL: no qpair does. Constant. */
	struct vhp_port_queue *far;
	/** Readable: a frame waits; -1: nothing tells. Main thread writes, poller reads. */
	int fd;
	uint16_t hdr_bytes;      /**< 10 or 12; main thread writes while no poller has it */
	enum vhp_port_wait wait; /**< poller writes */
	bool pending;            /**< frames wait in the driver, whatever fd says; poller */
	bool armed;              /**< arm() was called, and not yet disarm(); its caller writes */
	uint32_t look_ns;        /**< idle.c: length of the last sleep with a port that has no fd */
	uint64_t moved_pkts;     /**< idle.c: frames moved before that */
	uint64_t refused;        /**< received frames with a header that nobody can carry out, not
				      yet counted; poller */
};

/** A driver's functions. */
struct vhp_port_ops {
	/**
	 * Send frames in order; on the poller.
	 * Skips frames whose drop is set; sets drop on a frame that can never be sent.
	 * @return frames done with (sent or dropped); fewer than n: queue->wait says why and
	 *         the rest is offered again
	 */
	uint16_t (*tx)(struct vhp_port_queue *queue, struct vhp_frame *frames, uint16_t n);
	/**
	 * Receive into frames[0..n) in order, header included; on the poller.
	 * A frame longer than its iovec is cut; the caller appends a spare piece to see that.
	 * @return frames received, 0 if none waits
	 */
	uint16_t (*rx)(struct vhp_port_queue *queue, struct vhp_frame *frames, uint16_t n);
	/**
	 * The poller is about to sleep until fd is readable: see to it that the next frame makes
	 * it so, then look whether one waits already. On the poller, again if it likes before
	 * disarm(). NULL: fd tells at any time.
	 * @return 1: a frame waits (and pending is set); 0: fd will tell; -1: it will not, look
	 *         from time to time
	 */
	int (*arm)(struct vhp_port_queue *queue);
	/**
	 * The end of arm(), whatever that returned: fd need not tell any more, and what it told is
	 * taken from it. On the poller, or on the main thread while no poller has the queue.
	 */
	void (*disarm)(struct vhp_port_queue *queue);
	/**
	 * May a frame go straight into the receiveq at the far end, which the same poller serves?
	 * On the poller, in the place of tx(), which is asked where the answer is no. Of ports
	 * whose queues have a far one; NULL else.
	 * @param hdr  (in/out) of the frame; what the receiver is to get
	 */
	bool (*passes)(const struct vhp_port_queue *queue, struct virtio_net_hdr *hdr,
		uint32_t frame_bytes);
	/**
	 * Bring header size and offloads in line with what the guest accepted (virtio feature
	 * bits); on the main thread, while no poller has the queue.
	 * @return frames that had to be discarded, as they waited in a form that this guest
	 *         cannot take; or -errno
	 */
	int (*configure)(struct vhp_port_queue *queue, uint64_t virtio_features);
	/**
	 * May the host send to this queue? Main thread, while no poller has the queue.
	 * Ports of one queue, or that cannot choose, answer 0 and do nothing.
	 */
	int (*steer)(struct vhp_port_queue *queue, bool on);
	/** Let frames of this size (without Ethernet header) pass; main thread. */
	int (*set_mtu)(struct vhp_port *port, uint16_t mtu_bytes);
	/** Virtio feature bits that the port can honour; constant over its life. */
	uint64_t (*features)(const struct vhp_port *port);
	/** Close the port and remove what it made on the host; main thread; frees it. */
	void (*close)(struct vhp_port *port);
};

/** A host port. The driver embeds it in its own structure. */
struct vhp_port {
	char name[VHP_NAME_BYTES];
	const struct vhp_port_ops *ops;
	uint16_t n_queues;
	struct vhp_port_queue **queues;
};

#endif /* VHP_PORT_H */
