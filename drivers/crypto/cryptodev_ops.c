/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs as operations of a cryptodev. The data's pieces become a chain of mbufs that have no
 * memory of their own.
 */
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "cryptodev_priv.h"

/* Memory of mbufs is the guest's or the caller's: nobody frees it. */
static void
keep(void *addr, void *opaque)
{
	(void)addr;
	(void)opaque;
}

static struct rte_mbuf_ext_shared_info no_owner = {.free_cb = keep, .refcnt = 2};

static struct rte_mbuf *
wrap(struct cryptodev *cd, void *addr, uint16_t bytes)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(cd->mbufs);

	if (m == NULL)
		return NULL;
	/* A reference each, which detaching gives back; never down to the last one. */
	rte_mbuf_ext_refcnt_update(&no_owner, 1);
	rte_pktmbuf_attach_extbuf(m, addr, RTE_BAD_IOVA, bytes, &no_owner);
	m->data_off = 0;
	m->data_len = bytes;
	return m;
}

static bool
append(struct cryptodev *cd, struct rte_mbuf **first, struct rte_mbuf **last, uint8_t *addr,
	size_t bytes)
{
	do {
		uint16_t part = RTE_MIN(bytes, (size_t)CRYPTODEV_MBUF_BYTES);
		struct rte_mbuf *m = wrap(cd, addr, part);

		if (m == NULL)
			return false;
		if (*first == NULL) {
			*first = m;
		} else {
			(*last)->next = m;
			(*first)->nb_segs++;
		}
		*last = m;
		(*first)->pkt_len += part;
		addr += part;
		bytes -= part;
	} while (bytes > 0);
	return true;
}

/* The job's data as a chain; NULL: no mbufs left. */
static struct rte_mbuf *
chain(struct cryptodev *cd, const struct vhp_crypto_job *job)
{
	struct rte_mbuf *first = NULL, *last = NULL;
	size_t skip = job->skip_bytes, left = job->data_bytes;
	static uint8_t nothing[64];
	bool ok = true;

	for (uint32_t i = 0; i < job->n_data && left > 0 && ok; i++) {
		size_t len = job->data[i].iov_len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len = RTE_MIN(len - skip, left);
		ok = append(cd, &first, &last, (uint8_t *)job->data[i].iov_base + skip, len);
		skip = 0;
		left -= len;
	}
	if (first == NULL && ok)
		ok = append(cd, &first, &last, nothing, 0);
	if (!ok) {
		rte_pktmbuf_free(first);
		return NULL;
	}
	return first;
}

static struct rte_crypto_op *
make_op(struct cryptodev *cd, struct vhp_crypto_job *job)
{
	const struct cryptodev_session *s = job->session;
	struct rte_crypto_op *op = rte_crypto_op_alloc(cd->ops, RTE_CRYPTO_OP_TYPE_SYMMETRIC);
	struct cryptodev_op_priv *priv;

	if (op == NULL)
		return NULL;
	op->sym->m_src = chain(cd, job);
	if (op->sym->m_src == NULL) {
		rte_crypto_op_free(op);
		return NULL;
	}
	rte_crypto_op_attach_sym_session(op, s->sess);
	priv = rte_crypto_op_ctod_offset(op, struct cryptodev_op_priv *, CRYPTODEV_IV_OFFSET);
	memcpy(priv->iv, job->iv, sizeof(priv->iv));
	priv->job = job;
	if (s->kind == VHP_CRYPTO_AEAD) {
		op->sym->aead.data.offset = 0;
		op->sym->aead.data.length = job->data_bytes;
		op->sym->aead.digest.data = job->digest;
		op->sym->aead.aad.data = job->aad;
	} else {
		op->sym->cipher.data.offset = job->cipher_offset;
		op->sym->cipher.data.length = job->cipher_bytes;
		op->sym->auth.data.offset = job->auth_offset;
		op->sym->auth.data.length = job->auth_bytes;
		op->sym->auth.digest.data = job->digest;
	}
	return op;
}

static const struct cryptodev_rsa *
rsa_of(const struct vhp_crypto_job *job)
{
	return ((const struct cryptodev_session *)job->session)->rsa;
}

static void
free_op(struct rte_crypto_op *op)
{
	rte_pktmbuf_free(op->sym->m_src);
	rte_crypto_op_free(op);
}

uint16_t
cryptodev_submit(struct vhp_crypto_engine *engine, uint16_t queue,
	struct vhp_crypto_job *const *jobs, uint16_t n)
{
	struct cryptodev *cd = (struct cryptodev *)engine;
	struct rte_crypto_op *ops[VHP_CRYPTO_BURST];
	uint16_t made, taken;

	n = RTE_MIN(n, (uint16_t)VHP_CRYPTO_BURST);
	if (n > 0 && rsa_of(jobs[0]) != NULL) {
		cryptodev_rsa_run(rsa_of(jobs[0]), jobs[0]);
		return 1;
	}
	for (made = 0; made < n && rsa_of(jobs[made]) == NULL; made++) {
		ops[made] = make_op(cd, jobs[made]);
		if (unlikely(ops[made] == NULL))
			break;
	}
	taken = rte_cryptodev_enqueue_burst(cd->id, queue, ops, made);
	for (uint16_t i = taken; i < made; i++) {
		/* A driver that refuses an operation for good says so in it. */
		if (i == taken && ops[i]->status != RTE_CRYPTO_OP_STATUS_NOT_PROCESSED) {
			jobs[i]->error = -EIO;
			jobs[i]->done = true;
		}
		free_op(ops[i]);
	}
	return taken < made && jobs[taken]->done ? taken + 1 : taken;
}

uint16_t
cryptodev_poll(struct vhp_crypto_engine *engine, uint16_t queue)
{
	struct cryptodev *cd = (struct cryptodev *)engine;
	struct rte_crypto_op *ops[VHP_CRYPTO_BURST];
	uint16_t n = rte_cryptodev_dequeue_burst(cd->id, queue, ops, RTE_DIM(ops));

	for (uint16_t i = 0; i < n; i++) {
		const struct cryptodev_op_priv *priv = rte_crypto_op_ctod_offset(
			ops[i], const struct cryptodev_op_priv *, CRYPTODEV_IV_OFFSET);
		struct vhp_crypto_job *job = priv->job;

		if (ops[i]->status == RTE_CRYPTO_OP_STATUS_SUCCESS)
			job->error = 0;
		else if (ops[i]->status == RTE_CRYPTO_OP_STATUS_AUTH_FAILED)
			job->error = -EBADMSG;
		else
			job->error = -EIO;
		job->done = true;
		free_op(ops[i]);
	}
	return n;
}
