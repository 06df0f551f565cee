# SPDX-License-Identifier: BSD-3-Clause
"""Host ports other than the tap: packet sockets and devices of DPDK's.

The test front end is the guest and, by a raw socket on the far end of a veth
pair, the host: it compares every byte. Where it cannot be the peer, testpmd is.
"""

import os
import re
import shutil
import struct

import pytest

from capture import ON_ONE_CPU, assert_same_frames, frames, read_pcap, send_frames, write_pcap
from daemon import BINARY, BUILD, Daemon, assert_clean, wait_until
from segments import assert_segments, check_segment, large_frame, payloads, send_large
from testpmd import Testpmd

LONG_MTU = 65535
FRAMES = 2000
SETTLE_S = 30

needs_testpmd = pytest.mark.skipif(shutil.which("dpdk-testpmd") is None,
                                   reason="needs dpdk-testpmd")


def veth(netns, mtu=LONG_MTU):
    """va is for the daemon, vb for the test."""
    netns.ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
    for end in ("va", "vb"):
        netns.ip("link", "set", end, "mtu", mtu, "up")


def vhost(short_dir, number=0, **keys):
    """The value of --vdev for a net_vhost."""
    line = "net_vhost%d,iface=%s/vhost%d.sock" % (number, short_dir, number)
    return line + "".join(",%s=%s" % item for item in keys.items())


def roundtrip(netns, short_dir, *args, iface="vb", count=FRAMES):
    """Runs the test front end; fails unless every frame arrived as it was, and no other."""
    done = netns.run(*ON_ONE_CPU, BUILD / "tests" / "frontend" / "fe-roundtrip",
                     "--socket", short_dir / "vhost0.sock", "--iface", iface,
                     "--frames", count, "--stall-ms", 20000, *args, timeout=120)
    assert "PASS" in done.stdout, done.stdout
    assert " strays 0," in done.stdout, "frames that nobody sent: " + done.stdout


def assert_counted(counters, transmitted, received, qpair="net_vhost0:0"):
    assert_clean(counters)
    assert counters[qpair + " transmitq"]["pkts"] == transmitted
    assert counters[qpair + " receiveq"]["pkts"] == received


def guest_devices(short_dir, to_send=(), number=0, **keys):
    """testpmd as a guest that sends the frames of one file and keeps what it gets."""
    name = "guest%d" % number
    write_pcap(short_dir / (name + "-in.pcap"), to_send)
    return ("net_virtio_user0,path=%s/vhost%d.sock,queue_size=256" % (short_dir, number) +
            "".join(",%s=%s" % item for item in keys.items()),
            "net_pcap0,rx_pcap={0}-in.pcap,tx_pcap={0}-out.pcap".format(short_dir / name))


# ---- net_af_packet ---------------------------------------------------------------


@pytest.mark.frontend
@pytest.mark.parametrize("args", [
    [], ["--packed"], ["--legacy"], ["--mrg", "off"], ["--event-idx", "off"],
    ["--event-idx", "random", "--max-segs", "32"],
    ["--offloads", "on"], ["--offloads", "on", "--packed", "--in-order"],
    ["--vlans", "1"], ["--vlans", "2", "--offloads", "on"],
    ["--vlans", "1", "--offloads", "on", "--mrg", "off", "--packed"],
    ["--restart", "500", "--offloads", "on"],
], ids=" ".join)
def test_af_packet_roundtrip(netns, short_dir, args):
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir), "net_af_packet0,iface=va") as daemon:
        roundtrip(netns, short_dir, *args)
        counters = daemon.stop()
    assert_counted(counters, FRAMES, FRAMES)


@pytest.mark.frontend
def test_af_packet_nothing_comes_back(netns, short_dir):
    """What the guest sends is not given to the guest."""
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir), "net_af_packet0,iface=va") as daemon:
        roundtrip(netns, short_dir, "--direction", "tx")
        counters = daemon.stop()
    assert_counted(counters, FRAMES, 0)


