"""Build small native programs for tests, once per session."""

from __future__ import annotations

import atexit
import functools
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


@functools.cache
def attacks() -> Path:
    """Return the program of `attacks.cpp`, which tries one hostile thing per run."""
    folder = Path(tempfile.mkdtemp(prefix="kernel-evo-attacks-"))
    atexit.register(shutil.rmtree, folder)
    program = folder / "attacks"
    subprocess.run(["g++", "-std=c++17", "-O1", str(HERE / "attacks.cpp"), "-o", str(program)], check=True, timeout=120)
    return program


def ends(pid: int) -> bool:
    """Whether this process (no child of ours) ends within ten seconds."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], 10)[0])
    finally:
        os.close(fd)
