# SPDX-License-Identifier: BSD-3-Clause
"""A network namespace of a test: whatever it sends stays in there."""

import ctypes
import itertools
import os
import socket
import subprocess
import threading

CLONE_NEWNET = 0x40000000
SETTLE_S = 30  # a command of ip that takes longer is stuck


class Netns:
    """Use as a context manager. Everything in it ends with it."""

    _numbers = itertools.count()

    def __init__(self):
        self.name = "vhp-test-%d-%d" % (os.getpid(), next(self._numbers))

    def __enter__(self):
        subprocess.run(["ip", "netns", "add", self.name], check=True, timeout=SETTLE_S)
        # Before any interface exists: the kernel's own IPv6 chatter would be
        # among the frames that a test counts.
        self.run("sysctl", "-q", "-w", "net.ipv6.conf.all.disable_ipv6=1",
                 "net.ipv6.conf.default.disable_ipv6=1")
        self.ip("link", "set", "lo", "up")
        return self

    def __exit__(self, *_exc):
        pids = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True,
                              text=True, timeout=SETTLE_S, check=False).stdout.split()
        for pid in pids:
            try:
                os.kill(int(pid), 9)
            except ProcessLookupError:
                pass
        subprocess.run(["ip", "netns", "del", self.name], timeout=SETTLE_S, check=False)

    def command(self, *args):
        """The argument list that runs a command in here, under its own process id."""
        return ["ip", "netns", "exec", self.name, *map(str, args)]

    def run(self, *args, timeout=SETTLE_S, check=True):
        """Runs a command in here to its end; returns subprocess.CompletedProcess."""
        done = subprocess.run(self.command(*args), capture_output=True, text=True,
                              timeout=timeout, check=False)
        if check and done.returncode != 0:
            raise AssertionError("%s: status %d\n%s%s" % (
                " ".join(map(str, args)), done.returncode, done.stdout, done.stderr))
        return done

    def ip(self, *args):
        """ip(8) in here; returns what it prints."""
        return subprocess.run(["ip", "-n", self.name, *map(str, args)], check=True,
                              capture_output=True, text=True, timeout=SETTLE_S).stdout

    def links(self):
        """Names of the interfaces, without lo."""
        lines = self.ip("-br", "link").splitlines()
        return sorted(line.split()[0] for line in lines if not line.startswith("lo "))

    def link_counter(self, iface, name):
        """One of /sys/class/net/IFACE/statistics."""
        return int(self.run("cat", "/sys/class/net/%s/statistics/%s" % (iface, name)).stdout)

    def socket(self, family, kind, protocol=0):
        """A socket that belongs to this namespace and is used from anywhere."""
        made = []

        def make():
            libc = ctypes.CDLL(None, use_errno=True)
            with open("/run/netns/" + self.name) as handle:
                # Moves this thread alone, and the thread ends here.
                if libc.setns(handle.fileno(), CLONE_NEWNET) != 0:
                    made.append(OSError(ctypes.get_errno(), "setns " + self.name))
                    return
            try:
                made.append(socket.socket(family, kind, protocol))
            except OSError as err:
                made.append(err)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]
