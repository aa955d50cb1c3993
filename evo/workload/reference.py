"""What a workload's own `reference.py` says the outputs are, checked before anyone believes it.

A reference that its user wrote runs with the user's rights in this process, as any script they would start themselves:
only trust workload folders as you would trust a script. One that a model wrote (`Workload.generated`) runs in the
sandbox, always.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from evo.errors import WorkloadError, did_you_mean
from evo.records import GENERATED_REFERENCE, Case, Parameter, Role, Workload
from evo.workload import calling, confined
from evo.workload.calling import Failed
from evo.workload.confined import Walls
from evo.workload.inputs import Array
from evo.workload.sizes import nbytes, scalars, shape

_FILE = calling.FILE
_LEAST_MEMORY_BYTES = 1 << 30
_MEMORY_SHARE = 32
"""Copies of a case's buffers that a reference may hold: in float64, with magnitudes, and some temporaries of each."""


@dataclass(frozen=True)
class Expected:
    """Right outputs of one case.

    Attributes:
        values: output name -> float64 (or integer) array of the declared shape.
        scale: output name -> float64 array of the same shape: what errors are measured against. The sum of
            magnitudes behind each element where the reference returns it, else the magnitude of the value.
    """

    values: Mapping[str, Array]
    scale: Mapping[str, Array]


def expected(workload: Workload, case: Case, inputs: Mapping[str, Array], walls: Walls | None = None) -> Expected:
    """Run `reference(inputs, dims)` in a fresh namespace and check what it returns.

    Args:
        workload: carries the text of reference.py.
        case: gives dims.
        inputs: from `draw_inputs`; the reference gets them read-only, with the scalars added by name.
        walls: of the sandbox that a generated reference runs in; by default they follow from the largest case.

    Raises:
        WorkloadError: it does not run, or returns a wrong name, shape, dtype or scale.
        SandboxError: it has to be confined, and this machine cannot do it.
    """
    values = {scalar.name: scalar.value for scalar in scalars(workload, case)}
    try:
        if GENERATED_REFERENCE in workload.generated:
            returned = confined.call(workload.reference, inputs, values, case.dims, walls or _walls(workload))
        else:
            given: dict[str, Any] = {name: _locked(array) for name, array in inputs.items()}
            returned = calling.call(workload.reference, given | values, case.dims)
    except Failed as failed:
        raise _told(workload, case, failed) from failed.__cause__
    except MemoryError as error:
        raise _wrong(workload, case, "MemoryError: there is not enough memory for it") from error
    names = [p.name for p in workload.outputs]
    if not isinstance(returned, dict) or sorted(returned) != sorted(names):
        found = sorted(map(str, returned)) if isinstance(returned, dict) else type(returned).__name__
        raise _wrong(workload, case, f"expected a dict with the keys {names}, found {found}")
    pairs = {p.name: _checked(workload, case, p, returned[p.name]) for p in workload.outputs}
    return Expected({name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()})


@functools.lru_cache(maxsize=64)
def _memory_bytes(parameters: tuple[Parameter, ...], dims: tuple[tuple[tuple[str, int], ...], ...]) -> int:
    whole = max(sum(nbytes(p, Case("", Role.HIDDEN, dict(of))) for p in parameters) for of in dims)
    return min(max(_LEAST_MEMORY_BYTES, _MEMORY_SHARE * whole), psutil.virtual_memory().total // 2)


def _walls(workload: Workload) -> Walls:
    """Return the same walls for every case of a workload, so that one child serves them all."""
    dims = tuple(tuple(sorted(case.dims.items())) for case in workload.cases)
    return Walls(memory_bytes=_memory_bytes(workload.parameters, dims))


def _told(workload: Workload, case: Case, failed: Failed) -> WorkloadError:
    line = f", line {failed.line}" if failed.line else ""
    on = f", case {case.name!r}" if failed.called else ""
    near = did_you_mean("reference", failed.defined) if failed.defined else ""
    return WorkloadError(f"{workload.name}/{_FILE}{line}{on}: {failed.text}{near}")


def _locked(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def _wrong(workload: Workload, case: Case, text: str) -> WorkloadError:
    return WorkloadError(f"{workload.name}/{_FILE}, case {case.name!r}: {text}")


def _checked(workload: Workload, case: Case, parameter: Parameter, value: Any) -> tuple[Array, Array]:
    value, scale = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    wanted = shape(parameter, case)
    array = np.asarray(value)
    name = parameter.name
    if array.shape != wanted:
        raise _wrong(workload, case, f"expected {name!r} of shape {wanted}, found {array.shape}")
    if np.dtype(parameter.dtype).kind == "f":
        if array.dtype.kind != "f" or array.dtype.itemsize < 8:
            fix = "compute in float64: inputs['x'].astype(np.float64)"
            raise _wrong(workload, case, f"expected {name!r} as float64, found {array.dtype}; {fix}")
        array = array.astype(np.float64)
    elif array.dtype.kind not in "iu":
        raise _wrong(workload, case, f"expected {name!r} as integers, found {array.dtype}")
    return array, _scale(workload, case, name, array, scale)


def _scale(workload: Workload, case: Case, name: str, array: Array, scale: Any) -> Array:
    if scale is None:
        return np.abs(array).astype(np.float64)
    found = np.asarray(scale, dtype=np.float64)
    if found.shape != array.shape:
        raise _wrong(workload, case, f"expected the scale of {name!r} in shape {array.shape}, found {found.shape}")
    if (found < 0).any() or not np.isfinite(found[np.isfinite(array)]).all():
        raise _wrong(workload, case, f"expected the scale of {name!r} finite and not negative, found otherwise")
    return found
