"""Keep one sandboxed child that holds NVRTC, ask it, and replace it when a source hangs or crashes it.

What is compiled, and what the answers mean, is `evaluators.nvrtc`'s business.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from evaluators.nvrtc import child as nvrtc_child
from evo import sandbox

_LIMITS = sandbox.Limits(cpu_s=24 * 3600, memory_bytes=8 << 30, file_bytes=1 << 20)
"""For a child that lives long; one compile is bounded by its time-out."""


@dataclass(frozen=True)
class Installation:
    """Where NVRTC and CUDA's headers lie, and whether libcu++ is among them."""

    library: Path
    includes: tuple[Path, ...]
    whole: bool


def describe(installation: Installation) -> Mapping[str, Any]:
    """Return NVRTC's `version` and the numbers of the `archs` that it compiles for."""
    return _child(installation).describe()


def ask(installation: Installation, message: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
    """Have the child compile one program; the answer is `nvrtc_child`'s, or `failure`: `timeout` or `crash`."""
    return _child(installation).ask(dict(message), timeout_s)


@functools.cache
def _child(installation: Installation) -> _Child:
    child = _Child(installation)
    atexit.register(child.close)
    return child


class _Child:
    """The child of this process, started when first needed."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._about: Mapping[str, Any] = {}

    def describe(self) -> Mapping[str, Any]:
        with self._lock:
            if not self._about:
                self._start()
            return self._about

    def ask(self, message: dict[str, Any], timeout_s: float) -> Mapping[str, Any]:
        with self._lock:
            served = self._process is not None and self._process.poll() is None
            answer = self._once(message, timeout_s)
            # One that had lived on could have died of old age (its CPU time, the thread that started it).
            return self._once(message, timeout_s) if served and answer.get("failure") == "crash" else answer

    def close(self) -> None:
        """Stop the child."""
        with self._lock:
            self._stop()

    def _once(self, message: dict[str, Any], timeout_s: float) -> Mapping[str, Any]:
        process = self._process if self._process is not None and self._process.poll() is None else self._start()
        late = threading.Event()

        def give_up() -> None:
            late.set()
            sandbox.stop(process)

        timer = threading.Timer(timeout_s, give_up)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                nvrtc_child.write(cast(BinaryIO, process.stdin), message)
            answer = nvrtc_child.read(cast(BinaryIO, process.stdout))
        finally:
            timer.cancel()
            timer.join()
        if answer is not None:
            return answer
        self._stop()
        return {"failure": "timeout" if late.is_set() else "crash"}

    def _start(self) -> subprocess.Popen[bytes]:
        self._stop()
        script = Path(nvrtc_child.__file__)
        library = self._installation.library
        # The folder is gone as soon as the child stands in it: there is nowhere to leave a file.
        with tempfile.TemporaryDirectory(prefix="kernel-evo-nvrtc-") as folder:
            process = sandbox.start(
                [Path(sys.executable).resolve(), "-I", "-S", script, library],
                folder=folder,
                limits=_LIMITS,
                read_only=[sys.base_prefix, script, library.parent, *self._installation.includes],
                may_exec=True,
                env={},
            )
        self._process = process
        self._about = nvrtc_child.read(cast(BinaryIO, process.stdout)) or {"version": "unknown", "archs": []}
        return process

    def _stop(self) -> None:
        if self._process is not None:
            with self._process:
                sandbox.stop(self._process)
            self._process = None
