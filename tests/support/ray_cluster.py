"""A Ray that somebody else has started: `ray start` in a folder and an environment of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

RAY = Path(sys.executable).with_name("ray")


@contextlib.contextmanager
def started(folder: Path, num_gpus: int) -> Iterator[str]:
    """Yield the address of a cluster of one machine with two CPUs; nothing of it stays behind."""
    temporary = tempfile.mkdtemp(prefix="evo-test-", dir="/tmp")
    port = _free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "CUDA_", "EVO_"))}
    process = subprocess.Popen(
        [
            str(RAY), "start", "--head", "--block", f"--port={port}", "--num-cpus=2", f"--num-gpus={num_gpus}",
            "--node-ip-address=127.0.0.1", "--include-dashboard=false", "--disable-usage-stats",
            "--object-store-memory=100000000", f"--temp-dir={temporary}",
        ],
        cwd=folder,
        env={**kept, "RAY_memory_monitor_refresh_ms": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    try:
        _until_it_listens(process, port)
        yield f"127.0.0.1:{port}"
    finally:
        family = [process, *psutil.Process(process.pid).children(recursive=True)]
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=15)
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        process.communicate()
        shutil.rmtree(temporary, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _until_it_listens(process: subprocess.Popen[str], port: int) -> None:
    """Wait for the line with which `ray start` says that all is up."""
    assert process.stdout is not None
    end = time.monotonic() + 90
    for line in process.stdout:
        if "Ray runtime started" in line:
            return
        assert time.monotonic() < end
    raise AssertionError(f"ray start ended without a cluster on port {port}")
