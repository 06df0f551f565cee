# SPDX-License-Identifier: BSD-3-Clause
"""Takes the ELF image out of a compressed x86 kernel (bzImage).

    unpack_kernel.py VMLINUZ OUTPUT

QEMU starts the ELF image at once (PVH entry). Unpacking itself is the larger
part of a boot when the CPU is emulated: 4.5 of 7.5 s. Exit status 1 when the
kernel is not compressed with xz or gzip: boot the original then.
"""

import lzma
import sys
import zlib


def unpack(image):
    """The ELF image in image, or None."""
    formats = (
        (b"\xfd7zXZ\x00", lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ)),
        (b"\x1f\x8b\x08", lambda: zlib.decompressobj(31)),
    )
    for magic, decompressor in formats:
        at = image.find(magic)
        while at >= 0:
            try:
                elf = decompressor().decompress(image[at:])
            except (lzma.LZMAError, zlib.error):
                elf = b""
            if elf.startswith(b"\x7fELF"):
                return elf
            at = image.find(magic, at + 1)
    return None


def main():
    with open(sys.argv[1], "rb") as source:
        elf = unpack(source.read())
    if elf is None:
        return 1
    with open(sys.argv[2], "wb") as target:
        target.write(elf)
    return 0


if __name__ == "__main__":
    sys.exit(main())
