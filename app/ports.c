/* SPDX-License-Identifier: BSD-3-Clause */
/* One switch over the kinds for each question; see ports.h. */
#include <errno.h>
#include <string.h>

#include "drivers/net/vm/vm.h"
#include "ports.h"

const char *
port_place(const struct device *dev)
{
	switch (dev->kind) {
	case DEVICE_NET_TAP:
		return dev->tap.iface;
	case DEVICE_NET_AF_PACKET:
		return dev->af_packet.iface;
	default:
		return "";
	}
}

static int
check_tap(const struct device *dev, struct mistake *why)
{
	const char *key = "";
	const char *given;
	char text[256] = "";

	if (vhp_tap_check(&dev->tap, &key, text, sizeof(text)) == 0)
		return 0;
	if (key[0] == '\0')
		return mistake(why, "%s: %s", dev->name, text);
	given = strcmp(key, "bridge") == 0 ? dev->tap.bridge : dev->tap.iface;
	return mistake(why, "%s: %s = \"%s\": %s", dev->name, key, given, text);
}

static int
check_af_packet(const struct device *dev, struct mistake *why)
{
	const char *key = "";
	char text[256] = "";

	if (vhp_af_packet_check(&dev->af_packet, &key, text, sizeof(text)) == 0)
		return 0;
	if (key[0] == '\0')
		return mistake(why, "%s: %s", dev->name, text);
	return mistake(why, "%s: %s = \"%s\": %s", dev->name, key, dev->af_packet.iface, text);
}

int
port_check(const struct device *dev, struct mistake *why)
{
	switch (dev->kind) {
	case DEVICE_NET_TAP:
		return check_tap(dev, why);
	case DEVICE_NET_AF_PACKET:
		return check_af_packet(dev, why);
	default:
		return 0;
	}
}

uint64_t
port_features(const struct device *dev)
{
	switch (dev->kind) {
	case DEVICE_NET_TAP:
		return vhp_tap_features(&dev->tap);
	case DEVICE_NET_AF_PACKET:
		return vhp_af_packet_features();
	case DEVICE_NET_VHOST:
		return vhp_vm_features();
	default:
		return vhp_ethdev_features();
	}
}

/* Two guests: both ports at once, for this pair and for the next, which is its reverse. */
static int
open_vm(const struct device *far, const struct device *near, struct vhp_port **out)
{
	struct vhp_vm_conf conf = {
		.names = {near->net.name, far->net.name},
		.queues = near->net.queues,
	};

	return vhp_vm_open(&conf, out);
}

int
port_open(const struct config *config, unsigned int pair, struct vhp_loop *loop,
	struct vhp_port **out)
{
	const struct device *dev = &config->devices[config->pairs[pair].port];

	switch (dev->kind) {
	case DEVICE_NET_TAP:
		return vhp_tap_open(loop, &dev->tap, out);
	case DEVICE_NET_AF_PACKET:
		return vhp_af_packet_open(loop, &dev->af_packet, out);
	case DEVICE_NET_VHOST:
		if (*out != NULL)
			return 0; /* by the pair before */
		return open_vm(dev, &config->devices[config->pairs[pair].vhost], out);
	default:
		return vhp_ethdev_open(&dev->eth, out);
	}
}
