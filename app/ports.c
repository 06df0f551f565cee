/* SPDX-License-Identifier: BSD-3-Clause */
/* One switch over the kinds for each question; see ports.h. */
#include <errno.h>
#include <string.h>

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
	default:
		return vhp_ethdev_features();
	}
}

int
port_open(const struct device *dev, struct vhp_loop *loop, struct vhp_port **out)
{
	switch (dev->kind) {
	case DEVICE_NET_TAP:
		return vhp_tap_open(loop, &dev->tap, out);
	case DEVICE_NET_AF_PACKET:
		return vhp_af_packet_open(loop, &dev->af_packet, out);
	default:
		return vhp_ethdev_open(&dev->eth, out);
	}
}
