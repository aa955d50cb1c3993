"""How workload.yaml says what an input holds: `draw: {kind: …, low: …, high: …}`, read strictly.

Bounds are numbers, or expressions over the dims, which every case decides anew. What is drawn is `inputs`' affair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from evo.errors import ExpressionError, WorkloadError
from evo.kernel.expression import Expression
from evo.marked import Node
from evo.records import Case, Draw, Parameter
from evo.workload import inputs
from evo.workload.sizes import bounds

LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Names of cases and files."""

_NEEDS_LOW = frozenset({"integers", "offsets", "constant", "ramp"})
_NEEDS_HIGH = frozenset({"integers", "offsets"})
_ORDERED = frozenset({"uniform", "integers", "heavy_tailed"})


def read(node: Node, dtype: str) -> Draw:
    """Read one draw for a buffer of this dtype.

    Raises:
        WorkloadError: file, line, key path, expected, found.
    """
    keys = node.mapping(("kind", "low", "high", "file"), required=("kind",))
    kind = keys["kind"].word((*inputs.KINDS, "file"), "a kind out of")
    if np.dtype(dtype).kind != "f" and kind not in inputs.INTEGRAL:
        raise keys["kind"].fail(f"a kind that gives integers ({', '.join(sorted(inputs.INTEGRAL))})")
    if kind == "file":
        return Draw(kind, file=_file_name(node, keys))
    if "file" in keys:
        raise keys["file"].fail("no file for this kind", fix="use 'kind: file'")
    if kind in _NEEDS_LOW and "low" not in keys:
        raise node.fail(f"a key 'low' for kind {kind}", "none", "add 'low: 0'")
    if kind in _NEEDS_HIGH and "high" not in keys:
        raise node.fail(f"a key 'high' for kind {kind}", "none", "add 'high: 256' (exclusive for integers)")
    low = _bound(keys["low"]) if "low" in keys else Draw.low
    high = _bound(keys["high"]) if "high" in keys else Draw.high
    draw = Draw(kind, low, high)
    if not isinstance(low, str) and not isinstance(high, str):
        _check_bounds(node, dtype, draw, low, high)
    return draw


def check(node: Node, parameter: Parameter, case: Case) -> None:
    """Check the bounds that only a case decides.

    Raises:
        WorkloadError: they are not in order, or do not fit the parameter's dtype.
        ExpressionError: they do not evaluate.
    """
    draw = case.draws.get(parameter.name, parameter.draw)
    if isinstance(draw.low, str) or isinstance(draw.high, str):
        low, high = bounds(draw, case)
        try:
            _check_bounds(node, parameter.dtype, draw, low, high)
        except WorkloadError as error:
            raise WorkloadError(f"{error}, in case {case.name!r}") from None


def _bound(node: Node) -> float | str:
    if not isinstance(node.value, str):
        return node.number("a number, or an expression over the dims")
    try:
        return Expression.parse(node.value, node.where).text
    except ExpressionError as error:
        raise WorkloadError(str(error)) from None


def _check_bounds(node: Node, dtype: str, draw: Draw, low: float, high: float) -> None:
    if (draw.kind in _ORDERED and low >= high) or (draw.kind == "offsets" and low > high):
        raise node.fail("low below high", f"low {low:g} and high {high:g}")
    if draw.kind in _NEEDS_LOW and np.dtype(dtype).kind != "f":
        last = {"integers": high - 1, "offsets": high}.get(draw.kind, low)
        _check_range(node, dtype, low, last)


def _check_range(node: Node, dtype: str, low: float, high: float) -> None:
    limits = np.iinfo(dtype)
    if not (limits.min <= low <= high <= limits.max and low.is_integer() and high.is_integer()):
        raise node.fail(f"whole numbers that fit {dtype}", f"{low:g} to {high:g}")


def _file_name(node: Node, keys: Mapping[str, Node]) -> str:
    if "file" not in keys:
        raise node.fail("a key 'file'", "none", "add 'file: NAME.npy'")
    name = keys["file"].text("the name of a .npy file")
    if not LABEL.fullmatch(name) or not name.endswith(".npy"):
        raise keys["file"].fail("the name of a .npy file beside workload.yaml, without a path")
    return name
