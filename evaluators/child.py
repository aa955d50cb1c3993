"""One harness process and its pipes: start it, send it a line, bound what it says, kill it, bury it.

What a line means is no business of this room, nor is who is to blame. No thread enters: one would run beside timings.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from evaluators.harness import FAILED, READY
from evo.errors import DeviceError

START_S = 120.0
"""A child imports in 0.3 s; a machine that is swapping or starting a GPU driver takes longer."""
LINE_BYTES = 1 << 24
"""Longest reply: 10,000 samples and a hundred findings are below 1 MB."""
WORDS_BYTES = 1 << 16
"""Kept of what a child prints, kernels included; only the last 2,000 characters are ever shown."""
_CHUNK_BYTES = 1 << 16
_DEATH_S = 2.0
"""A process whose pipes are closed is all but gone; what remains is what a GPU's driver clears away."""
_PIPE_BYTES = 1 << 20
"""Linux's largest pipe for users (`/proc/sys/fs/pipe-max-size`)."""
_STDOUT, _STDERR = 0, 1
_ROOT = Path(__file__).resolve().parent.parent


class Child:
    """One harness process, in a session of its own.

    Its standard error is a pipe that is emptied while an answer is waited for. Whatever it prints, only the end is
    kept; what it prints unasked waits in the pipe, whose size bounds it.

    Args:
        device: name or `.py` path of the device plug-in.
    """

    def __init__(self, device: str) -> None:
        self.jobs = 0
        self._device = device
        self._ready = False
        self._pending = bytearray()
        self._words = bytearray()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "evaluators.harness", "--device", device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": _python_path(), "OMP_NUM_THREADS": "1"},
            bufsize=0,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pipes = (self._process.stdout.fileno(), self._process.stderr.fileno())
        self._handle = os.pidfd_open(self._process.pid)
        self._poller = select.poll()
        for descriptor in self._pipes:
            os.set_blocking(descriptor, False)
        for descriptor in (*self._pipes, self._handle):
            self._poller.register(descriptor, select.POLLIN)

    def wait_ready(self) -> None:
        """Wait for the first line, once.

        Raises:
            DeviceError: it did not start; the message holds its reason or its last words.
        """
        if self._ready:
            return
        try:
            line = self._read_line(time.monotonic() + START_S)
        except (EOFError, TimeoutError):
            raise DeviceError(f"the harness of device {self._device!r} did not start: {self.last_words()}") from None
        if line != READY.strip():
            reason = line.removeprefix(FAILED)[:2000].decode(errors="replace")
            raise DeviceError(f"the harness of device {self._device!r} did not start: {reason}{self._said()}")
        self._ready = True

    def is_ready(self) -> bool:
        """Whether it has started; waits for nothing."""
        if not self._ready and _readable(self._pipes[_STDOUT], 0):
            with contextlib.suppress(DeviceError):
                self.wait_ready()
        return self._ready

    def is_usable(self) -> bool:
        """Whether it lives and is silent: what it said unasked would be taken for the answer to the next job."""
        if self._ended(0):
            return False
        return not self._ready or not (self._pending or _readable(self._pipes[_STDOUT], 0))

    def ask(self, line: bytes, deadline: float) -> bytes:
        """Send one line and return the answer; `deadline` is of `time.monotonic`.

        Raises:
            EOFError: the child died.
            TimeoutError: the deadline passed.
        """
        assert self._process.stdin is not None
        self.jobs += 1
        self._drain()
        self._words.clear()  # an earlier job's words are no evidence against this one
        try:
            self._process.stdin.write(line + b"\n")
        except BrokenPipeError:
            raise EOFError from None
        return self._read_line(deadline)

    def kill(self) -> None:
        """Kill the process, its group, and descendants that made sessions of their own. Does not wait for the end."""
        if self._process.returncode is not None:
            return
        # It is not waited for yet, so that nobody else has its number; and it is stopped before its family is counted.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGSTOP)
        below = _descendants(self._process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for process in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def bury(self, timeout_s: float) -> bool:
        """Wait until the process is gone, close its pipes, and say whether it is; a driver can hold it for a while."""
        if self._process.returncode is None:
            if not self._ended(timeout_s):
                return False
            self._process.wait()
            self._drain()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        return True

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def killed_from_outside(self) -> bool:
        """Whether somebody else's SIGKILL ended it; ask before `kill`, with time for the kernel to clear it away."""
        return self._code() == -signal.SIGKILL

    def last_words(self) -> str:
        """Say how the process ended, with the end of what it wrote; ask before `kill`."""
        return _how(self._code()) + self._said()

    def _said(self) -> str:
        self._drain()
        tail = self._words[-2000:].decode(errors="replace").strip()
        return f"; its last words: {tail}" if tail else ""

    def _code(self) -> int | None:
        """Return how it ended, without burying it, so that its number stays its own; None while it lives."""
        if self._process.returncode is not None:
            return self._process.returncode
        if not self._ended(_DEATH_S):
            return None
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        return None if found is None else found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _ended(self, timeout_s: float) -> bool:
        return self._process.returncode is not None or _readable(self._handle, timeout_s)

    def _read_line(self, deadline: float) -> bytes:
        """Return the next line, or, if it grows too long, what there is of it: nobody can read that either."""
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            searched = len(self._pending)
            if searched > LINE_BYTES:
                end = searched
                break
            self._listen(deadline - time.monotonic())
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line

    def _listen(self, timeout_s: float) -> None:
        """Read what comes first, of words or of the answer; raises EOFError and TimeoutError."""
        if timeout_s <= 0:
            raise TimeoutError
        events = {descriptor for descriptor, _ in self._poller.poll(math.ceil(timeout_s * 1000))}
        stdout, stderr = self._pipes
        if stderr in events and not self._hear():
            self._poller.unregister(stderr)
        if stdout in events or self._handle in events:
            self._pending += self._answered()

    def _answered(self) -> bytes:
        """Read once from standard output; raises EOFError where nothing more will come."""
        chunk = b""
        with contextlib.suppress(BlockingIOError):  # a dead child's descendant may hold the other end
            chunk = os.read(self._pipes[_STDOUT], _CHUNK_BYTES)
        if not chunk:
            raise EOFError
        return chunk

    def _hear(self) -> bool:
        """Read once from standard error; False at its end."""
        data = os.read(self._pipes[_STDERR], _CHUNK_BYTES)
        self._words += data
        del self._words[:-WORDS_BYTES]
        return bool(data)

    def _drain(self) -> None:
        """Read what the pipe of words holds; at most its size, since a descendant may go on writing."""
        if self._process.stderr is None or self._process.stderr.closed:
            return
        with contextlib.suppress(BlockingIOError):
            for _ in range(_PIPE_BYTES // _CHUNK_BYTES):
                if not self._hear():
                    return


def _readable(descriptor: int, timeout_s: float) -> bool:
    """Whether a descriptor has something to read, or its end (of a pidfd: the process has ended)."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(math.ceil(timeout_s * 1000)))


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _how(code: int | None) -> str:
    if code is None:
        return "the harness process still runs"
    if code == -signal.SIGKILL:
        return "the harness process died by SIGKILL: a person ended it, or the system did for want of memory"
    if code < 0:
        return f"the harness process died by {signal.Signals(-code).name}"
    return f"the harness process ended with exit code {code}"


def _python_path() -> str:
    """Return a PYTHONPATH from which the child finds this very package, whatever its working directory."""
    return os.pathsep.join(part for part in (str(_ROOT), os.environ.get("PYTHONPATH", "")) if part)
