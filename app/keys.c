/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of device and their keys; see keys.h. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config.h"
#include "keys.h"
#include "value.h"

#define DEV(member) offsetof(struct device, member)

static const struct key net_vhost_keys[] = {
	{"iface", KEY_TEXT, 1, VHP_PATH_BYTES - 1, DEV(net.iface), NULL,
		"path of the vhost-user socket"},
	{"queues", KEY_U16, 1, VHP_MAX_QUEUES, DEV(net.queues), "1", "queue pairs"},
	{"client", KEY_BOOL, 0, 1, DEV(net.client), "0",
		"connect to the front end's socket, and again when it is lost"},
	{"packed", KEY_BOOL, 0, 1, DEV(net.packed), "1", "offer packed rings to the guest"},
	{"mtu", KEY_U16, 68, 65521, DEV(net.mtu_bytes), "the port's own", "MTU of the port"},
	{"tso", KEY_BOOL, 0, 1, DEV(net.tso), "1", "offer segmentation offloads to the guest"},
	{"peer", KEY_TEXT, 1, VHP_NAME_BYTES - 1, DEV(peer_name), "by the order given",
		"device to join"},
	{"poll-us", KEY_WINDOW, 0, VHP_POLL_MAX_US, DEV(net.poll_us), "--poll-us",
		"poll window in microseconds"},
	{"rx-poll", KEY_RX_POLL, 0, 0, DEV(net.rx_poll), "--rx-poll",
		"when the host side is looked at"},
	{"rate", KEY_RATE, 8000, 1000000000000, DEV(net.rate_bps), "no limit",
		"bits a second, from guest/to guest"},
	{"rate-pps", KEY_RATE, 1, 1000000000, DEV(net.rate_pps), "no limit",
		"frames a second, from guest/to guest"},
	{"poller", KEY_INT, 0, CONFIG_MAX_POLLERS - 1, DEV(net.poller), "any",
		"index of the poller"},
	{"socket-mode", KEY_MODE, 1, 0777, DEV(net.socket_mode), "by umask",
		"permission bits of the socket"},
	{"socket-owner", KEY_TEXT, 1, CONFIG_USER_BYTES - 1, DEV(socket_owner), "this user",
		"owner of the socket, name or number"},
	{"socket-group", KEY_TEXT, 1, CONFIG_USER_BYTES - 1, DEV(socket_group), "this group",
		"group of the socket, name or number"},
	{"postcopy-support", KEY_IGNORED, 0, 1, 0, "0", "accepted, without effect"},
	{"iommu-support", KEY_IGNORED, 0, 1, 0, "0", "accepted, without effect"},
	{"linear-buffer", KEY_IGNORED, 0, 1, 0, "0", "accepted, without effect"},
	{"ext-buffer", KEY_IGNORED, 0, 1, 0, "0", "accepted, without effect"},
	{"legacy-ol-flags", KEY_IGNORED, 0, 1, 0, "0", "accepted, without effect"},
};

static const struct key net_tap_keys[] = {
	{"iface", KEY_IFACE, 1, IFNAMSIZ - 1, DEV(tap.iface), "dtap%d",
		"interface, %d for a free number"},
	{"mac", KEY_MAC, 0, 0, DEV(tap.mac), "a random one", "address of the interface"},
	{"persist", KEY_FLAG, 0, 1, DEV(tap.persist), "0",
		"keep the interface when the daemon ends"},
	{"queues", KEY_U16, 1, VHP_MAX_QUEUES, DEV(tap.queues), "as its net_vhost", "queues"},
	{"sndbuf", KEY_INT, 0, INT32_MAX, DEV(tap.sndbuf_bytes), "0",
		"bytes in flight to the kernel before it is full, 0 without limit"},
	{"bridge", KEY_BRIDGE, 1, IFNAMSIZ - 1, DEV(tap.bridge), "none",
		"bridge that the interface joins"},
	{"offload", KEY_BOOL, 0, 1, DEV(tap.offload), "1",
		"pass checksum and segmentation offloads through"},
};

static const struct key vhost_crypto_keys[] = {
	{"iface", KEY_TEXT, 1, VHP_PATH_BYTES - 1, DEV(net.iface), NULL,
		"path of the vhost-user socket"},
	{"cryptodev", KEY_TEXT, 1, CONFIG_NAME_BYTES - 1, DEV(cryptodev), NULL,
		"device of DPDK's that computes, as crypto_openssl0"},
	{"queues", KEY_U16, 1, VHP_MAX_QUEUES - 1, DEV(net.queues), "1", "data queues"},
	{"sessions", KEY_INT, 1, 1 << 16, DEV(sessions), "4096",
		"most sessions that a front end may have at a time"},
	{"client", KEY_BOOL, 0, 1, DEV(net.client), "0",
		"connect to the front end's socket, and again when it is lost"},
	{"poll-us", KEY_WINDOW, 0, VHP_POLL_MAX_US, DEV(net.poll_us), "--poll-us",
		"poll window in microseconds"},
	{"poller", KEY_INT, 0, CONFIG_MAX_POLLERS - 1, DEV(net.poller), "any",
		"index of the poller"},
	{"socket-mode", KEY_MODE, 1, 0777, DEV(net.socket_mode), "by umask",
		"permission bits of the socket"},
	{"socket-owner", KEY_TEXT, 1, CONFIG_USER_BYTES - 1, DEV(socket_owner), "this user",
		"owner of the socket, name or number"},
	{"socket-group", KEY_TEXT, 1, CONFIG_USER_BYTES - 1, DEV(socket_group), "this group",
		"group of the socket, name or number"},
};

