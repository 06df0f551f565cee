# SPDX-License-Identifier: BSD-3-Clause
"""Hostile front ends: they lose their own device, and nothing else happens.

fe-hostile has the table; SCALE (percent) shortens the rows that repeat something. The
long form is VHP_HOSTILE_SCALE=100 and VHP_SOAK_ROUNDS=1000.
"""

import os
import re
import socket
import stat

import pytest

from daemon import Daemon, wait_until
from frontend import GAP_MS, LIMIT_MS, SANITIZED, Bench, program

pytestmark = [
    pytest.mark.frontend,
    pytest.mark.skipif(program("fe-hostile") is None, reason="fe-hostile was not built"),
]

SCALE = os.environ.get("VHP_HOSTILE_SCALE", "3" if SANITIZED else "5")
ROUNDS = os.environ.get("VHP_SOAK_ROUNDS", "50")
LONG_S = 3000
GROUPS = {
    "messages": ["M1-*", "M3-*", "M5-*", "M7-*", "M8-*", "msg-*"],
    "connections": ["conn-*", "M11-*"],
    "memory": ["M2-*", "M4-*", "M10-*", "M13-*", "mem-*"],
    "kicks": ["W8-*", "M9-no-call", "kick-*"],
    "calls": ["call-*", "err-*"],
    "rings": ["M9-[!n]*", "M12-*", "ring-*"],
    "floods": ["M6-*", "F1-*", "F3-*", "flood-*"],
}


@pytest.fixture(name="bench", scope="module")
def bench_fixture(module_netns, module_dir):
    """One daemon for all groups: what one leaves behind is the next one's start."""
    with Bench(module_netns, module_dir, n=3) as bench:
        yield bench
        if bench.alive():
            bench.end()


@pytest.mark.parametrize("group", GROUPS)
def test_table(bench, group):
    cases = [word for glob in GROUPS[group] for word in ("--case", glob)]
    out = bench.run("fe-hostile", "--pid", bench.process.pid, "--second", bench.socket(1),
                    "--second-iface", "tap1", "--third", bench.socket(2), "--gap-ms", GAP_MS,
                    "--limit-ms", LIMIT_MS, "--scale", SCALE, *cases, timeout=LONG_S)
    passed, failed, skipped = map(int, re.search(
        r"^(\d+) passed, (\d+) failed, (\d+) skipped$", out, re.M).groups())
    assert passed >= 2 * len(GROUPS[group])
    assert (failed, skipped) == (0, 0)
    assert bench.alive() and bench.reports() == ""


def test_each_row_is_in_a_group(bench):
    """A row that is added and fits no group would never be run."""
    import fnmatch
    rows = bench.run("fe-hostile", "--list").splitlines()
    globs = [glob for group in GROUPS.values() for glob in group]
    for row in rows:
        hits = [glob for glob in globs if fnmatch.fnmatch(row.split()[0], glob)]
        assert len(hits) == 1, (row, hits)


def test_refusals_are_counted(netns, short_dir):
    """So many messages of each wrong kind, so many refusals of that reason."""
    with Bench(netns, short_dir, n=1) as bench:
        header = lambda request, flags, size: b"".join(
            word.to_bytes(4, "little") for word in (request, flags, size))
        for sent in (header(1, 2, 0), header(1, 2, 0), header(10000, 1, 0),
                     header(2, 1, 4) + bytes(4), header(2, 1, 4096),
                     header(8, 1, 8) + bytes([7, 0, 0, 0, 0, 1, 0, 0])):
            with socket.socket(socket.AF_UNIX) as front:
                front.settimeout(5)
                front.connect(str(bench.socket()))
                front.sendall(sent)
                assert front.recv(1) == b""
        bench.end()
        assert bench.refusals() == {
            "wrong protocol version": 2, "unknown request": 1,
            "payload of the wrong size": 1, "payload too long": 1,
            "ring index outside the device": 1}


def test_soak(netns, short_dir):
    """Front ends killed under load; a peer that hangs up at once on a client."""
    client = "net_vhost9,iface=%s,client=1" % (short_dir / "client")
    with Bench(netns, short_dir, n=2, extra=[client, "net_tap9,iface=tap9"]) as bench:
        out = bench.run("fe-soak", "--pid", bench.process.pid, "--second", bench.socket(1),
                        "--second-iface", "tap1", "--telemetry",
                        "/var/run/dpdk/%s/dpdk_telemetry.v2" % bench.prefix, "--client",
                        short_dir / "client", "--rounds", ROUNDS, "--gap-ms", GAP_MS,
                        timeout=LONG_S)
        assert "2 passed, 0 failed" in out
        bench.end()


def devices(path, keys=""):
    return ["net_vhost0,iface=%s%s" % (path, keys), "net_tap0,iface=tap0"]


def refused_start(netns, path):
    """Output of a daemon that must not start with this socket path."""
    daemon = Daemon(netns, path.parent if path.parent.is_dir() else "/tmp", *devices(path),
                    start=False)
    done = netns.run(*daemon_command(daemon), timeout=60, check=False)
    assert done.returncode == 2, (done.stdout, done.stderr)
    lines = [line for line in done.stderr.splitlines() if str(path) in line]
    assert len(lines) == 1, done.stderr
    assert "tap0" not in netns.links()
    return lines[0]


def daemon_command(daemon):
    from daemon import BINARY
    return [BINARY, *daemon.args]


def test_stale_socket_file_is_replaced(netns, short_dir):
    path = short_dir / "v0"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with Daemon(netns, short_dir, *devices(path)) as daemon:
        # Only a living one lets anybody connect.
        with socket.socket(socket.AF_UNIX) as front:
            front.connect(str(path))
        daemon.stop()
    assert not path.exists()


def test_socket_of_a_living_process_stays(netns, short_dir):
    path = short_dir / "v0"
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(path))
        living.listen()
        living.settimeout(0.2)
        line = refused_start(netns, path)
        assert path.is_socket()
        # It was not even connected to.
        with pytest.raises(TimeoutError):
            living.accept()
    assert "a living process listens there" in line


def test_other_file_stays(netns, short_dir):
    path = short_dir / "v0"
    path.write_text("precious")
    refused_start(netns, path)
    assert path.read_text() == "precious"


def test_missing_directory(netns, short_dir):
    refused_start(netns, short_dir / "nowhere" / "v0")
    assert not (short_dir / "nowhere").exists()


def test_socket_mode_and_group(netns, short_dir):
    path = short_dir / "v0"
    with Daemon(netns, short_dir, *devices(path, ",socket-mode=0660,socket-group=nogroup")):
        info = path.stat()
        import grp
        assert stat.S_IMODE(info.st_mode) == 0o660
        assert info.st_gid == grp.getgrnam("nogroup").gr_gid


def test_state_says_why(netns, short_dir):
    """What keeps a device from forwarding is what its state says, step by step."""
    with Bench(netns, short_dir, n=1) as bench:
        assert bench.state() == "no front end"
        with socket.socket(socket.AF_UNIX) as front:
            front.connect(str(bench.socket()))
            wait_until(lambda: bench.state() == "rings not started", 5, bench.state())
        wait_until(lambda: bench.state() == "no front end", 5, bench.state())
        bench.end()
