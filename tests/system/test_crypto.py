# SPDX-License-Identifier: BSD-3-Clause
"""Crypto devices: a QEMU guest's kernel as the user of one."""

import base64
import ctypes
import gzip
import re
import zlib

import pytest

from daemon import BUILD, Daemon, wait_until
from guest import Guest

AFALG = BUILD / "tests" / "frontend" / "crypto-afalg"
DRIVER = "virtio_crypto_aes_cbc"
COUNT = 10000
REKEYS = 100


def devices(sock, keys=""):
    return ("crypto_openssl0",
            "vhost_crypto0,cryptodev=crypto_openssl0,iface=%s%s" % (sock, keys))


class Generator:
    """The numbers of crypto_afalg.c."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return self.state >> 33


class OpenSsl:
    """AES-CBC of libcrypto, without padding."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcrypto.so.3")
        self.lib.EVP_CIPHER_CTX_new.restype = ctypes.c_void_p
        for bits in (128, 192, 256):
            getattr(self.lib, "EVP_aes_%d_cbc" % bits).restype = ctypes.c_void_p
        self.ctx = ctypes.c_void_p(self.lib.EVP_CIPHER_CTX_new())

    def encrypt(self, key, iv, data):
        cipher = ctypes.c_void_p(getattr(self.lib, "EVP_aes_%d_cbc" % (8 * len(key)))())
        out = ctypes.create_string_buffer(len(data) + 32)
        done = ctypes.c_int(0)
        assert self.lib.EVP_EncryptInit_ex(self.ctx, cipher, None, key, iv) == 1
        assert self.lib.EVP_CIPHER_CTX_set_padding(self.ctx, 0) == 1
        assert self.lib.EVP_EncryptUpdate(self.ctx, out, ctypes.byref(done), data,
                                          len(data)) == 1
        assert done.value == len(data)
        return out.raw[:len(data)]


def expected_crc(seed, count):
    """What crypto-afalg prints, by OpenSSL."""
    gen, openssl = Generator(seed), OpenSsl()
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
        crc = zlib.crc32(openssl.encrypt(key, pool[iv_at:iv_at + 16], pool[at:at + size]), crc)
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
    out = guest.sh("crypto-afalg crypt %s %d %d" % (DRIVER, seed, count), limit=60)
    assert out.split() == ["crc", "%08x" % expected_crc(seed, count)]


def rekey(guest, daemon, workers, keys):
    """Keys from so many processes: all set, and no session is left over."""
    before = daemon.ask("/vhp/crypto,vhost_crypto0")
    out = guest.sh("crypto-afalg rekey %s %d %d" % (DRIVER, workers, keys), limit=60)
    assert out.split() == ["rekeyed", str(workers * keys), "failed", "0"]
    wait_until(lambda: daemon.ask("/vhp/crypto,vhost_crypto0")["sessions"] ==
               before["sessions"], 10, "sessions are left over")
    after = daemon.ask("/vhp/crypto,vhost_crypto0")
    # One to encrypt and one to decrypt.
    assert after["sessions_created"] - before["sessions_created"] == 2 * workers * keys
    assert after["sessions_closed"] - before["sessions_closed"] == 2 * workers * keys


@pytest.mark.skipif(not AFALG.exists(), reason="crypto-afalg was not built")
def test_qemu_guest(netns, short_dir):
    """Self-tests, 10^4 results against OpenSSL's, keys by 1 and 8 processes, restarts."""
    sock = short_dir / "crypto"
    with Daemon(netns, short_dir, *devices(sock)) as daemon, \
            Daemon(netns, short_dir, *devices(sock), start=False) as second, \
            Guest(options=["--crypto", "%s,reconnect=1" % sock]) as guest:
        guest.wait_up()
        assert selftests(guest) == {DRIVER: "passed"}
        put_program(guest)
        crypt(guest, 1, COUNT)
        rekey(guest, daemon, 1, REKEYS)
        rekey(guest, daemon, 8, REKEYS // 4)
        counters = daemon.ask("/vhp/crypto,vhost_crypto0")
        assert counters["requests"] == counters["answered_ok"] >= COUNT
        assert (counters["sessions_refused"], counters["drops"]) == (0, 0)
        guest.reboot()
        assert selftests(guest) == {DRIVER: "passed"}
        put_program(guest)
        crypt(guest, 2, 1000)
        daemon.stop()
        second.start()
        # QEMU 7.2 takes up the connection again, and with it sessions; not the rings.
        wait_until(lambda: guest.serial.run("crypto-afalg rekey %s 1 1" % DRIVER, 20)[0] == 0,
                   30, "no key can be set after a restart", step_s=0.3)
        assert second.ask("/vhp/crypto,vhost_crypto0")["sessions_created"] >= 2
        second.stop()
