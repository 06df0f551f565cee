# SPDX-License-Identifier: BSD-3-Clause
"""Known answers for fe-crypto --vectors: made by Python's hashlib and hmac, and by OpenSSL."""

import ctypes
import hashlib
import hmac
import random

# Numbers of virtio 1.2, 5.9: [name for OpenSSL, bytes of key, bytes of IV, block]
CIPHERS = {3: ("aes-%d-cbc", (16, 24, 32), 16, 16), 4: ("aes-%d-ctr", (16, 24, 32), 16, 1),
           8: ("des-ede3-cbc", (24,), 8, 8)}
HASHES = {1: "md5", 2: "sha1", 3: "sha224", 4: "sha256", 5: "sha384", 6: "sha512"}
GCM = 1
AEAD_MAX = 65000
SIZES = (0, 1, 15, 16, 17, 31, 32, 48, 64, 100, 256, 1000, 1024, 2047, 2048, 2064, 4096, 8192,
         16384, 65520, 65536, 70000, 131072)


class OpenSsl:
    """Ciphers of libcrypto, without padding."""

    GET_TAG = 0x10

    def __init__(self):
        self.lib = ctypes.CDLL("libcrypto.so.3")
        self.lib.EVP_CIPHER_CTX_new.restype = ctypes.c_void_p
        self.lib.EVP_get_cipherbyname.restype = ctypes.c_void_p
        self.ctx = ctypes.c_void_p(self.lib.EVP_CIPHER_CTX_new())

    def encrypt(self, name, key, iv, data, aad=None, tag_bytes=0):
        """Ciphertext; with additional data (that may be empty) the tag behind it."""
        cipher = ctypes.c_void_p(self.lib.EVP_get_cipherbyname(name.encode()))
        out = ctypes.create_string_buffer(len(data) + 32)
        done = ctypes.c_int(0)
        ok = self.lib.EVP_EncryptInit_ex(self.ctx, cipher, None, key, iv)
        ok &= self.lib.EVP_CIPHER_CTX_set_padding(self.ctx, 0)
        if aad:
            ok &= self.lib.EVP_EncryptUpdate(self.ctx, None, ctypes.byref(done), aad, len(aad))
        ok &= self.lib.EVP_EncryptUpdate(self.ctx, out, ctypes.byref(done), data, len(data))
        assert ok == 1 and done.value == len(data)
        if aad is None:
            return out.raw[:len(data)]
        tag = ctypes.create_string_buffer(16)
        end = ctypes.create_string_buffer(32)
        assert self.lib.EVP_EncryptFinal_ex(self.ctx, end, ctypes.byref(done)) == 1
        assert self.lib.EVP_CIPHER_CTX_ctrl(self.ctx, self.GET_TAG, 16, tag) == 1
        return out.raw[:len(data)] + tag.raw[:tag_bytes]


def line(kind, encrypt, cipher, auth, keyed, order, *parts):
    fields = [kind, "enc" if encrypt else "dec", cipher, auth, int(keyed), order]
    return " ".join([*map(str, fields), *(part.hex() or "-" for part in parts)])


def cipher_lines(rnd, openssl):
    for algo, (name, key_sizes, iv_bytes, block) in CIPHERS.items():
        for size in SIZES:
            key, iv = rnd.randbytes(rnd.choice(key_sizes)), rnd.randbytes(iv_bytes)
            plain = rnd.randbytes(size // block * block)
            coded = openssl.encrypt(name % (8 * len(key)) if "%" in name else name, key, iv,
                                    plain)
            yield line("cipher", True, algo, 0, 0, 0, key, b"", iv, b"", plain, coded, b"")
            yield line("cipher", False, algo, 0, 0, 0, key, b"", iv, b"", coded, plain, b"")


def auth_lines(rnd):
    for algo, name in HASHES.items():
        # Longer keys than a block of the hash are not taken.
        key_sizes = (1, 20, hashlib.new(name).block_size)
        for size in SIZES:
            data, key = rnd.randbytes(size), rnd.randbytes(rnd.choice(key_sizes))
            yield line("hash", True, 0, algo, 0, 0, b"", b"", b"", b"", data, b"",
                       hashlib.new(name, data).digest())
            yield line("mac", True, 0, algo, 1, 0, b"", key, b"", b"", data, b"",
                       hmac.new(key, data, name).digest())


def chain_lines(rnd, openssl):
    """Hash then cipher is order 1, cipher then hash 2."""
    for keyed in (True, False):
        for order in (1, 2):
            for size in (16, 64, 1024, 2064, 65536):
                algo = rnd.choice(list(HASHES))
                auth_key = rnd.randbytes(20) if keyed else b""
                key, iv, plain = rnd.randbytes(16), rnd.randbytes(16), rnd.randbytes(size)
                coded = openssl.encrypt("aes-128-cbc", key, iv, plain)
                for encrypt in (True, False):
                    src, dst = (plain, coded) if encrypt else (coded, plain)
                    hashed = src if order == 1 else dst
                    digest = hmac.new(auth_key, hashed, HASHES[algo]).digest() if keyed \
                        else hashlib.new(HASHES[algo], hashed).digest()
                    yield line("chain", encrypt, 3, algo, keyed, order, key, auth_key, iv, b"",
                               src, dst, digest)


def aead_lines(rnd, openssl):
    """The digest field says how long the tag is, which stands behind the ciphertext."""
    for size in SIZES:
        if size > AEAD_MAX:
            continue
        key, iv = rnd.randbytes(rnd.choice((16, 24, 32))), rnd.randbytes(12)
        aad, plain = rnd.randbytes(rnd.choice((0, 8, 16, 20, 300))), rnd.randbytes(size)
        coded = openssl.encrypt("aes-%d-gcm" % (8 * len(key)), key, iv, plain, aad, 16)
        yield line("aead", True, GCM, 0, 0, 0, key, b"", iv, aad, plain, coded, bytes(16))
        yield line("aead", False, GCM, 0, 0, 0, key, b"", iv, aad, coded, plain, bytes(16))


def write(path, seed):
    """Writes them all; returns how many."""
    rnd, openssl = random.Random(seed), OpenSsl()
    lines = [*cipher_lines(rnd, openssl), *auth_lines(rnd), *chain_lines(rnd, openssl),
             *aead_lines(rnd, openssl)]
    path.write_text("\n".join(lines) + "\n")
    return len(lines)
