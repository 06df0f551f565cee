# SPDX-License-Identifier: BSD-3-Clause
"""One guest with a network device for each offload that can be switched off alone.

QEMU's "gso" is not among them: it is the bit of drivers before virtio 1.0, which nobody offers.
"""

import pytest

from daemon import Daemon, assert_clean
from guest import Guest
from netns import Netns
from traffic import fetch_file, pattern, ping, send_file

MIB = 1 << 20
FILE_MIB = 1
LONGEST = 1514  # frame of one segment

# Virtio feature bits (virtio 1.2, 5.1.3).
OFFLOADS = {"csum": 0, "guest_csum": 1, "guest_tso4": 7, "guest_tso6": 8, "guest_ecn": 9,
            "guest_ufo": 10, "host_tso4": 11, "host_tso6": 12, "host_ecn": 13, "host_ufo": 14}
NAMES = list(OFFLOADS)

# Without these the frames of a TCP stream are of one segment, in this direction and family;
# segmentation needs the checksum's offload (virtio 1.2, 5.1.3.1).
UNSEGMENTED = {("receiveq", 4): {"guest_tso4", "guest_csum"},
               ("receiveq", 6): {"guest_tso6", "guest_csum"},
               ("transmitq", 4): {"host_tso4", "csum"},
               ("transmitq", 6): {"host_tso6", "csum"}}


def address(name, family, end):
    """end: 1 is the host, 2 the guest."""
    number = NAMES.index(name)
    return ("198.18.%d.%d" if family == 4 else "fd00:%d::%d") % (number, end)


class Rig:
    def __init__(self, netns, daemon, guest):
        self.netns, self.daemon, self.guest = netns, daemon, guest


@pytest.fixture(name="rig", scope="module")
def rig_fixture(module_dir):
    devices, nets = [], []
    for number, name in enumerate(NAMES):
        sock = "%s/%s.sock" % (module_dir, name)
        devices += ["net_vhost%d,iface=%s" % (number, sock),
                    "net_tap%d,iface=tap%d" % (number, number)]
        nets.append("%s,addr=%s/24,%s=off" % (sock, address(name, 4, 2), name))
    with Netns() as netns, Daemon(netns, module_dir, *devices) as daemon:
        for number, name in enumerate(NAMES):
            tap = "tap%d" % number
            netns.run("sysctl", "-q", "-w", "net.ipv6.conf.%s.disable_ipv6=0" % tap)
            netns.ip("addr", "add", address(name, 4, 1) + "/24", "dev", tap)
            netns.ip("addr", "add", address(name, 6, 1) + "/64", "dev", tap, "nodad")
            netns.ip("link", "set", tap, "up")
        with Guest(*nets, options=["--smp", "2"]) as guest:
            guest.wait_up()
            for number, name in enumerate(NAMES):
                # Usable at once: nobody else could have the address.
                guest.sh("sysctl -q -w net.ipv6.conf.eth%d.dad_transmits=0 && "
                         "ip addr add %s/64 dev eth%d" % (number, address(name, 6, 2), number))
            yield Rig(netns, daemon, guest)


@pytest.mark.parametrize("name", NAMES)
def test_features(rig, name):
    """The daemon was told of all but the one, and it is what the guest's driver runs with."""
    number = NAMES.index(name)
    got = rig.daemon.counters("net_vhost%d:0" % number)["features"]
    assert {other for other, bit in OFFLOADS.items() if not got >> bit & 1} == {name}
    bits = rig.guest.sh("cat /sys/class/net/eth%d/device/features" % number).strip()
    assert {other for other, bit in OFFLOADS.items() if bits[bit] != "1"} == {name}


@pytest.mark.parametrize("name", NAMES)
def test_traffic(rig, name):
    """Every byte of a file, both ways, in frames as long as what was agreed on allows."""
    def mean_frame(queue, run):
        before = rig.daemon.counters("net_vhost%d:0" % NAMES.index(name))
        run()
        after = rig.daemon.counters("net_vhost%d:0" % NAMES.index(name))
        took = {what: after[queue + what] - before[queue + what] for what in ("_bytes", "_pkts")}
        assert took["_bytes"] > FILE_MIB * MIB
        return took["_bytes"] / took["_pkts"]

    for payload_bytes in (0, 1472, 9000):
        ping(rig.netns, address(name, 4, 2), 3, "-s", payload_bytes)
    # The second family where the offload makes a difference to it.
    for family in (4, 6) if name.endswith(("csum", "tso6")) else (4,):
        guest = address(name, family, 2)
        runs = {
            "receiveq": lambda to=guest, seed=name + str(family): send_file(
                rig.netns, rig.guest, to, 5001, pattern(seed, FILE_MIB * MIB)),
            "transmitq": lambda to=guest: fetch_file(rig.netns, rig.guest, to, FILE_MIB)}
        for queue, run in runs.items():
            mean = mean_frame(queue, run)
            if name in UNSEGMENTED[(queue, family)]:
                assert mean <= LONGEST, (queue, family)
            else:
                assert mean > LONGEST, (queue, family)


def test_nothing_was_dropped(rig):
    """Last of the tests on this guest."""
    assert rig.guest.power_off() == 0
    assert_clean(rig.daemon.stop())
    assert rig.netns.links() == []
