"""Is an output right? NumPy comparison against the float64 reference, with an error budget per element.

Only arrays and numbers enter: no files, no processes, no names of cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.records import Tolerance

WORST_ERROR = 1e9
"""Errors are reported up to here (in units of the tolerance): a larger one, or a NaN, says nothing more."""

PIECE = 1 << 15
"""Elements that are compared at a time."""

Array = NDArray[Any]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Verdict:
    """What comparing one output says.

    Attributes:
        ok: every element is within its budget.
        error: the largest error in units of its element's budget; 1.0 is the limit, `WORST_ERROR` the most.
        message: for a person and a model; "" when ok.
        count: how many elements are wrong.
        worst: flat index of the element with the largest error.
    """

    ok: bool
    error: float
    message: str = ""
    count: int = 0
    worst: int = 0


def compare_output(
    got: Array,
    expected: Array,
    scale: Array | None,
    tolerance: Tolerance,
    dtype: str,
    terms: int,
) -> Verdict:
    """Compare one output element by element; see `Tolerance` for the rule.

    An element may also be off by half the smallest subnormal of its dtype, which rounding alone can cost. Where the
    exact result overflows the dtype, the infinity of its sign is right.

    Args:
        got: what the kernel wrote, of `dtype`.
        expected: the reference's result, same shape; float64, or integers.
        scale: error scale in the output's units, same shape; None means ``|expected|``.
        tolerance: of this output.
        dtype: NumPy name of the output's type.
        terms: additions behind one element, at least 1.
    """
    if got.shape != expected.shape:
        raise ValueError(f"expected an output of shape {expected.shape}, found {got.shape}")
    if np.dtype(dtype).kind != "f" or tolerance.exact:
        want = expected.astype(dtype)
        if (got == want).all():
            return Verdict(True, 0.0)
        errors, allowed = _exact_errors(got, want), None
    else:
        magnitude = expected if scale is None else scale
        budget = _Budget.of(tolerance, dtype, terms)
        right = _if_right(got, expected, magnitude, budget)
        if right is not None:
            return right
        allowed = budget.allowed(magnitude)
        errors = _errors(got, expected, allowed, dtype)
    wrong = errors > 1.0
    count = int(np.count_nonzero(wrong))
    worst = int(np.argmax(errors)) if errors.size else 0
    error = float(errors.flat[worst]) if errors.size else 0.0
    if not count:
        return Verdict(True, error, worst=worst)
    return Verdict(False, error, _message(got, expected, wrong, allowed), count, worst)


def unit_roundoff(dtype: str) -> float:
    """Return half the distance from 1 to the next larger number of a floating dtype: 2**-24 for float32."""
    return float(np.finfo(dtype).eps) / 2


@dataclass(frozen=True)
class _Budget:
    """What an element's error may be: `factor * |magnitude| + slack`."""

    factor: float
    slack: float

    @classmethod
    def of(cls, tolerance: Tolerance, dtype: str, terms: int) -> _Budget:
        factor = tolerance.budget * math.sqrt(max(terms, 1)) * unit_roundoff(dtype)
        return cls(factor, tolerance.atol + float(np.finfo(dtype).smallest_subnormal) / 2)

    def allowed(self, magnitude: Array) -> NDArray[np.float64]:
        return self.factor * np.abs(magnitude).astype(np.float64) + self.slack


def _if_right(got: Array, expected: Array, magnitude: Array, budget: _Budget) -> Verdict | None:
    """Return the verdict on an output whose elements are all finite and within budget; None for any other.

    Most outputs are right, and all are compared many times: in pieces that stay in the cache this takes a tenth of the
    time that `_errors` takes.
    """
    flat, want, size = np.ravel(got), np.ravel(expected), np.ravel(magnitude)
    error, worst = 0.0, 0
    for start in range(0, flat.size, PIECE):
        piece = slice(start, start + PIECE)
        with np.errstate(all="ignore"):
            errors = np.abs(flat[piece] - want[piece])
            errors /= budget.allowed(size[piece])
        largest = int(np.argmax(errors))
        if not errors[largest] <= 1.0:  # also where it is no number
            return None
        if errors[largest] > error:
            error, worst = float(errors[largest]), start + largest
    return Verdict(True, error, worst=worst)


def _errors(got: Array, expected: Array, allowed: NDArray[np.float64], dtype: str) -> NDArray[np.float64]:
    """Return each element's error in units of its budget; NaN and infinity are right only where expected."""
    want = expected.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
        errors = np.abs(got.astype(np.float64) - want) / allowed
        same = (np.isnan(got) & np.isnan(want)) | (np.isinf(rounded) & (got == rounded)) | (got == want)
        infinite = np.isinf(got) | np.isinf(want)
    errors[np.isnan(errors) | infinite] = WORST_ERROR
    errors[same] = 0.0
    return np.minimum(errors, WORST_ERROR)


def _exact_errors(got: Array, want: Array) -> NDArray[np.float64]:
    same = got == want
    if want.dtype.kind == "f":
        same |= np.isnan(got) & np.isnan(want)
    return np.where(same, 0.0, WORST_ERROR)


def never_written(got: Array) -> Mask:
    """Return which elements still hold the poison that a device puts into outputs before a launch.

    Poison repeats one 16-bit word from 0xff81 to 0xffff: NaN in every floating format, no plausible integer. An integer
    -1 is not taken for it; in types of one byte it cannot be told.
    """
    if got.dtype.itemsize < 2 or got.dtype.itemsize % 2:
        return np.zeros(got.shape, dtype=np.bool_)
    words = np.ascontiguousarray(got).reshape(-1, 1).view(np.uint16)
    first = words[:, 0]
    last = 0xFFFF if got.dtype.kind == "f" else 0xFFFE
    same: Mask = (words == first[:, None]).all(axis=1) & (first >= 0xFF81) & (first <= last)
    return same.reshape(got.shape)


def _message(got: Array, expected: Array, wrong: Mask, allowed: NDArray[np.float64] | None) -> str:
    count, total = int(np.count_nonzero(wrong)), wrong.size
    untouched = wrong & never_written(got)
    unwritten = int(np.count_nonzero(untouched))
    if unwritten == total:
        return f"No element was ever written: all {total} still hold the pattern from before the launch."
    flat = int(np.argmax(wrong))
    found = f"got {_number(got.flat[flat])}, expected {_number(expected.flat[flat])}"
    slack = "" if allowed is None else f" (allowed error {allowed.flat[flat]:.3g})"
    lines = [f"{count} of {total} elements are wrong; the first is {_index(wrong)}: {found}{slack}."]
    if unwritten:
        lines.append(f"{unwritten} of them were never written, the first of these is {_index(untouched)}.")
    strange = int(np.count_nonzero(wrong & ~untouched & np.isnan(got))) if got.dtype.kind == "f" else 0
    if strange:
        lines.append(f"{strange} of them are NaN.")
    return " ".join(lines)


def _index(mask: Mask) -> str:
    """Return the index of the first element that is set, as `[i, j]`."""
    where = np.unravel_index(int(np.argmax(mask)), mask.shape)
    return f"[{', '.join(str(int(i)) for i in where)}]"


def _number(value: np.generic) -> str:
    return f"{float(value):.9g}" if isinstance(value, np.floating) else str(value)
