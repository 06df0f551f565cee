/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A gate between a front end that a test plays and a back end in DPDK's place, all on one event
 * loop in one thread: what happens depends on nothing but the order of calls.
 */
#ifndef TEST_GATE_RIG_H
#define TEST_GATE_RIG_H

#include "gate.h"
#include "messages.h"

/** Back ends that misbehave. */
enum gate_rig_mode {
	BACKEND_GOOD,
	BACKEND_REFUSES, /**< answers "no" to what it is asked to do */
	BACKEND_SILENT,
	BACKEND_CLOSES, /**< hangs up instead of answering */
};

struct gate_rig {
	struct vhp_loop *loop;
	struct vhp_gate *gate;
	char dir[64];
	char path[VHP_PATH_BYTES]; /**< public */
	char backend_path[VHP_PATH_BYTES];
	int idle_fd;         /**< always readable: counts rounds of the loop */
	unsigned int rounds; /**< that are left */

	enum gate_rig_mode mode;
	int listen_fd, backend_fd;
	struct vhp_vu_reader reader;
	struct vhp_vu_msg relayed[64]; /**< what the back end got, without descriptors */
	unsigned int n_relayed_fds[64];
	unsigned int n_relayed;

	char trace[256]; /**< c(onnected) b(efore) a(fter) f(ailed) d(isconnected) */
	unsigned int n_trace;
	int taken_fd; /**< after() takes kick descriptors here; -1: none */
};

/** Open a gate at rig->path, in a directory of its own. */
void gate_rig_init(struct gate_rig *rig, bool client);
void gate_rig_fini(struct gate_rig *rig);

/** Let everybody act until nobody has anything to do, or for so many rounds. */
void gate_rig_run(struct gate_rig *rig);

/** The same, for so many rounds of the loop. */
void gate_rig_rounds(struct gate_rig *rig, unsigned int rounds);

/** Connect to the public socket as a front end. */
int gate_rig_connect(struct gate_rig *rig);

/** Forget what was recorded. */
void gate_rig_clear(struct gate_rig *rig);

#endif /* TEST_GATE_RIG_H */
