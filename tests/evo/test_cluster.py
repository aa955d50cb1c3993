"""Ray starts quiet, on loopback, with a private token, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.processes import alive

SCRIPT = """
import os, sys
from evo.runner.cluster import local_ray
with local_ray(num_cpus=1) as ray:
    pid = ray.get(ray.remote(lambda: os.getpid()).remote())
    print("up", pid, os.environ["EVO_RAY_FOLDER"], flush=True)
    sys.stdin.readline()
print("down", flush=True)
"""


@pytest.fixture
def started():
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def until_gone(folder: str, seconds: float = 5.0) -> list[str]:
    """Return what still uses a folder when nothing does any more, or after so many seconds."""
    end = time.monotonic() + seconds
    while (left := holders(folder)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def holders(folder: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get("EVO_RAY_FOLDER") == folder
            inside = any(os.readlink(link).startswith(folder) for link in Path(f"/proc/{process.pid}/fd").iterdir())
        except (psutil.Error, OSError):
            continue
        # The test's own child inherits nothing, and the reaper names the folder in its arguments alone.
        if marked or inside:
            found.append(f"{process.pid} {process.name()}")
    return found


def listening(pids: set[int]) -> set[str]:
    return {
        c.laddr.ip
        for c in psutil.net_connections("tcp")
        if c.status == psutil.CONN_LISTEN and c.pid in pids and c.laddr
    }


def test_it_is_quiet_on_loopback_alone_and_writes_no_token(started):
    home = Path.home() / ".ray"
    had_home = home.exists()
    _, _, folder = started.stdout.readline().split()
    mine = {started.pid, *(child.pid for child in psutil.Process(started.pid).children(recursive=True))}
    assert listening(mine) <= {"127.0.0.1", "::ffff:127.0.0.1"}
    assert home.exists() == had_home
    out, err = started.communicate("\n", timeout=30)
    assert (out, err) == ("down\n", "")
    assert until_gone(folder) == []
    assert not Path(folder).exists()


def test_nothing_stays_behind_after_kill_9_of_the_driver(started):
    _, worker, folder = started.stdout.readline().split()
    assert len(holders(folder)) > 3
    family = [psutil.Process(int(worker)), *psutil.Process(started.pid).children(recursive=True)]
    os.kill(started.pid, signal.SIGKILL)
    assert until_gone(folder) == []
    assert alive(family) == []


def test_nothing_stays_behind_when_the_driver_dies_while_ray_starts(started):
    end = time.monotonic() + 20
    child = psutil.Process(started.pid)
    while time.monotonic() < end and len(child.children(recursive=True)) < 3:
        time.sleep(0.01)
    family = child.children(recursive=True)
    assert len(family) >= 3
    os.kill(started.pid, signal.SIGKILL)
    assert alive(family) == []
