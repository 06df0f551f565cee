/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ether.h>

#include "rarp.h"

/* Shortest frame on Ethernet, without its checksum. */
#define FRAME_BYTES 60

void
vhp_send_rarp(struct vhp_port_queue *queue, const uint8_t mac[6])
{
	struct {
		uint8_t virtio[VHP_MAX_HDR_BYTES]; /* all zero: no offload; the last hdr_bytes count
						    */
		struct rte_ether_hdr ether;
		struct rte_arp_hdr arp;
		uint8_t padding[FRAME_BYTES - sizeof(struct rte_ether_hdr) -
				sizeof(struct rte_arp_hdr)];
	} frame = {
		.ether.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_RARP),
		.arp =
			{
				.arp_hardware = rte_cpu_to_be_16(RTE_ARP_HRD_ETHER),
				.arp_protocol = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4),
				.arp_hlen = RTE_ETHER_ADDR_LEN,
				.arp_plen = 4,
				.arp_opcode = rte_cpu_to_be_16(RTE_ARP_OP_REVREQUEST),
			},
	};
	struct iovec iov = {
		.iov_base = frame.virtio + (VHP_MAX_HDR_BYTES - queue->hdr_bytes),
		.iov_len = queue->hdr_bytes + FRAME_BYTES,
	};
	struct vhp_frame f = {.iov = &iov, .n_iov = 1, .len_bytes = iov.iov_len};

	static_assert(sizeof(frame) == VHP_MAX_HDR_BYTES + FRAME_BYTES, "no holes");
	if (queue->hdr_bytes == 0)
		return;
	memset(&frame.ether.dst_addr, 0xff, RTE_ETHER_ADDR_LEN);
	memcpy(&frame.ether.src_addr, mac, RTE_ETHER_ADDR_LEN);
	memcpy(&frame.arp.arp_data.arp_sha, mac, RTE_ETHER_ADDR_LEN);
	memcpy(&frame.arp.arp_data.arp_tha, mac, RTE_ETHER_ADDR_LEN);
	queue->port->ops->tx(queue, &f, 1);
}
