# SPDX-License-Identifier: BSD-3-Clause
"""Every ring layout with every kind of host port, both ways, small to 64 KiB.

A cell is one layout, one port, one direction and one kind of frames: each byte
is compared, none is lost, doubled or out of order. The table is printed; with
VHP_MATRIX=FILE it is also written there, as docs/matrix.md is made:

    VHP_MATRIX=docs/matrix.md python3 -m pytest tests/system/test_matrix.py

VHP_MATRIX_FRAMES is the number of frames in each cell.
"""

import itertools
import os
import re
from pathlib import Path

import pytest

from capture import ON_ONE_CPU
from daemon import BINARY, BUILD, Daemon, assert_clean

FRAMES = int(os.environ.get("VHP_MATRIX_FRAMES", "100"))
FRONT_END = BUILD / "tests" / "frontend" / "fe-roundtrip"
MTU = 65521  # a tap's largest
# What each column is called, and --phase of it. DPDK's virtio driver takes in 9,728 bytes
# at once, so only frames that may be cut are larger.
PHASES = {"60 B": "raw:60:60", "1,514 B": "raw:1514:1514", "9,000 B": "raw:9000:9000",
          "64 KiB TCPv4": "tso4:65535:65535", "64 KiB TCPv6": "tso6:65535:65535",
          "64 KiB UDP": "uso4,uso6:65535:65535"}
PORTS = ("tap", "af_packet", "ethdev", "vhost")
LAYOUTS = [
    (" ".join(words), [option for word in words for option in OPTIONS[word]])
    for OPTIONS in [{"split": [], "packed": ["--packed"], "mrg": [], "big": ["--mrg", "off"],
                     "indirect": ["--indirect"], "direct": ["--direct"], "event": [],
                     "flags": ["--event-idx", "off"]}]
    for words in itertools.product(("split", "packed"), ("mrg", "big"), ("indirect", "direct"),
                                   ("event", "flags"))]

# (port, layout, phase, direction): "whole" or "cut"
cells = {}


def without_uso(netns, directory):
    """Does the kernel lack UDP segmentation (Linux 6.2) in taps and packet sockets?"""
    done = netns.run(BINARY, "--vdev", "net_vhost0,iface=%s/check" % directory,
                     "--vdev", "net_tap0", "--", "--check", "-v")
    return re.search("^net_vhost0 offers.* HOST_USO", done.stdout, re.M) is None


class Rig:
    """One daemon with a device for each kind of port, and one behind its DPDK port."""

    def __init__(self, netns, directory):
        self.netns, self.dir = netns, directory
        netns.ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
        for end in ("va", "vb"):
            netns.ip("link", "set", end, "mtu", MTU, "up")
        self.back = Daemon(netns, directory, "net_vhost0,iface=%s/back" % directory,
                           "net_tap0,iface=tapback")
        self.daemon = Daemon(
            netns, directory,
            self.vhost(0), "net_tap0,iface=tap0",
            self.vhost(1), "net_af_packet0,iface=va",
            self.vhost(2), "net_virtio_user0,path=%s/back,queue_size=1024" % directory,
            self.vhost(3), self.vhost(4))

    def vhost(self, number):
        return "net_vhost%d,iface=%s" % (number, self.socket(number))

    def socket(self, number):
        return "%s/v%d" % (self.dir, number)

    def __enter__(self):
        for daemon, tap in ((self.back, "tapback"), (self.daemon, "tap0")):
            daemon.__enter__()
            self.netns.ip("link", "set", tap, "mtu", MTU, "up", "txqueuelen", 4000)
        return self

    def __exit__(self, *exc):
        self.daemon.__exit__(*exc)
        self.back.__exit__(*exc)

    def far_end(self, port, layout):
        """Where fe-roundtrip finds the other side of a port."""
        if port == "vhost":
            # The other guest's rings are of the other layout.
            packed = [] if "packed" in layout else ["--peer-packed"]
            return ["--peer", self.socket(4), *packed]
        return ["--iface", {"tap": "tap0", "af_packet": "vb", "ethdev": "tapback"}[port]]

    def run(self, port, layout, phases, *options):
        """Each of the phases in turn; {phase: [frames, bytes and frames cut, out and in]}."""
        words = [word for name, what in phases.items()
                 for word in ("--phase", name.replace(" ", "_") + ":" + what)]
        done = self.netns.run(
            *ON_ONE_CPU, FRONT_END, "--socket", self.socket(PORTS.index(port)),
            *self.far_end(port, layout), "--frames", FRAMES, "--cut", "--stall-ms", 30000,
            *options, *words, timeout=240, check=False)
        lines = re.findall(r"^PHASE (\S+) PASS: guest->host (\d+) frames (\d+) bytes (\d+) cut, "
                           r"host->guest (\d+) frames (\d+) bytes (\d+) cut$", done.stdout, re.M)
        assert done.returncode == 0, done.stdout + done.stderr
        assert " strays 0," in done.stdout, "frames that nobody sent: " + done.stdout
        assert [line[0].replace("_", " ") for line in lines] == list(phases)
        return {line[0].replace("_", " "): list(map(int, line[1:])) for line in lines}


