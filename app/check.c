/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that need the host; see check.h. */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "ports.h"
#include "value.h"

/* Why no socket can be made at a path, and what would be right. */
static int
socket_mistake(const struct device *dev, int rc, struct mistake *why)
{
	const char *path = dev->net.iface;

	switch (-rc) {
	case EADDRINUSE:
		return mistake_value(why, dev->name, "iface", path,
			"a living process listens there", "a path that is free");
	case EEXIST:
		return mistake_value(why, dev->name, "iface", path,
			"a file that is no socket is there", "a path that is free");
	case ENOENT:
		return mistake_value(why, dev->name, "iface", path, "its directory does not exist",
			"an existing directory");
	case ENOTDIR:
		return mistake_value(why, dev->name, "iface", path,
			"a part of the path is no directory", "an existing directory");
	case EACCES:
	case EPERM:
	case EROFS:
		return mistake_value(why, dev->name, "iface", path, strerror(-rc),
			"a directory that this user can write to");
	default:
		return mistake_value(
			why, dev->name, "iface", path, strerror(-rc), "a path for a Unix socket");
	}
}

static int
check_socket(const struct device *dev, struct mistake *why)
{
	int rc = vhp_socket_path_check(dev->net.iface);

	/* A client finds there what the front end has made, now or later. */
	if (dev->net.client && rc != -EEXIST && rc != -ENOTDIR)
		return 0;
	return rc == 0 ? 0 : socket_mistake(dev, rc, why);
}

/* A number as it is, else a name to look up. Returns what is wrong, or NULL. */
static const char *
user_id(const char *text, bool group, int64_t *out)
{
	const struct passwd *user;
	const struct group *found;

	if (isdigit((unsigned char)text[0]))
		return value_number(text, 10, 0, (int64_t)UINT32_MAX - 1, out);
	if (group) {
		found = getgrnam(text);
		if (found == NULL)
			return "no such group";
		*out = found->gr_gid;
		return NULL;
	}
	user = getpwnam(text);
	if (user == NULL)
		return "no such user";
	*out = user->pw_uid;
	return NULL;
}

static int
resolve_users(struct device *dev, struct mistake *why)
{
	const char *wrong;
	int64_t id;

	if (dev->socket_owner[0] != '\0') {
		wrong = user_id(dev->socket_owner, false, &id);
		if (wrong != NULL)
			return mistake_value(why, dev->name, "socket-owner", dev->socket_owner,
				wrong, "name or number of a user");
		dev->net.socket_owner = (uid_t)id;
	}
	if (dev->socket_group[0] != '\0') {
		wrong = user_id(dev->socket_group, true, &id);
		if (wrong != NULL)
			return mistake_value(why, dev->name, "socket-group", dev->socket_group,
				wrong, "name or number of a group");
		dev->net.socket_group = (gid_t)id;
	}
	return 0;
}

/* Is this what a device of the same name has made on the host? */
static bool
is_made(const struct device *dev, const struct config *running)
{
	const struct device *made = running != NULL ? config_find(running, dev->name) : NULL;

	if (made == NULL || made->kind != dev->kind)
		return false;
	if (dev->kind == DEVICE_NET_VHOST)
		return strcmp(made->net.iface, dev->net.iface) == 0 &&
		       made->net.client == dev->net.client;
	return strcmp(port_place(made), port_place(dev)) == 0;
}

int
check_host(struct config *config, const struct config *running, struct mistake *why)
{
	int rc = 0;

	for (unsigned int i = 0; i < config->n_devices && rc == 0; i++) {
		struct device *dev = &config->devices[i];

		if (dev->kind == DEVICE_NET_VHOST || dev->kind == DEVICE_VHOST_CRYPTO)
			rc = resolve_users(dev, why);
		if (rc != 0 || is_made(dev, running))
			continue;
		if (dev->kind == DEVICE_NET_VHOST || dev->kind == DEVICE_VHOST_CRYPTO)
			rc = check_socket(dev, why);
		else
			rc = port_check(dev, why);
	}
	return rc;
}

void
check_print_ignored(const struct config *config, FILE *out)
{
	for (unsigned int i = 0; i < config->n_devices; i++) {
		const struct device *dev = &config->devices[i];
		const char *comma = "";

		if (dev->ignored == 0)
			continue;
		fprintf(out, "dpdk-vhost-rxpoll: %s: ", dev->name);
		for (unsigned int k = 0; k < kinds[dev->kind].n_keys; k++) {
			if ((dev->ignored & 1u << k) == 0)
				continue;
			fprintf(out, "%s%s", comma, kinds[dev->kind].keys[k].name);
			comma = ", ";
		}
		fprintf(out, ": accepted, without effect here\n");
	}
}

void
check_print_pairs(const struct config *config, FILE *out)
{
	for (unsigned int i = 0; i < config->n_pairs; i++) {
		const struct device *vhost = &config->devices[config->pairs[i].vhost];
		const struct device *port = &config->devices[config->pairs[i].port];

		const char *place = port_place(port);

		fprintf(out, "%s (%s, %s) <-> %s", vhost->name, vhost->net.iface,
			vhost->net.client ? "client" : "server", port->name);
		fprintf(out, place[0] != '\0' ? " (%s)\n" : "%s\n", place);
	}
	for (unsigned int i = 0; i < config->n_devices; i++) {
		const struct device *dev = &config->devices[i];

		if (dev->kind == DEVICE_VHOST_CRYPTO)
			fprintf(out, "%s (%s, %s) on %s\n", dev->name, dev->net.iface,
				dev->net.client ? "client" : "server", dev->cryptodev);
	}
}

void
check_print_features(const struct config *config, FILE *out)
{
	for (unsigned int i = 0; i < config->n_pairs; i++) {
		const struct device *vhost = &config->devices[config->pairs[i].vhost];
		const struct device *port = &config->devices[config->pairs[i].port];

		vhp_net_features_print(out, &vhost->net, port_features(port));
	}
}
