/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs as operations of a cryptodev. The data's pieces become a chain of mbufs that have no
 * memory of their own. Operations are taken from their pool, and given back, a burst at a time.
 */
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_mbuf.h>

#include "cryptodev_priv.h"

/*
 * An mbuf that names memory of the guest's or the caller's. Nobody but this file allocates or
 * frees those of the pool, so they need no count of references and no owner.
 */
static struct rte_mbuf *
wrap(struct cryptodev *cd, void *addr, uint16_t bytes)
{
	struct rte_mbuf *m = rte_mbuf_raw_alloc(cd->mbufs);

	if (unlikely(m == NULL))
		return NULL;
	m->buf_addr = addr;
	m->buf_len = bytes;
	m->data_off = 0;
	m->data_len = bytes;
	m->pkt_len = 0;
	return m;
}

static void
unwrap(struct rte_mbuf *m)
{
	while (m != NULL) {
		struct rte_mbuf *next = m->next;

		/* As the pool's have to be. */
		m->next = NULL;
		m->nb_segs = 1;
		rte_mbuf_raw_free(m);
		m = next;
	}
}

static void
unwrap_both(struct rte_crypto_op *op)
{
	unwrap(op->sym->m_src);
	unwrap(op->sym->m_dst);
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

/* Data of this length behind skip bytes of the pieces as a chain; NULL: no mbufs left. */
static struct rte_mbuf *
chain(struct cryptodev *cd, const struct iovec *iov, uint32_t n_iov, size_t skip, size_t left)
{
	struct rte_mbuf *first = NULL, *last = NULL;
	static uint8_t nothing[64];
	bool ok = true;

	for (uint32_t i = 0; i < n_iov && left > 0 && ok; i++) {
		size_t len = iov[i].iov_len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len = RTE_MIN(len - skip, left);
		ok = append(cd, &first, &last, (uint8_t *)iov[i].iov_base + skip, len);
		skip = 0;
		left -= len;
	}
	if (first == NULL && ok)
		ok = append(cd, &first, &last, nothing, 0);
	if (!ok) {
		unwrap(first);
		return NULL;
	}
	return first;
}

/* Fill an operation. Returns false if there are no mbufs left. */
static bool
fill_op(struct cryptodev *cd, struct rte_crypto_op *op, struct vhp_crypto_job *job)
{
	const struct cryptodev_session *s = job->session;
	struct cryptodev_op_priv *priv;

	op->sym->m_src = chain(cd, job->data, job->n_data, job->skip_bytes, job->data_bytes);
	if (job->from != NULL) {
		op->sym->m_dst = op->sym->m_src;
		op->sym->m_src =
			chain(cd, job->from, job->n_from, job->from_skip_bytes, job->data_bytes);
	}
	if (unlikely(op->sym->m_src == NULL || (job->from != NULL && op->sym->m_dst == NULL))) {
		unwrap_both(op);
		return false;
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
	return true;
}

static const struct cryptodev_rsa *
rsa_of(const struct vhp_crypto_job *job)
{
	return ((const struct cryptodev_session *)job->session)->rsa;
}

static void
free_ops(struct cryptodev *cd, struct rte_crypto_op **ops, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		unwrap_both(ops[i]);
	rte_mempool_put_bulk(cd->ops, (void **)ops, n);
}

/* Operations for as many of the jobs as there is room for. Returns how many. */
static uint16_t
make_ops(struct cryptodev *cd, struct vhp_crypto_job *const *jobs, struct rte_crypto_op **ops,
	uint16_t n)
{
	uint16_t made;

	while (n > 0 &&
		rte_crypto_op_bulk_alloc(cd->ops, RTE_CRYPTO_OP_TYPE_SYMMETRIC, ops, n) == 0)
		n /= 2;
	for (made = 0; made < n && fill_op(cd, ops[made], jobs[made]); made++)
		;
	if (unlikely(made < n))
		rte_mempool_put_bulk(cd->ops, (void **)ops + made, n - made);
	return made;
}

uint16_t
cryptodev_submit(struct vhp_crypto_engine *engine, uint16_t queue,
	struct vhp_crypto_job *const *jobs, uint16_t n)
{
	struct cryptodev *cd = (struct cryptodev *)engine;
	struct rte_crypto_op *ops[VHP_CRYPTO_BURST];
	uint16_t made = 0, taken;

	n = RTE_MIN(n, (uint16_t)VHP_CRYPTO_BURST);
	if (n > 0 && rsa_of(jobs[0]) != NULL) {
		cryptodev_rsa_run(rsa_of(jobs[0]), jobs[0]);
		return 1;
	}
	while (made < n && rsa_of(jobs[made]) == NULL)
		made++;
	made = make_ops(cd, jobs, ops, made);
	taken = rte_cryptodev_enqueue_burst(cd->id, queue, ops, made);
	if (likely(taken == made))
		return taken;
	/* A driver that refuses an operation for good says so in it. */
	if (ops[taken]->status != RTE_CRYPTO_OP_STATUS_NOT_PROCESSED) {
		jobs[taken]->error = -EIO;
		jobs[taken]->done = true;
	}
	free_ops(cd, ops + taken, made - taken);
	return jobs[taken]->done ? taken + 1 : taken;
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
	}
	if (n > 0)
		free_ops(cd, ops, n);
	return n;
}
