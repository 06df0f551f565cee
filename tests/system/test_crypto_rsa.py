# SPDX-License-Identifier: BSD-3-Clause
"""RSA of crypto devices against the openssl command, and keys that are none."""

import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from daemon import Daemon, wait_until
from frontend import REPORTS, SANITIZED, program

# Numbers of virtio 1.2, 5.9: paddings, hashes, answers.
RAW, PKCS1 = 0, 1
NO_HASH = 0
HASHES = {4: ("md5", 16), 5: ("sha1", 20), 6: ("sha256", 32), 7: ("sha384", 48),
          8: ("sha512", 64), 9: ("sha224", 28)}
OK, ERR, BADMSG, NOTSUPP, KEY_REJECTED = 0, 1, 2, 3, 6
AKCIPHER_SERVICE, RSA = 4, 1
BITS = (1024, 1031, 2048, 4096)

pytestmark = [pytest.mark.frontend,
              pytest.mark.skipif(program("fe-crypto") is None, reason="fe-crypto was not built")]


def openssl(*args, data=b""):
    return subprocess.run(["openssl", *map(str, args)], input=data, check=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


# ---- DER of keys ---------------------------------------------------------------------

def der(tag, content):
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def integer(number):
    return der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def sequence(*numbers):
    return der(0x30, b"".join(integer(number) for number in numbers))


def read_sequence(data):
    """The numbers of a key."""
    def length(at):
        if data[at] < 128:
            return data[at], at + 1
        end = at + 1 + (data[at] & 127)
        return int.from_bytes(data[at + 1:end], "big"), end

    numbers, (_, at) = [], length(1)
    while at < len(data):
        size, at = length(at + 1)
        numbers.append(int.from_bytes(data[at:at + size], "big"))
        at += size
    return numbers


class Key:
    """A key, and what the openssl command makes with it."""

    def __init__(self, directory, bits):
        self.path = directory / ("rsa%d" % bits)
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:%d" % bits, "-out",
                self.path)
        self.private = openssl("rsa", "-in", self.path, "-traditional", "-outform", "DER")
        self.public = openssl("rsa", "-in", self.path, "-RSAPublicKey_out", "-outform", "DER")
        self.numbers = read_sequence(self.private)
        self.n = self.numbers[1]
        self.bytes = (bits + 7) // 8

    def do(self, what, data, *options):
        return openssl("pkeyutl", what, "-inkey", self.path,
                       *(part for option in options for part in ("-pkeyopt", option)), data=data)

    def raw_encrypt(self, data):
        return self.do("-encrypt", data, "rsa_padding_mode:none")

    def raw_sign(self, data):
        """The command signs nothing longer than a digest."""
        return pow(int.from_bytes(data, "big"), self.numbers[3], self.n).to_bytes(self.bytes, "big")


# ---- lines for fe-crypto ---------------------------------------------------------------

class Lines:
    """Sessions and requests, and the answers that they have to get."""

    def __init__(self):
        self.lines, self.printed = [], []

    def session(self, private, padding, hashed, key, status=OK):
        self.lines.append("session %s %d %d %s %d" % ("private" if private else "public", padding,
                                                       hashed, key.hex() or "-", status))

    def ask(self, what, source, room, result, status=OK):
        self.lines.append("%s %s %d %d %s" % (what, source.hex() or "-", room, status,
                                               result.hex() or "-"))

    def ask_printed(self, what, source, room, check):
        """check gets the result that was printed."""
        self.lines.append("%s %s %d %d ?" % (what, source.hex(), room, OK))
        self.printed.append(check)

    def verify(self, signature, digest, status=OK):
        self.lines.append("verify %s %s %d" % (signature.hex() or "-", digest.hex() or "-",
                                                status))


def turned(data, at):
    """With one bit changed."""
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]


