"""Runs a generated `reference.py` in the sandbox: no network, no files, no programs, bounded memory and time.

One child for each reference, kept for the next case: starting Python with NumPy takes 0.15 s, a small case 0.5 ms.
Whatever a reference does wrong is a `calling.Failed` in words; the child that did it is replaced.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import selectors
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evo import sandbox
from evo.errors import SandboxError
from evo.workload.calling import Failed
from evo.workload.inputs import Array

_CHILDREN = 4
"""Kept at once: of a workload's reference, and of those that it is compared with."""
_HEAD_BYTES = 1 << 20
_CPU_S = 86_400.0
"""Of a child's whole life; a single call is bounded by the wall clock."""
_MOST_SAID = 2000
_PIECE = 1 << 18


@dataclass(frozen=True)
class Walls:
    """What a reference may use: seconds for one case, and memory beside Python's and NumPy's own."""

    wall_s: float = 60.0
    memory_bytes: int = 2 << 30


def call(
    text: str, given: Mapping[str, Array], scalars: Mapping[str, float | int], dims: Mapping[str, int], walls: Walls
) -> Any:
    """Return what `reference(inputs, dims)` returns: output -> array, or pair of arrays; anything else as it is named.

    Raises:
        Failed: it does not run, or did what it must not: which, in words.
        SandboxError: this machine cannot confine it.
    """
    with _LOCK:
        child = _child(text, walls)
        try:
            return child.call(given, scalars, dims)
        except Failed as failed:
            if not child.alive:
                _drop(text, walls)
            raise failed from None
        except BaseException:
            _drop(text, walls)  # an interrupted call has left half an answer in the pipe
            raise


_LOCK = threading.Lock()
_KEPT: OrderedDict[tuple[str, Walls], _Child] = OrderedDict()


def _child(text: str, walls: Walls) -> _Child:
    key = (text, walls)
    if key in _KEPT and not _KEPT[key].alive:  # it dies with the thread that started it
        _drop(text, walls)
    if key not in _KEPT:
        while len(_KEPT) >= _CHILDREN:
            _KEPT.popitem(last=False)[1].close()
        _KEPT[key] = _Child(text, walls)
    _KEPT.move_to_end(key)
    return _KEPT[key]


def _drop(text: str, walls: Walls) -> None:
    child = _KEPT.pop((text, walls), None)
    if child is not None:
        child.close()


class _Child:
    def __init__(self, text: str, walls: Walls) -> None:
        self._walls = walls
        self._folder = tempfile.TemporaryDirectory(prefix="kernel-evo-reference-")
        shown = _modules(Path(self._folder.name))
        source = text.encode()
        python, stdlib = _python()
        argv = (python, "-I", "-S", "-B", f"{self._folder.name}/confined_child.py")
        try:
            self._process = sandbox.start(
                (*argv, self._folder.name, stdlib, str(len(source))),
                folder=self._folder.name,
                limits=sandbox.Limits(cpu_s=_CPU_S, memory_bytes=walls.memory_bytes, file_bytes=1 << 20),
                read_only=(*shown, stdlib, *_libraries()),
                env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                script=True,
            )
        except BaseException:
            self._folder.cleanup()
            raise
        self._unsent: tuple[bytes, ...] = (source,)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        with self._process:
            sandbox.stop(self._process)
        self._folder.cleanup()

    def call(self, given: Mapping[str, Array], scalars: Mapping[str, float | int], dims: Mapping[str, int]) -> Any:
        arrays = {name: np.ascontiguousarray(array) for name, array in given.items()}
        described = [(name, array.dtype.str, array.shape, array.nbytes) for name, array in arrays.items()]
        head = {"scalars": dict(scalars), "dims": dict(dims), "arrays": described}
        pipes = _Pipes(self._process, time.monotonic() + self._walls.wall_s)
        try:
            pipes.send(
                (*self._unsent, json.dumps(head).encode() + b"\n", *(array.tobytes() for array in arrays.values()))
            )
            self._unsent = ()
            return self._read(pipes)
        except TimeoutError:
            sandbox.stop(self._process)
            raise Failed(f"it did not end in {self._walls.wall_s:g} s", called=True) from None
        except EOFError:
            raise self._death() from None

    def _read(self, pipes: _Pipes) -> Any:
        said = json.loads(pipes.line(_HEAD_BYTES))
        if "failed" in said:
            text, line, called, defined = said["failed"]
            raise Failed(text, line, called=called, defined=tuple(defined))
        if said.get("broke") == "memory":
            raise Failed(self._too_much, called=True)
        if "broke" in said:
            self._process.wait()
            raise Failed(f"{said['broke']}, which a reference must not", called=True)
        if "returned" in said:
            raise Failed(f"expected a dict, found {said['returned']}", called=True)
        total = sum(_nbytes(*array) for _, arrays in said["outputs"] for array in arrays)
        if total > self._walls.memory_bytes:
            sandbox.stop(self._process)
            raise Failed(self._too_much, called=True)
        return {name: self._arrays(pipes, arrays) for name, arrays in said["outputs"]}

    def _arrays(self, pipes: _Pipes, described: Sequence[tuple[str, Sequence[int]]]) -> Any:
        if any(dtype == "O" for dtype, _ in described):
            return np.empty(tuple(described[0][1]), object)
        found = [
            np.frombuffer(pipes.exactly(_nbytes(dtype, shape)), dtype).reshape(shape) for dtype, shape in described
        ]
        return found[0] if len(found) == 1 else tuple(found)

    @property
    def _too_much(self) -> str:
        return f"it used more than {self._walls.memory_bytes >> 20} MB of memory"

    def _death(self) -> Failed:
        """Say why the child is gone; a wall that the audit hook did not see coming has a signal."""
        code = self._process.wait()
        reason = sandbox.Completed(code, b"", b"", False, -code if code < 0 else None).reason
        if self._unsent:
            assert self._process.stderr is not None
            said = self._process.stderr.read()[-_MOST_SAID:].decode(errors="replace")
            raise SandboxError(f"Python with NumPy does not start in the sandbox: {said}")
        return Failed(reason or f"it ended its process (exit status {code})", called=True)


