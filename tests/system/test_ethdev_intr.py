# SPDX-License-Identifier: BSD-3-Clause
"""Devices of DPDK's while nothing moves: woken by their receive interrupt, or looked at by time."""

import contextlib
import subprocess
import time

import pytest

from capture import ON_ONE_CPU
from daemon import BUILD, Daemon, assert_clean, wait_until

FRONT_END = BUILD / "tests" / "frontend"
FRAMES = 300
IDLE_S = 1

# Of a driver that is told when to interrupt (an eventfd that another process writes), on both
# kinds of rings; of one whose descriptor has the frames; of one that has none.
PORTS = {
    "virtio_user": "net_virtio_user0,path={dir}/back,queue_size=256",
    "virtio_user-packed": "net_virtio_user0,path={dir}/back,queue_size=256,packed_vq=1",
    "eth_tap": "eth_tap0,iface=tap0",
    "pcap": "net_pcap0,rx_iface_in=va,tx_iface=va",
}
FAR_ENDS = {"pcap": "vb"}  # else tap0
BY_TIME = ("pcap",)


@contextlib.contextmanager
def daemon_with(name, netns, short_dir, options=()):
    """A guest's device, and such a port; the far end is an interface."""
    with contextlib.ExitStack() as stack:
        if "back" in PORTS[name]:
            stack.enter_context(Daemon(netns, short_dir, "net_vhost1,iface=%s/back" % short_dir,
                                       "net_tap0,iface=tap0"))
        if name == "pcap":
            netns.ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
            for end in ("va", "vb"):
                netns.ip("link", "set", end, "up")
        daemon = stack.enter_context(Daemon(
            netns, short_dir, "net_vhost0,iface=%s/v0" % short_dir,
            PORTS[name].format(dir=short_dir), options=options))
        netns.ip("link", "set", FAR_ENDS.get(name, "tap0"), "up")
        yield daemon


def roundtrip(name, netns, short_dir, *args):
    done = netns.run(*ON_ONE_CPU, "timeout", "-k", "1", "-s", "KILL", 60,
                     FRONT_END / "fe-roundtrip", "--socket", short_dir / "v0", "--iface",
                     FAR_ENDS.get(name, "tap0"), "--kinds", "raw", "--max-len", 1514,
                     "--stall-ms", 20000, *args, timeout=90, check=False)
    assert "PASS" in done.stdout, done.stdout + done.stderr


@pytest.mark.frontend
@pytest.mark.parametrize("name,window", [*((name, "0") for name in PORTS), ("eth_tap", "auto")])
def test_lone_frames(netns, short_dir, name, window):
    """Frames one by one, each after a silence in which the daemon may fall asleep: all arrive
    as they were, and nobody was forgotten. Then a flow of them."""
    with daemon_with(name, netns, short_dir, ["--poll-us", window]) as daemon:
        for direction in ("tx", "rx", "both"):
            roundtrip(name, netns, short_dir, "--frames", FRAMES, "--window", 1,
                      "--pause-us", 1500, "--direction", direction)
        poller, qpair = daemon.ask("/vhp/poller,0"), daemon.counters()
        assert poller["wakes_lost"] == 0
        if name in BY_TIME:
            assert qpair["wakes_port"] == 0 and poller["wakes_timeout"] > 0
        elif window == "0":
            assert qpair["wakes_port"] > FRAMES / 10, "the daemon was awake in between"
        roundtrip(name, netns, short_dir, "--frames", 2000)
        assert daemon.ask("/vhp/poller,0")["wakes_lost"] == 0
        counters = daemon.stop()
    assert_clean(counters)
    for queue in ("transmitq", "receiveq"):
        assert counters["net_vhost0:0 " + queue]["pkts"] >= 2 * FRAMES + 2000


def sleeps_per_second(name, netns, short_dir):
    """Of a daemon whose guest is connected and silent, as is the host."""
    with daemon_with(name, netns, short_dir) as daemon:
        guest = subprocess.Popen(
            netns.command(FRONT_END / "fe-many", "--socket", short_dir / "v", "--case", "idle",
                          "--devices", 1, "--pid", daemon.process.pid, "--rounds", 1,
                          "--slice-ms", 20000),
            stdout=subprocess.DEVNULL)
        try:
            daemon.wait_forwarding()
            # What connecting has left to do.
            wait_until(lambda: daemon.counters()["turns"] > 0, 10, "not served")
            time.sleep(0.3)
            before, start = daemon.ask("/vhp/poller,0"), time.monotonic()
            time.sleep(IDLE_S)
            after, end = daemon.ask("/vhp/poller,0"), time.monotonic()
            assert guest.poll() is None
        finally:
            guest.kill()
            guest.wait()
    assert after["wakes_lost"] == 0
    return (after["sleeps"] - before["sleeps"]) / (end - start)


@pytest.mark.parametrize("name", [name for name in PORTS if name not in BY_TIME])
def test_idle_daemon_sleeps(netns, short_dir, name):
    """Not woken by time, but for the look at each half second."""
    assert sleeps_per_second(name, netns, short_dir) < 20


def test_idle_daemon_without_interrupt(netns, short_dir):
    """What the test above would see without them; and one line says so."""
    assert sleeps_per_second("pcap", netns, short_dir) > 50
    assert any("net_pcap0: 1 queues without a receive interrupt" in log.read_text()
               for log in short_dir.glob("daemon*.err"))
