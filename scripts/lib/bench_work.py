# SPDX-License-Identifier: BSD-3-Clause
"""The workloads: each runs once on one back end and returns {(guest, workload): Sample}."""

import json
import subprocess
import time
from dataclasses import dataclass

from bench_host import (Account, BACK_ENDS, Failed, FrontEndGuest, GUEST_ADDR, HOST_ADDR,
                        OTHER_CPU, Process, TESTPMD)

FRONT_END = "front end"  # guest: the frame generator on the test front end
VIRTIO_USER = "testpmd"  # guest (a)
TCP_STACK = "stack"      # guest (b)


@dataclass
class Sample:
    value: float
    unit: str
    better: int  # 1: more is better, -1: less
    limit: str = ""
    backend_cpu: float = 0
    other_cpu: float = 0


def sample(value, unit, account, better=1, limit=""):
    return Sample(value, unit, better, limit, account["backend_cpu"], account["other_cpu"])


def who_limits(waiting):
    """The front end polls all the time; what counts is whether it found work."""
    return "front end" if waiting < 0.05 else "back end"


def frames_program(bench, backend, mode, size, ms):
    account = Account(backend.pid)
    got = bench.host.json(bench.program("bench-frames"), "--socket", backend.socket, "--iface",
                          backend.iface, "--mode", mode, "--bytes", size, "--ms", ms,
                          "--cpu", OTHER_CPU)
    return got, account.end()


def frames(bench, name, ms, quick):
    out = {}
    backend = BACK_ENDS[name](bench, name)
    try:
        for mode, size in (("tx", 64), ("tx", 1500), ("rx", 64), ("rx", 1500), ("both", 64)):
            got, account = frames_program(bench, backend, mode, size, ms)
            out[FRONT_END, "%s %d B" % (mode, size)] = sample(
                got["to_host_mpps"] + got["to_guest_mpps"], "Mpps", account,
                limit=who_limits(got["waiting"]))
        if not quick:
            for size in (64, 1500):
                out[VIRTIO_USER, "tx %d B" % size] = virtio_user(bench, backend, size, ms)
    finally:
        backend.stop()
    return out


def virtio_user(bench, backend, size, ms):
    """testpmd as a guest that sends all the time."""
    guest = Process(bench.host, bench.dir / bench.new_name("guest"), "Press enter",
                    *TESTPMD, "--no-huge", "-m", "512", "--no-pci", "--file-prefix",
                    bench.new_name(bench.tag), "--lcores", "0@%d,1@%d" % (OTHER_CPU, OTHER_CPU),
                    "--vdev", "net_virtio_user0,path=%s,queues=1,queue_size=256" % backend.socket,
                    "--", "--forward-mode=txonly", "--txpkts=%d" % size, "--nb-cores=1",
                    "--total-num-mbufs=8192", "--disable-link-check")
    try:
        time.sleep(0.3)
        account = Account(backend.pid)
        n0, t0 = bench.host.rx_packets(backend.iface)
        time.sleep(ms / 1000)
        n1, t1 = bench.host.rx_packets(backend.iface)
        return sample((n1 - n0) / (t1 - t0) / 1e6, "Mpps", account.end(), limit="?")
    finally:
        guest.stop()


