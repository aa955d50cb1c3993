"""The parent's side of the harness: start it, ask it, bound it, kill it, replace it.

A crash or a hang costs the child, never the parent. What a job computes is none of this room's business.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import psutil

from evaluators.harness import FAILED, READY
from evo.errors import DeviceError
from evo.records import Job, JobResult, Status, from_json, to_json

START_S = 120.0
"""A child imports in 0.3 s; a machine that is swapping or starting a GPU driver takes longer."""
LINE_BYTES = 1 << 24
"""Longest reply: 10,000 samples and a hundred findings are below 1 MB."""
_ROOT = Path(__file__).resolve().parent.parent


class Reply(NamedTuple):
    """A job's result, and how long it took by the parent's clock."""

    result: JobResult
    wall_s: float


class Supervisor:
    """Owns one harness child and, once a child was lost, one warm spare: most kernels kill none.

    A child that dies on a job which was not its first is not proof against that job: an earlier one may have left
    something behind. So the job is tried once more in a fresh child, and only what dies there is blamed.

    The first child starts at once and is waited for where it is needed, so that its start costs no time of its own.

    Args:
        device: name or `.py` path of the device plug-in.
        spare: keep a second child ready; off where the device allows one process only.
    """

    def __init__(self, device: str, *, spare: bool = True) -> None:
        self._device = device
        self._may_spare = spare
        self._keep_spare = False
        self._child: _Child | None = _Child(device)
        self._spare: _Child | None = None

    def prepare(self) -> None:
        """Start what is missing and wait until the child is ready. Call it outside timed windows.

        Raises:
            DeviceError: the child does not start; the message holds its last words.
        """
        self._child = self._child or self._spare_or_new()
        try:
            self._child.wait_ready()
        except DeviceError:
            self._discard()
            raise
        if self._keep_spare and self._spare is None:
            self._spare = _Child(self._device)

    def settle(self) -> None:
        """Wait until the spare has started too, so that nothing of ours runs beside a measurement."""
        self.prepare()
        if self._spare is None:
            return
        try:
            self._spare.wait_ready()
        except DeviceError:
            self._spare.kill()
            self._spare = None
            raise

    def renew(self) -> None:
        """Go on in another process."""
        self._discard()
        self.settle()

    def run(self, job: Job, deadline_s: float) -> Reply:
        """Run one job and return what became of it, within `deadline_s` of wall time and a little.

        Raises:
            DeviceError: the system failed, not the candidate.
        """
        self.prepare()
        assert self._child is not None
        used = self._child.jobs > 0
        reply = self._ask(job, deadline_s)
        if used and reply.result.status is Status.CRASH and self._child is None:
            self.prepare()
            reply = self._ask(job, deadline_s)
        return reply

    def close(self) -> None:
        """Kill both children and everything below them."""
        for child in (self._child, self._spare):
            if child is not None:
                child.kill()
        self._child = self._spare = None

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _spare_or_new(self) -> _Child:
        child, self._spare = self._spare or _Child(self._device), None
        return child

    def _ask(self, job: Job, deadline_s: float) -> Reply:
        assert self._child is not None
        started = time.monotonic()
        result = self._result(self._child.ask(to_json(job).encode(), started + deadline_s), deadline_s)
        return Reply(result, time.monotonic() - started)

    def _result(self, line: bytes | None, deadline_s: float) -> JobResult:
        assert self._child is not None
        if line is None:
            died = self._child.last_words() if self._child.ended() else ""
            self._lose()
            if died:
                return JobResult(Status.CRASH, died)
            return JobResult(Status.TIMEOUT, f"did not finish within {deadline_s:.3g} s; its processes were killed")
        if line.startswith(FAILED):
            raise DeviceError(line[len(FAILED) :].decode(errors="replace"))
        result = _parse(line)
        if result is None:
            self._lose()
            return JobResult(Status.CRASH, f"the harness wrote something that is no result: {line[:200]!r}")
        return result

    def _lose(self) -> None:
        self._discard()
        self._keep_spare = self._may_spare

    def _discard(self) -> None:
        if self._child is not None:
            self._child.kill()
        self._child = None


def _parse(line: bytes) -> JobResult | None:
    try:
        return from_json(JobResult, line)
    except ValueError:  # a child that a candidate has damaged may write anything
        return None


class _Child:
    """One harness process, in a session of its own."""

    def __init__(self, device: str) -> None:
        self.jobs = 0
        self._ready = False
        self._pending = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `kill`)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "evaluators.harness", "--device", device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": _python_path(), "OMP_NUM_THREADS": "1"},
            bufsize=0,
        )

    def wait_ready(self) -> None:
        """Wait for the first line, once."""
        if self._ready:
            return
        if self._read_line(time.monotonic() + START_S) != READY.strip():
            raise DeviceError(f"the harness of device {self._device()!r} did not start: {self.last_words()}")
        self._ready = True

    def ask(self, line: bytes, deadline: float) -> bytes | None:
        """Send one line and return the answer; None when the child died or the deadline passed."""
        assert self._process.stdin is not None
        self.jobs += 1
        try:
            self._process.stdin.write(line + b"\n")
        except BrokenPipeError:
            return None
        return self._read_line(deadline)

    def ended(self) -> bool:
        """Whether the process is gone; a pipe that closed is a process about to go."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.2)
        return self._process.returncode is not None

    def last_words(self) -> str:
        """Say how the process ended, with the end of what it wrote."""
        self.ended()
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 2000))
        tail = self._errors.read().decode(errors="replace").strip()
        return _how(self._process.returncode) + (f"; its last words: {tail}" if tail else "")

    def kill(self) -> None:
        """Kill the process, its group, and descendants that made sessions of their own."""
        below = _descendants(self._process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()

    def _device(self) -> str:
        return str(self._process.args[-1])  # type: ignore[index]

    def _read_line(self, deadline: float) -> bytes | None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                return None
            chunk = os.read(descriptor, 1 << 16)
            if not chunk or len(self._pending) > LINE_BYTES:
                return None
            self._pending += chunk
        line, self._pending = self._pending.split(b"\n", 1)
        return line


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _how(code: int | None) -> str:
    if code is None:
        return "the harness process still runs"
    if code < 0:
        return f"the harness process died by {signal.Signals(-code).name}"
    return f"the harness process ended with exit code {code}"


def _python_path() -> str:
    """Return a PYTHONPATH from which the child finds this very package, whatever its working directory."""
    return os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
