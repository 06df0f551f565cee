# SPDX-License-Identifier: BSD-3-Clause
"""Cross-checks with dpdk-testpmd: as the guest, and as the back end in our place.

As the guest it joins its virtio_user port, which speaks vhost-user to the
back end, to a pair of pcap files: what it sends and what it got is known to
the byte, and no driver of ours is at that end.
"""

import shutil

import pytest

from capture import Capture, assert_same_frames, frames, read_pcap, send_frames, write_pcap
from daemon import BUILD, Daemon, assert_clean, wait_until
from testpmd import Testpmd

FRAMES = 5000
SETTLE_S = 30

pytestmark = pytest.mark.skipif(shutil.which("dpdk-testpmd") is None,
                                reason="needs dpdk-testpmd")


def devices(short_dir):
    """The two values of --vdev that testpmd and the daemon both take."""
    return "net_vhost0,iface=%s/vhost0.sock" % short_dir, "net_tap0,iface=tap0"


def bring_up(netns):
    # Long enough for all frames of a test to wait, so that none is lost there.
    netns.ip("link", "set", "tap0", "up", "txqueuelen", 2 * FRAMES)


def guest_devices(short_dir, to_send=()):
    write_pcap(short_dir / "in.pcap", to_send)
    return ("net_virtio_user0,path=%s/vhost0.sock,queue_size=256" % short_dir,
            "net_pcap0,rx_pcap=%s/in.pcap,tx_pcap=%s/out.pcap" % (short_dir, short_dir))


def test_testpmd_sends(netns, short_dir):
    """Guest to host: counts equal at both ends and on the tap, every byte there."""
    sent = frames(1, FRAMES)
    with Daemon(netns, short_dir, *devices(short_dir)) as daemon:
        bring_up(netns)
        with Capture(netns, "tap0") as capture, \
                Testpmd(netns, *guest_devices(short_dir, sent)) as guest:
            guest.command("start")
            got = capture.frames(FRAMES)
            stats = guest.port_stats(0)
            guest.quit()
        assert_same_frames(got, sent)
        assert stats["TX-packets"] == FRAMES
        assert netns.link_counter("tap0", "rx_packets") == FRAMES
        assert netns.link_counter("tap0", "rx_bytes") == sum(map(len, sent))
        counters = daemon.stop()
    assert_clean(counters)
    assert counters["net_vhost0:0 transmitq"]["pkts"] == FRAMES
    assert counters["net_vhost0:0 receiveq"]["pkts"] == 0


def test_testpmd_receives(netns, short_dir):
    """Host to guest: the same the other way."""
    sent = frames(2, FRAMES)
    with Daemon(netns, short_dir, *devices(short_dir)) as daemon:
        bring_up(netns)
        with Testpmd(netns, *guest_devices(short_dir)) as guest:
            guest.command("start")
            daemon.wait_forwarding()
            send_frames(netns, "tap0", sent)
            wait_until(lambda: guest.port_stats(0)["RX-packets"] >= FRAMES, SETTLE_S,
                       "frames are missing")
            stats = guest.port_stats(0)
            guest.quit()  # writes the rest of the file
        assert netns.link_counter("tap0", "tx_dropped") == 0
        assert_same_frames(read_pcap(short_dir / "out.pcap"), sent)
        assert stats["RX-packets"] == FRAMES
        assert stats["RX-bytes"] == sum(map(len, sent))
        counters = daemon.stop()
    assert_clean(counters)
    assert counters["net_vhost0:0 receiveq"]["pkts"] == FRAMES
    assert counters["net_vhost0:0 transmitq"]["pkts"] == 0


def test_testpmd_both_ways_at_once(netns, short_dir):
    """Each direction has its counts and bytes while the other is busy."""
    to_host, to_guest = frames(3, FRAMES), frames(4, FRAMES)
    with Daemon(netns, short_dir, *devices(short_dir)) as daemon:
        bring_up(netns)
        with Capture(netns, "tap0") as capture, \
                Testpmd(netns, *guest_devices(short_dir, to_host)) as guest:
            daemon.wait_forwarding()
            send_frames(netns, "tap0", to_guest[:FRAMES // 2])
            guest.command("start")
            send_frames(netns, "tap0", to_guest[FRAMES // 2:])
            got = capture.frames(FRAMES)
            wait_until(lambda: guest.port_stats(0)["RX-packets"] >= FRAMES, SETTLE_S,
                       "frames are missing")
            guest.quit()
        assert_same_frames(got, to_host)
        assert_same_frames(read_pcap(short_dir / "out.pcap"), to_guest)
        counters = daemon.stop()
    assert_clean(counters)
    for ring in ("transmitq", "receiveq"):
        assert counters["net_vhost0:0 " + ring]["pkts"] == FRAMES


class InOurPlace(Testpmd):
    """testpmd with the daemon's devices, forwarding."""

    __test__ = False

    def __enter__(self):
        super().__enter__()
        self.command("start")
        return self


def captured_from(back_end, netns, short_dir, send):
    """The frames on the tap of a back end while send() runs a front end."""
    if back_end == "daemon":
        process = Daemon(netns, short_dir, *devices(short_dir))
    else:
        process = InOurPlace(netns, *devices(short_dir))
    with process:
        bring_up(netns)
        with Capture(netns, "tap0") as capture:
            got = send(capture)
    # The next back end wants the same names.
    wait_until(lambda: netns.links() == [], 5, "the tap stays")
    (short_dir / "vhost0.sock").unlink(missing_ok=True)
    return got


def test_same_frames_as_testpmd(netns, short_dir):
    """One front end, one set of --vdev values, two back ends: the same on the tap."""
    sent = frames(5, FRAMES)

    def send(capture):
        with Testpmd(netns, *guest_devices(short_dir, sent)) as guest:
            guest.command("start")
            got = capture.frames(FRAMES)
            guest.quit()
        return got

    ours = captured_from("daemon", netns, short_dir, send)
    theirs = captured_from("testpmd", netns, short_dir, send)
    assert_same_frames(ours, theirs)
    assert_same_frames(ours, sent)


def test_same_frames_as_testpmd_any_layout(netns, short_dir):
    """The same with chains of any layout, direct and indirect, from our front end.

    That front end compares each frame on the tap by itself, too, and marks the
    frames of each of its runs: four bytes after Ethernet header and magic.
    """
    count = 2000
    marker = slice(18, 22)

    def send(capture):
        netns.run(BUILD / "tests" / "frontend" / "fe-roundtrip",
                  "--socket", short_dir / "vhost0.sock", "--iface", "tap0",
                  "--direction", "tx", "--frames", count, "--seed", 6,
                  "--max-len", 1514, "--kinds", "raw", timeout=60)
        return [frame[:marker.start] + frame[marker.stop:] for frame in capture.frames(count)]

    ours = captured_from("daemon", netns, short_dir, send)
    theirs = captured_from("testpmd", netns, short_dir, send)
    assert len(ours) == count
    assert_same_frames(ours, theirs)
