"""Hidden cases that every workload gets, whatever somebody or a model wrote: sizes and values that find wrong kernels.

Sizes: every dim 1, each dim 1 alone, primes, one more and one less than a tile, one dim long. Values: one-hot rows (a
result is one input, mantissa and all), ones (a sum that a short accumulator cannot hold), a heavy tail, and the ends of
every range. Pure: parameters, dims and cases in, cases out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evo.errors import ExpressionError
from evo.records import Case, Direction, Draw, Parameter, Role
from evo.workload import sizes

Dims = dict[str, int]

_TILES = (64, 32, 16, 8, 4)
"""Widths of tiles that kernels have; the widest is taken whose cases are cheap."""
_PRIMES = (61, 67, 59, 71, 53, 73, 47, 79, 43)
_SMALL = (5, 3, 7, 2, 5, 3, 7, 2)
_LONG = 1031
"""A prime beyond what a block of 1,024 threads holds."""
_MOST_WORK = 2e7
"""Operations or bytes of a hidden case: a CPU takes milliseconds for them, under a checker less than a second."""
TAIL = 8
"""A size that is a multiple of this may be one of every tile: only others are sure to reach a tile's tail."""


@dataclass(frozen=True)
class Range:
    """The values that a dim may have.

    Attributes:
        name: of the dim.
        least: smallest.
        most: largest, or None.
        multiple_of: every value is.
        why: words of the description that say so.
    """

    name: str
    least: int = 1
    most: int | None = None
    multiple_of: int = 1
    why: str = ""

    def nearest(self, value: int) -> int:
        """Return the permitted value at or above `value`, or the largest that is permitted."""
        step = self.multiple_of
        found = -(-max(value, self.least) // step) * step
        if self.most is None or found <= self.most:
            return found
        return self.most // step * step

    @property
    def reaches_tail(self) -> bool:
        """Whether some permitted value is no multiple of a tile."""
        small = self.most is not None and self.most <= TAIL
        return small or (self.multiple_of % TAIL != 0 and self.nearest(self.least + 1) != self.nearest(self.least))


@dataclass(frozen=True)
class Shape:
    """What decides whether a case is possible and how much it costs.

    Attributes:
        parameters: of the workload.
        flops: expression over the dims.
        ranges: of every dim.
    """

    parameters: tuple[Parameter, ...]
    flops: str
    ranges: tuple[Range, ...]

    def fits(self, dims: Mapping[str, int]) -> bool:
        """Whether every buffer has a size, and the case is cheap."""
        case = Case("", Role.HIDDEN, dims)
        try:
            extents = [extent for p in self.parameters for extent in sizes.shape(p, case)]
            total = sum(sizes.nbytes(p, case) for p in self.parameters)
            return min(extents, default=1) >= 1 and max(total, sizes.evaluate(self.flops, case)) <= _MOST_WORK
        except ExpressionError:
            return False


def completed(given: Sequence[Case], shape: Shape, *, values: bool = True) -> tuple[Case, ...]:
    """Return the given cases with those that were lacking.

    Args:
        given: of any role.
        shape: of the workload.
        values: whether hostile values are wanted too; not where a person has chosen their own.
    """
    # What is one value after the other of a list is not known for other sizes: such a case stays as it is.
    free = not any(draw.kind == "file" for p in shape.parameters for draw in (p.draw,))
    sized = list(_sizes(shape)) if free else []
    made = [*given]
    if sized and not any(case.role is Role.CORRECTNESS for case in made):
        made = [Case("ragged", Role.CORRECTNESS, dims) for name, dims in sized if name == "primes"] + made
    known = {tuple(sorted(case.dims.items())) for case in made if not case.draws and case.role is not Role.PERFORMANCE}
    names = {case.name for case in made}
    for name, dims in sized:
        key = tuple(sorted(dims.items()))
        if key not in known:
            known.add(key)
            made.append(Case(_unused(name, names), Role.HIDDEN, dims))
    if sized and values:
        by_name = dict(sized)
        at = by_name.get("primes") or sized[-1][1]
        made += [Case(_unused(n, names), Role.HIDDEN, at, draws) for n, draws in _values(shape.parameters)]
    return tuple(made)


def tailless(cases: Sequence[Case], ranges: Sequence[Range]) -> tuple[str, ...]:
    """Return the dims that every correctness and hidden case fills tiles with: a missing guard would pass."""
    judged = [case for case in cases if case.role is not Role.PERFORMANCE]
    found = []
    for of in ranges:
        seen = {case.dims[of.name] for case in judged}
        if of.reaches_tail and all(value % TAIL == 0 for value in seen):
            found.append(of.name)
    return tuple(found)


def derived_ranges(cases: Sequence[Case]) -> tuple[Range, ...]:
    """Return what a person's own cases say of the dims: one with the same value in several of them is fixed."""
    names = sorted({name for case in cases for name in case.dims})
    seen = {name: {case.dims[name] for case in cases if name in case.dims} for name in names}
    fixed = {name: next(iter(seen[name])) for name in names if len(seen[name]) == 1 and len(cases) > 1}
    return tuple(Range(name, fixed.get(name, 1), fixed.get(name)) for name in names)


# --- sizes --------------------------------------------------------------------------------------------------------


def _sizes(shape: Shape) -> Iterator[tuple[str, Dims]]:
    """Yield names and dims, each possible and cheap; of two with the same dims the first."""
    seen: set[tuple[tuple[str, int], ...]] = set()
    for name, dims in _wanted(shape):
        key = tuple(sorted(dims.items()))
        if shape.fits(dims) and key not in seen:
            seen.add(key)
            yield name, dims


def _wanted(shape: Shape) -> Iterator[tuple[str, Dims]]:
    ranges, tile = shape.ranges, _tile(shape)
    scale = tile / _TILES[0]
    primes = {r.name: r.nearest(prime) for r, prime in zip(ranges, _primes(len(ranges), scale), strict=True)}
    small = {r.name: r.nearest(_SMALL[i % len(_SMALL)]) for i, r in enumerate(ranges)}
    yield "primes", primes
    yield "one", {r.name: r.nearest(1) for r in ranges}
    yield "beyond_tile", {r.name: r.nearest(tile + 1) for r in ranges}
    yield "below_tile", {r.name: r.nearest(tile - 1) for r in ranges}
    yield "small", small
    for of in ranges:
        yield f"one_{of.name}", {**primes, of.name: of.nearest(1)}
    for of in ranges:
        yield f"long_{of.name}", {**small, of.name: of.nearest(_LONG)}


def _tile(shape: Shape) -> int:
    fitting = (tile for tile in _TILES if shape.fits({r.name: r.nearest(tile * 4 // 3) for r in shape.ranges}))
    return next(fitting, _TILES[-1])


def _primes(count: int, scale: float) -> list[int]:
    """Return odd primes near the scaled `_PRIMES`, no two alike: a kernel that takes one dim for another shows."""
    found: list[int] = []
    for index in range(count):
        near = _PRIMES[index % len(_PRIMES)] * scale
        left = (value for value in range(3, _LONG) if value not in found and _is_prime(value))
        found.append(min((abs(value - near), value) for value in left)[1])
    return found


def _is_prime(value: int) -> bool:
    return all(value % divisor for divisor in range(2, math.isqrt(value) + 1))


def _unused(name: str, names: set[str]) -> str:
    number, found = 2, name
    while found in names:
        found, number = f"{name}_{number}", number + 1
    names.add(found)
    return found


# --- values -------------------------------------------------------------------------------------------------------


def _values(parameters: Sequence[Parameter]) -> Iterator[tuple[str, dict[str, Draw]]]:
    """Yield names and draws: one-hot rows for one input after the other, the rest for all inputs that may have them."""
    inputs = [p for p in parameters if p.direction in (Direction.IN, Direction.INOUT)]
    anything = [p for p in inputs if p.draw.kind == "normal" and np.dtype(p.dtype).kind == "f"]
    for parameter in anything if len(anything) > 1 else ():
        yield f"one_hot_{parameter.name}", {parameter.name: Draw("one_hot", 0.0, 1.0)}
    if anything:
        yield "ones", {p.name: Draw("constant", 1.0) for p in anything}
        yield "heavy_tailed", {p.name: Draw("heavy_tailed", -3.0, 3.0) for p in anything}
    ranged = [p for p in inputs if p.draw.kind in ("uniform", "integers")]
    if ranged:
        yield "lowest", {p.name: Draw("constant", p.draw.low) for p in ranged}
    whole = [p for p in inputs if p.draw.kind == "integers"]
    if whole:
        yield "highest", {p.name: Draw("constant", _last(p.draw)) for p in whole}


def _last(draw: Draw) -> float | str:
    return f"{draw.high} - 1" if isinstance(draw.high, str) else draw.high - 1


def without(cases: Sequence[Case], names: Sequence[str]) -> tuple[Case, ...]:
    """Return the cases but those of these names."""
    return tuple(case for case in cases if case.name not in names)
