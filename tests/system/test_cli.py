# SPDX-License-Identifier: BSD-3-Clause
"""The real binary's command line: every mistake is one line, status 2, and nothing left."""
import os
import re
import socket
import stat
from pathlib import Path

import pytest

from cli_host import PAIR, T0, V0, VHOST, assert_mistake, host_fixture, tap, vhost
from daemon import ROOT

MAN = ROOT / "app" / "dpdk-vhost-rxpoll.8"
__all__ = ["host_fixture"]

ONE_EACH = "two net_vhost, or one and a host port"
MISTAKES = [
    # devices and keys
    ([], "no device given (--vdev net_vhost0,iface=PATH --vdev net_tap0; see --help)"),
    (["--vdev", "net_vhst0,iface={dir}/v0", *T0],
     "net_vhst0: unknown device (net_vhost<N>, net_tap<N>, net_af_packet<N>, vhost_crypto<N>, "
     "or one that DPDK has a driver for)"),
    (["--vdev", "net_vhost,iface={dir}/v0", *T0],
     "net_vhost: unknown device (net_vhost<N>, N a number)"),
    (["--vdev", "net_vhost0", *T0],
     "net_vhost0: iface: missing (path of the vhost-user socket)"),
    (tap("colour=red"), 'net_tap0: colour = "red": unknown key '
                        "(iface, mac, persist, queues, sndbuf, bridge, offload)"),
    (vhost("queues=1,queues=1"), 'net_vhost0: queues = "1": given twice (once)'),
    (vhost("queues=0x"), 'net_vhost0: queues = "0x": not a number (1..128)'),
    (vhost("queues=129"), 'net_vhost0: queues = "129": out of range (1..128)'),
    (vhost("poll-us=aut0"),
     'net_vhost0: poll-us = "aut0": not a number (0..1000000, auto or forever)'),
    (tap("mac=1:2:3"), 'net_tap0: mac = "1:2:3": not an Ethernet address '
                       "(xx:xx:xx:xx:xx:xx or fixed)"),
    (["--vdev", "net_vhost0,iface=/" + "x" * 107, *T0],
     'net_vhost0: iface = "/' + "x" * 107 + '": too long (1..107 bytes)'),
    ([*PAIR, *V0], "net_vhost0: given twice (once)"),
    ([*PAIR, "--vdev", "net_vhost1,iface={dir}/v0", "--vdev", "net_tap1"],
     'net_vhost1: iface = "{dir}/v0": net_vhost0 has it (one device each)'),
    # pairing
    (V0, "net_vhost0: no device left to join it with "
         "(an even number of devices, or peer=NAME)"),
    (vhost("peer=net_tap7"), 'net_vhost0: peer = "net_tap7": no such device (net_tap0)'),
    (["--vdev", "net_null0", "--vdev", "net_null1"],
     f"net_null0: cannot be joined with net_null1 ({ONE_EACH})"),
    ([*PAIR, "-a", "0000:00:1f.7"],
     "net_tap0: no device left to join it with (an even number of devices, or peer=NAME)"),
    # the host
    (["--vdev", "net_vhost0,iface={dir}/none/v0", *T0],
     'net_vhost0: iface = "{dir}/none/v0": its directory does not exist (an existing directory)'),
    (["--vdev", "net_vhost0,iface={dir}", *T0],
     'net_vhost0: iface = "{dir}": a file that is no socket is there (a path that is free)'),
    (vhost("socket-group=no-such-group"),
     'net_vhost0: socket-group = "no-such-group": no such group (name or number of a group)'),
    (vhost("socket-owner=no-such-user"),
     'net_vhost0: socket-owner = "no-such-user": no such user (name or number of a user)'),
    (tap("iface=lo"), 'net_tap0: iface = "lo": in use by an interface that is not a tap'),
    (tap("iface=tap0,bridge=lo"), 'net_tap0: bridge = "lo": not a bridge of this host'),
    # lcores
    (["-l", "0,4000", *PAIR], "-l 0,4000: not a list of lcores (0,2-3)"),
    (["-l", "0", *PAIR], "-l 0: no lcore for a poller (two at least: main thread and poller)"),
    (["--main-lcore", "1", *PAIR], "--main-lcore 1: not without -l, -c or --lcores"),
    (vhost("poller=1"), 'net_vhost0: poller = "1": no such poller (0..0)'),
    # options
    ([*PAIR, "--frobnicate"],
     '--frobnicate: unknown option (EAL\'s before "--", others after it)'),
    ([*PAIR, "--", "--frobnicate"], "--frobnicate: unknown option "
     "(--poll-us, --poll-us-max, --poll-waste, --rebalance, --rx-poll, --stats, --pcap, "
     "--config, --check, --verbose, --version, --help)"),
    ([*PAIR, "--stats", "1"], '--stats: on the wrong side (after "--")'),
    ([*PAIR, "--", "--stats", "never"], '--stats = "never": not a number (1..86400)'),
    ([*PAIR, "--", "--poll-us", "1000001"],
     '--poll-us = "1000001": out of range (0..1000000, auto or forever)'),
    # EAL's own
    (["-n", "0", "--no-huge", *PAIR], "EAL cannot start: invalid channel number "
     "(options given: --file-prefix {prefix} -n 0 --no-huge)"),
    (["--iova-mode=sideways", *PAIR], "EAL cannot start: invalid parameters for --iova-mode "
     "(options given: --file-prefix {prefix} --iova-mode=sideways)"),
    (["--vdev", "crypto_null0,nonsense=1", *PAIR], "crypto_null0: DPDK could not start it: "
     "cryptodev_null_probe() line N: Failed to parse initialisation arguments[nonsense=1]"),
]


