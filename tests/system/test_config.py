# SPDX-License-Identifier: BSD-3-Clause
"""The INI file: what it may say, and what becomes of it when it is read again."""

import os
import re
import signal
import subprocess

import pytest

from cli_host import host_fixture
from daemon import ROOT, Daemon, assert_clean, wait_until
from frontend import program

__all__ = ["host_fixture"]

PAIR = "[net_vhost0]\niface = {dir}/v0\n[net_tap0]\niface = tap0\n"

MISTAKES = [
    ("[net_vhost0]\niface\n",
     'line 2: "iface": neither a section nor a key (key = value; comments begin with #)'),
    ("; old\n", 'line 1: "; old": neither a section nor a key '
     '(key = value; comments begin with #)'),
    ("[net_vhost0\n", 'line 1: "[net_vhost0": not a section ([name])'),
    ("a = b\n", 'line 1: "a = b": a key before the first section '
     '([options], [poller N] or [device])'),
    ("[net_vhost0]\niface = " + "x" * 400 + "\n", "line 2: too long (1..320 bytes)"),
    (PAIR + "mtu = 9x\n", 'net_tap0: mtu = "9x": unknown key '
     '(iface, mac, persist, queues, sndbuf, bridge, offload)'),
    ("[net_vhost0]\niface = {dir}/v0\nmtu = 9x\n",
     'net_vhost0: mtu = "9x": not a number (68..65521)'),
    ("[net_vhost0]\niface = {dir}/v0\niface = {dir}/v1\n",
     'net_vhost0: iface = "{dir}/v1": given twice (once)'),
    ("[net_vhost0]\nqueues = 2\n",
     "net_vhost0: iface: missing (path of the vhost-user socket)"),
    (PAIR + PAIR, "net_vhost0: given twice (once)"),
    ("[options]\nstats = no\n" + PAIR, 'options: stats = "no": not a number (1..86400)'),
    ("[poller 1]\ncpu = 0\n", "[poller 0]: missing (pollers are numbered from 0)"),
    ("[poller 0]\ncpu = 0\n[poller 1]\ncpu = 0\n",
     'poller 1: cpu = "0": poller 0 has it (one CPU each)'),
    ("[poller x]\ncpu = 0\n", "[poller x]: not a number (poller 0..127)"),
    ("[poller 0]\ncore = 0\n", 'poller 0: core = "0": unknown key (cpu)'),
]


@pytest.mark.parametrize("text, message", MISTAKES)
def test_mistakes(host, text, message):
    """One line: file, place, key, value, what is allowed."""
    path = host.dir / "rxpoll.ini"
    path.write_text(text.format(dir=host.dir))
    result = host.end(["--", "--config", str(path)])
    assert result.stderr == "dpdk-vhost-rxpoll: %s: %s\n" % (path, message.format(dir=host.dir))
    assert (result.returncode, result.stdout) == (2, "")


def test_check(host):
    """The file's devices come after the command line's, in the order of its sections."""
    path = host.dir / "rxpoll.ini"
    path.write_text("# two\n[net_tap1] # second\npersist =\n[net_vhost1]\niface=%s/v1\n"
                    "[options]\nstats = 5\n" % host.dir)
    result = host.end(["--vdev", "net_vhost0,iface={dir}/v0", "--vdev", "net_tap0", "--",
                       "--config", str(path), "--check"])
    assert result.stderr == ""
    assert result.stdout == (
        "net_vhost0 ({0}/v0, server) <-> net_tap0 (dtap%d)\n"
        "net_vhost1 ({0}/v1, server) <-> net_tap1 (dtap%d)\n".format(host.dir))
    path.unlink()
    result = host.end(["--", "--config", str(path)])
    assert result.stderr == ("dpdk-vhost-rxpoll: %s: cannot be opened: "
                             "No such file or directory\n" % path)


def test_example(host):
    """The file in config/ is right."""
    result = host.end(["--", "--config", str(ROOT / "config" / "rxpoll.ini"), "--check"])
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("<->") == 2


class Configured(Daemon):
    """A daemon that has all from a file."""

    def __init__(self, netns, directory, text):
        self.dir = directory
        self.file = directory / "rxpoll.ini"
        self.write(text)
        super().__init__(netns, directory, options=["--config", self.file])

    def write(self, text):
        self.file.write_text(text.replace("{dir}", str(self.dir)))

    def reload(self, text):
        """Reads another text; returns what the daemon says of it, on either stream."""
        done, refused = self.said()
        self.write(text)
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.said() != (done, refused), 20, "nothing is said of the new file")
        now_done, now_refused = self.said()
        return now_done[len(done):] + now_refused[len(refused):]

    def said(self):
        """Lines about reloads that were carried out, and about those that were not."""
        return ([line for line in self.out.read_text().splitlines()
                 if line.startswith("reloaded: ")],
                [line for line in self.err.read_text().splitlines()
                 if line.endswith("; nothing was changed")])


