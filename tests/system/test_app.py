# SPDX-License-Identifier: BSD-3-Clause
"""The daemon around its devices: start, end, kill, output, CPUs, hugepages."""
import os
import re
import signal
import time
from pathlib import Path

import pytest

from cli_host import PAIR, assert_mistake, deadline, host_fixture, tap, vhost

CPUS = sorted(os.sched_getaffinity(0))
HUGE = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
__all__ = ["host_fixture"]

@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_ends_within_a_second(host, ending):
    before = host.left()
    with host.daemon(["--no-huge", *PAIR]) as daemon:
        assert daemon.ready == f"ready: 1 device, 1 poller on CPU {CPUS[-1]}\n"
        assert (host.dir / "v0").is_socket()
        assert host.netns.links() == ["tap0"]
        start = time.monotonic()
        daemon.send_signal(ending)
        out, err = daemon.communicate(timeout=30)
        assert time.monotonic() - start < 1
    assert daemon.returncode == 0
    assert "net_vhost0:0 transmitq pkts 0 bytes 0 drops 0" in out
    assert err == ""
    assert host.left() == before


def test_no_hugepages_is_one_line(host):
    """hugetlbfs that nothing is mounted of: hidden in a mount namespace."""
    script = 'umount -a -t hugetlbfs; exec "$@"'
    with host.daemon(PAIR, before=["unshare", "-m", "sh", "-c", script, "sh"]) as daemon:
        assert daemon.ready.startswith("ready: ")
        daemon.terminate()
        _, err = daemon.communicate(timeout=30)
    assert daemon.returncode == 0
    assert err == "dpdk-vhost-rxpoll: no free hugepages: running with --no-huge -m 256\n"


def test_ignored_key_is_one_line(host):
    with host.daemon(["--no-huge", *vhost("legacy-ol-flags=1,linear-buffer=0")]) as daemon:
        daemon.terminate()
        _, err = daemon.communicate(timeout=30)
    assert daemon.returncode == 0
    assert err == ("dpdk-vhost-rxpoll: net_vhost0: legacy-ol-flags: "
                   "accepted, without effect here\n")


def test_persistent_tap_stays(host):
    before = host.left()
    with host.daemon(["--no-huge", *tap("iface=tap5,persist")]) as daemon:
        daemon.terminate()
        daemon.communicate(timeout=30)
    assert daemon.returncode == 0
    assert host.netns.links() == ["tap5"]
    host.netns.ip("link", "del", "tap5")
    assert host.left() == before


def test_second_of_a_prefix(host):
    """The second says why it cannot run, and takes nothing from the first."""
    with host.daemon(["--no-huge", *PAIR]) as first:
        running = host.left()
        result = host.end(["--no-huge", "--vdev", "net_vhost1,iface={dir}/v1",
                           "--vdev", "net_tap1,iface=tap1"])
        assert_mistake(host, result, "--file-prefix {prefix}: another DPDK process runs with it "
                       "(one process each)")
        assert host.left() == running
        first.terminate()
        first.communicate(timeout=30)
        assert first.returncode == 0


def test_after_kill(host):
    """What a killed daemon left, the next one takes over and removes."""
    before = host.left()
    with host.daemon(["--no-huge", *PAIR]) as daemon:
        daemon.kill()
        daemon.communicate(timeout=30)
    assert (host.dir / "v0").is_socket()
    assert host.left()["runtime"]
    with host.daemon(["--no-huge", *PAIR]) as daemon:
        assert daemon.ready.startswith("ready: ")
        daemon.terminate()
        daemon.communicate(timeout=30)
    assert daemon.returncode == 0
    assert host.left() == before


def test_stats_through_a_pipe(host):
    """Line by line as they are printed, not when a buffer is full."""
    with host.daemon(["--no-huge", *PAIR, "--", "--stats", "1"]) as daemon:
        times = []
        with deadline(10):
            while len(times) < 3:
                if "net_vhost0:0 transmitq pkts" in daemon.stdout.readline():
                    times.append(time.monotonic())
        assert 0.5 < times[1] - times[0] < 1.5
        assert 0.5 < times[2] - times[1] < 1.5


# ---- CPUs and memory --------------------------------------------------------


