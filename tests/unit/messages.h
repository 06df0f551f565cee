/* SPDX-License-Identifier: BSD-3-Clause */
/* vhost-user messages that are right, as a start for tests that make them wrong. */
#ifndef TEST_MESSAGES_H
#define TEST_MESSAGES_H

#include "vhost_user.h"

/** Rings of the device in these tests. */
#define MESSAGES_RINGS 4

/** Requests that the gate lets through, ended by 0. */
extern const uint32_t messages_known[];

/** A file of so many bytes in memory. Returns its descriptor. */
int messages_memfd(uint64_t size_bytes);

/**
 * A message that is right, with descriptors that are the caller's.
 * Memory tables have two regions of 64 KiB.
 */
struct vhp_vu_msg messages_good(uint32_t request);

/** Close what messages_good() opened. */
void messages_close(struct vhp_vu_msg *msg);

/** Descriptors that this process has open. */
unsigned int messages_open_fds(void);

#endif /* TEST_MESSAGES_H */
