# SPDX-License-Identifier: BSD-3-Clause
"""Runs rounds of workloads over the back ends in turn and reports medians. See bench.sh."""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys

from bench_host import Bench, Failed, Skipped
from bench_work import GROUPS, tap_limit


QUICK = ("rxpoll", "testpmd", "interleave", "deferred")


def parse():
    p = argparse.ArgumentParser(prog="bench.sh")
    p.add_argument("--quick", action="store_true", help="one short round, under 60 s")
    p.add_argument("--only", choices=sorted(GROUPS), action="append", help="this group; repeat")
    p.add_argument("--rounds", type=int, help="default 5, with --quick 1")
    p.add_argument("--ms", type=int, help="length of each run; default 1000, with --quick 300")
    p.add_argument("--backend", action="append", help="only this one; repeat")
    p.add_argument("--json", help="file for one JSON object a line")
    p.add_argument("--plot", help="directory for PNG charts")
    p.add_argument("--build", required=True, help=argparse.SUPPRESS)
    p.add_argument("--dir", required=True, help=argparse.SUPPRESS)
    p.add_argument("--tag", required=True, help=argparse.SUPPRESS)
    a = p.parse_args()
    a.rounds = a.rounds or (1 if a.quick else 5)
    a.ms = a.ms or (300 if a.quick else 1000)
    return a


def run_once(group, name, bench, args):
    if group == "frames" and name == "tap-limit":
        return tap_limit(bench, args.ms)
    return GROUPS[group][0](bench, name, args.ms, args.quick)


def run_group(group, bench, args):
    """Rounds A B A B; returns {(guest, workload): {backend: [samples]}}."""
    names = list(GROUPS[group][1])
    if args.quick:
        names = [n for n in names if n in QUICK or (group, n) == ("frames", "tap-limit")]
    if args.backend:
        names = [n for n in names if n in args.backend]
    found = {}
    for number in range(args.rounds):
        for name in list(names):
            print("bench.sh: %s, round %d of %d: %s" % (group, number + 1, args.rounds, name),
                  file=sys.stderr)
            try:
                got = run_once(group, name, bench, args)
            except Skipped as why:
                print("bench.sh: %s skipped: %s" % (name, why))
                names.remove(name)
                continue
            except (Failed, subprocess.TimeoutExpired) as why:
                print("bench.sh: %s, %s: no figure in round %d: %s" % (
                    group, name, number + 1, why))
                continue
            for key, value in got.items():
                found.setdefault(key, {}).setdefault(name, []).append(value)
    return found


def rows_of(group, found):
    for (guest, workload), by_name in found.items():
        medians = {n: statistics.median(s.value for s in v) for n, v in by_name.items()}
        for name, samples in by_name.items():
            values = [s.value for s in samples]
            yield {
                "group": group, "backend": name, "guest": guest, "workload": workload,
                "median": medians[name], "min": min(values), "max": max(values),
                "unit": samples[0].unit, "better": "more" if samples[0].better > 0 else "less",
                "rounds": len(values),
                "backend_cpu": statistics.median(s.backend_cpu for s in samples),
                "other_cpu": statistics.median(s.other_cpu for s in samples),
                "limit": max([s.limit for s in samples], key=[s.limit for s in samples].count),
                "ratios": {n: medians[name] / m for n, m in medians.items() if m and n != name},
            }


def show(rows):
    last = None
    for r in rows:
        key = (r["guest"], r["workload"])
        if key != last:
            print("\n%s, guest: %s (%s, %s is better)" % (
                r["workload"], r["guest"], r["unit"], r["better"]))
            last = key
        ratios = " ".join("%.2fx %s" % (v, n) for n, v in r["ratios"].items())
        print("  %-15s %9.4f  [%.4f .. %.4f]  back end's CPU %3.0f %%, CPU 0 %3.0f %%, limit %s  %s"
              % (r["backend"], r["median"], r["min"], r["max"], 100 * r["backend_cpu"],
                 100 * r["other_cpu"], r["limit"] or "-", ratios))


def prefer():
    """Above the machine's other jobs, whichever way its scheduler groups them."""
    os.setsid()
    os.nice(-15)
    try:
        with open("/proc/self/autogroup", "w") as group:
            group.write("-15")
    except OSError:
        pass  # this kernel has no autogroups: the nice value is all


def main():
    args = parse()
    # The shell's trap needs this process to end, and finally to run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Other jobs of the machine disturb less then; back ends and guests alike inherit it.
    prefer()
    bench = Bench(args.dir, args.build, args.tag)
    rows = []
    print("load before: %s" % " ".join("%.2f" % v for v in os.getloadavg()))
    try:
        for group in args.only or [g for g in GROUPS if g != "qemu" or not args.quick]:
            new = list(rows_of(group, run_group(group, bench, args)))
            show(new)
            rows += new
    finally:
        bench.close()
    print("\nload after: %s" % " ".join("%.2f" % v for v in os.getloadavg()))
    if args.json:
        with open(args.json, "w") as out:
            for row in rows:
                out.write(json.dumps(row) + "\n")
    if args.plot:
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
        import plot
        plot.charts(rows, args.plot)
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
