# SPDX-License-Identifier: BSD-3-Clause
"""The workloads: each runs once on one back end and returns {(guest, workload): Sample}."""

import json
import signal
import subprocess
import time
from dataclasses import dataclass

import bench_host
from bench_host import (Account, BACK_END_CPU, Failed, FrontEndGuest, GUEST_ADDR, HOST_ADDR,
                        OTHER_CPU, Process, TESTPMD)
from bench_ovs import Ovs

FRONT_END = "front end"  # guest: the frame generator on the test front end
VIRTIO_USER = "testpmd"  # guest (a)
TCP_STACK = "stack"      # guest (b)
QEMU = "QEMU"            # guest (c)
QEMU_GUEST = bench_host.ROOT / "scripts/qemu-guest.sh"

BACK_ENDS = {
    "rxpoll": bench_host.Rxpoll, "rxpoll-forever": bench_host.RxpollForever,
    "testpmd": bench_host.Testpmd, "testpmd-afp": bench_host.TestpmdAfp,
    "testpmd-xdp": bench_host.TestpmdXdp, "ovs": Ovs,
    "interleave": bench_host.Interleave, "deferred": bench_host.Deferred,
}


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


def frames_program(bench, backend, mode, size, ms, *options):
    account = Account(backend.pid)
    got = bench.host.json(bench.program("bench-frames"), "--socket", backend.socket, "--iface",
                          backend.iface, "--mode", mode, "--bytes", size, "--ms", ms,
                          "--cpu", OTHER_CPU, *options)
    return got, account.end()


def frames_rows(bench, backend, ms, guest, runs, *options):
    out = {}
    for mode, size in runs:
        got, account = frames_program(bench, backend, mode, size, ms, *options)
        out[guest, "%s %d B" % (mode, size)] = sample(
            got["to_host_mpps"] + got["to_guest_mpps"], "Mpps", account,
            limit=who_limits(got["waiting"]))
    return out


FRAMES = (("tx", 64), ("tx", 1500), ("rx", 64), ("rx", 1500), ("both", 64))


def frames(bench, name, ms, quick):
    backend = BACK_ENDS[name](bench, name)
    try:
        out = frames_rows(bench, backend, ms, FRONT_END, FRAMES)
        if not quick:
            if name != "ovs":  # its packed layout is off by default
                out.update(frames_rows(bench, backend, ms, FRONT_END + ", packed",
                                       (("tx", 64), ("rx", 64)), "--packed"))
            for size in (64, 1500):
                out[VIRTIO_USER, "tx %d B" % size] = virtio_user(bench, backend, size, ms)
    finally:
        backend.stop()
    return out


def null(bench, name, ms, _quick):
    """Into DPDK's net_null: what rings and copies cost by themselves."""
    backend = {"rxpoll": bench_host.RxpollNull, "testpmd": bench_host.TestpmdNull}[name](
        bench, name)
    try:
        return frames_rows(bench, backend, ms, FRONT_END + ", net_null",
                           (("tx", 64), ("tx", 1500)))
    finally:
        backend.stop()


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
        n0, t0 = backend.rx_packets()
        time.sleep(ms / 1000)
        n1, t1 = backend.rx_packets()
        return sample((n1 - n0) / (t1 - t0) / 1e6, "Mpps", account.end(), limit="?")
    finally:
        guest.stop()


def tap_limit(bench, ms):
    """The kernel calls alone. The sender is that of the front end."""
    out = {}
    for mode, size in FRAMES:
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


def iperf3(bench, ms, *options, cpu=OTHER_CPU):
    """
    From the host, its end on cpu, to the guest; returns the two directions in bits per second.
    """
    server = Process(bench.guest, bench.dir / bench.new_name("iperf"), "listening",
                     "taskset", "-c", OTHER_CPU, "iperf3", "-s", "-1", "--forceflush")
    try:
        return iperf3_client(bench, ms, cpu, *options)
    finally:
        server.stop()


