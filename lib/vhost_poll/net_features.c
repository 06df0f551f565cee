/* SPDX-License-Identifier: BSD-3-Clause */
#include <linux/vhost_types.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>

#include <rte_common.h>

#include "net_features.h"
#include "vhost_user.h"
#include "vhp_port.h"

/* What a feature depends on. */
enum needs {
	RINGS,   /* nothing: our rings can do it */
	PACKED,  /* packed=1 */
	QUEUES,  /* queues=2 or more */
	PORT,    /* the port */
	SEGMENT, /* the port, and tso=1 */
	FRONT,   /* the front end does it by itself, or it is not of a vhost-user device */
	NEVER,   /* not implemented */
};

static const struct {
	unsigned int bit;
	enum needs needs;
	const char *name;
} table[] = {
	{VIRTIO_NET_F_CSUM, PORT, "CSUM"},
	{VIRTIO_NET_F_GUEST_CSUM, PORT, "GUEST_CSUM"},
	{VIRTIO_NET_F_CTRL_GUEST_OFFLOADS, NEVER, "CTRL_GUEST_OFFLOADS"},
	{VIRTIO_NET_F_MTU, RINGS, "MTU"},
	{VIRTIO_NET_F_MAC, FRONT, "MAC"},
	{VIRTIO_NET_F_GUEST_TSO4, SEGMENT, "GUEST_TSO4"},
	{VIRTIO_NET_F_GUEST_TSO6, SEGMENT, "GUEST_TSO6"},
	{VIRTIO_NET_F_GUEST_ECN, SEGMENT, "GUEST_ECN"},
	{VIRTIO_NET_F_GUEST_UFO, SEGMENT, "GUEST_UFO"},
	{VIRTIO_NET_F_HOST_TSO4, SEGMENT, "HOST_TSO4"},
	{VIRTIO_NET_F_HOST_TSO6, SEGMENT, "HOST_TSO6"},
	{VIRTIO_NET_F_HOST_ECN, SEGMENT, "HOST_ECN"},
	{VIRTIO_NET_F_HOST_UFO, SEGMENT, "HOST_UFO"},
	{VIRTIO_NET_F_MRG_RXBUF, RINGS, "MRG_RXBUF"},
	{VIRTIO_NET_F_STATUS, FRONT, "STATUS"},
	{VIRTIO_NET_F_CTRL_VQ, FRONT, "CTRL_VQ"},
	{VIRTIO_NET_F_GUEST_ANNOUNCE, RINGS, "GUEST_ANNOUNCE"},
	{VIRTIO_NET_F_MQ, QUEUES, "MQ"},
	{VIRTIO_F_NOTIFY_ON_EMPTY, RINGS, "NOTIFY_ON_EMPTY"},
	{VHOST_F_LOG_ALL, RINGS, "LOG_ALL"},
	{VIRTIO_F_ANY_LAYOUT, RINGS, "ANY_LAYOUT"},
	{VIRTIO_RING_F_INDIRECT_DESC, RINGS, "INDIRECT_DESC"},
	{VIRTIO_RING_F_EVENT_IDX, RINGS, "EVENT_IDX"},
	{VU_F_PROTOCOL_FEATURES, RINGS, "PROTOCOL_FEATURES"},
	{VIRTIO_F_VERSION_1, RINGS, "VERSION_1"},
	{VIRTIO_F_ACCESS_PLATFORM, NEVER, "ACCESS_PLATFORM"},
	{VIRTIO_F_RING_PACKED, PACKED, "RING_PACKED"},
	{VIRTIO_F_IN_ORDER, RINGS, "IN_ORDER"},
	{VHP_NET_F_GUEST_USO4, SEGMENT, "GUEST_USO4"},
	{VHP_NET_F_GUEST_USO6, SEGMENT, "GUEST_USO6"},
	{VHP_NET_F_HOST_USO, SEGMENT, "HOST_USO"},
	{VIRTIO_NET_F_HASH_REPORT, NEVER, "HASH_REPORT"},
	{VIRTIO_NET_F_RSS, NEVER, "RSS"},
};

/* NULL: the feature is offered; else why not. */
static const char *
missing(unsigned int i, const struct vhp_net_conf *conf, uint64_t port_features)
{
	switch (table[i].needs) {
	case RINGS:
		return NULL;
	case PACKED:
		return conf->packed ? NULL : "packed=0";
	case QUEUES:
		return conf->queues > 1 ? NULL : "queues=1";
	case SEGMENT:
		if (!conf->tso)
			return "tso=0";
		/* fall through */
	case PORT:
		return port_features >> table[i].bit & 1 ? NULL : "the port cannot";
	case FRONT:
		return "the front end's own";
	case NEVER:
		break;
	}
	return "not implemented";
}

uint64_t
vhp_net_features(const struct vhp_net_conf *conf, uint64_t port_features)
{
	uint64_t features = 0;

	for (unsigned int i = 0; i < RTE_DIM(table); i++)
		if (missing(i, conf, port_features) == NULL)
			features |= 1ULL << table[i].bit;
	return features;
}

void
vhp_net_features_print(FILE *out, const struct vhp_net_conf *conf, uint64_t port_features)
{
	fprintf(out, "%s offers", conf->name);
	for (unsigned int i = 0; i < RTE_DIM(table); i++)
		if (missing(i, conf, port_features) == NULL)
			fprintf(out, " %s", table[i].name);
	fprintf(out, "\n");
	for (unsigned int i = 0; i < RTE_DIM(table); i++) {
		const char *why = missing(i, conf, port_features);

		if (why != NULL)
			fprintf(out, "%s does not offer %s: %s\n", conf->name, table[i].name, why);
	}
}
