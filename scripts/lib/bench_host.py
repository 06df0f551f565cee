# SPDX-License-Identifier: BSD-3-Clause
"""What a benchmark runs: namespaces, the back ends under test, guests, CPU accounts."""

import json
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BACK_END_CPU = 1  # the poller, and nothing else of the benchmark
OTHER_CPU = 0     # front end, sender, guest, iperf3
START_S = 30
HOST_ADDR, GUEST_ADDR = "192.0.2.1", "192.0.2.2"  # RFC 5737, in the namespaces only
NO_IFACE = "none"  # a back end whose other side is not an interface
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Its standard output is a file here, and would be kept back.
TESTPMD = ["stdbuf", "-oL", "dpdk-testpmd"]


class Failed(Exception):
    """A run that gave no figure; the reason is the text."""


class Skipped(Exception):
    """A back end that this machine does not have."""


def cpu_s(pid):
    """CPU seconds that process pid has used."""
    words = Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) * TICK_S


def core_busy_s(cpu):
    """Seconds that CPU has not been idle since boot."""
    for line in Path("/proc/stat").read_text().splitlines():
        words = line.split()
        if words[0] == "cpu%d" % cpu:
            values = [int(w) for w in words[1:]]
            return (sum(values[:8]) - values[3] - values[4]) * TICK_S
    raise Failed("no CPU %d" % cpu)


class Account:
    """CPU use of the back end and of the other core between start and end."""

    def __init__(self, pid):
        self.pid = pid
        self.at = time.monotonic()
        self.mine = cpu_s(pid) if pid else 0
        self.other = core_busy_s(OTHER_CPU)

    def end(self):
        wall = time.monotonic() - self.at
        used = (cpu_s(self.pid) if self.pid else 0) - self.mine
        return {"backend_cpu_s": used, "backend_cpu": used / wall,
                "other_cpu": (core_busy_s(OTHER_CPU) - self.other) / wall, "wall_s": wall}


class Netns:
    def __init__(self, name):
        self.name = name
        subprocess.run(["ip", "netns", "add", name], check=True)
        self.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1",
                 "net.ipv6.conf.default.disable_ipv6=1")
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *args):
        return ["ip", "netns", "exec", self.name, *map(str, args)]

    def run(self, *args, timeout=30):
        done = subprocess.run(self.command(*args), capture_output=True, text=True,
                              timeout=timeout, check=False)
        if done.returncode != 0:
            raise Failed("%s: %s" % (Path(args[0]).name, (done.stderr or done.stdout).strip()))
        return done.stdout

    def json(self, *args, timeout=60):
        """Runs a program that prints one JSON object."""
        return json.loads(self.run(*args, timeout=timeout))

    def close(self):
        for pid in subprocess.run(["ip", "netns", "pids", self.name], capture_output=True,
                                  text=True, check=False).stdout.split():
            subprocess.run(["kill", "-KILL", pid], check=False)
        subprocess.run(["ip", "netns", "del", self.name], check=False)


class Process:
    """A program in a namespace that says when it is ready."""

    def __init__(self, netns, log, ready, *args):
        self.log = Path(log)
        with open(self.log, "wb") as out:
            self.popen = subprocess.Popen(netns.command(*args), stdin=subprocess.PIPE,
                                          stdout=out, stderr=out)
        self.pid = self.popen.pid
        deadline = time.monotonic() + START_S
        while ready not in self.log.read_text(errors="replace"):
            if self.popen.poll() is not None or time.monotonic() > deadline:
                tail = self.log.read_text(errors="replace").strip().splitlines()[-3:]
                self.stop()
                raise Failed("%s does not start: %s" % (Path(args[0]).name, " | ".join(tail)))
            time.sleep(0.02)

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(5)
            except subprocess.TimeoutExpired:
                self.popen.kill()
        self.popen.wait()
        self.popen.stdin.close()
        return self.log.read_text(errors="replace")


class Bench:
    """Directories, programs and namespaces of one run of the benchmark."""

    def __init__(self, directory, build, tag):
        self.dir = Path(directory)
        self.build = Path(build)
        self.tag = tag
        self.host = Netns(tag + "-host")
        self.guest = Netns(tag + "-guest")
        self.serial = 0

    def program(self, name):
        return self.build / "tests/bench" / name

    def new_name(self, what):
        self.serial += 1
        return "%s%d" % (what, self.serial)

    def close(self):
        for netns in (self.host, self.guest):
            netns.close()
        for left in Path("/var/run/dpdk").glob(self.tag + "*"):
            subprocess.run(["rm", "-rf", left], check=False)


