# SPDX-License-Identifier: BSD-3-Clause
"""Crypto devices at unusual moments: rings not set up, heads in any order, a busy poller."""

import re
from pathlib import Path

import pytest

import crypto_vectors
from daemon import Daemon
from frontend import SANITIZED
from test_crypto import LAYOUTS, built, devices, fe_crypto
from test_rate import Flood

SESSIONS = 1000 if SANITIZED else 10000
LATENCY = re.compile(r"latency (\w+) answers (\d+) p50 (\d+) p99 (\d+) p99.9 (\d+) longest (\d+) us")


@pytest.fixture(name="busy", scope="module")
def busy_fixture(module_netns, module_dir):
    """A crypto device that sleeps at once, and a network device on the same poller."""
    with Daemon(module_netns, module_dir, *devices(module_dir / "c0", ",poll-us=0"),
                "net_vhost0,iface=%s" % (module_dir / "v0"),
                "net_tap0,iface=tap0") as daemon:
        module_netns.ip("link", "set", "tap0", "up", "mtu", 65521, "txqueuelen", 5000)
        daemon.dir = module_dir
        yield daemon
        assert daemon.ask("/vhp/crypto,vhost_crypto0")["sessions"] == 0
        daemon.stop(limit_s=20)


def crypto(daemon, *args):
    return fe_crypto(daemon, "--socket", daemon.dir / "c0", *args)


@built
@pytest.mark.frontend
@pytest.mark.parametrize("layout", [LAYOUTS[0], LAYOUTS[3]])
def test_rings_that_are_not_there_yet(busy, layout):
    """C1: kicked, enabled, asked for in any order; then what is right works."""
    out = crypto(busy, *layout, "--early")
    assert len(re.findall("^ok C1 ", out, re.M)) == 16


@built
@pytest.mark.frontend
@pytest.mark.parametrize("layout", LAYOUTS)
def test_heads_in_falling_order(busy, layout):
    """C5: each used id is the head that was offered at its place, with the bytes of its own."""
    before = busy.ask("/vhp/crypto,vhost_crypto0")
    assert "ok C5 " in crypto(busy, *layout, "--reversed")
    after = busy.ask("/vhp/crypto,vhost_crypto0")
    assert after["answered_ok"] - before["answered_ok"] == 800
    # Eight of a round, and the one that the requests used.
    assert after["sessions_created"] - before["sessions_created"] == 801


@built
@pytest.mark.frontend
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [16, 1024, 65536])
def test_many_requests_in_flight(busy, layout, size):
    """64 at a time, from source to destination and by a copy; every answer is right."""
    before = busy.ask("/vhp/crypto,vhost_crypto0")
    out = crypto(busy, *layout, "--data", size, "--ms", 200)
    done, wrong = map(int, re.search(r"requests (\d+) .* wrong (\d+)", out).groups())
    after = busy.ask("/vhp/crypto,vhost_crypto0")
    assert wrong == 0 < done
    # Those that were in flight at the end are answered, too.
    requests = after["answered_ok"] - before["answered_ok"]
    assert requests == done + 64
    assert after["bytes"] - before["bytes"] == requests * size


def multi_buffer_lines(lines):
    """Vectors for crypto_aesni_mb: no MD5 but in HMAC, MACs only of what is encrypted, nothing
    empty, nothing longer than an mbuf."""
    for line in lines:
        kind, direction, _, auth, *_, src, _, _ = line.split()
        chain = kind.startswith("chain")
        if len(src) // 2 > 65472 or (src == "-" and kind != "aead"):
            continue
        if chain and (direction == "dec" or auth == "1"):
            continue
        if kind == "hash" and auth == "1":
            continue
        yield line


@built
@pytest.mark.skipif(not list(Path("/usr/lib").glob("*/dpdk/pmds-*/librte_crypto_ipsec_mb.so.*")),
                    reason="this DPDK has no crypto_aesni_mb")
def test_another_cryptodev(netns, short_dir):
    """crypto_aesni_mb takes no data in pieces and nothing empty: it is not given any."""
    crypto_vectors.write(short_dir / "all", 1)
    lines = list(multi_buffer_lines((short_dir / "all").read_text().splitlines(True)))
    assert len(lines) > 300
    (short_dir / "vectors").write_text("".join(lines))
    with Daemon(netns, short_dir, "crypto_aesni_mb0", "crypto_null0",
                "vhost_crypto0,cryptodev=crypto_aesni_mb0,iface=%s" % (short_dir / "c0"),
                "vhost_crypto1,cryptodev=crypto_null0,iface=%s" % (short_dir / "c1")) as daemon:
        daemon.dir = short_dir
        out = crypto(daemon, "--vectors", short_dir / "vectors")
        assert "%d vectors, 0 failed" % len(lines) in out
        assert "crypto_null0: has nothing that virtio-crypto knows" in daemon.err.read_text()
        daemon.stop()


def latency(daemon, pause_us):
    """C6. How long a wait may be depends on the machine; half of them is not its noise."""
    before = daemon.ask("/vhp/crypto,vhost_crypto0")
    found = LATENCY.findall(crypto(daemon, "--event-idx", "--latency", SESSIONS,
                                   "--pause-us", pause_us))
    after = daemon.ask("/vhp/crypto,vhost_crypto0")
    assert [(row[0], int(row[1])) for row in found] == [
        ("message", 2 * SESSIONS), ("ring", 2 * SESSIONS)]
    for name in ("sessions_created", "sessions_closed", "control_requests"):
        assert after[name] - before[name] == 2 * SESSIONS
    for way, _, p50, *_ in found:
        assert int(p50) < 5000, (way, found)


@built
@pytest.mark.frontend
def test_sessions_while_the_poller_sleeps(busy):
    sleeps = busy.ask("/vhp/poller,0")["sleeps"]
    latency(busy, 100)
    assert busy.ask("/vhp/poller,0")["sleeps"] - sleeps > SESSIONS // 10


@built
@pytest.mark.frontend
def test_sessions_under_a_flood(busy):
    with Flood(busy, busy.dir / "v0") as flood:
        flood.wait_moving()
        before = busy.counters()
        latency(busy, 0)
        after = busy.counters()
        assert all(after[name] > before[name] for name in ("transmitq_pkts", "receiveq_pkts"))
