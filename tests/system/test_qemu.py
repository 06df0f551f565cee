# SPDX-License-Identifier: BSD-3-Clause
"""QEMU guests on the daemon: one booted guest for most tests of the file."""

import json
import math
import socket
import subprocess
import time

import pytest

from daemon import Daemon, assert_clean
from guest import Guest
from netns import Netns
from traffic import fetch_file, iperf3, pattern, ping, send_file

HOST = "192.0.2.1"
GUEST = "192.0.2.2"
MIB = 1 << 20

# Bits of the virtio specification, 1.2: 5.1.3, 6.
FEATURES = {"CSUM": 0, "GUEST_CSUM": 1, "GUEST_TSO4": 7, "GUEST_TSO6": 8, "HOST_TSO4": 11,
            "HOST_TSO6": 12, "MRG_RXBUF": 15, "INDIRECT_DESC": 28, "EVENT_IDX": 29,
            "VERSION_1": 32}


class World:
    """A namespace, the daemon with a tap in it, a guest on the daemon."""

    def __init__(self, netns, daemon, guest):
        self.netns, self.daemon, self.guest = netns, daemon, guest


def set_up_tap(netns, iface="tap0", address=HOST):
    netns.ip("addr", "add", address + "/24", "dev", iface)
    netns.ip("link", "set", iface, "up")


@pytest.fixture(name="world", scope="module")
def world_fixture(module_dir):
    sock = "%s/vhost0.sock" % module_dir
    with Netns() as netns, \
            Daemon(netns, module_dir, "net_vhost0,iface=" + sock, "net_tap0,iface=tap0") as daemon:
        set_up_tap(netns)
        with Guest("%s,addr=%s/24" % (sock, GUEST)) as guest:
            guest.wait_up()
            yield World(netns, daemon, guest)


def test_boot(world):
    """The guest's own driver runs on what the daemon offers."""
    world.daemon.wait_forwarding()
    assert "driver: virtio_net" in world.guest.sh("ethtool -i eth0")
    bits = world.guest.sh("cat /sys/class/net/eth0/device/features").strip()
    for name, bit in FEATURES.items():
        assert bits[bit] == "1", "%s: %s" % (name, bits)


@pytest.mark.parametrize("payload_bytes", [0, 56, 1472, 40000])
def test_ping(world, payload_bytes):
    before = world.daemon.counters()
    ping(world.netns, GUEST, 50, "-s", payload_bytes)
    after = world.daemon.counters()
    frames = 50 * math.ceil((payload_bytes + 8) / 1480)  # IP fragments
    for queue in ("transmitq", "receiveq"):
        # More than the answers may pass (ARP), less not.
        assert after[queue + "_pkts"] - before[queue + "_pkts"] >= frames
        assert after[queue + "_bytes"] - before[queue + "_bytes"] >= 50 * (payload_bytes + 42)


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("queue,options", [("receiveq", ()), ("transmitq", ("--reverse",))],
                         ids=["host-to-guest", "guest-to-host"])
def test_iperf3(world, queue, options, streams):
    before = world.daemon.counters()
    got = iperf3(world.netns, GUEST, "-P", streams, *options)
    after = world.daemon.counters()
    assert len(got["streams"]) == streams
    for stream_bytes in got["streams"]:
        assert stream_bytes > MIB
    assert after[queue + "_bytes"] - before[queue + "_bytes"] >= got["bytes"]
    assert after[queue + "_drops"] == before[queue + "_drops"]


def test_file_to_guest(world):
    send_file(world.netns, world.guest, GUEST, 5001, pattern(1))


def test_file_from_guest(world):
    fetch_file(world.netns, world.guest, GUEST)


def test_ipv6(world):
    """Segmentation offload has a feature bit of its own there."""
    world.netns.run("sysctl", "-q", "-w", "net.ipv6.conf.tap0.disable_ipv6=0")
    world.netns.ip("addr", "add", "fd00::1/64", "dev", "tap0", "nodad")
    world.guest.sh("ip addr add fd00::2/64 dev eth0; sleep 2")  # its own address check
    ping(world.netns, "fd00::2", 20, "-s", 4000)
    for queue, options in (("receiveq", ()), ("transmitq", ("--reverse",))):
        before = world.daemon.counters()
        got = iperf3(world.netns, "fd00::2", *options, seconds=1)
        after = world.daemon.counters()
        assert got["bytes"] > MIB
        frames = after[queue + "_pkts"] - before[queue + "_pkts"]
        assert got["bytes"] / frames > 3000, "frames of one segment only"


def test_reboot(world):
    """The guest's driver lets go of the device and takes it again."""
    before = world.daemon.counters()
    world.guest.reboot()
    world.daemon.wait_forwarding()
    ping(world.netns, GUEST, 20)
    assert world.daemon.counters()["receiveq_pkts"] > before["receiveq_pkts"]
    send_file(world.netns, world.guest, GUEST, 5003, pattern(2, 4 * MIB))


def system_reset(guest):
    """Resets the machine at once, as its reset button would."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(10)
        sock.connect(str(guest.dir / "qmp.sock"))
        stream = sock.makefile("rw")
        stream.readline()  # the greeting
        for command in ("qmp_capabilities", "system_reset"):
            stream.write(json.dumps({"execute": command}) + "\n")
            stream.flush()
            while "return" not in (answer := json.loads(stream.readline())):
                assert "error" not in answer, answer


def test_reset_under_traffic(world):
    """The machine is reset while its rings are full of work."""
    boot = world.guest.serial.boot_id()
    before = world.daemon.counters()
    command = world.netns.command("iperf3", "-c", GUEST, "-t", 10, "--bidir")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as client:
        time.sleep(1)
        system_reset(world.guest)
        client.kill()
    moved = world.daemon.counters()
    for queue in ("transmitq", "receiveq"):
        assert moved[queue + "_bytes"] - before[queue + "_bytes"] > MIB
    world.guest.serial.wait(120, not_boot_id=boot)
    world.daemon.wait_forwarding()
    ping(world.netns, GUEST, 20)
    send_file(world.netns, world.guest, GUEST, 5004, pattern(3, 4 * MIB))


def test_nothing_was_dropped(world):
    """Last of the tests on this guest: the daemon's own account, and its end."""
    assert world.guest.power_off() == 0
    assert world.daemon.alive()
    counters = world.daemon.stop()
    assert_clean(counters)
    assert counters["net_vhost0:0 transmitq"]["bytes"] > 64 * MIB
    assert counters["net_vhost0:0 receiveq"]["bytes"] > 64 * MIB
    assert world.netns.links() == []
