"""Run foreign native code (a compiler on a candidate's text, a candidate's program) so that it can hurt nobody.

Linux only: seccomp, Landlock, resource limits, a process group of its own, death with the parent. What a program does
is not judged here; where the machine cannot confine it, nothing runs and `SandboxError` says what is missing.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evo.errors import SandboxError
from evo.sandbox import launcher as _launcher

_ADDRESS_SPACE_BYTES = 256 << 30
"""Beyond its memory a program may reserve this much address space: room for 128 buffers in windows of 2 GiB that
cannot be touched. Bounds the page tables that it can make the kernel allocate at 512 MiB."""

_TOOL_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Limits:
    """What one run may use.

    Attributes:
        wall_s: seconds until the whole process group is killed (by `run`; a caller of `start` keeps its own clock).
        cpu_s: CPU seconds per process; rounded up.
        memory_bytes: writable private memory of each process.
        file_bytes: size of each file that it writes.
        output_bytes: how much of stdout and of stderr is kept; the rest is read and dropped.
    """

    wall_s: float = 10.0
    cpu_s: float = 10.0
    memory_bytes: int = 2 << 30
    file_bytes: int = 1 << 30
    output_bytes: int = 1 << 20


@dataclass(frozen=True)
class Completed:
    """How a run ended.

    Attributes:
        returncode: exit status, or minus the signal's number.
        stdout: the first `Limits.output_bytes` of it.
        stderr: likewise.
        timed_out: the wall-clock limit was reached and the process group killed.
        signal: the signal that ended it, or None.
    """

    returncode: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    signal: int | None

    @property
    def reason(self) -> str:
        """Which limit or wall ended the run, for people and models; "" where none did."""
        if self.timed_out:
            return "it did not end within the time allowed"
        return _REASONS.get(self.signal or 0, "")


_REASONS: dict[int, str] = {
    signal.SIGSYS: "it made a system call that is forbidden here (network, processes, files) or asked for more memory "
    "than it may have",
    signal.SIGXCPU: "it used up its CPU time",
    signal.SIGXFSZ: "it wrote a file larger than allowed",
}


def available() -> str:
    """Return "" where foreign code can be confined, else what is missing and how to get it."""
    return _launcher.missing()


def run(
    argv: Sequence[str | Path],
    *,
    folder: str | Path,
    limits: Limits,
    read_only: Sequence[str | Path] = (),
    may_exec: bool = False,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    core: int | None = None,
    script: bool = False,
) -> Completed:
    """Run a program in the sandbox until it ends or its time is up, stdin at its end from the start.

    Args:
        argv: the program (a path, or a name on the system's PATH) and its arguments.
        folder: its working directory. With `may_exec` it may create, write and delete in there; without, it may write
            the files that are there already, and create none: make its output files first.
        limits: see `Limits`.
        read_only: further files and folders that it may read (with `may_exec` also execute). The system's libraries
            are always readable, the system's tools and headers with `may_exec`.
        may_exec: whether it may start other programs (a compiler does). Without, it is this one process, one thread,
            for ever.
        env: its whole environment. None is an empty one; with `may_exec` a PATH, and TMPDIR in `folder`.
        pass_fds: open file descriptors that it inherits under the same numbers.
        core: CPU core to pin it to.
        script: without `may_exec`: it is an interpreter, which may also list the folders that it may read, and to which
            memory is refused with an error.

    Returns:
        How it ended. A program that breaks out of its limits is data, not an exception.

    Raises:
        SandboxError: the machine cannot confine it, or it could not be started at all.
    """
    mode = _mode(may_exec, script)
    process = _start(argv, folder, limits, read_only, mode, env, pass_fds, core, subprocess.DEVNULL)
    with process:
        try:
            stdout, stderr, timed_out = _collect(process, limits)
        finally:
            stop(process)
    code = process.returncode
    return Completed(code, stdout, stderr, timed_out, -code if code < 0 else None)


def start(
    argv: Sequence[str | Path],
    *,
    folder: str | Path,
    limits: Limits,
    read_only: Sequence[str | Path] = (),
    may_exec: bool = False,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    core: int | None = None,
    script: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program in the sandbox and return at once; stdin, stdout and stderr are unbuffered pipes.

    The arguments are those of `run`. When this returns, the program runs behind all walls. The caller keeps the clock
    and ends the program with `stop`. It dies with the *thread* that called this (that is how Linux defines
    PR_SET_PDEATHSIG), so start long-lived programs from a thread that lives as long.

    Raises:
        SandboxError: see `run`.
    """
    mode = _mode(may_exec, script)
    return _start(argv, folder, limits, read_only, mode, env, pass_fds, core, subprocess.PIPE)


def stop(process: subprocess.Popen[bytes]) -> int:
    """Kill a program's whole process group, wait for it, and return its exit status. May be called again."""
    if process.returncode is None:
        # As long as the leader is not waited for, no stranger can get the group's number.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _mode(may_exec: bool, script: bool) -> str:
    return "tools" if may_exec else "script" if script else "program"


def _start(
    argv: Sequence[str | Path],
    folder: str | Path,
    limits: Limits,
    read_only: Sequence[str | Path],
    mode: str,
    env: Mapping[str, str] | None,
    pass_fds: Sequence[int],
    core: int | None,
    stdin: int,
) -> subprocess.Popen[bytes]:
    why_not = available()
    if why_not:
        raise SandboxError(f"cannot confine foreign code on this machine: {why_not}")
    folder, may_exec = Path(folder).resolve(), mode == "tools"
    environment = dict(env) if env is not None else {**_TOOL_ENVIRONMENT, "TMPDIR": str(folder)} if may_exec else {}
    error_read, error_write = os.pipe()
    address_space = limits.memory_bytes if may_exec else limits.memory_bytes + _ADDRESS_SPACE_BYTES
    command = [
        _launcher.launcher(),
        mode,
        os.getpid(),
        error_write,
        max(1, -int(-limits.cpu_s // 1)),
        address_space,
        limits.memory_bytes,
        limits.file_bytes,
        -1 if core is None else core,
        folder,
        len(read_only),
        *(Path(path).resolve() for path in read_only),
        _program(argv[0]),
        *argv,
    ]
    try:
        process = subprocess.Popen(
            [str(word) for word in command],
            bufsize=0,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            pass_fds=(*pass_fds, error_write),
            start_new_session=True,
        )
    except OSError as error:
        os.close(error_read)
        raise SandboxError(f"cannot start the sandbox's launcher: {error}") from error
    finally:
        os.close(error_write)
    with open(error_read, "rb") as errors:
        trouble = errors.read().decode(errors="replace")
    if trouble:
        with process:
            stop(process)
        raise SandboxError(f"cannot start {argv[0]} in the sandbox: {trouble}")
    return process


def _program(name: str | Path) -> Path:
    found = shutil.which(str(name), path=os.environ.get("PATH", "") or _TOOL_ENVIRONMENT["PATH"])
    if found is None:
        raise SandboxError(f"cannot start {name} in the sandbox: no such program")
    return Path(found).resolve()


def _collect(process: subprocess.Popen[bytes], limits: Limits) -> tuple[bytes, bytes, bool]:
    """Read both pipes until the program ends or its time is up; return what is kept and whether time was up."""
    deadline = time.monotonic() + limits.wall_s
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Pipe(process.stdout.fileno(), limits.output_bytes), _Pipe(process.stderr.fileno(), limits.output_bytes)
    ended = os.pidfd_open(process.pid)
    try:
        timed_out = not _pump(ended, (out, err), deadline)
    finally:
        os.close(ended)
        # Before it is waited for: so long, the group's number cannot belong to a stranger.
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (out, err):
        while pipe.take():
            pass
    return bytes(out.kept), bytes(err.kept), timed_out


def _pump(ended: int, pipes: tuple[_Pipe, _Pipe], deadline: float) -> bool:
    """Empty the pipes as they fill, until the process behind the pidfd `ended` has ended; False at the deadline."""
    with selectors.DefaultSelector() as selector:
        selector.register(ended, selectors.EVENT_READ)
        for pipe in pipes:
            selector.register(pipe.fd, selectors.EVENT_READ, pipe)
        while (left_s := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                if key.fd == ended:
                    return True
                if not key.data.take():
                    selector.unregister(key.fd)
    return False


class _Pipe:
    """One pipe of the program: the first bytes are kept, so that a million lines cost no memory."""

    def __init__(self, fd: int, limit: int) -> None:
        self.fd = fd
        self.kept = bytearray()
        self._limit = limit

    def take(self) -> bool:
        """Read once; False at the end."""
        data = os.read(self.fd, 1 << 16)
        self.kept += data[: self._limit - len(self.kept)]
        return bool(data)
