/* SPDX-License-Identifier: BSD-3-Clause */
/* On which NUMA node a guest's memory lies, and ours beside it. Main thread. */
#ifndef VHP_MEM_NODE_H
#define VHP_MEM_NODE_H

#include <stddef.h>

#include "mem.h"

/**
 * The node of most of a guest's pages, of a sample that the kernel is asked for
 * (move_pages); pages that were never touched have none.
 * @param vhost_node  what DPDK found for its own structures, taken if no page tells; < 0: none
 * @return the node; -1 if unknown, or if the machine has one only
 */
int vhp_numa_node(const struct vhp_mem *mem, int vhost_node);

/**
 * Move the pages of [start, start + len_bytes), and what else lies on them, to a node, as far
 * as the kernel can. Takes NULL.
 * @param node  as from vhp_numa_node(); -1: does nothing
 */
void vhp_numa_place(const void *start, size_t len_bytes, int node);

#endif /* VHP_MEM_NODE_H */
