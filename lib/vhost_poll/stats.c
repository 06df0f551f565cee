/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters as text and as telemetry. Pollers write them without locks; a reader may see a
 * burst half counted, never a torn number.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_telemetry.h>
#include <rte_version.h>

#include "crypto_stats.h"
#include "net_dev.h"
#include "poller.h"

/* DPDK 23.03 renamed it. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define vhp_tel_add_u64  rte_tel_data_add_dict_uint
#define vhp_tel_push_u64 rte_tel_data_add_array_uint
#define VHP_TEL_U64      RTE_TEL_UINT_VAL
#else
#define vhp_tel_add_u64  rte_tel_data_add_dict_u64
#define vhp_tel_push_u64 rte_tel_data_add_array_u64
#define VHP_TEL_U64      RTE_TEL_U64_VAL
#endif

static uint64_t
drops(const struct vhp_ring_stats *s)
{
	uint64_t sum = 0;

	for (int i = VHP_OK + 1; i < VHP_DROP_COUNT; i++)
		sum += s->drops[i];
	return sum;
}

static void
print_ring(FILE *out, const struct vhp_qpair *qp, const char *queue, const struct vhp_vring *vr)
{
	const struct vhp_ring_stats *s = &vr->stats;

	fprintf(out,
		"%s %s pkts %" PRIu64 " bytes %" PRIu64 " drops %" PRIu64 " kicks %" PRIu64
		" calls %" PRIu64 " faults %" PRIu64 "\n",
		qp->name, queue, s->pkts, s->bytes, drops(s), s->kicks, s->calls, s->faults);
	for (int i = VHP_OK + 1; i < VHP_DROP_COUNT; i++)
		if (s->drops[i] > 0)
			fprintf(out, "%s %s drop %s %" PRIu64 "\n", qp->name, queue,
				vhp_drop_name(i), s->drops[i]);
}

/* Cycles asleep, the sleep at hand included. */
static uint64_t
asleep_cycles(const struct vhp_poller_stats *s)
{
	uint64_t since = __atomic_load_n(&s->asleep_since_tsc, __ATOMIC_RELAXED);
	uint64_t now = rte_rdtsc();

	return s->sleep_cycles + (since != 0 && now > since ? now - since : 0);
}

static void
print_poller(FILE *out, const struct vhp_poller *p)
{
	const struct vhp_poller_stats *s = &p->stats;
	double asleep = asleep_cycles(s);
	double total = s->busy_cycles + s->poll_cycles + asleep;

	if (total == 0)
		total = 1;
	fprintf(out,
		"poller %u lcore %u passes %" PRIu64 " busy %" PRIu64 " sleeps %" PRIu64
		" wakes %" PRIu64 " timeouts %" PRIu64 " lost %" PRIu64
		" time working %.1f%% polling %.1f%% asleep %.1f%%\n",
		p->index, p->lcore, s->passes, s->passes_busy, s->sleeps, s->wakes_event,
		s->wakes_timeout, s->wakes_lost, 100 * s->busy_cycles / total,
		100 * s->poll_cycles / total, 100 * asleep / total);
}

static void
print_rate(FILE *out, const struct vhp_ring_stats *s, struct vhp_printed *prev, double interval_s)
{
	fprintf(out, " %.3f Mpps %.3f Gbit/s", (s->pkts - prev->pkts) / interval_s / 1e6,
		(s->bytes - prev->bytes) * 8 / interval_s / 1e9);
	*prev = (struct vhp_printed){s->pkts, s->bytes};
}

static void
print_refusals(FILE *out, const struct vhp_net_dev *dev)
{
	const struct vhp_refusal *r = vhp_gate_refusals(dev->gate);

	for (unsigned int i = 0; r != NULL && i < VHP_GATE_REFUSALS && r[i].why != NULL; i++)
		fprintf(out, "%s messages refused %" PRIu64 ": %s\n", dev->conf.name, r[i].count,
			r[i].why);
}

