"""A workload folder to review, guessed from an existing kernel's own signature.

Says what it guessed (`# REVIEW`) and never pretends to know what the kernel should compute: the reference that it
writes refuses to run until a person has written it. Nothing existing is overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evo.errors import WorkloadError, did_you_mean
from evo.kernel import header_text, lexer
from evo.kernel.expression import RESERVED
from evo.kernel.header import DEVICE_NAMES

REVIEW = "REVIEW"

TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "__half": "float16",
    "char": "int8",
    "signed char": "int8",
    "int8_t": "int8",
    "unsigned char": "uint8",
    "uint8_t": "uint8",
    "short": "int16",
    "int16_t": "int16",
    "unsigned short": "uint16",
    "uint16_t": "uint16",
    "int": "int32",
    "int32_t": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "uint32_t": "uint32",
    "long long": "int64",
    "int64_t": "int64",
    "unsigned long long": "uint64",
    "uint64_t": "uint64",
    "size_t": "uint64",
}
"""C type -> NumPy name."""
_QUALIFIERS = frozenset({"const", "volatile", "*", "__restrict__", "__restrict", "restrict", "&", "[", "]"})
_SIZES = {"small": 64, "large": 512, "odd": 61, "one": 1}
"""Guessed value of every dim in the guessed cases."""


@dataclass(frozen=True)
class Argument:
    """One parameter of the kernel's signature. `dtype` is "" where the type has no NumPy name."""

    name: str
    type: str
    dtype: str
    pointer: bool
    const: bool

    @property
    def is_dim(self) -> bool:
        """Whether it looks like a size: an integer passed by value."""
        return not self.pointer and self.dtype[:3] in ("int", "uin")


@dataclass(frozen=True)
class Scaffold:
    """What was written. `reviews` are `file:line: text` of everything that was guessed."""

    folder: Path
    reviews: tuple[str, ...]


def write(source: str, folder: Path, entry: str | None = None) -> Scaffold:
    """Write workload.yaml, reference.py and initial.cu for a kernel.

    Args:
        source: text of the kernel's file, with or without a launch header.
        folder: where to; must not exist.
        entry: which `__global__` function, where the source has several.

    Raises:
        WorkloadError: the folder exists, or no function can be picked.
        HeaderError: the source has a launch header that cannot be found out.
    """
    if folder.exists():
        raise WorkloadError(f"{folder}: expected a new folder, found one that exists; choose another name")
    name, arguments = signature(source, entry)
    files = {
        "workload.yaml": _workload_yaml(name, arguments),
        "reference.py": _reference(arguments),
        "initial.cu": with_header(source, name, _dims(arguments), _output_shape(arguments)),
    }
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return Scaffold(folder, tuple(review for name, text in files.items() for review in _reviews(name, text)))


def signature(source: str, entry: str | None = None) -> tuple[str, tuple[Argument, ...]]:
    """Return the name of a kernel's function, and the parameters that the workload has to provide.

    Raises:
        WorkloadError: no function can be picked.
        HeaderError: the source has a launch header that cannot be found out.
    """
    header = header_text.raw(source)
    function = _entry(source, header, entry)
    found = (_argument(text, index) for index, text in enumerate(function.parameters))
    own = _workspaces(header)
    return function.name, tuple(argument for argument in found if argument.name not in own)


def _reviews(name: str, text: str) -> list[str]:
    return [f"{name}:{n}: {line.strip()}" for n, line in enumerate(text.splitlines(), 1) if REVIEW in line]


def _entry(source: str, header: Mapping[str, Any], entry: str | None) -> lexer.Function:
    functions = {f.name: f for f in lexer.functions(source) if not f.template}
    if not functions:
        raise WorkloadError('kernel: expected a function extern "C" __global__ void NAME(…), found none in the source')
    if entry is None:
        launches = header.get("launches") or []
        launched = [item["kernel"] for item in launches if isinstance(item, dict) and "kernel" in item]
        entry = str(launched[0]) if launched else next(iter(functions))
        if len(functions) > 1 and not launched:
            raise WorkloadError(
                f"kernel: expected one __global__ function, found {', '.join(functions)}; say which one is the entry"
            )
    if entry not in functions:
        raise WorkloadError(
            f"kernel: expected a __global__ function of the source, found {entry!r}{did_you_mean(entry, functions)}"
        )
    return functions[entry]


def _workspaces(header: Mapping[str, Any]) -> set[str]:
    """Buffers that the header itself provides: no parameters of the workload."""
    found = header.get("workspace") or {}
    if isinstance(found, dict):
        return set(found)
    return {str(item.get("name")) for item in found if isinstance(item, dict)}


def _argument(text: str, index: int) -> Argument:
    words = text.split()
    core = [word for word in words if word not in _QUALIFIERS and not word.isdecimal()]
    # The last word is the name, unless the whole is a type (`int`, `unsigned int`): then it has none.
    unnamed = " ".join(core) in TYPES or len(core) < 2
    kind = " ".join(core if unnamed else core[:-1])
    name = f"arg{index}" if unnamed else core[-1]
    return Argument(name, kind, TYPES.get(kind, ""), "*" in words or "[" in words, "const" in words)


# --- workload.yaml ------------------------------------------------------------------------------------------------


def _dims(arguments: Sequence[Argument]) -> list[str]:
    return [a.name for a in arguments if a.is_dim and a.name not in RESERVED | DEVICE_NAMES] or ["N"]