/* Preset of framesz and framecnt: 16 MiB, some hundred frames of 64 KiB. */
#define FRAME_BYTES 2048
#define FRAME_COUNT 8192

static const struct key net_af_packet_keys[] = {
	{"iface", KEY_BRIDGE, 1, IFNAMSIZ - 1, DEV(af_packet.iface), NULL, "interface of the host"},
	{"qpairs", KEY_U16, 1, VHP_MAX_QUEUES, DEV(af_packet.queues), "as its net_vhost", "queues"},
	{"framesz", KEY_INT, 64, 1 << 20, DEV(af_packet.frame_bytes), "2048",
		"bytes of a slot of the receive ring; longer frames wait at the socket"},
	{"framecnt", KEY_INT, 1, 1 << 20, DEV(af_packet.frame_count), "8192",
		"slots of the receive ring of each queue that the guest uses"},
	{"qdisc_bypass", KEY_BOOL, 0, 1, DEV(af_packet.qdisc_bypass), "0",
		"send past the interface's queueing discipline"},
	{"blocksz", KEY_IGNORED, 1, INT32_MAX, 0, "none", "accepted, without effect"},
};

static_assert(sizeof(net_vhost_keys) / sizeof(net_vhost_keys[0]) <= 32, "device::given");
static_assert(sizeof(net_tap_keys) / sizeof(net_tap_keys[0]) <= 32, "device::given");

static void
net_vhost_defaults(struct device *dev)
{
	snprintf(dev->net.name, sizeof(dev->net.name), "%.*s", VHP_NAME_BYTES - 1, dev->name);
	dev->net.queues = 1;
	dev->net.tso = true;
	dev->net.packed = true;
	dev->net.poller = -1;
	dev->net.poll_us = VHP_POLL_AUTO;
	dev->net.socket_owner = (uid_t)-1;
	dev->net.socket_group = (gid_t)-1;
}

static void
net_tap_defaults(struct device *dev)
{
	snprintf(dev->tap.name, sizeof(dev->tap.name), "%.*s", VHP_NAME_BYTES - 1, dev->name);
	snprintf(dev->tap.iface, sizeof(dev->tap.iface), "dtap%%d");
	dev->tap.queues = 1;
	dev->tap.offload = true;
}

static void
net_af_packet_defaults(struct device *dev)
{
	struct vhp_af_packet_conf *conf = &dev->af_packet;

	snprintf(conf->name, sizeof(conf->name), "%.*s", VHP_NAME_BYTES - 1, dev->name);
	conf->queues = 1;
	conf->frame_bytes = FRAME_BYTES;
	conf->frame_count = FRAME_COUNT;
}

static void
vhost_crypto_defaults(struct device *dev)
{
	net_vhost_defaults(dev);
	dev->net.rx_poll = VHP_RX_INTERLEAVE;
	dev->sessions = 4096;
}

#define TABLE(keys) keys, sizeof(keys) / sizeof(keys[0])

const struct kind kinds[DEVICE_KINDS] = {
	[DEVICE_NET_VHOST] = {"net_vhost", "eth_vhost", "a vhost-user-net device for a guest",
		net_vhost_defaults, TABLE(net_vhost_keys)},
	[DEVICE_NET_TAP] = {"net_tap", "eth_tap", "a tap interface of the host", net_tap_defaults,
		TABLE(net_tap_keys)},
	[DEVICE_NET_AF_PACKET] = {"net_af_packet", "eth_af_packet",
		"a packet socket on an interface of the host", net_af_packet_defaults,
		TABLE(net_af_packet_keys)},
	[DEVICE_VHOST_CRYPTO] = {"vhost_crypto", "vhost_crypto",
		"a vhost-user-crypto device for a guest", vhost_crypto_defaults,
		TABLE(vhost_crypto_keys)},
};

const char *
key_allowed(const struct key *key, char *out, size_t out_bytes)
{
	switch (key->type) {
	case KEY_BOOL:
		snprintf(out, out_bytes, "0 or 1");
		break;
	case KEY_FLAG:
		snprintf(out, out_bytes, "no value, 0 or 1");
		break;
	case KEY_U16:
	case KEY_INT:
	case KEY_IGNORED:
		if (key->type == KEY_IGNORED && key->max == 1)
			snprintf(out, out_bytes, "0 or 1");
		else
			snprintf(out, out_bytes, "%lld..%lld", (long long)key->min,
				(long long)key->max);
		break;
	case KEY_MODE:
		snprintf(out, out_bytes, "octal %llo..%llo", (long long)key->min,
			(long long)key->max);
		break;
	case KEY_WINDOW:
		snprintf(out, out_bytes, VALUE_WINDOW_ALLOWED);
		break;
	case KEY_RX_POLL:
		snprintf(out, out_bytes, VALUE_RX_POLL_ALLOWED);
		break;
	case KEY_RATE:
		snprintf(out, out_bytes, "0 or %lld..%lld, or A/B, with k, M or G",
			(long long)key->min, (long long)key->max);
		break;
	case KEY_TEXT:
		snprintf(out, out_bytes, "%lld..%lld bytes", (long long)key->min,
			(long long)key->max);
		break;
	case KEY_IFACE:
	case KEY_BRIDGE:
		snprintf(out, out_bytes,
			"%lld..%lld bytes without blanks, / and :", (long long)key->min,
			(long long)key->max);
		break;
	case KEY_MAC:
		snprintf(out, out_bytes, "xx:xx:xx:xx:xx:xx or fixed");
		break;
	}
	return out;
}

