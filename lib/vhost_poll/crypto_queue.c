/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A data queue. A burst of requests is taken, given to the engine, and used in its order; the
 * next is taken when it is done, so that never more than a burst is in flight. A cipher reads
 * from the readable descriptors and writes to the writable ones, if they are as the engine needs
 * them. Else data goes there by one copy and is processed in place, unless it is cut where the
 * engine cannot go on.
 */
#include <errno.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_prefetch.h>

#include "crypto_dev.h"
#include "vhp_iov.h"

/* A turn ends after so much, so that net devices of the same poller do not wait for long. */
#define WEIGHT_REQUESTS 128
#define WEIGHT_BYTES    (256U << 10)
/* An engine that does not give a request back in this time has lost it. */
#define STOP_S          1
/* Less than this is copied sooner than it is described. */
#define APART_BYTES     256
/* IV, source and destination come first. */
#define PREFETCH_PIECES 4

/* Copy between pieces; both have as much. */
static void
copy(const struct iovec *to, uint32_t n_to, const struct iovec *from, uint32_t n_from,
	size_t from_offset, size_t bytes)
{
	size_t done = 0;

	for (uint32_t i = 0; i < n_to && done < bytes; i++) {
		size_t part = RTE_MIN(to[i].iov_len, bytes - done);

		vhp_iov_read(from, n_from, from_offset + done, to[i].iov_base, part);
		done += part;
	}
}

/* Room in the arena; NULL until requests before this one are done. */
static void *
arena_take(struct vhp_crypto_burst *burst, uint32_t bytes)
{
	uint32_t size = RTE_ALIGN_CEIL(bytes, 64U);

	if (size > VHP_CRYPTO_ARENA_BYTES - burst->arena_used)
		return NULL;
	burst->arena_used += size;
	return burst->arena + burst->arena_used - size;
}

/* Can the engine cipher these bytes where they lie? */
static bool
can_be_in_place(const struct vhp_crypto_engine *engine, const struct vhp_crypto_session *session,
	const struct vhp_crypto_job *job, const struct iovec *iov, uint32_t n_iov)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < n_iov; i++) {
		end += iov[i].iov_len;
		if (end >= job->data_bytes)
			return true;
		if (!engine->caps.pieces || session->kind == VHP_CRYPTO_AEAD)
			return false;
		if (end > job->cipher_offset &&
			(end - job->cipher_offset) % session->shape.block_bytes != 0)
			return false;
	}
	return false;
}

/* Can the engine read these bytes where they lie and write them where they are to be? */
static bool
can_be_apart(const struct vhp_crypto_engine *engine, const struct vhp_crypto_session *session,
	const struct vhp_frame *f, const struct vhp_crypto_request *r)
{
	size_t at = r->src_offset;
	uint16_t i = 0;

	if (session->kind != VHP_CRYPTO_CIPHER || r->data_bytes < APART_BYTES ||
		r->data_bytes > engine->caps.apart_bytes ||
		f->iov[f->n_read].iov_len < r->data_bytes)
		return false;
	if (engine->caps.apart_pieces)
		return true;
	while (at >= f->iov[i].iov_len)
		at -= f->iov[i++].iov_len;
	return f->iov[i].iov_len - at >= r->data_bytes;
}

/* All of RSA is short, and lies in the arena: what came in, and room for what goes out. */
static bool
prepare_akcipher(struct vhp_crypto_burst *burst, uint16_t i)
{
	const struct vhp_frame *f = &burst->frames[i];
	struct vhp_crypto_request *r = &burst->requests[i];
	struct vhp_crypto_job *job = &burst->jobs[i];
	uint32_t modulus_bytes = r->session->shape.modulus_bytes;
	/* A byte of zero ends the result. */
	uint8_t *room = arena_take(burst, r->data_bytes + modulus_bytes + 1);

	if (room == NULL)
		return false;
	r->whole = (struct iovec){room, r->data_bytes};
	vhp_iov_read(f->iov, f->n_read, r->src_offset, room, r->data_bytes);
	job->data = &r->whole;
	job->n_data = 1;
	job->out = room + r->data_bytes;
	memset(job->out, 0, modulus_bytes + 1);
	r->prepared = true;
	return true;
}

