/* SPDX-License-Identifier: BSD-3-Clause */
/* Device lines into struct config; see config.h. keys.c knows the keys, pair.c joins. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>

#include "config.h"

#define DEVICE_NAMES                                                                               \
	"net_vhost<N>, net_tap<N>, net_af_packet<N>, vhost_crypto<N> or a device of DPDK's"

void
config_init(struct config *config)
{
	memset(config, 0, sizeof(*config));
	config->poll_us = VHP_POLL_AUTO;
	config->rebalance_s = CONFIG_REBALANCE_S;
	config->poller.poll_max_us = CONFIG_POLL_MAX_US;
	config->poller.poll_waste_percent = CONFIG_POLL_WASTE;
	config->rx_poll = VHP_RX_INTERLEAVE;
	for (int i = 0; i < CONFIG_MAX_POLLERS; i++)
		config->poller_cpu[i] = -1;
}

void
config_free(struct config *config)
{
	free(config->devices);
	free(config->pairs);
	free(config->eal.argv);
	for (unsigned int i = 0; i < config->eal.n_lines; i++)
		free(config->eal.lines[i]);
	free(config->eal.lines);
	memset(config, 0, sizeof(*config));
}

/* What follows the prefix or the alias in the name, NULL if it starts with neither. */
static const char *
name_tail(const struct kind *kind, const char *name)
{
	size_t prefix_bytes = strlen(kind->prefix);
	size_t alias_bytes = strlen(kind->alias);

	if (strncmp(name, kind->prefix, prefix_bytes) == 0)
		return name + prefix_bytes;
	if (strncmp(name, kind->alias, alias_bytes) == 0)
		return name + alias_bytes;
	return NULL;
}

/* Whose device it is, by its name alone. */
static int
set_kind(struct device *dev, struct mistake *why)
{
	dev->kind = DEVICE_EAL;
	for (int i = 0; i < DEVICE_KINDS; i++) {
		const char *tail = name_tail(&kinds[i], dev->name);

		if (tail == NULL)
			continue;
		if (tail[0] == '\0' || tail[strspn(tail, "0123456789")] != '\0')
			return mistake(why, "%s: unknown device (%s<N>, N a number)", dev->name,
				kinds[i].prefix);
		if (strlen(dev->name) >= VHP_NAME_BYTES)
			return mistake(why, "%s: name too long (1..%d bytes)", dev->name,
				VHP_NAME_BYTES - 1);
		dev->kind = (enum device_kind)i;
	}
	dev->is_port = strncmp(dev->name, "net_", 4) == 0 || strncmp(dev->name, "eth_", 4) == 0;
	return 0;
}

static_assert(CONFIG_NAME_BYTES == VHP_ETHDEV_NAME_BYTES, "EAL's names");

static int
check_mandatory(const struct device *dev, struct mistake *why)
{
	const struct kind *kind = &kinds[dev->kind];

	for (unsigned int i = 0; i < kind->n_keys; i++)
		if (kind->keys[i].preset == NULL && (dev->given & 1u << i) == 0)
			return mistake_value(why, dev->name, kind->keys[i].name, NULL, "missing",
				kind->keys[i].help);
	return 0;
}

static int
set_keys(struct device *dev, const char *args, struct mistake *why)
{
	struct rte_kvargs *pairs;
	int rc = 0;

	pairs = rte_kvargs_parse(args, NULL);
	if (pairs == NULL)
		return mistake(why, "%s: too many keys (1..%d)", dev->name, RTE_KVARGS_MAX);
	for (unsigned int i = 0; i < pairs->count && rc == 0; i++)
		rc = key_set(dev, pairs->pairs[i].key, pairs->pairs[i].value, why);
	rte_kvargs_free(pairs);
	return rc == 0 ? check_mandatory(dev, why) : rc;
}

/* A device with its defaults, from the first name_bytes of a text that is shown if wrong. */
static int
begin_device(const char *text, size_t name_bytes, struct device *dev, struct mistake *why)
{
	int rc;

	memset(dev, 0, sizeof(*dev));
	dev->peer = -1;
	if (name_bytes == 0)
		return mistake_value(why, "", "--vdev", text, "no device name", DEVICE_NAMES);
	if (name_bytes >= sizeof(dev->name))
		return mistake_value(why, "", "--vdev", text, "device name too long", DEVICE_NAMES);
	memcpy(dev->name, text, name_bytes);
	rc = set_kind(dev, why);
	if (rc != 0)
		return rc;
	if (dev->kind == DEVICE_EAL)
		memcpy(dev->eth.name, dev->name, sizeof(dev->eth.name));
	else
		kinds[dev->kind].set_defaults(dev);
	return 0;
}

int
config_parse_device(const char *line, struct device *dev, struct mistake *why)
{
	size_t name_bytes = strcspn(line, ",");
	int rc = begin_device(line, name_bytes, dev, why);

	if (rc != 0 || dev->kind == DEVICE_EAL)
		return rc;
	return set_keys(dev, line + name_bytes + (line[name_bytes] == ','), why);
}

const struct device *
config_find(const struct config *config, const char *name)
{
	for (unsigned int i = 0; i < config->n_devices; i++)
		if (strcmp(config->devices[i].name, name) == 0)
			return &config->devices[i];
	return NULL;
}

unsigned int
config_count(const struct config *config, enum device_kind kind)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < config->n_devices; i++)
		n += config->devices[i].kind == kind;
	return n;
}

/* Does the front end connect to a socket of it? */
static bool
has_socket(const struct device *dev)
{
	return dev->kind == DEVICE_NET_VHOST || dev->kind == DEVICE_VHOST_CRYPTO;
}

