/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Public interface of the vhost poll library: pollers, vhost-user devices and
 * their counters. The application calls it; host ports implement vhp_port.h.
 *
 * Unless a function says otherwise it is called on the main thread, after
 * rte_eal_init(), returns 0 or a negative errno value, and logs one line that
 * says why when it fails.
 *
 * Names: "receiveq" and "transmitq" are the guest's (virtio 1.2, 5.1.2); a
 * "qpair" is receiveq N and transmitq N of one device bound to one queue of a
 * host port and owned by one poller.
 */
#ifndef VHOST_POLL_H
#define VHOST_POLL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct vhp_loop;
struct vhp_net_dev;
struct vhp_port;

/** Most queue pairs of one device. */
#define VHP_MAX_QUEUES   128
/** Longest device name, with its terminating zero. */
#define VHP_NAME_BYTES   32
/** Longest path of a Unix socket, with its terminating zero (sun_path). */
#define VHP_PATH_BYTES   108
/** A poll window that never closes: the poller never sleeps. */
#define VHP_POLL_FOREVER UINT32_MAX
/** A poll window that follows the traffic, within the bounds of struct vhp_poller_conf. */
#define VHP_POLL_AUTO    (UINT32_MAX - 1)
/** Largest finite poll window. */
#define VHP_POLL_MAX_US  1000000

/** What the poller does with the host side while the transmit side is at work. */
enum vhp_rx_poll {
	/** Look at the host side after every transmit burst (Linux 4.20 and this project). */
	VHP_RX_INTERLEAVE,
	/**
	 * Do not look at the host side while the transmitq has work or its poll window is
	 * open (vhost-net before Linux 4.20); for comparison.
	 */
	VHP_RX_DEFERRED,
};

/* ---- the main thread's event loop ------------------------------------- */

/** Called on the main thread when a watched descriptor is ready or a timer fires. */
typedef void (*vhp_loop_cb)(void *ctx, uint32_t epoll_events);

/** Create the event loop of the main thread. Returns NULL with errno set. */
struct vhp_loop *vhp_loop_create(void);

/** Free the loop; descriptors that are still watched are not closed. Takes NULL. */
void vhp_loop_destroy(struct vhp_loop *loop);

/**
 * Watch a descriptor.
 * @param fd      stays the caller's; unwatch it before closing it
 * @param events  EPOLLIN, EPOLLOUT; calling again for the same fd replaces all three
 */
int vhp_loop_watch(struct vhp_loop *loop, int fd, uint32_t events, vhp_loop_cb cb, void *ctx);

/** Stop watching; the callback is not called again, not even for an event already read. */
void vhp_loop_unwatch(struct vhp_loop *loop, int fd);

/** Run until vhp_loop_stop(). Returns 0, or a negative errno value if epoll fails. */
int vhp_loop_run(struct vhp_loop *loop);

/** Make vhp_loop_run() return after the current callback. Main thread only. */
void vhp_loop_stop(struct vhp_loop *loop);

/* ---- pollers ----------------------------------------------------------- */

/** What all pollers have in common. */
struct vhp_poller_conf {
	uint32_t poll_max_us;        /**< longest window of VHP_POLL_AUTO, 0..VHP_POLL_MAX_US */
	uint32_t poll_waste_percent; /**< of a core and second for such windows in vain, 0..100 */
};

/**
 * Start one poller on every worker lcore of the EAL. With no qpair attached a
 * poller sleeps.
 * @param conf  copied
 * @return number of pollers (1 or more), -ENODEV if the EAL has no worker lcore
 */
int vhp_pollers_start(const struct vhp_poller_conf *conf);

/** Stop and join all pollers; every device must have been destroyed before. */
void vhp_pollers_stop(void);

/**
 * Has every poller made a pass since the last call, or does it sleep? The first call is
 * answered for the time since the start.
 */
bool vhp_pollers_progress(void);

/* ---- vhost-user network devices ----------------------------------------- */

