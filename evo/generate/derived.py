"""What a workload's shapes say of its work and its rounding, where nobody says it: estimates, marked as such. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evo.kernel.expression import Expression

MORE_TERMS = 3
"""Added to the number of terms that follows from the shapes: a few roundings beside the sum."""


def _extents(parameters: Sequence[Mapping[str, Any]], *ways: str) -> list[list[str]]:
    found = [p.get("shape", []) for p in parameters if p.get("direction") in ways]
    return [[str(e) for e in (shape if isinstance(shape, list) else [shape])] for shape in found]


def _names(shapes: Sequence[Sequence[str]]) -> list[str]:
    texts = (extent for shape in shapes for extent in shape)
    return list(dict.fromkeys(name for text in texts for name in sorted(Expression.parse(text).names)))


def terms(parameters: Sequence[Mapping[str, Any]]) -> str:
    """Return how many terms an output's element may have: all that inputs have beyond the outputs' dims."""
    kept = set(_names(_extents(parameters, "out", "inout")))
    summed = [name for name in _names(_extents(parameters, "in", "inout")) if name not in kept]
    return " + ".join([" * ".join(summed)] * bool(summed) + [str(MORE_TERMS)])


def flops(parameters: Sequence[Mapping[str, Any]]) -> str:
    """Return a multiply-add for every combination of the dims: exact for products of matrices and convolutions."""
    return " * ".join(["2", *_names(_extents(parameters, "in", "out", "inout"))])


def bytes_moved(parameters: Sequence[Mapping[str, Any]]) -> str:
    """Return what it takes to read every input once and write every output once."""
    sizes = []
    for parameter in parameters:
        way, shape = parameter.get("direction"), _extents([parameter], "in", "out", "inout")
        width = int(re.sub(r"\D", "", str(parameter.get("dtype"))) or 8) // 8 * (2 if way == "inout" else 1)
        sizes += [" * ".join([str(width), *(f"({e})" if not e.isidentifier() else e for e in of)]) for of in shape]
    return " + ".join(sizes) or "1"
