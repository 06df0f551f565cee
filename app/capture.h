/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hold back what a library writes to standard error (and drop what it writes to
 * standard output), to say the same in one line or to pass it on later.
 */
#ifndef APP_CAPTURE_H
#define APP_CAPTURE_H

/**
 * Start to hold back. If the process aborts meanwhile, what was held back is written
 * out first. One capture at a time.
 * @return 0 or a negative errno value; then nothing is held back
 */
int capture_begin(void);

/**
 * Stop.
 * @return what was written to standard error, "" if nothing or if capture_begin()
 *         failed; the caller frees it; NULL if there is no memory
 */
char *capture_end(void);

#endif /* APP_CAPTURE_H */
