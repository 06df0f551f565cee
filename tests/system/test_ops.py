# SPDX-License-Identifier: BSD-3-Clause
"""What an operator looks at: the live table, the exporter; and what migration asks for."""

import json
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
from xml.etree import ElementTree

from daemon import BINARY, BUILD, ROOT, wait_until
from frontend import Bench

TOP = ROOT / "scripts" / "rxpoll-top"
EXPORTER = ROOT / "scripts" / "rxpoll-exporter"
FRAMES = 300


def run(script, bench, *args):
    return subprocess.run([script, "--file-prefix", bench.prefix, *args], capture_output=True,
                          text=True, timeout=60, check=True).stdout


def http_get(path, what):
    """Over a Unix socket; returns status line and body."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(str(path))
        sock.sendall(b"GET %s HTTP/1.0\r\n\r\n" % what.encode())
        data = b""
        while more := sock.recv(65536):
            data += more
    head, _, body = data.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body.decode()


def metrics(text):
    """{"name{labels}": value}; each line is one or a comment."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# "):
            continue
        match = re.fullmatch(r'(\w+\{(?:\w+="[^"]*",?)*\}) ([-+.\de]+)', line)
        assert match and match[1] not in found, line
        found[match[1]] = float(match[2])
    return found


def test_top_and_exporter(netns, short_dir):
    """Both say what the daemon's own counters say."""
    path = short_dir / "metrics"
    with Bench(netns, short_dir, n=2) as bench:
        bench.run("fe-roundtrip", "--frames", FRAMES)
        counters = bench.counters()
        lines = run(TOP, bench, "--once", "--interval", "0.1").splitlines()
        assert lines[0].split()[:2] == ["QPAIR", "STATE"]
        assert re.match(r"net_vhost0:0 +no front end +0\.000 +0\.000 +0\.000 +0\.000 +0 ", lines[1])
        assert lines[2].startswith("net_vhost1:0 ")
        shares = re.fullmatch(r"poller 0 +lcore \d+ +qpairs 0 +\[[#=.]{24}\] working +([\d.]+)% "
                              r"polling +([\d.]+)% asleep +([\d.]+)%", lines[4])
        assert shares, lines[4]
        assert 99 < sum(map(float, shares.groups())) < 101

        command = [EXPORTER, "--file-prefix", bench.prefix, "--listen", "unix:%s" % path]
        with subprocess.Popen(command) as exporter:
            try:
                wait_until(path.exists, 20, "the exporter does not listen")
                status, body = http_get(path, "/metrics")
                assert status.split()[1] == "200"
                assert http_get(path, "/")[0].split()[1] == "404"
            finally:
                exporter.terminate()
        found = metrics(body)
        for ring in ("transmitq", "receiveq"):
            for field in ("pkts", "bytes", "kicks", "calls"):
                key = 'vhp_%s_total{qpair="net_vhost0:0",queue="%s"}' % (field, ring)
                assert found[key] == counters["%s_%s" % (ring, field)]
        assert found['vhp_pkts_total{qpair="net_vhost0:0",queue="transmitq"}'] == FRAMES
        bins = bench.ask("/vhp/latency,net_vhost0:0")["delivered"]
        assert found['vhp_wait_bursts_count{qpair="net_vhost0:0",until="delivered"}'] == sum(bins)
        assert 'vhp_poller_seconds_total{poller="0",state="sleep"}' in found
        assert bench.ask("/vhp/drops") == []
        bench.end()