@pytest.mark.parametrize("args,message", MISTAKES)
def test_mistake(host, args, message):
    before = host.left()
    assert_mistake(host, host.end(args), message)
    assert host.left() == before


def test_lcore_not_available(host):
    online = Path("/sys/devices/system/cpu/online").read_text(encoding="ascii")
    last = int(re.split("[,-]", online.strip())[-1])
    before = host.left()
    result = host.end(["-l", f"0,{last + 1}", *PAIR])
    assert result.returncode == 2
    assert re.fullmatch(
        rf"dpdk-vhost-rxpoll: -l 0,{last + 1}: lcore {last + 1} is not available "
        r"\([0-9,-]+ are\)\n", result.stderr)
    assert host.left() == before


@pytest.mark.parametrize("action", [[], ["--", "--check"]])
def test_socket_of_living_process(host, action):
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(host.dir / "v0"))
        living.listen()
        before = host.left()
        assert_mistake(host, host.end([*PAIR, *action]),
                       'net_vhost0: iface = "{dir}/v0": a living process listens there '
                       "(a path that is free)")
        assert host.left() == before
        assert (host.dir / "v0").is_socket()


def test_no_permission_for_tun(host):
    """A /dev/net/tun of mode 0600, seen by another user."""
    host.dir.chmod(0o777)
    os.mknod(host.dir / "tun", stat.S_IFCHR | 0o600, os.makedev(10, 200))
    before = host.left()
    script = f'mount --bind {host.dir}/tun /dev/net/tun && exec "$@"'
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    result = host.end(PAIR, before=["unshare", "-m", "sh", "-c", script, "sh", *user])
    assert_mistake(host, result, "net_tap0: cannot open /dev/net/tun: Permission denied")
    assert host.left() == before


def test_no_right_to_make_a_tap(host):
    """/dev/net/tun opens for everybody, but the interface needs CAP_NET_ADMIN."""
    host.dir.chmod(0o777)
    before = host.left()
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    result = host.end(PAIR, before=user)
    assert_mistake(host, result, "net_tap0: no permission to make a tap (CAP_NET_ADMIN)")
    assert host.left() == before


def test_no_permission_for_directory(host):
    host.dir.chmod(0o755)
    before = host.left()
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    assert_mistake(host, host.end(PAIR, before=user),
                   'net_vhost0: iface = "{dir}/v0": Permission denied '
                   "(a directory that this user can write to)")
    assert host.left() == before


def test_check(host):
    before = host.left()
    args = ["--vdev", VHOST + "iommu-support=1,ext-buffer=1", *T0,
            "--vdev", "net_tap1", "--vdev", "net_vhost1,iface={dir}/none,client=1"]
    result = host.end([*args, "--", "--check"])
    assert result.stdout == (f"net_vhost0 ({host.dir}/v0, server) <-> net_tap0 (tap0)\n"
                             f"net_vhost1 ({host.dir}/none, client) <-> net_tap1 (dtap%d)\n")
    assert result.stderr == ("dpdk-vhost-rxpoll: net_vhost0: iommu-support, ext-buffer: "
                             "accepted, without effect here\n")
    assert result.returncode == 0
    assert host.left() == before


@pytest.mark.parametrize("args", [["--version"], ["--", "--version"], [*V0, "--version"]])
def test_version(host, args):
    result = host.end(args, prefix=False)
    assert re.fullmatch(r"dpdk-vhost-rxpoll \d+\.\d+\.\d+ \(DPDK \d+\.\d+\.\S+\)\n", result.stdout)
    assert (result.stderr, result.returncode) == ("", 0)


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["--", "--help"], ["-l", "77", "--help"]])
def test_help(host, args):
    result = host.end(args, prefix=False)
    assert result.stdout.startswith("usage: dpdk-vhost-rxpoll [EAL options] --vdev DEVICE")
    assert (result.stderr, result.returncode) == ("", 0)


def test_help_and_man_page_agree(host):
    """The same options, and the same keys for each kind of device."""
    text = host.end(["--help"], prefix=False).stdout
    shown = {"OPTIONS": re.findall(r"^  --(\S+)", text.split("\nOptions:\n")[1], re.M)}
    for section in text.split("\nOptions:\n")[0].split("\n--vdev ")[1:]:
        kind = section.split("<N>")[0]
        shown[kind] = re.findall(r"^  ([a-z_-]+) ", section, re.M)

    described, section = {}, None
    for line in MAN.read_text(encoding="utf-8").splitlines():
        if head := re.match(r"\.(Sh OPTIONS|Ss (?:net|vhost)_\w+|Sh|Ss)", line):
            section = head[1][3:] if len(head[1]) > 2 else None
        if section and line.startswith(".It Fl -"):
            described.setdefault(section, []).append(line.split()[2][1:])
        elif section and line.startswith(".It Cm "):
            # ".It Cm persist Ns Op = Ns Cm 0 | 1", ".It Cm postcopy-support , iommu-support"
            names = re.split(r" Ns | Cm ", line[len(".It Cm "):])[0].split(" , ")
            described.setdefault(section, []).extend(names)
    assert described == shown
    assert set(shown) == {"OPTIONS", "net_vhost", "net_tap", "net_af_packet", "vhost_crypto"}
    assert all(shown.values())
