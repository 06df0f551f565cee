/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rule of a turn (interleave.c), first alone, with both directions played by the test, then
 * with the real ones between a guest and a port in memory.
 */
#include <string.h>

#include <rte_common.h>

#include "checks.h"
#include "qpair.h"

/* What one burst of each direction is to do, and what was called. */
static struct script {
	uint32_t tx_bursts; /**< bursts that find something; UINT32_MAX: always */
	struct vhp_work tx; /**< of each */
	uint32_t rx_bursts;
	struct vhp_work rx;
	uint32_t peer_bursts;
	char trace[4096]; /**< 't', 'r': a burst that moved something; 'T', 'R': one that did not */
	uint32_t n_trace;
	const struct vhp_qpair *peer; /**< its transmit bursts: 'p', 'P' */
} script;

static void
play(char what, uint32_t *bursts, const struct vhp_work *each, struct vhp_work *work)
{
	bool some = *bursts > 0;

	assert_true(script.n_trace < sizeof(script.trace) - 1);
	script.trace[script.n_trace++] = some ? what : what - 'a' + 'A';
	if (!some)
		return;
	if (*bursts != UINT32_MAX)
		(*bursts)--;
	work->pkts += each->pkts;
	work->bytes += each->bytes;
	work->descs += each->descs;
}

/* In the place of transmitq.c's and receiveq.c's. */
void
vhp_transmitq_drain(struct vhp_qpair *qp, struct vhp_work *work)
{
	if (qp == script.peer)
		play('p', &script.peer_bursts, &script.tx, work);
	else
		play('t', &script.tx_bursts, &script.tx, work);
}

void
vhp_receiveq_fill(struct vhp_qpair *qp, struct vhp_work *work)
{
	(void)qp;
	play('r', &script.rx_bursts, &script.rx, work);
}

/* A turn that begins at now_tsc. Returns its work; the trace holds its calls. */
static struct vhp_work
turn(struct vhp_qpair *qp, uint64_t now_tsc)
{
	struct vhp_work work = {0};

	memset(script.trace, 0, sizeof(script.trace));
	script.n_trace = 0;
	qp->turn(qp, now_tsc, &work);
	return work;
}

static void
set(uint32_t tx_bursts, struct vhp_work tx, uint32_t rx_bursts, struct vhp_work rx)
{
	script =
		(struct script){.tx_bursts = tx_bursts, .tx = tx, .rx_bursts = rx_bursts, .rx = rx};
}

static const struct vhp_work one = {.pkts = 1, .bytes = 60, .descs = 1};
static const struct vhp_work burst = {.pkts = 32, .bytes = 32 * 60, .descs = 32};

/* ---- interleave -------------------------------------------------------------- */

/* After every transmit burst the host side is looked at, whatever either finds. */
static void
interleave_looks_after_every_burst(void **state)
{
	static const struct {
		uint32_t tx, rx;
		const char *trace;
	} cases[] = {
		{0, 0, "TR"},
		{1, 0, "tRTR"},
		{0, 1, "TrTR"},
		{3, 0, "tRtRtRTR"},
		{0, 3, "TrTrTrTR"},
		{3, 3, "trtrtrTR"},
		{3, 1, "trtRtRTR"},
		{1, 3, "trTrTrTR"},
	};
	struct vhp_qpair qp = {.turn = vhp_turn_interleave};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		set(cases[i].tx, one, cases[i].rx, one);
		assert_int_equal(turn(&qp, 0).pkts, cases[i].tx + cases[i].rx);
		assert_string_equal(script.trace, cases[i].trace);
	}
}

/* What another guest sends is received after every burst as well, behind what the port has. */
static void
interleave_looks_at_the_peer(void **state)
{
	struct vhp_qpair peer = {.turn = vhp_turn_interleave};
	struct vhp_qpair qp = {.turn = vhp_turn_interleave, .peer = &peer};

	(void)state;
	set(3, one, 1, one);
	script.peer = &peer;
	script.peer_bursts = 4;
	assert_int_equal(turn(&qp, 0).pkts, 8);
	assert_string_equal(script.trace, "trptRptRpTRpTRP");
	/* It sends to this one, whatever it was joined with before. */
	assert_ptr_equal(peer.peer, &qp);
	set(UINT32_MAX, burst, 0, one);
	script.peer = &peer;
	script.peer_bursts = UINT32_MAX;
	assert_int_equal(turn(&qp, 0).pkts, 256);
	assert_string_equal(script.trace, "tRptRptRptRp");
}

