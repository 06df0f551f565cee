/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text to value, for device keys and options alike. Pure functions: each returns
 * NULL, or what is wrong with the text ("not a number"); then the output is untouched.
 */
#ifndef APP_VALUE_H
#define APP_VALUE_H

#include <net/ethernet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vhost_poll.h"

/** What value_window() accepts, for messages. */
#define VALUE_WINDOW_ALLOWED  "0..1000000, auto or forever"
/** What value_rx_poll() accepts, for messages. */
#define VALUE_RX_POLL_ALLOWED "interleave or deferred"

/** A whole number; base as strtoll() has it (0: 0x and leading-0 octal are understood). */
const char *value_number(const char *text, int base, int64_t min, int64_t max, int64_t *out);

/** "0" or "1". */
const char *value_bool(const char *text, bool *out);

/** A poll window in microseconds, "auto" or "forever". */
const char *value_window(const char *text, uint32_t *out_us);

/** "interleave" or "deferred". */
const char *value_rx_poll(const char *text, enum vhp_rx_poll *out);

/**
 * A rate of each direction: one for both, or "A/B": from the guest, to the guest. Each is a
 * number, with k, M or G for powers of 1,000; 0 or min..max.
 */
const char *value_rates(const char *text, uint64_t min, uint64_t max, uint64_t out[2]);

/** A string of 1..out_bytes-1 bytes. */
const char *value_text(const char *text, char *out, size_t out_bytes);

/**
 * The name of a network interface.
 * @param out        IFNAMSIZ bytes
 * @param pattern    may hold one "%d", where the kernel puts a number
 */
const char *value_iface(const char *text, bool pattern, char *out);

/** A unicast Ethernet address, six pairs of hexadecimal digits with colons. */
const char *value_mac(const char *text, struct ether_addr *out);

#endif /* APP_VALUE_H */
