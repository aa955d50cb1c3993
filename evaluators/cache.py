"""Results of compilers on disk: written atomically, private to the user, bounded in size. No program runs here."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from evo.errors import DeviceError
from evo.records import Binary, from_json, to_json

_KEEP = 0.8
"""After pruning this part of the limit is left, so that pruning is rare."""


@dataclass(frozen=True)
class Cache:
    """A folder of binaries by key. Several processes may use it at once."""

    folder: Path
    limit_bytes: int

    def get(self, key: str) -> Binary | None:
        """Return the binary of this key, or None."""
        path = self.folder / key
        try:
            head, image = path.read_bytes().split(b"\n", 1)
            os.utime(path)
            return replace(from_json(Binary, head), image=image, seconds=0.0)
        except (OSError, ValueError):
            return None

    def put(self, binary: Binary) -> None:
        """Store a binary; when the folder has grown beyond its limit, the longest unused ones go.

        A disk that is full costs the entry and nothing else.
        """
        head = to_json(replace(binary, image=b"")).encode()
        with contextlib.suppress(OSError):
            write_whole(self.folder / binary.key, head + b"\n" + binary.image)
            self._prune()

    def _prune(self) -> None:
        files: list[tuple[float, int, str]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    files.append((found.st_mtime, found.st_size, entry.path))
        total = sum(size for _, size, _ in files)
        if total <= self.limit_bytes:
            return
        for _, size, path in sorted(files):
            Path(path).unlink(missing_ok=True)
            total -= size
            if total <= _KEEP * self.limit_bytes:
                return


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it; raises `OSError`."""
    handle, scratch = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(scratch, path)
    except OSError:
        Path(scratch).unlink(missing_ok=True)
        raise


def private_folder(path: Path) -> Path:
    """Make a folder that only this user can enter, and return it.

    Raises:
        DeviceError: it cannot be made, or belongs to somebody else.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as error:
        raise DeviceError(
            f"cannot make the cache folder {path}: {error}; set XDG_CACHE_HOME to a writable folder"
        ) from error
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise DeviceError(
            f"the cache folder {path} belongs to another user; set XDG_CACHE_HOME to a folder of your own"
        )
    if found.st_mode & 0o077:
        path.chmod(0o700)
    return path
