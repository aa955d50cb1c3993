"""Find NVRTC and CUDA's headers on this machine: wheels, or a CUDA toolkit. Nothing is loaded or started here."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evo.errors import DeviceError

OVERRIDE = "KERNEL_EVO_NVRTC"
"""Environment variable: path of the libnvrtc.so to use, with CUDA's headers in the same toolkit or wheels."""

MISSING = (
    "NVRTC is not installed; pip install 'kernel-evo[nvrtc]', or set CUDA_HOME to the folder of a CUDA toolkit (12 or "
    "newer)"
)
_TOOLKITS = ("/usr/local/cuda", "/opt/cuda", sys.prefix, "/usr")
_LIBRARY = re.compile(r"libnvrtc\.so(\.(?:1[2-9]|[2-9]\d)[\d.]*)")
"""CUDA 12 and newer; the bare `libnvrtc.so` is a link for linkers and says no version."""
_TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("sbsa-linux", "aarch64-linux")}
_CUDA, _CRT, _CXX = "cuda_fp16.h", "crt/mma.h", "cuda/std/tuple"
"""One header of each package that a toolkit, or a set of wheels, spreads over folders."""


@dataclass(frozen=True)
class Installation:
    """Where NVRTC and CUDA's headers lie, without symbolic links, and whether libcu++ is among them."""

    library: Path
    includes: tuple[Path, ...]
    whole: bool

    @property
    def readable(self) -> tuple[Path, ...]:
        """Folders that the compiler reads: its library with what that loads from beside it, and the headers."""
        linked = ((folder / _CUDA).resolve().parent for folder in self.includes if (folder / _CUDA).exists())
        return tuple(dict.fromkeys((self.library.parent, *self.includes, *linked)))


@dataclass(frozen=True)
class _Layout:
    """Folders where one way of installing CUDA puts its libraries and headers; not all of them need exist."""

    libraries: tuple[Path, ...]
    includes: tuple[Path, ...]


@functools.cache
def find() -> Installation | None:
    """Return the NVRTC of this machine; None where there is none.

    `KERNEL_EVO_NVRTC` wins; then come the wheels beside this Python (CUDA 13 before 12), `CUDA_HOME`, `CUDA_PATH`,
    /usr/local/cuda, /opt/cuda, a conda environment, and the system's own folders. One that has libcu++'s headers too
    goes before one that lacks them: without them, neither cooperative groups nor <type_traits> compile.

    Raises:
        DeviceError: `KERNEL_EVO_NVRTC` is set and leads to no NVRTC.
    """
    spec = importlib.util.find_spec("nvidia")
    wheels = [Path(root) for root in spec.submodule_search_locations or ()] if spec else []
    return locate(os.environ, wheels, [Path(root) for root in _TOOLKITS])


def locate(
    environment: Mapping[str, str], wheels: Sequence[Path], toolkits: Sequence[Path] = ()
) -> Installation | None:
    """Look for an NVRTC that has its headers; see `find`.

    Args:
        environment: variables that name a toolkit.
        wheels: folders of the namespace package `nvidia`.
        toolkits: folders in which a toolkit may lie, looked at last.
    """
    if environment.get(OVERRIDE):
        return _named(Path(environment[OVERRIDE]))
    homes = [Path(environment[name]) for name in ("CUDA_HOME", "CUDA_PATH") if environment.get(name)]
    layouts = itertools.chain(itertools.chain.from_iterable(map(_wheels, wheels)), map(_toolkit, (*homes, *toolkits)))
    first = None
    for layout in layouts:
        found = _installation(_libraries(layout.libraries), layout.includes)
        if found and found.whole:
            return found
        first = first or found
    return first


def _named(path: Path) -> Installation:
    """Return the installation of this library: its headers lie in the nearest folder above that has any."""
    if path.is_file():
        for root in path.resolve().parents[:4]:
            for layout in (*_wheels(root), _toolkit(root)):
                found = _installation([path], layout.includes)
                if found:
                    return found
    raise DeviceError(
        f"{OVERRIDE}={path}: expected the path of a libnvrtc.so with CUDA's headers (cuda_fp16.h) in the same toolkit, "
        f"found {'no headers' if path.is_file() else 'no such file'}; mend it, or unset it"
    )


def _wheels(root: Path) -> Iterator[_Layout]:
    """CUDA 13 has one folder for all its wheels, CUDA 12 one for each."""
    for folder in sorted(root.glob("cu[0-9][0-9]"), reverse=True):
        yield _Layout((folder / "lib",), (folder / "include",))
    packages = ("cuda_runtime", "cuda_cccl", "cuda_nvcc")
    yield _Layout((root / "cuda_nvrtc" / "lib",), tuple(root / package / "include" for package in packages))


def _toolkit(root: Path) -> _Layout:
    machine = platform.machine()
    targets = [root / "targets" / target for target in _TARGETS.get(machine, ())]
    libraries = (
        root / "lib64",
        *(target / "lib" for target in targets),
        root / "lib",
        root / f"lib/{machine}-linux-gnu",
    )
    return _Layout(libraries, (root / "include", *(target / "include" for target in targets)))


def _libraries(folders: Iterable[Path]) -> list[Path]:
    """Return the NVRTCs of the first folder that has one, the newest first."""
    for folder in folders:
        found = [(name[1], path) for path in folder.glob("libnvrtc.so.*") if (name := _LIBRARY.fullmatch(path.name))]
        if found:
            return [path for _, path in sorted(found, key=lambda entry: _numbers(entry[0]), reverse=True)]
    return []


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".") if number)


def _installation(libraries: Sequence[Path], folders: Iterable[Path]) -> Installation | None:
    """Join a library and headers; None where either is missing."""
    places = [place for folder in folders for place in (folder, folder / "cccl")]
    kept = [place.resolve() for place in places if any((place / header).exists() for header in (_CUDA, _CRT, _CXX))]
    if not libraries or not any((place / _CUDA).exists() for place in kept):
        return None
    whole = any((place / _CXX).exists() for place in kept)
    return Installation(libraries[0].resolve(), tuple(dict.fromkeys(kept)), whole)
