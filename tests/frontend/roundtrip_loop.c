/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fe-roundtrip: one thread is guest and host at once. It keeps a window of frames in
 * flight in each direction, so that no queue of the kernel overflows, and when nothing
 * moves it waits for calls as a guest's interrupt handler would.
 */
#include "roundtrip.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define BURST        32
#define IDLE_WAIT_MS 1000

static int
net_fault(struct rt_run *run)
{
	return fe_fault(&run->fault, "%s", fe_net_fault(run->net));
}

/* Guest: put frames into the transmitq; returns how many. */
static int
guest_send(struct rt_run *run)
{
	struct rt_flow *f = &run->tx;
	struct fe_net *net = run->net;
	uint32_t q = run->opts->qpair;
	int n = 0, rc;

	while (n < BURST && f->n_sent < run->opts->frames &&
		f->n_sent - f->n_received < run->opts->window) {
		rt_flow_build(f);
		rc = fe_net_send(net, q, &f->hdr, f->out, f->spec.len, &run->tx_how);
		if (rc == -ENOSPC)
			break;
		if (rc != 0)
			return fe_fault(&run->fault, "send: %s", strerror(-rc));
		f->built = false;
		f->n_sent++;
		n++;
		/* A burst may reach the device in pieces. */
		if (run->opts->event == RT_EVENT_RANDOM && fe_rng_one_in(&run->rng, 4))
			fe_ring_kick(&net->tx[q].ring);
	}
	if (n > 0)
		fe_ring_kick(&net->tx[q].ring);
	return n;
}

static int
guest_reap(struct rt_run *run)
{
	int n = fe_net_reap(run->net, run->opts->qpair);

	return n < 0 ? net_fault(run) : n;
}

static int
host_receive(struct rt_run *run)
{
	struct virtio_net_hdr_v1 hdr;
	int n, len;

	for (n = 0; n < BURST; n++) {
		len = rt_far_recv(run->far, &hdr, run->buf, FE_BUF_MAX);
		if (len == -EAGAIN)
			break;
		if (len < 0)
			return fe_fault(&run->fault, "host receive: %s %s", strerror(-len),
				run->far->fault);
		if (rt_flow_check(&run->tx, run->buf, (uint32_t)len, &hdr, &run->fault) < 0)
			return -EPROTO;
	}
	return n;
}

static int
host_send(struct rt_run *run)
{
	struct rt_flow *f = &run->rx;
	int n, rc;

	for (n = 0; n < BURST && f->n_sent < run->opts->frames &&
		    f->n_sent - f->n_received < run->opts->window;
		n++) {
		rt_flow_build(f);
		rc = rt_far_send(run->far, &f->hdr, f->out, f->spec.len);
		if (rc == -EAGAIN || rc == -ENOBUFS)
			break;
		if (rc != 0)
			return fe_fault(&run->fault, "host send (%s, %u bytes): %s %s",
				fe_kind_names[f->spec.kind], f->spec.len, strerror(-rc),
				run->far->fault);
		f->built = false;
		f->n_sent++;
	}
	return n;
}

static int
guest_receive(struct rt_run *run)
{
	const struct rt_opts *o = run->opts;
	struct fe_net *net = run->net;
	struct fe_rxframe fr;
	int n, rc;

	for (n = 0; n < BURST; n++) {
		rc = fe_net_recv(net, o->qpair, &fr);
		if (rc < 0)
			return net_fault(run);
		if (rc == 0)
			break;
		if (rt_flow_check(&run->rx, fr.data, fr.len, &fr.hdr, &run->fault) < 0)
			return -EPROTO;
	}
	/* A guest need not refill at once. */
	if (o->event == RT_EVENT_RANDOM && !fe_rng_one_in(&run->rng, 3))
		return n;
	if (fe_net_post(net, o->qpair, FE_ALL, o->rx_min, o->rx_max, &run->rx_how) > 0)
		fe_ring_kick(&net->rx[o->qpair].ring);
	return n;
}

/* A busy guest changes its mind about calls at any time. */
static void
change_calls(struct rt_run *run, struct fe_ring *r)
{
	switch (fe_rng_range(&run->rng, 0, 15)) {
	case 0:
		fe_ring_disarm(r);
		break;
	case 1:
		fe_ring_arm(r, 0);
		break;
	case 2:
		fe_ring_arm(r, (uint16_t)fe_rng_range(&run->rng, 0, r->cfg.size - 1));
		break;
	default:
		break;
	}
	fe_ring_take_calls(r);
}

/* The rings that the run waits on: two, and two more if the far end is a guest. */
static uint32_t
rings_of(const struct rt_run *run, struct fe_ring *rings[4])
{
	uint32_t q = run->opts->qpair;
	uint32_t n = 0;

	rings[n++] = &run->net->rx[q].ring;
	rings[n++] = &run->net->tx[q].ring;
	if (run->far->guest != NULL) {
		rings[n++] = &run->far->guest->rx[0].ring;
		rings[n++] = &run->far->guest->tx[0].ring;
	}
	return n;
}

/* Silence for so long that the back end may fall asleep, or nearly. */
static void
rest(struct rt_run *run)
{
	if (run->tx.n_sent == run->tx.n_received && run->rx.n_sent == run->rx.n_received)
		usleep(fe_rng_range(&run->rng, 0, run->opts->pause_us));
}

