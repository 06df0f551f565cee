/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-roundtrip: the far end of the device under test, an interface or another guest. */
#include "roundtrip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_WAIT_MS   5000
#define PEER_RX_MIN    512
#define PEER_RX_MAX    8192
#define PEER_MAX_SEGS  4
#define PEER_RING_SIZE 256

static int
fail(struct rt_far *far)
{
	snprintf(far->fault, sizeof(far->fault), "peer: %s", fe_net_fault(far->guest));
	return -EPROTO;
}

/* Buffers of many sizes; never less than some frames of 64 KiB. */
static void
post(struct rt_far *far)
{
	if (fe_net_post(far->guest, 0, FE_ALL, PEER_RX_MIN, PEER_RX_MAX, &far->how) > 0)
		fe_ring_kick(&far->guest->rx[0].ring);
}

static int
open_guest(struct rt_far *far, const struct rt_opts *o)
{
	struct fe_net_cfg cfg = {
		.path = o->peer,
		.features = FE_NET_BASE | FE_NET_OFFLOADS | FE_BIT(VIRTIO_NET_F_MRG_RXBUF) |
			    FE_BIT(VIRTIO_RING_F_EVENT_IDX) | FE_BIT(VIRTIO_RING_F_INDIRECT_DESC),
		.need_features = o->peer_packed ? FE_BIT(VIRTIO_F_RING_PACKED) : 0,
		.ring_size = PEER_RING_SIZE,
		.rx_buf_bytes = PEER_RX_MAX,
	};

	far->host.fd = -1;
	far->guest = calloc(1, sizeof(*far->guest));
	if (far->guest == NULL)
		return -ENOMEM;
	fe_rng_seed(&far->rng, o->seed + 1);
	/* Without tables each segment takes a descriptor, and 64 KiB may then not fit. */
	far->how = (struct fe_how){&far->rng, PEER_MAX_SEGS, FE_HDR_ANY, FE_CHAIN_INDIRECT};
	return fe_net_open(far->guest, &cfg) == 0 ? 0 : fail(far);
}

int
rt_far_open(struct rt_far *far, const struct rt_opts *o)
{
	int rc;

	if (o->peer != NULL)
		return open_guest(far, o);
	rc = fe_host_open(&far->host, o->iface, HOST_WAIT_MS);
	return rc == 0 && o->plain_host ? fe_host_plain(&far->host) : rc;
}

void
rt_far_close(struct rt_far *far)
{
	fe_host_close(&far->host);
	fe_net_close(far->guest);
	free(far->guest);
}

int
rt_far_start(struct rt_far *far)
{
	if (far->guest == NULL) {
		/* Frames that came before the receiveq was there are of no interest. */
		fe_host_flush(&far->host);
		return 0;
	}
	if (fe_net_start(far->guest) != 0)
		return fail(far);
	post(far);
	return 0;
}

int
rt_far_send(
	struct rt_far *far, const struct virtio_net_hdr_v1 *hdr, const uint8_t *frame, uint32_t len)
{
	int rc;

	if (far->guest == NULL)
		return fe_host_send(&far->host, hdr, frame, len);
	if (fe_net_reap(far->guest, 0) < 0)
		return fail(far);
	rc = fe_net_send(far->guest, 0, hdr, frame, len, &far->how);
	if (rc == 0)
		fe_ring_kick(&far->guest->tx[0].ring);
	return rc == -ENOSPC ? -EAGAIN : rc;
}

int
rt_far_recv(struct rt_far *far, struct virtio_net_hdr_v1 *hdr, uint8_t *buf, uint32_t cap)
{
	struct fe_rxframe fr;
	int rc;

	if (far->guest == NULL)
		return fe_host_recv(&far->host, hdr, buf, cap);
	/* What it has sent is used by now, too: a guest frees it when it is called. */
	if (fe_net_reap(far->guest, 0) < 0)
		return fail(far);
	rc = fe_net_recv(far->guest, 0, &fr);
	post(far);
	if (rc < 0)
		return fail(far);
	if (rc == 0)
		return -EAGAIN;
	*hdr = fr.hdr;
	memcpy(buf, fr.data, fr.len);
	return (int)fr.len;
}
