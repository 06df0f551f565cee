# SPDX-License-Identifier: BSD-3-Clause
"""testpmd's virtio_user as the guest, in each of its ring layouts, on each kind of port.

One back end serves eight guests, one for each choice of packed_vq, mrg_rxbuf and
in_order; they are ports of one testpmd, which joins each to pcap files. The back
end is the daemon, or another testpmd with the same --vdev lines.
"""

import itertools
import random
import shutil
import socket
import struct
from contextlib import ExitStack

import pytest

from capture import Capture, assert_same_frames, read_pcap, send_frames, write_pcap
from daemon import Daemon, assert_clean, wait_until
from segments import ones_sum
from testpmd import Testpmd

FRAMES = 256
SETTLE_S = 30
CHOICES = [dict(zip(("packed_vq", "mrg_rxbuf", "in_order"), values))
           for values in itertools.product((0, 1), repeat=3)]
GUESTS = range(len(CHOICES))
# Virtio feature bits (virtio 1.2, 5.1.3 and 6).
MRG_RXBUF, MQ, RING_PACKED, IN_ORDER = 15, 22, 34, 35

pytestmark = pytest.mark.skipif(shutil.which("dpdk-testpmd") is None,
                                reason="needs dpdk-testpmd")


def flows(seed, count=FRAMES):
    """UDP frames of random length, each of another flow, so that queues share them."""
    rng = random.Random(seed)
    packets = []
    for _ in range(count):
        payload = rng.randbytes(rng.randint(18, 1472))
        udp = struct.pack("!HHHH", rng.randint(1024, 65535), rng.randint(1024, 65535),
                          8 + len(payload), 0)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0, 64, socket.IPPROTO_UDP,
                         0) + bytes((198, 18, 0, 1, 198, 18, 0, 2))
        ip = ip[:10] + struct.pack("!H", 0xFFFF ^ ones_sum(ip)) + ip[12:]
        packets.append(bytes.fromhex("02005e000001" "02005e000002" "0800") + ip + udp + payload)
    return packets


class Kind:
    """A kind of host port: what --vdev takes for that of guest i."""

    def __init__(self, netns, short_dir, queues):
        self.netns, self.dir, self.queues = netns, short_dir, queues

    def prepare(self, stack):
        """Makes what must be there before the back end."""

    def bring_up(self):
        """Does what must be done after it."""

    def far(self, i):
        """The interface on the other side."""
        return "vb%d" % i

    def make_veths(self):
        for i in GUESTS:
            self.netns.ip("link", "add", "va%d" % i, "type", "veth", "peer", "name", "vb%d" % i)
            for end in ("va%d" % i, "vb%d" % i):
                self.netns.ip("link", "set", end, "up")

    def raise_taps(self):
        for i in GUESTS:
            self.netns.ip("link", "set", "tap%d" % i, "up", "txqueuelen", 2 * FRAMES)


class Tap(Kind):
    def port(self, i):
        # testpmd's driver takes the number of queues from testpmd.
        queues = ",queues=%d" % self.queues if self.queues > 1 else ""
        return "net_tap%d,iface=tap%d%s" % (i, i, queues)

    def bring_up(self):
        self.raise_taps()

    def far(self, i):
        return "tap%d" % i


class AfPacket(Kind):
    def prepare(self, stack):
        self.make_veths()

    def port(self, i):
        return "net_af_packet%d,iface=va%d,qpairs=%d" % (i, i, self.queues)


class Ethdev(Kind):
    """Of DPDK's drivers those that an interface is behind; with queues virtio's own."""

    def prepare(self, stack):
        if self.queues == 1:
            self.make_veths()
            return
        lines = []
        for i in GUESTS:
            lines += ["net_vhost%d,iface=%s/back%d,queues=%d" % (i, self.dir, i, self.queues),
                      "net_tap%d,iface=tap%d,queues=%d" % (i, i, self.queues)]
        stack.enter_context(Daemon(self.netns, self.dir, *lines))
        self.raise_taps()

    def port(self, i):
        if self.queues > 1:
            return "net_virtio_user%d,path=%s/back%d,queues=%d,cq=1,queue_size=256" % (
                i, self.dir, i, self.queues)
        if i % 2:
            return "net_af_xdp%d,iface=va%d" % (i, i)
        return "net_pcap%d,rx_iface_in=va%d,tx_iface=va%d" % (i, i, i)

    def far(self, i):
        return super().far(i) if self.queues == 1 else "tap%d" % i


