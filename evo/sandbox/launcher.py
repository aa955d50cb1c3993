"""Build the small native launcher that raises the walls, and ask it what this machine's kernel can do.

Nothing of a candidate comes in here: the launcher is our own source, built once per machine into the user's cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from evo.errors import SandboxError

_SOURCE = Path(__file__).with_name("confine.cpp")
_FLAGS = ("-std=c++17", "-O1", "-Wall")
_NOT_THERE = {
    "seccomp": "the kernel has no seccomp filters; use one with CONFIG_SECCOMP_FILTER, as every distribution's",
    "landlock": "the kernel has no Landlock; use Linux 5.13 or newer, outside of containers that forbid it (gVisor, "
    "Docker before 20.10.12)",
    "landlock-disabled": "Landlock is built in but switched off; add `landlock` to the kernel's boot parameter `lsm=`",
}


@functools.cache
def missing() -> str:
    """Return why foreign code cannot be confined here, with what to do about it, or ""."""
    if not os.uname().sysname.startswith("Linux"):
        return "foreign code can be confined on Linux only"
    try:
        path = launcher()
    except SandboxError as error:
        return str(error)
    done = subprocess.run([path, "--probe"], capture_output=True, text=True, timeout=30)
    if done.returncode == 0:
        return ""
    return _NOT_THERE.get(done.stderr, f"the probe of the sandbox failed: {done.stderr or done.returncode}")


@functools.cache
def launcher() -> Path:
    """Return the launcher's path, building it first where this machine has none yet (0.3 s).

    Raises:
        SandboxError: there is no C++ compiler, or it failed.
    """
    compiler = shutil.which("g++")
    if compiler is None:
        raise SandboxError("g++ is not installed, and the sandbox needs it; on Debian or Ubuntu: apt install g++")
    text = _SOURCE.read_bytes()
    name = "confine-" + hashlib.sha256(text + os.uname().machine.encode()).hexdigest()[:16]
    path = _cache_folder() / name
    if not path.exists():
        _build(compiler, path)
    return path


def _cache_folder() -> Path:
    """Return a folder that only this user can write, for programs: /tmp may be mounted `noexec`."""
    import platformdirs

    for folder in (
        platformdirs.user_cache_path("kernel-evo"),
        Path(tempfile.gettempdir()) / f"kernel-evo-{os.getuid()}",
    ):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        status = folder.stat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(folder, os.W_OK):
            return folder
    raise SandboxError(
        "no folder for the sandbox's launcher: expected a cache folder that this user, and nobody else, can write; "
        "set XDG_CACHE_HOME to one"
    )


def _build(compiler: str, path: Path) -> None:
    """Compile beside the final name, then rename: two processes may do this at once."""
    handle, scratch = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    os.close(handle)
    try:
        # Linked statically it starts in half the time; not every distribution ships a static C library.
        for how in (("-static",), ()):
            done = subprocess.run(
                [compiler, *_FLAGS, *how, str(_SOURCE), "-o", scratch], capture_output=True, text=True, timeout=120
            )
            if done.returncode == 0:
                os.chmod(scratch, 0o700)
                os.replace(scratch, path)
                return
        raise SandboxError(f"{compiler} could not build the sandbox's launcher:\n{done.stderr[:2000]}")
    finally:
        Path(scratch).unlink(missing_ok=True)
