/* SPDX-License-Identifier: BSD-3-Clause */
/* See bench_util.h. */
#include "bench_util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <linux/virtio_net.h>

#include "fe_frame.h"

#define RTT_MAX      2000000
#define IP_UDP_BYTES (sizeof(struct iphdr) + sizeof(struct udphdr))

volatile bool bn_stop;

void
bn_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

void
bn_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		bn_die("sched_setaffinity");
}

uint64_t
bn_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void
on_signal(int sig)
{
	(void)sig;
	bn_stop = true;
}

void
bn_catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
}

static void
bring_up(const char *name)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (sock < 0 || ioctl(sock, SIOCGIFFLAGS, &ifr) < 0)
		bn_die(name);
	ifr.ifr_flags |= IFF_UP;
	if (ioctl(sock, SIOCSIFFLAGS, &ifr) < 0)
		bn_die(name);
	close(sock);
}

int
bn_tap_open(const char *name, unsigned int offloads)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int size = BN_HDR_BYTES;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	/* An earlier tap of this name goes a moment after its owner. */
	for (int tries = 0; fd >= 0 && ioctl(fd, TUNSETIFF, &ifr) < 0; tries++) {
		if (errno != EBUSY || tries == 100)
			bn_die(name);
		usleep(10000);
	}
	if (fd < 0 || ioctl(fd, TUNSETVNETHDRSZ, &size) < 0 ||
		ioctl(fd, TUNSETOFFLOAD, offloads) < 0)
		bn_die(name);
	bring_up(name);
	return fd;
}

uint64_t
bn_rx_packets(const char *name)
{
	size_t len = strlen(name);
	uint64_t packets = UINT64_MAX;
	char line[512];
	FILE *f = fopen("/proc/net/dev", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		const char *at = line + strspn(line, " ");

		if (strncmp(at, name, len) == 0 && at[len] == ':' &&
			sscanf(at + len + 1, "%*u %lu", &packets) == 1)
			break;
	}
	if (f != NULL)
		fclose(f);
	if (packets == UINT64_MAX)
		bn_die(name);
	return packets;
}

void
bn_frame_fill(uint8_t *frame, uint32_t bytes)
{
	struct ethhdr *eth = (struct ethhdr *)frame;

	memset(frame, 0x5a, bytes);
	memcpy(eth->h_dest, "\x02\x00\x00\x00\x00\x01", ETH_ALEN);
	memcpy(eth->h_source, "\x02\x00\x00\x00\x00\x02", ETH_ALEN);
	eth->h_proto = htons(FE_ETHERTYPE);
}

static uint16_t
ip_checksum(const uint16_t *words, size_t bytes)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < bytes / 2; i++)
		sum += words[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The pseudo header's sum, which the kernel completes (NEEDS_CSUM). */
static uint16_t
pseudo_sum(const struct iphdr *ip, uint16_t udp_bytes)
{
	struct {
		uint32_t saddr, daddr;
		uint8_t zero, protocol;
		uint16_t len;
	} pseudo = {ip->saddr, ip->daddr, 0, IPPROTO_UDP, htons(udp_bytes)};
	uint16_t words[sizeof(pseudo) / 2];

	memcpy(words, &pseudo, sizeof(words));
	return (uint16_t)~ip_checksum(words, sizeof(words));
}

static void
fill_super(struct bn_sender *s, uint32_t frame_bytes)
{
	uint32_t seg = frame_bytes - ETH_HLEN - IP_UDP_BYTES;
	uint16_t udp_bytes = (uint16_t)(sizeof(struct udphdr) + seg * BN_SEND_BURST);
	struct virtio_net_hdr *h = (struct virtio_net_hdr *)s->super;
	uint8_t *frame = s->super + sizeof(*h);
	struct iphdr *ip = (struct iphdr *)(frame + ETH_HLEN);
	struct udphdr *udp = (struct udphdr *)(ip + 1);
	uint16_t words[sizeof(*ip) / 2];

	*h = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = ETH_HLEN + IP_UDP_BYTES,
		.gso_size = (uint16_t)seg,
		.csum_start = ETH_HLEN + sizeof(*ip),
		.csum_offset = 6,
	};
	bn_frame_fill(frame, s->super_bytes - (uint32_t)sizeof(*h));
	((struct ethhdr *)frame)->h_proto = htons(ETH_P_IP);
	*ip = (struct iphdr){.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.tot_len = htons((uint16_t)(sizeof(*ip) + udp_bytes)),
		.saddr = htonl(0xc0000201),
		.daddr = htonl(0xc0000202)};
	memcpy(words, ip, sizeof(words));
	ip->check = ip_checksum(words, sizeof(words));
	*udp = (struct udphdr){
		.source = htons(FE_PORT), .dest = htons(FE_PORT), .len = htons(udp_bytes)};
	udp->check = pseudo_sum(ip, udp_bytes);
}