def _shapes(arguments: Sequence[Argument]) -> dict[str, list[str]]:
    """A shape for every pointer: the classical ones of M, N, K, else all dims."""
    dims = _dims(arguments)
    pointers = [a.name for a in arguments if a.pointer]
    if {"M", "N", "K"} <= set(dims) and len(pointers) == 3:
        return dict(zip(pointers, (["M", "K"], ["K", "N"], ["M", "N"]), strict=True))
    return {name: dims[:3] for name in pointers}


def _workload_yaml(entry: str, arguments: Sequence[Argument]) -> str:
    dims, shapes = _dims(arguments), _shapes(arguments)
    elements = " + ".join(" * ".join(shape) for shape in shapes.values()) or "1"
    largest = " * ".join(dims)
    lines = [
        f'description: "What {entry} computes, in a sentence or two."  # {REVIEW}: for people and for models',
        f"entry: {entry}",
        "parameters:",
        *(line for a in arguments for line in _parameter(a, dims, shapes)),
        f'tolerance: {{terms: "1"}}  # {REVIEW}: additions behind one output element; exact: true where no rounding is',
        f'flops: "{largest}"  # {REVIEW}: useful operations of a case',
        f'bytes_moved: "4 * ({elements})"  # {REVIEW}: compulsory traffic of a case',
        "cases:",
        *(_case(name, role, dims) for name, role in _ROLES.items()),
    ]
    return "\n".join(lines) + "\n"


_ROLES = {"small": "correctness", "large": "performance", "odd": "hidden", "one": "hidden"}


def _case(name: str, role: str, dims: Sequence[str]) -> str:
    values = ", ".join(f"{dim}: {_SIZES[name]}" for dim in dims)
    note = "sizes that matter to you" if role == "performance" else "sizes, and draws that a wrong kernel would fail on"
    return f"  - {{name: {name}, role: {role}, dims: {{{values}}}}}  # {REVIEW}: {note}"


def _parameter(argument: Argument, dims: Sequence[str], shapes: dict[str, list[str]]) -> list[str]:
    dtype, doubts = argument.dtype, []
    if not dtype:
        dtype = "float32"
        doubts.append(f"the source's type is {argument.type!r}, which has no NumPy name here")
    if not argument.pointer:
        known = argument.name in dims
        if not known:
            doubts.append("the value that is passed")
        value = "" if known else ", value: 1"
        entry = f"  - {{name: {argument.name}, dtype: {dtype}, direction: scalar{value}}}"
        return [entry + _doubt(doubts)]
    shape = ", ".join(shapes[argument.name])
    direction = "in" if argument.const else "out"
    doubts.append("shape" if argument.const else "shape; inout if the kernel reads it first")
    integer = dtype[:3] in ("int", "uin")
    draw = ", draw: {kind: integers, low: 0, high: 100}" if integer and argument.const else ""
    entry = f"  - {{name: {argument.name}, dtype: {dtype}, direction: {direction}, shape: [{shape}]{draw}}}"
    return [entry + _doubt(doubts)]


def _doubt(doubts: Sequence[str]) -> str:
    return f"  # {REVIEW}: {'; '.join(doubts)}" if doubts else ""


# --- reference.py and initial.cu ----------------------------------------------------------------------------------


def _reference(arguments: Sequence[Argument]) -> str:
    outputs = [a for a in arguments if a.pointer and not a.const]
    shapes = _shapes(arguments)
    wanted = "; ".join(f"{a.name!r}: array of shape ({', '.join(shapes[a.name])})" for a in outputs)
    inputs = ", ".join(repr(a.name) for a in arguments if a.pointer and a.const) or "none"
    return f'''"""What the kernel must compute, in NumPy and float64. {REVIEW}: this is yours to write."""

import numpy as np


def reference(inputs, dims):
    """Return the right outputs.

    inputs: name -> array ({inputs}), and scalars by name; convert with .astype(np.float64) first.
    dims: name -> size.
    Returns: name -> float64 array (integers for integer outputs), or a pair (array, scale), where scale is the sum of
    the magnitudes behind each element, if sums are long.
    """
    raise NotImplementedError("write reference(inputs, dims): return {{{_quoted(wanted)}}}")
'''


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _output_shape(arguments: Sequence[Argument]) -> Sequence[str]:
    shapes = _shapes(arguments)
    return next((shapes[a.name] for a in arguments if a.pointer and not a.const), _dims(arguments))


def with_header(source: str, entry: str, dims: Sequence[str], output: Sequence[str]) -> str:
    """Return a kernel with a launch header: its own, or a guess of one thread for each element of an output.

    Args:
        source: of the kernel.
        entry: its function.
        dims: of the workload.
        output: the shape of the output that the grid covers; all dims where it is empty.
    """
    if header_text.locate(source) is not None:
        return source
    output = output or dims
    two = len(output) > 1 and re.search(r"threadIdx\s*\.\s*y", source)
    block = '"16, 16"' if two else "256"
    product = " * ".join(extent if extent.isidentifier() else f"({extent})" for extent in output)
    grid = f'"ceildiv({output[1]}, 16), ceildiv({output[0]}, 16)"' if two else f'"ceildiv({product}, 256)"'
    plain = [f.name for f in lexer.functions(source) if not f.template]
    if len(plain) == 1:
        keys = f"block: {block}\ngrid: {grid}"
    else:
        keys = f"launches:\n  - {{kernel: {entry}, block: {block}, grid: {grid}}}"
    return f"/* launch\n# {REVIEW}: block and grid were guessed\n{keys}\n*/\n{source}"
