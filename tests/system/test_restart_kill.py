# SPDX-License-Identifier: BSD-3-Clause
"""The daemon is killed under load and started again: what the front end and the host see."""

import random
import re
import subprocess
import time

import pytest

from cli_host import deadline
from daemon import Daemon, assert_clean, wait_until
from frontend import program

KILLS = 3
RESUME_MS = 5000  # from the new connection to frames in both directions; 2 s on a quiet machine


@pytest.mark.skipif(program("fe-restart") is None, reason="fe-restart was not built")
@pytest.mark.parametrize("ring", [[], ["--packed"], ["--packed", "--stale"]],
                         ids=["split", "packed", "packed-stale"])
def test_killed_under_load(netns, short_dir, ring):
    """No frame of the guest's is lost; what comes twice was under way, so does what is missing."""
    sock = short_dir / "vm.sock"
    netns.ip("tuntap", "add", "dev", "tap0", "mode", "tap", "vnet_hdr")
    netns.ip("link", "set", "tap0", "up")
    devices = ("net_vhost0,client=1,iface=%s" % sock, "net_tap0,iface=tap0,persist=1")
    command = netns.command("timeout", "-k", "1", "-s", "KILL", 150, program("fe-restart"),
                            "--socket", sock, "--iface", "tap0", "--kills", KILLS, *ring)
    moment = random.Random(1)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as front:
        try:
            wait_until(sock.exists, 10, "the front end does not listen")
            with Daemon(netns, short_dir, *devices) as daemon, deadline(140):
                expect_moving(front)
                for _ in range(KILLS):
                    time.sleep(moment.uniform(0, 0.05))
                    daemon.process.kill()
                    daemon.process.wait()
                    daemon.start()
                    assert expect_moving(front) < RESUME_MS
                last = front.stdout.readline()
                assert last.startswith("PASS: %d kills" % KILLS), last
                front.wait(10)
                assert_clean(daemon.stop(limit_s=20))
        finally:
            front.kill()


def expect_moving(front):
    """Waits until frames move in both directions; returns how many milliseconds that took."""
    line = front.stdout.readline()
    match = re.fullmatch(r"moving after (\d+) ms\n", line)
    assert match, line
    return int(match[1])
