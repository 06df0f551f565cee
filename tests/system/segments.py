# SPDX-License-Identifier: BSD-3-Clause
"""Large TCP frames for the host to send, and what they must be after segmentation."""

import random
import socket
import struct

SOL_PACKET, PACKET_VNET_HDR = 263, 15
NEEDS_CSUM, GSO_TCPV4, GSO_TCPV6 = 1, 1, 4
FIN, PSH, ACK = 0x01, 0x08, 0x10
ETHER = bytes.fromhex("02005e000001" "02005e000002")
ADDRESSES = {4: socket.inet_aton("192.0.2.1") + socket.inet_aton("192.0.2.2"),
             6: socket.inet_pton(socket.AF_INET6, "2001:db8::1") +
                socket.inet_pton(socket.AF_INET6, "2001:db8::2")}


def ones_sum(data):
    """One's complement sum of 16-bit words (RFC 1071), not inverted."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def pseudo_header(version, l4_bytes, addresses=None):
    return (addresses or ADDRESSES[version]) + struct.pack("!II", l4_bytes, socket.IPPROTO_TCP)


def large_frame(version, payload, seq, mss, tag=b""):
    """(virtio-net header, frame) of a TCP frame that asks to be cut."""
    l4_bytes = 20 + len(payload)
    if version == 4:
        ip_type = 0x0800
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + l4_bytes, 7, 0x4000, 64,
                           socket.IPPROTO_TCP, 0) + ADDRESSES[4]
        head = head[:10] + struct.pack("!H", 0xFFFF ^ ones_sum(head)) + head[12:]
    else:
        ip_type = 0x86DD
        head = struct.pack("!IHBB", 6 << 28, l4_bytes, socket.IPPROTO_TCP, 64) + ADDRESSES[6]
    tcp = struct.pack("!HHIIBBHHH", 1000, 2000, seq, 1, 5 << 4, FIN | PSH | ACK, 512,
                      ones_sum(pseudo_header(version, l4_bytes)), 0)
    l3_at = len(ETHER) + len(tag) + 2
    frame = ETHER + tag + struct.pack("!H", ip_type) + head + tcp + payload
    vnet = struct.pack("<BBHHHH", NEEDS_CSUM, GSO_TCPV4 if version == 4 else GSO_TCPV6,
                       l3_at + len(head) + len(tcp), mss, l3_at + len(head), 16)
    return vnet, frame


def send_large(netns, iface, packets):
    """Sends (virtio-net header, frame) out of an interface."""
    with netns.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sock:
        sock.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        sock.bind((iface, 3))
        for vnet, frame in packets:
            assert sock.send(vnet + frame) == len(vnet) + len(frame)


def check_segment(version, frame, tag=b""):
    """Checks lengths and checksums; returns (sequence number, IPv4 number, flags, payload)."""
    l3_at = len(ETHER) + len(tag) + 2
    assert frame[len(ETHER):l3_at - 2] == tag
    if version == 4:
        addresses = frame[l3_at + 12:l3_at + 20]
        length, number = struct.unpack_from("!HH", frame, l3_at + 2)
        assert length == len(frame) - l3_at
        assert ones_sum(frame[l3_at:l3_at + 20]) == 0xFFFF, "IPv4 header checksum"
        l4_at = l3_at + 20
    else:
        addresses = frame[l3_at + 8:l3_at + 40]
        length, number = struct.unpack_from("!H", frame, l3_at + 4)[0], None
        l4_at = l3_at + 40
        assert length == len(frame) - l4_at
    l4 = frame[l4_at:]
    assert ones_sum(pseudo_header(version, len(l4), addresses) + l4) == 0xFFFF, "TCP checksum"
    return struct.unpack_from("!I", l4, 4)[0], number, l4[13], l4[20:]


def assert_segments(got, version, payload, seq, mss, tag=b""):
    """The frames are one large frame, cut: nothing missing, doubled or changed."""
    count = -(-len(payload) // mss)
    assert len(got) == count
    for i, frame in enumerate(got):
        assert frame[:len(ETHER)] == ETHER
        at, number, flags, part = check_segment(version, frame, tag)
        assert at == (seq + i * mss) % 2**32
        assert part == payload[i * mss:(i + 1) * mss]
        assert flags == (FIN | PSH | ACK if i == count - 1 else ACK)
        assert number in (None, 7 + i)


def payloads(seed, count, longest):
    rng = random.Random(seed)
    return [rng.randbytes(rng.randint(3000, longest)) for _ in range(count)]