/* A guest that never stops sending, a host that never does, and both: the turn ends. */
static void
interleave_ends_by_weight(void **state)
{
	static const struct {
		struct vhp_work tx, rx;
		uint32_t bursts; /**< pairs of calls until the turn is over */
	} cases[] = {
		{{32, 32 * 60, 32}, {0, 0, 0}, 8},         /* 256 packets */
		{{32, 32 * 60, 32}, {32, 32 * 60, 32}, 4}, /* together */
		{{1, 1, 1}, {0, 0, 0}, 256},
		{{1, 60, 1}, {1, 60, 1}, 128},
		{{8, 8 * 65535, 8}, {0, 0, 0}, 2}, /* 512 KiB */
		{{1, 0x10000, 1}, {1, 0x10000, 1}, 4},
		{{1, 0x7ffff, 1}, {0, 0, 0}, 2},
		{{1, 0x80000, 1}, {0, 0, 0}, 1},
		{{1, 1, 1024}, {0, 0, 0}, 8}, /* 8,192 descriptors */
		{{1, 1, 1024}, {1, 1, 3072}, 2},
	};
	struct vhp_qpair qp = {.turn = vhp_turn_interleave};

	(void)state;
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		uint32_t rx = cases[i].rx.pkts > 0 ? UINT32_MAX : 0;

		set(UINT32_MAX, cases[i].tx, rx, cases[i].rx);
		turn(&qp, 0);
		assert_int_equal(script.n_trace, 2 * cases[i].bursts);
		for (uint32_t k = 0; k < script.n_trace; k += 2) {
			assert_int_equal(script.trace[k], 't');
			assert_int_equal(script.trace[k + 1], rx ? 'r' : 'R');
		}
	}
}

/* ---- deferred ---------------------------------------------------------------- */

/* While the transmitq has work, and until its window has closed, the host side rests. */
static void
deferred_waits_for_the_window(void **state)
{
	struct vhp_qpair qp = {.turn = vhp_turn_deferred, .window_cycles = 1000};

	(void)state;
	/* Nothing ever sent: no window is open. */
	set(0, one, 1, one);
	assert_int_equal(turn(&qp, 5000).pkts, 1);
	assert_string_equal(script.trace, "TrR");

	/* Work: the window opens, and the host side is not looked at though it has frames. */
	set(2, one, UINT32_MAX, one);
	assert_int_equal(turn(&qp, 10000).pkts, 2);
	assert_string_equal(script.trace, "ttT");
	/* No work, but the window is open, to its last cycle. */
	turn(&qp, 10001);
	assert_string_equal(script.trace, "T");
	turn(&qp, 10999);
	assert_string_equal(script.trace, "T");
	/* Work again moves its end. */
	script.tx_bursts = 1;
	turn(&qp, 10999);
	assert_string_equal(script.trace, "tT");
	turn(&qp, 11998);
	assert_string_equal(script.trace, "T");
	/* Closed: now the host side has a whole turn, up to the weight. */
	assert_int_equal(turn(&qp, 11999).pkts, 256);
	assert_int_equal(script.trace[0], 'T');
	assert_int_equal(script.n_trace, 1 + 256);
	/* That it had work opens no window for the transmit side. */
	script.rx_bursts = 1;
	turn(&qp, 12000);
	assert_string_equal(script.trace, "TrR");
}

/* Without a window it is the end of the transmit work that lets the host side in. */
static void
deferred_without_window(void **state)
{
	struct vhp_qpair qp = {.turn = vhp_turn_deferred, .window_cycles = 0};

	(void)state;
	set(3, one, 2, one);
	assert_int_equal(turn(&qp, 100).pkts, 5);
	assert_string_equal(script.trace, "tttTrrR");
}

/* A guest that never stops sending: the weight lets the host side in, once a turn. */
static void
deferred_ends_by_weight(void **state)
{
	struct vhp_qpair qp = {.turn = vhp_turn_deferred, .window_cycles = 1000};

	(void)state;
	set(UINT32_MAX, burst, 2, one);
	assert_int_equal(turn(&qp, 100).pkts, 256 + 2);
	assert_string_equal(script.trace, "ttttttttrrR");
	/* Both never stop. */
	set(UINT32_MAX, burst, UINT32_MAX, burst);
	assert_int_equal(turn(&qp, 100).pkts, 512);
	assert_string_equal(script.trace, "ttttttttrrrrrrrr");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interleave_looks_after_every_burst),
		cmocka_unit_test(interleave_looks_at_the_peer),
		cmocka_unit_test(interleave_ends_by_weight),
		cmocka_unit_test(deferred_waits_for_the_window),
		cmocka_unit_test(deferred_without_window),
		cmocka_unit_test(deferred_ends_by_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
