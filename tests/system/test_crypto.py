# SPDX-License-Identifier: BSD-3-Clause
"""Crypto devices: known answers, requests that break rules, and a QEMU guest's kernel."""

import base64
import gzip
import os
import re
import zlib

import pytest

import crypto_vectors
from daemon import BUILD, Daemon, wait_until
from frontend import REPORTS, program
from guest import Guest

AFALG = BUILD / "tests" / "frontend" / "crypto-afalg"
DRIVER = "virtio_crypto_aes_cbc"
# Each takes a few wake-ups of an emulated guest; the long form is VHP_CRYPTO_COUNT=10000.
COUNT = int(os.environ.get("VHP_CRYPTO_COUNT", "2000"))
REKEYS = COUNT // 50


def devices(sock, keys=""):
    return ("crypto_openssl0",
            "vhost_crypto0,cryptodev=crypto_openssl0,iface=%s%s" % (sock, keys))


def two_devices(directory):
    """The second has room for few sessions."""
    return (*devices(directory / "c0"),
            "vhost_crypto1,cryptodev=crypto_openssl0,queues=2,sessions=100,iface=%s"
            % (directory / "c1"))


@pytest.fixture(name="pair", scope="module")
def pair_fixture(module_netns, module_dir):
    """A daemon with two crypto devices, and a file of vectors."""
    vectors = module_dir / "vectors"
    number = crypto_vectors.write(vectors, 1)
    with Daemon(module_netns, module_dir, *two_devices(module_dir)) as daemon:
        daemon.vectors, daemon.number, daemon.dir = vectors, number, module_dir
        yield daemon
        counters = daemon.ask("/vhp/crypto,vhost_crypto0")
        assert counters["sessions"] == 0, "sessions outlive their connection"
        daemon.stop(limit_s=20)
        assert not REPORTS.search(daemon.err.read_text(errors="replace"))


