/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the benchmark programs share: pinning, taps, a sender of frames into an interface,
 * counters. They print one JSON object on standard output and nothing else there.
 */
#ifndef BENCH_UTIL_H
#define BENCH_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** Header that taps and rings of the benchmark use, bytes. */
#define BN_HDR_BYTES  12
/** Shortest frame: Ethernet, IPv4, UDP, and something to cut. */
#define BN_FRAME_MIN  60
#define BN_FRAME_MAX  1514
/** Frames that the sender puts into one system call at most. */
#define BN_SEND_BURST 44

/** Put the calling thread on a CPU; ends the program if that fails. */
void bn_pin(int cpu);

/** Nanoseconds of CPU time that this process has used. */
uint64_t bn_cpu_ns(void);

/** Message with strerror(errno), and end. */
void bn_die(const char *what) __attribute__((noreturn));

/**
 * Make the tap @p name or attach to it, up, with BN_HDR_BYTES of virtio-net header.
 * @param offloads TUN_F_* that a reader of it accepts
 * @return descriptor, not blocking; ends the program on failure
 */
int bn_tap_open(const char *name, unsigned int offloads);

/** Packets that interface @p name has received; ends the program if there is none. */
uint64_t bn_rx_packets(const char *name);

/** True from SIGTERM or SIGINT on, once bn_catch_signals() was called. */
extern volatile bool bn_stop;
void bn_catch_signals(void);

/** Fill in a frame of @p bytes of the local experimental ethertype that nobody takes. */
void bn_frame_fill(uint8_t *frame, uint32_t bytes);

/**
 * A packet socket that sends UDP frames of one length into an interface. Each call hands the
 * kernel one large datagram that its segmentation cuts into BN_SEND_BURST frames, so that
 * the sender is not what limits a test.
 */
struct bn_sender {
	int fd;
	uint32_t super_bytes;
	uint64_t n_frames; /**< handed to the kernel; full queues may have dropped them */
	uint8_t *super;    /**< header and the large datagram */
};

/** Open on @p iface for frames of @p bytes, BN_FRAME_MIN..BN_FRAME_MAX. Ends on failure. */
void bn_sender_open(struct bn_sender *s, const char *iface, uint32_t bytes);

/** Round trips of a run; bn_rtt_print() sorts them. */
struct bn_rtt {
	uint32_t *ns;
	uint32_t n;
};

/** Make room; ends the program if there is none. */
void bn_rtt_init(struct bn_rtt *r);

/** Add one; those beyond the room are left out. @return false if there is no room */
bool bn_rtt_add(struct bn_rtt *r, uint64_t ns);

/** Print rate and percentiles of a run of @p run_ns as one JSON object. */
void bn_rtt_print(struct bn_rtt *r, uint64_t run_ns);

/** Small segments at once. Ends on failure. */
void bn_no_delay(int fd);

/** Send one burst. */
void bn_sender_burst(struct bn_sender *s);

/** Go into a network namespace of /run/netns. Returns the one left, for bn_leave_netns(). */
int bn_enter_netns(const char *name);

/** Go back to what bn_enter_netns() returned. */
void bn_leave_netns(int before_fd);

#endif /* BENCH_UTIL_H */
