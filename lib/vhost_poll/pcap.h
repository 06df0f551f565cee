/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture of a qpair's frames into a pcapng file. The poller copies them into a ring of bytes,
 * the main thread writes them out; a frame that finds the ring full is forwarded all the same
 * and missing in the file. rte_pcapng takes frames of DPDK's ports only, so the file's format is
 * written here.
 */
#ifndef VHP_PCAP_H
#define VHP_PCAP_H

#include <stdint.h>
#include <sys/uio.h>

#include "vhost_poll.h"

struct vhp_pcap_ring;
struct vhp_qpair;

/** As pcapng's epb_flags have it, seen from the daemon. */
enum vhp_pcap_direction {
	VHP_PCAP_FROM_GUEST = 1, /**< inbound */
	VHP_PCAP_TO_GUEST = 2,   /**< outbound */
};

/** One frame with its virtio-net header. Poller. */
void vhp_pcap_add(struct vhp_pcap_ring *ring, enum vhp_pcap_direction direction,
	const struct iovec *iov, uint32_t n_iov, uint32_t len_bytes, uint32_t hdr_bytes);

/**
 * Start to capture into a file of its own. Main thread.
 * @return 0, -EBUSY if it is captured already, or what opening the file gave
 */
int vhp_pcap_start(struct vhp_loop *loop, struct vhp_qpair *qp, const char *path);

/** Stop; what was captured is in the file. Main thread. 0 or -ENOENT if nothing was captured. */
int vhp_pcap_stop(struct vhp_qpair *qp);

/** A qpair was made: capture it if vhp_capture_all() asked for that. Main thread. */
void vhp_pcap_qpair_made(struct vhp_qpair *qp);

/** A qpair goes: stop, and free the ring. Main thread, not attached. */
void vhp_pcap_qpair_gone(struct vhp_qpair *qp);

#endif /* VHP_PCAP_H */
