# SPDX-License-Identifier: BSD-3-Clause
"""When the daemon polls and when it sleeps: idle cost, run-time changes, moves."""

import json
import os
import re
import socket
import subprocess
import time

import pytest

from daemon import BUILD, Daemon, assert_clean

FRONT_END = BUILD / "tests" / "frontend"
CPUS = sorted(os.sched_getaffinity(0))
MOVES = 1000

# With the sanitizers as well; CPU time says nothing there.
sanitized_too = pytest.mark.frontend


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


def many(netns, daemon, directory, case, *args, limit_s=60):
    """Runs fe-many; returns what it printed. Fails if a frame was not served."""
    done = netns.run("timeout", "-k", "1", "-s", "KILL", limit_s, FRONT_END / "fe-many",
                     "--socket", directory / "v", "--pid", daemon.process.pid, "--iface", "tap0",
                     "--case", case, *args, timeout=limit_s + 10, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def percent(out):
    return float(re.search(r"([0-9.]+) % of a core", out)[1])


def test_many_devices(netns, short_dir):
    """64 connected devices: idle below 1 % of a core, all threads together; and in the way of
    a busy one not much. On a machine with other work one run of three has to do."""
    with Daemon(netns, short_dir, *devices(short_dir, 64)) as daemon:
        for i in range(64):
            netns.ip("link", "set", "tap%d" % i, "up")
        shares, ratios = [], []
        while len(shares) < 3 and (not shares or shares[-1] >= 1):
            shares.append(percent(many(netns, daemon, short_dir, "idle", "--slice-ms", 1000)))
        assert shares[-1] < 1, shares
        while len(ratios) < 3 and (not ratios or ratios[-1] < 0.7):
            out = many(netns, daemon, short_dir, "busy", "--slice-ms", 200, "--limit-us", 50000)
            ratios.append(float(re.search(r"median ratio ([0-9.]+)", out)[1]))
        assert ratios[-1] >= 0.7, ratios
        assert daemon.ask("/vhp/poller,0")["wakes_lost"] == 0
        assert_clean(daemon.stop())


@pytest.mark.parametrize("layout", [[], ["--packed"]])
def test_no_receive_buffers(netns, short_dir, layout):
    """A tap full of frames and no buffer for them costs nothing; one buffer and a kick is
    enough for the flow to go on, in order and whole."""
    with Daemon(netns, short_dir, *devices(short_dir, 1)) as daemon:
        netns.ip("link", "set", "tap0", "txqueuelen", 5000, "up")
        out = many(netns, daemon, short_dir, "starved", "--slice-ms", 300, *layout)
        assert percent(out) < 10
        assert "1000 frames in order" in out
        assert daemon.ask("/vhp/poller,0")["wakes_lost"] == 0
        assert_clean(daemon.stop())


@pytest.mark.parametrize("layout", [[], ["--packed"]])
def test_a_lost_wake_up_is_counted(netns, short_dir, layout):
    """A guest that does not kick although asked to is what a lost wake-up looks like: so the
    counter that is 0 in all other tests can be something else."""
    with Daemon(netns, short_dir, *devices(short_dir, 1)) as daemon:
        out = many(netns, daemon, short_dir, "mute", "--rounds", 4, *layout)
        due = out.count("a kick was due")
        # What the host's kernel says on a new interface may wake it in time.
        assert 0 < daemon.ask("/vhp/poller,0")["wakes_lost"] <= due
        assert daemon.counters()["transmitq_pkts"] == 4
        daemon.stop()


def test_poll_waste_is_bounded(netns, short_dir):
    """Traffic for which windows of 20 ms pay and do not pay in turn."""
    for waste in (100, 2):
        with Daemon(netns, short_dir, *devices(short_dir, 1),
                    options=["--poll-us-max", "20000", "--poll-waste", str(waste)]) as daemon:
            shares = []
            while len(shares) < 3 and (not shares or (waste == 2 and shares[-1] >= 10)):
                shares.append(percent(many(netns, daemon, short_dir, "sparse",
                                           "--slice-ms", 300)))
            poller = daemon.ask("/vhp/poller,0")
            polled = poller["poll_cycles"] / sum(
                poller[name] for name in ("poll_cycles", "busy_cycles", "sleep_cycles"))
            if waste == 100:
                # Else the next line would say nothing.
                assert polled > 0.1 and poller["windows_grown"] > 5
            else:
                assert shares[-1] < 10 and poller["windows_refused"] > 0, (shares, poller)
            assert_clean(daemon.stop())


@sanitized_too
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


@sanitized_too
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


class Commands:
    """One connection for many commands to a daemon."""

    def __init__(self, daemon):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(5)
        self.sock.connect("/var/run/dpdk/%s/dpdk_telemetry.v2" % daemon.prefix)
        self.sock.recv(1024)

    def ask(self, command):
        self.sock.sendall(command.encode())
        return json.loads(self.sock.recv(65536))[command.split(",")[0]]

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.sock.close()


def two_pollers(netns, directory, n, rebalance):
    daemon = Daemon(netns, directory, *devices(directory, n), options=["--rebalance", rebalance],
                    start=False)
    daemon.args[:0] = ["--lcores", "0@%d,1@%d,2@%d" % (CPUS[0], CPUS[0], CPUS[-1])]
    return daemon


@sanitized_too
@pytest.mark.parametrize("layout", [[], ["--packed"]])
def test_moves_between_pollers(netns, short_dir, layout):
    """1,000 moves and more of a qpair between two pollers, as fast as they can be asked for,
    while every byte is compared."""
    with two_pollers(netns, short_dir, 1, "off") as daemon:
        daemon.start()
        open_tap(netns)
        asked = 0
        with Commands(daemon) as commands:
            while asked < MOVES or daemon.counters()["moves"] < MOVES:
                front_end = roundtrip(netns, short_dir, "--frames", "10000", *layout)
                while front_end.poll() is None:
                    for _ in range(10):
                        moved = commands.ask("/vhp/move,net_vhost0:0=%d" % (asked % 2))
                        asked += moved is not None
                finish(front_end)
                assert asked > 0
        for poller in range(2):
            assert daemon.ask("/vhp/poller,%d" % poller)["passes_busy"] > 0
            assert daemon.ask("/vhp/poller,%d" % poller)["wakes_lost"] == 0
        assert daemon.ask("/vhp/move,net_vhost0:0=2") is None
        assert_clean(daemon.stop())


@sanitized_too
def test_rebalance_under_load(netns, short_dir):
    """Two busy devices on one of two pollers: one moves by itself, and every byte of both is
    compared meanwhile."""
    with two_pollers(netns, short_dir, 2, "1") as daemon:
        daemon.start()
        rounds = 0
        while "moves from poller" not in daemon.err.read_text():
            assert rounds < 12, "no move"
            front_ends, forced = [], False
            for i in range(2):
                open_tap(netns, "tap%d" % i)
                front_ends.append(subprocess.Popen(
                    netns.command(FRONT_END / "fe-roundtrip", "--socket", short_dir / ("v%d" % i),
                                  "--iface", "tap%d" % i, "--frames", "20000"),
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            while any(front_end.poll() is None for front_end in front_ends):
                homes = [daemon.counters("net_vhost%d:0" % i)["poller"] for i in range(2)]
                if not forced and homes in ([0, 1], [1, 0]):
                    forced = daemon.ask("/vhp/move,net_vhost0:0=%d" % homes[1]) is not None
                time.sleep(0.05)
            for front_end in front_ends:
                finish(front_end)
            rounds += 1
        assert sum(daemon.counters("net_vhost%d:0" % i)["moves"] for i in range(2)) >= 1
        assert_clean(daemon.stop())
