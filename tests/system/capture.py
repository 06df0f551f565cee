# SPDX-License-Identifier: BSD-3-Clause
"""Frames: made, sent into an interface, captured on it, kept in pcap files."""

import os
import random
import socket
import struct
import threading
import time

ETH_P_ALL = 3
ETH_P_TEST = 0x88B5  # for local experiments (IEEE 802): no protocol of the kernel
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_STATISTICS = 263, 6
SO_RCVBUFFORCE, SO_SNDBUFFORCE = 33, 32
BUFFER_BYTES = 64 << 20
SNAP_BYTES = 1 << 17
# A sender that moves to another CPU may overtake its own frames on a veth: each CPU has a
# queue of them. So a sender whose order is looked at stays on one.
SENDER_CPU = min(os.sched_getaffinity(0))
ON_ONE_CPU = ("taskset", "-c", SENDER_CPU)


def frames(seed, count, shortest=60, longest=1514):
    """Frames of random length and contents, the same ones for the same seed."""
    rng = random.Random(seed)
    head = bytes.fromhex("02005e000001" "02005e000002") + struct.pack("!H", ETH_P_TEST)
    return [head + rng.randbytes(rng.randint(shortest, longest) - len(head))
            for _ in range(count)]


def write_pcap(path, packets):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1))
        for packet in packets:
            file.write(struct.pack("<IIII", 0, 0, len(packet), len(packet)))
            file.write(packet)


def read_pcap(path):
    data = path.read_bytes()
    packets = []
    at = 24
    while at < len(data):
        length, whole = struct.unpack_from("<II", data, at + 8)
        assert length == whole, "cut short by the capture"
        packets.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return packets


def open_packet_socket(netns, iface):
    """A packet socket on an interface, with room for whatever a test sends."""
    sock = netns.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    for option in (SO_RCVBUFFORCE, SO_SNDBUFFORCE):
        sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    return sock, (iface, ETH_P_ALL)


class Capture:
    """What an interface brings in from the guest's side, from entry on.

    Use as a context manager; frames() waits for so many, and for no more.
    """

    def __init__(self, netns, iface):
        self._sock, address = open_packet_socket(netns, iface)
        self._sock.bind(address)
        self._sock.settimeout(0.1)
        self._ending = False
        self._frames = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_exc):
        self._ending = True
        self._thread.join()
        self._sock.close()

    def _run(self):
        while not self._ending:
            try:
                frame, address = self._sock.recvfrom(SNAP_BYTES)
            except socket.timeout:
                continue
            if address[2] != PACKET_OUTGOING:
                self._frames.append(frame)

    def frames(self, count, limit_s=30, quiet_s=0.5):
        """The captured frames, once count are there and no more come."""
        deadline = time.monotonic() + limit_s
        while len(self._frames) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(quiet_s)
        _, lost = struct.unpack("II", self._sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        assert lost == 0, "the capture itself lost %d frames" % lost
        return list(self._frames)


def send_frames(netns, iface, packets):
    """Sends frames out of an interface, towards the guest."""
    sock, address = open_packet_socket(netns, iface)
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {SENDER_CPU})
    try:
        with sock:
            sock.bind(address)
            for packet in packets:
                assert sock.send(packet) == len(packet)
    finally:
        os.sched_setaffinity(0, cpus)


def assert_same_frames(got, wanted):
    """Equal, in order; says where the first difference is."""
    for number, (one, other) in enumerate(zip(got, wanted)):
        assert one == other, "frame %d of %d bytes came as %d bytes, or changed" % (
            number, len(other), len(one))
    assert len(got) == len(wanted)
