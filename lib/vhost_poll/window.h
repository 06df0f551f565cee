/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The poll window of poll-us=auto: how long a poller keeps looking after the last work
 * before it sleeps. Pure arithmetic on time stamps; poller.c tells it what happened.
 *
 * As KVM's halt polling does, the window doubles when work came so soon that a longer
 * window would have caught it, and halves when it came later than any window may last. A
 * window that closes without work is wasted; waste has a budget.
 */
#ifndef VHP_WINDOW_H
#define VHP_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/** First window that is worth opening, in microseconds. */
#define VHP_WINDOW_FIRST_US 10

/* In the place of a number of cycles: */
#define VHP_WINDOW_FOREVER UINT64_MAX
#define VHP_WINDOW_AUTO    (UINT64_MAX - 1)

/** One poller's window. The poller writes, anybody reads. */
struct vhp_window {
	uint64_t cycles;        /**< as the traffic wants it */
	uint64_t max_cycles;    /**< --poll-us-max */
	uint64_t first_cycles;  /**< VHP_WINDOW_FIRST_US */
	uint64_t budget_cycles; /**< may be wasted now */
	uint64_t saved_cycles;  /**< most that the budget can hold */
	uint64_t refilled_tsc;  /**< budget is up to date as of then */
	uint32_t waste_permille;
	uint64_t grown, shrunk;
	uint64_t refused; /**< windows that the budget did not allow */
};

/**
 * @param hz             cycles per second
 * @param max_us         longest window; 0: never polls
 * @param waste_percent  of any second, 0..100; 100: without limit
 */
void vhp_window_init(struct vhp_window *w, uint64_t hz, uint32_t max_us, uint32_t waste_percent,
	uint64_t now_tsc);

/**
 * Work was done; how long may be polled for more from now on?
 * @return the window in cycles, 0 if the budget does not allow it
 */
uint64_t vhp_window_open(struct vhp_window *w, uint64_t now_tsc);

/** Polling found work, this long after the last. */
void vhp_window_found(struct vhp_window *w, uint64_t waited_cycles);

/** The window closed without work, after this long. */
void vhp_window_closed(struct vhp_window *w, uint64_t waited_cycles);

/** Work ended a sleep, this long after the last work: polling and sleep together. */
void vhp_window_woken(struct vhp_window *w, uint64_t waited_cycles);

#endif /* VHP_WINDOW_H */