def tap_limit(bench, ms):
    """The kernel calls alone. The sender is that of the front end."""
    out = {}
    for mode, size in (("tx", 64), ("tx", 1500), ("rx", 64), ("rx", 1500), ("both", 64)):
        tap = subprocess.Popen(
            bench.host.command(bench.program("bench-tap"), "--mode", mode, "--bytes", size,
                               "--ms", ms, "--cpu", 1),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # It says so when the interface is there.
        first = tap.stderr.readline()
        if first != "ready\n":
            tap.kill()
            raise Failed("bench-tap: " + first.strip())
        account = Account(tap.pid)
        if mode != "tx":
            bench.host.run(bench.program("bench-frames"), "--mode", "send", "--bytes", size,
                           "--ms", ms + 300, "--cpu", OTHER_CPU)
        else:
            time.sleep(ms / 1000)
        used = account.end()
        text, why = tap.communicate(timeout=ms / 1000 + 20)
        if tap.returncode != 0:
            raise Failed("bench-tap: %d %s" % (tap.returncode, why.strip()))
        got = json.loads(text)
        out[FRONT_END, "%s %d B" % (mode, size)] = sample(
            got["to_host_mpps"] + got["to_guest_mpps"], "Mpps", used, limit="kernel")
    return out


def iperf3(bench, ms, *options):
    """From the host to the guest; returns the two directions in bits per second."""
    server = Process(bench.guest, bench.dir / bench.new_name("iperf"), "listening",
                     "taskset", "-c", OTHER_CPU, "iperf3", "-s", "-1", "--forceflush")
    try:
        text = bench.host.run("taskset", "-c", OTHER_CPU, "iperf3", "-J", "-c", GUEST_ADDR, "-t",
                              max(1, ms // 1000), "--connect-timeout", 5000, *options)
    finally:
        server.stop()
    end = json.loads(text)["end"]
    first = end["sum_received"]["bits_per_second"]
    back = end.get("sum_received_bidir_reverse", {"bits_per_second": 0})["bits_per_second"]
    return first, back


def limit_of_tcp(account):
    """A back end that sleeps when it has nothing to do, or a core that does."""
    if account["other_cpu"] > 0.93:
        return "CPU 0" if account["backend_cpu"] < 0.93 else "both CPUs"
    return "back end" if account["backend_cpu"] > 0.93 else "neither"


def tcp(bench, name, ms, quick):
    out = {}
    backend = BACK_ENDS[name](bench, name)
    try:
        guest = FrontEndGuest(bench, backend)
        try:
            for streams in (1,) if quick else (1, 4):
                for what, options in (("guest->host", ["-R"]), ("host->guest", []),
                                      ("both", ["--bidir"])):
                    account = Account(backend.pid)
                    rate = sum(iperf3(bench, ms, "-P", streams, *options))
                    used = account.end()
                    label = "tcp %s %d" % (what, streams)
                    out[TCP_STACK, label] = sample(rate / 1e9, "Gbit/s", used,
                                                   limit=limit_of_tcp(used))
                    gigabytes = rate / 8e9 * max(1, ms // 1000)
                    out[TCP_STACK, label + " CPU"] = sample(
                        used["backend_cpu_s"] / gigabytes, "CPU s/GB", used, better=-1)
        finally:
            guest.stop()
    finally:
        backend.stop()
    return out


def round_trips(bench, ms):
    server = Process(bench.guest, bench.dir / bench.new_name("rr"), "", bench.program("bench-rr"),
                     "--cpu", OTHER_CPU, "server", GUEST_ADDR)
    try:
        time.sleep(0.1)
        return bench.host.json(bench.program("bench-rr"), "--cpu", OTHER_CPU, "--ms", ms,
                               "client", GUEST_ADDR)
    finally:
        server.stop()


def rr(bench, name, ms, _quick):
    backend = BACK_ENDS[name](bench, name)
    try:
        guest = FrontEndGuest(bench, backend)
        try:
            account = Account(backend.pid)
            got = round_trips(bench, ms)
            used = account.end()
        finally:
            guest.stop()
    finally:
        backend.stop()
    return {(TCP_STACK, "rr " + p): sample(got[p + "_us"], "us", used, better=-1,
                                           limit="latency")
            for p in ("p50", "p99", "p999")}


def idle(bench, name, ms, _quick):
    backend = BACK_ENDS[name](bench, name)
    try:
        guest = FrontEndGuest(bench, backend)
        try:
            time.sleep(0.5)
            account = Account(backend.pid)
            time.sleep(max(2, ms / 1000))
            used = account.end()
        finally:
            guest.stop()
    finally:
        backend.stop()
    return {(TCP_STACK, "idle"): sample(100 * used["backend_cpu"], "% of a CPU", used, better=-1)}


def headline(bench, name, ms, _quick):
    """What the guest receives, and how fast, while it transmits."""
    out = {}
    backend = BACK_ENDS[name](bench, name)
    try:
        for size in (64, 1500):
            got, used = frames_program(bench, backend, "both", size, ms)
            out[FRONT_END, "receive under flood %d B" % size] = sample(
                got["to_guest_mpps"], "Mpps", used, limit=who_limits(got["waiting"]))
        guest = FrontEndGuest(bench, backend)
        try:
            account = Account(backend.pid)
            to_guest, _ = iperf3(bench, ms, "--bidir")
            used = account.end()
            out[TCP_STACK, "tcp receive, both directions"] = sample(
                to_guest / 1e9, "Gbit/s", used, limit=limit_of_tcp(used))
            account = Account(backend.pid)
            to_guest, _ = iperf3(bench, ms)
            used = account.end()
            out[TCP_STACK, "tcp receive"] = sample(
                to_guest / 1e9, "Gbit/s", used, limit=limit_of_tcp(used))
            account = Account(backend.pid)
            got = round_trips(bench, ms)
            used = account.end()
            for p in ("p50", "p99"):
                out[TCP_STACK, "rr " + p] = sample(got[p + "_us"], "us", used, better=-1)
        finally:
            guest.stop()
    finally:
        backend.stop()
    return out


GROUPS = {
    "frames": (frames, ["rxpoll", "testpmd", "testpmd-afp", "testpmd-xdp"], "testpmd"),
    "headline": (headline, ["interleave", "deferred"], "deferred"),
    "tcp": (tcp, ["rxpoll", "testpmd"], "testpmd"),
    "rr": (rr, ["rxpoll", "rxpoll-forever", "testpmd"], "testpmd"),
    "idle": (idle, ["rxpoll", "testpmd"], "testpmd"),
}

__all__ = ["GROUPS", "Sample", "tap_limit", "HOST_ADDR"]
