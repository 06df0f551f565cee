/* SPDX-License-Identifier: BSD-3-Clause */
/* A poller that no thread runs: for what is done to its list, and for one sleep at a time. */
#ifndef TEST_BARE_POLLER_H
#define TEST_BARE_POLLER_H

#include "poller.h"

struct vhp_poller *bare_poller_new(unsigned int index);
void bare_poller_free(struct vhp_poller *p);

#endif /* TEST_BARE_POLLER_H */