void
vhp_stats_print(FILE *out, double interval_s)
{
	const struct vhp_net_dev *dev;

	vhp_net_devs_lock();
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		if (dev->crypto != NULL)
			vhp_crypto_stats_print(out, dev);
		for (uint16_t i = 0; dev->kind == NULL && i < dev->conf.queues; i++) {
			struct vhp_qpair *qp = &dev->qpairs[i];

			fprintf(out, "%s %s", qp->name, vhp_net_dev_state(dev, i));
			if (interval_s > 0) {
				fprintf(out, " | transmitq");
				print_rate(out, &qp->tx.stats, &qp->printed[0], interval_s);
				fprintf(out, " | receiveq");
				print_rate(out, &qp->rx.stats, &qp->printed[1], interval_s);
			}
			fprintf(out, "\n");
			print_ring(out, qp, "transmitq", &qp->tx);
			print_ring(out, qp, "receiveq", &qp->rx);
		}
		print_refusals(out, dev);
	}
	vhp_net_devs_unlock();
	for (unsigned int i = 0; i < vhp_poller_count(); i++)
		print_poller(out, vhp_poller_get(i));
	fflush(out);
}

/* What frames waited for a look, over all qpairs. */
static void
print_waits(FILE *out)
{
	const struct vhp_net_dev *dev;
	struct vhp_hist look = {0}, delivered = {0};

	vhp_net_devs_lock();
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		for (uint16_t i = 0; i < dev->conf.queues; i++) {
			vhp_hist_sum(&look, &dev->qpairs[i].stats.look);
			vhp_hist_sum(&delivered, &dev->qpairs[i].stats.delivered);
		}
	}
	vhp_net_devs_unlock();
	vhp_hist_print(out, "from the last look or wake-up to the look that found frames", &look);
	vhp_hist_print(out, "from the last look or wake-up to frames delivered", &delivered);
}

void
vhp_stats_summary(FILE *out)
{
	vhp_stats_print(out, 0);
	print_waits(out);
	fflush(out);
}

/* ---- telemetry -------------------------------------------------------------- */

static int
tel_devices(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct vhp_net_dev *dev;

	(void)cmd;
	(void)params;
	/* Strings, as a dictionary's names may not hold the colon of a qpair's. */
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	vhp_net_devs_lock();
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		for (uint16_t i = 0; i < dev->conf.queues; i++) {
			char line[RTE_TEL_MAX_STRING_LEN];

			snprintf(line, sizeof(line), "%s %s", dev->qpairs[i].name,
				vhp_net_dev_state(dev, i));
			rte_tel_data_add_array_string(d, line);
		}
	}
	vhp_net_devs_unlock();
	return 0;
}

static void
tel_add_ring(struct rte_tel_data *d, const char *queue, const struct vhp_ring_stats *s)
{
	const struct {
		const char *name;
		uint64_t value;
	} fields[] = {
		{"pkts", s->pkts},
		{"bytes", s->bytes},
		{"drops", drops(s)},
		{"kicks", s->kicks},
		{"calls", s->calls},
		{"faults", s->faults},
	};
	char name[RTE_TEL_MAX_STRING_LEN];

	for (unsigned int i = 0; i < RTE_DIM(fields); i++) {
		snprintf(name, sizeof(name), "%s_%s", queue, fields[i].name);
		vhp_tel_add_u64(d, name, fields[i].value);
	}
	for (int i = VHP_OK + 1; i < VHP_DROP_COUNT; i++) {
		snprintf(name, sizeof(name), "%s_drop_%s", queue, vhp_drop_name(i));
		/* Names may not hold a dash either. */
		for (char *c = name; *c != '\0'; c++)
			if (*c == '-')
				*c = '_';
		vhp_tel_add_u64(d, name, s->drops[i]);
	}
}

static struct vhp_qpair *
find_qpair(const char *name)
{
	struct vhp_net_dev *dev;

	TAILQ_FOREACH (dev, &vhp_net_devs, link)
		for (uint16_t i = 0; i < dev->conf.queues; i++)
			if (strcmp(dev->qpairs[i].name, name) == 0)
				return &dev->qpairs[i];
	return NULL;
}

