# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the test front end (tests/frontend), run against a daemon in a namespace."""

import os
import re
from pathlib import Path

from daemon import BUILD, Daemon

PROGRAMS = BUILD / "tests" / "frontend"

SANITIZED = b"__asan_init" in (BUILD / "app" / "dpdk-vhost-rxpoll").read_bytes()
# Everything is slower, and CPUs are shared with whatever else the machine does.
GAP_MS = 250 if SANITIZED else 50
LIMIT_MS = 5000 if SANITIZED else 3000

REPORTS = re.compile(
    r"(AddressSanitizer|LeakSanitizer|runtime error|Assertion .* failed|stack smashing)")


def program(name):
    """Path of a test program; None if it was not built."""
    path = PROGRAMS / name
    return path if path.exists() else None


class Bench(Daemon):
    """A daemon with n vhost-user devices and a tap each; taps may have keys of their own."""

    def __init__(self, netns, log_dir, n=1, vhost_keys="", tap_keys="", extra=(), options=()):
        self.dir = Path(log_dir)
        self.n = n
        devices = []
        for i in range(n):
            devices += ["net_vhost%d,iface=%s%s" % (i, self.socket(i), vhost_keys),
                        "net_tap%d,iface=tap%d%s" % (i, i, tap_keys)]
        super().__init__(netns, log_dir, *devices, *extra, options=options)

    def socket(self, i=0):
        return self.dir / ("v%d" % i)

    def run(self, name, *args, device=0, timeout=120, check=True):
        """Runs a test program on a device; returns its output. Fails with that output."""
        path = program(name)
        assert path is not None, name + " was not built"
        done = self.netns.run("timeout", "-k", "1", "-s", "KILL", timeout, path, "--socket",
                              self.socket(device), "--iface", "tap%d" % device, *args,
                              timeout=timeout + 10, check=False)
        if check:
            bad = "\n".join(line for line in done.stdout.splitlines()
                            if not line.startswith("ok"))
            assert done.returncode == 0, "%s: status %d\n%s\n%s\n%s" % (
                name, done.returncode, bad, done.stderr, self.reports())
        return done.stdout

    def start(self):
        # DPDK's own allocations are not ours to judge; what is fatal ends the process.
        os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:handle_segv=1")
        os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        super().start()
        for i in range(self.n):
            # As large as a tap's may be: frames of up to 64 KiB are sent from the host.
            # A burst of 1,000 frames has to fit with room to spare.
            self.netns.ip("link", "set", "tap%d" % i, "mtu", 65521, "txqueuelen", 5000)

    def reports(self):
        """What sanitizers said in the daemon's log."""
        text = self.err.read_text(errors="replace")
        found = REPORTS.search(text)
        return text[found.start():found.start() + 4000] if found else ""

    def end(self):
        """Stops the daemon: it lives, nothing was reported. Returns the closing counters."""
        assert self.alive(), "the daemon died\n" + self.reports()
        counters = self.stop(limit_s=20)
        assert self.reports() == ""
        return counters

    def drops(self):
        """Closing counts of drops: {("net_vhost0:0 transmitq", "short"): 3}."""
        lines = re.findall(r"^(\S+ (?:transmitq|receiveq)) drop (\S+) (\d+)$",
                           self.out.read_text(), re.M)
        return {(ring, why): int(count) for ring, why, count in lines}

    def refusals(self):
        """Closing counts of refused messages: {"wrong protocol version": 5}."""
        lines = re.findall(r"^\S+ messages refused (\d+): (.*)$", self.out.read_text(), re.M)
        return {why: int(count) for count, why in lines}
