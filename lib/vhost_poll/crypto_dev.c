/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of a virtio-crypto device: what it does its own way, and how it is made. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <linux/vhost_types.h>
#include <linux/virtio_config.h>

#include "balance.h"
#include "crypto_dev.h"
#include "log.h"
#include "poller.h"

/* ---- where a network device has its host port ---------------------------------- */

static int
port_configure(struct vhp_port_queue *pq, uint64_t features)
{
	(void)pq;
	(void)features;
	return 0;
}

static int
port_steer(struct vhp_port_queue *pq, bool on)
{
	(void)pq;
	(void)on;
	return 0;
}

static int
port_set_mtu(struct vhp_port *port, uint16_t mtu_bytes)
{
	(void)port;
	(void)mtu_bytes;
	return -ENOTSUP;
}

static uint64_t
port_features(const struct vhp_port *port)
{
	(void)port;
	return 0;
}

static const struct vhp_port_ops port_ops = {
	.configure = port_configure,
	.steer = port_steer,
	.set_mtu = port_set_mtu,
	.features = port_features,
};

/* ---- kind of device -------------------------------------------------------------- */

static void
on_disconnected(struct vhp_net_dev *dev)
{
	vhp_crypto_session_clear(dev->crypto);
}

static void
free_crypto(struct vhp_crypto_dev *crypto)
{
	for (uint16_t i = 0; crypto->queues != NULL && i <= crypto->n_data; i++) {
		if (crypto->queues[i].pq.fd >= 0)
			close(crypto->queues[i].pq.fd);
		free(crypto->queues[i].burst);
	}
	vhp_crypto_table_fini(&crypto->table);
	free(crypto->port.queues);
	free(crypto->queues);
	free(crypto);
}

static void
choose_turn(struct vhp_qpair *qp)
{
	qp->turn = vhp_crypto_queue_of(qp)->burst != NULL ? vhp_crypto_turn_data
							  : vhp_crypto_turn_ctrl;
}

static const struct vhp_dev_kind crypto_kind = {
	.features = 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_F_RING_PACKED |
		    1ULL << VIRTIO_RING_F_INDIRECT_DESC | 1ULL << VIRTIO_RING_F_EVENT_IDX |
		    1ULL << VIRTIO_F_IN_ORDER | 1ULL << VHOST_F_LOG_ALL |
		    1ULL << VU_F_PROTOCOL_FEATURES,
	.protocol_features = 1ULL << VU_PROTOCOL_F_MQ | 1ULL << VU_PROTOCOL_F_LOG_SHMFD |
			     1ULL << VU_PROTOCOL_F_REPLY_ACK | 1ULL << VU_PROTOCOL_F_CONFIG |
			     1ULL << VU_PROTOCOL_F_CRYPTO_SESSION,
	.choose_turn = choose_turn,
	.message = vhp_crypto_message,
	.stopped = vhp_crypto_stopped,
	.disconnected = on_disconnected,
	.destroy = free_crypto,
};

/* ---- making it -------------------------------------------------------------------- */

static int
init_queue(struct vhp_crypto_dev *crypto, uint16_t i)
{
	struct vhp_crypto_queue *q = &crypto->queues[i];

	q->dev = crypto;
	q->pq.port = &crypto->port;
	/* Never ready: only the ring ends a sleep. */
	q->pq.fd = eventfd(0, EFD_CLOEXEC);
	if (q->pq.fd < 0)
		return -errno;
	crypto->port.queues[i] = &q->pq;
	if (i == crypto->n_data)
		return 0;
	q->burst = calloc(1, sizeof(*q->burst));
	return q->burst != NULL ? 0 : -ENOMEM;
}

static int
init_crypto(struct vhp_crypto_dev *crypto, const struct vhp_crypto_conf *conf,
	struct vhp_crypto_engine *engine)
{
	uint16_t n = conf->dev.queues + 1;
	int ret;

	crypto->engine = engine;
	crypto->engine_queue = conf->engine_queue;
	crypto->n_data = conf->dev.queues;
	crypto->port.ops = &port_ops;
	crypto->port.n_queues = n;
	crypto->queues = calloc(n, sizeof(crypto->queues[0]));
	crypto->port.queues = calloc(n, sizeof(crypto->port.queues[0]));
	if (crypto->queues == NULL || crypto->port.queues == NULL)
		return -ENOMEM;
	for (uint16_t i = 0; i < n; i++)
		crypto->queues[i].pq.fd = -1;
	ret = vhp_crypto_table_init(&crypto->table, conf->sessions);
	for (uint16_t i = 0; i < n && ret == 0; i++)
		ret = init_queue(crypto, i);
	return ret;
}

int
vhp_crypto_dev_create(struct vhp_loop *loop, const struct vhp_crypto_conf *conf,
	struct vhp_crypto_engine *engine, struct vhp_net_dev **out)
{
	struct vhp_crypto_dev *crypto = calloc(1, sizeof(*crypto));
	struct vhp_net_conf dev = conf->dev;
	int ret;

	if (crypto == NULL)
		return -ENOMEM;
	ret = conf->engine_queue < engine->n_queues && conf->sessions > 0 && dev.queues > 0 &&
			      dev.queues < VHP_MAX_QUEUES && dev.poller < (int)vhp_poller_count()
		      ? init_crypto(crypto, conf, engine)
		      : -EINVAL;
	if (ret < 0) {
		VHP_LOG(ERR, "%s: cannot be made: %s", conf->dev.name, strerror(-ret));
		free_crypto(crypto);
		return ret;
	}
	/* All queues on one poller, for as long as the device lives. */
	if (dev.poller < 0)
		dev.poller = (int)vhp_balance_choose(NULL, -1)->index;
	dev.queues = conf->dev.queues + 1;
	return vhp_dev_create(loop, &dev, &crypto->port, &crypto_kind, crypto, out);
}
