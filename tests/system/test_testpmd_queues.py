# SPDX-License-Identifier: BSD-3-Clause
"""One guest with four queue pairs, one set of --vdev values, two back ends, both ways."""

import shutil

import pytest

from capture import Capture, read_pcap, send_frames, write_pcap
from daemon import Daemon, assert_clean, wait_until
from test_testpmd_ports import flows
from testpmd import Testpmd

QUEUES = 4
FRAMES = 1000
SETTLE_S = 30

pytestmark = pytest.mark.skipif(shutil.which("dpdk-testpmd") is None,
                                reason="needs dpdk-testpmd")

# testpmd gives its tap as many queues as it is told to use, so there is no key for that.
PORTS = {"tap": ("net_tap0,iface=far", ",queues=%d" % QUEUES),
         "af_packet": ("net_af_packet0,iface=near,qpairs=%d" % QUEUES, "")}


def guest_lines(short_dir, to_send):
    """virtio's own device and the files that it is joined to, one per queue and direction."""
    files = "net_pcap0"
    for queue in range(QUEUES):
        name = "%s/q%d" % (short_dir, queue)
        write_pcap(name + "-in", to_send[queue::QUEUES])
        files += ",rx_pcap=%s-in,tx_pcap=%s-out" % (name, name)
    return ("net_virtio_user0,path=%s/v,queues=%d,queue_size=256,cq=1" % (short_dir, QUEUES),
            files)


def received(short_dir):
    """The frames that the guest got, by queue."""
    return [read_pcap(short_dir / ("q%d-out" % queue)) for queue in range(QUEUES)]


def in_order(frames, wanted):
    """Is it a part of the wanted ones in their order?"""
    rest = iter(wanted)
    return all(frame in rest for frame in frames)


def exchange(netns, short_dir, to_host, to_guest):
    """Runs the guest; returns what came out of the back end on the host, and in the guest."""
    with Capture(netns, "far") as capture, \
            Testpmd(netns, *guest_lines(short_dir, to_host), queues=QUEUES) as guest:
        guest.command("start")
        got = capture.frames(FRAMES)
        send_frames(netns, "far", to_guest)
        wait_until(lambda: guest.port_stats(0)["RX-packets"] >= FRAMES, SETTLE_S,
                   "frames are missing")
        stats = guest.port_stats(0)
        guest.quit()
    assert (stats["TX-packets"], stats["RX-packets"]) == (FRAMES, FRAMES)
    return got, received(short_dir)


def through(back_end, port, netns, short_dir, frames):
    """exchange() with one of the back ends; the interfaces are made anew for each."""
    vhost = "net_vhost0,iface=%s/v,queues=%d" % (short_dir, QUEUES)
    line, ours_only = PORTS[port]
    if port == "af_packet":
        netns.ip("link", "add", "near", "type", "veth", "peer", "name", "far")
        netns.ip("link", "set", "near", "up")
    if back_end == "daemon":
        process = Daemon(netns, short_dir, vhost, line + ours_only)
    else:
        process = Testpmd(netns, vhost, line, queues=QUEUES)
    with process:
        netns.ip("link", "set", "far", "up", "txqueuelen", 2 * FRAMES)
        if back_end == "testpmd":
            process.command("start")
        got = exchange(netns, short_dir, *frames)
        if back_end == "daemon":
            counters = process.stop()
            assert_clean(counters)
            for ring in ("transmitq", "receiveq"):
                pkts = [counters["net_vhost0:%d %s" % (queue, ring)]["pkts"]
                        for queue in range(QUEUES)]
                assert sum(pkts) == FRAMES, ring
    if port == "af_packet":
        netns.ip("link", "del", "near")
    wait_until(lambda: netns.links() == [], 5, "the interface stays")
    (short_dir / "v").unlink(missing_ok=True)
    return got


@pytest.mark.parametrize("port", PORTS)
def test_same_frames_as_testpmd(netns, short_dir, port):
    """Every byte, each queue's frames in order; which queue a flow comes to is the kernel's."""
    frames = to_host, to_guest = flows(1, FRAMES), flows(2, FRAMES)
    for back_end in ("daemon", "testpmd"):
        on_host, by_queue = through(back_end, port, netns, short_dir, frames)
        assert sorted(on_host) == sorted(to_host), back_end
        for queue in range(QUEUES):
            mine = to_host[queue::QUEUES]
            assert in_order(mine, on_host), (back_end, queue)
            assert in_order(by_queue[queue], to_guest), (back_end, queue)
        assert sorted(sum(by_queue, [])) == sorted(to_guest), back_end
        assert len([queue for queue in by_queue if queue]) > 1, back_end