KINDS = {"tap": Tap, "af_packet": AfPacket, "ethdev": Ethdev}


def vhost(short_dir, i, queues):
    """The value of --vdev for the back end of guest i."""
    many = ",queues=%d" % queues if queues > 1 else ""
    return "net_vhost%d,iface=%s/v%d%s" % (i, short_dir, i, many)


def guest_lines(short_dir, queues, to_send):
    """What joins each guest's port to pcap files; to_send: the frames of each guest."""
    lines = []
    for i, choice in enumerate(CHOICES):
        lines.append("net_virtio_user%d,path=%s/v%d,queue_size=128,queues=%d,cq=1" % (
            i, short_dir, i, queues) + "".join(",%s=%d" % item for item in choice.items()))
        files = "net_pcap%d" % i
        for queue in range(queues):
            name = "%s/g%d-%d" % (short_dir, i, queue)
            write_pcap(name + "-in", to_send[i][queue::queues])
            files += ",rx_pcap=%s-in,tx_pcap=%s-out" % (name, name)
        lines.append(files)
    return lines


def assert_agreed(daemon, queues):
    """Each guest got the layout that its line asks for."""
    for i, choice in enumerate(CHOICES):
        features = daemon.counters("net_vhost%d:0" % i)["features"]
        for bit, wanted in ((RING_PACKED, choice["packed_vq"]), (MRG_RXBUF, choice["mrg_rxbuf"]),
                            (IN_ORDER, choice["in_order"]), (MQ, int(queues > 1))):
            assert features >> bit & 1 == wanted, (choice, bit)


def wait_forwarding(daemon, queues):
    for i, queue in itertools.product(GUESTS, range(queues)):
        daemon.wait_forwarding("net_vhost%d:%d" % (i, queue))


def wait_received(guest, count=FRAMES):
    for i in GUESTS:
        wait_until(lambda port=2 * i: guest.port_stats(port)["RX-packets"] >= count, SETTLE_S,
                   "frames for guest %d are missing" % i)