def test_exporter_loopback_only():
    done = subprocess.run([EXPORTER, "--listen", "0.0.0.0:9788"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert (done.returncode, done.stderr) == (
        1, 'rxpoll-exporter: "0.0.0.0": not a loopback address\n')


# ---- messages of a migration ------------------------------------------------------

GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES = 15, 16
SEND_RARP, POSTCOPY_ADVISE = 19, 28
PROTO_RARP, PROTO_REPLY_ACK, PROTO_PAGEFAULT = 2, 3, 8
VERSION, NEED_REPLY = 1, 8


class FrontEnd:
    """As much of the protocol as these tests need."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(str(path))

    def send(self, request, value=None, flags=0):
        payload = b"" if value is None else struct.pack("<Q", value)
        self.sock.sendall(struct.pack("<III", request, VERSION | flags, len(payload)) + payload)

    def answer(self):
        """The number that comes back; None if the connection is closed."""
        data = self.sock.recv(12)
        if len(data) < 12:
            return None
        size = struct.unpack("<III", data)[2]
        return struct.unpack("<Q", self.sock.recv(size))[0]

    def ask(self, request):
        self.send(request)
        return self.answer()


def test_postcopy_is_refused(netns, short_dir):
    """PAGEFAULT is not offered, so QEMU does not begin; who begins all the same is told why."""
    with Bench(netns, short_dir) as bench:
        front = FrontEnd(bench.socket())
        assert not front.ask(GET_PROTOCOL_FEATURES) & 1 << PROTO_PAGEFAULT
        front.send(POSTCOPY_ADVISE)
        assert front.answer() is None
        wait_until(lambda: bench.ask("/vhp/refusals"), 10, "no refusal is counted")
        assert "POSTCOPY" in bench.err.read_text() or "28" in bench.err.read_text()
        bench.end()


def test_rarp_of_the_destination(netns, short_dir):
    """SEND_RARP: the frame that tells switches where the guest is now leaves by the tap."""
    mac = bytes.fromhex("525400abcdef")
    with Bench(netns, short_dir) as bench:
        # Header and offloads of the port are agreed on when rings start.
        bench.run("fe-roundtrip", "--frames", 20)
        seen = netns.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x8035))
        seen.bind(("tap0", 0))
        front = FrontEnd(bench.socket())
        offered = front.ask(GET_PROTOCOL_FEATURES)
        assert offered & 1 << PROTO_RARP
        front.send(SET_PROTOCOL_FEATURES, 1 << PROTO_RARP | 1 << PROTO_REPLY_ACK)
        front.send(SEND_RARP, int.from_bytes(mac, "little"), NEED_REPLY)
        assert front.answer() == 0
        assert select.select([seen], [], [], 20)[0], "no RARP on the tap"
        frame = seen.recv(2048)
        assert frame[:14] == b"\xff" * 6 + mac + b"\x80\x35"
        # Reverse request, from and for this address (RFC 903).
        assert frame[14:22] == struct.pack(">HHBBH", 1, 0x0800, 6, 4, 3)
        assert frame[22:28] == frame[32:38] == mac
        bench.end()


# ---- the host around it ------------------------------------------------------------


def test_notify(netns, short_dir):
    """The service manager hears of start, life, reload and end."""
    path = short_dir / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(30)
        text = "[net_vhost0]\niface = %s/v0\n[net_tap0]\niface = tap0\n" % short_dir
        (short_dir / "rxpoll.ini").write_text(text)
        command = netns.command("env", "NOTIFY_SOCKET=%s" % path, "WATCHDOG_USEC=200000", BINARY,
                                "--file-prefix", netns.name, "--no-huge", "--", "--config",
                                short_dir / "rxpoll.ini")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as daemon:
            try:
                assert wait_message(manager, "READY=1") == []
                for _ in range(3):
                    wait_message(manager, "WATCHDOG=1")
                daemon.send_signal(signal.SIGHUP)
                wait_message(manager, "RELOADING=1")
                wait_message(manager, "READY=1")
                daemon.terminate()
                wait_message(manager, "STOPPING=1")
                assert daemon.wait(20) == 0
            finally:
                daemon.kill()
    shutil.rmtree("/var/run/dpdk/" + netns.name, ignore_errors=True)


def wait_message(manager, wanted):
    """Returns what came before."""
    before = []
    while True:
        message = manager.recv(4096).decode()
        if message.split("\n")[0] == wanted:
            return before
        before.append(message)


def test_descriptions():
    """What QEMU and libvirt read of the program, and the example for libvirt."""
    said = subprocess.run([BINARY, "--vdev", "none", "--print-capabilities"], timeout=60,
                          capture_output=True, check=True, text=True).stdout
    assert json.loads(said) == {"type": "net"}
    described = json.loads((BUILD / "config" / "50-dpdk-vhost-rxpoll.json").read_text())
    assert described["type"] == "net"
    assert described["binary"].endswith("/bin/dpdk-vhost-rxpoll")
    assert set(described) == {"description", "type", "binary"}
    domain = ElementTree.parse(ROOT / "config" / "libvirt-domain.xml")
    source = domain.find("devices/interface[@type='vhostuser']/source")
    assert source.get("mode") == "client" and source.get("path").endswith(".sock")
    assert domain.find("memoryBacking/access").get("mode") == "shared"
