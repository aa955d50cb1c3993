"""Find NVIDIA's `nvdisasm` and have it print a CUBIN, in the sandbox: what it reads, a candidate's compiler wrote."""

from __future__ import annotations

import functools
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evaluators import outside
from evo import sandbox

INSTALL = "pip install nvidia-cuda-nvdisasm, or put a CUDA toolkit's nvdisasm on PATH"
_LIMITS = sandbox.Limits(wall_s=20.0, cpu_s=20.0, memory_bytes=4 << 30, file_bytes=1 << 20, output_bytes=64 << 20)
"""A kernel of a thousand instructions takes half a second and prints 60 KB."""
_IMAGE = "kernel.cubin"


def text(image: bytes) -> str | None:
    """Return the machine code of a CUBIN as text with its lines; None where no nvdisasm of this machine reads it.

    Raises:
        SandboxError: it cannot be confined here.
    """
    for tool in find():
        printed = _printed(tool, image)
        if printed is not None:
            return printed
    return None


@functools.cache
def find() -> tuple[Path, ...]:
    """Return every nvdisasm: on PATH, in CUDA_HOME or a toolkit, in the wheels beside this Python.

    There may be several because one that is older than NVRTC cannot read what that writes.
    """
    found = outside.find("nvdisasm")
    return tuple(dict.fromkeys(path.resolve() for path in (*([found] if found else []), *_wheels())))


def _wheels() -> Iterator[Path]:
    """Wheels of CUDA 13, of CUDA 12, and Triton's."""
    patterns = (("nvidia", "cu[0-9][0-9]/bin"), ("nvidia", "cuda_*/bin"), ("triton", "backends/nvidia/bin"))
    for package, folder in patterns:
        spec = importlib.util.find_spec(package)  # of a package at the top: nothing is imported
        for root in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(root).glob(f"{folder}/nvdisasm"), reverse=True):
                if os.access(path, os.X_OK):
                    yield path


def _printed(tool: Path, image: bytes) -> str | None:
    with tempfile.TemporaryDirectory(prefix="kernel-evo-nvdisasm-") as folder:
        (Path(folder) / _IMAGE).write_bytes(image)
        ran = sandbox.run(
            [tool, "--print-line-info-inline", "--print-code", _IMAGE],
            folder=folder,
            limits=_LIMITS,
            read_only=[tool],
            env={"LC_ALL": "C"},
        )
    whole = ran.returncode == 0 and len(ran.stdout) < _LIMITS.output_bytes
    return ran.stdout.decode(errors="replace") if whole else None
