"""Keep sandboxed children that hold NVRTC, ask them, and replace one when a source hangs or crashes it.

What is compiled, and what the answers mean, is `evaluators.nvrtc`'s business.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from evaluators.nvrtc import child as nvrtc_child
from evaluators.nvrtc.installation import Installation
from evo import sandbox
from evo.errors import DeviceError

_LIMITS = sandbox.Limits(cpu_s=24 * 3600, memory_bytes=8 << 30, file_bytes=1 << 20)
"""For a child that lives long; one compile is bounded by its time-out."""

_Standing = tuple[frozenset[int], int]
"""What a child inherits from the thread that starts it: the cores that it may use, and how nice it is to others."""


def describe(installation: Installation) -> Mapping[str, Any]:
    """Return NVRTC's `version` and the numbers of the `archs` that it compiles for.

    Raises:
        DeviceError: the library cannot be loaded.
    """
    return _about(installation)


def ask(installation: Installation, message: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
    """Have a child compile one program; the answer is `nvrtc_child`'s, or `failure`: `timeout` or `crash`.

    Threads that call this at once are served at once, as many as the caller has cores.
    """
    with pool(installation).child() as child:
        return child.ask(dict(message), timeout_s)


@functools.cache
def pool(installation: Installation) -> Pool:
    """Return this process's children for an installation; they end when the process does."""
    made = Pool(installation)
    atexit.register(made.close)
    return made


@functools.cache
def _about(installation: Installation) -> Mapping[str, Any]:
    with pool(installation).child() as child:
        return child.describe()


class Pool:
    """The children of this process, started when first needed; each serves one caller at a time."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._changed = threading.Condition()
        self._children: set[Child] = set()
        self._idle: list[Child] = []

    @contextlib.contextmanager
    def child(self) -> Iterator[Child]:
        """Lend a child, and wait for one where there are as many as the caller has cores."""
        child = self._take()
        try:
            yield child
        finally:
            with self._changed:
                self._idle.append(child)
                self._changed.notify()

    def close(self) -> None:
        """Stop every child."""
        with self._changed:
            children, self._children, self._idle = self._children, set(), []
        for child in children:
            child.close()

    def _take(self) -> Child:
        standing = _standing()
        most = len(standing[0])
        with self._changed:
            while True:
                fitting = [child for child in self._idle if child.standing == standing]
                if fitting:
                    self._idle.remove(fitting[-1])
                    return fitting[-1]
                if len(self._children) < most:
                    child = Child(self._installation, standing)
                    self._children.add(child)
                    return child
                if self._idle:  # started on other cores than the caller's, on one that measures perhaps
                    child = self._idle.pop(0)
                    self._children.discard(child)
                    child.close()
                else:
                    self._changed.wait()


def _standing() -> _Standing:
    return frozenset(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0)


class Child:
    """One process that holds NVRTC, started when first asked."""

    def __init__(self, installation: Installation, standing: _Standing) -> None:
        self.standing = standing
        self._installation = installation
        self._process: subprocess.Popen[bytes] | None = None
        self._hello: Mapping[str, Any] = {}

    @property
    def pid(self) -> int | None:
        """Its process, which is also its process group; None before it is started."""
        return self._process.pid if self._process else None

    def describe(self) -> Mapping[str, Any]:
        """Return what the library says of itself."""
        if not self._hello:
            self._start()
        return self._hello

    def ask(self, message: dict[str, Any], timeout_s: float) -> Mapping[str, Any]:
        """See the function `ask`."""
        served = self._process is not None and self._process.poll() is None
        answer = self._once(message, timeout_s)
        # One that had lived on could have died of old age (its CPU time, the thread that started it).
        return self._once(message, timeout_s) if served and answer.get("failure") == "crash" else answer

    def close(self) -> None:
        """Stop the process."""
        process, self._process = self._process, None
        if process is not None:
            with process:
                sandbox.stop(process)

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
        self.close()
        return {"failure": "timeout" if late.is_set() else "crash"}

    def _start(self) -> subprocess.Popen[bytes]:
        self.close()
        script = Path(nvrtc_child.__file__)
        library = self._installation.library
        # The folder is gone as soon as the child stands in it: there is nowhere to leave a file.
        with tempfile.TemporaryDirectory(prefix="kernel-evo-nvrtc-") as folder:
            self._process = process = sandbox.start(
                [Path(sys.executable).resolve(), "-I", "-S", script, library],
                folder=folder,
                limits=_LIMITS,
                read_only=[sys.base_prefix, script, *self._installation.readable],
                may_exec=True,
                env={},
            )
        hello = nvrtc_child.read(cast(BinaryIO, process.stdout)) or {"error": "it crashed"}
        if "error" in hello:
            self.close()
            raise DeviceError(f"NVRTC cannot be loaded: {library}: {hello['error']}")
        self._hello = hello
        return process
