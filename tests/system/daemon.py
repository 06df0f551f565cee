# SPDX-License-Identifier: BSD-3-Clause
"""The daemon as a process of a test: start, ask, stop, counters."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("VHP_BUILD", ROOT / "build"))
BINARY = BUILD / "app" / "dpdk-vhost-rxpoll"
READY_S = 30  # a sanitizer build on a busy machine takes some


def wait_until(true, limit_s, what, step_s=0.02):
    """Waits until true() holds; fails the test with what after limit_s."""
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, "after %g s: %s" % (limit_s, what)
        time.sleep(step_s)


class Daemon:
    """One run of the daemon in a namespace. Use as a context manager.

    netns: a Netns. log_dir: directory for stdout and stderr. devices: the
    values of --vdev. options: those after "--". start=False leaves start() to
    the test.
    """

    _numbers = itertools.count()

    def __init__(self, netns, log_dir, *devices, options=(), start=True):
        self.number = next(self._numbers)
        self.prefix = "vhptest%d-%d" % (os.getpid(), self.number)
        self.out = Path(log_dir) / ("daemon%d.out" % self.number)
        self.err = Path(log_dir) / ("daemon%d.err" % self.number)
        self.args = ["--file-prefix", self.prefix]
        for device in devices:
            self.args += ["--vdev", device]
        self.args += ["--", *options] if options else []
        self.netns = netns
        self.process = None
        self.stop_s = None
        self._start_at_once = start

    def __enter__(self):
        if self._start_at_once:
            self.start()
        return self

    def __exit__(self, *_exc):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        telemetry = Path("/var/run/dpdk", self.prefix)
        for leftover in telemetry.glob("*"):
            leftover.unlink()
        if telemetry.is_dir():
            telemetry.rmdir()

    def start(self):
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                self.netns.command(BINARY, *self.args), stdin=subprocess.DEVNULL,
                stdout=out, stderr=err)
        wait_until(lambda: self.ready() or self.process.poll() is not None, READY_S, "not ready")
        assert self.ready(), "the daemon ended: " + self.err.read_text()

    def ready(self):
        return re.search("^ready: ", self.out.read_text(), re.M) is not None

    def alive(self):
        return self.process.poll() is None

    def stop(self, ending=signal.SIGTERM, limit_s=10):
        """Ends it; returns its closing counters as {"net_vhost0:0 transmitq": {...}}.

        The time that took is in stop_s. Fails if the status is not 0.
        """
        started = time.monotonic()
        self.process.send_signal(ending)
        status = self.process.wait(limit_s)
        self.stop_s = time.monotonic() - started
        assert status == 0, self.err.read_text()
        return self.summary()

    def summary(self):
        found = {}
        for line in self.out.read_text().splitlines():
            match = re.fullmatch(r"(\S+ (?:transmitq|receiveq)) (pkts .*)", line)
            if match:
                words = match[2].split()
                found[match[1]] = dict(zip(words[::2], map(int, words[1::2])))
        return found

    def ask(self, command):
        """Asks rte_telemetry, as dpdk-telemetry.py does; returns the answer's value."""
        path = "/var/run/dpdk/%s/dpdk_telemetry.v2" % self.prefix
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(5)
            sock.connect(path)
            sock.recv(1024)  # the greeting
            sock.sendall(command.encode())
            return json.loads(sock.recv(65536))[command.split(",")[0]]

    def counters(self, qpair="net_vhost0:0"):
        return self.ask("/vhp/qpair," + qpair)

    def state(self, qpair="net_vhost0:0"):
        return dict(line.split(" ", 1) for line in self.ask("/vhp/devices"))[qpair]

    def wait_forwarding(self, qpair="net_vhost0:0", limit_s=10):
        wait_until(lambda: self.state(qpair) == "forwarding", limit_s,
                   "%s is not forwarding" % qpair)


def assert_clean(counters):
    """No frame dropped, no virtqueue broken, in what Daemon.stop() returned."""
    assert counters, "no counters"
    for ring, values in counters.items():
        assert values["drops"] == 0, (ring, values)
        assert values["faults"] == 0, (ring, values)