def pair(n, keys=""):
    return ("[net_vhost%d]\niface = {dir}/v%d\n%s[net_tap%d]\niface = tap%d\n"
            % (n, n, keys, n, n))


@pytest.mark.frontend
def test_reload(netns, short_dir):
    """Frames pass on one device while others come, change and go."""
    with Configured(netns, short_dir, pair(0)) as daemon:
        netns.ip("link", "set", "tap0", "mtu", 65521, "txqueuelen", 5000)
        command = netns.command("timeout", "-k", "1", "-s", "KILL", 100, program("fe-soak"),
                                "--flood", "--socket", short_dir / "v0", "--iface", "tap0")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as front:
            daemon.wait_forwarding(limit_s=20)
            try:
                reload_under_traffic(daemon)
            finally:
                front.terminate()
        counters = daemon.stop(limit_s=20)
        assert counters["net_vhost0:0 transmitq"]["faults"] == 0


def wait_moving(daemon):
    before = daemon.counters()["transmitq_pkts"]
    wait_until(lambda: daemon.counters()["transmitq_pkts"] > before, 10, "no frame passes")


def reload_under_traffic(daemon):
    netns = daemon.netns
    wait_moving(daemon)
    assert daemon.reload(pair(0) + pair(1)) == [
        "reloaded: 1 added, 0 removed, 0 made anew, 0 changed, 1 untouched"]
    assert netns.links() == ["tap0", "tap1"]
    assert (daemon.dir / "v1").is_socket()
    assert daemon.state("net_vhost1:0") == "no front end"
    wait_moving(daemon)

    # Values that change under traffic.
    assert daemon.reload(pair(0, "mtu = 1400\npoll-us = 50\n") + pair(1)) == [
        "reloaded: 0 added, 0 removed, 0 made anew, 1 changed, 1 untouched"]
    assert re.search(r"tap0: .* mtu 1400 ", netns.ip("link", "show", "tap0"))
    wait_moving(daemon)

    # Of the other, something that does not: its tap is another.
    assert daemon.reload(pair(0, "mtu = 1400\npoll-us = 50\n") +
                         pair(1).replace("iface = tap1", "iface = tap7")) == [
        "reloaded: 0 added, 0 removed, 1 made anew, 0 changed, 1 untouched"]
    assert netns.links() == ["tap0", "tap7"]

    # A mistake in the last line, and a device that cannot be made: nothing changes.
    said = daemon.reload(pair(2) + pair(0) + "queues = 0\n")
    assert said == ['dpdk-vhost-rxpoll: %s: net_tap0: queues = "0": out of range (1..128); '
                    'nothing was changed' % daemon.file]
    said = daemon.reload(pair(0) + pair(2).replace("{dir}/v2", "{dir}/none/v2"))
    assert said == ['dpdk-vhost-rxpoll: net_vhost2: iface = "%s/none/v2": its directory does not '
                    'exist (an existing directory); nothing was changed' % daemon.dir]
    assert netns.links() == ["tap0", "tap7"]
    wait_moving(daemon)

    assert daemon.reload(pair(0, "mtu = 1400\npoll-us = 50\n")) == [
        "reloaded: 0 added, 1 removed, 0 made anew, 0 changed, 1 untouched"]
    assert netns.links() == ["tap0"]
    assert not (daemon.dir / "v1").exists()
    wait_moving(daemon)
    assert daemon.state() == "forwarding"


def test_reload_two_guests(netns, short_dir):
    """Two devices that are joined come and go together; from nothing, and to nothing."""
    both = "[net_vhost0]\niface = {dir}/v0\n[net_vhost1]\niface = {dir}/v1\n"
    with Configured(netns, short_dir, "[options]\npoll-us = 100\n") as daemon:
        assert daemon.reload(both)[0].startswith("reloaded: 2 added, 0 removed")
        assert (short_dir / "v0").is_socket() and (short_dir / "v1").is_socket()
        assert daemon.reload(both + pair(2))[0].startswith("reloaded: 1 added, 0 removed")
        assert daemon.reload(pair(2))[0] == (
            "reloaded: 0 added, 2 removed, 0 made anew, 0 changed, 1 untouched")
        assert daemon.reload("")[0].startswith("reloaded: 0 added, 1 removed")
        assert not list(short_dir.glob("v*"))
        daemon.stop()


def test_poller_cpus(netns, short_dir):
    """[poller N] says on which CPU a poller runs."""
    cpu = sorted(os.sched_getaffinity(0))[0]
    with Configured(netns, short_dir, "[poller 0]\ncpu = %d\n%s" % (cpu, pair(0))) as daemon:
        assert "1 poller on CPU %d\n" % cpu in daemon.out.read_text()
        said = daemon.reload("[poller 0]\ncpu = %d\n%s" % (cpu, pair(1)))
        assert said == ["reloaded: 1 added, 1 removed, 0 made anew, 0 changed, 0 untouched"]
        assert_clean(daemon.stop())
