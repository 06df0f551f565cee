# SPDX-License-Identifier: BSD-3-Clause
"""The command line as a test sees it: the binary with plain arguments, and all it may leave."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from daemon import BINARY, READY_S


class Host:
    """A namespace, a directory for sockets and an EAL prefix of one test."""

    def __init__(self, netns, directory):
        self.netns = netns
        self.name = netns.name
        self.dir = directory
        self.runtime = Path("/var/run/dpdk") / self.name

    def left(self):
        """All that a daemon could leave behind."""
        return {
            "links": self.netns.links(),
            "files": sorted(str(p) for p in self.dir.rglob("*")),
            "runtime": sorted(os.listdir(self.runtime)) if self.runtime.exists() else None,
            "hugepages": [p.name for p in Path("/dev/hugepages").glob(self.name + "*")],
        }

    def command(self, args, before=(), prefix=True):
        line = [*before, BINARY]
        line += ["--file-prefix", self.name] if prefix else []
        return self.netns.command(*line, *(a.format(dir=self.dir) for a in args))

    def end(self, args, **kwargs):
        """Run a command line that ends by itself."""
        return subprocess.run(
            self.command(args, **kwargs), capture_output=True, text=True, timeout=60, check=False
        )

    @contextlib.contextmanager
    def daemon(self, args, **kwargs):
        """Run a daemon to its ready line; kill it if the test has not ended it."""
        with subprocess.Popen(
            self.command(args, **kwargs),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                with deadline(READY_S):
                    process.ready = process.stdout.readline()
                yield process
            finally:
                process.kill()


@contextlib.contextmanager
def deadline(seconds):
    """Fail the test where it blocks for longer."""

    def late(_signal, _frame):
        raise AssertionError(f"nothing happened for {seconds} s")

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


@pytest.fixture(name="host")
def host_fixture(netns, short_dir):
    host = Host(netns, short_dir)
    yield host
    shutil.rmtree(host.runtime, ignore_errors=True)


V0 = ["--vdev", "net_vhost0,iface={dir}/v0"]
T0 = ["--vdev", "net_tap0,iface=tap0"]
PAIR = V0 + T0
VHOST = "net_vhost0,iface={dir}/v0,"


def vhost(keys):
    return ["--vdev", VHOST + keys, *T0]


def tap(keys):
    return [*V0, "--vdev", "net_tap0," + keys]


def assert_mistake(host, result, message):
    message = message.format(dir=host.dir, prefix=host.name)
    # DPDK puts line numbers of its own into some of its reasons.
    assert re.sub(r"line \d+", "line N", result.stderr) == f"dpdk-vhost-rxpoll: {message}\n"
    assert result.stdout == ""
    assert result.returncode == 2
