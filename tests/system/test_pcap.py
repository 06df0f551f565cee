# SPDX-License-Identifier: BSD-3-Clause
"""Capture: every frame of both directions is in the file, with its virtio-net header."""

import re
import struct

import pytest

from daemon import wait_until
from frontend import Bench

pytestmark = pytest.mark.frontend

FRAMES = 200
FROM_GUEST, TO_GUEST = 1, 2


def options(data):
    """{code: value} of a block's options."""
    found = {}
    while len(data) >= 4:
        code, length = struct.unpack_from("<HH", data)
        if code == 0:
            break
        found[code] = data[4:4 + length]
        data = data[4 + (length + 3) // 4 * 4:]
    return found


def read_pcapng(path):
    """(names of the interfaces, [(interface, direction, comment, frame)])"""
    data, names, frames, at = path.read_bytes(), [], [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        body, (again,) = data[at + 8:at + length - 4], struct.unpack_from("<I", data,
                                                                          at + length - 4)
        assert length == again and length % 4 == 0
        at += length
        if kind == 1:
            names.append(options(body[8:])[2].decode())
        elif kind == 6:
            interface, _, _, caplen, origlen = struct.unpack_from("<IIIII", body)
            assert caplen == origlen
            found = options(body[20 + (caplen + 3) // 4 * 4:])
            frames.append((interface, struct.unpack("<I", found[2])[0], found[1].decode(),
                           body[20:20 + caplen]))
        else:
            assert kind == 0x0a0d0d0a
    return names, frames


def roundtrip(bench, *args):
    """Returns the bytes that were sent from the guest and to it."""
    before = bench.counters()
    bench.run("fe-roundtrip", "--frames", FRAMES, "--max-len", 9000, *args)
    after = bench.counters()
    return [after[name] - before[name] for name in ("transmitq_bytes", "receiveq_bytes")]


def check(frames, sent):
    for direction, length in zip((FROM_GUEST, TO_GUEST), sent):
        of_it = [frame for _, way, _, frame in frames if way == direction]
        assert (len(of_it), sum(map(len, of_it))) == (FRAMES, length)
    for _, way, comment, _ in frames:
        assert re.fullmatch(r"virtio-net: flags \d+ gso_type \d+ hdr_len \d+ gso_size \d+ "
                            r"csum_start \d+ csum_offset \d+ num_buffers \d+", comment)
        assert way == FROM_GUEST or int(comment.split()[-1]) >= 1


def test_all(netns, short_dir):
    """--pcap, two devices; tcpdump reads the file, too."""
    path = short_dir / "all.pcapng"
    with Bench(netns, short_dir, n=2, options=["--pcap", path]) as bench:
        sent = roundtrip(bench, "--offloads", "on")
        bench.end()
    names, frames = read_pcapng(path)
    assert names == ["net_vhost0:0", "net_vhost1:0"]
    check(frames, sent)
    assert {interface for interface, _, _, _ in frames} == {0}
    assert path.stat().st_mode & 0o777 == 0o600
    # Not from the file's name: tcpdump gives up its rights before it would open it.
    seen = netns.run("sh", "-c", "tcpdump -n -t -r - <%s 2>/dev/null | wc -l" % path)
    assert int(seen.stdout) >= 2 * FRAMES


def test_at_run_time(netns, short_dir):
    """One qpair, from a moment on and up to another."""
    path = short_dir / "one.pcapng"
    with Bench(netns, short_dir) as bench:
        roundtrip(bench)
        assert bench.ask("/vhp/capture,net_vhost0:0=%s" % path) == "net_vhost0:0=%s" % path
        assert bench.ask("/vhp/capture,net_vhost0:0=%s" % path) is None  # it is busy
        sent = roundtrip(bench, "--packed")
        wait_until(lambda: path.stat().st_size > sum(sent), 10, "frames do not reach the file")
        assert bench.ask("/vhp/capture,net_vhost0:0=off") == "net_vhost0:0=off"
        size = path.stat().st_size
        roundtrip(bench)
        assert bench.ask("/vhp/capture,net_vhost0:0=off") is None
        assert bench.ask("/vhp/capture,net_vhost0:0=%s/none/x" % short_dir) is None
        bench.end()
    assert path.stat().st_size == size
    names, frames = read_pcapng(path)
    assert names == ["net_vhost0:0"]
    check(frames, sent)
