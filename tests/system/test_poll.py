# SPDX-License-Identifier: BSD-3-Clause
"""When the daemon polls and when it sleeps: idle cost, run-time changes, moves."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from daemon import BUILD, Daemon, assert_clean

FRONT_END = BUILD / "tests" / "frontend"
TICKS = os.sysconf("SC_CLK_TCK")
CPUS = sorted(os.sched_getaffinity(0))
MOVES = 1000

pytestmark = pytest.mark.frontend


def cpu_s(daemon):
    """Seconds of CPU time that all threads of the daemon have used."""
    fields = Path("/proc/%d/stat" % daemon.process.pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def devices(directory, n):
    """--vdev lines of n devices, each with a tap."""
    lines = []
    for i in range(n):
        lines += ["net_vhost%d,iface=%s/v%d" % (i, directory, i), "net_tap%d,iface=tap%d" % (i, i)]
    return lines


def open_tap(netns, name="tap0"):
    netns.ip("link", "set", name, "mtu", "65521")


def roundtrip(netns, directory, *args):
    return subprocess.Popen(
        netns.command(FRONT_END / "fe-roundtrip", "--socket", directory / "v0", "--iface", "tap0",
                      *args),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(front_end, limit_s=60):
    out, _ = front_end.communicate(timeout=limit_s)
    assert front_end.returncode == 0, out


def test_idle_costs_nothing(netns, short_dir):
    """64 devices with nothing to do: below 1 % of a core, all threads together."""
    with Daemon(netns, short_dir, *devices(short_dir, 64)) as daemon:
        before, since = cpu_s(daemon), time.monotonic()
        time.sleep(4)
        share = (cpu_s(daemon) - before) / (time.monotonic() - since)
        assert share < 0.01
        assert daemon.ask("/vhp/poller,0")["wakes_lost"] == 0
        daemon.stop()


@pytest.mark.parametrize("window", ["auto", "0", "50", "forever"])
def test_all_arrives_with_any_window(netns, short_dir, window):
    with Daemon(netns, short_dir, *devices(short_dir, 1),
                options=["--poll-us", window]) as daemon:
        open_tap(netns)
        finish(roundtrip(netns, short_dir, "--frames", "2000"))
        poller = daemon.ask("/vhp/poller,0")
        assert poller["wakes_lost"] == 0
        assert (poller["sleeps"] > 10) or window == "forever"
        look = daemon.ask("/vhp/histogram,net_vhost0:0")["look"]
        qpair = daemon.counters()
        assert sum(look) == qpair["turns_busy"] > 0
        assert_clean(daemon.stop())


def test_window_changes_under_traffic(netns, short_dir):
    """Each value in turn, while every byte is compared."""
    with Daemon(netns, short_dir, *devices(short_dir, 1)) as daemon:
        open_tap(netns)
        front_end = roundtrip(netns, short_dir, "--frames", "20000")
        changes = 0
        while front_end.poll() is None:
            value = ("0", "auto", "7", "forever")[changes % 4]
            assert daemon.ask("/vhp/poll_us,net_vhost0=" + value) == "net_vhost0=" + value
            changes += 1
        finish(front_end)
        assert changes > 4
        # "forever" never sleeps, and 0 does from then on.
        daemon.ask("/vhp/poll_us,net_vhost0=0")
        assert daemon.ask("/vhp/poll_us,net_vhost0=x") is None
        assert daemon.ask("/vhp/poll_us,net_vhost1=5") is None
        assert_clean(daemon.stop())


@pytest.mark.parametrize("layout", [[], ["--packed"]])
def test_moves_between_pollers(netns, short_dir, layout):
    """1,000 moves of a qpair between two pollers, while every byte is compared."""
    daemon = Daemon(netns, short_dir, *devices(short_dir, 1), options=["--rebalance", "off"],
                    start=False)
    daemon.args[:0] = ["--lcores", "0@%d,1@%d,2@%d" % (CPUS[0], CPUS[0], CPUS[-1])]
    with daemon:
        daemon.start()
        open_tap(netns)
        moved = 0
        while moved < MOVES:
            front_end = roundtrip(netns, short_dir, "--frames", "20000", *layout)
            while front_end.poll() is None:
                if daemon.ask("/vhp/move,net_vhost0:0=%d" % (moved % 2)) is not None:
                    moved += 1
                time.sleep(0.0005)
            finish(front_end)
        # The first may be to where it is.
        assert daemon.counters()["moves"] >= MOVES - 20
        for poller in range(2):
            assert daemon.ask("/vhp/poller,%d" % poller)["passes_busy"] > 0
            assert daemon.ask("/vhp/poller,%d" % poller)["wakes_lost"] == 0
        assert daemon.ask("/vhp/move,net_vhost0:0=2") is None
        assert_clean(daemon.stop())
