/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the kernel take UDP segmentation in the virtio-net header of a packet socket (Linux
 * 6.2)? No option tells, so a frame is sent where nobody is: on the loopback interface of
 * a network namespace that ends with the child process that made it.
 */
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include "afp_priv.h"

#define PAYLOAD_BYTES 200
#define SEGMENT_BYTES 100

struct probe {
	struct virtio_net_hdr vnet;
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	uint8_t payload[PAYLOAD_BYTES];
} __attribute__((packed));

static struct probe
make_probe(void)
{
	const uint16_t l4_at = sizeof(struct ethhdr) + sizeof(struct iphdr);
	const uint16_t udp_bytes = sizeof(struct udphdr) + PAYLOAD_BYTES;

	return (struct probe){
		.vnet = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
			.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
			.hdr_len = l4_at + sizeof(struct udphdr),
			.gso_size = SEGMENT_BYTES,
			.csum_start = l4_at,
			.csum_offset = offsetof(struct udphdr, check)},
		.eth = {.h_proto = htons(ETH_P_IP)},
		.ip = {.version = 4,
			.ihl = 5,
			.ttl = 1,
			.protocol = IPPROTO_UDP,
			.tot_len = htons(sizeof(struct iphdr) + udp_bytes),
			.saddr = htonl(INADDR_LOOPBACK),
			.daddr = htonl(INADDR_LOOPBACK)},
		.udp = {.len = htons(udp_bytes)},
	};
}

static bool
raise_loopback(int fd)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	return ioctl(fd, SIOCSIFFLAGS, &ifr) == 0;
}

static bool
send_probe(void)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	struct probe probe = make_probe();
	int on = 1;
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		return false;
	fd = socket(AF_PACKET, SOCK_RAW, 0);
	to.sll_ifindex = if_nametoindex("lo");
	return fd >= 0 && raise_loopback(fd) &&
	       setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) == 0 &&
	       sendto(fd, &probe, sizeof(probe), 0, (struct sockaddr *)&to, sizeof(to)) ==
		       sizeof(probe);
}

bool
afp_has_uso(void)
{
	static int answer = -1;
	int status = 0;
	pid_t child;

	if (answer >= 0)
		return answer;
	child = fork();
	if (child == 0)
		_exit(send_probe());
	answer = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		 WEXITSTATUS(status) == 1;
	return answer;
}
