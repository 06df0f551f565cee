/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of crypto devices as text and as telemetry; see stats.c. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#include "crypto_dev.h"
#include "crypto_stats.h"

/* DPDK 23.03 renamed it. */
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
#define vhp_tel_add_u64 rte_tel_data_add_dict_uint
#else
#define vhp_tel_add_u64 rte_tel_data_add_dict_u64
#endif

static const char *const status_names[] = {
	[VIRTIO_CRYPTO_OK] = "ok",
	[VIRTIO_CRYPTO_ERR] = "err",
	[VIRTIO_CRYPTO_BADMSG] = "badmsg",
	[VIRTIO_CRYPTO_NOTSUPP] = "notsupp",
	[VIRTIO_CRYPTO_INVSESS] = "invsess",
	[VIRTIO_CRYPTO_NOSPC] = "nospc",
	[VIRTIO_CRYPTO_KEY_REJECTED] = "key_rejected",
};

/* Totals of one device. */
struct totals {
	uint64_t created, closed, refused, unknown_sessions;
	uint64_t requests, akcipher, bytes, control_requests, drops, kicks, calls;
	uint64_t statuses[RTE_DIM(status_names)];
};

static struct totals
sum_up(const struct vhp_net_dev *dev)
{
	const struct vhp_crypto_dev *crypto = dev->crypto;
	const struct vhp_crypto_stats *ring = &crypto->by_ring, *msg = &crypto->by_message;
	struct totals t = {
		.created = ring->created + msg->created,
		.closed = ring->closed + msg->closed,
		.refused = ring->refused + msg->refused,
		.unknown_sessions = ring->unknown_sessions + msg->unknown_sessions,
	};

	for (uint16_t i = 0; i <= crypto->n_data; i++) {
		const struct vhp_ring_stats *s = &dev->qpairs[i].tx.stats;

		*(i < crypto->n_data ? &t.requests : &t.control_requests) += s->pkts;
		t.akcipher += crypto->queues[i].akcipher;
		t.bytes += s->bytes;
		t.kicks += s->kicks;
		t.calls += s->calls;
		for (int k = VHP_OK + 1; k < VHP_DROP_COUNT; k++)
			t.drops += s->drops[k];
		for (unsigned int k = 0; k < RTE_DIM(status_names); k++)
			t.statuses[k] += crypto->queues[i].statuses[k];
	}
	return t;
}

void
vhp_crypto_stats_print(FILE *out, const struct vhp_net_dev *dev)
{
	struct totals t = sum_up(dev);

	fprintf(out,
		"%s on %s sessions %u created %" PRIu64 " closed %" PRIu64 " refused %" PRIu64
		" unknown %" PRIu64 "\n",
		dev->conf.name, dev->crypto->engine->name, dev->crypto->table.n_used, t.created,
		t.closed, t.refused, t.unknown_sessions);
	fprintf(out,
		"%s requests %" PRIu64 " of RSA %" PRIu64 " bytes %" PRIu64 " control %" PRIu64
		" drops %" PRIu64 " kicks %" PRIu64 " calls %" PRIu64 "\n",
		dev->conf.name, t.requests, t.akcipher, t.bytes, t.control_requests, t.drops,
		t.kicks, t.calls);
	for (unsigned int i = VIRTIO_CRYPTO_OK; i < RTE_DIM(status_names); i++)
		if (t.statuses[i] > 0)
			fprintf(out, "%s answered %s %" PRIu64 "\n", dev->conf.name,
				status_names[i], t.statuses[i]);
}

static void
add_totals(struct rte_tel_data *d, const struct vhp_net_dev *dev)
{
	struct totals t = sum_up(dev);
	char name[32];
	const struct {
		const char *name;
		uint64_t value;
	} fields[] = {
		{"services", dev->crypto->engine->caps.services},
		{"sessions", dev->crypto->table.n_used},
		{"sessions_limit", dev->crypto->table.limit},
		{"sessions_created", t.created},
		{"sessions_closed", t.closed},
		{"sessions_refused", t.refused},
		{"unknown_sessions", t.unknown_sessions},
		{"requests", t.requests},
		{"akcipher_requests", t.akcipher},
		{"bytes", t.bytes},
		{"control_requests", t.control_requests},
		{"drops", t.drops},
		{"kicks", t.kicks},
		{"calls", t.calls},
	};

	for (unsigned int i = 0; i < RTE_DIM(fields); i++)
		vhp_tel_add_u64(d, fields[i].name, fields[i].value);
	for (unsigned int i = VIRTIO_CRYPTO_OK; i < RTE_DIM(status_names); i++) {
		snprintf(name, sizeof(name), "answered_%s", status_names[i]);
		vhp_tel_add_u64(d, name, t.statuses[i]);
	}
}

static int
tel_crypto(const char *cmd, const char *params, struct rte_tel_data *d)
{
	const struct vhp_net_dev *dev;
	bool found = false;

	(void)cmd;
	vhp_net_devs_lock();
	TAILQ_FOREACH (dev, &vhp_net_devs, link) {
		if (dev->crypto == NULL || params == NULL || strcmp(params, dev->conf.name) != 0)
			continue;
		rte_tel_data_start_dict(d);
		add_totals(d, dev);
		found = true;
	}
	vhp_net_devs_unlock();
	return found ? 0 : -EINVAL;
}

int
vhp_crypto_telemetry(void)
{
	return rte_telemetry_register_cmd("/vhp/crypto", tel_crypto,
		"Sessions and requests of a crypto device. Parameter: its name, as vhost_crypto0");
}
