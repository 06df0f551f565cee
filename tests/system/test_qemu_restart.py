# SPDX-License-Identifier: BSD-3-Clause
"""Who starts first, who is restarted: the guest's connections outlive the daemon."""

import os
import signal
import subprocess
import threading
import time

from daemon import Daemon, assert_clean, wait_until
from guest import Guest
from traffic import fetch_file, pattern, ping, send_file

HOST = "192.0.2.1"
GUEST = "192.0.2.2"
STOP_S = 1.0  # longest time that SIGINT and SIGTERM may take


def make_tap(netns):
    """A tap that stays when the daemon goes, as an operator would set one up."""
    netns.ip("tuntap", "add", "dev", "tap0", "mode", "tap", "vnet_hdr")
    netns.ip("addr", "add", HOST + "/24", "dev", "tap0")
    netns.ip("link", "set", "tap0", "up")


def send_across(netns, guest, port, restart):
    """Sends a file to the guest and calls restart() in the middle of it."""
    send_file(netns, guest, GUEST, port, pattern(port, 24 << 20), pause=(8 << 20, restart))


def test_vm_first_daemon_restarted_client(netns, short_dir):
    """QEMU listens and waits for the daemon, which comes, goes and comes again."""
    sock = "%s/vm.sock" % short_dir
    devices = ("net_vhost0,client=1,iface=" + sock, "net_tap0,iface=tap0,persist=1")
    make_tap(netns)
    with Guest("%s,server=on,addr=%s/24" % (sock, GUEST)) as guest:
        wait_until(lambda: os.path.exists(sock), 30, "QEMU makes no socket")
        with Daemon(netns, short_dir, *devices) as first, \
                Daemon(netns, short_dir, *devices, start=False) as second:
            guest.wait_up()
            first.wait_forwarding()
            fetch_file(netns, guest, GUEST, 8)

            def restart():
                assert_clean(first.stop())
                assert first.stop_s < STOP_S
                second.start()

            send_across(netns, guest, 5001, restart)
            assert second.counters()["receiveq_bytes"] > 8 << 20
            ping(netns, GUEST, 20)
            fetch_file(netns, guest, GUEST, 8)
            assert_clean(second.stop())
        assert os.path.exists(sock), "QEMU's socket was removed"


def test_daemon_first_killed_server(netns, short_dir):
    """The daemon listens and is killed, leaving its socket file; QEMU reconnects."""
    sock = "%s/vhost0.sock" % short_dir
    devices = ("net_vhost0,iface=" + sock, "net_tap0,iface=tap0,persist=1")
    make_tap(netns)
    with Daemon(netns, short_dir, *devices) as first, \
            Daemon(netns, short_dir, *devices, start=False) as second, \
            Guest("%s,reconnect=1,addr=%s/24" % (sock, GUEST)) as guest:
        guest.wait_up()
        ping(netns, GUEST, 20)

        def restart():
            first.process.kill()
            first.process.wait()
            assert os.path.exists(sock), "nothing was left behind to test with"
            second.start()

        send_across(netns, guest, 5001, restart)
        ping(netns, GUEST, 20)
        assert_clean(second.stop())
        assert not os.path.exists(sock)


def test_vm_first_server(netns, short_dir):
    """QEMU is there before the daemon's socket and keeps trying."""
    sock = "%s/vhost0.sock" % short_dir
    make_tap(netns)
    with Guest("%s,reconnect=1,addr=%s/24" % (sock, GUEST)) as guest:
        time.sleep(1)  # as long as it takes QEMU to fail once
        assert guest.process.poll() is None
        with Daemon(netns, short_dir, "net_vhost0,iface=" + sock,
                    "net_tap0,iface=tap0,persist=1") as daemon:
            guest.wait_up()
            ping(netns, GUEST, 20)
            assert_clean(daemon.stop())


def test_two_guests(netns, short_dir):
    """Two guests on one daemon: neither feels the other, not even its death."""
    socks = ["%s/vhost%d.sock" % (short_dir, n) for n in range(2)]
    hosts, guests = ("192.0.2.1", "198.51.100.1"), ("192.0.2.2", "198.51.100.2")
    devices = []
    for n in range(2):
        devices += ["net_vhost%d,iface=%s" % (n, socks[n]), "net_tap%d,iface=tap%d" % (n, n)]
    with Daemon(netns, short_dir, *devices) as daemon, \
            Guest("%s,addr=%s/24" % (socks[0], guests[0])) as one, \
            Guest("%s,addr=%s/24" % (socks[1], guests[1])) as two:
        for n in range(2):
            netns.ip("addr", "add", hosts[n] + "/24", "dev", "tap%d" % n)
            netns.ip("link", "set", "tap%d" % n, "up")
        one.wait_up()
        two.wait_up()

        both_at_once(lambda: send_file(netns, one, guests[0], 5001, pattern(11, 16 << 20)),
                     lambda: send_file(netns, two, guests[1], 5001, pattern(12, 16 << 20)))
        both_at_once(lambda: fetch_file(netns, one, guests[0], 16),
                     lambda: fetch_file(netns, two, guests[1], 16))
        for n in range(2):
            counters = daemon.counters("net_vhost%d:0" % n)
            assert counters["receiveq_bytes"] > 16 << 20
            assert counters["transmitq_bytes"] > 16 << 20

        # The second dies while the first one's file is on its way.
        def kill_second():
            two.process.kill()
            two.process.wait()

        send_file(netns, one, guests[0], 5002, pattern(13, 16 << 20),
                  pause=(8 << 20, kill_second))
        wait_until(lambda: daemon.state("net_vhost1:0") == "no front end", 5, "still a front end")

        # It ends in time with a guest at full speed, and leaves nothing.
        command = netns.command("iperf3", "-c", guests[0], "-t", 10, "--bidir")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as client:
            time.sleep(1)
            counters = daemon.stop(signal.SIGINT)
            client.kill()
        assert daemon.stop_s < STOP_S
        assert_clean(counters)
        assert netns.links() == []
        assert not any(map(os.path.exists, socks))


def both_at_once(*jobs):
    """Runs the jobs in threads; fails as the first that failed did."""
    errors = []

    def run(job):
        try:
            job()
        except BaseException as err:  # pylint: disable=broad-except
            errors.append(err)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
