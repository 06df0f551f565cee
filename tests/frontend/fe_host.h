/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host's end in tests: a raw packet socket on the interface that the back end
 * is joined to (the caller has put the program into the right network namespace).
 *
 * Frames carry a virtio-net header (PACKET_VNET_HDR), so checksum and segmentation
 * requests can be sent and seen. Tags that the kernel moved out of the frame are
 * put back. One thread per socket.
 */
#ifndef FE_HOST_H
#define FE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/virtio_net.h>

struct fe_host {
	int fd;
	int ifindex;
	char ifname[16];
	bool plain; /**< frames without virtio-net header, see fe_host_plain() */
	uint64_t n_sent;
	uint64_t n_received; /**< all frames, strays included */
	uint64_t n_dropped;  /**< lost by this socket itself: receive buffer full */
};

/**
 * Open the socket on interface @p ifname, waiting up to @p timeout_ms for it to exist and be up.
 * @return 0 or -errno (-ENODEV, -ENETDOWN).
 */
int fe_host_open(struct fe_host *h, const char *ifname, uint32_t timeout_ms);

/**
 * Give up the virtio-net header: those received are zeros, none are sent. The kernel cannot
 * put UDP fragmentation (UFO) into one, and fails to deliver such frames with it.
 */
int fe_host_plain(struct fe_host *h);

/** NULL-safe; harmless when closed. */
void fe_host_close(struct fe_host *h);

/** Send one frame. @param hdr NULL for none. @return 0; -EAGAIN and -ENOBUFS: try later; -errno. */
int fe_host_send(
	struct fe_host *h, const struct virtio_net_hdr_v1 *hdr, const void *frame, size_t len);

/**
 * Receive one frame without waiting.
 * @param hdr (output) its virtio-net header, num_buffers 0
 * @return bytes stored at @p buf (at most @p cap); -EAGAIN if there is none; -errno.
 */
int fe_host_recv(struct fe_host *h, struct virtio_net_hdr_v1 *hdr, void *buf, size_t cap);

/** Wait up to @p timeout_us for a frame. @return 1, or 0 when time is over. */
int fe_host_wait(struct fe_host *h, uint32_t timeout_us);

/** Throw away what is waiting. @return frames. */
uint32_t fe_host_flush(struct fe_host *h);

/** Refresh and return n_dropped. */
uint64_t fe_host_drops(struct fe_host *h);

/**
 * Frames that the interface itself has dropped (/proc/net/dev), in either direction.
 * @param to_host what the back end wrote
 * @param to_guest what waited for the back end
 */
int fe_host_if_drops(const struct fe_host *h, uint64_t *to_host, uint64_t *to_guest);

#endif