@pytest.mark.frontend
def test_af_packet_keys(netns, short_dir):
    """The PMD's keys, and queues that the guest does not use get no frames."""
    veth(netns)
    port = "net_af_packet0,iface=va,qpairs=4,blocksz=4096,framesz=2048,framecnt=16384," \
           "qdisc_bypass=1"
    with Daemon(netns, short_dir, vhost(short_dir, queues=4), port) as daemon:
        roundtrip(netns, short_dir, "--offloads", "on")
        counters = daemon.stop()
    assert_counted(counters, FRAMES, FRAMES)
    for qpair in range(1, 4):
        assert_counted(counters, 0, 0, "net_vhost0:%d" % qpair)


@pytest.mark.frontend
def test_af_packet_second_queue_sends(netns, short_dir):
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir, queues=2),
                "net_af_packet0,iface=va") as daemon:
        roundtrip(netns, short_dir, "--qpairs", 2, "--qpair", 1, "--direction", "tx")
        counters = daemon.stop()
    assert_counted(counters, FRAMES, 0, "net_vhost0:1")


@pytest.mark.frontend
def test_af_packet_interface_goes_and_comes(netns, short_dir):
    """Down and up again; deleted and made anew: the daemon goes on, idle meanwhile."""
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir), "net_af_packet0,iface=va") as daemon:
        roundtrip(netns, short_dir, count=500)
        netns.ip("link", "set", "va", "down")
        netns.ip("link", "set", "va", "up")
        roundtrip(netns, short_dir, "--stall-ms", 10000, count=500)
        netns.ip("link", "del", "va")
        veth(netns)
        # The timer that looks for it runs once a second, and only once a queue noticed.
        roundtrip(netns, short_dir, "--stall-ms", 10000, "--direction", "tx", count=500)
        roundtrip(netns, short_dir, count=500)
        assert daemon.alive()
        counters = daemon.stop()
    assert_clean(counters)


@pytest.mark.frontend
@pytest.mark.parametrize("layout", [[], ["--packed"]], ids=["split", "packed"])
@pytest.mark.parametrize("port,iface", [("net_tap0,iface=tap0,queues=4", "tap0"),
                                        ("net_af_packet0,iface=va,qpairs=4", "vb")],
                         ids=["tap", "af_packet"])
def test_f2_host_reaches_enabled_pairs_only(netns, short_dir, port, iface, layout):
    """F2: four pairs, one, three, two, four, one: nothing lost on the way."""
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir, queues=4), port) as daemon:
        netns.ip("link", "set", iface, "up")
        done = netns.run(BUILD / "tests" / "frontend" / "fe-steer", "--socket",
                         short_dir / "vhost0.sock", "--iface", iface, *layout, timeout=90,
                         check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        counters = daemon.stop()
    assert_clean(counters)
    assert sum(counters["net_vhost0:%d receiveq" % i]["pkts"] for i in range(4)) == 6 * 512


@needs_testpmd
def test_af_packet_interface_comes_back_for_a_receiver(netns, short_dir):
    """Deleted and made anew while the guest sends nothing: frames arrive again."""
    veth(netns)
    first, then = frames(8, 100), frames(9, 100)
    with Daemon(netns, short_dir, vhost(short_dir), "net_af_packet0,iface=va") as daemon, \
            Testpmd(netns, *guest_devices(short_dir)) as guest:
        guest.command("start")
        daemon.wait_forwarding()
        send_frames(netns, "vb", first)
        wait_until(lambda: guest.port_stats(0)["RX-packets"] >= len(first), SETTLE_S,
                   "frames are missing")
        netns.ip("link", "del", "va")
        wait_until(lambda: daemon.state() == "link down", SETTLE_S, "nobody noticed")
        veth(netns)
        wait_until(lambda: "interface va is back" in daemon.err.read_text(), SETTLE_S,
                   "the interface is not found again")
        send_frames(netns, "vb", then)
        wait_until(lambda: guest.port_stats(0)["RX-packets"] >= len(first + then), SETTLE_S,
                   "frames are missing")
        guest.quit()
        counters = daemon.stop()
    assert_same_frames(read_pcap(short_dir / "guest0-out.pcap"), first + then)
    assert_counted(counters, 0, len(first + then))


@pytest.mark.frontend
@pytest.mark.parametrize("case", ["W1-rx,W1-mix", "W5,W7"])
def test_af_packet_wakes(netns, short_dir, case):
    """W9: nothing that comes while the daemon polls, or goes to sleep, is forgotten."""
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir, **{"poll-us": 1000}),
                "net_af_packet0,iface=va") as daemon:
        done = netns.run(*ON_ONE_CPU, BUILD / "tests" / "frontend" / "fe-wake", "--socket",
                         short_dir / "vhost0.sock", "--iface", "vb", "--case", case,
                         "--rounds", 50, "--poll-us", 1000, "--pid", daemon.process.pid,
                         timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert daemon.ask("/vhp/poller,0")["wakes_lost"] == 0
        assert_clean(daemon.stop())


def test_af_packet_latency_while_polling(netns, short_dir):
    """W9: a frame is served sooner while the window is open than after it has closed, when a
    thread has to be woken. On a machine with other work one run of three has to do."""
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir, **{"poll-us": 1000}),
                "net_af_packet0,iface=va") as daemon:
        medians = []
        while len(medians) < 3 and (not medians or medians[-1][0] >= medians[-1][1]):
            done = netns.run(*ON_ONE_CPU, BUILD / "tests" / "frontend" / "fe-wake", "--socket",
                             short_dir / "vhost0.sock", "--iface", "vb", "--case", "W9",
                             "--mode", "split-event", "--rounds", 500, "--poll-us", 1000,
                             "--limit-us", 1000000, "--pid", daemon.process.pid, "--histogram",
                             timeout=60, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            medians.append([float(us) for us in re.findall(r"p50 ([0-9.]+)", done.stdout)])
        assert medians[-1][0] < medians[-1][1], medians
        assert daemon.ask("/vhp/poller,0")["wakes_lost"] == 0
        assert_clean(daemon.stop())


@pytest.mark.frontend
def test_af_packet_polls_without_the_kernel(netns, short_dir):
    """W9: with the window open for ever all frames arrive, and no event is waited for."""
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir, **{"poll-us": "forever"}),
                "net_af_packet0,iface=va") as daemon:
        roundtrip(netns, short_dir, "--max-len", 1514)
        assert daemon.counters()["wakes_port"] == 0
        counters = daemon.stop()
    assert_counted(counters, FRAMES, FRAMES)


