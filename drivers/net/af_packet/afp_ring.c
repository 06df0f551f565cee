/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive ring that a packet socket shares with the kernel (TPACKET_V2): a frame is
 * there when its slot says so, and no system call is needed to look or to take it.
 *
 * Slots are all of one size, so a frame that is longer than one (with segmentation offload,
 * 64 KiB) is queued whole at the socket as well (PACKET_COPY_THRESH); its slot says when
 * it is its turn. TPACKET_V3, whose slots are of any size, hands over a block when it is
 * full or a timer of a tick of the kernel's clock has run out: milliseconds too late.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include <linux/if_packet.h>

#include "afp_priv.h"

/* The kernel allocates slots in blocks of so many bytes, or of one slot that is larger. */
#define BLOCK_BYTES (64 << 10)

static int
set_option(int fd, int option, const void *value, socklen_t bytes)
{
	return setsockopt(fd, SOL_PACKET, option, value, bytes) < 0 ? -errno : 0;
}

/* Slots of all queues together may take this much; it is locked in memory. */
static uint32_t
slots_of(const struct vhp_af_packet_conf *conf, uint32_t slot_bytes)
{
	uint64_t most = AFP_RINGS_BYTES / slot_bytes / conf->queues;

	return RTE_MAX(RTE_MIN((uint64_t)conf->frame_count, most), 1ULL);
}

int
afp_ring_open(struct afp_ring *ring, int fd, const struct vhp_af_packet_conf *conf)
{
	const int version = TPACKET_V2, always = 1;
	uint32_t slot_bytes =
		RTE_ALIGN_CEIL(RTE_MAX(conf->frame_bytes, AFP_SLOT_MIN_BYTES), TPACKET_ALIGNMENT);
	uint32_t block_bytes =
		RTE_ALIGN_CEIL(RTE_MAX(slot_bytes, BLOCK_BYTES), (uint32_t)sysconf(_SC_PAGESIZE));
	uint32_t per_block = block_bytes / slot_bytes;
	uint32_t blocks = (slots_of(conf, slot_bytes) + per_block - 1) / per_block;
	struct tpacket_req req = {
		.tp_block_size = block_bytes,
		.tp_block_nr = blocks,
		.tp_frame_size = slot_bytes,
		.tp_frame_nr = blocks * per_block,
	};
	int ret = set_option(fd, PACKET_VERSION, &version, sizeof(version));

	if (ret == 0)
		ret = set_option(fd, PACKET_COPY_THRESH, &always, sizeof(always));
	if (ret == 0)
		ret = set_option(fd, PACKET_RX_RING, &req, sizeof(req));
	if (ret < 0)
		return ret;
	ring->map_bytes = (size_t)block_bytes * blocks;
	ring->map = mmap(NULL, ring->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring->map == MAP_FAILED) {
		ring->map = NULL;
		return -errno;
	}
	ring->slot_bytes = slot_bytes;
	ring->block_bytes = block_bytes;
	ring->per_block = per_block;
	ring->blocks = blocks;
	ring->block = ring->slot = 0;
	return 0;
}

void
afp_ring_close(struct afp_ring *ring)
{
	if (ring->map != NULL)
		munmap(ring->map, ring->map_bytes);
	ring->map = NULL;
}
