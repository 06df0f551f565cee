/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The INI file (app/config_file.c): the input is the file. What is wrong is one line that can be
 * printed, and what is right is the same when read again.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "checks.h"
#include "config.h"
#include "config_file.h"
#include "input.h"

static void
check_message(const struct mistake *why)
{
	size_t len = strnlen(why->text, sizeof(why->text));

	CHECK(len > 0 && len < sizeof(why->text));
	CHECK(memchr(why->text, '\n', len) == NULL);
}

static int
read_once(struct config *config, const char *path, struct mistake *why)
{
	int ret;

	config_init(config);
	config->file = path;
	ret = config_file_read(config, why);
	CHECK(ret == 0 || ret == -EINVAL || ret == -ENOMEM);
	if (ret == 0)
		CHECK(why->text[0] == '\0');
	else
		check_message(why);
	return ret;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct mistake why[2] = {{""}, {""}};
	struct config config[2];
	char path[32];
	int ret[2];
	int fd = memfd_create("ini", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (int i = 0; i < 2; i++)
		ret[i] = read_once(&config[i], path, &why[i]);
	CHECK(ret[0] == ret[1] && strcmp(why[0].text, why[1].text) == 0);
	CHECK(config[0].n_devices == config[1].n_devices);
	for (unsigned int i = 0; ret[0] == 0 && i < config[0].n_devices; i++)
		CHECK(strcmp(config[0].devices[i].name, config[1].devices[i].name) == 0);
	for (int i = 0; i < 2; i++)
		config_free(&config[i]);
	close(fd);
	return 0;
}