def signature_lines(lines, key, rnd):
    for number, (name, size) in HASHES.items():
        digest = rnd.randbytes(size)
        signature = key.do("-sign", digest, "digest:%s" % name)
        lines.session(False, PKCS1, number, key.public)
        lines.verify(signature, digest)
        lines.verify(turned(signature, rnd.randrange(1, key.bytes)), digest, KEY_REJECTED)
        lines.verify(signature, turned(digest, rnd.randrange(size)), KEY_REJECTED)
        lines.verify(signature, digest[:-1], KEY_REJECTED)
        lines.verify(signature[:-1], digest, KEY_REJECTED)
        lines.verify(b"", digest, KEY_REJECTED)
        lines.verify(signature, b"", KEY_REJECTED)
        lines.verify(signature + b"\0", digest, BADMSG)
        lines.ask("sign", digest, key.bytes, b"", BADMSG)
        lines.session(True, PKCS1, number, key.private)
        lines.ask("sign", digest, key.bytes, signature)
        lines.ask("sign", digest, key.bytes + 100, signature)
        lines.ask("sign", digest, key.bytes - 1, b"", BADMSG)
        lines.ask("sign", digest[1:], key.bytes, b"", ERR)
        lines.verify(signature, digest)
    # Without a hash what is padded is what there is.
    short, text = rnd.randbytes(40), rnd.randbytes(key.bytes - 11)
    signature = key.raw_sign(b"\0\1" + b"\xff" * 8 + b"\0" + text)
    lines.session(True, PKCS1, NO_HASH, key.private)
    lines.ask("sign", short, key.bytes, key.do("-sign", short))
    lines.ask("sign", text, key.bytes, signature)
    lines.ask("sign", text + b"x", key.bytes, b"", ERR)
    lines.verify(signature, text)
    lines.verify(signature, text[:-1], KEY_REJECTED)


def padded_lines(lines, key, rnd):
    lines.session(True, PKCS1, 5, key.private)
    for size in (1, 20, key.bytes - 11):
        text = rnd.randbytes(size)
        coded = key.do("-encrypt", text)
        lines.ask("decrypt", coded, key.bytes, text)
        lines.ask("decrypt", coded, size, text)
        lines.ask("decrypt", coded, size - 1, b"", ERR)
        lines.ask_printed("encrypt", text, key.bytes + size,
                          lambda coded, text=text: key.do("-decrypt", coded) == text)
    lines.ask("decrypt", coded + b"x", key.bytes, b"", BADMSG)
    lines.ask("encrypt", text + b"x", key.bytes, b"", ERR)
    lines.session(False, PKCS1, NO_HASH, key.public)
    lines.ask_printed("encrypt", text, key.bytes,
                      lambda coded: key.do("-decrypt", coded) == text)
    lines.ask("decrypt", coded, key.bytes, b"", BADMSG)


def raw_lines(lines, key, rnd):
    text = rnd.randrange(key.n).to_bytes(key.bytes, "big")
    short = rnd.randbytes(8)
    full = short.rjust(key.bytes, b"\0")
    coded, coded_short = key.raw_encrypt(text), key.raw_encrypt(full)
    signature, signature_short = key.raw_sign(text), key.raw_sign(full)
    lines.session(False, RAW, NO_HASH, key.public)
    lines.ask("encrypt", text, key.bytes, coded)
    lines.ask("encrypt", short, key.bytes, coded_short)
    lines.ask("encrypt", key.n.to_bytes(key.bytes, "big"), key.bytes, b"", ERR)
    lines.ask("encrypt", (key.n - 1).to_bytes(key.bytes, "big"), key.bytes,
              (key.n - 1).to_bytes(key.bytes, "big"))
    lines.ask("encrypt", b"\0" + text, key.bytes, b"", BADMSG)
    lines.verify(signature, text)
    lines.verify(signature_short, short)
    lines.verify(signature, short, KEY_REJECTED)
    lines.session(True, RAW, NO_HASH, key.private)
    lines.ask("decrypt", coded, key.bytes, text)
    lines.ask("decrypt", coded_short, key.bytes, full)
    lines.ask("decrypt", coded, key.bytes - 1, b"", ERR)
    lines.ask("sign", text, key.bytes, signature)
    lines.ask("sign", short, key.bytes, signature_short)


