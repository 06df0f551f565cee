/* SPDX-License-Identifier: BSD-3-Clause */
/* See window.h. */
#include <string.h>

#include "window.h"

/*
 * The budget fills at nine tenths of the rate that is allowed and saves up to the tenth
 * that is left, so that no second, wherever it begins, sees more than was allowed.
 */
#define RATE_PERMILLE(percent)    ((percent)*9U)
#define SAVED_CYCLES(hz, percent) ((hz) / 1000 * (percent))
/* Refilled in steps of so many cycles: no rounding accumulates. */
#define REFILL_CYCLES             1000
#define WASTE_UNLIMITED_PERMILLE  RATE_PERMILLE(100)

void
vhp_window_init(struct vhp_window *w, uint64_t hz, uint32_t max_us, uint32_t waste_percent,
	uint64_t now_tsc)
{
	memset(w, 0, sizeof(*w));
	w->max_cycles = hz * max_us / 1000000;
	w->first_cycles = hz * VHP_WINDOW_FIRST_US / 1000000;
	if (w->first_cycles > w->max_cycles)
		w->first_cycles = w->max_cycles;
	w->cycles = w->first_cycles;
	w->waste_permille = RATE_PERMILLE(waste_percent);
	w->saved_cycles = SAVED_CYCLES(hz, waste_percent);
	w->budget_cycles = w->saved_cycles;
	w->refilled_tsc = now_tsc;
}

static void
refill(struct vhp_window *w, uint64_t now_tsc)
{
	uint64_t steps = (now_tsc - w->refilled_tsc) / REFILL_CYCLES;

	/* As many as fill it, however long the sleep was. */
	w->refilled_tsc += steps * REFILL_CYCLES;
	if (steps > w->saved_cycles)
		steps = w->saved_cycles;
	w->budget_cycles += steps * w->waste_permille;
	if (w->budget_cycles > w->saved_cycles)
		w->budget_cycles = w->saved_cycles;
}

uint64_t
vhp_window_open(struct vhp_window *w, uint64_t now_tsc)
{
	if (w->waste_permille >= WASTE_UNLIMITED_PERMILLE)
		return w->cycles;
	refill(w, now_tsc);
	if (w->budget_cycles >= w->cycles)
		return w->cycles;
	/* Part of a window would be wasted for certain. */
	w->refused++;
	return 0;
}

static void
grow(struct vhp_window *w)
{
	uint64_t cycles = w->cycles == 0 ? w->first_cycles : 2 * w->cycles;

	if (cycles > w->max_cycles)
		cycles = w->max_cycles;
	w->grown += cycles != w->cycles;
	w->cycles = cycles;
}

static void
shrink(struct vhp_window *w)
{
	w->shrunk += w->cycles != 0;
	w->cycles /= 2;
	if (w->cycles < w->first_cycles)
		w->cycles = 0;
}

void
vhp_window_found(struct vhp_window *w, uint64_t waited_cycles)
{
	/* It only just came in time: the next may not. */
	if (waited_cycles > w->cycles / 2)
		grow(w);
}

void
vhp_window_closed(struct vhp_window *w, uint64_t waited_cycles)
{
	w->budget_cycles -= waited_cycles < w->budget_cycles ? waited_cycles : w->budget_cycles;
}

void
vhp_window_woken(struct vhp_window *w, uint64_t waited_cycles)
{
	if (waited_cycles <= w->max_cycles)
		grow(w);
	else
		shrink(w);
}
