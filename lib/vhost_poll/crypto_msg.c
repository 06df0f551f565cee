/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions by messages (vhost-user specification, VHOST_USER_CREATE_CRYPTO_SESSION): the
 * front end serves the guest's control queue and waits for each answer, so it is given at
 * once, on the main thread, whatever the poller does.
 */
#include <string.h>

#include <rte_common.h>

#include "crypto_dev.h"
#include "poller.h"

/* Payload of CREATE_CRYPTO_SESSION as QEMU 7.2 sends it; pointers are the front end's. */
struct session_message {
	int64_t session_id;
	uint32_t cipher_algo;
	uint32_t cipher_key_bytes;
	uint32_t auth_algo;
	uint32_t digest_bytes;
	uint32_t auth_key_bytes;
	uint32_t aad_bytes;
	uint8_t op_type;
	uint8_t direction;
	uint8_t hash_mode;
	uint8_t chain_order;
	uint32_t padding;
	uint64_t pointers[2];
	uint8_t cipher_key[VHP_CRYPTO_CIPHER_KEY_BYTES];
	uint8_t auth_key[VHP_CRYPTO_AUTH_KEY_BYTES];
};

static_assert(sizeof(struct session_message) == 632, "as it is on the wire");

/* GET_CONFIG: what is asked for, and the answer behind it. */
struct config_message {
	uint32_t offset;
	uint32_t size_bytes;
	uint32_t flags;
	uint8_t bytes[sizeof(struct virtio_crypto_config)];
};

static uint32_t
parse_chain(const struct session_message *m, struct vhp_crypto_params *params)
{
	if (m->chain_order == VIRTIO_CRYPTO_SYM_ALG_CHAIN_ORDER_HASH_THEN_CIPHER)
		params->kind = VHP_CRYPTO_HASH_CIPHER;
	else if (m->chain_order == VIRTIO_CRYPTO_SYM_ALG_CHAIN_ORDER_CIPHER_THEN_HASH)
		params->kind = VHP_CRYPTO_CIPHER_HASH;
	else
		return VIRTIO_CRYPTO_ERR;
	if (m->hash_mode != VIRTIO_CRYPTO_SYM_HASH_MODE_AUTH &&
		m->hash_mode != VIRTIO_CRYPTO_SYM_HASH_MODE_PLAIN)
		return VIRTIO_CRYPTO_NOTSUPP;
	params->keyed = m->hash_mode == VIRTIO_CRYPTO_SYM_HASH_MODE_AUTH;
	params->auth_algo = m->auth_algo;
	params->digest_bytes = m->digest_bytes;
	params->aad_bytes = m->aad_bytes;
	if (!params->keyed)
		return VIRTIO_CRYPTO_OK;
	if (m->auth_key_bytes == 0 || m->auth_key_bytes > sizeof(m->auth_key))
		return VIRTIO_CRYPTO_ERR;
	params->auth_key_bytes = m->auth_key_bytes;
	memcpy(params->auth_key, m->auth_key, m->auth_key_bytes);
	return VIRTIO_CRYPTO_OK;
}

uint32_t
vhp_crypto_parse_message(
	const uint8_t *payload, uint32_t len_bytes, struct vhp_crypto_params *params)
{
	const struct session_message *m = (const struct session_message *)payload;

	vhp_crypto_params_init(params);
	if (len_bytes != sizeof(*m))
		return VIRTIO_CRYPTO_BADMSG;
	params->cipher_algo = m->cipher_algo;
	params->encrypt = m->direction == VIRTIO_CRYPTO_OP_ENCRYPT;
	if (m->direction != VIRTIO_CRYPTO_OP_ENCRYPT && m->direction != VIRTIO_CRYPTO_OP_DECRYPT)
		return VIRTIO_CRYPTO_ERR;
	if (m->cipher_key_bytes == 0 || m->cipher_key_bytes > sizeof(m->cipher_key))
		return VIRTIO_CRYPTO_ERR;
	params->cipher_key_bytes = m->cipher_key_bytes;
	memcpy(params->cipher_key, m->cipher_key, m->cipher_key_bytes);
	if (m->op_type == VIRTIO_CRYPTO_SYM_OP_ALGORITHM_CHAINING)
		return parse_chain(m, params);
	params->kind = VHP_CRYPTO_CIPHER;
	return m->op_type == VIRTIO_CRYPTO_SYM_OP_CIPHER ? VIRTIO_CRYPTO_OK : VIRTIO_CRYPTO_NOTSUPP;
}

