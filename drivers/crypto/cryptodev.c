/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cryptodev is found, configured and given back, and its sessions; see cryptodev.h.
 * rte_cryptodev_sym_session_pool_create() is still called experimental by DPDK 22.11,
 * unchanged since 19.05; without it there are no sessions.
 */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_crypto.h>

#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "cryptodev_priv.h"
#include "log.h"

/* Pieces of all operations that are in flight. */
#define MBUFS_PER_QUEUE (2 * 4096)
/* Operations in flight of one queue: a burst for each of some data queues. */
#define OPS_PER_QUEUE   512
/* Objects that the caches of lcores may hold back. */
#define CACHE_SIZE      64

static int
create_rsa(struct cryptodev *cd, const struct vhp_crypto_params *params,
	struct vhp_crypto_shape *shape, struct cryptodev_session *session)
{
	int ret = cd->engine.caps.akciphers != 0
			  ? cryptodev_rsa_create(params, shape, &session->rsa)
			  : -ENOTSUP;

	if (ret == 0 && !cryptodev_rsa_has_length(cd->id, shape->modulus_bytes)) {
		cryptodev_rsa_destroy(session->rsa);
		return -ENOTSUP;
	}
	return ret;
}

static bool
has_mac(const struct vhp_crypto_caps *caps, uint32_t algo)
{
	return algo < 64 && (caps->macs >> algo & 1) != 0;
}

static int
create_sym(struct cryptodev *cd, const struct vhp_crypto_params *params,
	struct vhp_crypto_shape *shape, struct cryptodev_session *session)
{
	struct rte_crypto_sym_xform xforms[2];
	int ret = params->keyed && !has_mac(&cd->engine.caps, params->auth_algo)
			  ? -ENOTSUP
			  : cryptodev_make_xforms(cd->id, params, xforms, shape);

	if (ret < 0)
		return ret;
	session->iv_bytes = shape->iv_bytes;
	session->sess = rte_cryptodev_sym_session_create(cd->id, xforms, cd->sessions);
	if (session->sess == NULL)
		return rte_errno == ENOMEM ? -ENOSPC : -ENOTSUP;
	return 0;
}

static int
create(struct vhp_crypto_engine *engine, const struct vhp_crypto_params *params,
	struct vhp_crypto_shape *shape, void **out)
{
	struct cryptodev *cd = (struct cryptodev *)engine;
	struct cryptodev_session *session = calloc(1, sizeof(*session));
	int ret;

	if (session == NULL)
		return -ENOSPC;
	session->kind = params->kind;
	ret = params->kind == VHP_CRYPTO_AKCIPHER ? create_rsa(cd, params, shape, session)
						  : create_sym(cd, params, shape, session);
	if (ret < 0) {
		free(session);
		return ret;
	}
	*out = session;
	return 0;
}

static void
destroy(struct vhp_crypto_engine *engine, void *session)
{
	struct cryptodev *cd = (struct cryptodev *)engine;
	struct cryptodev_session *s = session;

	if (s->sess != NULL)
		rte_cryptodev_sym_session_free(cd->id, s->sess);
	cryptodev_rsa_destroy(s->rsa);
	free(s);
}

static void
close_engine(struct vhp_crypto_engine *engine)
{
	struct cryptodev *cd = (struct cryptodev *)engine;

	rte_cryptodev_stop(cd->id);
	rte_mempool_free(cd->sessions);
	rte_mempool_free(cd->ops);
	rte_mempool_free(cd->mbufs);
	free(cd);
}

static const struct vhp_crypto_engine_ops ops = {
	.create = create,
	.destroy = destroy,
	.submit = cryptodev_submit,
	.poll = cryptodev_poll,
	.close = close_engine,
};

static int
make_pools(struct cryptodev *cd, const struct vhp_cryptodev_conf *conf)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	unsigned int cached = CACHE_SIZE * rte_lcore_count();

	snprintf(name, sizeof(name), "vhp_cs%u", cd->id);
	cd->sessions = rte_cryptodev_sym_session_pool_create(name, conf->sessions + cached,
		rte_cryptodev_sym_get_private_session_size(cd->id), CACHE_SIZE, 0, SOCKET_ID_ANY);
	snprintf(name, sizeof(name), "vhp_co%u", cd->id);
	cd->ops = rte_crypto_op_pool_create(name, RTE_CRYPTO_OP_TYPE_SYMMETRIC,
		OPS_PER_QUEUE * conf->n_queues + cached, CACHE_SIZE,
		sizeof(struct cryptodev_op_priv), SOCKET_ID_ANY);
	snprintf(name, sizeof(name), "vhp_cm%u", cd->id);
	cd->mbufs = rte_pktmbuf_pool_create(
		name, MBUFS_PER_QUEUE * conf->n_queues + cached, CACHE_SIZE, 0, 0, SOCKET_ID_ANY);
	return cd->sessions != NULL && cd->ops != NULL && cd->mbufs != NULL ? 0 : -ENOMEM;
}