def fe_crypto(daemon, *args):
    done = daemon.netns.run("timeout", "-k", "1", "-s", "KILL", 100, program("fe-crypto"), *args,
                            timeout=110, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert daemon.alive()
    return done.stdout


LAYOUTS = [(), ("--packed",), ("--event-idx",), ("--packed", "--event-idx")]
built = pytest.mark.skipif(program("fe-crypto") is None, reason="fe-crypto was not built")


@built
@pytest.mark.frontend
@pytest.mark.parametrize("layout", LAYOUTS)
def test_vectors(pair, layout):
    """Each algorithm and size, data cut anywhere, both ways to make the session."""
    out = fe_crypto(pair, "--socket", pair.dir / "c0", *layout, "--vectors", pair.vectors)
    assert "%d vectors, 0 failed" % pair.number in out


@built
@pytest.mark.frontend
@pytest.mark.parametrize("layout", LAYOUTS)
def test_hostile(pair, layout):
    """What breaks a rule is answered so, and a good request after it passes."""
    before = pair.ask("/vhp/crypto,vhost_crypto1")
    out = fe_crypto(pair, "--socket", pair.dir / "c1", *layout, "--hostile", pair.dir / "c0")
    assert len(re.findall("^ok ", out, re.M)) == 11
    after = pair.ask("/vhp/crypto,vhost_crypto1")
    # Case C2: closed, five by the ring and two by messages, and not there.
    assert after["unknown_sessions"] - before["unknown_sessions"] == 7
    # Case C3: of fourteen messages that are wrong, and one that is too short; the ring's are more.
    assert after["sessions_refused"] - before["sessions_refused"] >= 15


@built
@pytest.mark.frontend
@pytest.mark.parametrize("mode", ["busy", "wait"])
def test_many_workers(pair, mode):
    """Sessions made and destroyed by eight threads at once: none fails, none is left."""
    before = pair.ask("/vhp/crypto,vhost_crypto0")
    fe_crypto(pair, "--socket", pair.dir / "c0", "--event-idx", "--bench", mode, "--workers", 8,
              "--seconds", 1)
    after = pair.ask("/vhp/crypto,vhost_crypto0")
    made = after["sessions_created"] - before["sessions_created"]
    assert made == after["sessions_closed"] - before["sessions_closed"] > 0
    assert after["control_requests"] - before["control_requests"] == 2 * made


@built
def test_configuration_says_what_there_is(pair):
    out = fe_crypto(pair, "--socket", pair.dir / "c1", "--config")
    values = dict(zip(*[iter(out.split("\n")[0].split()[1:])] * 2))
    assert (values["status"], values["dataqueues"]) == ("1", "2")
    ciphers, hashes = int(values["ciphers"], 16), int(values["hashes"], 16)
    for algo in crypto_vectors.CIPHERS:
        assert ciphers >> algo & 1
    for algo in crypto_vectors.HASHES:
        assert hashes >> algo & 1 and int(values["macs"], 16) >> algo & 1
    assert int(values["aeads"], 16) >> crypto_vectors.GCM & 1


class Generator:
    """The numbers of crypto_afalg.c."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return self.state >> 33


def expected_crc(seed, count):
    """What crypto-afalg prints, by OpenSSL."""
    gen, openssl = Generator(seed), crypto_vectors.OpenSsl()
    pool = bytes(gen.next() >> 8 & 255 for _ in range(65536))
    crc, key = 0, b""
    for n in range(count):
        key_bytes = 16 + 8 * (gen.next() % 3)
        key_at, iv_at = gen.next() % 4096, gen.next() % 4096
        size = 16 * (1 + gen.next() % (2048 if n % 64 == 0 else 32))
        at = gen.next() % 32768
        gen.next()  # where it is cut
        if n % 8 == 0:
            key = pool[key_at:key_at + key_bytes]
        crc = zlib.crc32(openssl.encrypt("aes-%d-cbc" % (8 * len(key)), key, pool[iv_at:iv_at + 16],
                                         pool[at:at + size]), crc)
    return crc


def put_program(guest):
    text = base64.b64encode(gzip.compress(AFALG.read_bytes())).decode()
    guest.sh("echo %s | base64 -d | gunzip >/bin/crypto-afalg && chmod 755 /bin/crypto-afalg"
             % text)


def selftests(guest):
    """{driver: result} of what virtio_crypto registered."""
    text = guest.sh("cat /proc/crypto")
    return dict(re.findall(r"driver +: (virtio\S+)\n(?:.*\n)*?selftest +: (\S+)\n", text))


def crypt(guest, seed, count):
    out = guest.sh("crypto-afalg crypt %s %d %d" % (DRIVER, seed, count), limit=120)
    assert out.split() == ["crc", "%08x" % expected_crc(seed, count)]


def rekey(guest, daemon, workers, keys):
    """Keys from so many processes: all set, and no session is left over."""
    before = daemon.ask("/vhp/crypto,vhost_crypto0")
    out = guest.sh("crypto-afalg rekey %s %d %d" % (DRIVER, workers, keys), limit=120)
    assert out.split() == ["rekeyed", str(workers * keys), "failed", "0"]
    wait_until(lambda: daemon.ask("/vhp/crypto,vhost_crypto0")["sessions"] ==
               before["sessions"], 10, "sessions are left over")
    after = daemon.ask("/vhp/crypto,vhost_crypto0")
    # One to encrypt and one to decrypt.
    assert after["sessions_created"] - before["sessions_created"] == 2 * workers * keys
    assert after["sessions_closed"] - before["sessions_closed"] == 2 * workers * keys


@pytest.mark.skipif(not AFALG.exists(), reason="crypto-afalg was not built")
def test_qemu_guest(netns, short_dir):
    """Self-tests, results against OpenSSL's, keys by 1 and 8 processes, restarts."""
    sock = short_dir / "crypto"
    with Daemon(netns, short_dir, *devices(sock)) as daemon, \
            Daemon(netns, short_dir, *devices(sock), start=False) as second, \
            Guest(options=["--crypto", "%s,reconnect=1" % sock]) as guest:
        guest.wait_up()
        assert selftests(guest) == {DRIVER: "passed"}
        put_program(guest)
        crypt(guest, 1, COUNT)
        rekey(guest, daemon, 1, REKEYS)
        rekey(guest, daemon, 8, REKEYS // 8)
        counters = daemon.ask("/vhp/crypto,vhost_crypto0")
        assert counters["requests"] == counters["answered_ok"] >= COUNT
        assert (counters["sessions_refused"], counters["drops"]) == (0, 0)
        guest.reboot()
        assert selftests(guest) == {DRIVER: "passed"}
        put_program(guest)
        crypt(guest, 2, COUNT // 10)
        daemon.stop()
        second.start()
        # QEMU 7.2 takes up the connection again, and with it sessions; not the rings.
        wait_until(lambda: guest.serial.run("crypto-afalg rekey %s 1 1" % DRIVER, 20)[0] == 0,
                   30, "no key can be set after a restart", step_s=0.3)
        assert second.ask("/vhp/crypto,vhost_crypto0")["sessions_created"] >= 2
        second.stop()