/** One net_vhost device. Strings are copied. */
struct vhp_net_conf {
	char name[VHP_NAME_BYTES];  /**< "net_vhost0" */
	char iface[VHP_PATH_BYTES]; /**< path of the vhost-user socket */
	bool client;                /**< connect to the front end's socket, again and again */
	uint16_t queues;            /**< queue pairs, 1..VHP_MAX_QUEUES */
	uint32_t poll_us;           /**< poll window, 0..VHP_POLL_MAX_US or VHP_POLL_* */
	int poller;                 /**< index of the poller, -1 for any */
	bool packed;                /**< offer packed rings */
	uint16_t mtu_bytes;         /**< MTU of the port, 0: leave it */
	bool tso;                   /**< offer segmentation offloads to the guest */
	enum vhp_rx_poll rx_poll;   /**< VHP_RX_DEFERRED needs a finite window */
	/** Bits a second, without virtio-net headers, of transmitq and receiveq; 0: no limit. */
	uint64_t rate_bps[2];
	uint64_t rate_pps[2]; /**< frames a second, the same */
	uid_t socket_owner;   /**< (uid_t)-1: leave it */
	gid_t socket_group;   /**< (gid_t)-1: leave it */
	mode_t socket_mode;   /**< permission bits, 0: leave what umask gives */
};

/**
 * Make the device, its vhost-user socket and its qpairs and serve it from the
 * loop and the pollers.
 * @param port  the other side; the device uses it until destroyed, the caller keeps it
 * @param out   (output) the device
 * @return 0; -EADDRINUSE if another process serves the socket; -EEXIST if the path is
 *         a file of another kind; else what the socket calls gave
 */
int vhp_net_dev_create(struct vhp_loop *loop, const struct vhp_net_conf *conf,
	struct vhp_port *port, struct vhp_net_dev **out);

/**
 * Print the virtio features that a device offers, and for each other why not.
 * @param port_features  feature bits that its port can honour
 */
void vhp_net_features_print(FILE *out, const struct vhp_net_conf *conf, uint64_t port_features);

/**
 * Change under traffic what can be: poll window, MTU and rates. What conf says of everything else
 * is not looked at.
 * @return 0, or the first error; the rest is changed all the same, the reason logged
 */
int vhp_net_dev_change(struct vhp_net_dev *dev, const struct vhp_net_conf *conf);

/** Disconnect the front end, take the qpairs from their pollers, remove the socket. Takes NULL. */
void vhp_net_dev_destroy(struct vhp_net_dev *dev);

/**
 * Can a vhost-user socket be made at this path? Creates nothing; usable before rte_eal_init().
 * @return 0 (free, or left behind by a dead process), -EADDRINUSE (a living process
 *         listens there), -EEXIST (not a socket), -ENOENT, -EACCES, -ENOTDIR ...
 */
int vhp_socket_path_check(const char *path);

/* ---- at run time ---------------------------------------------------------- */

/**
 * Take requests by telemetry (/vhp/poll_us, /vhp/move), and move qpairs between pollers
 * by their load. After vhp_pollers_start().
 * @param rebalance_s  seconds between two looks at the load, 0: never
 */
int vhp_control_start(struct vhp_loop *loop, unsigned int rebalance_s);

/** Before the loop is destroyed. */
void vhp_control_stop(void);

/* ---- capture -------------------------------------------------------------- */

/**
 * Capture all frames of all devices that are created from now on, into one pcapng file.
 * @param path  is made anew
 */
int vhp_capture_all(struct vhp_loop *loop, const char *path);

/** After the last device, before the loop: the file is complete. */
void vhp_capture_end(void);

/* ---- counters ------------------------------------------------------------ */

/**
 * Print one block of counters per qpair: totals since start, and rates where
 * interval_s > 0 (seconds since the previous call).
 */
void vhp_stats_print(FILE *out, double interval_s);

/** Print the closing summary: totals, drops by reason. */
void vhp_stats_summary(FILE *out);

/** Register /vhp/... with rte_telemetry. */
int vhp_stats_telemetry(void);

#endif /* VHOST_POLL_H */
