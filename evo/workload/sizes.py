"""What a case works out to: shapes, scalars, operations and bytes, all integer expressions over its dims.

Pure functions of records; files and random numbers stay outside.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from evo.kernel.expression import Expression
from evo.records import Case, Direction, Draw, Parameter, Scalar, Workload


@functools.lru_cache(maxsize=4096)
def _parsed(text: str, where: str) -> Expression:
    return Expression.parse(text, where)


def evaluate(text: str, case: Case) -> int:
    """Return an expression's value on a case's dims; raises `ExpressionError` naming the case."""
    return _parsed(text, f"case {case.name!r}").evaluate(case.dims)


def shape(parameter: Parameter, case: Case) -> tuple[int, ...]:
    """Return a buffer's shape, row-major; () for a scalar."""
    return tuple(evaluate(text, case) for text in parameter.shape)


def bounds(draw: Draw, case: Case) -> tuple[float, float]:
    """Return `low` and `high` of a draw as numbers; raises `ExpressionError` naming the case."""
    low, high = (float(evaluate(of, case)) if isinstance(of, str) else of for of in (draw.low, draw.high))
    return low, high


def nbytes(parameter: Parameter, case: Case) -> int:
    """Return a buffer's exact size in bytes."""
    return math.prod(shape(parameter, case)) * np.dtype(parameter.dtype).itemsize


def scalars(workload: Workload, case: Case) -> tuple[Scalar, ...]:
    """Return the scalar arguments in the signature's order, each representable in its dtype."""
    return tuple(_scalar(p, case) for p in workload.parameters if p.direction is Direction.SCALAR)


def _scalar(parameter: Parameter, case: Case) -> Scalar:
    text = parameter.name if parameter.value is None else parameter.value
    kind = np.dtype(parameter.dtype)
    if kind.kind != "f":
        return Scalar(parameter.name, parameter.dtype, evaluate(text, case))
    try:
        value = float(text)
    except ValueError:
        value = float(evaluate(text, case))
    return Scalar(parameter.name, parameter.dtype, float(kind.type(value)))


def flops(workload: Workload, case: Case) -> int:
    """Return the useful operations of a case."""
    return evaluate(workload.flops, case)


def bytes_moved(workload: Workload, case: Case) -> int:
    """Return the compulsory traffic of a case in bytes."""
    return evaluate(workload.bytes_moved, case)


def terms(workload: Workload, case: Case, output: str) -> int:
    """Return how many additions stand behind one element of an output (for its error budget)."""
    tolerance = workload.tolerance.get(output, workload.tolerance[""])
    return max(1, evaluate(tolerance.terms, case))
