# SPDX-License-Identifier: BSD-3-Clause
"""A guest moves from one daemon to another, under load, and its connections live on."""

import hashlib
import threading
import time

from daemon import Daemon, assert_clean, wait_until
from guest import Guest
from qmp import Qmp
from traffic import connect, fetch_file, pattern, ping

HOST = "192.0.2.1"
GUEST = "192.0.2.2"
MIGRATION_S = 90
BRIDGE = "br0"


def make_bridge(netns):
    """A switch with the host's address; both daemons' taps join it."""
    netns.ip("link", "add", BRIDGE, "type", "bridge")
    netns.ip("addr", "add", HOST + "/24", "dev", BRIDGE)
    netns.ip("link", "set", BRIDGE, "up")


def devices(sock, tap):
    return ("net_vhost0,iface=%s" % sock, "net_tap0,iface=%s,bridge=%s" % (tap, BRIDGE))


def learned_on(netns, tap, mac):
    """Has the bridge seen this address behind the tap?"""
    out = netns.run("bridge", "fdb", "show", "br", BRIDGE).stdout
    return any(mac in line and "dev %s " % tap in line for line in out.splitlines())


def migrate(source, destination, uri):
    """Moves the guest; returns what QEMU says of the migration."""
    with Qmp(source.dir / "qmp.sock") as src, Qmp(destination.dir / "qmp.sock") as dst:
        dst.run("migrate-incoming", uri=uri)
        # An emulated CPU writes memory more slowly than this; it ends under load.
        src.run("migrate-set-parameters", **{"max-bandwidth": 1 << 30, "downtime-limit": 1000})
        src.run("migrate", uri=uri)
        deadline = time.monotonic() + MIGRATION_S
        while True:
            info = src.run("query-migrate")
            if info["status"] == "completed":
                break
            assert info["status"] in ("setup", "active", "device", "pre-switchover"), info
            assert time.monotonic() < deadline, info
            time.sleep(0.1)
        wait_until(lambda: dst.run("query-status")["status"] == "running", 10,
                   "the guest does not run at its destination")
        return info


def test_migration_under_load(netns, short_dir):
    """A file is on its way to the guest while it moves; then both directions work there."""
    sock_a, sock_b = "%s/a.sock" % short_dir, "%s/b.sock" % short_dir
    uri = "unix:%s/migration.sock" % short_dir
    make_bridge(netns)
    with Daemon(netns, short_dir, *devices(sock_a, "tapa")) as a, \
            Daemon(netns, short_dir, *devices(sock_b, "tapb")) as b, \
            Guest("%s,addr=%s/24" % (sock_a, GUEST)) as source, \
            Guest("%s,addr=%s/24" % (sock_b, GUEST), options=("--incoming", "defer")) as dest:
        source.wait_up()
        a.wait_forwarding()
        fetch_file(netns, source, GUEST, 4)
        mac = source.sh("cat /sys/class/net/eth0/address").strip()
        assert learned_on(netns, "tapa", mac)

        moved = {}

        def move():
            moved["info"] = migrate(source, dest, uri)

        mover = threading.Thread(target=move)
        source.sh("(nc -l -p 5001 </dev/null >/tmp/in) >/dev/null 2>&1 &")
        data = pattern(7, 24 << 20)
        wait_until(lambda: source.sh("netstat -ltn").find(":5001 ") >= 0, 10, "nc does not listen")
        sender = threading.Thread(target=send_plain, args=(netns, data, moved))
        sender.start()
        time.sleep(0.5)
        mover.start()
        mover.join(MIGRATION_S + 20)
        sender.join(60)
        assert "info" in moved, "the migration did not end"
        assert moved.get("sent") == len(data), moved.get("error")

        wait_until(lambda: dest.sh("wc -c < /tmp/in").strip() == str(len(data)), 30,
                   "the file did not arrive")
        assert dest.sh("sha256sum /tmp/in").split()[0] == hashlib.sha256(data).hexdigest()
        assert learned_on(netns, "tapb", mac), "no announcement on the new tap"
        ping(netns, GUEST, 20)
        fetch_file(netns, dest, GUEST, 8)
        assert b.counters()["receiveq_pkts"] > 0
        assert_clean(a.stop())
        assert_clean(b.stop())


def send_plain(netns, data, result):
    """Sends to the guest from the namespace; notes bytes or the error."""
    try:
        with connect(netns, GUEST, 5001) as sock:
            sock.settimeout(60)
            step = 1 << 16
            for at in range(0, len(data), step):
                sock.sendall(data[at:at + step])
                time.sleep(0.005)
        result["sent"] = len(data)
    except OSError as err:
        result["error"] = err
