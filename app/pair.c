/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which device exchanges frames with which, and what follows from it. testpmd's order:
 * 0-1, 2-3, ... over the ports; peer=NAME takes two devices out of that order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#define ALLOWED_PAIRS "two net_vhost, or one and a host port"

/* "net_tap0, net_tap1": the ports, for messages. Returns out. */
static const char *
port_names(const struct config *config, const struct device *but, char *out, size_t out_bytes)
{
	size_t used_bytes = 0;

	snprintf(out, out_bytes, "no other device is given");
	for (unsigned int i = 0; i < config->n_devices && used_bytes < out_bytes; i++) {
		const struct device *dev = &config->devices[i];

		if (!dev->is_port || dev == but)
			continue;
		used_bytes += (size_t)snprintf(out + used_bytes, out_bytes - used_bytes, "%s%s",
			used_bytes > 0 ? ", " : "", dev->name);
	}
	return out;
}

/* May these two be joined? Only here the list of allowed pairs is kept. */
static int
check_kinds(const struct device *a, const struct device *b, struct mistake *why)
{
	if (a->kind != DEVICE_NET_VHOST && b->kind != DEVICE_NET_VHOST)
		return mistake(
			why, "%s: cannot be joined with %s (" ALLOWED_PAIRS ")", a->name, b->name);
	return 0;
}

static int
join(struct config *config, int a, int b, struct mistake *why)
{
	struct device *devices = config->devices;
	struct pair *pair = &config->pairs[config->n_pairs];
	bool a_is_vhost = devices[a].kind == DEVICE_NET_VHOST;
	int rc;

	rc = check_kinds(&devices[a], &devices[b], why);
	if (rc != 0)
		return rc;
	devices[a].peer = b;
	devices[b].peer = a;
	pair->vhost = (unsigned int)(a_is_vhost ? a : b);
	pair->port = (unsigned int)(a_is_vhost ? b : a);
	config->n_pairs++;
	if (a_is_vhost && devices[b].kind == DEVICE_NET_VHOST)
		config->pairs[config->n_pairs++] = (struct pair){
			.vhost = pair->port,
			.port = pair->vhost,
		};
	return 0;
}

/* Join one device with its peer=NAME. */
static int
join_named(struct config *config, int index, struct mistake *why)
{
	struct device *dev = &config->devices[index];
	const struct device *peer = config_find(config, dev->peer_name);
	char names[512];

	if (peer == NULL || !peer->is_port)
		return mistake_value(why, dev->name, "peer", dev->peer_name, "no such device",
			port_names(config, dev, names, sizeof(names)));
	if (peer == dev)
		return mistake_value(why, dev->name, "peer", dev->peer_name, "the device itself",
			port_names(config, dev, names, sizeof(names)));
	if (dev->peer >= 0 && peer == &config->devices[dev->peer])
		return 0; /* the other side named this one */
	if (dev->peer >= 0)
		return mistake_value(why, dev->name, "peer", dev->peer_name,
			"another device named this one as its peer", "one peer each");
	if (peer->peer >= 0) {
		snprintf(names, sizeof(names), "%s has it", config->devices[peer->peer].name);
		return mistake_value(
			why, dev->name, "peer", dev->peer_name, names, "one peer each");
	}
	return join(config, index, (int)(peer - config->devices), why);
}

static int
join_in_order(struct config *config, struct mistake *why)
{
	int first = -1;
	int rc;

	for (unsigned int i = 0; i < config->n_devices; i++) {
		if (!config->devices[i].is_port || config->devices[i].peer >= 0)
			continue;
		if (first < 0) {
			first = (int)i;
			continue;
		}
		rc = join(config, first, (int)i, why);
		if (rc != 0)
			return rc;
		first = -1;
	}
	if (first >= 0)
		return mistake(why,
			"%s: no device left to join it with (an even number of devices, or "
			"peer=NAME)",
			config->devices[first].name);
	return 0;
}

/* Queues of a port, and the key that sets them. */
static uint16_t *
port_queues(struct device *port, const char **key)
{
	switch (port->kind) {
	case DEVICE_NET_VHOST:
		*key = "queues";
		return &port->net.queues;
	case DEVICE_NET_AF_PACKET:
		*key = "qpairs";
		return &port->af_packet.queues;
	case DEVICE_NET_TAP:
		*key = "queues";
		return &port->tap.queues;
	default:
		*key = ""; /* as many as its net_vhost, if the driver has them */
		return &port->eth.queues;
	}
}

/* A qpair needs a port queue and a port queue a qpair. */
static int
match_queues(const struct device *vhost, struct device *port, struct mistake *why)
{
	char given[16], allowed[80];
	const char *key;
	uint16_t *queues = port_queues(port, &key);

	if (!key_given(port, key)) {
		*queues = vhost->net.queues;
		return 0;
	}
	if (*queues == vhost->net.queues)
		return 0;
	snprintf(given, sizeof(given), "%u", *queues);
	snprintf(allowed, sizeof(allowed), "%u, as %s has", vhost->net.queues, vhost->name);
	return mistake_value(why, port->name, key, given, "not the number of its peer", allowed);
}

static int
inherit_options(const struct config *config, struct device *vhost, struct mistake *why)
{
	if (!key_given(vhost, "poll-us"))
		vhost->net.poll_us = config->poll_us;
	if (!key_given(vhost, "rx-poll"))
		vhost->net.rx_poll = config->rx_poll;
	/* The host side would never be looked at. */
	if (vhost->net.rx_poll == VHP_RX_DEFERRED && vhost->net.poll_us == VHP_POLL_FOREVER)
		return mistake_value(why, vhost->name, "rx-poll", "deferred",
			"not with a poll window that never closes", "a finite poll-us");
	return 0;
}

int
config_pair(struct config *config, struct mistake *why)
{
	int rc = 0;

	config->pairs = calloc(config->n_devices + 1, sizeof(*config->pairs));
	if (config->pairs == NULL) {
		mistake(why, "out of memory");
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < config->n_devices && rc == 0; i++)
		if (config->devices[i].peer_name[0] != '\0')
			rc = join_named(config, (int)i, why);
	if (rc == 0)
		rc = join_in_order(config, why);
	/* With a file they may come later. */
	if (rc == 0 && config->n_pairs == 0 && config->file == NULL &&
		config_count(config, DEVICE_VHOST_CRYPTO) == 0)
		rc = mistake(why, "no device given (--vdev net_vhost0,iface=PATH --vdev net_tap0; "
				  "see --help)");
	for (unsigned int i = 0; i < config->n_pairs && rc == 0; i++) {
		struct device *vhost = &config->devices[config->pairs[i].vhost];

		rc = inherit_options(config, vhost, why);
		if (rc == 0)
			rc = match_queues(vhost, &config->devices[config->pairs[i].port], why);
	}
	return rc;
}
