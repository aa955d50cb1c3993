"""One evaluator at a time on a GPU: a lock that every process of this machine can take and that dies with its holder.

No CUDA here, and no judgement on when to take it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from evo.errors import DeviceError

FOLDER = Path("/tmp")
"""Not `tempfile.gettempdir()`: TMPDIR differs between users and runs, and all of them must meet here."""
WAIT_S = 5.0
"""An evaluator that was killed, or is closing, is gone by then; another run is not, and to wait for it is no use."""
_POLL_S = 0.05
_LOCKS = Path("/proc/locks")


@contextlib.contextmanager
def hold(uuid: str, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock of a GPU for the length of the block; the kernel releases it when this process dies.

    Containers that share a GPU and not `/tmp` do not see each other's locks.

    Args:
        uuid: of the GPU, or of its MIG instance, as NVML tells it.
        wait_s: how long to wait for whoever holds it, in seconds.

    Raises:
        DeviceError: somebody else holds it (process and command are named where they can be seen), or its file is not
            what we would have made.
    """
    path = path_for(uuid)
    descriptor = _open(path)
    try:
        end = time.monotonic() + wait_s
        while not _try(descriptor):
            if time.monotonic() >= end:
                raise DeviceError(_taken(uuid, path, os.fstat(descriptor).st_ino))
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)  # nobody inherits it, so that this releases the lock


def path_for(uuid: str) -> Path:
    """Return the file whose lock is that of the GPU."""
    return FOLDER / f"kernel-evo-gpu-{re.sub(r'[^A-Za-z0-9.-]', '_', uuid)}.lock"


def _open(path: Path) -> int:
    """Open the lock's file, which is never removed: between two that hold a lock would lie two files.

    Whatever lies there already is opened without writing to it, truncating it or changing its mode: in a folder that
    all may write to, it may be a link to something of value. (filelock does all three.)
    """
    try:
        return _make(path)
    except FileExistsError:
        pass
    except OSError as error:
        raise DeviceError(f"{path}: the GPU's lock cannot be made: {error.strerror}") from error
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DeviceError(_foreign(path, str(error.strerror))) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DeviceError(_foreign(path, "it is no regular file"))
    return descriptor


def _make(path: Path) -> int:
    flags = os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o666)
    os.fchmod(descriptor, 0o666)  # for other users, whatever our umask
    return descriptor


def _foreign(path: Path, why: str) -> str:
    return f"{path}: expected a file of our own, to lock the GPU with, found something else: {why}. Remove it."


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _taken(uuid: str, path: Path, inode: int) -> str:
    holder = _holder(inode)
    who = "another process" if holder is None else _described(holder)
    stop = "" if holder is None else f", or stop it (kill {holder})"
    return (
        f"GPU {uuid} is in use by {who}: two that measure at once would spoil each other's latencies. Wait until it "
        f"ends{stop}, or choose another GPU with CUDA_VISIBLE_DEVICES. (Its lock is {path}.)"
    )


def _holder(inode: int) -> int | None:
    """Return the process that holds the lock, as far as it can be seen from here (not out of a container)."""
    with contextlib.suppress(OSError):
        for line in _LOCKS.read_text().splitlines():
            # 1: FLOCK  ADVISORY  WRITE 25181 fe:00:2146360 0 EOF
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].endswith(f":{inode}") and int(fields[4]) > 0:
                return int(fields[4])
    return None


def _described(pid: int) -> str:
    try:
        command = shlex.join(psutil.Process(pid).cmdline())[:200]
    except psutil.Error:
        command = ""
    return f"process {pid}" + (f" ({command})" if command else "")
