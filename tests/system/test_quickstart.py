# SPDX-License-Identifier: BSD-3-Clause
"""scripts/quickstart.sh, a newcomer's first command: what it prints, what it leaves.

It builds in build/, whatever VHP_BUILD says.
"""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "quickstart.sh"
WHOLE_S = 300  # also builds and boots
ENDING_S = 10


def left(pid):
    """What a run with this process id could leave on the host."""
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True,
                                check=True).stdout.split()
    processes = subprocess.run(["ps", "-o", "pid,args", "-s", str(pid), "--no-headers"],
                               capture_output=True, text=True, check=False).stdout
    return {
        "namespace": [name for name in namespaces if name == "vhp-qs-%d" % pid],
        "directories": list(Path("/tmp").glob("vhp-qs-%d.*" % pid)),
        "daemon": list(Path("/var/run/dpdk").glob("vhp-qs-%d/*" % pid)),
        "processes": [line for line in processes.splitlines() if "<defunct>" not in line],
    }


NOTHING = {"namespace": [], "directories": [], "daemon": [], "processes": []}


def start():
    # In a session of its own, as on a terminal: Ctrl-C goes to all of it.
    return subprocess.Popen([SCRIPT, "--seconds", "1"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True)


def test_quickstart():
    with start() as process:
        output, _ = process.communicate(timeout=WHOLE_S)
    assert process.returncode == 0, output
    results = dict(re.findall(r"^RESULT (\S+) ([\d.]+)", output, re.M))
    assert list(results) == ["guest->host", "host->guest", "ping-rtt", "daemon-drops"], output
    for name, unit in (("guest->host", "Gbits/sec"), ("host->guest", "Gbits/sec"),
                       ("ping-rtt", "ms")):
        assert re.search(r"^RESULT %s \d+\.\d\d %s$" % (name, unit), output, re.M), output
        assert float(results[name]) > 0
    assert results["daemon-drops"] == "0"
    # The counters behind the figures: what iperf3 counted passed through the daemon.
    for name, queue in (("guest->host", "transmitq"), ("host->guest", "receiveq")):
        passed_bytes = int(re.search(r"%s pkts \d+ bytes (\d+)" % queue, output)[1])
        assert passed_bytes > float(results[name]) * 1e9 / 8 * 0.9
    assert left(process.pid) == NOTHING


@pytest.mark.parametrize("step,ending", [
    ("starting the daemon", signal.SIGTERM),
    ("booting the guest", signal.SIGINT),
    ("booting the guest", signal.SIGTERM),
    ("iperf3", signal.SIGINT),
])
def test_interrupted(step, ending):
    with start() as process:
        for line in process.stdout:
            if step in line:
                break
        time.sleep(0.3)
        if ending == signal.SIGINT:
            subprocess.run(["kill", "-INT", "--", "-%d" % process.pid], check=True)
        else:
            process.send_signal(ending)
        started = time.monotonic()
        process.communicate(timeout=60)
    assert time.monotonic() - started < ENDING_S
    assert process.returncode == 128 + ending
    assert left(process.pid) == NOTHING


@pytest.mark.parametrize("value", ["0", "3601", "x", ""])
def test_mistake(value):
    done = subprocess.run([SCRIPT, "--seconds", value], capture_output=True, text=True,
                          timeout=10, check=False)
    assert done.returncode == 2
    assert done.stderr == ('quickstart.sh: --seconds "%s": not a number from 1 to 3600\n' % value)