@pytest.fixture(name="rig", scope="module")
def rig_fixture(module_netns, module_dir):
    if without_uso(module_netns, module_dir):
        del PHASES["64 KiB UDP"]
    with Rig(module_netns, module_dir) as rig:
        yield rig


@pytest.mark.parametrize("layout,options", LAYOUTS, ids=[name for name, _ in LAYOUTS])
@pytest.mark.parametrize("port", PORTS)
def test_cells(rig, port, layout, options):
    for name, numbers in rig.run(port, layout, PHASES, "--offloads", "on", *options).items():
        length = int(PHASES[name].split(":")[1])
        for way, (frames, count, cut) in (("out", numbers[:3]), ("in", numbers[3:])):
            assert (frames, count) == (FRAMES, FRAMES * length)
            # All or none: a port does not change its mind.
            assert cut in (0, FRAMES)
            cells[port, layout, name, way] = "cut" if cut else "whole"


@pytest.mark.parametrize("layout", ["split", "packed"])
@pytest.mark.parametrize("port", PORTS)
def test_guest_without_offloads(rig, port, layout):
    """Large frames for a guest that accepted no offload: cut, with complete checksums."""
    large = {name: what for name, what in PHASES.items() if "64 KiB" in name}
    options = ["--packed"] if layout == "packed" else []
    for numbers in rig.run(port, layout, large, "--offloads", "off", "--direction", "rx",
                           *options).values():
        assert numbers == [0, 0, 0, FRAMES, FRAMES * 65535, FRAMES]


@pytest.mark.parametrize("layout,options", [row for row in LAYOUTS if "event" in row[0]],
                         ids=[name for name, _ in LAYOUTS if "event" in name])
@pytest.mark.parametrize("port", PORTS)
def test_o4_tags_and_segmentation(rig, port, layout, options):
    """O4: none, one or two tags on frames of each protocol, with and without segmentation."""
    kinds = {"plain": "udp4,udp6,tcp4,tcp6:200:1514", "large": "tso4,tso6:4000:65535"}
    if "64 KiB UDP" in PHASES:
        kinds["large UDP"] = "uso4,uso6:4000:65535"
    for frames, _, _, received, _, _ in rig.run(port, layout, kinds, "--offloads", "on",
                                                "--vlans", 2, *options).values():
        assert (frames, received) == (FRAMES, FRAMES)


def table():
    """All cells as a page."""
    lines = [
        "# Ring layouts, host ports, frames",
        "",
        "Made by `VHP_MATRIX=docs/matrix.md python3 -m pytest tests/system/test_matrix.py`: "
        "%d cells of" % len(cells),
        "%d frames, each byte compared, in order, none lost or doubled. \"out\" is guest to host, "
        "\"in\" host" % FRAMES,
        "to guest. **whole**: the frame arrived as it was sent, with its segmentation request "
        "if it had one;",
        "**cut**: as segments whose headers and checksums were compared, too. The guest is the "
        "test front end",
        "with all offloads accepted. The other end of `tap`, `af_packet` (veth) and `ethdev` "
        "(`net_virtio_user`",
        "on a second daemon with a tap) is a packet socket, that of `vhost` a second guest, whose "
        "rings are",
        "packed where those in the table are split, and split where they are packed.",
        "",
        "Layouts: mrg or big receive buffers (MRG_RXBUF on or off), indirect tables or direct "
        "descriptors,",
        "event index or flags (EVENT_IDX on or off). Large UDP frames need Linux 6.2.",
    ]
    for port in PORTS:
        lines += ["", "## net_" + port if port != "ethdev" else "## DPDK's devices", ""]
        heads = ["%s %s" % (name, way) for name in PHASES for way in ("out", "in")]
        lines += ["| layout | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for layout, _ in LAYOUTS:
            row = [cells.get((port, layout, name, way), "**missing**")
                   for name in PHASES for way in ("out", "in")]
            lines.append("| " + " | ".join([layout, *row]) + " |")
    return "\n".join(lines) + "\n"


def test_table(rig, capsys):
    """Last of all: every cell is there, and the daemons dropped nothing."""
    text = table()
    with capsys.disabled():
        print("\n" + text)
    assert len(cells) == len(PORTS) * len(LAYOUTS) * len(PHASES) * 2
    assert_clean(rig.daemon.stop())
    assert_clean(rig.back.stop())
    if os.environ.get("VHP_MATRIX"):
        Path(os.environ["VHP_MATRIX"]).write_text(text)
