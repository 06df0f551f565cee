/* SPDX-License-Identifier: BSD-3-Clause */
/* On which NUMA node a guest's memory lies. Main thread. */
#ifndef VHP_MEM_NODE_H
#define VHP_MEM_NODE_H

#include "mem.h"

/**
 * The node of most of a guest's pages, of a sample that the kernel is asked for
 * (move_pages); pages that were never touched have none.
 * @param vhost_node  what DPDK found for its own structures, taken if no page tells; < 0: none
 * @return the node; -1 if unknown, or if the machine has one only
 */
int vhp_numa_node(const struct vhp_mem *mem, int vhost_node);

#endif /* VHP_MEM_NODE_H */
