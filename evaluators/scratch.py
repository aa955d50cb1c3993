"""Scratch folders for jobs: in memory where there is room, gone when the job is done, swept when their owner died."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "kernel-evo-"
MEMORY_VARIABLE = "EVO_SCRATCH_MEMORY"
"""Environment variable: a folder in memory of one's own, for who wants to remove it with all that is in it."""
MEMORY = Path(os.environ.get(MEMORY_VARIABLE, "/dev/shm"))
SPARE_BYTES = 1 << 26
"""Left free in memory beyond what a job needs."""
YOUNG_S = 60.0
"""A folder younger than this may not have its lock yet, so that nobody sweeps it."""


class Scratch:
    """Hands out job folders inside folders of its own, which a lock marks as alive."""

    def __init__(self) -> None:
        self._homes: dict[Path, tuple[Path, int]] = {}
        for base in _bases():
            sweep(base)

    @contextlib.contextmanager
    def folder(self, nbytes: int) -> Iterator[Path]:
        """Yield a fresh folder for a job that writes about `nbytes`; it is removed afterwards."""
        base = MEMORY if _roomy(MEMORY, nbytes) else Path(tempfile.gettempdir())
        path = Path(tempfile.mkdtemp(prefix="job-", dir=self._home(base)))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Remove everything. May be called twice."""
        for home, lock in self._homes.values():
            shutil.rmtree(home, ignore_errors=True)
            os.close(lock)
        self._homes = {}

    def _home(self, base: Path) -> Path:
        if base not in self._homes:
            home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
            lock = os.open(home / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._homes[base] = (home, lock)
        return self._homes[base][0]


def sweep(base: Path) -> None:
    """Remove folders of processes that no longer live: the kernel has released their locks."""
    for home in base.glob(PREFIX + "*"):
        with contextlib.suppress(OSError):
            if time.time() - home.stat().st_mtime > YOUNG_S:
                _remove_if_orphan(home)


def _remove_if_orphan(home: Path) -> None:
    lock = os.open(home / ".lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(home, ignore_errors=True)
    finally:
        os.close(lock)


def _bases() -> tuple[Path, ...]:
    return tuple({MEMORY, Path(tempfile.gettempdir())})


def _roomy(base: Path, nbytes: int) -> bool:
    """Whether a folder here is writable, may hold programs, and has room for twice what a job writes."""
    if not os.access(base, os.W_OK | os.X_OK):
        return False
    space = os.statvfs(base)
    return not space.f_flag & os.ST_NOEXEC and space.f_bavail * space.f_frsize > 2 * nbytes + SPARE_BYTES
