# SPDX-License-Identifier: BSD-3-Clause
"""Runs commands inside the test guest, over its second serial port.

The other end is the agent in guest-init.sh, which also describes the line
protocol. QEMU offers the port as a unix socket that takes one client at a
time. Used by the system tests as a module, by qemu-guest.sh as a program:

    guest_serial.py SOCKET [--limit SECONDS] wait
    guest_serial.py SOCKET [--limit SECONDS] run COMMAND
"""

import argparse
import itertools
import os
import socket
import sys
import time

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


class GuestError(Exception):
    """The guest did not answer, or a command that had to succeed did not."""


class GuestSerial:
    """One connection to the agent. Not for use by two threads at once."""

    _ids = itertools.count(1)

    def __init__(self, path):
        self.path = path
        self._sock = None
        self._buf = b""

    def close(self):
        if self._sock:
            self._sock.close()
        self._sock = None
        self._buf = b""

    def _connect(self):
        if self._sock is None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.connect(self.path)
            except OSError:
                sock.close()
                raise
            self._sock = sock

    def _read_line(self, deadline):
        """Next line without its end, or None when the time is over."""
        while b"\n" not in self._buf:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._sock.settimeout(left)
            try:
                data = self._sock.recv(65536)
            except socket.timeout:
                return None
            if not data:
                self.close()
                raise GuestError("QEMU closed the serial port")
            self._buf += data
        line, self._buf = self._buf.split(b"\n", 1)
        return line.strip().decode("ascii", "replace")

    def _ask(self, command, limit, deadline):
        """Sends a command; (status, output) or None if deadline comes first.

        Lines that belong to no answer to this request are skipped: answers to
        earlier ones, and what the guest's tty echoed before it was made raw.
        """
        ident = "%d-%d" % (os.getpid(), next(self._ids))
        self._connect()
        # The leading newline ends whatever half a line the agent may hold.
        request = "\nRUN %s %d %s\n" % (ident, limit, command.encode().hex())
        self._sock.settimeout(max(1, deadline - time.monotonic()))
        self._sock.sendall(request.encode())
        chunks = None
        while True:
            line = self._read_line(deadline)
            if line is None:
                return None
            words = line.split()
            if words == ["BEGIN", ident]:
                chunks = []
            elif words[:2] == ["END", ident] and chunks is not None:
                output = bytes.fromhex("".join(chunks))
                if len(output) != int(words[3]):
                    raise GuestError("output cut short: " + command)
                return int(words[2]), output.decode("utf-8", "replace")
            elif chunks is not None:
                chunks.append(line)

    def run(self, command, limit=30):
        """Runs a shell command in the guest.

        command: text for the guest's sh.
        limit: seconds after which the guest kills it (status 137).
        Returns (exit status, output), stdout and stderr together.
        Raises GuestError when no whole answer comes within limit + 10 s.
        """
        answer = self._ask(command, limit, time.monotonic() + limit + 10)
        if answer is None:
            raise GuestError("no answer to: " + command)
        return answer

    def check(self, command, limit=30):
        """As run(), but returns the output and raises on another status than 0."""
        status, output = self.run(command, limit)
        if status != 0:
            raise GuestError("%s: status %d: %s" % (command, status, output.strip()))
        return output

    def boot_id(self):
        """The kernel's name for this boot: another one after a reboot."""
        return self.check(BOOT_ID).strip()

    def wait(self, limit=120, not_boot_id=None):
        """Waits until the agent answers, from another boot than not_boot_id.

        limit: seconds. Returns the boot id. Raises GuestError.
        """
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            try:
                # The port drops what it is sent before the guest opens it,
                # so ask again every second.
                answer = self._ask(BOOT_ID, 5, time.monotonic() + 1)
                if answer and answer[1].strip() != not_boot_id:
                    return answer[1].strip()
            except (OSError, GuestError):
                self.close()
            time.sleep(0.2)
        raise GuestError("the guest did not come up within %d s" % limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("socket", metavar="SOCKET")
    parser.add_argument("--limit", type=int, default=60, metavar="SECONDS")
    parser.add_argument("action", choices=("wait", "run"))
    parser.add_argument("command", nargs="?")
    args = parser.parse_args()
    if (args.action == "run") != (args.command is not None):
        parser.error("run takes one COMMAND, wait takes none")
    guest = GuestSerial(args.socket)
    try:
        if args.action == "wait":
            guest.wait(args.limit)
            return 0
        status, output = guest.run(args.command, args.limit)
    except (GuestError, OSError) as err:
        print("guest: %s" % err, file=sys.stderr)
        return 125
    sys.stdout.write(output)
    return status


if __name__ == "__main__":
    sys.exit(main())