def odd_factor_lines(lines, key, rnd):
    """Only the modulus and its exponents have to be right."""
    head, (p, q, dp, dq, qinv) = key.numbers[:4], key.numbers[4:]
    digest = rnd.randbytes(32)
    signature = key.do("-sign", digest, "digest:sha256")
    for factors in ((0, 0, 0, 0, 0), (q, p, dp, dq, qinv), (p, q, dp - 2, dq, qinv),
                    (p, q, dp, dq, qinv - 1), (p, q, dp, dq, p), (p + 2, q, dp, dq, qinv),
                    (1, key.n, dp, dq, qinv), (3, 5, 2, 3, 2), (key.n, key.n, dp, dq, qinv)):
        lines.session(True, PKCS1, 6, sequence(*head, *factors))
        lines.ask("sign", digest, key.bytes, signature)


def no_key_lines(lines, key, others):
    _, n, e, d, *factors = key.numbers
    public = (
        [key.public[:cut] for cut in (0, 1, 2, 3, 10, len(key.public) - 1)] +
        [key.public + b"\0", key.private, sequence(n), sequence(n, e, e),
         sequence(0, e), sequence(1, e), sequence(n - 1, e), sequence(n, 0), sequence(n, 1),
         sequence(n, 2), sequence(n, e - 1), sequence(n, (1 << 64) + 1), sequence(n, n - 2),
         sequence((1 << 504) - 1, e), sequence((1 << 4096) + 1, e), sequence((1 << 16384) + 1, e),
         # A negative modulus, a sequence for a number, nothing in it, lengths beyond the end.
         der(0x30, der(2, b"\xd1" * 128) + integer(e)), der(0x30, sequence(n) + integer(e)),
         der(0x30, der(2, b"") + integer(e)), der(0x30, b""), der(4, key.public),
         bytes.fromhex("3084ffffffff") + key.public[4:],
         bytes.fromhex("3082ffff") + key.public[4:],
         der(0x30, bytes.fromhex("028880000000000000000102")), bytes.fromhex("3080" * 100),
         openssl("rsa", "-in", key.path, "-pubout", "-outform", "DER")])
    for text in public:
        # Longer ones than there is room for, and none at all, are refused before they are read.
        lines.session(False, PKCS1, NO_HASH, text, ERR)
    private = [key.private[:-1], key.private + b"\0", key.public,
               sequence(1, n, e, d, *factors), sequence(2, n, e, d, *factors),
               sequence(0, n, e, d, *factors[:-1]), sequence(0, n, e, d, *factors, 1),
               sequence(0, n, e, 0, *factors), sequence(0, n, e, 1, *factors),
               sequence(0, n, e, n, *factors), sequence(0, n - 1, e, d, *factors),
               sequence(0, *others.numbers[1:3], n + (1 << 2048), *factors),
               openssl("pkcs8", "-topk8", "-nocrypt", "-in", key.path, "-outform", "DER")]
    for text in private:
        lines.session(True, PKCS1, NO_HASH, text, ERR)
    for hashed in (1, 2, 3, 10):
        lines.session(False, PKCS1, hashed, key.public, NOTSUPP)
    lines.session(False, 2, NO_HASH, key.public, NOTSUPP)
    # The hash of what is not padded has no meaning.
    lines.session(False, RAW, 99, key.public)


@pytest.fixture(name="served", scope="module")
def served_fixture(module_netns, module_dir):
    """A daemon with a device, and lines for it."""
    rnd, lines = random.Random(7), Lines()
    with ThreadPoolExecutor(2) as pool:
        keys = dict(zip(BITS, pool.map(lambda bits: Key(module_dir, bits), BITS)))
    for key in keys.values():
        signature_lines(lines, key, rnd)
        padded_lines(lines, key, rnd)
        raw_lines(lines, key, rnd)
    odd_factor_lines(lines, keys[1024], rnd)
    no_key_lines(lines, keys[1024], keys[1031])
    (module_dir / "lines").write_text("\n".join(lines.lines) + "\n")
    with Daemon(module_netns, module_dir, "crypto_openssl0",
                "vhost_crypto0,cryptodev=crypto_openssl0,iface=%s" % (module_dir / "c")) as daemon:
        daemon.lines, daemon.dir, daemon.key = lines, module_dir, keys[2048]
        yield daemon
        daemon.stop(limit_s=20)
        assert not REPORTS.search(daemon.err.read_text(errors="replace"))