class BackEnd:
    """A back end that serves one vhost-user socket and joins it to self.iface."""

    iface = "tap0"
    port = "net_tap0,iface=tap0"

    def __init__(self, bench, name, tso=False):
        self.bench, self.name, self.tso = bench, name, tso
        self.socket = bench.dir / bench.new_name("s")
        self.process = self.start()
        if self.iface != NO_IFACE:
            bench.host.run("ip", "link", "set", self.iface, "up")

    @property
    def pid(self):
        return self.process.pid

    def eal(self):
        return ["--no-huge", "-m", "512", "--no-pci",
                "--file-prefix", self.bench.new_name(self.bench.tag),
                "--lcores", "0@%d,1@%d" % (OTHER_CPU, BACK_END_CPU)]

    def rx_packets(self):
        """Of the host's interface, and when: read where no program has to be started."""
        for line in Path("/proc/%d/net/dev" % self.pid).read_text().splitlines():
            name, _, counts = line.partition(":")
            if name.strip() == self.iface:
                return int(counts.split()[1]), time.monotonic()
        raise Failed("no interface " + self.iface)

    def log(self):
        return self.bench.dir / self.bench.new_name("backend")

    def stop(self):
        return self.process.stop()


class Rxpoll(BackEnd):
    options = ()

    def start(self):
        return Process(self.bench.host, self.log(), "ready: ",
                       self.bench.build / "app/dpdk-vhost-rxpoll", *self.eal(),
                       "--vdev", "net_vhost0,iface=%s" % self.socket, "--vdev", self.port,
                       "--", *self.options)


class RxpollForever(Rxpoll):
    options = ("--poll-us", "forever")


class Interleave(Rxpoll):
    options = ("--poll-us", "100", "--rx-poll", "interleave")


class Deferred(Rxpoll):
    options = ("--poll-us", "100", "--rx-poll", "deferred")


class Testpmd(BackEnd):
    def start(self):
        return Process(self.bench.host, self.log(), "Press enter", *TESTPMD, *self.eal(),
                       "--vdev", "net_vhost0,iface=%s" % self.socket, "--vdev", self.port,
                       "--", "--forward-mode=io", "--nb-cores=1", "--disable-link-check",
                       "--total-num-mbufs=16384")


class RxpollNull(Rxpoll):
    """DPDK's net_null as the port: rings and copies, and nothing behind them."""

    iface = NO_IFACE
    port = "net_null0,no-rx=1"


class TestpmdNull(Testpmd):
    iface = NO_IFACE
    port = "net_null0,no-rx=1"


class TestpmdVeth(Testpmd):
    """The port is one end of a veth pair, the host's interface the other."""

    iface = "veth1"

    def start(self):
        run = self.bench.host.run
        run("ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth1")
        run("ip", "link", "set", "veth0", "up")
        # Frames must arrive in the form in which they would go out of a machine.
        run("ethtool", "-K", "veth1", "tso", "off", "gso", "off", "tx", "off",
            "tx-udp-segmentation", "off")
        try:
            return super().start()
        except Failed:
            run("ip", "link", "del", "veth0")
            raise

    def stop(self):
        out = super().stop()
        self.bench.host.run("ip", "link", "del", "veth0")
        return out


class TestpmdAfp(TestpmdVeth):
    port = "net_af_packet0,iface=veth0"


class TestpmdXdp(TestpmdVeth):
    port = "net_af_xdp0,iface=veth0"


def addresses(bench, host_iface):
    bench.guest.run("ip", "addr", "add", GUEST_ADDR + "/24", "dev", "eth0")
    bench.host.run("ip", "addr", "replace", HOST_ADDR + "/24", "dev", host_iface)


class FrontEndGuest:
    """Guest (b): bench-guest, with the guest namespace's TCP stack behind it."""

    def __init__(self, bench, backend, *options):
        self.bench = bench
        self.process = Process(bench.guest, bench.dir / bench.new_name("guest"), "ready: ",
                               bench.program("bench-guest"), "--socket", backend.socket,
                               "--cpu", OTHER_CPU, *options)
        addresses(bench, backend.iface)
        deadline = time.monotonic() + 10
        while True:
            try:
                bench.host.run("ping", "-q", "-c", "1", "-W", "1", GUEST_ADDR)
                return
            except Failed:
                if time.monotonic() > deadline:
                    self.stop()
                    raise

    def stop(self):
        return self.process.stop()