@pytest.mark.frontend
@pytest.mark.parametrize("keys", ["framesz=64,framecnt=4096", "framesz=70000,framecnt=300"])
def test_af_packet_slots_of_any_size(netns, short_dir, keys):
    """Frames shorter and longer than a slot, by turns."""
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir),
                "net_af_packet0,iface=va," + keys) as daemon:
        roundtrip(netns, short_dir, "--offloads", "on", "--vlans", 1)
        counters = daemon.stop()
    assert_counted(counters, FRAMES, FRAMES)


@needs_testpmd
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("tag", [b"", struct.pack("!HH", 0x8100, 42)], ids=["untagged", "tagged"])
def test_af_packet_cuts_for_guest(netns, short_dir, version, tag):
    """The guest did not accept segmentation offload; the host sends large TCP frames."""
    veth(netns)
    mss = 1400
    parts = payloads(version, 50, 40000)
    with Daemon(netns, short_dir, vhost(short_dir, tso=0), "net_af_packet0,iface=va") as daemon, \
            Testpmd(netns, *guest_devices(short_dir)) as guest:
        guest.command("start")
        daemon.wait_forwarding()
        send_large(netns, "vb", [large_frame(version, part, 2**32 - 5000, mss, tag)
                                 for part in parts])
        counts = [-(-len(part) // mss) for part in parts]
        wait_until(lambda: guest.port_stats(0)["RX-packets"] >= sum(counts), SETTLE_S,
                   "segments are missing")
        guest.quit()
        counters = daemon.stop()
    assert_counted(counters, 0, sum(counts))
    got = read_pcap(short_dir / "guest0-out.pcap")
    assert len(got) == sum(counts)
    for part, count in zip(parts, counts):
        assert_segments(got[:count], version, part, 2**32 - 5000, mss, tag)
        got = got[count:]


@needs_testpmd
def test_af_packet_drops_nothing_for_a_slow_guest(netns, short_dir):
    """Frames wait in the socket until there is a guest."""
    veth(netns)
    sent = frames(7, FRAMES)
    with Daemon(netns, short_dir, vhost(short_dir), "net_af_packet0,iface=va") as daemon:
        send_frames(netns, "vb", sent)
        with Testpmd(netns, *guest_devices(short_dir)) as guest:
            guest.command("start")
            wait_until(lambda: guest.port_stats(0)["RX-packets"] >= FRAMES, SETTLE_S,
                       "frames are missing")
            guest.quit()
        counters = daemon.stop()
    assert_same_frames(read_pcap(short_dir / "guest0-out.pcap"), sent)
    assert_counted(counters, 0, FRAMES)


# ---- devices of DPDK's --------------------------------------------------------------


@pytest.mark.frontend
@pytest.mark.parametrize("args", [
    ["--kinds", "raw"], ["--kinds", "raw", "--packed", "--offloads", "on", "--restart", "500"],
    ["--direction", "tx", "--vlans", "1"], ["--direction", "tx", "--legacy"],
], ids=" ".join)
@pytest.mark.parametrize("port", ["net_pcap0,rx_iface_in=va,tx_iface=va", "net_af_xdp0,iface=va"],
                         ids=["pcap", "af_xdp"])
def test_ethdev_roundtrip(netns, short_dir, port, args):
    """Two drivers without offloads and, pcap, without an interrupt or a limit."""
    veth(netns, 1500)
    with Daemon(netns, short_dir, vhost(short_dir), port) as daemon:
        roundtrip(netns, short_dir, "--max-len", 1500, *args)
        counters = daemon.stop()
    assert_counted(counters, FRAMES, 0 if "tx" in args else FRAMES)


@pytest.mark.frontend
@pytest.mark.parametrize("args", [
    ["--kinds", "raw", "--max-len", "1514"],
    ["--kinds", "raw,udp4,udp6,tcp4,tcp6", "--max-len", "1514", "--offloads", "on"],
    ["--kinds", "raw,tcp4,tcp6,tso4,tso6", "--direction", "tx", "--offloads", "on", "--packed",
     "--vlans", "1"],
    ["--kinds", "tso4,tso6", "--direction", "tx", "--offloads", "on"],
], ids=" ".join)
def test_ethdev_offloads_pass_through(netns, short_dir, args):
    """A driver with checksum and segmentation offload gets the guest's requests.

    It is virtio_user, and a second daemon with a tap its back end.
    """
    with Daemon(netns, short_dir, vhost(short_dir, 1), "net_tap0,iface=tap0") as back:
        netns.ip("link", "set", "tap0", "mtu", 65521)
        with Daemon(netns, short_dir, vhost(short_dir),
                    "net_virtio_user0,path=%s/vhost1.sock,queue_size=1024" % short_dir) as daemon:
            roundtrip(netns, short_dir, *args, iface="tap0")
            counters = daemon.stop()
        behind = back.stop()
    assert_counted(counters, FRAMES, 0 if "tx" in args else FRAMES)
    assert behind["net_vhost1:0 transmitq"]["pkts"] == FRAMES, "cut by the daemon"


@needs_testpmd
def test_ethdev_memif_both_ways(netns, short_dir):
    """Shared memory with another process, whose driver stops taking frames when it is full."""
    to_host, to_guest = frames(11, FRAMES), frames(12, FRAMES)
    memif = "socket=%s/memif.sock,socket-abstract=no" % short_dir
    write_pcap(short_dir / "peer-in.pcap", to_guest)
    peer = ("net_memif0,role=client," + memif,
            "net_pcap0,rx_pcap={0}/peer-in.pcap,tx_pcap={0}/peer-out.pcap".format(short_dir))
    with Daemon(netns, short_dir, vhost(short_dir), "net_memif0,role=server," + memif) as daemon, \
            Testpmd(netns, *guest_devices(short_dir, to_host)) as guest, \
            Testpmd(netns, *peer) as other:
        daemon.wait_forwarding()
        wait_until(lambda: "Link status: up" in other.command("show port info 0"), SETTLE_S,
                   "no link between memif's two ends")
        guest.command("start")
        other.command("start")
        for process in (guest, other):
            wait_until(lambda p=process: p.port_stats(0)["RX-packets"] >= FRAMES, SETTLE_S,
                       "frames are missing")
        guest.quit()
        other.quit()
        counters = daemon.stop()
    assert_same_frames(read_pcap(short_dir / "peer-out.pcap"), to_host)
    assert_same_frames(read_pcap(short_dir / "guest0-out.pcap"), to_guest)
    assert_counted(counters, FRAMES, FRAMES)


@needs_testpmd
def test_ethdev_ring_gives_back_what_it_got(netns, short_dir):
    """net_ring0 is its own other side: more frames than it holds, each both ways."""
    sent = frames(13, FRAMES)
    with Daemon(netns, short_dir, vhost(short_dir), "net_ring0") as daemon, \
            Testpmd(netns, *guest_devices(short_dir, sent)) as guest:
        daemon.wait_forwarding()
        guest.command("start")
        wait_until(lambda: guest.port_stats(0)["RX-packets"] >= FRAMES, SETTLE_S,
                   "frames are missing")
        guest.quit()
        counters = daemon.stop()
    assert_same_frames(read_pcap(short_dir / "guest0-out.pcap"), sent)
    assert_counted(counters, FRAMES, FRAMES)


def test_ethdev_that_is_not_there(netns, short_dir):
    """One line, status 2, nothing left."""
    done = netns.run(BINARY, "--file-prefix", "vhp-none-%d" % os.getpid(), "--vdev",
                     vhost(short_dir), "--vdev", "net_pcap0,rx_pcap=%s/none" % short_dir,
                     check=False)
    assert done.returncode == 2
    assert "net_pcap0" in done.stderr
    assert list(short_dir.glob("*.sock")) == []


# ---- two guests ----------------------------------------------------------------------


@needs_testpmd
@pytest.mark.frontend
@pytest.mark.parametrize("args", [
    [], ["--packed"], ["--legacy", "--max-segs", "32"], ["--mrg", "off"],
    ["--restart", "500", "--event-idx", "random"],
], ids=" ".join)
def test_two_guests_any_layout(netns, short_dir, args):
    """One guest is the test front end; the other, testpmd, passes all on to a tap and back."""
    relay = ["net_virtio_user%d,path=%s/vhost%d.sock,queue_size=256" % (i, short_dir, i + 1)
             for i in range(2)]
    with Daemon(netns, short_dir, vhost(short_dir, 0), vhost(short_dir, 1),
                vhost(short_dir, 2), "net_tap0,iface=tap0") as daemon, \
            Testpmd(netns, *relay) as other:
        netns.ip("link", "set", "tap0", "up")
        other.command("start")
        for qpair in ("net_vhost1:0", "net_vhost2:0"):
            daemon.wait_forwarding(qpair)
        roundtrip(netns, short_dir, "--kinds", "raw", "--max-len", 1514, *args, iface="tap0")
        other.quit()
        counters = daemon.stop()
    for number in range(3):
        assert_counted(counters, FRAMES, FRAMES, "net_vhost%d:0" % number)


@needs_testpmd
@pytest.mark.frontend
@pytest.mark.parametrize("version", [4, 6])
def test_two_guests_of_different_abilities(netns, short_dir, version):
    """One sends large TCP frames, the other did not accept to get such: they are cut."""
    window, header = 64, 14 + (20 if version == 4 else 40) + 20
    veth(netns)
    with Daemon(netns, short_dir, vhost(short_dir, 0), vhost(short_dir, 1, tso=0)) as daemon, \
            Testpmd(netns, *guest_devices(short_dir, number=1)) as guest:
        guest.command("start")
        daemon.wait_forwarding("net_vhost1:0")
        # It gives up, since nothing arrives on that interface; its frames are here by then.
        netns.run(BUILD / "tests" / "frontend" / "fe-roundtrip", "--socket",
                  short_dir / "vhost0.sock", "--iface", "vb", "--direction", "tx",
                  "--frames", window, "--window", window, "--kinds", "tso%d" % version,
                  "--offloads", "on", "--stall-ms", 1500, check=False)
        guest.quit()
        counters = daemon.stop()
    assert_clean(counters)
    assert counters["net_vhost0:0 transmitq"]["pkts"] == window
    got = read_pcap(short_dir / "guest1-out.pcap")
    assert len(got) == counters["net_vhost1:0 receiveq"]["pkts"] > window
    assert max(map(len, got)) <= header + 1460
    payload_bytes = sum(len(check_segment(version, frame)[3]) for frame in got)
    assert payload_bytes == counters["net_vhost0:0 transmitq"]["bytes"] - window * header
