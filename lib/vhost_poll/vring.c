/* SPDX-License-Identifier: BSD-3-Clause */
/* What both ring layouts share: the descriptors of kick and call, and names. */
#include <assert.h>
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "vring.h"

void
vhp_vring_call(struct vhp_vring *vr)
{
	const uint64_t one = 1;

	if (!vr->ops->need_call(vr) || vr->call_fd < 0)
		return;
	if (likely(write(vr->call_fd, &one, sizeof(one)) == (ssize_t)sizeof(one)))
		vr->stats.calls++;
	else if (errno != EAGAIN)
		/* EINTR: it blocked until the watchdog came. EPIPE: nobody listens. */
		vhp_vring_break(vr, VHP_RING_CALL);
	/* Else the counter is full: a call that the guest has not taken yet. */
}

void
vhp_vring_drain_kick(struct vhp_vring *vr)
{
	uint64_t count = 0;
	struct iovec iov = {.iov_base = &count, .iov_len = sizeof(count)};

	/*
	 * The front end owns the other end and may have made it blocking or taken the kick
	 * back: RWF_NOWAIT never waits. Where it is not supported the kick stays in the
	 * descriptor, which does no harm: epoll watches for edges.
	 */
	(void)!preadv2(vr->kick_fd, &iov, 1, -1, RWF_NOWAIT);
	/* One, whatever the descriptor says: its count is the front end's to forge. */
	vr->stats.kicks++;
}

void
vhp_vring_break(struct vhp_vring *vr, enum vhp_ring_fault fault)
{
	/* A burst may come upon the same fault again before the ring is left alone. */
	if (vr->fault == fault)
		return;
	vr->stats.faults += vr->fault == VHP_RING_OK;
	vr->fault = fault;
	if (vr->on_fault != NULL)
		vr->on_fault();
}

const char *
vhp_drop_name(enum vhp_drop drop)
{
	static const char *const names[] = {
		[VHP_OK] = "ok",
		[VHP_DROP_CHAIN_LOOP] = "chain-loop",
		[VHP_DROP_CHAIN_NEXT] = "chain-next",
		[VHP_DROP_CHAIN_ADDRESS] = "chain-address",
		[VHP_DROP_CHAIN_INDIRECT] = "chain-indirect",
		[VHP_DROP_CHAIN_DIRECTION] = "chain-direction",
		[VHP_DROP_CHAIN_SEGMENTS] = "chain-segments",
		[VHP_DROP_CHAIN_LENGTH] = "chain-length",
		[VHP_DROP_SHORT] = "short",
		[VHP_DROP_LONG] = "long",
		[VHP_DROP_HEADER] = "header",
		[VHP_DROP_NO_ROOM] = "no-room",
		[VHP_DROP_PORT] = "port",
		[VHP_DROP_DISABLED] = "disabled",
		[VHP_DROP_STOPPED] = "stopped",
	};

	static_assert(RTE_DIM(names) == VHP_DROP_COUNT, "a name for each reason");
	return names[drop];
}

const char *
vhp_ring_fault_name(enum vhp_ring_fault fault)
{
	static const char *const names[] = {
		[VHP_RING_OK] = "ok",
		[VHP_RING_AVAIL_JUMP] = "avail-jump",
		[VHP_RING_HEAD] = "head-outside",
		[VHP_RING_ENDLESS] = "chain-without-end",
		[VHP_RING_CALL] = "call-descriptor",
		[VHP_RING_MEMORY] = "memory-gone",
	};

	static_assert(RTE_DIM(names) == VHP_RING_FAULT_COUNT, "a name for each fault");
	return names[fault];
}
