/* SPDX-License-Identifier: BSD-3-Clause */
/* A pcapng file: one section, an interface for each qpair, a block for each frame. Main thread. */
#ifndef VHP_PCAP_FILE_H
#define VHP_PCAP_FILE_H

#include <stdint.h>

#include <linux/virtio_net.h>

struct vhp_pcap_file;

/** A frame as the file gets it. */
struct vhp_pcap_frame {
	uint32_t interface;
	uint32_t flags;  /**< epb_flags */
	uint64_t ago_ns; /**< it passed so long ago */
	const uint8_t *data;
	uint32_t len_bytes;
	struct virtio_net_hdr_v1 hdr; /**< goes into a comment of the frame */
};

/** Make the file, readable for this user only; one use. Returns NULL with errno set. */
struct vhp_pcap_file *vhp_pcap_file_open(const char *path);

/** One use more, one less; the last closes it. put takes NULL. */
void vhp_pcap_file_get(struct vhp_pcap_file *file);
void vhp_pcap_file_put(struct vhp_pcap_file *file);

/** Add an interface. Returns its number for vhp_pcap_frame::interface. */
uint32_t vhp_pcap_file_interface(struct vhp_pcap_file *file, const char *name);

/** Add a frame. A failure shows at the next flush. */
void vhp_pcap_file_frame(struct vhp_pcap_file *file, const struct vhp_pcap_frame *frame);

/** Write out what is buffered. Returns -1 with errno set if that, or a write before, failed. */
int vhp_pcap_file_flush(struct vhp_pcap_file *file);

#endif /* VHP_PCAP_FILE_H */
