/* SPDX-License-Identifier: BSD-3-Clause */
/* See notify.h. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "notify.h"

void
notify(const char *state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t path_bytes = path != NULL ? strlen(path) : 0;
	int fd;

	if (path_bytes < 2 || path_bytes >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, path_bytes);
	if (addr.sun_path[0] == '@') /* the abstract namespace */
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
		(struct sockaddr *)&addr,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_bytes));
	close(fd);
}

void
notify_reloading(void)
{
	struct timespec now;
	char text[80];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		(uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	notify(text);
}

uint64_t
notify_watchdog_us(void)
{
	const char *text = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (text == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	return strtoull(text, NULL, 10);
}