void
bn_sender_open(struct bn_sender *s, const char *iface, uint32_t bytes)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
		.sll_protocol = 0,
		.sll_ifindex = (int)if_nametoindex(iface)};
	uint32_t seg = bytes - ETH_HLEN - (uint32_t)IP_UDP_BYTES;
	int one = 1, sndbuf = 1 << 24;

	memset(s, 0, sizeof(*s));
	s->super_bytes = (uint32_t)sizeof(struct virtio_net_hdr) + ETH_HLEN +
			 (uint32_t)IP_UDP_BYTES + seg * BN_SEND_BURST;
	s->super = calloc(1, s->super_bytes);
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (to.sll_ifindex == 0 || s->super == NULL || s->fd < 0 ||
		bind(s->fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
		setsockopt(s->fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) < 0 ||
		setsockopt(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, &sndbuf, sizeof(sndbuf)) < 0)
		bn_die(iface);
	fill_super(s, bytes);
}

void
bn_sender_burst(struct bn_sender *s)
{
	ssize_t sent = send(s->fd, s->super, s->super_bytes, 0);

	if (sent == (ssize_t)s->super_bytes)
		s->n_frames += BN_SEND_BURST;
	else if (errno != ENOBUFS && errno != EAGAIN && errno != ENETDOWN && errno != ENXIO)
		bn_die("send");
}

void
bn_no_delay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
		bn_die("TCP_NODELAY");
}

void
bn_rtt_init(struct bn_rtt *r)
{
	r->n = 0;
	r->ns = calloc(RTT_MAX, sizeof(*r->ns));
	if (r->ns == NULL)
		bn_die("memory");
}

bool
bn_rtt_add(struct bn_rtt *r, uint64_t ns)
{
	if (r->n == RTT_MAX)
		return false;
	r->ns[r->n++] = (uint32_t)ns;
	return true;
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double
percentile_us(const struct bn_rtt *r, double p)
{
	return r->ns[(uint32_t)(p / 100 * (r->n - 1))] / 1e3;
}

void
bn_rtt_print(struct bn_rtt *r, uint64_t run_ns)
{
	if (r->n == 0) {
		fprintf(stderr, "no round trip\n");
		exit(1);
	}
	qsort(r->ns, r->n, sizeof(*r->ns), by_value);
	printf("{\"per_s\": %.1f, \"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f}\n",
		r->n / ((double)run_ns / 1e9), percentile_us(r, 50), percentile_us(r, 99),
		percentile_us(r, 99.9));
	fflush(stdout);
}

int
bn_enter_netns(const char *name)
{
	char path[256];
	int before_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (before_fd < 0 || fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		bn_die(path);
	close(fd);
	return before_fd;
}

void
bn_leave_netns(int before_fd)
{
	if (setns(before_fd, CLONE_NEWNET) < 0)
		bn_die("setns");
	close(before_fd);
}
