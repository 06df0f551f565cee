/* SPDX-License-Identifier: BSD-3-Clause */
/* Are there hugepages that EAL could use? */
#ifndef APP_HUGEPAGES_H
#define APP_HUGEPAGES_H

#include <stdint.h>

/**
 * Memory in free hugepages of the sizes for which this process can write to a mounted
 * hugetlbfs, in bytes. Reads /sys and /proc only.
 */
uint64_t hugepages_free_bytes(void);

#endif /* APP_HUGEPAGES_H */