/* Bring a request's data to where the engine finds it. Returns false if there is no room yet. */
static bool
prepare(struct vhp_crypto_dev *dev, struct vhp_crypto_burst *burst, uint16_t i)
{
	const struct vhp_frame *f = &burst->frames[i];
	struct vhp_crypto_request *r = &burst->requests[i];
	struct vhp_crypto_job *job = &burst->jobs[i];
	const struct vhp_crypto_session *s = r->session;
	const struct iovec *dst = f->iov + f->n_read;
	bool reads_only = s->kind == VHP_CRYPTO_HASH || s->kind == VHP_CRYPTO_MAC;
	uint32_t before = burst->arena_used;

	if (s->kind == VHP_CRYPTO_AKCIPHER)
		return prepare_akcipher(burst, i);
	if (s->aad_bytes > 0 && s->kind == VHP_CRYPTO_AEAD) {
		job->aad = arena_take(burst, s->aad_bytes);
		if (job->aad == NULL)
			return false;
		vhp_iov_read(f->iov, f->n_read, r->aad_offset, job->aad, s->aad_bytes);
	}
	if (r->tag_bytes > 0)
		vhp_iov_read(f->iov, f->n_read, r->src_offset + r->data_bytes, job->digest,
			r->tag_bytes);
	if (reads_only && dev->engine->caps.pieces) {
		job->data = f->iov;
		job->n_data = f->n_read;
		job->skip_bytes = r->src_offset;
	} else if (can_be_apart(dev->engine, s, f, r)) {
		job->from = f->iov;
		job->n_from = f->n_read;
		job->from_skip_bytes = r->src_offset;
		job->data = dst;
		job->n_data = 1;
	} else if (!reads_only && can_be_in_place(dev->engine, s, job, dst, f->n_write)) {
		copy(dst, f->n_write, f->iov, f->n_read, r->src_offset, r->data_bytes);
		job->data = dst;
		job->n_data = f->n_write;
	} else {
		r->whole = (struct iovec){arena_take(burst, r->data_bytes), r->data_bytes};
		if (r->whole.iov_base == NULL) {
			burst->arena_used = before;
			return false;
		}
		copy(&r->whole, 1, f->iov, f->n_read, r->src_offset, r->data_bytes);
		r->bounced = !reads_only;
		job->data = &r->whole;
		job->n_data = 1;
	}
	r->prepared = true;
	return true;
}

/* Give requests to the engine, in order, as far as room and weight allow. */
static void
submit(struct vhp_crypto_dev *dev, struct vhp_crypto_burst *burst, struct vhp_work *work)
{
	struct vhp_crypto_job *ready[VHP_CRYPTO_BURST];
	uint16_t n = 0, end, taken;
	bool is_long = false;

	for (end = burst->submitted; end < burst->n && work->bytes < WEIGHT_BYTES; end++) {
		struct vhp_crypto_request *r = &burst->requests[end];

		if (burst->jobs[end].done)
			continue;
		is_long = r->session->kind == VHP_CRYPTO_AKCIPHER;
		if (is_long && n > 0)
			break;
		if (!r->prepared) {
			if (!prepare(dev, burst, end))
				break;
			work->bytes += r->data_bytes;
		}
		ready[n++] = &burst->jobs[end];
		/* It is a turn of its own: a pass has one for each queue. */
		if (is_long)
			work->bytes += WEIGHT_BYTES;
	}
	taken = n == 0 ? 0 : dev->engine->ops->submit(dev->engine, dev->engine_queue, ready, n);
	/* Refused ones count as submitted, too. */
	for (uint16_t k = 0; burst->submitted < end; burst->submitted++) {
		if (k < n && ready[k] == &burst->jobs[burst->submitted]) {
			if (k == taken)
				break;
			k++;
		}
	}
}

