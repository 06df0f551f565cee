/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device arguments (app/config.c, app/pair.c): each line of the input is a --vdev, or a -a if it
 * begins with "-a "; then the devices are joined.
 */
#include <errno.h>
#include <stdlib.h>

#include "checks.h"
#include "config.h"
#include "input.h"
#include "keys.h"

#define MOST_LINES 16
#define LINE_BYTES 2048

/* A text field: ended inside of its array. */
#define CHECK_TEXT(field) CHECK(memchr((field), '\0', sizeof(field)) != NULL)

/* One line, to be printed as it is. */
static void
check_message(const struct mistake *why)
{
	size_t len = strnlen(why->text, sizeof(why->text));

	CHECK(len > 0 && len < sizeof(why->text));
	for (size_t i = 0; i < len; i++)
		CHECK((unsigned char)why->text[i] >= ' ' && why->text[i] != 0x7f);
}

static void
check_vhost(const struct device *dev)
{
	CHECK_TEXT(dev->net.name);
	CHECK_TEXT(dev->net.iface);
	CHECK_TEXT(dev->peer_name);
	CHECK_TEXT(dev->socket_owner);
	CHECK_TEXT(dev->socket_group);
	CHECK(dev->net.iface[0] != '\0');
	CHECK(dev->net.queues >= 1 && dev->net.queues <= VHP_MAX_QUEUES);
	CHECK(dev->net.poller >= -1);
	CHECK((dev->net.socket_mode & ~(mode_t)0777) == 0);
	CHECK(strcmp(dev->net.name, dev->name) == 0);
}

static void
check_tap(const struct device *dev)
{
	CHECK_TEXT(dev->tap.name);
	CHECK_TEXT(dev->tap.iface);
	CHECK_TEXT(dev->tap.bridge);
	CHECK(dev->tap.iface[0] != '\0');
	CHECK(dev->tap.queues >= 1 && dev->tap.queues <= VHP_MAX_QUEUES);
	CHECK(dev->tap.sndbuf_bytes >= 0);
	CHECK(!dev->tap.mac_given || !(dev->tap.mac.ether_addr_octet[0] & 1));
}

/* Parsed twice it is the same; the first time into memory of ones. */
static void
check_line(const char *line)
{
	struct mistake why[2] = {{""}, {""}};
	struct device dev[2];
	int ret[2];

	memset(&dev[0], 0xff, sizeof(dev[0]));
	memset(&dev[1], 0, sizeof(dev[1]));
	for (int i = 0; i < 2; i++)
		ret[i] = config_parse_device(line, &dev[i], &why[i]);
	CHECK(ret[0] == ret[1]);
	CHECK(ret[0] == 0 || ret[0] == -EINVAL);
	CHECK(strcmp(why[0].text, why[1].text) == 0);
	if (ret[0] != 0) {
		check_message(&why[0]);
		return;
	}
	CHECK(memcmp(&dev[0], &dev[1], sizeof(dev[0])) == 0);
	CHECK_TEXT(dev[0].name);
	CHECK(dev[0].kind <= DEVICE_EAL);
	CHECK(dev[0].peer == -1);
	if (dev[0].kind == DEVICE_NET_VHOST)
		check_vhost(&dev[0]);
	else if (dev[0].kind == DEVICE_NET_TAP)
		check_tap(&dev[0]);
}

/* Each pair has a net_vhost, and each port is in one pair; two guests are two pairs. */
static void
check_pairs(const struct config *config)
{
	unsigned int joined[MOST_LINES] = {0};

	for (unsigned int i = 0; i < config->n_pairs; i++) {
		const struct pair *p = &config->pairs[i];

		CHECK(p->vhost < config->n_devices && p->port < config->n_devices);
		CHECK(p->vhost != p->port);
		CHECK(config->devices[p->vhost].kind == DEVICE_NET_VHOST);
		CHECK(config->devices[p->port].is_port);
		joined[p->vhost]++;
		joined[p->port]++;
	}
	for (unsigned int i = 0; i < config->n_devices; i++)
		CHECK(config->devices[i].is_port ? joined[i] == 1 || joined[i] == 2
						 : joined[i] == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct config config;
	struct mistake why = {""};
	int ret = 0;

	config_init(&config);
	for (unsigned int n = 0; n < MOST_LINES && size > 0; n++) {
		const uint8_t *end = memchr(bytes, '\n', size);
		size_t len = end != NULL ? (size_t)(end - bytes) : size;
		size_t line_bytes = len < LINE_BYTES ? len : LINE_BYTES - 1;
		char *line = malloc(line_bytes + 1);

		CHECK(line != NULL);
		memcpy(line, bytes, line_bytes);
		line[line_bytes] = '\0';
		check_line(line);
		ret = strncmp(line, "-a ", 3) == 0 ? config_add_allowed(&config, line + 3, &why)
						   : config_add(&config, line, &why);
		CHECK(ret == 0 || ret == -EINVAL);
		free(line);
		if (ret != 0) {
			check_message(&why);
			break;
		}
		size -= len;
		bytes += len;
		if (size > 0) {
			size--;
			bytes++;
		}
	}
	if (ret == 0) {
		ret = config_pair(&config, &why);
		if (ret == 0)
			check_pairs(&config);
		else
			check_message(&why);
	}
	config_free(&config);
	return 0;
}
