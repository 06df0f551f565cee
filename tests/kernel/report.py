#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the console logs of the kernel rig: one table of medians and ranges for each
plan, then one line "pass NAME", "FAIL NAME: why" or "skip NAME: why" for each check.

usage: report.py PLAN=LOG...
"""

import re
import statistics
import sys

ORDER = ["baseline", "mainline", "rxpoll-2", "rxpoll-4", "rxpoll", "wait", "vhost-net-mainline",
         "vhost-net-rxpoll", "daemon", "testpmd"]
# A run counts as disturbed if a fixed piece of work before or after it took this many times
# as long as it did at best in that boot.
BUSY = 1.4
# Likewise if the front end's own thread was kept from running more often than this a second.
STALLS = 3
# Fewer undisturbed runs than this are no base for a verdict.
ENOUGH = 2
COLUMNS = {
    "rx_per_s": "{:.0f}", "gaps_per_s": "{:.1f}", "kicks_pct": "{:.3f}", "per_s": "{:.0f}",
    "min_us": "{:.0f}", "cpu_ms_each": "{:.3f}", "median_us": "{:.0f}", "hangs": "{:.0f}",
}


class Plan:
    """The results of one boot: values by (kind, variant, key)."""

    def __init__(self, path):
        self.values = {}
        self.best_calib = None
        self.checks = []
        self.status = {}
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in log:
                self.take(line.rstrip())

    def take(self, line):
        if line.startswith("res load "):
            self.checks.append((False, line))
            return
        m = re.match(r"res (\S+) (\S+) status=(\d+) ?(.*)", line)
        if m:
            kind, variant, status, rest = m.groups()
            self.status.setdefault((kind, variant), []).append((int(status), rest))
            found = {k: float(v) for k, v in re.findall(r"(\w+)=(-?[\d.]+)", rest)}
            calib = found.pop("calib_us", 0)
            if found.get("stalls_per_s", 0) > STALLS:
                calib = float("inf")
            for key, value in found.items():
                self.values.setdefault((kind, variant, key), []).append((value, calib))
            if 0 < calib < float("inf"):
                self.best_calib = min(self.best_calib or calib, calib)
            return
        m = re.match(r"check (pass|FAIL) (.*)", line)
        if m:
            self.checks.append((m.group(1) == "pass", m.group(2)))
        m = re.match(r"rig: kernel complaints (\d+)", line)
        if m:
            self.checks.append((m.group(1) == "0", f"no complaint of the kernel ({m.group(1)})"))

    def quiet(self, kind, variant, key):
        """The values of the runs during which the host had nothing else to do."""
        return [value for value, calib in self.values.get((kind, variant, key), [])
                if calib <= (self.best_calib or 0) * BUSY]

    def any(self, kind, variant, key):
        """The worst value of all runs, for what does not depend on speed."""
        return max((value for value, _ in self.values.get((kind, variant, key), [])), default=None)

    def ratio(self, kind, key, over, under):
        a, b = self.firm(kind, over, key), self.firm(kind, under, key)
        return a / b if a is not None and b else None

    def firm(self, kind, variant, key):
        """The median, if there are enough runs behind it."""
        got = self.quiet(kind, variant, key)
        return statistics.median(got) if len(got) >= ENOUGH else None

    def table(self):
        kinds = list(dict.fromkeys(k for k, _, _ in self.values))
        for kind in kinds:
            keys = [c for c in COLUMNS if any(k == kind and c == key for k, _, key in self.values)]
            variants = sorted({v for k, v, _ in self.values if k == kind},
                              key=lambda v: ORDER.index(v) if v in ORDER else 99)
            if not keys:
                continue
            print(f"\n{kind:24}" + "".join(f"{k:>30}" for k in keys))
            for variant in variants:
                row = f"  {variant:22}"
                for key in keys:
                    row += f"{self.cell(kind, variant, key):>30}"
                print(row)

    def cell(self, kind, variant, key):
        got, mark = self.quiet(kind, variant, key), ""
        if not got:
            got, mark = [v for v, _ in self.values.get((kind, variant, key), [])], "*"
        if not got:
            return "-"
        form = COLUMNS[key].format
        text = f"{form(statistics.median(got))} ({form(min(got))}..{form(max(got))}, {len(got)})"
        return text + mark


class Report:
    """Checks that follow from the figures; the plans' own checks are passed on."""

    def verdict(self, good, name, why=""):
        print(f"pass {name}" if good else f"FAIL {name}: {why}")

    def bar(self, value, name, test, text):
        if value is None:
            print(f"skip {name}: too few runs that other work of the host did not disturb")
        else:
            self.verdict(test(value), f"{name} ({value:.3g})", text)

    def traffic(self, plan, name, exempt=()):
        """Every run of the front end has to end well: nothing lost, nothing changed."""
        for (kind, variant), runs in plan.status.items():
            if (kind, variant) in exempt or not kind.startswith(
                    ("echo", "flood", "paced", "bounce", "crypt", "rekey")):
                continue
            bad = [rest for status, rest in runs if status]
            self.verdict(not bad, f"{name}: {kind} {variant}, {len(runs)} runs", "; ".join(bad))

    def hang(self, plan, name):
        # With an event index a guest kicks by itself once it passes the old index, so
        # there mainline is not expected to hang.
        for kind in ("hang", "hang-event"):
            for variant in ("rxpoll-2", "rxpoll"):
                if (kind, variant, "hangs") in plan.values:
                    self.bar(plan.any(kind, variant, "hangs"),
                             f"{name}: {kind}: {variant} hangs of 12", lambda v: v == 0,
                             "a receive notification was lost")
        self.bar(plan.any("hang", "mainline", "hangs"),
                 f"{name}: hang: mainline hangs of 12, as it is expected to",
                 lambda v: v > 0, "the test does not show what it is for")

    def vhost(self, plan):
        self.traffic(plan, "vhost")
        self.bar(plan.ratio("echo20", "rx_per_s", "rxpoll", "baseline"),
                 "vhost: receive, T=20 ms W=128, rxpoll over baseline", lambda v: v >= 1.8,
                 "the bar is 1.8")
        self.bar(plan.firm("echo20", "rxpoll", "gaps_per_s"),
                 "vhost: gaps >= 10 ms of rxpoll per s", lambda v: v <= 5, "the bar is 5")
        self.bar(plan.ratio("flood16", "kicks_pct", "rxpoll", "mainline"),
                 "vhost: kicks per frame, short ring, rxpoll over mainline", lambda v: v < 0.5,
                 "fewer are expected")

    def lost(self, plan):
        self.traffic(plan, "lost")
        self.hang(plan, "lost")
        window = plan.any("pair", "baseline", "window_us")
        for variant, low in (("baseline", True), ("mainline", False), ("rxpoll", False),
                             ("rxpoll=0", True)):
            # The least of all rounds shows that it need not wait. That it waits, the median
            # shows: a busy machine now and then lets the front end miss its moment.
            got = plan.any("pair", variant, "median_us" if low else "min_us")
            self.bar(got, f"lost: pair: {variant}: us until a frame is received that came with "
                     "transmit work", lambda v, low=low: v > window / 2 if low else v < window / 2,
                     "baseline waits for a window, the others do not")
        self.bar(plan.any("paced-packet", "rxpoll", "kicks_pct"),
                 "lost: kicks per 100 frames, packet socket, rxpoll", lambda v: v < 10,
                 "the window has no effect")
        self.bar(plan.any("paced-packet", "mainline", "kicks_pct"),
                 "lost: kicks per 100 frames, packet socket, mainline, as expected",
                 lambda v: v > 50, "the test does not show what it is for")

    def short(self, plan):
        self.traffic(plan, "short")
        self.hang(plan, "short")

    def crypto(self, plan):
        self.traffic(plan, "crypto")
        self.bar(plan.ratio("rekey8", "per_s", "wait", "baseline"),
                 "crypto: keys per s, 8 workers, wait over baseline", lambda v: v >= 2.5,
                 "the bar is 2.5")
        self.bar(plan.ratio("rekey8", "cpu_ms_each", "wait", "baseline"),
                 "crypto: CPU per key, 8 workers, wait over baseline", lambda v: v <= 1 / 3,
                 "the bar is 1/3")
        self.bar(plan.ratio("rekey1", "per_s", "wait", "baseline"),
                 "crypto: keys per s, 1 worker, wait over baseline", lambda v: v >= 0.2,
                 "the bar is 0.2")

    def user(self, plan):
        self.traffic(plan, "user")

    def gone(self, plan):
        pass

    @staticmethod
    def over_testpmd(plan, kind):
        """testpmd keeps the front end from running, so that its own runs all count."""
        daemon = plan.firm(kind, "daemon", "rx_per_s")
        testpmd = plan.any(kind, "testpmd", "rx_per_s")
        return daemon / testpmd if daemon and testpmd else None

    def side(self, plan):
        self.traffic(plan, "side")
        for kind in ("echo", "flood"):
            self.bar(plan.ratio(kind, "rx_per_s", "daemon", "vhost-net-mainline"),
                     f"side: {kind}: daemon over vhost-net mainline", lambda v: v >= 0.7,
                     "level with it is expected, less what emulation makes of a system call a frame")
            self.bar(self.over_testpmd(plan, kind), f"side: {kind}: daemon over testpmd",
                     lambda v: v >= 3, "far ahead is expected")
        self.bar(plan.ratio("echo", "rx_per_s", "vhost-net-rxpoll", "vhost-net-mainline"),
                 "side: echo: vhost-net rxpoll over mainline", lambda v: v >= 0.9,
                 "not behind, within the noise of emulation")


def main():
    report = Report()
    plans = [(arg.partition("=")[0], Plan(arg.partition("=")[2])) for arg in sys.argv[1:]]
    for name, plan in plans:
        print(f"\n== {name}: median (least..most, runs); * disturbed by other work of the host",
              end="")
        plan.table()
    print()
    for name, plan in plans:
        for good, what in plan.checks:
            report.verdict(good, f"{name}: {what}")
        getattr(report, name)(plan)


if __name__ == "__main__":
    main()