static void
create(struct vhp_crypto_dev *crypto, const struct vhp_vu_msg *msg, struct vhp_vu_msg *answer)
{
	struct session_message *reply = (struct session_message *)answer->bytes;
	struct vhp_crypto_params params;
	uint64_t id = 0;
	uint32_t status = vhp_crypto_parse_message(msg->bytes, msg->header.size, &params);

	if (status == VIRTIO_CRYPTO_OK)
		status = vhp_crypto_session_create(crypto, &params, &id);
	vhp_crypto_params_wipe(&params);
	if (status == VIRTIO_CRYPTO_OK)
		crypto->by_message.created++;
	else
		crypto->by_message.refused++;
	/* The payload has the size of the request's, without its keys. */
	memset(reply, 0, sizeof(*reply));
	reply->session_id = status == VIRTIO_CRYPTO_OK ? (int64_t)id : -(int64_t)status;
	answer->header.size = sizeof(*reply);
}

static void
close_session(struct vhp_net_dev *dev, uint64_t id)
{
	struct vhp_crypto_session *session = vhp_crypto_session_remove(dev->crypto, id);

	if (session == NULL) {
		dev->crypto->by_message.unknown_sessions++;
		return;
	}
	dev->crypto->by_message.closed++;
	/* A turn of the poller may just have looked it up: wait for its end. */
	for (uint16_t i = 0; i < dev->conf.queues; i++) {
		struct vhp_poller *p = dev->qpairs[i].poller;

		if (p == NULL)
			continue;
		rte_rcu_qsbr_synchronize(p->qsbr, RTE_QSBR_THRID_INVALID);
		break;
	}
	vhp_crypto_session_put(dev->crypto, session);
}

static void
fill_config(const struct vhp_crypto_dev *crypto, struct virtio_crypto_config *config)
{
	const struct vhp_crypto_caps *caps = &crypto->engine->caps;

	*config = (struct virtio_crypto_config){
		.status = VIRTIO_CRYPTO_S_HW_READY,
		.max_dataqueues = crypto->n_data,
		.crypto_services = caps->services,
		.cipher_algo_l = (uint32_t)caps->ciphers,
		.cipher_algo_h = (uint32_t)(caps->ciphers >> 32),
		.hash_algo = caps->hashes,
		.mac_algo_l = (uint32_t)caps->macs,
		.mac_algo_h = (uint32_t)(caps->macs >> 32),
		.aead_algo = caps->aeads,
		.akcipher_algo = caps->akciphers,
		.max_cipher_key_len = caps->max_cipher_key_bytes,
		.max_auth_key_len = caps->max_auth_key_bytes,
		/* What a request of any kind may have. */
		.max_size = RTE_MIN(caps->max_bytes, caps->max_aead_bytes),
	};
}

static void
get_config(const struct vhp_crypto_dev *crypto, const struct vhp_vu_msg *msg,
	struct vhp_vu_msg *answer)
{
	const struct config_message *asked = (const struct config_message *)msg->bytes;
	struct config_message *reply = (struct config_message *)answer->bytes;
	struct virtio_crypto_config config;
	uint32_t offset, size;

	/* An empty payload is the error (vhost-user specification, VHOST_USER_GET_CONFIG). */
	answer->header.size = 0;
	if (msg->header.size < offsetof(struct config_message, bytes))
		return;
	offset = asked->offset;
	size = asked->size_bytes;
	if (offset > sizeof(config) || size > sizeof(config) - offset ||
		msg->header.size != offsetof(struct config_message, bytes) + size)
		return;
	fill_config(crypto, &config);
	*reply = (struct config_message){.offset = offset, .size_bytes = size};
	memcpy(reply->bytes, (const uint8_t *)&config + offset, size);
	answer->header.size = msg->header.size;
}

bool
vhp_crypto_message(struct vhp_net_dev *dev, struct vhp_vu_msg *msg, struct vhp_vu_msg *answer)
{
	switch (msg->header.request) {
	case VU_CREATE_CRYPTO_SESSION:
		create(dev->crypto, msg, answer);
		/* The keys lie in the message no longer than they have to. */
		explicit_bzero(msg->bytes, sizeof(msg->bytes));
		return true;
	case VU_CLOSE_CRYPTO_SESSION:
		close_session(dev, msg->u64);
		return true;
	case VU_GET_CONFIG:
		get_config(dev->crypto, msg, answer);
		return true;
	default:
		return false;
	}
}
