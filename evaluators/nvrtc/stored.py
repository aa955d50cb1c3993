"""What NVRTC has compiled before, on disk and shared by runs: where it lies, and what its keys are made of.

A key holds all that decides between a request and its result; nothing is compiled here.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluators.cache import Cache, private_folder, write_whole
from evaluators.nvrtc.installation import Installation
from evo.records import CompileRequest

LIMIT_BYTES = 128 << 20
"""Some ten thousand programs."""

_VERSIONED = (
    "cuda.h", "cuda_runtime_api.h", "cuda_fp16.hpp", "cuda_bf16.hpp", "cooperative_groups.h", "crt/mma.h",
    "cuda/std/__cccl/version.h",
)  # fmt: skip
"""Headers that tell one release of CUDA's from another; to read all 2600 at each start would take too long."""


def results() -> Cache:
    """Return the cache.

    Raises:
        DeviceError: its folder cannot be made private.
    """
    return Cache(private_folder(_folder() / "results"), LIMIT_BYTES)


def key(request: CompileRequest, options: Sequence[str], cubin: bool, installation: Installation) -> str:
    """Return what names a request's result.

    Args:
        request: gives source and kernels.
        options: NVRTC's, architecture and macros among them; include paths are left out, since headers count by
            content.
        cubin: machine code or PTX.
        installation: library and headers.
    """
    kept = (option for option in options if not option.startswith("--include-path="))
    parts = (_rules(), identity(installation), str(cubin), *kept, "", *request.kernels, "", request.source)
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()


@functools.cache
def identity(installation: Installation) -> str:
    """Return a hash of the library's content and of headers that change with every release.

    To read a library of 140 MB takes 0.1 s, so that the hash is kept on disk under the files' paths, sizes and times.
    """
    files = list(_files(installation))
    stamps = [f"{path} {found.st_size} {found.st_mtime_ns}" for path in files for found in [path.stat()]]
    known = private_folder(_folder() / "installations") / hashlib.sha256("\n".join(stamps).encode()).hexdigest()
    with contextlib.suppress(OSError):
        if len(text := known.read_text()) == hashlib.sha256().digest_size * 2:
            return text
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    with contextlib.suppress(OSError):
        write_whole(known, digest.hexdigest().encode())
    return digest.hexdigest()


def _files(installation: Installation) -> Iterator[Path]:
    yield installation.library
    yield from sorted(installation.library.parent.glob("libnvrtc-builtins.so*"))
    yield from (path for folder in installation.includes for name in _VERSIONED if (path := folder / name).is_file())


@functools.cache
def _rules() -> str:
    """Return a hash of our own headers and of what refuses and rewords: no result may outlive its rule."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for folder in (here, here / "include", here.parent / "inspection"):
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _folder() -> Path:
    import platformdirs

    return platformdirs.user_cache_path("kernel-evo") / "nvrtc"