/* Numbers of all widths, into the member at the key's offset. */
static const char *
set_number(const struct key *key, const char *value, void *at)
{
	const char *wrong;
	int64_t n;

	wrong = value_number(value, key->type == KEY_MODE ? 8 : 0, key->min, key->max, &n);
	if (wrong != NULL)
		return wrong;
	if (key->type == KEY_U16)
		*(uint16_t *)at = (uint16_t)n;
	else if (key->type == KEY_MODE)
		*(mode_t *)at = (mode_t)n;
	else
		*(int *)at = (int)n;
	return NULL;
}

static const char *
set_mac(struct device *dev, const char *value)
{
	const char *wrong = NULL;

	dev->mac_fixed = strcasecmp(value, "fixed") == 0;
	if (!dev->mac_fixed)
		wrong = value_mac(value, &dev->tap.mac);
	dev->tap.mac_given = wrong == NULL;
	return wrong;
}

static const char *
set_ignored(struct device *dev, unsigned int index, const char *value)
{
	const struct key *key = &kinds[dev->kind].keys[index];
	bool on = false;
	int64_t n = 0;
	const char *wrong = key->max == 1 ? value_bool(value, &on)
					  : value_number(value, 0, key->min, key->max, &n);

	if (on || n != 0)
		dev->ignored |= 1u << index;
	return wrong;
}

/* Store the value; returns what is wrong with it, or NULL. */
static const char *
set_value(struct device *dev, unsigned int index, const char *value)
{
	const struct key *key = &kinds[dev->kind].keys[index];
	void *at = (char *)dev + key->offset;

	if (value == NULL) {
		if (key->type != KEY_FLAG)
			return "needs a value";
		value = "1";
	}
	switch (key->type) {
	case KEY_BOOL:
	case KEY_FLAG:
		return value_bool(value, at);
	case KEY_IGNORED:
		return set_ignored(dev, index, value);
	case KEY_U16:
	case KEY_INT:
	case KEY_MODE:
		return set_number(key, value, at);
	case KEY_WINDOW:
		return value_window(value, at);
	case KEY_RX_POLL:
		return value_rx_poll(value, at);
	case KEY_RATE:
		return value_rates(value, (uint64_t)key->min, (uint64_t)key->max, at);
	case KEY_TEXT:
		return value_text(value, at, (size_t)key->max + 1);
	case KEY_IFACE:
	case KEY_BRIDGE:
		return value_iface(value, key->type == KEY_IFACE, at);
	case KEY_MAC:
		return set_mac(dev, value);
	}
	return "unknown key";
}

static int
unknown_key(const struct device *dev, const char *name, const char *value, struct mistake *why)
{
	const struct kind *kind = &kinds[dev->kind];
	char names[512] = "";
	size_t used_bytes = 0;

	for (unsigned int i = 0; i < kind->n_keys && used_bytes < sizeof(names); i++)
		used_bytes += (size_t)snprintf(names + used_bytes, sizeof(names) - used_bytes,
			"%s%s", i > 0 ? ", " : "", kind->keys[i].name);
	return mistake_value(why, dev->name, name, value, "unknown key", names);
}

int
key_set(struct device *dev, const char *name, const char *value, struct mistake *why)
{
	const struct kind *kind = &kinds[dev->kind];
	char allowed[80];
	const char *wrong;
	unsigned int i;

	for (i = 0; i < kind->n_keys; i++)
		if (strcmp(kind->keys[i].name, name) == 0)
			break;
	if (i == kind->n_keys)
		return unknown_key(dev, name, value, why);
	if ((dev->given & 1u << i) != 0)
		return mistake_value(why, dev->name, name, value, "given twice", "once");
	dev->given |= 1u << i;
	wrong = set_value(dev, i, value);
	if (wrong == NULL)
		return 0;
	return mistake_value(why, dev->name, name, value, wrong,
		key_allowed(&kind->keys[i], allowed, sizeof(allowed)));
}

bool
key_given(const struct device *dev, const char *name)
{
	if (dev->kind >= DEVICE_KINDS)
		return false;
	for (unsigned int i = 0; i < kinds[dev->kind].n_keys; i++)
		if (strcmp(kinds[dev->kind].keys[i].name, name) == 0)
			return (dev->given & 1u << i) != 0;
	return false;
}
