/* SPDX-License-Identifier: BSD-3-Clause */
/* Unix sockets by path, as gate.c needs them. All return a descriptor or -errno. */
#ifndef VHP_GATE_SOCKET_H
#define VHP_GATE_SOCKET_H

#include <sys/stat.h>

#include "gate.h"

/** Connect, without waiting for an accept. */
int vhp_socket_connect(const char *path);

/**
 * Listen at conf->path, with the owner, group and mode that conf asks for. A socket that
 * a dead process left behind is replaced; any other file is not touched.
 * @param file  (output) the socket's file
 */
int vhp_socket_listen(const struct vhp_gate_conf *conf, struct stat *file);

/** Remove the socket's file, unless another took its place. */
void vhp_socket_remove(const char *path, const struct stat *file);

/** Has the peer gone, whether or not all it sent was read? Reads nothing. */
bool vhp_socket_is_dead(int fd);

#endif /* VHP_GATE_SOCKET_H */
