/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a service manager is told: sd_notify(3)'s protocol, a datagram to the socket that
 * NOTIFY_SOCKET names. Without that variable nothing happens.
 */
#ifndef APP_NOTIFY_H
#define APP_NOTIFY_H

#include <stdint.h>

/** Send "READY=1", "STOPPING=1" or the like. Errors are not reported: nobody could act on them. */
void notify(const char *state);

/** "RELOADING=1" with the time that the protocol wants with it. */
void notify_reloading(void);

/** How often the watchdog has to be fed at least, in us; 0: there is none (WATCHDOG_USEC). */
uint64_t notify_watchdog_us(void);

#endif /* APP_NOTIFY_H */
