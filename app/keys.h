/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kinds of device and the keys that each takes: one table per kind, from which
 * parsing, messages and --help are made. A new key is a new line in keys.c.
 */
#ifndef APP_KEYS_H
#define APP_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mistake.h"

struct device;

/** How a key's text becomes a value. */
enum key_type {
	KEY_BOOL,    /**< bool: 0 or 1 */
	KEY_FLAG,    /**< bool: also without a value, which is 1 */
	KEY_IGNORED, /**< 0 or 1, or min..max, of another back end, without effect here */
	KEY_U16,     /**< uint16_t, min..max */
	KEY_INT,     /**< int, min..max */
	KEY_MODE,    /**< mode_t, octal */
	KEY_WINDOW,  /**< uint32_t, microseconds, "auto" or "forever" */
	KEY_RX_POLL, /**< enum vhp_rx_poll */
	KEY_RATE,    /**< uint64_t[2], min..max or 0, k, M or G behind it, A/B for two */
	KEY_TEXT,    /**< char[max + 1] */
	KEY_IFACE,   /**< char[IFNAMSIZ], may hold %d */
	KEY_BRIDGE,  /**< char[IFNAMSIZ] */
	KEY_MAC,     /**< struct ether_addr of a tap, and its flags */
};

/** One key of a kind of device. */
struct key {
	const char *name;
	enum key_type type;
	int64_t min, max;   /**< numbers: range; texts: length in bytes */
	size_t offset;      /**< of the value in struct device */
	const char *preset; /**< value without this key, for people; NULL: mandatory */
	const char *help;
};

/** What a device is, and so who serves it. */
enum device_kind {
	DEVICE_NET_VHOST,
	DEVICE_NET_TAP,
	DEVICE_NET_AF_PACKET,
	DEVICE_VHOST_CRYPTO,
	DEVICE_KINDS,              /**< number of kinds that this daemon serves */
	DEVICE_EAL = DEVICE_KINDS, /**< served by a driver of DPDK's */
};

/** A kind of device that this daemon serves. */
struct kind {
	const char *prefix;                       /**< name without the number: "net_vhost" */
	const char *alias;                        /**< DPDK's older name for it */
	const char *help;                         /**< one line */
	void (*set_defaults)(struct device *dev); /**< before its keys are read */
	const struct key *keys;
	unsigned int n_keys; /**< at most 32, one bit each in device::given */
};

/** All kinds, indexed by enum device_kind. */
extern const struct kind kinds[DEVICE_KINDS];

/** Set one key of a device. value is NULL where the user gave none. 0 or -EINVAL. */
int key_set(struct device *dev, const char *name, const char *value, struct mistake *why);

/** Has the user given this key? */
bool key_given(const struct device *dev, const char *name);

/** "1..128", "interleave or deferred": what the key takes. Returns out. */
const char *key_allowed(const struct key *key, char *out, size_t out_bytes);

#endif /* APP_KEYS_H */