static int
start(struct cryptodev *cd, const struct vhp_cryptodev_conf *conf)
{
	struct rte_cryptodev_config config = {
		.socket_id = rte_cryptodev_socket_id(cd->id), .nb_queue_pairs = conf->n_queues};
	struct rte_cryptodev_qp_conf qp = {
		.nb_descriptors = CRYPTODEV_DESCS, .mp_session = cd->sessions};
	int ret = rte_cryptodev_configure(cd->id, &config);

	for (uint16_t i = 0; i < conf->n_queues && ret == 0; i++)
		ret = rte_cryptodev_queue_pair_setup(cd->id, i, &qp, config.socket_id);
	return ret == 0 ? rte_cryptodev_start(cd->id) : ret;
}

/* Data in one piece has to fit one mbuf. */
static void
use_no_pieces(struct vhp_crypto_caps *caps)
{
	caps->pieces = caps->apart_pieces = false;
	caps->max_bytes = CRYPTODEV_MBUF_BYTES;
}

/* Is it there, and can it be used? */
static int
look_at(struct cryptodev *cd, const struct vhp_cryptodev_conf *conf)
{
	struct rte_cryptodev_info info;
	int id = rte_cryptodev_get_dev_id(conf->name);

	if (id < 0) {
		VHP_LOG(ERR, "%s: no such cryptodev (--vdev %s)", conf->name, conf->name);
		return -ENODEV;
	}
	cd->id = (uint8_t)id;
	rte_cryptodev_info_get(cd->id, &info);
	if ((info.feature_flags & RTE_CRYPTODEV_FF_HW_ACCELERATED) ||
		!(info.feature_flags & RTE_CRYPTODEV_FF_SYMMETRIC_CRYPTO)) {
		VHP_LOG(ERR, "%s: not a software cryptodev", conf->name);
		return -ENOTSUP;
	}
	if (conf->n_queues > info.max_nb_queue_pairs) {
		VHP_LOG(ERR, "%s: %u devices use it (1..%u)", conf->name, conf->n_queues,
			info.max_nb_queue_pairs);
		return -ENOSPC;
	}
	cd->engine.caps.pieces = info.feature_flags & RTE_CRYPTODEV_FF_IN_PLACE_SGL;
	cd->engine.caps.apart_pieces = info.feature_flags & RTE_CRYPTODEV_FF_OOP_SGL_IN_LB_OUT;
	if (info.feature_flags & RTE_CRYPTODEV_FF_OOP_LB_IN_LB_OUT)
		cd->engine.caps.apart_bytes = CRYPTODEV_MBUF_BYTES;
	/* What must not be in pieces has to fit one mbuf. */
	cd->engine.caps.max_aead_bytes = CRYPTODEV_MBUF_BYTES;
	cd->engine.caps.max_bytes = VHP_CRYPTO_DATA_BYTES;
	if (!cd->engine.caps.pieces)
		use_no_pieces(&cd->engine.caps);
	cryptodev_read_caps(cd->id, &cd->engine.caps);
	cryptodev_rsa_read_caps(cd->id, &cd->engine.caps);
	return 0;
}

/* What it does wrong it does not have. Returns 0 or what starting it again gave. */
static int
check_answers(struct cryptodev *cd, const struct vhp_cryptodev_conf *conf)
{
	struct vhp_crypto_caps *caps = &cd->engine.caps;
	uint64_t wrong = cryptodev_probe_macs(&cd->engine);

	if (wrong != 0)
		VHP_LOG(WARNING, "%s: gives wrong MACs (0x%" PRIx64 "): not offered",
			cd->engine.name, wrong);
	caps->macs &= ~wrong;
	if (caps->macs == 0)
		caps->services &= ~(1U << VIRTIO_CRYPTO_SERVICE_MAC);
	if (caps->pieces && !cryptodev_probe_pieces(&cd->engine))
		use_no_pieces(caps);
	if (caps->services == 0)
		VHP_LOG(WARNING, "%s: has nothing that virtio-crypto knows", cd->engine.name);
	caps->empty = cryptodev_probe_empty(&cd->engine);
	if (caps->empty)
		return 0;
	rte_cryptodev_stop(cd->id);
	return start(cd, conf);
}

int
vhp_cryptodev_open(const struct vhp_cryptodev_conf *conf, struct vhp_crypto_engine **out)
{
	struct cryptodev *cd = calloc(1, sizeof(*cd));
	int ret;

	if (cd == NULL)
		return -ENOMEM;
	snprintf(cd->engine.name, sizeof(cd->engine.name), "%s", conf->name);
	cd->engine.ops = &ops;
	cd->engine.n_queues = conf->n_queues;
	ret = look_at(cd, conf);
	if (ret < 0) {
		free(cd);
		return ret;
	}
	ret = make_pools(cd, conf);
	if (ret == 0)
		ret = start(cd, conf);
	if (ret == 0)
		ret = check_answers(cd, conf);
	if (ret < 0) {
		VHP_LOG(ERR, "%s: cannot be started: %s", conf->name, strerror(-ret));
		close_engine(&cd->engine);
		return ret;
	}
	*out = &cd->engine;
	return 0;
}
