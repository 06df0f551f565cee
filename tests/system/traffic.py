# SPDX-License-Identifier: BSD-3-Clause
"""Traffic between a namespace and the guest on its tap."""

import hashlib
import http.client
import json
import random
import re
import socket
import threading
import time

FILE_BYTES = 64 << 20
CONNECT_S = 10


def ping(netns, address, count, *options):
    """Sends pings until count are answered; fails if one of those before is not."""
    done = netns.run("ping", "-n", "-c", count, "-i", "0.02", "-w", 30, *options, address)
    answered = [int(number) for number in re.findall(r"icmp_seq=(\d+)", done.stdout)]
    # Sent later and under way at the end is not lost; a gap is.
    assert answered == list(range(1, len(answered) + 1)), done.stdout
    assert len(answered) >= count, done.stdout


def iperf3(netns, address, *options, seconds=2):
    """Runs iperf3 in the namespace against the guest's server.

    Returns {"bytes": what the receiver got, "streams": the same per stream}.
    """
    deadline = time.monotonic() + CONNECT_S
    while True:
        done = netns.run("iperf3", "-J", "-c", address, "-t", seconds, "--connect-timeout",
                         5000, *options, timeout=seconds + 30, check=False)
        result = json.loads(done.stdout)
        # Its server listens anew after each test.
        if "Connection refused" not in result.get("error", "") or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert "error" not in result, result["error"]
    end = result["end"]
    return {
        "bytes": end["sum_received"]["bytes"],
        "streams": [stream["receiver"]["bytes"] for stream in end["streams"]],
    }


def pattern(seed, length=FILE_BYTES):
    """The contents of a file, the same for the same seed."""
    return random.Random(seed).randbytes(length)


class GuestReceiver:
    """Lets nc in the guest take one connection and hash it; result() waits."""

    def __init__(self, guest, port, limit_s=120):
        self._answer = None
        self._thread = threading.Thread(target=self._run, args=(guest, port, limit_s))
        self._thread.start()

    def _run(self, guest, port, limit_s):
        try:
            self._answer = guest.serial.run(
                "nc -l -p %d </dev/null >/tmp/in && sha256sum /tmp/in && "
                "wc -c </tmp/in; rm /tmp/in" % port, limit_s)
        except Exception as err:  # pylint: disable=broad-except
            self._answer = err

    def result(self):
        """(bytes, SHA-256 in hex)"""
        self._thread.join()
        if isinstance(self._answer, Exception):
            raise self._answer
        status, output = self._answer
        assert status == 0, output
        return int(output.split()[2]), output.split()[0]


def connect(netns, address, port):
    """A connection to a server that may be about to start."""
    deadline = time.monotonic() + CONNECT_S
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    while True:
        sock = netns.socket(family, socket.SOCK_STREAM)
        sock.settimeout(CONNECT_S)
        try:
            sock.connect((address, port))
            return sock
        except OSError:
            sock.close()
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def send_file(netns, guest, address, port, data, pause=None):
    """Sends data to the guest; asserts that it got exactly that.

    pause: (bytes, function), called once so many bytes have been sent.
    """
    receiver = GuestReceiver(guest, port)
    with connect(netns, address, port) as sock:
        sock.settimeout(60)
        sent = 0
        if pause:
            sock.sendall(data[:pause[0]])
            sent = pause[0]
            pause[1]()
        sock.sendall(data[sent:])
        sock.shutdown(socket.SHUT_WR)
        assert receiver.result() == (len(data), hashlib.sha256(data).hexdigest())


def fetch_file(netns, guest, address, megabytes=FILE_BYTES >> 20):
    """Fetches a file of random bytes from the guest; asserts that it is the same.

    From the guest's web server, since its nc sends 1 KiB at a time and is
    much slower than the network under test.
    """
    guest.sh("dd if=/dev/urandom of=/tmp/out bs=1M count=%d 2>/dev/null" % megabytes)
    wanted = guest.sh("sha256sum /tmp/out").split()[0]
    guest.sh("pidof httpd || httpd -p 80 -h /tmp")
    client = http.client.HTTPConnection(address, 80)
    client.sock = connect(netns, address, 80)
    client.sock.settimeout(60)
    client.request("GET", "/out")
    answer = client.getresponse()
    data = answer.read()
    client.close()
    assert answer.status == 200
    assert len(data) == megabytes << 20
    assert hashlib.sha256(data).hexdigest() == wanted
    guest.sh("rm /tmp/out")
