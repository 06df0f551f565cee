# SPDX-License-Identifier: BSD-3-Clause
"""bench.sh --only crypto and crypto-data: a virtio-crypto device and its guest's driver.

crypto: sessions made and destroyed by W workers through the control queue, in two ways. busy: a
worker polls for its own answer with the lock held; wait: it sleeps, and a call completes all
that is done. Each with a daemon that sleeps at once, one that sleeps when it has been idle for
a while (the default), and one that always polls. Then how long an answer takes, also
while the same poller carries a network device's flood.

crypto-data: AES-CBC through the data queue, and what dpdk-test-crypto-perf gets out of the same
cryptodev without a guest.

The daemon has CPU 1, everything else CPU 0. Rounds take turns; medians, least and most.
"""

import argparse
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench_host import Failed, Netns, Process, cpu_s

SESSIONS = re.compile(r"crypto (\S+) workers (\d+): (\d+) operations/s, CPU (\d+) %, p50 (\d+) us, "
                      r"p99 (\d+) us, p99.9 (\d+) us, kicks (\d+) calls (\d+) late (\d+) lost (\d+)")
LATENCY = re.compile(r"latency (\S+) answers (\d+) p50 (\d+) p99 (\d+) p99.9 (\d+) longest (\d+) us")
DATA = re.compile(r"data bytes (\d+) .* operations/s (\d+) MB/s (\S+) wrong (\d+) idle (\d+)")
SLEEPS = (("at once", "0"), ("when idle", "auto"), ("never", "forever"))
SIZES = (16, 64, 256, 1024, 4096, 16384, 65536)
MBUF_BYTES = 0xffc0  # one that takes no data in pieces takes no more
PERF = "dpdk-test-crypto-perf"


class Daemon(Process):
    """One on CPU 1 with a crypto device, and devices more."""

    def __init__(self, args, netns, directory, poll_us, *more):
        self.socket = directory / "c0"
        devices = [args.cryptodev, "vhost_crypto0,cryptodev=%s,poll-us=%s,iface=%s" % (
            args.cryptodev, poll_us, self.socket), *more]
        vdevs = [word for device in devices for word in ("--vdev", device)]
        super().__init__(netns, directory / "daemon.log", "ready: ",
                         args.build / "app" / "dpdk-vhost-rxpoll", "--lcores", "0@0,1@1",
                         "--file-prefix", directory.name, "--no-huge", "-m", "256", *vdevs)
        self.args, self.netns = args, netns

    def fe_crypto(self, *options, seconds=0):
        """What the driver on CPU 0 says; and the daemon's share of a CPU for so long."""
        before = cpu_s(self.pid)
        out = self.netns.run("taskset", "-c", "0", self.args.build / "tests/frontend/fe-crypto",
                             "--socket", self.socket, "--event-idx", *options, timeout=120)
        return out, (cpu_s(self.pid) - before) / seconds * 100 if seconds else 0

    def wakes_lost(self):
        """Of all its life, from its closing line."""
        return sum(map(int, re.findall(r"^poller .* lost (\d+)", self.stop(), re.M)))


def with_spread(values, form="%d"):
    """Median [least..most]."""
    form = "%s [%s..%s]" % (form, form, form)
    return form % (statistics.median(values), min(values), max(values))


def add_histogram(total, out):
    """Counts by "from -> to"."""
    for start, end, count in re.findall(r"^ *(\d+) -> (\d+) +: (\d+)", out, re.M):
        key = (int(start), int(end))
        total[key] = total.get(key, 0) + int(count)


