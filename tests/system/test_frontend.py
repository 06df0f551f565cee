# SPDX-License-Identifier: BSD-3-Clause
"""The test front end's programs against the daemon: frames both ways, bytes and counts."""

import re
import subprocess
import time

import pytest

from daemon import assert_clean, wait_until
from frontend import GAP_MS, LIMIT_MS, SANITIZED, Bench, program

pytestmark = pytest.mark.frontend

FRAMES = 300 if SANITIZED else 1000
MANY = 20000 if SANITIZED else 100000
WAKE_ROUNDS = 300 if SANITIZED else 1000

RINGS = {"split": [], "packed": ["--packed"]}
CHAINS = {"direct": ["--direct"], "indirect": ["--indirect"], "mixed": ["--mixed"]}


@pytest.fixture(name="bench", scope="module")
def bench_fixture(module_netns, module_dir):
    with Bench(module_netns, module_dir, n=2) as bench:
        yield bench
        if bench.alive():
            assert_clean({ring: values for ring, values in bench.end().items()
                          if ring.startswith("net_vhost0")})


def roundtrip(bench, *args, frames=FRAMES, direction="both", timeout=120):
    """Runs fe-roundtrip, compares the daemon's own counters with what it sent."""
    before = bench.counters()
    out = bench.run("fe-roundtrip", "--frames", frames, "--direction", direction, *args,
                    timeout=timeout)
    after = bench.counters()
    result = re.search(r"PASS: guest->host (\d+) frames (\d+) bytes, host->guest (\d+) frames",
                       out)
    assert result, out
    sent = int(result[1])
    assert sent == (frames if direction != "rx" else 0)
    assert int(result[3]) == (frames if direction != "tx" else 0)
    assert after["transmitq_pkts"] - before["transmitq_pkts"] == sent
    assert after["transmitq_bytes"] - before["transmitq_bytes"] == int(result[2])
    for name in ("transmitq_drops", "receiveq_drops", "transmitq_faults", "receiveq_faults"):
        assert after[name] == before[name], name
    assert bench.reports() == ""


@pytest.mark.parametrize("event", ["on", "off", "random"])
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("mrg", ["on", "off"])
@pytest.mark.parametrize("ring", RINGS)
def test_roundtrip(bench, ring, mrg, chain, event):
    if (ring, chain) == ("packed", "mixed"):
        chain = "direct"
    roundtrip(bench, *RINGS[ring], *CHAINS[chain], "--mrg", mrg, "--event-idx", event)


@pytest.mark.parametrize("header", ["any", "alone", "joined"])
@pytest.mark.parametrize("kind", [["--legacy"], ["--v1", "off"], ["--v1", "on"]],
                         ids=["10-bytes", "12-bytes-legacy", "12-bytes"])
def test_roundtrip_header(bench, kind, header):
    roundtrip(bench, *kind, "--header", header)


@pytest.mark.parametrize("mrg", ["on", "off"])
@pytest.mark.parametrize("ring", RINGS)
def test_roundtrip_offloads(bench, ring, mrg):
    roundtrip(bench, *RINGS[ring], "--offloads", "on", "--mrg", mrg)


@pytest.mark.parametrize("bit", [0, 1, 7, 8, 10, 11, 12, 14, 54, 55, 56])
def test_roundtrip_without_one_offload(bench, bit):
    """The guest is served with the rest, which the kernel's tap may refuse to have alone.

    Without USO4 it has no USO6 either (and the other way round), and frames come cut.
    """
    cut = ["--cut"] if bit in (54, 55) else []
    roundtrip(bench, "--offloads", "on", "--without", bit, *cut, frames=200)


@pytest.mark.parametrize("tags", [1, 2])
def test_roundtrip_vlan(bench, tags):
    roundtrip(bench, "--vlans", tags)


@pytest.mark.parametrize("ring", RINGS)
def test_roundtrip_in_order(bench, ring):
    roundtrip(bench, *RINGS[ring], "--in-order")


@pytest.mark.parametrize("ring", RINGS)
def test_roundtrip_restarts(bench, ring):
    """GET_VRING_BASE every 50 frames: nothing lost, nothing doubled."""
    roundtrip(bench, *RINGS[ring], "--restart", 50)