static int
tel_qpair(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct vhp_qpair *qp;

	(void)cmd;
	vhp_net_devs_lock();
	qp = params == NULL ? NULL : find_qpair(params);
	if (qp != NULL) {
		rte_tel_data_start_dict(d);
		tel_add_ring(d, "transmitq", &qp->tx.stats);
		tel_add_ring(d, "receiveq", &qp->rx.stats);
		/* Virtio feature bits that the guest accepted. */
		vhp_tel_add_u64(d, "features", qp->features);
		vhp_tel_add_u64(d, "poller", qp->home != NULL ? qp->home->index : UINT64_MAX);
		vhp_tel_add_u64(d, "moves", qp->stats.moves);
		vhp_tel_add_u64(d, "load_permille", qp->load_permille);
		vhp_tel_add_u64(d, "turns", qp->stats.turns);
		vhp_tel_add_u64(d, "turns_busy", qp->stats.turns_busy);
		vhp_tel_add_u64(d, "busy_cycles", qp->stats.busy_cycles);
		vhp_tel_add_u64(d, "poll_cycles", qp->stats.poll_cycles);
		vhp_tel_add_u64(d, "sleep_cycles", qp->stats.sleep_cycles);
		vhp_tel_add_u64(d, "port_full", qp->stats.port_full);
		vhp_tel_add_u64(d, "transmitq_limited", qp->stats.limited[0]);
		vhp_tel_add_u64(d, "receiveq_limited", qp->stats.limited[1]);
		vhp_tel_add_u64(d, "no_buffers", qp->stats.no_buffers);
		vhp_tel_add_u64(d, "straight_pkts", qp->stats.straight);
		vhp_tel_add_u64(d, "wakes_transmitq", qp->stats.wakes[VHP_WAKE_TX_KICK]);
		vhp_tel_add_u64(d, "wakes_receiveq", qp->stats.wakes[VHP_WAKE_RX_KICK]);
		vhp_tel_add_u64(d, "wakes_port", qp->stats.wakes[VHP_WAKE_PORT]);
	}
	vhp_net_devs_unlock();
	return qp != NULL ? 0 : -EINVAL;
}

/* "net_vhost0:0 transmitq short 3", as the closing summary has it. */
static void
push_drops(struct rte_tel_data *d, const char *name, const char *queue, const struct vhp_vring *vr)
{
	char line[RTE_TEL_MAX_STRING_LEN];

	for (int i = VHP_OK + 1; i < VHP_DROP_COUNT; i++) {
		if (vr->stats.drops[i] == 0)
			continue;
		snprintf(line, sizeof(line), "%s %s %s %" PRIu64, name, queue, vhp_drop_name(i),
			vr->stats.drops[i]);
		rte_tel_data_add_array_string(d, line);
	}
}

static int
tel_drops(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct vhp_net_dev *dev;

	(void)cmd;
	(void)params;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	vhp_net_devs_lock();
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		for (uint16_t i = 0; dev->kind == NULL && i < dev->conf.queues; i++) {
			push_drops(d, dev->qpairs[i].name, "transmitq", &dev->qpairs[i].tx);
			push_drops(d, dev->qpairs[i].name, "receiveq", &dev->qpairs[i].rx);
		}
	}
	vhp_net_devs_unlock();
	return 0;
}

static int
tel_poller(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct vhp_poller *p =
		params == NULL ? NULL : vhp_poller_get(strtoul(params, NULL, 10));

	(void)cmd;
	if (p == NULL)
		return -EINVAL;
	rte_tel_data_start_dict(d);
	vhp_tel_add_u64(d, "lcore", p->lcore);
	vhp_tel_add_u64(d, "passes", p->stats.passes);
	vhp_tel_add_u64(d, "passes_busy", p->stats.passes_busy);
	vhp_tel_add_u64(d, "sleeps", p->stats.sleeps);
	vhp_tel_add_u64(d, "wakes_event", p->stats.wakes_event);
	vhp_tel_add_u64(d, "wakes_timeout", p->stats.wakes_timeout);
	vhp_tel_add_u64(d, "wakes_lost", p->stats.wakes_lost);
	vhp_tel_add_u64(d, "busy_cycles", p->stats.busy_cycles);
	vhp_tel_add_u64(d, "poll_cycles", p->stats.poll_cycles);
	vhp_tel_add_u64(d, "sleep_cycles", asleep_cycles(&p->stats));
	vhp_tel_add_u64(d, "window_cycles", p->window.cycles);
	vhp_tel_add_u64(d, "windows_grown", p->window.grown);
	vhp_tel_add_u64(d, "windows_shrunk", p->window.shrunk);
	vhp_tel_add_u64(d, "windows_refused", p->window.refused);
	vhp_tel_add_u64(d, "qpairs", __atomic_load_n(&p->list, __ATOMIC_ACQUIRE)->n);
	vhp_tel_add_u64(d, "cycles_per_second", rte_get_tsc_hz());
	return 0;
}

