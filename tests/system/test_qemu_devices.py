# SPDX-License-Identifier: BSD-3-Clause
"""One guest with several network devices, each with other rings and features.

What the guest's driver agreed on is read in the guest: a device that quietly
fell back to something plainer would prove nothing.
"""

import pytest

from daemon import Daemon, assert_clean
from guest import Guest
from netns import Netns
from traffic import fetch_file, iperf3, pattern, ping, send_file

MIB = 1 << 20

# Virtio feature bits (virtio 1.2, 5.1.3 and 6).
CSUM, MTU, GUEST_TSO4, MRG_RXBUF, MQ = 0, 3, 7, 15, 22
INDIRECT_DESC, EVENT_IDX, VERSION_1, RING_PACKED = 28, 29, 32, 34

# What QEMU is told; bits that must be set; bits that must be clear.
VARIANTS = {
    "split": ("", {MRG_RXBUF, INDIRECT_DESC, EVENT_IDX, VERSION_1}, {RING_PACKED}),
    "packed": (",packed=on", {MRG_RXBUF, INDIRECT_DESC, EVENT_IDX, VERSION_1, RING_PACKED}, set()),
    "packed-plain": (",packed=on,indirect_desc=off,event_idx=off", {RING_PACKED},
                     {INDIRECT_DESC, EVENT_IDX}),
    "big-buffers": (",mrg_rxbuf=off", {VERSION_1, GUEST_TSO4}, {MRG_RXBUF}),
    "plain": (",mrg_rxbuf=off,indirect_desc=off,event_idx=off,guest_tso4=off,guest_tso6=off,"
              "guest_ecn=off,guest_ufo=off,guest_csum=off,csum=off,host_tso4=off,host_tso6=off",
              {VERSION_1}, {CSUM, GUEST_TSO4, MRG_RXBUF, INDIRECT_DESC, EVENT_IDX}),
    "legacy": (",disable-modern=on,disable-legacy=off,mrg_rxbuf=off", {EVENT_IDX},
               {VERSION_1, MRG_RXBUF}),
    "long-rings": (",rx_queue_size=1024,tx_queue_size=1024", {MRG_RXBUF}, set()),
    "mtu": (",host_mtu=9000", {MTU, MRG_RXBUF}, set()),
    "four-queues": (",queues=4", {MQ, MRG_RXBUF}, set()),
}
NAMES = list(VARIANTS)


def host_address(name):
    return "198.18.%d.1" % NAMES.index(name)  # for benchmarks of devices (RFC 2544)


def guest_address(name):
    return "198.18.%d.2" % NAMES.index(name)


class Rig:
    def __init__(self, netns, daemon, guest):
        self.netns, self.daemon, self.guest = netns, daemon, guest


@pytest.fixture(name="rig", scope="module")
def rig_fixture(module_dir):
    devices, nets = [], []
    for number, (name, (properties, _, _)) in enumerate(VARIANTS.items()):
        sock = "%s/%s.sock" % (module_dir, name)
        queues = ",queues=4" if name == "four-queues" else ""
        devices += ["net_vhost%d,iface=%s%s" % (number, sock, queues),
                    "net_tap%d,iface=tap%d" % (number, number)]
        nets.append("%s,addr=%s/24%s" % (sock, guest_address(name), properties))
    with Netns() as netns, Daemon(netns, module_dir, *devices) as daemon:
        for number, name in enumerate(NAMES):
            netns.ip("addr", "add", host_address(name) + "/24", "dev", "tap%d" % number)
            netns.ip("link", "set", "tap%d" % number, "up")
        with Guest(*nets, options=["--smp", "4"]) as guest:
            guest.wait_up()
            yield Rig(netns, daemon, guest)


@pytest.mark.parametrize("name", NAMES)
def test_features(rig, name):
    bits = rig.guest.sh("cat /sys/class/net/eth%d/device/features" % NAMES.index(name)).strip()
    _, wanted, unwanted = VARIANTS[name]
    assert {bit for bit in wanted if bits[bit] != "1"} == set()
    assert {bit for bit in unwanted if bits[bit] != "0"} == set()


@pytest.mark.parametrize("name", NAMES)
def test_traffic(rig, name):
    """Every byte of a file, both ways, and pings whose frames are of all sizes."""
    for payload_bytes in (0, 100, 1472, 9000):
        ping(rig.netns, guest_address(name), 10, "-s", payload_bytes)
    send_file(rig.netns, rig.guest, guest_address(name), 5001, pattern(name, 8 * MIB))
    fetch_file(rig.netns, rig.guest, guest_address(name), 8)


def test_mtu(rig):
    """host_mtu: the guest takes it, the tap gets it, and frames of that size pass unbroken."""
    number = NAMES.index("mtu")
    assert rig.guest.sh("cat /sys/class/net/eth%d/mtu" % number).strip() == "9000"
    assert " mtu 9000 " in rig.netns.ip("link", "show", "dev", "tap%d" % number)
    ping(rig.netns, guest_address("mtu"), 10, "-s", 9000 - 28, "-M", "do")


def test_four_queues(rig):
    """Every queue pair carries traffic once the guest has enabled it.

    The guest's driver gives each CPU a queue, and the tap answers on the queue that asked.
    """
    number = NAMES.index("four-queues")
    rig.guest.sh("ethtool -L eth%d combined 4" % number)
    for cpu in range(4):
        rig.guest.sh("taskset %x ping -c 5 -w 20 %s" % (1 << cpu, host_address("four-queues")))
    got = iperf3(rig.netns, guest_address("four-queues"), "-P", 8)
    assert min(got["streams"]) > 0
    for pair in range(4):
        counters = rig.daemon.counters("net_vhost%d:%d" % (number, pair))
        assert counters["receiveq_pkts"] >= 5, pair
        assert counters["transmitq_pkts"] >= 5, pair


def test_nothing_was_dropped(rig):
    """Last of the tests on this guest."""
    assert rig.guest.power_off() == 0
    counters = rig.daemon.stop()
    assert_clean(counters)
    assert rig.netns.links() == []