@pytest.mark.parametrize("ring", RINGS)
def test_roundtrip_regions(bench, ring):
    """Eight regions side by side: buffers cross from one to the next."""
    roundtrip(bench, *RINGS[ring], "--regions", 8, "--adjacent")


def test_roundtrip_many(bench):
    roundtrip(bench, "--packed", "--max-len", 1514, frames=MANY, timeout=200)


@pytest.mark.parametrize("case", ["W1", "W3,W4,W5", "W7"])
def test_wake(bench, case):
    out = bench.run("fe-wake", "--case", case, "--rounds", WAKE_ROUNDS, "--pid",
                    bench.process.pid, timeout=150)
    assert re.search(r"RESULT fe-wake PASS: \d+ passed, 0 failed, 0 skipped", out), out


@pytest.mark.skipif(program("fe-rings") is None, reason="fe-rings was not built")
@pytest.mark.parametrize("layout", ["--split", "--packed"])
def test_rings(netns, short_dir, layout):
    """Drops in the daemon's counters are the rejected chains of the table, and no others."""
    with Bench(netns, short_dir, n=2) as bench:
        out = bench.run("fe-rings", layout, "--second", bench.socket(1), "--second-iface",
                        "tap1", "--gap-ms", GAP_MS, "--used-ms", LIMIT_MS, "--pid",
                        bench.process.pid, timeout=150)
        assert re.search(r"RESULT fe-rings PASS: \d+ passed, 0 failed", out), out
        counters = bench.end()
        drops = bench.drops()
        assert drops, "the table has rows that must be dropped"
        assert not [ring for ring, _ in drops if ring.startswith("net_vhost1")]
        for ring, values in counters.items():
            counted = sum(n for (of, _), n in drops.items() if of == ring)
            assert values["drops"] == counted, ring


def test_sndbuf_full_and_drained(netns, short_dir):
    """W6: a tap that takes little at a time: all goes out, in order, nothing lost."""
    with Bench(netns, short_dir, tap_keys=",sndbuf=20000") as bench:
        netns.run("tc", "qdisc", "add", "dev", "tap0", "root", "pfifo", "limit", 1000)
        roundtrip(bench, "--direction", "tx", "--max-len", 1514, direction="tx")
        assert_clean(bench.end())


def cpu_s(pid):
    with open("/proc/%d/stat" % pid) as stat:
        words = stat.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100


@pytest.mark.parametrize("gone", ["down", "deleted"])
def test_link_gone_while_flooding(netns, short_dir, gone):
    """O2: the daemon waits without burning its CPU and goes on when the link is back."""
    with Bench(netns, short_dir) as bench:
        front = Flooder(bench)
        with front:
            bench.wait_forwarding()
            front.wait_moving()
            if gone == "down":
                netns.ip("link", "set", "tap0", "down")
            else:
                netns.ip("link", "del", "tap0")
            wait_until(lambda: bench.state() == "link down", 5, "state: " + bench.state())
            start, began = cpu_s(bench.process.pid), time.monotonic()
            time.sleep(1)
            used = (cpu_s(bench.process.pid) - start) / (time.monotonic() - began)
            assert used < 0.3, "%.0f %% of a CPU with the link gone" % (100 * used)
            if gone == "down":
                netns.ip("link", "set", "tap0", "up")
            else:
                netns.ip("tuntap", "add", "dev", "tap0", "mode", "tap")
                netns.ip("link", "set", "tap0", "up")
            bench.wait_forwarding(limit_s=10)
            front.wait_moving()
        bench.end()


class Flooder:
    """fe-roundtrip in the background; its frames are not looked at."""

    def __init__(self, bench):
        self.bench = bench
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(
            self.bench.netns.command(
                "timeout", "-k", "1", 60, program("fe-soak"), "--flood",
                "--socket", self.bench.socket(), "--iface", "tap0"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_exc):
        # timeout passes TERM on, and KILL not.
        self.process.terminate()
        self.process.wait(10)

    def pkts(self):
        return self.bench.counters()["transmitq_pkts"]

    def wait_moving(self):
        before = self.pkts()
        wait_until(lambda: self.pkts() > before, 10, "no frame passes")