def fe_crypto(daemon, *args):
    done = daemon.netns.run("timeout", "-k", "1", "-s", "KILL", 100, program("fe-crypto"),
                            "--socket", daemon.dir / "c", *args, timeout=110, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert daemon.alive()
    return done.stdout


@pytest.mark.parametrize("layout", [("--event-idx",), ("--packed",)])
def test_rsa(served, layout):
    """Signatures and texts of openssl's are taken, and it takes ours; broken keys are not."""
    before = served.ask("/vhp/crypto,vhost_crypto0")
    out = fe_crypto(served, *layout, "--rsa", served.dir / "lines")
    assert "%d lines, 0 failed" % len(served.lines.lines) in out
    printed = [bytes.fromhex(line[4:]) for line in out.splitlines() if line.startswith("out ")]
    assert len(printed) == len(served.lines.printed) > 0
    for check, result in zip(served.lines.printed, printed):
        assert check(result)
    after = served.ask("/vhp/crypto,vhost_crypto0")
    assert after["sessions"] == 0
    # What does not fit its session is not a request of RSA yet.
    asked = [line for line in served.lines.lines if not line.startswith("session")]
    counted = sum(line.split()[3] != str(BADMSG) for line in asked)
    assert after["akcipher_requests"] - before["akcipher_requests"] == 2 * counted
    rejected = sum(line.split()[3] == str(KEY_REJECTED) for line in asked)
    assert after["answered_key_rejected"] - before["answered_key_rejected"] == 2 * rejected > 0


def find_in_memory(pid, needles):
    """Which of them lie somewhere in what the process can write to."""
    found, size = set(), 4 << 20
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps.read().splitlines():
            span, mode = line.split()[:2]
            at, end = (int(edge, 16) for edge in span.split("-"))
            if not mode.startswith("rw") or line.endswith("[vvar]"):
                continue
            tail = b""
            while at < end:
                try:
                    block = os.pread(memory.fileno(), min(size, end - at), at)
                except OSError:
                    break  # not there any more, or never was
                found |= {needle for needle in needles if needle in tail + block}
                tail, at = block[-len(max(needles, key=len)):], at + len(block)
    return found


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's own memory is too large to be read")
def test_keys_are_forgotten(served):
    """A private key lies in the daemon's memory as long as its session, and no longer."""
    pid, fifo, key = served.process.pid, served.dir / "fifo", served.key
    numbers = [key.numbers[i] for i in (3, 4, 5, 6, 7)]  # d, p, q, dp, dq
    needles = {number.to_bytes((number.bit_length() + 7) // 8, order)
               for number in numbers for order in ("big", "little")}
    os.mkfifo(fifo)
    command = served.netns.command("timeout", "-k", "1", "-s", "KILL", 100, program("fe-crypto"),
                                   "--socket", served.dir / "c", "--rsa", fifo)
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE) as driver:
        # For both ends, so that nobody waits for the other to open it.
        with open(os.open(fifo, os.O_RDWR), "w", buffering=1) as lines:
            digest = bytes(range(32))
            signature = key.do("-sign", digest, "digest:sha256")
            before = served.ask("/vhp/crypto,vhost_crypto0")["answered_ok"]
            lines.write("session private %d 6 %s %d\n" % (PKCS1, key.private.hex(), OK))
            lines.write("sign %s %d %d %s\n" % (digest.hex(), key.bytes, OK, signature.hex()))
            wait_until(lambda: served.ask("/vhp/crypto,vhost_crypto0")["answered_ok"] ==
                       before + 2, 30, "nothing was signed")
            assert find_in_memory(pid, needles)
        out = driver.communicate(timeout=30)[0]
    assert driver.returncode == 0 and b"2 lines, 0 failed" in out
    wait_until(lambda: served.ask("/vhp/crypto,vhost_crypto0")["sessions"] == 0, 10, "session left")
    assert not find_in_memory(pid, needles)


def test_configuration(served):
    out = fe_crypto(served, "--config")
    values = dict(zip(*[iter(out.split("\n")[0].split()[1:])] * 2))
    assert int(values["akciphers"], 16) == 1 << RSA
    assert int(values["services"], 16) >> AKCIPHER_SERVICE & 1
    assert served.ask("/vhp/crypto,vhost_crypto0")["services"] == int(values["services"], 16)
