# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's dpdk-testpmd as a process of a test: as a guest, or in our place."""

import itertools
import os
import queue
import re
import subprocess
import threading
import time

PROMPT = "testpmd> "
START_S = 60
COMMAND_S = 30


class Testpmd:
    """An interactive testpmd in a namespace. Use as a context manager.

    devices: the values of --vdev, which testpmd joins in the order given.
    queues: of each.
    """

    __test__ = False  # not what pytest takes it for
    _numbers = itertools.count()

    def __init__(self, netns, *devices, queues=1):
        prefix = "vhptestpmd%d-%d" % (os.getpid(), next(self._numbers))
        # It mixes stdio with plain writes to the same descriptor.
        args = ["stdbuf", "-o0", "dpdk-testpmd", "--no-huge", "-m", "512", "--no-pci", "--no-telemetry",
                "--file-prefix", prefix, "-l", "0,1"]
        for device in devices:
            args += ["--vdev", device]
        args += ["--", "-i", "--forward-mode=io", "--total-num-mbufs=16384",
                 "--no-flush-rx", "--rxq=%d" % queues, "--txq=%d" % queues]
        self._command = netns.command(*args)
        self._output = queue.Queue()
        self._seen = ""
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, bufsize=0)
        threading.Thread(target=self._read, daemon=True).start()
        self._until_prompt(START_S)
        # A full queue is waited for; testpmd would drop frames otherwise.
        self.command("set fwd io retry")
        self.command("set burst tx delay 10 retry 100000")
        return self

    def __exit__(self, *_exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def _read(self):
        while data := os.read(self.process.stdout.fileno(), 65536):
            self._output.put(data.decode("utf-8", "replace"))
        self._output.put(None)

    def _until_prompt(self, limit_s):
        deadline = time.monotonic() + limit_s
        self._seen = ""
        while PROMPT not in self._seen:
            try:
                data = self._output.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError("testpmd does not answer: " + self._seen) from None
            assert data is not None, "testpmd ended: " + self._seen
            self._seen += data
        return self._seen

    def command(self, text):
        """Gives a command; returns what it prints."""
        self.process.stdin.write(text.encode() + b"\n")
        return self._until_prompt(COMMAND_S)

    def port_stats(self, port):
        """{"RX-packets": n, "TX-packets": n, ...} of a port."""
        text = self.command("show port stats %d" % port)
        return {name: int(value) for name, value in re.findall(r"([RT]X-\w+): +(\d+)", text)}

    def quit(self):
        self.process.stdin.write(b"quit\n")
        assert self.process.wait(COMMAND_S) == 0
