/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gate_socket.h"

static int
make_address(const char *path, struct sockaddr_un *sun)
{
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(sun->sun_path))
		return -ENAMETOOLONG;
	strcpy(sun->sun_path, path);
	return 0;
}

int
vhp_socket_connect(const char *path)
{
	struct sockaddr_un sun;
	int ret = make_address(path, &sun);
	int fd;

	if (ret < 0)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

/*
 * Does a process listen there? Asked with a socket of another type, which the kernel turns
 * away before the listener hears of it.
 */
static int
is_living(const struct sockaddr_un *sun)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0 || errno == EPROTOTYPE)
		ret = 1;
	else
		ret = errno == ECONNREFUSED ? 0 : -errno;
	close(fd);
	return ret;
}

/* 0: the path is free; 1: a socket of a dead process; else why it cannot be used. */
static int
look_at(const char *path)
{
	struct sockaddr_un sun;
	struct stat st;
	int ret = make_address(path, &sun);

	if (ret < 0)
		return ret;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	ret = is_living(&sun);
	if (ret < 0)
		return ret;
	return ret == 1 ? -EADDRINUSE : 1;
}

int
vhp_socket_path_check(const char *path)
{
	char dir[VHP_PATH_BYTES];
	const char *slash = strrchr(path, '/');
	struct stat st;
	int ret;

	if (strlen(path) >= sizeof(dir))
		return -ENAMETOOLONG;
	ret = look_at(path);
	if (ret < 0)
		return ret;
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	if (stat(dir, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return access(dir, W_OK | X_OK) < 0 ? -errno : 0;
}

/* Nobody may connect before the permissions are as asked for: listen() comes last. */
static int
bind_and_listen(
	int fd, const struct vhp_gate_conf *conf, const struct sockaddr_un *sun, struct stat *file)
{
	if (bind(fd, (const struct sockaddr *)sun, sizeof(*sun)) < 0)
		return -errno;
	if ((conf->socket_owner != (uid_t)-1 || conf->socket_group != (gid_t)-1) &&
		chown(conf->path, conf->socket_owner, conf->socket_group) < 0)
		goto fail;
	if (conf->socket_mode != 0 && chmod(conf->path, conf->socket_mode) < 0)
		goto fail;
	if (lstat(conf->path, file) < 0 || listen(fd, 16) < 0)
		goto fail;
	return 0;
fail:;
	int ret = -errno;

	unlink(conf->path);
	return ret;
}

int
vhp_socket_listen(const struct vhp_gate_conf *conf, struct stat *file)
{
	struct sockaddr_un sun;
	int ret = make_address(conf->path, &sun);
	int fd;

	if (ret == 0)
		ret = look_at(conf->path);
	if (ret < 0)
		return ret;
	if (ret == 1)
		unlink(conf->path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	ret = bind_and_listen(fd, conf, &sun, file);
	if (ret < 0) {
		close(fd);
		return ret;
	}
	return fd;
}

void
vhp_socket_remove(const char *path, const struct stat *file)
{
	struct stat st;

	if (lstat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino)
		unlink(path);
}

bool
vhp_socket_is_dead(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}
