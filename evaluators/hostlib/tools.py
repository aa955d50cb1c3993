"""The host device's tools: which compiler, with which options, and what of ours is built once per machine.

The runtime's objects and the precompiled headers are made here from `hostlib/`. No candidate's text enters.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from evaluators.cache import private_folder
from evo.errors import DeviceError

LIBRARY = Path(__file__).parent
FLAVOURS = ("plain", "check")

_ARCHITECTURE = {
    "x86_64": ("-march=native", "-fcf-protection=none"),
    "aarch64": ("-mcpu=native",),
}
_LANGUAGE = (
    "-std=gnu++17",
    "-fno-strict-aliasing",  # kernels read floats as float4 and integers
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",  # as nvcc's default --fmad=true
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-gnu-unique",
    "-fno-threadsafe-statics",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fno-pie",
    "-ftls-model=local-exec",
    "-g1",  # line tables, so that an address becomes a line of the candidate
    "-gdwarf-4",  # addr2line 2.40 takes version 5's first file for the second
    "-w",
    "-fmax-errors=8",
    "-fdiagnostics-color=never",
    "-fno-diagnostics-show-option",
)
_FLAVOUR = {
    "plain": ("-O3",),
    # The instrumentation of GCC's sanitizers, without their runtimes: the calls end in hostlib/runtime/hooks.cpp.
    "check": (
        "-O1",
        "-DCUDA_HOST_CHECK",
        "-fsanitize=thread,bounds,alignment",
        "--param=tsan-instrument-func-entry-exit=0",
        "--param=tsan-distinguish-volatile=1",
    ),
}
_KEPT = 4
"""Sets of tools that stay on disk (40 MB each): several checkouts may share a cache."""
_RUNTIME = ("begin", "end", "fiber", "scheduler", "report", "memory", "job", "faults", "main")
_RUNTIME_OF = {"plain": ("checker_off",), "check": ("checker", "hooks")}
_RUNTIME_FLAGS = (
    "-std=gnu++17",
    "-O2",
    "-fno-pie",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    "-g0",
    "-w",
)


@dataclass(frozen=True)
class Tools:
    """What a build needs.

    Attributes:
        compiler: path of g++.
        folder: built runtime objects, and one folder of precompiled headers per flavour.
        fingerprint: changes with the compiler, the processor and `hostlib/`.
    """

    compiler: str
    folder: Path
    fingerprint: str

    def flags(self, flavour: str) -> tuple[str, ...]:
        """Return the options that compile a candidate."""
        headers = ("-I", str(self.folder / flavour), "-I", str(LIBRARY))
        return (*_LANGUAGE, *_ARCHITECTURE.get(platform.machine(), ()), *_FLAVOUR[flavour], *headers)

    def link(self, flavour: str, candidate: str, output: str) -> tuple[str, ...]:
        """Return the command that links a candidate's object; its variables lie between our first and last object."""
        rest = (*_RUNTIME[2:], *_RUNTIME_OF[flavour])
        objects = [str(self.folder / f"{name}.o") for name in rest]
        first, last = str(self.folder / "begin.o"), str(self.folder / "end.o")
        return ("gcc", "-no-pie", first, candidate, last, *objects, "-lm", "-o", output)


@functools.cache
def tools(compiler: str, cache: Path) -> Tools:
    """Return the tools, building the runtime and the precompiled headers first where they are missing (about 3 s).

    Args:
        compiler: name or path of g++.
        cache: a folder that only this user can write.

    Raises:
        DeviceError: there is no such compiler, or it cannot build our own sources.
    """
    path = shutil.which(compiler)
    if path is None:
        raise DeviceError(
            f"the host device needs {compiler}, which is not installed; on Debian or Ubuntu: apt install g++"
        )
    fingerprint = _fingerprint(path)
    folder = private_folder(cache) / f"tools-{fingerprint}"
    if folder.is_dir():
        os.utime(folder)
    else:
        _build(path, folder, fingerprint)
        _forget_old(folder.parent)
    return Tools(path, folder, fingerprint)


def _fingerprint(compiler: str) -> str:
    digest = hashlib.sha256()
    version = subprocess.run([compiler, "--version"], capture_output=True, timeout=30, check=False).stdout
    for part in (
        version,
        processor_name().encode(),
        _processor_features().encode(),
        repr((_LANGUAGE, _FLAVOUR)).encode(),
    ):
        digest.update(part)
    for path in sorted(LIBRARY.rglob("*.?pp")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def processor_name() -> str:
    """Return the processor's model name."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _processor_features() -> str:
    return _cpuinfo("flags") or _cpuinfo("Features")


def _cpuinfo(key: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key) and ":" in line), "")


def _build(compiler: str, folder: Path, fingerprint: str) -> None:
    """Build beside the final name, then rename; where two processes do this at once, the first to end wins."""
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        made = Tools(compiler, scratch, fingerprint)
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            list(pool.map(_run, _commands(made)))
        try:
            scratch.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _forget_old(cache: Path) -> None:
    """Remove what earlier versions built, and what a build that was killed left behind; the last few stay."""
    folders = [*cache.glob("tools-*"), *cache.glob(".building-*")]
    for folder in sorted(folders, key=lambda path: path.stat().st_mtime)[:-_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)


def _commands(made: Tools) -> list[list[str]]:
    commands = []
    for flavour in FLAVOURS:
        (made.folder / flavour).mkdir()
        header = str(made.folder / flavour / "cuda_host.hpp.gch")
        commands.append(
            [made.compiler, *made.flags(flavour), "-x", "c++-header", str(LIBRARY / "cuda_host.hpp"), "-o", header]
        )
    for name in (*_RUNTIME, *_RUNTIME_OF["plain"], *_RUNTIME_OF["check"]):
        source, target = str(LIBRARY / "runtime" / f"{name}.cpp"), str(made.folder / f"{name}.o")
        commands.append([made.compiler, *_RUNTIME_FLAGS, "-c", source, "-o", target])
    return commands


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise DeviceError(f"{command[0]} cannot build the host device's own sources:\n{done.stderr[:2000]}")