def cpus_of_threads(pid):
    """{thread name: set of CPUs} for all threads of a process."""
    threads = {}
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        text = status.read_text(encoding="ascii")
        name = re.search(r"^Name:\s+(.*)$", text, re.M)[1]
        cpus = set()
        for part in re.search(r"^Cpus_allowed_list:\s+(.*)$", text, re.M)[1].split(","):
            first, _, last = part.partition("-")
            cpus |= set(range(int(first), int(last or first) + 1))
        threads.setdefault(name, set()).update(cpus)
    return threads


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("args,poller", [
    ([], CPUS[-1]),
    (["-l", f"{CPUS[0]},{CPUS[1]}"], CPUS[1]),
    (["-l", f"{CPUS[0]},{CPUS[1]}", "--main-lcore", f"{CPUS[1]}"], CPUS[0]),
    (["--lcores", f"3@{CPUS[1]},4@{CPUS[0]}"], CPUS[0]),
])
def test_only_the_poller_runs_on_its_cpu(host, args, poller):
    with host.daemon(["--no-huge", *args, *PAIR]) as daemon:
        assert daemon.ready == f"ready: 1 device, 1 poller on CPU {poller}\n"
        threads = cpus_of_threads(daemon.pid)
        workers = {name: cpus for name, cpus in threads.items() if name.startswith("rte-worker")}
        assert list(workers.values()) == [{poller}]
        others = {name: cpus for name, cpus in threads.items() if name not in workers}
        # the main thread, EAL's, vhost's and telemetry's
        assert len(others) >= 4
        for name, cpus in others.items():
            assert poller not in cpus, f"{name} may run on {cpus}"


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
def test_only_the_given_cpus_are_used(host):
    """EAL alone would put its control threads on whatever CPU no lcore has."""
    cpu = CPUS[0]
    with host.daemon(["--no-huge", "--lcores", f"0@{cpu},1@{cpu}", *PAIR]) as daemon:
        assert daemon.ready == f"ready: 1 device, 1 poller on CPU {cpu}\n"
        assert set().union(*cpus_of_threads(daemon.pid).values()) == {cpu}


def test_single_cpu(host):
    """taskset to one CPU: main thread and poller share it."""
    cpu = CPUS[-1]
    with host.daemon(["--no-huge", *PAIR], before=["taskset", "-c", str(cpu)]) as daemon:
        assert daemon.ready == f"ready: 1 device, 1 poller on CPU {cpu}\n"
        assert set().union(*cpus_of_threads(daemon.pid).values()) == {cpu}


@pytest.fixture(name="hugepages")
def hugepages_fixture():
    """64 free hugepages of 2 MiB, given back afterwards."""
    nr = HUGE / "nr_hugepages"
    if not nr.exists():
        pytest.skip("this kernel has no hugepages of 2 MiB")
    old = int(nr.read_text(encoding="ascii"))
    nr.write_text(str(old + 64), encoding="ascii")
    if int((HUGE / "free_hugepages").read_text(encoding="ascii")) < 64:
        nr.write_text(str(old), encoding="ascii")
        pytest.skip("no memory for 64 hugepages")
    yield
    nr.write_text(str(old), encoding="ascii")


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_hugepages_are_given_back(host, hugepages, ending):  # pylint: disable=unused-argument
    """They are used, no file shows, and all are free again, whatever ends the daemon."""
    mount = host.dir / "huge"
    mount.mkdir()
    free = (HUGE / "free_hugepages").read_text(encoding="ascii")
    # In a mount namespace of its own, so that nobody else takes the pages.
    script = f'mount -t hugetlbfs -o pagesize=2M none {mount} && exec "$@"'
    with host.daemon(PAIR, before=["unshare", "-m", "sh", "-c", script, "sh"]) as daemon:
        assert daemon.ready.startswith("ready: ")
        assert int((HUGE / "free_hugepages").read_text(encoding="ascii")) < int(free)
        assert os.listdir(f"/proc/{daemon.pid}/root{mount}") == []
        daemon.send_signal(ending)
        _, err = daemon.communicate(timeout=30)
        assert "running with --no-huge" not in err
    assert (HUGE / "free_hugepages").read_text(encoding="ascii") == free


def test_hugepages_wanted_and_missing(host):
    script = 'umount -a -t hugetlbfs; exec "$@"'
    before = host.left()
    result = host.end(["-m", "64", *PAIR], before=["unshare", "-m", "sh", "-c", script, "sh"])
    assert_mistake(host, result, "no free hugepages "
                   "(reserve some, sysctl vm.nr_hugepages=512, or give --no-huge)")
    assert host.left() == before