/* What two devices may not share: the name, the socket, the interface. */
static int
check_unique(const struct config *config, const struct device *dev, struct mistake *why)
{
	for (unsigned int i = 0; i < config->n_devices; i++) {
		const struct device *other = &config->devices[i];
		const char *iface = NULL;

		if (strcmp(other->name, dev->name) == 0)
			return mistake(why, "%s: given twice (once)", dev->name);
		if (has_socket(dev) && has_socket(other) &&
			strcmp(other->net.iface, dev->net.iface) == 0)
			iface = dev->net.iface;
		if (other->kind == dev->kind && dev->kind == DEVICE_NET_TAP &&
			strchr(dev->tap.iface, '%') == NULL &&
			strcmp(other->tap.iface, dev->tap.iface) == 0)
			iface = dev->tap.iface;
		if (other->kind == dev->kind && dev->kind == DEVICE_NET_AF_PACKET &&
			strcmp(other->af_packet.iface, dev->af_packet.iface) == 0)
			iface = dev->af_packet.iface;
		if (iface != NULL)
			return mistake(why, "%s: iface = \"%s\": %s has it (one device each)",
				dev->name, iface, other->name);
	}
	return 0;
}

/* Addresses of mac=fixed as the PMD numbers them: 02:64:74:61:70:30 and up. */
static void
number_fixed_mac(const struct config *config, struct device *dev)
{
	struct ether_addr mac = {{0x02, 'd', 't', 'a', 'p', '0'}};

	for (unsigned int i = 0; i < config->n_devices; i++)
		mac.ether_addr_octet[5] += config->devices[i].mac_fixed;
	dev->tap.mac = mac;
}

static int
insert(struct config *config, unsigned int index, const struct device *dev, struct mistake *why)
{
	struct device *devices;
	int rc;

	rc = check_unique(config, dev, why);
	if (rc != 0)
		return rc;
	if (config->n_devices == CONFIG_MAX_DEVICES)
		return mistake(why, "%s: too many devices (1..%d)", dev->name, CONFIG_MAX_DEVICES);
	devices = realloc(config->devices, (config->n_devices + 1) * sizeof(*devices));
	if (devices == NULL) {
		mistake(why, "%s: out of memory", dev->name);
		return -ENOMEM;
	}
	config->devices = devices;
	memmove(&devices[index + 1], &devices[index],
		(config->n_devices - index) * sizeof(*devices));
	devices[index] = *dev;
	if (dev->mac_fixed)
		number_fixed_mac(config, &devices[index]);
	config->n_devices++;
	return 0;
}

int
config_add(struct config *config, const char *line, struct mistake *why)
{
	struct device dev;
	int rc;

	rc = config_parse_device(line, &dev, why);
	if (rc != 0)
		return rc;
	return insert(config, config->n_devices, &dev, why);
}

/* "net_pcap0,rx_pcap=/a": what EAL gets of a device in the file. */
static int
add_eal_line(struct eal_conf *eal, const struct device *dev, const struct device_key *keys,
	unsigned int n_keys, struct mistake *why)
{
	char **lines = realloc(eal->lines, (eal->n_lines + 1) * sizeof(*lines));
	size_t line_bytes = 0;
	char *line = NULL;
	FILE *out;

	if (lines != NULL)
		eal->lines = lines;
	out = open_memstream(&line, &line_bytes);
	if (lines == NULL || out == NULL) {
		if (out != NULL)
			fclose(out);
		free(line);
		mistake(why, "%s: out of memory", dev->name);
		return -ENOMEM;
	}
	fputs(dev->name, out);
	for (unsigned int i = 0; i < n_keys; i++)
		fprintf(out, ",%s%s%s", keys[i].name, keys[i].value != NULL ? "=" : "",
			keys[i].value != NULL ? keys[i].value : "");
	fclose(out);
	eal->lines[eal->n_lines++] = line;
	return 0;
}

int
config_add_keys(struct config *config, const char *name, const struct device_key *keys,
	unsigned int n_keys, struct mistake *why)
{
	struct device dev;
	int rc = begin_device(name, strlen(name), &dev, why);

	if (rc == 0 && dev.kind == DEVICE_EAL) {
		if (strchr(name, '_') == NULL || strchr(name, ',') != NULL)
			return mistake(why,
				"[%s]: no such section ([options], [poller N], or "
				"[device]: " DEVICE_NAMES ")",
				name);
		rc = add_eal_line(&config->eal, &dev, keys, n_keys, why);
	} else {
		for (unsigned int i = 0; i < n_keys && rc == 0; i++)
			rc = key_set(&dev, keys[i].name, keys[i].value, why);
		if (rc == 0)
			rc = check_mandatory(&dev, why);
	}
	if (rc != 0)
		return rc;
	return insert(config, config->n_devices, &dev, why);
}

int
config_add_allowed(struct config *config, const char *line, struct mistake *why)
{
	struct device dev = {.kind = DEVICE_EAL, .is_port = true, .peer = -1};
	size_t name_bytes = strcspn(line, ",");
	int rc;

	if (name_bytes == 0 || name_bytes >= sizeof(dev.name))
		return mistake_value(why, "", "-a", line, "not a device", "a PCI address");
	memcpy(dev.name, line, name_bytes);
	memcpy(dev.eth.name, dev.name, sizeof(dev.eth.name));
	rc = insert(config, config->n_allowed, &dev, why);
	if (rc == 0)
		config->n_allowed++;
	return rc;
}
