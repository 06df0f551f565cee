/* SPDX-License-Identifier: BSD-3-Clause */
/* See reload.h. Pure: two configurations in, a plan out. */
#include <string.h>

#include "reload.h"

/* Only what the device is: not how the user said it, nor what changes under traffic. */
static struct device
essence(const struct device *dev)
{
	struct device copy = *dev;

	copy.given = copy.ignored = 0;
	copy.peer = 0;
	memset(copy.peer_name, 0, sizeof(copy.peer_name));
	memset(copy.socket_owner, 0, sizeof(copy.socket_owner));
	memset(copy.socket_group, 0, sizeof(copy.socket_group));
	if (copy.kind == DEVICE_NET_VHOST) {
		copy.net.poll_us = 0;
		copy.net.mtu_bytes = 0;
		memset(copy.net.rate_bps, 0, sizeof(copy.net.rate_bps));
		memset(copy.net.rate_pps, 0, sizeof(copy.net.rate_pps));
	}
	return copy;
}

/* Devices begin as zeroes and are copied whole, so their padding is equal, too. */
static bool
same_essence(const struct device *a, const struct device *b)
{
	struct device x = essence(a), y = essence(b);

	return memcmp(&x, &y, sizeof(x)) == 0;
}

static bool
same_values(const struct device *a, const struct device *b)
{
	if (a->kind != DEVICE_NET_VHOST)
		return true;
	return a->net.poll_us == b->net.poll_us && a->net.mtu_bytes == b->net.mtu_bytes &&
	       memcmp(a->net.rate_bps, b->net.rate_bps, sizeof(a->net.rate_bps)) == 0 &&
	       memcmp(a->net.rate_pps, b->net.rate_pps, sizeof(a->net.rate_pps)) == 0;
}

static int
find_pair(const struct config *config, const char *vhost)
{
	for (unsigned int i = 0; i < config->n_pairs; i++)
		if (strcmp(config->devices[config->pairs[i].vhost].name, vhost) == 0)
			return (int)i;
	return -1;
}

static enum reload_action
compare(const struct config *running, const struct pair *old, const struct config *next,
	const struct pair *new)
{
	const struct device *a = running->devices, *b = next->devices;

	if (!same_essence(&a[old->vhost], &b[new->vhost]) ||
		!same_essence(&a[old->port], &b[new->port]))
		return RELOAD_REPLACE;
	if (!same_values(&a[old->vhost], &b[new->vhost]))
		return RELOAD_CHANGE;
	return RELOAD_KEEP;
}

/* EAL makes and ends DPDK's devices; they and crypto devices stay as they are. */
static int
check_fixed(const struct config *running, const struct config *next, const struct reload_pair *plan,
	struct mistake *why)
{
	for (unsigned int i = 0; i < next->n_pairs; i++) {
		const struct device *port = &next->devices[next->pairs[i].port];

		if (port->kind == DEVICE_EAL && plan[i].action >= RELOAD_REPLACE)
			return mistake(why,
				"%s: a device of DPDK's cannot be %s while running (restart)",
				port->name, plan[i].old < 0 ? "added" : "made anew");
	}
	for (unsigned int i = 0; i < next->n_devices; i++) {
		const struct device *dev = &next->devices[i];
		const struct device *old = config_find(running, dev->name);

		if (dev->kind == DEVICE_VHOST_CRYPTO && (old == NULL || !same_essence(old, dev)))
			return mistake(why, "%s: cannot be %s while running (restart)", dev->name,
				old == NULL ? "added" : "changed");
	}
	for (unsigned int i = 0; i < next->eal.n_lines; i++) {
		unsigned int k;

		for (k = 0; k < running->eal.n_lines; k++)
			if (strcmp(running->eal.lines[k], next->eal.lines[i]) == 0)
				break;
		if (k == running->eal.n_lines)
			return mistake(why,
				"%.*s: a device of DPDK's cannot change while running (restart)",
				(int)strcspn(next->eal.lines[i], ","), next->eal.lines[i]);
	}
	return 0;
}

int
reload_plan(const struct config *running, const struct config *next, struct reload_pair *plan,
	struct mistake *why)
{
	for (unsigned int i = 0; i < next->n_pairs; i++) {
		const struct pair *pair = &next->pairs[i];
		int old = find_pair(running, next->devices[pair->vhost].name);

		plan[i].old = old;
		plan[i].action =
			old < 0 ? RELOAD_ADD : compare(running, &running->pairs[old], next, pair);
	}
	return check_fixed(running, next, plan, why);
}

void
reload_print_deferred(const struct config *running, const struct config *next, FILE *out)
{
	const struct {
		const char *name;
		bool differs;
	} deferred[] = {
		{"poll-us-max", running->poller.poll_max_us != next->poller.poll_max_us},
		{"poll-waste",
			running->poller.poll_waste_percent != next->poller.poll_waste_percent},
		{"rebalance", running->rebalance_s != next->rebalance_s},
		{"pcap", strcmp(running->pcap, next->pcap) != 0},
		{"stats", running->stats_s != next->stats_s},
		{"[poller N]", memcmp(running->poller_cpu, next->poller_cpu,
				       sizeof(next->poller_cpu)) != 0},
	};
	const char *before = "dpdk-vhost-rxpoll: in force after a restart: ";

	for (size_t i = 0; i < sizeof(deferred) / sizeof(deferred[0]); i++) {
		if (!deferred[i].differs)
			continue;
		fprintf(out, "%s%s", before, deferred[i].name);
		before = ", ";
	}
	if (before[0] == ',')
		fputc('\n', out);
}