def assert_sent_and_counted(guest, daemon, queues):
    """Every process tells the same numbers; with several queues each carried some."""
    for i in GUESTS:
        stats = guest.port_stats(2 * i)
        assert (stats["TX-packets"], stats["RX-packets"]) == (FRAMES, FRAMES)
    guest.quit()
    counters = daemon.stop()
    assert_clean(counters)
    for i in GUESTS:
        for ring in ("transmitq", "receiveq"):
            pkts = [counters["net_vhost%d:%d %s" % (i, queue, ring)]["pkts"]
                    for queue in range(queues)]
            assert sum(pkts) == FRAMES
            if ring == "transmitq":
                assert pkts == [FRAMES // queues] * queues


def assert_guest_got(short_dir, i, queues, wanted):
    """In order on each queue, and between them nothing missing or doubled."""
    got = [read_pcap(short_dir / ("g%d-%d-out" % (i, queue))) for queue in range(queues)]
    place = {frame: number for number, frame in enumerate(wanted)}
    for frames in got:
        numbers = [place.get(frame) for frame in frames]
        assert None not in numbers, "a frame that nobody sent, or a changed one"
        assert numbers == sorted(numbers)
    assert sum(map(len, got)) == len(wanted)
    assert set().union(*got) == set(wanted)
    return [len(frames) for frames in got]


def run_back_end(kind, back_end, netns, short_dir, stack):
    lines = []
    for i in GUESTS:
        lines += [vhost(short_dir, i, kind.queues), kind.port(i)]
    if back_end == "daemon":
        daemon = Daemon(netns, short_dir, *lines)
        # Each of DPDK's devices has mbufs of its own.
        daemon.args[:0] = ["--no-huge", "-m", "768"]
        return stack.enter_context(daemon)
    process = stack.enter_context(Testpmd(netns, *lines, queues=kind.queues))
    process.command("start")
    return process


@pytest.mark.parametrize("queues", [1, 4])
@pytest.mark.parametrize("name", KINDS)
def test_both_ways(netns, short_dir, name, queues):
    """Every byte and count, for eight layouts at once."""
    to_host, to_guest = [[flows(way + i) for i in GUESTS] for way in (100, 200)]
    with ExitStack() as stack:
        kind = KINDS[name](netns, short_dir, queues)
        kind.prepare(stack)
        daemon = run_back_end(kind, "daemon", netns, short_dir, stack)
        kind.bring_up()
        with ExitStack() as capturing:
            captures = [capturing.enter_context(Capture(netns, kind.far(i))) for i in GUESTS]
            guest = stack.enter_context(
                Testpmd(netns, *guest_lines(short_dir, queues, to_host), queues=queues))
            wait_forwarding(daemon, queues)
            assert_agreed(daemon, queues)
            guest.command("start")
            captured = [capture.frames(FRAMES, quiet_s=0) for capture in captures]
        for got, wanted in zip(captured, to_host):
            assert sorted(got) == sorted(wanted)
            if queues == 1:
                assert_same_frames(got, wanted)
        for i in GUESTS:
            send_frames(netns, kind.far(i), to_guest[i])
        wait_received(guest)
        assert_sent_and_counted(guest, daemon, queues)
        for i in GUESTS:
            shares = assert_guest_got(short_dir, i, queues, to_guest[i])
            # Which queue a flow comes to is the kernel's choice, not always the same one.
            assert queues == 1 or len([share for share in shares if share]) > 1, shares


def two_guests(short_dir, queues):
    """Guest i is joined to the one that made every choice otherwise."""
    return [vhost(short_dir, i, queues) + ",peer=net_vhost%d" % (len(CHOICES) - 1 - i)
            for i in GUESTS]


@pytest.mark.parametrize("queues", [1, 4])
def test_guest_to_guest(netns, short_dir, queues):
    to_send = [flows(300 + i) for i in GUESTS]
    with Daemon(netns, short_dir, *two_guests(short_dir, queues)) as daemon, \
            Testpmd(netns, *guest_lines(short_dir, queues, to_send), queues=queues) as guest:
        wait_forwarding(daemon, queues)
        assert_agreed(daemon, queues)
        guest.command("start")
        wait_received(guest)
        assert_sent_and_counted(guest, daemon, queues)
    for i in GUESTS:
        shares = assert_guest_got(short_dir, i, queues, to_send[len(CHOICES) - 1 - i])
        # Queue n of one is joined to queue n of the other.
        assert shares == [FRAMES // queues] * queues


@pytest.mark.parametrize("name", KINDS)
def test_same_frames_as_testpmd(netns, short_dir, name):
    """testpmd in the daemon's place, and the same comes out."""
    to_host = [flows(400 + i) for i in GUESTS]
    with ExitStack() as stack:
        kind = KINDS[name](netns, short_dir, 1)
        kind.prepare(stack)
        run_back_end(kind, "testpmd", netns, short_dir, stack)
        kind.bring_up()
        captures = [stack.enter_context(Capture(netns, kind.far(i))) for i in GUESTS]
        guest = stack.enter_context(Testpmd(netns, *guest_lines(short_dir, 1, to_host)))
        guest.command("start")
        for capture, wanted in zip(captures, to_host):
            assert_same_frames(capture.frames(FRAMES, quiet_s=0), wanted)


def test_same_frames_as_testpmd_guest_to_guest(netns, short_dir):
    to_send = [flows(500 + i) for i in GUESTS]
    with Testpmd(netns, *[vhost(short_dir, i, 1) for i in GUESTS]) as back_end, \
            Testpmd(netns, *guest_lines(short_dir, 1, to_send)) as guest:
        back_end.command("start")
        guest.command("start")
        wait_received(guest)
        guest.quit()
    for i in GUESTS:
        assert_guest_got(short_dir, i, 1, to_send[i ^ 1])


def test_net_null(netns, short_dir):
    """A device that takes everything and gives nothing."""
    to_host = [flows(600 + i) for i in GUESTS]
    lines = []
    for i in GUESTS:
        lines += [vhost(short_dir, i, 1), "net_null%d,no-rx=1" % i]
    with Daemon(netns, short_dir, *lines) as daemon, \
            Testpmd(netns, *guest_lines(short_dir, 1, to_host)) as guest:
        wait_forwarding(daemon, 1)
        guest.command("start")
        for i in GUESTS:
            wait_until(lambda n=i: daemon.counters("net_vhost%d:0" % n)["transmitq_pkts"] >=
                       FRAMES, SETTLE_S, "guest %d is not done" % i)
        guest.quit()
        counters = daemon.stop()
    assert_clean(counters)
    for i in GUESTS:
        ring = counters["net_vhost%d:0 transmitq" % i]
        assert (ring["pkts"], ring["bytes"]) == (FRAMES, sum(map(len, to_host[i])))
        assert counters["net_vhost%d:0 receiveq" % i]["pkts"] == 0
