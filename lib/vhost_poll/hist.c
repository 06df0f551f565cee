/* SPDX-License-Identifier: BSD-3-Clause */
/* See hist.h. */
#include <inttypes.h>

#include "hist.h"

/* The longest bar. */
#define BAR_CHARS 40

void
vhp_hist_sum(struct vhp_hist *sum, const struct vhp_hist *h)
{
	for (unsigned int i = 0; i < VHP_HIST_BINS; i++)
		sum->bins[i] += h->bins[i];
}

uint64_t
vhp_hist_total(const struct vhp_hist *h)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < VHP_HIST_BINS; i++)
		total += h->bins[i];
	return total;
}

static void
print_bin(FILE *out, unsigned int bin, uint64_t count, uint64_t most)
{
	static const char bar[BAR_CHARS + 1] = "****************************************";
	uint64_t from = bin == 0 ? 0 : UINT64_C(1) << (bin - 1);

	if (bin == VHP_HIST_BINS - 1)
		fprintf(out, "%10" PRIu64 " -> %-10s", from, "...");
	else
		fprintf(out, "%10" PRIu64 " -> %-10" PRIu64, from, (UINT64_C(1) << bin) - 1);
	fprintf(out, " : %-10" PRIu64 " |%-*.*s|\n", count, BAR_CHARS,
		(int)(count * BAR_CHARS / most), bar);
}

void
vhp_hist_print(FILE *out, const char *title, const struct vhp_hist *h)
{
	unsigned int first = 0, last = VHP_HIST_BINS;
	uint64_t most = 0;

	for (unsigned int i = 0; i < VHP_HIST_BINS; i++)
		if (h->bins[i] > most)
			most = h->bins[i];
	if (most == 0)
		return;
	while (h->bins[first] == 0)
		first++;
	while (h->bins[last - 1] == 0)
		last--;
	fprintf(out, "%s\n%24s : %-10s : distribution\n", title, "usecs", "count");
	for (unsigned int i = first; i < last; i++)
		print_bin(out, i, h->bins[i], most);
}
