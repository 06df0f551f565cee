/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vhost-user device: what the gate's messages make of its rings. All on the
 * main thread, but for the callbacks of DPDK's vhost-events thread (vhost_lib.c).
 *
 * It is a network device unless it has another kind (crypto_dev.h).
 */
#ifndef VHP_NET_DEV_H
#define VHP_NET_DEV_H

#include <sys/queue.h>

#include "gate.h"
#include "guard.h"
#include "log.h"
#include "qpair.h"

/** One ring as the front end described it. */
struct vhp_net_ring {
	uint32_t size;
	bool addr_given;
	struct vhp_vu_ring_addr addr; /**< in the front end's address space */
	uint32_t base;                /**< where to (re)start */
	bool left;                    /**< it has run in this connection, */
	uint32_t left_base;           /**< and stopped here */
	bool started;                 /**< SET_VRING_KICK came, GET_VRING_BASE did not */
	bool enabled;
	bool switched_off; /**< disabled by a message, not just not enabled yet */
	bool fault_reported;
	int kick_fd, call_fd, err_fd;
};

struct vhp_crypto_dev;
struct vhp_net_dev;

/**
 * What a device does its own way that is no network device. Its ring N is the transmitq of
 * qpair N, with mixed chains, and a receiveq there is none.
 */
struct vhp_dev_kind {
	uint64_t features;          /**< virtio feature bits */
	uint64_t protocol_features; /**< of vhost-user */
	void (*choose_turn)(struct vhp_qpair *qp);
	/** As vhp_gate_ops::own. */
	bool (*message)(struct vhp_net_dev *dev, struct vhp_vu_msg *msg, struct vhp_vu_msg *answer);
	/** A qpair was taken from its poller; its ring is still there. */
	void (*stopped)(struct vhp_qpair *qp);
	/** The front end is gone. */
	void (*disconnected)(struct vhp_net_dev *dev);
	/** The device is gone. */
	void (*destroy)(struct vhp_crypto_dev *crypto);
};

struct vhp_net_dev {
	TAILQ_ENTRY(vhp_net_dev) link;
	struct vhp_net_conf conf;
	struct vhp_loop *loop;
	struct vhp_port *port;
	const struct vhp_dev_kind *kind; /**< NULL: a network device */
	struct vhp_crypto_dev *crypto;   /**< of that kind; NULL: another */
	struct vhp_gate *gate;
	char backend_path[VHP_PATH_BYTES];
	int vid; /**< DPDK's; vhost-events thread: rw, main thread: ro; -1: none */

	uint64_t offered;  /**< virtio feature bits */
	uint64_t features; /**< accepted by the front end */
	struct vhp_guard *guard;
	struct vhp_log_limit log;
	struct vhp_dirty_log log_area;
	int node; /**< NUMA node of the guest's memory, -1: unknown, or there is only one */
	bool node_reported; /**< that no poller of that node serves it; once per connection */
	bool mem_given;
	bool lib_has_mem; /**< DPDK has a memory table of this connection */
	struct vhp_mem mem;
	uint64_t user_addr[VHP_MEM_MAX_REGIONS]; /**< of mem.regions, front end's view */
	struct vhp_rate rates[2];                /**< transmitq, receiveq */
	struct vhp_net_ring *rings;              /**< 2n: receiveq n; other kinds: n */
	struct vhp_qpair *qpairs;                /**< conf.queues */
	struct vhp_qpair **qpair_list;           /**< the same, for vhp_detach() */
};

/** Rings of one qpair as the front end counts them. */
static inline unsigned int
vhp_dev_rings_each(const struct vhp_net_dev *dev)
{
	return dev->kind == NULL ? 2 : 1;
}

static inline unsigned int
vhp_dev_n_rings(const struct vhp_net_dev *dev)
{
	return vhp_dev_rings_each(dev) * dev->conf.queues;
}

/** The virtqueue of a ring. */
static inline struct vhp_vring *
vhp_dev_vring(const struct vhp_net_dev *dev, unsigned int index)
{
	struct vhp_qpair *qp = &dev->qpairs[index / vhp_dev_rings_each(dev)];

	return dev->kind == NULL && index % 2 == 0 ? &qp->rx : &qp->tx;
}

/**
 * Make a device of any kind; as vhp_net_dev_create().
 * @param kind    NULL: a network device
 * @param crypto  the kind's; owned by the device from now on, whatever is returned
 */
int vhp_dev_create(struct vhp_loop *loop, const struct vhp_net_conf *conf, struct vhp_port *port,
	const struct vhp_dev_kind *kind, struct vhp_crypto_dev *crypto, struct vhp_net_dev **out);

/** All devices, in the order they were created. The main thread changes it. */
TAILQ_HEAD(vhp_net_devs, vhp_net_dev);
extern struct vhp_net_devs vhp_net_devs;

/** Held by other threads while they use the list, and by the main thread to change it. */
void vhp_net_devs_lock(void);
void vhp_net_devs_unlock(void);

/** A poller found a broken ring: have the main thread report it. Any thread. */
void vhp_net_dev_fault(void);

/**
 * What keeps qpair n from forwarding, for people; "forwarding" if nothing does.
 * Any thread; the answer may be outdated.
 */
const char *vhp_net_dev_state(const struct vhp_net_dev *dev, uint16_t qpair);

/* ---- net_rings.c: rings, memory and pollers ------------------------------------- */

/** Take n qpairs from their pollers and note where their rings stand. */
void vhp_net_rings_stop(struct vhp_net_dev *dev, uint16_t first, uint16_t n);

/** Serve every ring that can be served, of qpairs that no poller has. */
void vhp_net_rings_start(struct vhp_net_dev *dev);

/**
 * Set the poll window while traffic flows.
 * @param poll_us  as in struct vhp_net_conf
 * @return 0, or -EINVAL if deferred receive could never get its turn
 */
int vhp_net_rings_poll_us(struct vhp_net_dev *dev, uint32_t poll_us);

/** Bring the limits of the qpairs in line with dev->conf; net_change.c. */
void vhp_net_set_rates(struct vhp_net_dev *dev);

/** Fetch the memory table as DPDK mapped it. */
void vhp_net_rings_map(struct vhp_net_dev *dev);

/** Forget a ring: as before the front end spoke of it. */
void vhp_net_ring_reset(struct vhp_net_ring *ring);

/* ---- vhost_lib.c: DPDK's vhost library -------------------------------------------- */

/** Make DPDK serve dev->backend_path for this device. Returns 0 or -errno. */
int vhp_vhost_lib_register(struct vhp_net_dev *dev);

/** The opposite; the connection must be closed before. */
void vhp_vhost_lib_unregister(struct vhp_net_dev *dev);

#endif /* VHP_NET_DEV_H */