def print_histogram(title, counts):
    most = max(counts.values())
    print("\n%s\n     usecs           : count    : distribution" % title)
    for (start, end), count in sorted(counts.items()):
        print("%9d -> %-9d : %-8d |%-40s|" % (start, end, count, "*" * (count * 40 // most)))


def sessions_round(args, netns, directory, rows):
    """Each combination once."""
    for sleeps, poll_us in SLEEPS:
        daemon = Daemon(args, netns, directory, poll_us)
        try:
            for mode in ("busy", "wait"):
                for workers in args.workers:
                    out, used = daemon.fe_crypto("--bench", mode, "--workers", workers,
                                                 "--seconds", args.seconds, seconds=args.seconds)
                    match = SESSIONS.search(out)
                    row = rows.setdefault((sleeps, mode, workers), {"runs": [], "histogram": {}})
                    row["runs"].append([*map(int, match.groups()[2:]), used])
                    add_histogram(row["histogram"], out)
        finally:
            lost = daemon.wakes_lost()
        rows.setdefault("lost", []).append(lost)


def print_sessions(args, rows):
    print("sessions created and destroyed through the control queue, operations each; medians of "
          "%d rounds of %d s" % (args.rounds, args.seconds))
    print("%-9s %-5s %7s %-28s %8s %8s %9s %7s %7s %8s %6s %6s" % (
        "sleeps", "mode", "workers", "operations/s", "driver %", "daemon %", "per CPU s", "p50 us",
        "p99 us", "p99.9 us", "kicks", "calls"))
    for key, row in rows.items():
        if key == "lost":
            continue
        columns = list(zip(*row["runs"]))
        rate, cpu, p50, p99, p999, kicks, calls, _, _, used = map(statistics.median, columns)
        row["rate"], row["per_cpu"] = rate, rate * 100 / max(cpu, 1)
        print("%-9s %-5s %7d %-28s %8d %8d %9d %7d %7d %8d %6.2f %6.2f" % (
            *key, with_spread(columns[0]), cpu, used, row["per_cpu"], p50, p99, p999,
            kicks / rate / args.seconds, calls / rate / args.seconds))
    print("kicks and calls: of an operation. Waits for a call that came late: %d, never: %d; kicks "
          "that the daemon did not see: %d" % (
              sum(run[7] for key, row in rows.items() if key != "lost" for run in row["runs"]),
              sum(run[8] for key, row in rows.items() if key != "lost" for run in row["runs"]),
              sum(rows["lost"])))
    most = max(args.workers)
    for sleeps, _ in SLEEPS:
        busy, wait = rows[sleeps, "busy", most], rows[sleeps, "wait", most]
        print("sleeps %s, %d workers: wait has %.2f of the operations/s of busy, and %.2f of those "
              "per CPU second" % (sleeps, most, wait["rate"] / busy["rate"],
                                  wait["per_cpu"] / busy["per_cpu"]))
    for sleeps, _ in SLEEPS:
        for mode in ("busy", "wait"):
            print_histogram("sleeps %s, %s, %d workers, all rounds" % (sleeps, mode, most),
                            rows[sleeps, mode, most]["histogram"])


def latency_run(daemon, args, name, rows):
    out, _ = daemon.fe_crypto("--latency", args.answers)
    for match in LATENCY.finditer(out):
        rows.setdefault((name, match[1]), []).append([int(word) for word in match.groups()[2:]])


def frames_sent(netns):
    """Those that the guest of the network device has sent, as its tap counts them."""
    return int(netns.run("cat", "/sys/class/net/tap0/statistics/rx_packets"))


def latency_round(args, netns, directory, rows):
    """Answers one at a time; then beside a flood of the network device on the same poller."""
    for sleeps, poll_us in SLEEPS:
        daemon = Daemon(args, netns, directory, poll_us, "net_vhost0,iface=%s,poll-us=%s" % (
            directory / "v0", poll_us), "net_tap0,iface=tap0")
        try:
            netns.run("ip", "link", "set", "tap0", "up")
            latency_run(daemon, args, "sleeps " + sleeps, rows)
            if poll_us != "auto":
                continue
            # It takes what the driver leaves of CPU 0.
            flood = subprocess.Popen(netns.command(
                "nice", "-n", "19", args.build / "tests/bench/bench-frames", "--socket",
                directory / "v0", "--mode", "tx", "--cpu", "0", "--ms", "100000"),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                before, start = frames_sent(netns), time.monotonic()
                latency_run(daemon, args, "under a flood", rows)
                rows.setdefault("flood", []).append(
                    (frames_sent(netns) - before) / (time.monotonic() - start))
            finally:
                flood.kill()
                flood.wait()
        finally:
            daemon.stop()


def print_latency(args, rows):
    print("\nus until a session is created or destroyed, one after the other, %d answers a round; "
          "medians of %d rounds" % (2 * args.answers, args.rounds))
    print("%-18s %-8s %8s %8s %22s %8s" % ("daemon", "by", "p50", "p99", "p99.9", "longest"))
    flood = rows.pop("flood")
    for (name, way), runs in rows.items():
        columns = list(zip(*runs))
        print("%-18s %-8s %8d %8d %22s %8d" % (
            name, way, statistics.median(columns[0]), statistics.median(columns[1]),
            with_spread(columns[2]), max(columns[3])))
    print("the flood: %s frames/s of 64 bytes" % with_spread(flood))


def perf(args, directory, size):
    """operations/s of the cryptodev alone, on CPU 1."""
    kind = re.sub(r"\d.*", "", args.cryptodev)
    done = subprocess.run(
        [PERF, "--lcores", "0@0,1@1", "--no-huge", "-m", "512", "--no-pci", "--file-prefix",
         directory.name + "p", "--vdev", args.cryptodev, "--", "--devtype", kind, "--optype",
         "cipher-only", "--cipher-algo", "aes-cbc", "--cipher-op", "encrypt", "--cipher-key-sz",
         "16", "--cipher-iv-sz", "16", "--ptest", "throughput", "--buffer-sz", str(size),
         "--total-ops", str(perf_ops(args, size)), "--burst-sz", "32", "--pool-sz", "1024",
         "--silent", "--csv-friendly",
         # An mbuf's length has 16 bits.
         *(("--segment-sz", "32768") if size > 65535 else ())],
        capture_output=True, text=True, timeout=120, check=False)
    lines = [line for line in done.stdout.splitlines() if re.match(r"\d+,", line)]
    if not lines:
        raise Failed("%s: %s" % (PERF, (done.stdout + done.stderr).strip().splitlines()[-1]))
    # Of its columns the one in Gbit/s has more digits than that in millions.
    return float(lines[-1].split(",")[8]) * 1e9 / 8 / size


def perf_ops(args, size):
    """About as long as a run of ours: 1 GB/s, or 2.5 million operations a second."""
    return max(1000, int(args.ms / 1000 * min(2.5e6, 1e9 / size)))


def data_round(args, netns, directory, rows):
    daemon = Daemon(args, netns, directory, "forever")
    try:
        for size in SIZES:
            if args.cryptodev.startswith("crypto_aesni_mb") and size > MBUF_BYTES:
                continue
            out, _ = daemon.fe_crypto("--data", size, "--ms", args.ms)
            match = DATA.search(out)
            rows.setdefault(size, ([], [], []))[0].append(float(match[2]))
            rows[size][2].append(int(match[5]))
    finally:
        daemon.stop()
    for size in rows if args.perf else ():
        rows[size][1].append(perf(args, directory, size))


def print_data(args, rows):
    print("AES-128-CBC on %s, one core; 64 requests in flight; medians of %d rounds" % (
        args.cryptodev, args.rounds))
    print("%7s %26s %9s %26s %9s %6s %6s" % ("bytes", "operations/s", "MB/s", PERF[5:], "MB/s",
                                             "ratio", "idle %"))
    for size, (ours, theirs, idle) in rows.items():
        rate = statistics.median(ours)
        if theirs:
            peer = statistics.median(theirs)
            columns = (with_spread(theirs), "%.1f" % (peer * size / 1e6), "%.2f" % (rate / peer))
        else:
            columns = ("-", "-", "-")
        print("%7d %26s %9.1f %26s %9s %6s %6d" % (
            size, with_spread(ours), rate * size / 1e6, *columns, statistics.median(idle)))
    print("idle: looks of the driver that found nothing; near 0 the driver is the limit")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--only", choices=["crypto", "crypto-data"], default="crypto")
    parser.add_argument("--cryptodev", default="crypto_openssl0")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 3)
    args.seconds = 1 if args.quick else 2
    args.workers = (1, 8) if args.quick else (1, 2, 4, 8)
    args.answers = 1000 if args.quick else 10000
    args.ms = 200 if args.quick else 1000
    args.perf = shutil.which(PERF) is not None
    return args


def main():
    """Prints tables, and a histogram for each way with most workers."""
    args = arguments()
    netns = Netns(args.tag + "-host")
    rows, latency = {}, {}
    try:
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory(prefix="vhp-bcry") as path:
                if args.only == "crypto-data":
                    data_round(args, netns, Path(path), rows)
                else:
                    sessions_round(args, netns, Path(path), rows)
                    latency_round(args, netns, Path(path), latency)
    except Failed as error:
        raise SystemExit("bench: %s" % error) from error
    finally:
        netns.close()
    if args.only == "crypto-data":
        if not args.perf:
            print("%s is not there (package dpdk-dev): no comparison" % PERF)
        print_data(args, rows)
    else:
        print_sessions(args, rows)
        print_latency(args, latency)


if __name__ == "__main__":
    main()
