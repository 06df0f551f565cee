/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of sessions. An id is slot and generation, so that one that was given out for
 * an earlier session of the slot, or in an earlier connection, is not valid any more.
 */
#include <errno.h>
#include <stdlib.h>

#include <rte_bitops.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_random.h>

#include "crypto_dev.h"

/* Ids are positive as the signed numbers that the protocol takes them for. */
#define GENERATION_MASK 0x7fffffffU

int
vhp_crypto_table_init(struct vhp_crypto_table *table, uint32_t limit)
{
	/* Twice as many as may be in use: a slot that was given back rests for a while. */
	table->n_slots = rte_align32pow2(2 * limit);
	table->limit = limit;
	table->slots = calloc(table->n_slots, sizeof(struct vhp_crypto_session *));
	table->generation = calloc(table->n_slots, sizeof(table->generation[0]));
	if (table->slots == NULL || table->generation == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < table->n_slots; i++)
		table->generation[i] = (uint32_t)rte_rand();
	rte_spinlock_init(&table->lock);
	return 0;
}

void
vhp_crypto_table_fini(struct vhp_crypto_table *table)
{
	free(table->slots);
	free(table->generation);
	table->slots = NULL;
	table->generation = NULL;
}

/* Half of the slots are free, so the search is short. Returns false if the limit is reached. */
static bool
insert(struct vhp_crypto_table *table, struct vhp_crypto_session *session)
{
	bool room;

	rte_spinlock_lock(&table->lock);
	room = table->n_used < table->limit;
	if (room) {
		uint32_t slot = table->next;

		while (table->slots[slot] != NULL)
			slot = (slot + 1) & (table->n_slots - 1);
		table->next = (slot + 1) & (table->n_slots - 1);
		table->n_used++;
		session->id = (uint64_t)(++table->generation[slot] & GENERATION_MASK) << 32 | slot;
		__atomic_store_n(&table->slots[slot], session, __ATOMIC_RELEASE);
	}
	rte_spinlock_unlock(&table->lock);
	return room;
}

static uint32_t
status_of(int error)
{
	switch (error) {
	case 0:
		return VIRTIO_CRYPTO_OK;
	case -ENOTSUP:
		return VIRTIO_CRYPTO_NOTSUPP;
	case -ENOSPC:
		return VIRTIO_CRYPTO_NOSPC;
	default:
		return VIRTIO_CRYPTO_ERR;
	}
}

uint32_t
vhp_crypto_session_create(
	struct vhp_crypto_dev *dev, const struct vhp_crypto_params *params, uint64_t *id)
{
	struct vhp_crypto_session *session;
	int ret;

	/* Before the expensive part; insert() has the last word. */
	if (__atomic_load_n(&dev->table.n_used, __ATOMIC_RELAXED) >= dev->table.limit)
		return VIRTIO_CRYPTO_NOSPC;
	session = calloc(1, sizeof(*session));
	if (session == NULL)
		return VIRTIO_CRYPTO_NOSPC;
	session->kind = params->kind;
	session->encrypt = params->encrypt;
	session->digest_bytes = params->digest_bytes;
	session->aad_bytes = params->aad_bytes;
	session->refs = 1;
	ret = dev->engine->ops->create(
		dev->engine, params, &session->shape, &session->engine_session);
	if (ret < 0) {
		free(session);
		return status_of(ret);
	}
	if (!insert(&dev->table, session)) {
		vhp_crypto_session_put(dev, session);
		return VIRTIO_CRYPTO_NOSPC;
	}
	*id = session->id;
	return VIRTIO_CRYPTO_OK;
}

struct vhp_crypto_session *
vhp_crypto_session_remove(struct vhp_crypto_dev *dev, uint64_t id)
{
	struct vhp_crypto_table *table = &dev->table;
	struct vhp_crypto_session *session = NULL;
	uint32_t slot = (uint32_t)id;

	if (slot >= table->n_slots)
		return NULL;
	rte_spinlock_lock(&table->lock);
	session = table->slots[slot];
	if (session != NULL && session->id == id) {
		__atomic_store_n(&table->slots[slot], NULL, __ATOMIC_RELEASE);
		table->n_used--;
	} else {
		session = NULL;
	}
	rte_spinlock_unlock(&table->lock);
	return session;
}

void
vhp_crypto_session_put(struct vhp_crypto_dev *dev, struct vhp_crypto_session *session)
{
	if (__atomic_sub_fetch(&session->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	dev->engine->ops->destroy(dev->engine, session->engine_session);
	free(session);
}

struct vhp_crypto_session *
vhp_crypto_session_get(struct vhp_crypto_dev *dev, uint64_t id)
{
	struct vhp_crypto_session *session;

	if (unlikely((uint32_t)id >= dev->table.n_slots))
		return NULL;
	session = __atomic_load_n(&dev->table.slots[(uint32_t)id], __ATOMIC_ACQUIRE);
	if (unlikely(session == NULL || session->id != id))
		return NULL;
	__atomic_add_fetch(&session->refs, 1, __ATOMIC_RELAXED);
	return session;
}

void
vhp_crypto_session_clear(struct vhp_crypto_dev *dev)
{
	for (uint32_t i = 0; i < dev->table.n_slots; i++) {
		struct vhp_crypto_session *session = dev->table.slots[i];

		if (session == NULL)
			continue;
		dev->table.slots[i] = NULL;
		vhp_crypto_session_put(dev, session);
	}
	dev->table.n_used = 0;
}