class _Pipes:
    """Both ways to a child, with a deadline."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out, self._deadline = process.stdin.fileno(), process.stdout.fileno(), deadline
        self._kept = bytearray()

    def send(self, parts: Sequence[bytes | memoryview]) -> None:
        for part in parts:
            left = memoryview(part)
            while left.nbytes:
                self._wait(self._in, selectors.EVENT_WRITE)
                try:
                    left = left[os.write(self._in, left[:_PIECE]) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return  # it may have said why

    def line(self, most: int) -> bytes:
        while b"\n" not in self._kept:
            if len(self._kept) > most:
                raise EOFError
            self._more()
        line, _, rest = self._kept.partition(b"\n")
        self._kept = bytearray(rest)
        return bytes(line)

    def exactly(self, count: int) -> bytes:
        while len(self._kept) < count:
            self._more()
        found = bytes(self._kept[:count])
        del self._kept[:count]
        return found

    def _more(self) -> None:
        self._wait(self._out, selectors.EVENT_READ)
        data = os.read(self._out, _PIECE)
        if not data:
            raise EOFError
        self._kept += data

    def _wait(self, fd: int, event: int) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(fd, event)
            if not selector.select(max(0.0, self._deadline - time.monotonic())):
                raise TimeoutError


def _nbytes(dtype: str, shape: Sequence[int]) -> int:
    return 0 if dtype == "O" else int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize


# --- what Python needs --------------------------------------------------------------------------------------------


@functools.cache
def _python() -> tuple[str, str]:
    """Return the interpreter itself, no virtual environment's link, and the folder of its standard library."""
    return os.path.realpath(sys.executable), sysconfig.get_paths()["stdlib"]


@functools.cache
def _libraries() -> tuple[Path, ...]:
    """Return the shared library of an interpreter that is linked with one."""
    folder, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    path = Path(str(folder)) / str(name)
    return (path,) if name and path.is_file() else ()


def _modules(folder: Path) -> tuple[Path, ...]:
    """Link what the child imports into its folder, and return what it must be able to read for it."""
    found = tuple(_importable())
    for path in found:
        (folder / path.name).symlink_to(path)
    return found


def _importable() -> Iterator[Path]:
    here = Path(__file__).resolve().parent
    yield from (here / "calling.py", here / "confined_child.py")
    spec = importlib.util.find_spec("numpy")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).resolve().parent
    yield package
    with contextlib.suppress(OSError):
        yield from (path for path in package.parent.glob("numpy.libs") if path.is_dir())
