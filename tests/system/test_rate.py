# SPDX-License-Identifier: BSD-3-Clause
"""Rate limits: no more than they say passes, each direction has its own, nothing is dropped."""

import subprocess
import time

import pytest

from cli_host import assert_mistake, host_fixture, vhost
from daemon import wait_until
from frontend import Bench, program
from test_config import Configured, pair

__all__ = ["host_fixture"]

MEASURE_S = 1.5
AHEAD_S = 0.05  # a burst may run ahead, and the two readings take their time


@pytest.mark.parametrize("key, value, wrong", [
    ("rate", "7999", "out of range"), ("rate", "2000G", "out of range"),
    ("rate", "5X", "not a number"), ("rate", "1M/", "not a number"),
    ("rate-pps", "1/2/3", "not a number")])
def test_mistakes(host, key, value, wrong):
    limits = {"rate": "8000..1000000000000", "rate-pps": "1..1000000000"}
    result = host.end(vhost("%s=%s" % (key, value)))
    assert_mistake(host, result, 'net_vhost0: %s = "%s": %s (0 or %s, or A/B, with k, M or G)'
                   % (key, value, wrong, limits[key]))


class Flood:
    """fe-soak --flood: both directions as fast as it can, 1,514 bytes a frame."""

    def __init__(self, daemon, sock):
        self.daemon = daemon
        self.command = daemon.netns.command(
            "timeout", "-k", "1", "-s", "KILL", 100, program("fe-soak"), "--flood", "--socket",
            sock, "--iface", "tap0")

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *_exc):
        self.process.terminate()
        self.process.wait(10)

    def rates(self):
        """Per second: transmitq bytes, frames, receiveq bytes, frames; and how long it was."""
        names = ["transmitq_bytes", "transmitq_pkts", "receiveq_bytes", "receiveq_pkts"]
        start, before = time.monotonic(), self.daemon.counters()
        time.sleep(MEASURE_S)
        after, end = self.daemon.counters(), time.monotonic()
        return [(after[name] - before[name]) / (end - start) for name in names]

    def wait_moving(self):
        before = self.daemon.counters()
        wait_until(lambda: all(self.daemon.counters()[name] > before[name]
                               for name in ("transmitq_pkts", "receiveq_pkts")), 20,
                   "no frame passes")


def within(measured, limit):
    """Below the limit, and not so far that something else is."""
    return limit / 4 < measured < limit * (1.05 + AHEAD_S / MEASURE_S)


def test_both_directions(netns, short_dir):
    with Bench(netns, short_dir, vhost_keys=",rate=16M/8M") as bench, \
            Flood(bench, bench.socket()) as flood:
        flood.wait_moving()
        time.sleep(0.3)  # what may run ahead has
        tx_bytes, _, rx_bytes, _ = flood.rates()
        assert within(tx_bytes, 2e6) and within(rx_bytes, 1e6), (tx_bytes, rx_bytes)
        counters = bench.counters()
        assert counters["transmitq_limited"] > 0 and counters["receiveq_limited"] > 0
        for ring in ("transmitq", "receiveq"):
            assert counters[ring + "_drops"] == counters[ring + "_faults"] == 0


def test_frames_and_reload(netns, short_dir):
    """Frames a second, of one direction; then the file says something else, under traffic."""
    with Configured(netns, short_dir, pair(0, "rate-pps = 1k/0\n")) as daemon:
        netns.ip("link", "set", "tap0", "up", "txqueuelen", 5000)
        with Flood(daemon, short_dir / "v0") as flood:
            flood.wait_moving()
            time.sleep(0.3)
            _, tx_pkts, _, rx_pkts = flood.rates()
            assert within(tx_pkts, 1000), tx_pkts
            assert daemon.counters()["receiveq_limited"] == 0, rx_pkts
            assert "1 changed" in daemon.reload(pair(0, "rate-pps = 0/500\n"))[0]
            time.sleep(0.3)
            limited = daemon.counters()["transmitq_limited"]
            _, tx_pkts, _, rx_pkts = flood.rates()
            assert within(rx_pkts, 500), rx_pkts
            assert daemon.counters()["transmitq_limited"] == limited
            assert tx_pkts > 1000
            assert "1 changed" in daemon.reload(pair(0))[0]
            counters = daemon.counters()
            flood.wait_moving()
            assert daemon.counters()["receiveq_limited"] == counters["receiveq_limited"]
