/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms of durations in powers of two of microseconds. One writer, any readers. */
#ifndef VHP_HIST_H
#define VHP_HIST_H

#include <stdint.h>
#include <stdio.h>

/** Below 1 us, [1, 2), [2, 4), ... us; the last has all that is longer: 2 s and more. */
#define VHP_HIST_BINS 23

struct vhp_hist {
	uint64_t bins[VHP_HIST_BINS];
};

static inline void
vhp_hist_add(struct vhp_hist *h, uint64_t us)
{
	unsigned int bin = us == 0 ? 0 : 64 - __builtin_clzll(us);

	h->bins[bin < VHP_HIST_BINS ? bin : VHP_HIST_BINS - 1]++;
}

/** sum += h, bin by bin. */
void vhp_hist_sum(struct vhp_hist *sum, const struct vhp_hist *h);

/** All that was counted. */
uint64_t vhp_hist_total(const struct vhp_hist *h);

/**
 * "usecs : count : distribution", a line per bin from the first to the last that is not
 * empty; nothing if all are.
 * @param title  a line before it
 */
void vhp_hist_print(FILE *out, const char *title, const struct vhp_hist *h);

#endif /* VHP_HIST_H */
