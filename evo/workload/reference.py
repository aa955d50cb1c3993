"""What a workload's own `reference.py` says the outputs are, checked before anyone believes it.

`reference.py` is the user's code and runs with the user's rights in this process, as any script they would start
themselves; a model's text never comes here. Only trust workload folders as you would trust a script.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evo.errors import WorkloadError, did_you_mean
from evo.records import Case, Parameter, Workload
from evo.workload.inputs import Array
from evo.workload.sizes import scalars, shape

_FILE = "reference.py"


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


def expected(workload: Workload, case: Case, inputs: Mapping[str, Array]) -> Expected:
    """Run `reference(inputs, dims)` in a fresh namespace and check what it returns.

    Args:
        workload: carries the text of reference.py.
        case: gives dims.
        inputs: from `draw_inputs`; the reference gets them read-only, with the scalars added by name.

    Raises:
        WorkloadError: it does not run, or returns a wrong name, shape, dtype or scale.
    """
    function = _function(workload)
    given: dict[str, Any] = {name: _locked(array) for name, array in inputs.items()}
    given |= {scalar.name: scalar.value for scalar in scalars(workload, case)}
    returned = _call(workload, case, function, given)
    names = [p.name for p in workload.outputs]
    if not isinstance(returned, dict) or sorted(returned) != sorted(names):
        found = sorted(map(str, returned)) if isinstance(returned, dict) else type(returned).__name__
        raise _wrong(workload, case, f"expected a dict with the keys {names}, found {found}")
    pairs = {p.name: _checked(workload, case, p, returned[p.name]) for p in workload.outputs}
    return Expected({name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()})


def _function(workload: Workload) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": "reference", "__file__": _FILE}
    try:
        exec(compile(workload.reference, _FILE, "exec"), namespace)
    except SyntaxError as error:
        raise WorkloadError(
            f"{workload.name}/{_FILE}, line {error.lineno}: expected Python, found {error.msg}"
        ) from None
    except Exception as error:
        raise WorkloadError(f"{workload.name}/{_FILE}{_line(error)}: {type(error).__name__}: {error}") from error
    function = namespace.get("reference")
    if not callable(function):
        defined = [name for name, value in namespace.items() if callable(value)]
        raise WorkloadError(
            f"{workload.name}/{_FILE}: expected a function reference(inputs, dims), found none"
            + did_you_mean("reference", defined)
        )
    return function  # type: ignore[no-any-return]


def _call(workload: Workload, case: Case, function: Callable[..., Any], given: dict[str, Any]) -> Any:
    try:
        return function(given, dict(case.dims))
    except WorkloadError:
        raise
    except Exception as error:
        raise WorkloadError(
            f"{workload.name}/{_FILE}{_line(error)}, case {case.name!r}: {type(error).__name__}: {error}"
        ) from error


def _line(error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _FILE]
    return f", line {lines[-1]}" if lines else ""


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
