# SPDX-License-Identifier: BSD-3-Clause
"""Two guests joined with each other: on one poller, one copy; who waits, who is woken."""

import os
import re
import subprocess
import time

import pytest

from daemon import Daemon, assert_clean
from frontend import SANITIZED, program
from test_pcap import FROM_GUEST, TO_GUEST, read_pcapng

FRAMES = 300 if SANITIZED else 1000
MANY = 10000 if SANITIZED else 50000
ROUNDS = 300 if SANITIZED else 1000
SLEEPS = 12  # in a second: two or three that end by time


class Pair(Daemon):
    """A daemon with two guests; keys of their own."""

    def __init__(self, netns, log_dir, *keys, options=(), eal=()):
        self.sockets = ["%s/guest%d" % (log_dir, i) for i in range(2)]
        super().__init__(netns, log_dir, *(
            "net_vhost%d,iface=%s%s" % (i, path, keys[i] if keys else "")
            for i, path in enumerate(self.sockets)), options=options)
        self.args = [*eal, *self.args]

    def command(self, name, *args):
        return [program(name), "--socket", self.sockets[0], "--peer", self.sockets[1], *args]

    def run(self, name, *args, timeout=120):
        done = self.netns.run(*self.command(name, *args), timeout=timeout, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(name="cpus")
def cpus_fixture():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")


def roundtrip(pair, *args):
    """Random frames both ways; returns the counters of both devices that they must be seen in."""
    out = pair.run("fe-roundtrip", "--frames", FRAMES, "--max-len", 9000, *args)
    result = re.search(r"PASS: guest->host (\d+) frames (\d+) bytes, host->guest (\d+) frames "
                       r"(\d+) bytes", out)
    sent = [int(number) for number in result.groups()]
    found = [pair.counters("net_vhost%d:0" % i) for i in range(2)]
    for i, (a, b) in enumerate(((found[0], found[1]), (found[1], found[0]))):
        for direction in (a["transmitq_pkts"], a["transmitq_bytes"]), (b["receiveq_pkts"],
                                                                       b["receiveq_bytes"]):
            assert direction == tuple(sent[2 * i:2 * i + 2])
        assert a["transmitq_drops"] == a["receiveq_drops"] == 0
    return found


TWO_POLLERS = ["--lcores", "0@0,1@0,2@1"]


@pytest.mark.usefixtures("cpus")
@pytest.mark.parametrize("keys, pollers, straight", [
    (("", ""), [{0}, {1}], True),               # together, on either
    (("", ",poller=1"), [{1}], True),           # the one follows the other
    ((",poller=0", ""), [{0}], True),
    ((",poller=0", ",poller=1"), [{0, 1}], False),  # as the operator wants it
    ((",rx-poll=deferred,poll-us=50", ""), [{0}, {1}], False),
], ids=str)
def test_placement(netns, short_dir, keys, pollers, straight):
    with Pair(netns, short_dir, *keys, eal=TWO_POLLERS) as pair:
        found = roundtrip(pair, "--offloads", "on")
        worked = {i for i in range(2) if pair.ask("/vhp/poller,%d" % i)["passes_busy"] > 0}
        assert worked in pollers
        for counters in found:
            if straight:
                assert counters["straight_pkts"] > FRAMES / 2
            else:
                assert counters["straight_pkts"] == 0
        assert_clean(pair.stop())


@pytest.mark.frontend
@pytest.mark.parametrize("args", [
    ["--packed"], ["--packed", "--peer-packed", "--in-order"], ["--legacy"], ["--mrg", "off"],
    ["--indirect", "--event-idx", "random", "--restart", "200"],
    ["--rx-buffer", "512:4096", "--max-segs", "8"], ["--regions", "8", "--adjacent"],
], ids=" ".join)
def test_straight(netns, short_dir, args):
    with Pair(netns, short_dir) as pair:
        for counters in roundtrip(pair, "--offloads", "on", *args):
            # The bounce buffer takes those that find too few buffers.
            assert FRAMES / 10 < counters["straight_pkts"] <= FRAMES
        assert_clean(pair.stop())


@pytest.mark.frontend
def test_one_without_offloads(netns, short_dir):
    """What the receiver did not accept is cut on the way; the other direction goes straight."""
    with Pair(netns, short_dir, "", ",tso=0") as pair:
        pair.run("fe-roundtrip", "--frames", FRAMES, "--offloads", "on", "--cut", "--kinds",
                 "tso4,tso6,tcp4,udp6", "--max-len", 30000)
        found = [pair.counters("net_vhost%d:0" % i) for i in range(2)]
        assert found[0]["straight_pkts"] > FRAMES / 2
        assert found[1]["straight_pkts"] < FRAMES < found[1]["receiveq_pkts"]
        assert_clean(pair.stop())


@pytest.mark.frontend
@pytest.mark.usefixtures("cpus")
def test_moves(netns, short_dir):
    """Together and apart again and again, under traffic: nothing lost, nothing doubled."""
    with Pair(netns, short_dir, eal=TWO_POLLERS) as pair, \
            subprocess.Popen(netns.command(*pair.command(
                "fe-roundtrip", "--frames", MANY, "--max-len", 3000, "--stall-ms", 20000)),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as front_end:
        pair.wait_forwarding("net_vhost0:0")
        pair.wait_forwarding("net_vhost1:0")
        moves = 0
        while front_end.poll() is None and moves < 2000:
            moved = pair.ask("/vhp/move,net_vhost%d:0=%d" % (moves % 2, moves // 2 % 2))
            moves += moved is not None  # it is not while the front end starts, or when it is done
            time.sleep(0.002)
        out, _ = front_end.communicate(timeout=100)
        assert front_end.returncode == 0, out
        assert moves >= 4
        for i in range(2):
            assert 0 < pair.counters("net_vhost%d:0" % i)["straight_pkts"] < MANY
        assert_clean(pair.stop())


@pytest.mark.frontend
@pytest.mark.parametrize("options", [["--poll-us", "50"], []], ids=str)
def test_woken(netns, short_dir, options):
    """fe-guests: a lost wake-up, a descriptor used too early, a ring touched after its stop."""
    with Pair(netns, short_dir, options=options) as pair:
        pair.run("fe-guests", "--pid", pair.process.pid, "--rounds", ROUNDS)
        assert pair.ask("/vhp/poller,0")["wakes_lost"] == 0
        assert_clean(pair.stop())


def sleeps(pair):
    return pair.ask("/vhp/poller,0")["sleeps"]


def test_sleeps(netns, short_dir):
    """Nobody looks again and again at a receiver without buffers, nor at idle guests."""
    with Pair(netns, short_dir) as pair, subprocess.Popen(
            netns.command(*pair.command("fe-guests", "--case", "hold")), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as front_end:
        held = 0
        for line in front_end.stdout:
            if line != "holding\n":
                continue
            time.sleep(0.2)
            before, poller = sleeps(pair), pair.ask("/vhp/poller,0")
            time.sleep(1)
            after = pair.ask("/vhp/poller,0")
            assert after["sleeps"] - before < SLEEPS
            assert after["busy_cycles"] == poller["busy_cycles"]
            held += 1
        assert front_end.wait(60) == 0
        assert held == 2
        assert_clean(pair.stop())


def test_capture(netns, short_dir):
    """Each frame is in the file twice: where it left a guest, and where it came to the other."""
    path = short_dir / "pair.pcapng"
    with Pair(netns, short_dir, options=["--pcap", path]) as pair:
        found = roundtrip(pair, "--frames", 100, "--offloads", "on")
        pair.stop()
    _, frames = read_pcapng(path)
    for i, counters in enumerate(found):
        for direction, name in ((FROM_GUEST, "transmitq"), (TO_GUEST, "receiveq")):
            of_it = [frame for where, way, _, frame in frames if (where, way) == (i, direction)]
            assert len(of_it) == counters[name + "_pkts"]
            assert sum(map(len, of_it)) == counters[name + "_bytes"]
    for i in range(2):
        sent = [frame for where, way, _, frame in frames if (where, way) == (i, FROM_GUEST)]
        got = [frame for where, way, _, frame in frames if (where, way) == (1 - i, TO_GUEST)]
        assert sent == got
