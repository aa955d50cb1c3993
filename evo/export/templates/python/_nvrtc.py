"""NVRTC through ctypes: CUDA source in, machine code out, compiled as the search compiled it."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ._installation import Installation, find

_FOLDER = Path(__file__).parent
_SUCCESS, _COMPILATION = 0, 6
_SLIM = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES=1"
_LARGE_INCLUDES = re.compile(
    r"include\s*[<\"](cooperative_groups|algorithm|array|functional|initializer_list|limits|tuple|type_traits|utility)\b"
)
_MISSING = (
    "no CUDA compiler: pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl, or set "
    "CUDA_HOME to the folder of a CUDA toolkit, or KERNEL_EVO_NVRTC to the path of a libnvrtc.so"
)


class CompileError(RuntimeError):
    """NVRTC is missing, or refuses the source; the message has its log."""


@dataclass(frozen=True)
class Program:
    """Machine code, and kernel -> symbol in it."""

    image: bytes
    symbols: Mapping[str, str]


def compile(
    source: str, kernels: Sequence[str], arch: str, defines: Mapping[str, int], options: Sequence[str]
) -> Program:
    """Compile a source for an architecture.

    Raises:
        CompileError: see there.
    """
    installation = find()
    if installation is None:
        raise CompileError(_MISSING)
    library = ctypes.CDLL(str(installation.library))
    given = _options(arch, defines, options, installation)
    code, log, program = _attempt(library, source, kernels, [*given, _SLIM], _headers(_FOLDER / "include"))
    if code == _COMPILATION and _LARGE_INCLUDES.search(source):
        whole = {**_headers(_FOLDER / "include"), **_headers(_FOLDER / "include" / "whole")}
        code, log, program = _attempt(library, source, kernels, given, whole)
    if program is None:
        raise CompileError(f"best.cu does not compile for {arch} with {installation.library}: {log}")
    return program


def _options(arch: str, defines: Mapping[str, int], options: Sequence[str], installation: Installation) -> list[str]:
    standard = () if any(option.startswith("--std") for option in options) else ("--std=c++17",)
    return [
        f"--gpu-architecture={arch}",
        *standard,
        *(f"--include-path={path}" for path in installation.includes),
        *(f"-D{name}={value}" for name, value in sorted(defines.items())),
        *options,
    ]


def _headers(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()} if folder.is_dir() else {}


def _attempt(
    library: ctypes.CDLL, source: str, kernels: Sequence[str], options: Sequence[str], headers: Mapping[str, str]
) -> tuple[int, str, Program | None]:
    program = ctypes.c_void_p()
    names = _texts(list(headers))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    code = library.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"best.cu", len(headers), _texts(list(headers.values())), names
    )
    if code != _SUCCESS:
        return code, library.nvrtcGetErrorString(code).decode(), None
    try:
        for kernel in kernels:
            library.nvrtcAddNameExpression(program, kernel.encode())
        code = library.nvrtcCompileProgram(program, len(options), _texts(options))
        if code != _SUCCESS:
            log = _bytes(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            return code, f"{library.nvrtcGetErrorString(code).decode()}\n{log}", None
        symbols = {kernel: _symbol(library, program, kernel) for kernel in kernels}
        return code, "", Program(_bytes(library, program, "CUBIN"), symbols)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _texts(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def _bytes(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw


def _symbol(library: ctypes.CDLL, program: ctypes.c_void_p, kernel: str) -> str:
    name = ctypes.c_char_p()
    known = library.nvrtcGetLoweredName(program, kernel.encode(), ctypes.byref(name)) == _SUCCESS
    return name.value.decode() if known and name.value else kernel
