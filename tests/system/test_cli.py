# SPDX-License-Identifier: BSD-3-Clause
"""The real binary's command line: every mistake is one line, status 2, and nothing left.

Runs as root in a network namespace of its own. VHP_BUILD names the build directory.
"""
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("VHP_BUILD", ROOT / "build")) / "app" / "dpdk-vhost-rxpoll"
MAN = ROOT / "app" / "dpdk-vhost-rxpoll.8"
CPUS = sorted(os.sched_getaffinity(0))
START_S = 20  # longest time from exec to "ready", on a loaded machine
HUGE = Path("/sys/kernel/mm/hugepages/hugepages-2048kB")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def run(*args, **kwargs):
    return subprocess.run([str(a) for a in args], check=True, timeout=30, **kwargs)


class Host:
    """A network namespace, a directory for sockets and an EAL prefix of one test."""

    count = 0

    def __init__(self):
        Host.count += 1
        self.name = f"vhpcli-{os.getpid()}-{Host.count}"
        self.dir = Path(tempfile.mkdtemp(prefix="vhpcli-"))
        self.runtime = Path("/var/run/dpdk") / self.name
        run("ip", "netns", "add", self.name)

    def close(self):
        run("ip", "netns", "del", self.name)
        shutil.rmtree(self.dir)
        shutil.rmtree(self.runtime, ignore_errors=True)

    def links(self):
        out = run("ip", "-n", self.name, "-o", "link", capture_output=True, text=True).stdout
        return sorted(re.findall(r"^\d+: ([^:@]+)", out, re.M))

    def left(self):
        """All that a daemon could leave behind."""
        return {
            "links": self.links(),
            "files": sorted(str(p) for p in self.dir.rglob("*")),
            "runtime": sorted(os.listdir(self.runtime)) if self.runtime.exists() else None,
            "hugepages": [p.name for p in Path("/dev/hugepages").glob(self.name + "*")],
        }

    def command(self, args, before=(), prefix=True):
        line = ["ip", "netns", "exec", self.name, *before, BINARY]
        line += ["--file-prefix", self.name] if prefix else []
        return [str(a) for a in line] + [a.format(dir=self.dir) for a in args]

    def end(self, args, **kwargs):
        """Run a command line that ends by itself."""
        return subprocess.run(
            self.command(args, **kwargs), capture_output=True, text=True, timeout=60, check=False
        )

    @contextlib.contextmanager
    def daemon(self, args, **kwargs):
        """Run a daemon to its ready line; kill it if the test has not ended it."""
        with subprocess.Popen(
            self.command(args, **kwargs),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                with deadline(START_S):
                    process.ready = process.stdout.readline()
                yield process
            finally:
                process.kill()


@contextlib.contextmanager
def deadline(seconds):
    """Fail the test where it blocks for longer."""

    def late(_signal, _frame):
        raise AssertionError(f"nothing happened for {seconds} s")

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


@pytest.fixture(name="host")
def host_fixture():
    host = Host()
    yield host
    host.close()


V0 = ["--vdev", "net_vhost0,iface={dir}/v0"]
T0 = ["--vdev", "net_tap0,iface=tap0"]
PAIR = V0 + T0
VHOST = "net_vhost0,iface={dir}/v0,"


def vhost(keys):
    return ["--vdev", VHOST + keys, *T0]


def tap(keys):
    return [*V0, "--vdev", "net_tap0," + keys]


ONE_EACH = "one net_vhost and one net_tap"
MISTAKES = [
    # devices and keys
    ([], "no device given (--vdev net_vhost0,iface=PATH --vdev net_tap0; see --help)"),
    (["--vdev", "net_vhst0,iface={dir}/v0", *T0],
     "net_vhst0: unknown device (net_vhost<N>, net_tap<N>, or one that DPDK has a driver for)"),
    (["--vdev", "net_vhost,iface={dir}/v0", *T0],
     "net_vhost: unknown device (net_vhost<N>, N a number)"),
    (["--vdev", "net_vhost0", *T0],
     "net_vhost0: iface: missing (path of the vhost-user socket)"),
    (tap("colour=red"), 'net_tap0: colour = "red": unknown key '
                        "(iface, mac, persist, queues, sndbuf, bridge, offload)"),
    (vhost("queues=1,queues=1"), 'net_vhost0: queues = "1": given twice (once)'),
    (vhost("queues=0x"), 'net_vhost0: queues = "0x": not a number (1..128)'),
    (vhost("queues=129"), 'net_vhost0: queues = "129": out of range (1..128)'),
    (vhost("poll-us=auto"),
     'net_vhost0: poll-us = "auto": not a number (0..1000000 or forever)'),
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
    ([*V0, "--vdev", "net_null0"],
     f"net_vhost0: cannot be joined with net_null0, which is served by DPDK ({ONE_EACH})"),
    ([*PAIR, "-a", "0000:00:1f.7"],
     f"net_vhost0: cannot be joined with 0000:00:1f.7, which is served by DPDK ({ONE_EACH})"),
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
    (["-l", f"0,{max(CPUS) + 1}", *PAIR], None),  # see test_lcore_not_available()
    (["-l", "0", *PAIR], "-l 0: no lcore for a poller (two at least: main thread and poller)"),
    (["--main-lcore", "1", *PAIR], "--main-lcore 1: not without -l, -c or --lcores"),
    (vhost("poller=1"), 'net_vhost0: poller = "1": no such poller (0..0)'),
    # options
    ([*PAIR, "--frobnicate"],
     '--frobnicate: unknown option (EAL\'s before "--", others after it)'),
    ([*PAIR, "--", "--frobnicate"], "--frobnicate: unknown option "
     "(--poll-us, --rx-poll, --stats, --check, --version, --help)"),
    ([*PAIR, "--stats", "1"], '--stats: on the wrong side (after "--")'),
    ([*PAIR, "--", "--stats", "never"], '--stats = "never": not a number (1..86400)'),
    ([*PAIR, "--", "--poll-us", "1000001"],
     '--poll-us = "1000001": out of range (0..1000000 or forever)'),
    # EAL's own
    (["-n", "0", "--no-huge", *PAIR], "EAL cannot start: invalid channel number "
     "(options given: --file-prefix {prefix} -n 0 --no-huge)"),
    (["--iova-mode=sideways", *PAIR], "EAL cannot start: invalid parameters for --iova-mode "
     "(options given: --file-prefix {prefix} --iova-mode=sideways)"),
    (["--vdev", "crypto_null0,nonsense=1", *PAIR], "crypto_null0: DPDK could not start it: "
     "cryptodev_null_probe() line N: Failed to parse initialisation arguments[nonsense=1]"),
]


def assert_mistake(host, result, message):
    message = message.format(dir=host.dir, prefix=host.name)
    # DPDK puts line numbers of its own into some of its reasons.
    assert re.sub(r"line \d+", "line N", result.stderr) == f"dpdk-vhost-rxpoll: {message}\n"
    assert result.stdout == ""
    assert result.returncode == 2


@pytest.mark.parametrize("args,message", [m for m in MISTAKES if m[1] is not None])
def test_mistake(host, args, message):
    before = host.left()
    assert_mistake(host, host.end(args), message)
    assert host.left() == before


def test_lcore_not_available(host):
    online = run("cat", "/sys/devices/system/cpu/online", capture_output=True, text=True).stdout
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
    run("mknod", "-m", "600", host.dir / "tun", "c", "10", "200")
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
        shown[kind] = re.findall(r"^  ([a-z-]+) ", section, re.M)

    described, section = {}, None
    for line in MAN.read_text(encoding="utf-8").splitlines():
        if head := re.match(r"\.(Sh OPTIONS|Ss net_\w+|Sh|Ss)", line):
            section = head[1][3:] if len(head[1]) > 2 else None
        if section and line.startswith(".It Fl -"):
            described.setdefault(section, []).append(line.split()[2][1:])
        elif section and line.startswith(".It Cm "):
            # ".It Cm persist Ns Op = Ns Cm 0 | 1", ".It Cm postcopy-support , iommu-support"
            names = re.split(r" Ns | Cm ", line[len(".It Cm "):])[0].split(" , ")
            described.setdefault(section, []).extend(names)
    assert described == shown
    assert set(shown) == {"OPTIONS", "net_vhost", "net_tap"}
    assert all(shown.values())


# ---- a running daemon -------------------------------------------------------


def pid_of(process):
    """ip netns exec becomes the daemon."""
    return process.pid


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_ends_within_a_second(host, ending):
    before = host.left()
    with host.daemon(["--no-huge", *PAIR]) as daemon:
        poller = "0" if len(CPUS) == 1 else max(CPUS)
        assert daemon.ready == f"ready: 1 device, 1 poller on CPU {poller}\n"
        assert (host.dir / "v0").is_socket()
        assert host.links() == ["lo", "tap0"]
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
    assert host.links() == ["lo", "tap5"]
    run("ip", "-n", host.name, "link", "del", "tap5")
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
        threads = cpus_of_threads(pid_of(daemon))
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
        assert set().union(*cpus_of_threads(pid_of(daemon)).values()) == {cpu}


def test_single_cpu(host):
    """taskset to one CPU: main thread and poller share it."""
    cpu = CPUS[-1]
    with host.daemon(["--no-huge", *PAIR], before=["taskset", "-c", str(cpu)]) as daemon:
        assert daemon.ready == f"ready: 1 device, 1 poller on CPU {cpu}\n"
        assert set().union(*cpus_of_threads(pid_of(daemon)).values()) == {cpu}


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
        assert os.listdir(f"/proc/{pid_of(daemon)}/root{mount}") == []
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
