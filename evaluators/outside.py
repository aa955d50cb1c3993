"""Start a tool of NVIDIA's that stands in front of a replay: find it, bound its time and its words, kill it whole.

What it looks at and what its words mean is known elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_ROOT = Path(__file__).resolve().parent.parent
_TOOLKITS = (
    "/usr/local/cuda/bin",
    "/opt/cuda/bin",
    "/usr/local/cuda/compute-sanitizer",
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/NVIDIA-Nsight-Compute*",
)
"""Where NVIDIA's packages put their tools; the newest of several comes last by name."""
_WORDS = "words"
_MOST_BYTES = 1 << 23


@dataclass(frozen=True)
class Ran:
    """What became of a tool: its exit code, None where its time was up, and the end of what it and its child said."""

    code: int | None
    words: str


def find(name: str) -> Path | None:
    """Return the tool on PATH, in CUDA_HOME, or where NVIDIA's packages put it."""
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    patterns = ([f"{home}/bin"] if home else []) + list(_TOOLKITS)
    for pattern in patterns:
        found = [path for path in sorted(Path("/").glob(f"{pattern.lstrip('/')}/{name}")) if os.access(path, os.X_OK)]
        if found:
            return found[-1]
    return None


def run(argv: Sequence[str | Path], folder: Path, timeout_s: float) -> Ran:
    """Run a tool in a session of its own, and kill it with all that it started when its time is up.

    Args:
        argv: the tool, its options, and the command that it stands in front of.
        folder: that it works in; its temporary files go there too, where no other user's lie in the way.
        timeout_s: wall time.
    """
    environment = {**os.environ, "PYTHONPATH": _python_path(), "TMPDIR": str(folder), "LC_ALL": "C"}
    words = folder / _WORDS
    with words.open("wb") as file:
        process = subprocess.Popen(
            [str(part) for part in argv],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _kill(process)
    return Ran(code, text_of(words))


def text_of(path: Path) -> str:
    """Return the end of a file that a tool may have written, "" where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _MOST_BYTES))
            return file.read(_MOST_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a tool: its group, and children in sessions of their own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGSTOP)
        below = psutil.Process(process.pid).children(recursive=True)
        for child in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _python_path() -> str:
    return os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