static void
stop_calls(struct fe_ring *const *rings, uint32_t n, bool quiet)
{
	for (uint32_t i = 0; i < n; i++) {
		fe_ring_take_calls(rings[i]);
		/* The far guest keeps its calls: it is not what is tested here. */
		if (quiet && i < 2)
			fe_ring_disarm(rings[i]);
	}
}

/* Nothing moved: ask for calls and wait for them, or for the host's socket. */
static int
idle(struct rt_run *run)
{
	uint32_t q = run->opts->qpair;
	struct fe_ring *rings[4];
	uint32_t n = rings_of(run, rings);
	struct pollfd p[5];
	bool any = false;

	run->idles++;
	/* A lazy guest does its duty before it sleeps. */
	if (fe_net_post(run->net, q, FE_ALL, run->opts->rx_min, run->opts->rx_max, &run->rx_how) >
		0)
		fe_ring_kick(&run->net->rx[q].ring);
	for (uint32_t i = 0; i < n; i++) {
		p[i] = (struct pollfd){.fd = rings[i]->call_fd, .events = POLLIN};
		any |= fe_ring_arm(rings[i], 0);
	}
	p[n] = (struct pollfd){.fd = run->far->host.fd, .events = POLLIN};
	if (any || poll(p, n + 1, IDLE_WAIT_MS) != 0) {
		stop_calls(
			rings, n, run->opts->event != RT_EVENT_OFF || !fe_rng_one_in(&run->rng, 2));
		return 0;
	}
	/* A whole second without a call, and yet something is used? */
	for (uint32_t i = 0; i < n; i++)
		if (fe_ring_pending(rings[i]))
			return fe_fault(&run->fault, "vring %u: used entries without a call",
				rings[i]->index);
	return 0;
}

/* Stop both rings under traffic and go on where the device says it stopped. */
static int
restart(struct rt_run *run)
{
	run->restarts++;
	if (fe_net_stop(run->net) != 0 || fe_net_start(run->net) != 0)
		return net_fault(run);
	/* A driver kicks after a start: what it added meanwhile was not looked at. */
	fe_ring_kick_always(&run->net->rx[run->opts->qpair].ring);
	fe_ring_kick_always(&run->net->tx[run->opts->qpair].ring);
	return 0;
}

static int
turn(struct rt_run *run)
{
	int (*const step[])(struct rt_run *) = {
		guest_send, host_receive, guest_reap, host_send, guest_receive};
	int moved = 0;

	for (size_t i = 0; i < FE_ARRAY_SIZE(step); i++) {
		int n = step[i](run);

		if (n < 0)
			return n;
		moved += n;
	}
	return moved;
}

static int
stalled(struct rt_run *run)
{
	uint32_t q = run->opts->qpair;
	uint64_t to_host = 0, to_guest = 0;

	fe_host_if_drops(&run->far->host, &to_host, &to_guest);
	return fe_fault(&run->fault,
		"nothing moves: guest to host %u sent %u arrived (%u not used); host to guest %u "
		"sent %u arrived (%u buffers posted); drops: interface in %llu out %llu, socket "
		"%llu",
		run->tx.n_sent, run->tx.n_received, fe_ring_outstanding(&run->net->tx[q].ring),
		run->rx.n_sent, run->rx.n_received, fe_ring_outstanding(&run->net->rx[q].ring),
		(unsigned long long)to_host, (unsigned long long)to_guest,
		(unsigned long long)fe_host_drops(&run->far->host));
}

static bool
finished(const struct rt_run *run)
{
	const struct rt_opts *o = run->opts;
	uint32_t want_tx = (o->direction & RT_TX) != 0 ? o->frames : 0;
	uint32_t want_rx = (o->direction & RT_RX) != 0 ? o->frames : 0;

	return run->tx.n_received == want_tx && run->rx.n_received == want_rx &&
	       run->net->tx[o->qpair].n_done == run->net->tx[o->qpair].n_sent;
}

int
rt_loop(struct rt_run *run)
{
	const struct rt_opts *o = run->opts;
	uint64_t last = fe_now_us();
	uint32_t next_restart = o->restart;

	if ((o->direction & RT_TX) == 0)
		run->tx.n_sent = o->frames;
	if ((o->direction & RT_RX) == 0)
		run->rx.n_sent = o->frames;
	while (!finished(run)) {
		int n;

		if (o->pause_us > 0)
			rest(run);
		n = turn(run);
		if (n < 0)
			return n;
		if (o->event == RT_EVENT_RANDOM) {
			change_calls(run, &run->net->rx[o->qpair].ring);
			change_calls(run, &run->net->tx[o->qpair].ring);
		}
		if (n > 0)
			last = fe_now_us();
		else if (fe_now_us() - last > o->stall_ms * 1000ULL)
			return stalled(run);
		else if (idle(run) != 0)
			return -EPROTO;
		if (o->restart > 0 && run->tx.n_received + run->rx.n_received >= next_restart) {
			next_restart += o->restart;
			if (restart(run) != 0)
				return -EPROTO;
		}
	}
	return 0;
}
