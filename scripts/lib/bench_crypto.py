# SPDX-License-Identifier: BSD-3-Clause
"""bench.sh --only crypto: sessions made and destroyed by W workers, in two ways.

busy: a worker polls for its own answer with the lock held; wait: it sleeps, and a call
completes all that is done. Each with the daemon asleep when idle, and always polling.
The daemon has CPU 1, the workers CPU 0.
"""

import argparse
import re
import subprocess
import tempfile
import time
from pathlib import Path

LINE = re.compile(r"crypto (\S+) workers (\d+): (\d+) operations/s, CPU (\d+) %, "
                  r"p50 (\d+) us, p99 (\d+) us, p99.9 (\d+) us")
READY_S = 20


def start_daemon(build, directory, poll_us):
    """Returns the process once it is ready; its socket is directory/c0."""
    out = open(directory / "daemon.out", "wb")
    process = subprocess.Popen(
        [build / "app" / "dpdk-vhost-rxpoll", "--lcores", "0@0,1@1", "--file-prefix",
         directory.name, "--no-huge", "-m", "256", "--vdev", "crypto_openssl0", "--vdev",
         "vhost_crypto0,cryptodev=crypto_openssl0,poll-us=%s,iface=%s" % (
             poll_us, directory / "c0")],
        stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    deadline = time.monotonic() + READY_S
    while b"\nready: " not in b"\n" + (directory / "daemon.out").read_bytes():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("bench: " + (directory / "daemon.out").read_text())
        time.sleep(0.05)
    return process


def cpu_s(pid):
    """CPU time that a process has used."""
    fields = Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def run(build, directory, daemon, mode, workers, seconds):
    """One line of the table, and the histogram's lines."""
    before = cpu_s(daemon.pid)
    done = subprocess.run(
        ["taskset", "-c", "0", build / "tests" / "frontend" / "fe-crypto", "--socket",
         directory / "c0", "--event-idx", "--bench", mode, "--workers", str(workers),
         "--seconds", str(seconds)], check=True, stdout=subprocess.PIPE, text=True)
    used = (cpu_s(daemon.pid) - before) / seconds * 100
    match = LINE.search(done.stdout)
    histogram = [line for line in done.stdout.splitlines() if "|" in line or "usecs" in line]
    return [*map(int, match.groups()[2:]), used], histogram


def main():
    """Prints the table, and a histogram for each way with most workers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    seconds = 1 if args.quick else 3
    counts = (1, 8) if args.quick else (1, 2, 4, 8)
    histograms = []
    print("sessions created and destroyed through the control queue, operations each")
    print("%-8s %-5s %7s %12s %9s %9s %12s %8s %8s %8s" % (
        "daemon", "mode", "workers", "operations/s", "driver %", "daemon %", "per CPU s",
        "p50 us", "p99 us", "p99.9 us"))
    for name, poll_us in (("sleeps", "auto"), ("polls", "forever")):
        with tempfile.TemporaryDirectory(prefix="vhp-bcry") as path:
            directory = Path(path)
            daemon = start_daemon(args.build, directory, poll_us)
            try:
                for mode in ("busy", "wait"):
                    for workers in counts:
                        row, histogram = run(args.build, directory, daemon, mode, workers,
                                             seconds)
                        rate, cpu, p50, p99, p999, daemon_cpu = row
                        print("%-8s %-5s %7d %12d %9d %9.0f %12d %8d %8d %8d" % (
                            name, mode, workers, rate, cpu, daemon_cpu,
                            rate * 100 / max(cpu, 1), p50, p99, p999))
                    histograms.append(("%s, %s, %d workers" % (name, mode, workers), histogram))
            finally:
                daemon.terminate()
                daemon.wait()
    for title, lines in histograms:
        print("\n%s\n%s" % (title, "\n".join(lines)))


if __name__ == "__main__":
    main()
