/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that the command line says, as one structure: filled once by
 * options.c, pair.c and check.c, read-only from then on.
 */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "drivers/net/af_packet/af_packet.h"
#include "drivers/net/ethdev/ethdev.h"
#include "drivers/net/tap/tap.h"
#include "keys.h"
#include "mistake.h"
#include "vhost_poll.h"

/** Longest poll window of poll-us=auto, by default. */
#define CONFIG_POLL_MAX_US 200
/** What such windows may waste of a core, by default. */
#define CONFIG_POLL_WASTE  20
/** How often the load of pollers is looked at, by default. */
#define CONFIG_REBALANCE_S 5
/** Longest user or group name, with its zero. */
#define CONFIG_USER_BYTES  64
/** Longest device name that EAL takes, with its zero (RTE_DEV_NAME_MAX_LEN). */
#define CONFIG_NAME_BYTES  64
/** Most devices of one daemon. */
#define CONFIG_MAX_DEVICES 1024
/** Most pollers that can be given a CPU each. */
#define CONFIG_MAX_POLLERS 128

/** One --vdev or -a. */
struct device {
	enum device_kind kind;
	char name[CONFIG_NAME_BYTES];   /**< "net_vhost0"; ours fit VHP_NAME_BYTES */
	bool is_port;                   /**< takes part in the pairing */
	uint32_t given;                 /**< bit i: the user gave key i of the kind's table */
	uint32_t ignored;               /**< bit i: given, and without effect here */
	char peer_name[VHP_NAME_BYTES]; /**< key "peer", "" if not given */
	int peer;                       /**< index of the other side, -1 before config_pair() */
	char socket_owner[CONFIG_USER_BYTES]; /**< name or number; check.c fills net.socket_owner */
	char socket_group[CONFIG_USER_BYTES]; /**< name or number; check.c fills net.socket_group */
	char cryptodev[CONFIG_NAME_BYTES];    /**< DEVICE_VHOST_CRYPTO: who computes */
	int sessions;                         /**< the same: most sessions of a front end */
	bool mac_fixed;                       /**< mac=fixed: numbered when the device is added */
	union {
		struct vhp_net_conf net;             /**< DEVICE_NET_VHOST, DEVICE_VHOST_CRYPTO */
		struct vhp_tap_conf tap;             /**< DEVICE_NET_TAP */
		struct vhp_af_packet_conf af_packet; /**< DEVICE_NET_AF_PACKET */
		struct vhp_ethdev_conf eth;          /**< DEVICE_EAL that is a port */
	};
};

/**
 * Two devices that exchange frames: indices in config::devices. Two guests are two pairs
 * in a row, the second the reverse of the first.
 */
struct pair {
	unsigned int vhost; /**< the net_vhost */
	unsigned int port;  /**< its other side */
};

/** One key of a device, as text; value is NULL where the user gave none. */
struct device_key {
	const char *name;
	const char *value;
};

/** EAL's part of the command line. Pointers go into the argv of main(). */
struct eal_conf {
	char **argv;  /**< EAL's options in the order given; the array is owned */
	int argc;     /**< without the program's name */
	char **lines; /**< --vdev of DPDK's devices in the file; owned, all of it */
	unsigned int n_lines;
	const char *lcores_option;  /**< "-l", "-c" or "--lcores"; NULL if none was given */
	const char *lcores;         /**< its value */
	const char *main_lcore;     /**< --main-lcore, NULL if not given */
	const char *service_option; /**< "-s" or "-S"; NULL if none was given */
	const char *service;        /**< its value: lcores that are no pollers */
	const char *file_prefix;    /**< --file-prefix, NULL if not given */
	bool memory_given;          /**< any option about memory or hugepages */
	bool huge_files_given;      /**< one of those that say whether hugepages are files */
	bool pci_given;             /**< -a, -b or --no-pci */
	bool drivers_given;         /**< -d */
	bool log_given;             /**< --log-level */
};

/** What the command line asks for. */
enum action {
	ACTION_RUN,
	ACTION_CHECK,
	ACTION_HELP,
	ACTION_VERSION,
};

struct config {
	enum action action;
	bool verbose;           /**< with ACTION_CHECK: print features, too */
	int argc;               /**< the command line, for config_file.c and reload.c */
	char **argv;            /**< that of main() */
	const char *file;       /**< --config, NULL: none */
	uint32_t options_given; /**< options.c: bit i: own option i is on the command line */
	struct device *devices; /**< in pairing order; owned */
	unsigned int n_devices;
	unsigned int n_allowed; /**< how many of them are -a devices; these come first */
	struct pair *pairs;     /**< owned */
	unsigned int n_pairs;
	uint32_t poll_us; /**< for devices without poll-us of their own */
	struct vhp_poller_conf poller;
	unsigned int rebalance_s; /**< between looks at the load of pollers, 0: never */
	enum vhp_rx_poll rx_poll; /**< for devices without rx-poll of their own */
	unsigned int stats_s;     /**< interval of --stats, 0: off */
	char pcap[256];           /**< --pcap, "": none */
	struct eal_conf eal;
	int poller_cpu[CONFIG_MAX_POLLERS]; /**< of [poller N], -1: none */
	unsigned int n_poller_cpus;
};

/** Fill in the defaults. */
void config_init(struct config *config);

/** Free what the configuration owns, not the structure. */
void config_free(struct config *config);

/**
 * Read one --vdev line, "net_vhost0,iface=/run/x.sock,queues=1". Pure: nothing else is
 * read or written. A device that is not ours becomes DEVICE_EAL, its arguments unread.
 * @param dev  (output) the device, not yet paired
 * @return 0, -EINVAL with *why filled, or -ENOMEM with *why filled
 */
int config_parse_device(const char *line, struct device *dev, struct mistake *why);

/** Read one --vdev line and add its device. Returns as config_parse_device() does. */
int config_add(struct config *config, const char *line, struct mistake *why);

/**
 * Add the device of this name with keys that are apart already. One of DPDK's becomes a
 * --vdev line for EAL. Returns as config_add().
 */
int config_add_keys(struct config *config, const char *name, const struct device_key *keys,
	unsigned int n_keys, struct mistake *why);

/** Add a device of -a, which DPDK probes before every --vdev. Returns as config_add(). */
int config_add_allowed(struct config *config, const char *line, struct mistake *why);

/** How many devices there are of a kind. */
unsigned int config_count(const struct config *config, enum device_kind kind);

/** The device of this name, NULL if there is none. */
const struct device *config_find(const struct config *config, const char *name);

/**
 * Join the devices as testpmd does, 0-1, 2-3, ..., after those with peer=NAME; give
 * each what it takes from the options and from its other side.
 * @return 0, -EINVAL or -ENOMEM with *why filled
 */
int config_pair(struct config *config, struct mistake *why);

#endif /* APP_CONFIG_H */
