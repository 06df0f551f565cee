# SPDX-License-Identifier: BSD-3-Clause
"""Commands to QEMU by its machine protocol."""

import json
import socket

LIMIT_S = 30


class Qmp:
    """One connection; use as a context manager."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("r", encoding="utf-8")
        json.loads(self.lines.readline())  # the greeting
        self.run("qmp_capabilities")

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.lines.close()
        self.socket.close()

    def run(self, command, **arguments):
        """Runs a command; returns what it returns."""
        request = {"execute": command, "arguments": arguments}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        while True:
            answer = json.loads(self.lines.readline())
            if "error" in answer:
                raise AssertionError("%s: %s" % (command, answer["error"]["desc"]))
            if "return" in answer:
                return answer["return"]
