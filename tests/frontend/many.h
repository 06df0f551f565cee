/* SPDX-License-Identifier: BSD-3-Clause */
/* fe-many: what its files share. */
#ifndef MANY_H
#define MANY_H

#include "fe_host.h"
#include "fe_net.h"
#include "fe_sched.h"

#define MANY_MAX         256
#define MANY_FRAME_BYTES 64

struct many {
	const char *prefix; /**< sockets are prefix0, prefix1, ... */
	const char *iface;  /**< the tap of device 0 */
	uint32_t devices;
	uint32_t rounds;
	uint32_t slice_ms; /**< length of one measurement */
	uint32_t limit_us; /**< an idle device served later than this is late */
	int pid;           /**< of the back end */
	bool packed;
	struct fe_net nets[MANY_MAX];
	char paths[MANY_MAX][108];
	bool open[MANY_MAX];
	uint8_t frame[MANY_FRAME_BYTES];
	struct fe_rng rng;
	struct fe_fault fault;
};

struct many_case {
	const char *name;
	const char *what;
	/** @return 0, or -EPROTO with many->fault. */
	int (*run)(struct many *m);
};

extern const struct many_case many_load_cases[], many_wait_cases[];

/** Connect and start devices first..last-1 that are not yet. @return 0 or -EPROTO. */
int many_connect(struct many *m, uint32_t first, uint32_t last);

/** Hang up. */
void many_disconnect(struct many *m, uint32_t first, uint32_t last);

/** Percent of a core that the back end used for @p ms from now on; < 0 if it has died. */
double many_cpu_percent(const struct many *m, uint32_t ms);

#endif
