/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths of sockets (gate_socket.c), what is removed and what is not; and a gate that connects
 * by itself (client=1).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_common.h>

#include "checks.h"
#include "gate_rig.h"
#include "gate_socket.h"

static char dir[] = "/tmp/vhp-sock-XXXXXX";
static char path[VHP_PATH_BYTES];

static int
setup(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(path);
	/* Whatever was made is gone, too. */
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static struct vhp_gate_conf
conf_of(const char *where, mode_t mode)
{
	return (struct vhp_gate_conf){.name = "net_vhost0",
		.path = where,
		.socket_owner = (uid_t)-1,
		.socket_group = (gid_t)-1,
		.socket_mode = mode};
}

/* A socket of this type at the path, as another program makes it. */
static int
foreign(int type, bool living)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	if (living && type != SOCK_DGRAM)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void
free_path(void **state)
{
	(void)state;
	assert_int_equal(vhp_socket_path_check(path), 0);
	/* Asking makes nothing. */
	assert_int_equal(access(path, F_OK), -1);
}

static void
not_a_socket(void **state)
{
	struct vhp_gate_conf conf = conf_of(path, 0);
	struct stat st;
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	(void)state;
	close(fd);
	assert_int_equal(vhp_socket_path_check(path), -EEXIST);
	assert_int_equal(vhp_socket_listen(&conf, &st), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	/* A link to nowhere is not followed. */
	assert_int_equal(symlink("/nowhere/at/all", path), 0);
	assert_int_equal(vhp_socket_path_check(path), -EEXIST);
	assert_int_equal(vhp_socket_listen(&conf, &st), -EEXIST);
}

/* Case U2: left behind by a dead process; in use by a living one. */
static void
dead_or_living(void **state)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	struct vhp_gate_conf conf = conf_of(path, 0);
	struct stat st;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(types); i++) {
		int fd = foreign(types[i], true);

		assert_int_equal(vhp_socket_path_check(path), -EADDRINUSE);
		assert_int_equal(vhp_socket_listen(&conf, &st), -EADDRINUSE);
		assert_int_equal(access(path, F_OK), 0);
		/* Nobody was bothered by the question. */
		if (types[i] != SOCK_DGRAM)
			assert_int_equal(accept4(fd, NULL, NULL, SOCK_CLOEXEC), -1);
		close(fd);
		assert_int_equal(vhp_socket_path_check(path), 0);
		assert_int_equal(access(path, F_OK), 0);
		fd = vhp_socket_listen(&conf, &st);
		assert_true(fd >= 0);
		vhp_socket_remove(path, &st);
		assert_int_equal(access(path, F_OK), -1);
		close(fd);
	}
}

static void
bad_paths(void **state)
{
	char long_path[300];

	(void)state;
	memset(long_path, 'x', sizeof(long_path));
	long_path[0] = '/';
	long_path[VHP_PATH_BYTES] = '\0';
	assert_int_equal(vhp_socket_path_check(long_path), -ENAMETOOLONG);
	assert_int_equal(vhp_socket_path_check("/nowhere/s"), -ENOENT);
	assert_int_equal(vhp_socket_path_check("/etc/passwd/s"), -ENOTDIR);
	assert_int_equal(vhp_socket_path_check("/"), -EEXIST);
	/* Without a slash it is the working directory. */
	assert_int_equal(vhp_socket_path_check("vhp-test-no-such-socket"), 0);
}

static void
no_permission(void **state)
{
	int ret;

	(void)state;
	assert_int_equal(chmod(dir, 0755), 0);
	if (geteuid() != 0)
		skip();
	assert_int_equal(setresuid(65534, 65534, 0), 0);
	ret = vhp_socket_path_check(path);
	assert_int_equal(setresuid(0, 0, 0), 0);
	assert_int_equal(ret, -EACCES);
}

/* Case U3. */
static void
mode_and_owner(void **state)
{
	struct vhp_gate_conf conf = conf_of(path, 0660);
	struct stat made, st;
	int fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	conf.socket_owner = 65534;
	conf.socket_group = 12;
	fd = vhp_socket_listen(&conf, &made);
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(st.st_gid, 12);
	assert_int_equal(st.st_ino, made.st_ino);
	vhp_socket_remove(path, &made);
	close(fd);
}

/* Another has put its socket in the place of ours: it is not ours to remove. */
static void
remove_only_our_own(void **state)
{
	struct vhp_gate_conf conf = conf_of(path, 0);
	struct stat made;
	int fd = vhp_socket_listen(&conf, &made);
	int other;

	(void)state;
	unlink(path);
	other = foreign(SOCK_STREAM, true);
	vhp_socket_remove(path, &made);
	assert_int_equal(access(path, F_OK), 0);
	close(other);
	close(fd);
}

/* ---- client mode ---------------------------------------------------------------- */

static double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Let the gate act until somebody connects to fd, or so many seconds. Returns whom, or -1. */
static int
wait_for_gate(struct gate_rig *rig, int fd, double seconds)
{
	double end = now_s() + seconds;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	while (poll(&pfd, 1, 5) == 0 && now_s() < end)
		gate_rig_run(rig);
	return accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void
client_connects(void **state)
{
	unsigned int fds = messages_open_fds();
	struct gate_rig rig;
	struct vhp_gate_conf conf;
	struct vhp_vu_msg msg = messages_good(VU_GET_FEATURES);
	struct stat st;
	int listener, front;

	(void)state;
	gate_rig_init(&rig, true);
	/* The gate is there first: it comes when the front end's socket does. */
	conf = conf_of(rig.path, 0);
	gate_rig_run(&rig);
	usleep(300000);
	gate_rig_run(&rig);
	listener = vhp_socket_listen(&conf, &st);
	assert_true(listener >= 0);
	for (int i = 0; i < 3; i++) {
		double start = now_s();
		char byte;

		front = wait_for_gate(&rig, listener, 3);
		assert_true(front >= 0);
		/* Who spoke with us before is asked again soon. */
		if (i > 0)
			assert_true(now_s() - start < 0.5);
		assert_int_equal(vhp_vu_send(front, &msg), 0);
		gate_rig_run(&rig);
		assert_int_equal(recv(front, &byte, 1, MSG_DONTWAIT), 1);
		close(front);
		gate_rig_run(&rig);
	}
	close(listener);
	unlink(rig.path);
	gate_rig_fini(&rig);
	assert_int_equal(messages_open_fds(), fds);
}

/* Case M11: a peer that accepts and closes at once is not asked all the time. */
static void
client_backs_off(void **state)
{
	struct gate_rig rig;
	struct vhp_gate_conf conf;
	struct stat st;
	int listener, n = 0;
	double end;

	(void)state;
	gate_rig_init(&rig, true);
	conf = conf_of(rig.path, 0);
	listener = vhp_socket_listen(&conf, &st);
	assert_true(listener >= 0);
	for (end = now_s() + 2; now_s() < end;) {
		int fd = wait_for_gate(&rig, listener, end - now_s());

		if (fd >= 0) {
			n++;
			close(fd);
		}
	}
	/* 50, 100, 200, 400, 800 ms. */
	assert_in_range(n, 3, 7);
	close(listener);
	gate_rig_fini(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(free_path, setup, teardown),
		cmocka_unit_test_setup_teardown(not_a_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(dead_or_living, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(no_permission, setup, teardown),
		cmocka_unit_test_setup_teardown(mode_and_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(remove_only_our_own, setup, teardown),
		cmocka_unit_test(client_connects),
		cmocka_unit_test(client_backs_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
