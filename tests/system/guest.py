# SPDX-License-Identifier: BSD-3-Clause
"""A QEMU guest of a test, booted by scripts/qemu-guest.sh."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "qemu-guest.sh"
sys.path.insert(0, str(ROOT / "scripts" / "lib"))

from guest_serial import GuestError, GuestSerial  # noqa: E402 pylint: disable=wrong-import-position

BOOT_S = 120  # 5 s on a quiet machine, emulated
BUILD_S = 300  # once, with the download of the kernel


class Guest:
    """Use as a context manager. nets: what qemu-guest.sh's --net takes."""

    def __init__(self, *nets, options=()):
        self.dir = Path(tempfile.mkdtemp(prefix="vhp-guest-", dir="/tmp"))
        self.args = list(options)
        for net in nets:
            self.args += ["--net", net]
        self.serial = GuestSerial(str(self.dir / "serial.sock"))
        self.process = None

    def __enter__(self):
        # Builds it and finds out about KVM, out of the boot's time limit.
        subprocess.run([SCRIPT, "accel"], check=True, timeout=BUILD_S,
                       stdout=subprocess.DEVNULL)
        with open(self.dir / "qemu.log", "wb") as log:
            self.process = subprocess.Popen(
                [SCRIPT, "run", "--dir", self.dir, *self.args],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(self, *_exc):
        self.serial.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for file in self.dir.iterdir():
            file.unlink()
        self.dir.rmdir()

    def wait_up(self):
        """Waits for the end of the boot; returns its id."""
        try:
            return self.serial.wait(BOOT_S)
        except GuestError as err:
            console = self.dir / "console.log"
            raise AssertionError("%s\n%s\n%s" % (
                err, (self.dir / "qemu.log").read_text(),
                console.read_text() if console.exists() else "")) from None

    def reboot(self):
        """Reboots and waits; returns the new boot's id."""
        before = self.serial.boot_id()
        self.serial.check("(sleep 0.2; reboot -f) >/dev/null 2>&1 &")
        return self.serial.wait(BOOT_S, not_boot_id=before)

    def power_off(self):
        """Powers off; returns QEMU's exit status."""
        self.serial.check("(sleep 0.2; poweroff -f) >/dev/null 2>&1 &")
        return self.process.wait(20)

    def sh(self, command, limit=30):
        """Output of a command that has to succeed."""
        return self.serial.check(command, limit)
