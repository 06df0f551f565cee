# SPDX-License-Identifier: BSD-3-Clause
"""What all system tests share. VHP_BUILD names the build directory (build)."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from daemon import BINARY
from netns import Netns


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "frontend: uses the test front end; also runs with the sanitizers")


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="needs root"))


def pytest_sessionstart(session):
    if not BINARY.exists():
        pytest.exit("%s is missing: build first" % BINARY, returncode=2)
    # A time limit ends a run so; namespaces, daemons and guests must not stay.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", returncode=2))


@pytest.fixture(name="netns")
def netns_fixture():
    with Netns() as netns:
        yield netns


@pytest.fixture(name="module_netns", scope="module")
def module_netns_fixture():
    with Netns() as netns:
        yield netns


# Not pytest's tmp_path: with a test's name in it, it is soon longer than a
# socket's address may be.
@pytest.fixture(name="short_dir")
def short_dir_fixture():
    path = Path(tempfile.mkdtemp(prefix="vhp-test-", dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(name="module_dir", scope="module")
def module_dir_fixture():
    path = Path(tempfile.mkdtemp(prefix="vhp-test-", dir="/tmp"))
    yield path
    shutil.rmtree(path)