static uint8_t
status_of(const struct vhp_crypto_request *r, const struct vhp_crypto_job *job)
{
	if (r->session == NULL)
		return r->status;
	if (job->error == 0)
		return VIRTIO_CRYPTO_OK;
	if (job->error == -EKEYREJECTED)
		return VIRTIO_CRYPTO_KEY_REJECTED;
	return job->error == -EBADMSG ? VIRTIO_CRYPTO_BADMSG : VIRTIO_CRYPTO_ERR;
}

/*
 * RSA: used.len says how long the result is, as virtio has no other place for that. Bytes up
 * to it have to be written, so one of zero takes the place of the status, which is the last
 * of all. Returns the status.
 */
static uint8_t
finish_akcipher(struct vhp_crypto_queue *queue, struct vhp_frame *f,
	const struct vhp_crypto_request *r, const struct vhp_crypto_job *job, uint8_t status)
{
	if (status == VIRTIO_CRYPTO_OK && job->opcode != VIRTIO_CRYPTO_AKCIPHER_VERIFY) {
		if (job->out_bytes > r->dst_bytes) {
			status = VIRTIO_CRYPTO_ERR;
		} else {
			f->used_bytes = job->out_bytes + 1;
			vhp_iov_write(f->iov + f->n_read, f->n_write, 0, job->out, f->used_bytes);
		}
	}
	explicit_bzero(r->whole.iov_base, r->data_bytes + r->session->shape.modulus_bytes);
	queue->akcipher++;
	return status;
}

/* Results first, the status last (virtio 1.2, 5.9.7.4). */
static void
finish(struct vhp_crypto_queue *queue, struct vhp_vring *vr, struct vhp_frame *f,
	struct vhp_crypto_request *r, struct vhp_crypto_job *job)
{
	const struct iovec *dst = f->iov + f->n_read;
	uint64_t writable = vhp_crypto_bytes(dst, f->n_write);
	uint8_t status = status_of(r, job);

	if (unlikely(f->drop != VHP_OK || writable == 0)) {
		vr->stats.drops[f->drop != VHP_OK ? f->drop : VHP_DROP_SHORT]++;
		f->used_bytes = 0;
	} else {
		const struct iovec *last = &dst[f->n_write - 1];

		f->used_bytes = (uint32_t)writable;
		if (r->session != NULL && r->session->kind == VHP_CRYPTO_AKCIPHER)
			status = finish_akcipher(queue, f, r, job, status);
		if (r->bounced && status == VIRTIO_CRYPTO_OK)
			vhp_iov_write(dst, f->n_write, 0, r->whole.iov_base, r->data_bytes);
		if (r->digest_bytes > 0 && status == VIRTIO_CRYPTO_OK)
			vhp_iov_write(dst, f->n_write, r->dst_bytes, job->digest, r->digest_bytes);
		/* The last byte of the last piece; none is empty. */
		((uint8_t *)last->iov_base)[last->iov_len - 1] = status;
		if (vr->log != NULL)
			vhp_dirty_log_write_iov(vr->log, vr->mem, dst, f->n_write, writable);
		queue->statuses[status]++;
		vr->stats.pkts++;
		vr->stats.bytes += status == VIRTIO_CRYPTO_OK ? r->data_bytes : 0;
	}
	if (r->session != NULL)
		vhp_crypto_session_put(queue->dev, r->session);
	r->session = NULL;
}

/* Hand back what is done, in order. Returns how many. */
static uint16_t
retire(struct vhp_crypto_queue *queue, struct vhp_vring *vr)
{
	struct vhp_crypto_burst *burst = queue->burst;
	uint16_t first = burst->retired;
	uint16_t n;

	while (burst->retired < burst->submitted && burst->jobs[burst->retired].done) {
		uint16_t i = burst->retired++;

		finish(queue, vr, &burst->frames[i], &burst->requests[i], &burst->jobs[i]);
	}
	n = burst->retired - first;
	if (n > 0) {
		vr->ops->put(vr, burst->frames + first, n);
		vhp_vring_call(vr);
	}
	/* What is prepared and not submitted yet has data there, too. */
	if (burst->retired == burst->n ||
		(burst->retired == burst->submitted && !burst->requests[burst->retired].prepared))
		burst->arena_used = 0;
	return n;
}

