"""Writes an export's files, and overwrites nothing that it was not told to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from evo.errors import ConfigError

TEMPLATES = Path(__file__).with_name("templates")

File = tuple[str, bytes]
"""Path inside the export, and content."""


def write(out: Path, files: Iterable[File], *, force: bool) -> tuple[Path, ...]:
    """Write an export; return the paths of its files.

    Args:
        out: the new folder.
        files: what goes into it.
        force: replace files that are there; others stay.

    Raises:
        ConfigError: the folder is there and not empty, or cannot be written.
    """
    if out.exists() and not out.is_dir():
        raise ConfigError(f"--out {out}: expected a folder, or a name that is free, found a file")
    if not force and out.is_dir() and any(out.iterdir()):
        raise ConfigError(f"--out {out}: expected no folder, or an empty one; name another, or replace it with --force")
    try:
        return tuple(_written(out / name, content) for name, content in files)
    except OSError as error:
        raise ConfigError(f"--out {out}: {error.filename} cannot be written: {error.strerror}") from error


def template(kind: str) -> Iterator[File]:
    """Return the files of a template as they are."""
    for path in sorted((TEMPLATES / kind).iterdir()):
        if path.is_file():
            yield path.name, path.read_bytes()


def _written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
