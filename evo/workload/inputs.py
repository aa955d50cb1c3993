"""Inputs of a case, drawn from a seed or read from the workload's own `.npy` files.

The same (workload, case, parameter, seed) gives the same bytes on every machine. No global random state.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np

from evo.errors import WorkloadError
from evo.records import Case, Direction, Parameter, Workload
from evo.workload.sizes import bounds, shape

Array = np.ndarray[Any, np.dtype[Any]]
_Shape = tuple[int, ...]


def draw_inputs(workload: Workload, case: Case, seed: int) -> dict[str, Array]:
    """Return what the kernel reads: name -> C-contiguous array of the declared shape and dtype (IN and INOUT).

    Raises:
        WorkloadError: a `.npy` file does not fit the parameter on this case.
    """
    readable = (Direction.IN, Direction.INOUT)
    return {p.name: _draw(workload, case, p, seed) for p in workload.parameters if p.direction in readable}


def _draw(workload: Workload, case: Case, parameter: Parameter, seed: int) -> Array:
    draw = case.draws.get(parameter.name, parameter.draw)
    wanted = shape(parameter, case)
    if draw.kind == "file":
        return from_file(workload, case, parameter)
    labels = (workload.name, case.name, parameter.name)
    rng = np.random.default_rng(np.random.SeedSequence([seed, *map(_stable, labels)]))
    # Drawn in float64 and rounded once, so that every bit of a float32 mantissa is random.
    values = KINDS[draw.kind](rng, *bounds(draw, case), wanted)
    return np.ascontiguousarray(values.astype(np.dtype(parameter.dtype)))


def _stable(label: str) -> int:
    """A number for a name that, unlike `hash`, is the same in every process."""
    return int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "little")


def _normal(rng: np.random.Generator, low: float, high: float, wanted: _Shape) -> Array:
    return rng.normal(low, high, wanted)


def _uniform(rng: np.random.Generator, low: float, high: float, wanted: _Shape) -> Array:
    return rng.uniform(low, high, wanted)


def _integers(rng: np.random.Generator, low: float, high: float, wanted: _Shape) -> Array:
    return rng.integers(int(low), int(high), wanted)


def _offsets(rng: np.random.Generator, low: float, high: float, wanted: _Shape) -> Array:
    count = int(np.prod(wanted, dtype=np.int64))
    values = np.sort(rng.integers(int(low), int(high) + 1, count))
    values[:1], values[1:][-1:] = int(low), int(high)
    return values.reshape(wanted)


def _heavy_tailed(rng: np.random.Generator, low: float, high: float, wanted: _Shape) -> Array:
    values: Array = rng.normal(size=wanted) * 10.0 ** rng.uniform(low, high, wanted)
    return values


def _one_hot(rng: np.random.Generator, low: float, high: float, wanted: _Shape) -> Array:
    width = wanted[-1]
    rows = int(np.prod(wanted[:-1], dtype=np.int64))
    values = np.full((rows, width), low)
    values[np.arange(rows), rng.integers(0, width, rows)] = high
    return values.reshape(wanted)


def _constant(rng: np.random.Generator, low: float, high: float, wanted: _Shape) -> Array:
    return np.full(wanted, low)


def _ramp(rng: np.random.Generator, low: float, high: float, wanted: _Shape) -> Array:
    count = int(np.prod(wanted, dtype=np.int64))
    return (low + np.arange(count)).reshape(wanted)


KINDS: dict[str, Callable[[np.random.Generator, float, float, _Shape], Array]] = {
    "normal": _normal,
    "uniform": _uniform,
    "integers": _integers,
    "offsets": _offsets,
    "heavy_tailed": _heavy_tailed,
    "one_hot": _one_hot,
    "constant": _constant,
    "ramp": _ramp,
}
"""Kind of a `Draw` -> function of (generator, low, high, shape). `file` is not drawn."""

INTEGRAL = frozenset({"integers", "offsets", "one_hot", "constant", "ramp", "file"})
"""Kinds that can fill an integer buffer."""


def from_file(workload: Workload, case: Case, parameter: Parameter) -> Array:
    """Return the array of a `.npy` file that a draw of kind `file` names.

    Raises:
        WorkloadError: the file is no plain array, or does not fit the parameter on this case.
    """
    name = case.draws.get(parameter.name, parameter.draw).file or ""
    wanted = shape(parameter, case)
    try:
        values = np.asarray(np.load(io.BytesIO(workload.files[name]), allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise WorkloadError(f"{workload.name}/{name}: expected a .npy array without objects, found {error}") from None
    if values.shape != wanted or values.dtype != np.dtype(parameter.dtype):
        raise WorkloadError(
            f"{workload.name}/{name}: expected {parameter.dtype} {wanted} for {parameter.name!r} of case "
            f"{case.name!r}, found {values.dtype} {values.shape}; save it with numpy.save in that shape and dtype"
        )
    return np.ascontiguousarray(values)