/* One array of bins per histogram. */
static int
tel_histogram(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct vhp_qpair *qp;
	struct rte_tel_data *bins[2];

	(void)cmd;
	vhp_net_devs_lock();
	qp = params == NULL ? NULL : find_qpair(params);
	if (qp != NULL) {
		const struct vhp_hist *hists[] = {&qp->stats.look, &qp->stats.delivered};

		rte_tel_data_start_dict(d);
		for (unsigned int k = 0; k < RTE_DIM(hists); k++) {
			bins[k] = rte_tel_data_alloc();
			if (bins[k] == NULL)
				break;
			rte_tel_data_start_array(bins[k], VHP_TEL_U64);
			for (unsigned int i = 0; i < VHP_HIST_BINS; i++)
				vhp_tel_push_u64(bins[k], hists[k]->bins[i]);
			rte_tel_data_add_dict_container(
				d, k == 0 ? "look" : "delivered", bins[k], 0);
		}
	}
	vhp_net_devs_unlock();
	return qp != NULL ? 0 : -EINVAL;
}

static int
tel_histogram_text(const char *cmd, const char *params, struct rte_tel_data *d)
{
	char *text = NULL, *line, *next;
	const struct vhp_qpair *qp;
	size_t text_bytes = 0;
	FILE *out = open_memstream(&text, &text_bytes);

	(void)cmd;
	if (out == NULL)
		return -ENOMEM;
	vhp_net_devs_lock();
	qp = params == NULL ? NULL : find_qpair(params);
	if (qp != NULL) {
		vhp_hist_print(out, "look", &qp->stats.look);
		vhp_hist_print(out, "delivered", &qp->stats.delivered);
	}
	vhp_net_devs_unlock();
	fclose(out);
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (line = strtok_r(text, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next))
		rte_tel_data_add_array_string(d, line);
	free(text);
	return qp != NULL ? 0 : -EINVAL;
}

static int
tel_refusals(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct vhp_net_dev *dev;

	(void)cmd;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	vhp_net_devs_lock();
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		const struct vhp_refusal *r = vhp_gate_refusals(dev->gate);

		if (r == NULL || (params != NULL && strcmp(params, dev->conf.name) != 0))
			continue;
		for (unsigned int i = 0; i < VHP_GATE_REFUSALS && r[i].why != NULL; i++) {
			char line[RTE_TEL_MAX_STRING_LEN];

			snprintf(line, sizeof(line), "%s %" PRIu64 " %s", dev->conf.name,
				r[i].count, r[i].why);
			rte_tel_data_add_array_string(d, line);
		}
	}
	vhp_net_devs_unlock();
	return 0;
}

int
vhp_stats_telemetry(void)
{
	int ret = rte_telemetry_register_cmd("/vhp/devices", tel_devices,
		"Each qpair and what keeps it from forwarding. No parameters");

	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/qpair", tel_qpair,
			"Counters of one qpair. Parameter: its name, as net_vhost0:0");
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/refusals", tel_refusals,
			"Messages refused, by device, count and reason. Parameter: a device, or "
			"none");
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/drops", tel_drops,
			"Drops by qpair, direction and reason. No parameters");
	if (ret == 0)
		ret = rte_telemetry_register_cmd(
			"/vhp/latency", tel_histogram, "As /vhp/histogram. Parameter: a qpair");
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/histogram", tel_histogram,
			"Waits in us, by powers of two: <1, 1, 2-3, 4-7, ... Parameter: a qpair");
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/histogram_text", tel_histogram_text,
			"The same for people. Parameter: a qpair");
	if (ret == 0)
		ret = rte_telemetry_register_cmd("/vhp/poller", tel_poller,
			"Time and events of one poller. Parameter: its number, from 0");
	return ret;
}