def iperf3_client(bench, ms, cpu, *options):
    text = bench.host.run("taskset", "-c", cpu, "iperf3", "-J", "-c", GUEST_ADDR, "-t",
                          max(1, ms // 1000), "--connect-timeout", 5000, *options)
    result = json.loads(text)
    end = result["end"]
    if "sum_received" not in end:
        raise Failed("iperf3: %s" % result.get("error", "no figure"))
    first = end["sum_received"]["bits_per_second"]
    back = end.get("sum_received_bidir_reverse", {"bits_per_second": 0})["bits_per_second"]
    return first, back


def limit_of_tcp(account):
    """A back end that sleeps when it has nothing to do, or a core that does."""
    if account["other_cpu"] > 0.93:
        return "CPU 0" if account["backend_cpu"] < 0.93 else "both CPUs"
    return "back end" if account["backend_cpu"] > 0.93 else "neither"


DIRECTIONS = (("guest->host", ["-R"]), ("host->guest", []), ("both", ["--bidir"]))


def tcp_rows(bench, pid, ms, runs):
    """Runs: label, streams, CPU of the host's end; each in each direction."""
    out = {}
    for suffix, streams, cpu in runs:
        for what, options in DIRECTIONS:
            account = Account(pid)
            rate = sum(iperf3(bench, ms, "-P", streams, *options, cpu=cpu))
            used = account.end()
            label = "tcp %s %s" % (what, suffix)
            out[TCP_STACK, label] = sample(rate / 1e9, "Gbit/s", used, limit=limit_of_tcp(used))
            gigabytes = rate / 8e9 * max(1, ms // 1000)
            out[TCP_STACK, label + " CPU"] = sample(
                used["backend_cpu_s"] / gigabytes, "CPU s/GB", used, better=-1)
    return out


def tcp_runs(quick):
    runs = [("1", 1, OTHER_CPU)]
    if not quick:
        runs += [("4", 4, OTHER_CPU), ("1 (host's end on CPU 1)", 1, BACK_END_CPU)]
    return runs


def tcp(bench, name, ms, quick):
    if name == "tap-limit":
        return relay_limit(bench, ms, quick)
    backend = BACK_ENDS[name](bench, name)
    try:
        guest = FrontEndGuest(bench, backend)
        try:
            return tcp_rows(bench, backend.pid, ms, tcp_runs(quick))
        finally:
            guest.stop()
    finally:
        backend.stop()


def patient_client(bench, ms, *options):
    """The server starts a moment after the guest answers: refused, or reset by a slow one."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return iperf3_client(bench, ms, OTHER_CPU, *options)
        except Failed as why:
            if "Connection re" not in str(why) or time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def qemu(bench, name, ms, _quick):
    """A virtual machine with Debian's kernel; emulated where KVM does not work."""
    out = {}
    backend = BACK_ENDS[name](bench, name)
    directory = bench.dir / bench.new_name("qemu")
    directory.mkdir()
    try:
        bench.host.run(QEMU_GUEST, "build", timeout=120)
        guest = Process(bench.host, bench.dir / bench.new_name("qemu-log"), "", "taskset", "-c",
                        OTHER_CPU, QEMU_GUEST, "run", "--dir", directory, "--net",
                        "%s,addr=%s/24" % (backend.socket, GUEST_ADDR))
        try:
            bench.host.run(QEMU_GUEST, "wait", "--dir", directory, "--limit", 90, timeout=120)
            bench.host.run("ip", "addr", "replace", HOST_ADDR + "/24", "dev", backend.iface)
            for what, options in DIRECTIONS[:2]:
                account = Account(backend.pid)
                rate, _ = patient_client(bench, ms, *options)
                used = account.end()
                out[QEMU, "tcp %s 1" % what] = sample(rate / 1e9, "Gbit/s", used,
                                                      limit=limit_of_tcp(used))
        finally:
            guest.stop()
    finally:
        backend.stop()
    return out


def relay_limit(bench, ms, quick):
    """The same stacks, taps and CPUs with two queues in memory between them."""
    relay = Process(bench.guest, bench.dir / bench.new_name("relay"), "ready: ",
                    bench.program("bench-relay"), bench.host.name, "tap0", "eth0")
    try:
        bench_host.addresses(bench, "tap0")
        return {key: value for key, value in
                tcp_rows(bench, relay.pid, ms, tcp_runs(quick)).items()
                if not key[1].endswith("CPU")}
    finally:
        relay.stop()


def round_trips(bench, ms):
    server = Process(bench.guest, bench.dir / bench.new_name("rr"), "", bench.program("bench-rr"),
                     "--cpu", OTHER_CPU, "server", GUEST_ADDR)
    try:
        time.sleep(0.1)
        return bench.host.json(bench.program("bench-rr"), "--cpu", OTHER_CPU, "--ms", ms,
                               "client", GUEST_ADDR)
    finally:
        server.stop()


def polled_round_trips(bench, guest, ms):
    """Both ends of the connection in the guest's program, which never sleeps."""
    guest.process.popen.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + ms / 1000 + 15
    while time.monotonic() < deadline:
        for line in guest.process.log.read_text(errors="replace").splitlines():
            if line.startswith('{"per_s"'):
                return json.loads(line)
        time.sleep(0.05)
    raise Failed("no round trips: " + guest.process.log.read_text(errors="replace").strip())


def rr_guest(bench, backend, ms):
    return FrontEndGuest(bench, backend, "--rr-netns", bench.host.name, "--rr-ms", ms)


def rr_rows(bench, backend, guest, ms):
    """In the polled rows one thread does all but the back end's work."""
    out = {}
    for what, run in (("rr", lambda: round_trips(bench, ms)),
                      ("rr polled", lambda: polled_round_trips(bench, guest, ms))):
        account = Account(backend.pid)
        got = run()
        used = account.end()
        for p in ("p50", "p99", "p999"):
            out[TCP_STACK, "%s %s" % (what, p)] = sample(got[p + "_us"], "us", used,
                                                         better=-1, limit="latency")
    return out


def rr(bench, name, ms, _quick):
    backend = BACK_ENDS[name](bench, name)
    try:
        guest = rr_guest(bench, backend, ms)
        try:
            return rr_rows(bench, backend, guest, ms)
        finally:
            guest.stop()
    finally:
        backend.stop()


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


HEADLINE_FRAMES = (
    ("under flood 64 B", "both", 64, ()),
    ("under flood 1500 B", "both", 1500, ()),
    ("64 B, 1 answer to 2", "rx", 64, ("--ack", 2)),
    ("1500 B, 1 answer to 2", "rx", 1500, ("--ack", 2)),
    ("1500 B, 1 answer to 32", "rx", 1500, ("--ack", 32)),
)


def headline(bench, name, ms, quick):
    """What the guest receives, and how fast, while it transmits."""
    out = {}
    backend = BACK_ENDS[name](bench, name)
    try:
        for what, mode, size, options in HEADLINE_FRAMES[-1:] if quick else HEADLINE_FRAMES:
            got, used = frames_program(bench, backend, mode, size, ms, *options)
            out[FRONT_END, "receive " + what] = sample(
                got["to_guest_mpps"], "Mpps", used, limit=who_limits(got["waiting"]))
        for answer in (2,) if quick else (2, 8):
            got, used = frames_program(bench, backend, "rx", 1500, ms, "--gso", "--ack", answer)
            out[FRONT_END, "receive 64 KiB, 1 answer to %d" % answer] = sample(
                got["to_guest_gbps"], "Gbit/s", used, limit=who_limits(got["waiting"]))
        guest = rr_guest(bench, backend, ms)
        try:
            for what, options in (("both directions", ["--bidir"]), ("alone", [])):
                account = Account(backend.pid)
                to_guest, _ = iperf3(bench, ms, *options)
                used = account.end()
                out[TCP_STACK, "tcp receive, " + what] = sample(
                    to_guest / 1e9, "Gbit/s", used, limit=limit_of_tcp(used))
            out.update(rr_rows(bench, backend, guest, ms))
        finally:
            guest.stop()
    finally:
        backend.stop()
    return out


GROUPS = {
    "frames": (frames, ["rxpoll", "testpmd", "testpmd-afp", "testpmd-xdp", "ovs", "tap-limit"]),
    "null": (null, ["rxpoll", "testpmd"]),
    "headline": (headline, ["interleave", "deferred"]),
    "tcp": (tcp, ["rxpoll", "testpmd", "ovs", "tap-limit"]),
    "rr": (rr, ["rxpoll", "rxpoll-forever", "testpmd", "ovs"]),
    "idle": (idle, ["rxpoll", "testpmd"]),
    "qemu": (qemu, ["rxpoll", "testpmd"]),
}

__all__ = ["GROUPS", "Sample", "tap_limit", "HOST_ADDR"]
