"""The signature of a kernel as people write it: C with shapes, or YAML. It becomes entries of `parameters:`.

    gemm(const float* A[M, K], const float* B[K, N], float* C[M, N], int M, int N, int K)

`const` makes an input, none an output; the word `inout` before a parameter makes it both. A value by name is a dim, or
has its value behind `=`. Nothing is guessed: a pointer without a shape is one whose shape is still missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evo import marked
from evo.errors import WorkloadError
from evo.workload import scaffold
from evo.workload.scaffold import Argument

_HEAD = re.compile(r'\s*(?:extern\s+"C"\s+)?(?:__global__\s+)?(?:void\s+)?([A-Za-z_]\w*)\s*\(', re.DOTALL)
_PARAMETER = re.compile(
    r"(?P<type>[A-Za-z_][\w\s]*?)\s*(?P<stars>[*&]*)\s*(?P<name>\b[A-Za-z_]\w*)\s*(?P<shape>(?:\[[^\]]*\]\s*)*)"
    r"(?:=\s*(?P<value>.+))?"
)
_RESTRICT = re.compile(r"\b(?:__restrict__|__restrict|restrict)\b")
_WHERE = "signature"


@dataclass(frozen=True)
class Signature:
    """A kernel's function and its parameters, as `parameters:` of workload.yaml lists them.

    Attributes:
        entry: name of the function; "" where it is not known.
        parameters: name, dtype, direction and so on; a buffer whose shape is unknown lacks the key.
    """

    entry: str
    parameters: tuple[dict[str, Any], ...]

    @property
    def complete(self) -> bool:
        """Whether every buffer has a shape, and every input of integers a range, so that nothing needs to be asked."""
        return all(_complete(p) for p in self.parameters)

    def misfit(self, parameters: list[dict[str, Any]]) -> str:
        """Say how other parameters differ from these in number, name, dtype or direction; "" where not at all."""
        ours, theirs = [_brief(p) for p in self.parameters], [_brief(p) for p in parameters]
        if len(ours) != len(theirs):
            return f"expected the {len(ours)} parameters {', '.join(ours)}; found {len(theirs)}: {', '.join(theirs)}"
        different = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
        return "; ".join(f"expected {a}, found {b}" for a, b in different)


def read(text: str) -> Signature:
    """Read a signature.

    Raises:
        WorkloadError: expected, found.
    """
    head = _HEAD.match(text)
    return _c(head[1], text[head.end() :]) if head else _yaml(text)


def of_kernel(source: str, entry: str | None = None) -> Signature:
    """Return what a kernel's own text says: names, dtypes and directions, no shapes.

    Raises:
        WorkloadError: there is no single `__global__` function, or a type has no NumPy name.
    """
    name, arguments = scaffold.signature(source, entry)
    return Signature(name, tuple(_of_argument(argument) for argument in arguments))


def _complete(parameter: dict[str, Any]) -> bool:
    if parameter["direction"] == "scalar":
        return True
    ranged = parameter["direction"] == "out" or str(parameter["dtype"])[:1] not in "iu" or "draw" in parameter
    return "shape" in parameter and ranged


def _brief(parameter: dict[str, Any]) -> str:
    way = str(parameter.get("direction"))
    way = "out" if way == "inout" else way  # a kernel's text does not say whether it reads what it writes
    return f"{parameter.get('name')} ({parameter.get('dtype')}, {way})"


def _of_argument(argument: Argument) -> dict[str, Any]:
    if not argument.dtype:
        raise WorkloadError(
            f"kernel: the type {argument.type!r} of {argument.name!r} has no NumPy name; give --signature"
        )
    direction = "scalar" if not argument.pointer else "in" if argument.const else "out"
    return {"name": argument.name, "dtype": argument.dtype, "direction": direction}


# --- C ------------------------------------------------------------------------------------------------------------


def _c(entry: str, rest: str) -> Signature:
    found = []
    for part in _parts(rest):
        found.append(_c_parameter(part))
    if not found:
        raise WorkloadError(f"{_WHERE}: expected parameters between the parentheses of {entry}, found none")
    return Signature(entry, tuple(found))


def _parts(rest: str) -> Iterator[str]:
    """Yield what stands between commas that are in no bracket, until the parenthesis closes."""
    depth, part = 0, ""
    for character in rest:
        depth += (character in "[(") - (character in "])")
        if depth < 0 or (depth == 0 and character == ","):
            if part.strip():
                yield part.strip()
            part = ""
            if depth < 0:
                return
        else:
            part += character
    raise WorkloadError(f"{_WHERE}: expected a closing parenthesis, found the end of {rest.strip()[-40:]!r}")


def _c_parameter(text: str) -> dict[str, Any]:
    match = _PARAMETER.fullmatch(_RESTRICT.sub(" ", text).strip())
    if match is None:
        raise WorkloadError(f"{_WHERE}: expected e.g. 'const float* x[M, N]' or 'int M', found {text!r}")
    words = match["type"].split()
    ways = [word for word in words if word in ("in", "out", "inout")]
    kind = " ".join(word for word in words if word not in ("const", "volatile", *ways))
    dtype = scaffold.TYPES.get(kind)
    if dtype is None:
        raise WorkloadError(f"{_WHERE}: expected a type out of {', '.join(scaffold.TYPES)}, found {kind!r} in {text!r}")
    extents = [e.strip() for group in re.findall(r"\[([^\]]*)\]", match["shape"]) for e in group.split(",")]
    found: dict[str, Any] = {"name": match["name"], "dtype": dtype, "direction": "scalar"}
    if match["stars"] or match["shape"]:
        found["direction"] = ways[0] if ways else "in" if "const" in words else "out"
        if any(extents):
            found["shape"] = [e for e in extents if e]
    elif match["value"]:
        found["value"] = match["value"].strip()
    return found


# --- YAML ---------------------------------------------------------------------------------------------------------


def _yaml(text: str) -> Signature:
    root = marked.load(text, marked.Origin(_WHERE, WorkloadError))
    entry = ""
    if isinstance(root.value, dict):
        keys = root.mapping(("entry", "parameters"), required=("parameters",))
        entry = keys["entry"].text() if "entry" in keys else ""
        root = keys["parameters"]
    for item in root.sequence():
        item.mapping(required=("name", "dtype", "direction"))
    return Signature(entry, tuple(root.plain()))
