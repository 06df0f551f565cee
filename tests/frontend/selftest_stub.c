/* SPDX-License-Identifier: BSD-3-Clause */
/* A back end of a few lines; see selftest_stub.h. */
#include "selftest_stub.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void
answer(struct fe_conn *c, const struct fe_msg *m, const void *payload, uint32_t size)
{
	struct {
		struct fe_msg_hdr hdr;
		uint8_t payload[64];
	} r = {.hdr = {.request = m->hdr.request, .flags = FE_MSG_VERSION | FE_MSG_REPLY}};

	r.hdr.size = size;
	memcpy(r.payload, payload, size);
	fe_send_raw(c, &r, sizeof(r.hdr) + size, NULL, 0);
}

static void
serve(struct stub *s, struct fe_conn *c)
{
	static struct fe_msg m;

	while (fe_recv(c, &m, 60000) == 0) {
		uint64_t v = 0;

		s->n_messages++;
		fe_msg_close_fds(&m);
		switch (m.hdr.request) {
		case FE_GET_FEATURES:
			answer(c, &m, &s->features, sizeof(v));
			break;
		case FE_GET_PROTOCOL_FEATURES:
			v = FE_BIT(FE_PROTO_REPLY_ACK) | FE_BIT(FE_PROTO_MQ);
			answer(c, &m, &v, sizeof(v));
			break;
		case FE_GET_QUEUE_NUM:
			v = 4;
			answer(c, &m, &v, sizeof(v));
			break;
		case FE_GET_VRING_BASE: {
			struct fe_vring_state st;

			memcpy(&st, &m.payload, sizeof(st));
			st.num = (uint32_t)s->base[st.index];
			answer(c, &m, &st, sizeof(st));
			break;
		}
		default:
			if ((m.hdr.flags & FE_MSG_NEED_REPLY) == 0)
				break;
			s->n_ack_asked++;
			/* Ring size 3 is refused, all else is fine. */
			v = m.hdr.request == FE_SET_VRING_NUM && m.payload.bytes[4] == 3;
			answer(c, &m, &v, sizeof(v));
		}
	}
}

static void *
run(void *arg)
{
	struct stub *s = arg;

	for (;;) {
		struct fe_conn c = {.listen_fd = -1, .timeout_ms = 1000};

		c.fd = accept(s->listen_fd, NULL, NULL);
		if (c.fd < 0)
			return NULL;
		serve(s, &c);
		close(c.fd);
	}
}

void
stub_start(struct stub *s, uint64_t features)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int rc;

	memset(s, 0, sizeof(*s));
	s->features = features;
	snprintf(s->path, sizeof(s->path), "/tmp/fe-selftest.%d", (int)getpid());
	unlink(s->path);
	strcpy(sa.sun_path, s->path);
	s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	rc = bind(s->listen_fd, (struct sockaddr *)&sa, sizeof(sa));
	assert(rc == 0);
	rc = listen(s->listen_fd, 1);
	assert(rc == 0);
	rc = pthread_create(&s->thread, NULL, run, s);
	assert(rc == 0);
	(void)rc;
}

void
stub_stop(struct stub *s)
{
	/* Makes accept() return. */
	shutdown(s->listen_fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listen_fd);
	unlink(s->path);
}

void
stub_ring_init(struct stub_ring *d, struct fe_ring *r)
{
	d->r = r;
	d->next = r->cfg.packed ? r->cfg.start & 0x7fff : r->cfg.start;
	d->wrap = (r->cfg.start & 0x8000) != 0;
}

static int
take_split(struct stub_ring *d, struct fe_seg *first, uint16_t *ndesc)
{
	struct fe_ring *r = d->r;
	const struct vring_desc *p;
	uint16_t head;

	if (d->next == __atomic_load_n(&r->avail->idx, __ATOMIC_ACQUIRE))
		return -1;
	head = r->avail->ring[d->next++ % r->cfg.size];
	p = &r->desc[head];
	*ndesc = 1;
	if ((p->flags & VRING_DESC_F_INDIRECT) != 0)
		p = fe_mem_ptr(r->mem, p->addr);
	*first = (struct fe_seg){p->addr, p->len, (p->flags & VRING_DESC_F_WRITE) != 0};
	return head;
}

static int
take_packed(struct stub_ring *d, struct fe_seg *first, uint16_t *ndesc)
{
	struct fe_ring *r = d->r;
	const struct vring_packed_desc *p;
	uint16_t flags, at = d->next;

	flags = __atomic_load_n(&r->pdesc[at].flags, __ATOMIC_ACQUIRE);
	if (((flags & FE_PACKED_AVAIL) != 0) != d->wrap ||
		((flags & FE_PACKED_USED) != 0) == d->wrap)
		return -1;
	p = &r->pdesc[at];
	if ((flags & VRING_DESC_F_INDIRECT) != 0)
		p = fe_mem_ptr(r->mem, p->addr);
	*first = (struct fe_seg){p->addr, p->len, (p->flags & VRING_DESC_F_WRITE) != 0};
	for (*ndesc = 1; (r->pdesc[at].flags & VRING_DESC_F_NEXT) != 0; ++*ndesc)
		at = (uint16_t)((at + 1) % r->cfg.size);
	return r->pdesc[at].id;
}

int
stub_take(struct stub_ring *d, struct fe_seg *first, uint16_t *ndesc)
{
	return d->r->cfg.packed ? take_packed(d, first, ndesc) : take_split(d, first, ndesc);
}

void
stub_use(struct stub_ring *d, uint32_t id, uint32_t len, uint16_t ndesc)
{
	struct fe_ring *r = d->r;
	struct vring_packed_desc *p;

	if (!r->cfg.packed) {
		r->used->ring[r->used->idx % r->cfg.size] =
			(struct vring_used_elem){.id = id, .len = len};
		__atomic_store_n(&r->used->idx, (uint16_t)(r->used->idx + 1), __ATOMIC_RELEASE);
		return;
	}
	p = &r->pdesc[d->next];
	p->id = (uint16_t)id;
	p->len = len;
	__atomic_store_n(&p->flags,
		(uint16_t)((len > 0 ? VRING_DESC_F_WRITE : 0) |
			   (d->wrap ? FE_PACKED_AVAIL | FE_PACKED_USED : 0)),
		__ATOMIC_RELEASE);
	d->next = (uint16_t)(d->next + ndesc);
	if (d->next >= r->cfg.size) {
		d->next = (uint16_t)(d->next - r->cfg.size);
		d->wrap = !d->wrap;
	}
}
