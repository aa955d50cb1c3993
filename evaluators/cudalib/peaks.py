"""What this GPU really reaches: measured once by `cudalib.measuring`, in a process of its own, and kept on disk.

A process of its own, so that whoever asks needs no CUDA context, and no fault of it reaches a candidate's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from evaluators.cache import private_folder, write_whole
from evo.errors import DeviceError
from evo.records import Device, Peaks, from_json, to_json

TIMEOUT_S = 60.0
"""A context takes a second, the compiler up to four, the measurement a half."""
SOURCE = Path(__file__).with_name("peaks.cu")
_ROOT = Path(__file__).resolve().parents[2]


def measured(facts: Device, folder: Path | None = None, take: Callable[[], Peaks] | None = None) -> Peaks:
    """Return what the GPU reaches, from disk where it, or one of its kind, was measured under this driver before.

    Args:
        facts: of the first visible GPU; nobody else may be measuring on it now.
        folder: where the figures are kept; None for the user's cache.
        take: measures; None does it in a new process.

    Raises:
        DeviceError: they cannot be measured now, and why.
    """
    kept = private_folder(_cache_folder() if folder is None else folder) / _key(facts)
    with contextlib.suppress(OSError, ValueError):
        return from_json(Peaks, kept.read_bytes())
    found = (take or in_a_process)()
    with contextlib.suppress(OSError):  # a full disk costs the next process a few seconds
        write_whole(kept, to_json(found).encode())
    return found


def in_a_process() -> Peaks:
    """Measure the first visible GPU; raises `DeviceError`."""
    command = [sys.executable, "-P", "-m", "evaluators.cudalib.measuring"]
    python_path = os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
    environment = {**os.environ, "PYTHONPATH": python_path}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(f"the GPU's peaks were not measured within {TIMEOUT_S:g} s; see `nvidia-smi`") from None
    if done.returncode != 0:
        words = done.stderr.strip() or f"its process ended with exit code {done.returncode}"
        raise DeviceError(f"the GPU's peaks were not measured: {words.splitlines()[-1]}")
    return from_json(Peaks, done.stdout)


def _key(facts: Device) -> str:
    """Name what the figures depend on; the driver's version is part of the fingerprint."""
    return hashlib.sha256(facts.fingerprint.encode() + b"\0" + SOURCE.read_bytes()).hexdigest()


def _cache_folder() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("kernel-evo") / "peaks"