/* Lines that the guest's CPU has written last, and that are touched for each request. */
static void
prefetch_request(const struct vhp_frame *f)
{
	if (unlikely(f->n_iov == 0))
		return;
	rte_prefetch0(f->iov[0].iov_base);
	rte_prefetch0((const uint8_t *)f->iov[0].iov_base + VHP_CRYPTO_REQ_BYTES);
	for (uint16_t i = 1; i < RTE_MIN(f->n_iov, PREFETCH_PIECES); i++)
		rte_prefetch0(f->iov[i].iov_base);
	rte_prefetch0(f->iov[f->n_iov - 1].iov_base);
}

static uint16_t
take(struct vhp_crypto_queue *queue, struct vhp_vring *vr)
{
	struct vhp_crypto_burst *burst = queue->burst;

	burst->submitted = burst->retired = 0;
	burst->n =
		vr->ops->take(vr, burst->frames, VHP_CRYPTO_BURST, burst->iov, RTE_DIM(burst->iov));
	for (uint16_t i = 0; i < burst->n; i++)
		prefetch_request(&burst->frames[i]);
	for (uint16_t i = 0; i < burst->n; i++) {
		struct vhp_frame *f = &burst->frames[i];

		if (likely(f->drop == VHP_OK && vhp_frame_is_ordered(f))) {
			vhp_crypto_parse_request(
				queue->dev, f, &burst->requests[i], &burst->jobs[i]);
			continue;
		}
		if (f->drop == VHP_OK)
			f->drop = VHP_DROP_CHAIN_DIRECTION;
		f->n_read = f->n_write = 0;
		burst->requests[i] = (struct vhp_crypto_request){.status = VIRTIO_CRYPTO_BADMSG};
		burst->jobs[i].done = true;
	}
	return burst->n;
}

void
vhp_crypto_turn_data(struct vhp_qpair *qp, uint64_t now_tsc, struct vhp_work *work)
{
	struct vhp_crypto_queue *queue = vhp_crypto_queue_of(qp);
	struct vhp_crypto_burst *burst = queue->burst;
	struct vhp_vring *vr = &qp->tx;

	(void)now_tsc;
	while (vr->running && likely(vr->fault == VHP_RING_OK) && work->pkts < WEIGHT_REQUESTS &&
		work->bytes < WEIGHT_BYTES) {
		uint16_t done;

		if (burst->retired == burst->n) {
			if (take(queue, vr) == 0)
				break;
			work->descs += vr->steps;
		}
		submit(queue->dev, burst, work);
		queue->dev->engine->ops->poll(queue->dev->engine, queue->dev->engine_queue);
		done = retire(queue, vr);
		work->pkts += done;
		if (done == 0)
			break;
	}
	/* No descriptor tells when the engine is done: a sleep is short then. */
	if (burst->retired < burst->n)
		qp->pq->wait = VHP_PORT_BUSY;
}

void
vhp_crypto_stopped(struct vhp_qpair *qp)
{
	struct vhp_crypto_queue *queue = vhp_crypto_queue_of(qp);
	struct vhp_crypto_burst *burst = queue->burst;
	struct vhp_vring *vr = &qp->tx;
	uint64_t end_tsc = rte_rdtsc() + STOP_S * rte_get_tsc_hz();

	if (burst == NULL || burst->retired == burst->n)
		return;
	/* What the engine does not have yet is the guest's again. */
	vr->ops->untake(vr, burst->frames + burst->submitted, burst->n - burst->submitted);
	for (uint16_t i = burst->submitted; i < burst->n; i++)
		if (burst->requests[i].session != NULL)
			vhp_crypto_session_put(queue->dev, burst->requests[i].session);
	burst->n = burst->submitted;
	while (burst->retired < burst->n && rte_rdtsc() < end_tsc) {
		queue->dev->engine->ops->poll(queue->dev->engine, queue->dev->engine_queue);
		retire(queue, vr);
	}
	burst->n = burst->submitted = burst->retired = 0;
	burst->arena_used = 0;
}
