// SPDX-License-Identifier: BSD-3-Clause
/*
 * The source of the test front end: a packet socket on the host side of the
 * device. Each frame carries its number and bytes that follow from it, so a
 * frame that was cut, mixed up or repeated is noticed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>

#include "fe.h"

#define ETHERTYPE 0x88b5 /* IEEE 802: local experiments */
#define BATCH     32u

int
fe_src_open(struct fe *fe)
{
	const char *dev = fe->o.peer ? fe->o.peer : fe->o.dev;
	struct sockaddr_ll ll = {.sll_family = AF_PACKET};
	int bytes = 16 << 20;

	fe->src_ifindex = (int)if_nametoindex(dev);
	fe->src_fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETHERTYPE));
	if (fe->src_fd < 0 || !fe->src_ifindex) {
		fprintf(stderr, "fe: source on %s: %s\n", dev, strerror(errno));
		return -EIO;
	}
	(void)setsockopt(fe->src_fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	(void)setsockopt(fe->src_fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	ll.sll_protocol = htons(ETHERTYPE);
	ll.sll_ifindex = fe->src_ifindex;
	if (bind(fe->src_fd, (struct sockaddr *)&ll, sizeof(ll))) {
		fprintf(stderr, "fe: bind to %s: %s\n", dev, strerror(errno));
		return -EIO;
	}
	return 0;
}

static uint8_t
pattern(uint32_t seq, unsigned i)
{
	return (uint8_t)(seq * 31u + i * 7u + (seq >> 8));
}

void
fe_frame_build(uint8_t *frame, unsigned bytes, uint32_t seq)
{
	memset(frame, 0xff, ETH_ALEN);
	memcpy(frame + ETH_ALEN, "\x02\x00\x00\x00\x00\x01", ETH_ALEN);
	frame[12] = ETHERTYPE >> 8;
	frame[13] = ETHERTYPE & 0xff;
	memcpy(frame + 14, &seq, sizeof(seq));
	for (unsigned i = 18; i < bytes; i++)
		frame[i] = pattern(seq, i);
}

int64_t
fe_frame_check(const uint8_t *frame, unsigned bytes, unsigned expect_bytes)
{
	uint32_t seq;

	if (bytes != expect_bytes || frame[12] != ETHERTYPE >> 8 || frame[13] != (ETHERTYPE & 0xff))
		return -1;
	memcpy(&seq, frame + 14, sizeof(seq));
	for (unsigned i = 18; i < bytes; i++)
		if (frame[i] != pattern(seq, i))
			return -1;
	return seq;
}

unsigned
fe_src_send(struct fe *fe, uint32_t seq, unsigned count)
{
	static uint8_t bufs[BATCH][FE_BUF_BYTES];
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	unsigned n = count < BATCH ? count : BATCH;
	int r;

	memset(msgs, 0, sizeof(msgs));
	for (unsigned i = 0; i < n; i++) {
		fe_frame_build(bufs[i], fe->o.frame_bytes, seq + i);
		iov[i] = (struct iovec){bufs[i], fe->o.frame_bytes};
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	r = sendmmsg(fe->src_fd, msgs, n, 0);
	return r > 0 ? (unsigned)r : 0;
}

unsigned
fe_src_recv(struct fe *fe, uint64_t *bad)
{
	static uint8_t bufs[BATCH][FE_BUF_BYTES];
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	int r;

	memset(msgs, 0, sizeof(msgs));
	for (unsigned i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){bufs[i], FE_BUF_BYTES};
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	r = recvmmsg(fe->src_fd, msgs, BATCH, MSG_DONTWAIT, NULL);
	for (int i = 0; i < r; i++)
		*bad += fe_frame_check(bufs[i], msgs[i].msg_len, fe->o.frame_bytes) < 0;
	return r > 0 ? (unsigned)r : 0;
}
