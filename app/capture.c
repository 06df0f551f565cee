/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See capture.h. The file descriptors are redirected, not the streams: EAL writes its
 * fatal errors with fprintf(stderr), its usage with printf() and the rest through a
 * stream of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"

static struct {
	int held; /* the memory file, -1: no capture */
	int out;  /* the real standard output and error */
	int err;
	struct sigaction abort_action;
} capture = {.held = -1, .out = -1, .err = -1};

static void
restore(void)
{
	dup2(capture.out, STDOUT_FILENO);
	dup2(capture.err, STDERR_FILENO);
}

/* rte_panic() explains itself on standard error, then aborts. */
static void
on_abort(int sig)
{
	char buf[4096];
	off_t at = 0;
	ssize_t n;

	restore();
	while ((n = pread(capture.held, buf, sizeof(buf), at)) > 0) {
		if (write(STDERR_FILENO, buf, (size_t)n) != n)
			break;
		at += n;
	}
	signal(sig, SIG_DFL);
	raise(sig);
}

static void
close_all(void)
{
	if (capture.held >= 0)
		close(capture.held);
	if (capture.out >= 0)
		close(capture.out);
	if (capture.err >= 0)
		close(capture.err);
	capture.held = capture.out = capture.err = -1;
}

int
capture_begin(void)
{
	struct sigaction action = {.sa_handler = on_abort};
	int null_fd, rc;

	fflush(NULL);
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	capture.held = memfd_create("stderr", MFD_CLOEXEC);
	capture.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	capture.err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	rc = -errno;
	if (null_fd >= 0 && capture.held >= 0 && capture.out >= 0 && capture.err >= 0) {
		sigaction(SIGABRT, &action, &capture.abort_action);
		dup2(null_fd, STDOUT_FILENO);
		dup2(capture.held, STDERR_FILENO);
		rc = 0;
	} else {
		close_all();
	}
	if (null_fd >= 0)
		close(null_fd);
	return rc;
}

char *
capture_end(void)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (capture.held < 0)
		return strdup("");
	fflush(NULL);
	restore();
	sigaction(SIGABRT, &capture.abort_action, NULL);
	if (fstat(capture.held, &st) != 0)
		st.st_size = 0;
	text = malloc((size_t)st.st_size + 1);
	if (text != NULL) {
		n = pread(capture.held, text, (size_t)st.st_size, 0);
		text[n > 0 ? n : 0] = '\0';
	}
	close_all();
	return text;
}
