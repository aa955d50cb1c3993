"""Is a workload's tolerance worth anything? Wrong outputs that cheating kernels produce must fail it.

Runs before every search. Only NumPy and the reference; nothing is compiled or launched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluators.validate import compare_output
from evo import workload as workloads
from evo.records import Case, Direction, Parameter, Role, Workload

Array = NDArray[Any]
Outputs = Mapping[str, Array]
MANTISSA_BITS = 11
"""Of IEEE half precision, the hidden bit included."""


@dataclass(frozen=True)
class _Sample:
    """One case with its right answers, and those for other inputs (what a kernel could know beforehand)."""

    case: Case
    inputs: Mapping[str, Array]
    expected: workloads.Expected
    other: workloads.Expected


Mutant = Callable[[Workload, _Sample], Outputs | None]


def self_test(workload: Workload, seed: int) -> tuple[str, ...]:
    """Return why a workload must be refused: the mutants that pass every correctness and hidden case.

    Args:
        workload: with its hidden cases.
        seed: of the inputs.

    Raises:
        WorkloadError: the reference fails.
    """
    samples = [_sample(workload, case, seed) for case in workload.role(Role.CORRECTNESS, Role.HIDDEN)]
    if not samples:
        return ("it has no correctness or hidden case, so that nothing shows whether a kernel is right",)
    return tuple(reason for name, mutant in MUTANTS.items() if (reason := _survives(workload, samples, name, mutant)))


def _sample(workload: Workload, case: Case, seed: int) -> _Sample:
    inputs = workloads.draw_inputs(workload, case, seed)
    others = workloads.draw_inputs(workload, case, seed + 1)
    return _Sample(case, inputs, workloads.expected(workload, case, inputs), workloads.expected(workload, case, others))


def _survives(workload: Workload, samples: list[_Sample], name: str, mutant: Mutant) -> str:
    """Return a reason when a mutant applies somewhere and fails nowhere, else ""."""
    tried = 0
    for sample in samples:
        outputs = mutant(workload, sample)
        if outputs is None:
            continue
        tried += 1
        if not _passes(workload, sample, outputs):
            return ""
    if not tried:
        return ""
    return (
        f"outputs made by {name} pass all {tried} correctness and hidden cases that they apply to: tighten the "
        "tolerance (a smaller budget or atol), or add a case whose right answer differs more"
    )


def _passes(workload: Workload, sample: _Sample, outputs: Outputs) -> bool:
    for parameter in workload.outputs:
        name = parameter.name
        with np.errstate(all="ignore"):
            got = np.asarray(outputs[name]).astype(parameter.dtype)
        verdict = compare_output(
            got,
            sample.expected.values[name],
            sample.expected.scale[name],
            workload.tolerance.get(name, workload.tolerance[""]),
            parameter.dtype,
            workloads.terms(workload, sample.case, name),
        )
        if not verdict.ok:
            return False
    return True


# --- mutants ------------------------------------------------------------------------------------------------------


def _zeros(workload: Workload, sample: _Sample) -> Outputs:
    return {name: np.zeros_like(value) for name, value in sample.expected.values.items()}


def _constant(workload: Workload, sample: _Sample) -> Outputs:
    """Every element is the first right answer for other inputs."""
    others = sample.other.values
    return {name: np.full_like(value, value.flat[0] if value.size else 0) for name, value in others.items()}


def _mean(workload: Workload, sample: _Sample) -> Outputs:
    """Every element is the mean of the right answers for other inputs."""
    others = sample.other.values
    return {name: np.full_like(value, value.mean() if value.size else 0) for name, value in others.items()}


def _input_copy(workload: Workload, sample: _Sample) -> Outputs | None:
    """Each output is a copy of the beginning of an input; None where no input is as long."""
    copies: dict[str, Array] = {}
    for output in workload.outputs:
        want = sample.expected.values[output.name]
        fitting = [array for array in sample.inputs.values() if array.size >= want.size]
        if not fitting:
            return None
        copies[output.name] = fitting[0].reshape(-1)[: want.size].reshape(want.shape)
    return copies


def _half_inputs(workload: Workload, sample: _Sample) -> Outputs | None:
    """The right answers for inputs rounded to half precision."""
    if not _wider_than_half(workload):
        return None
    rounded = {p.name: _rounded_input(p, sample.inputs[p.name]) for p in workload.parameters if p.name in sample.inputs}
    if all(np.array_equal(rounded[name], array) for name, array in sample.inputs.items()):
        return None
    return workloads.expected(workload, sample.case, rounded).values


def _half_result(workload: Workload, sample: _Sample) -> Outputs | None:
    """The right answers, rounded to half precision."""
    if not _wider_than_half(workload):
        return None
    return {name: _rounded(value, np.abs(value)) for name, value in sample.expected.values.items()}


def _half_accumulator(workload: Workload, sample: _Sample) -> Outputs | None:
    """The right answers as an accumulator in half precision leaves them at best.

    One rounding error at the size of the sum of magnitudes; each of a long sum's additions makes one like it.
    """
    if not _wider_than_half(workload):
        return None
    return {name: _rounded(value, sample.expected.scale[name]) for name, value in sample.expected.values.items()}


MUTANTS: dict[str, Mutant] = {
    "writing zeros": _zeros,
    "writing one constant": _constant,
    "writing the mean": _mean,
    "copying an input": _input_copy,
    "rounding inputs to half precision": _half_inputs,
    "rounding results to half precision": _half_result,
    "accumulating in half precision": _half_accumulator,
}


def _wider_than_half(workload: Workload) -> bool:
    kinds = [np.dtype(p.dtype) for p in workload.outputs]
    return all(kind.kind == "f" and kind.itemsize > 2 for kind in kinds)


def _rounded_input(parameter: Parameter, array: Array) -> Array:
    if parameter.direction is Direction.SCALAR or array.dtype.kind != "f":
        return array
    return _rounded(array.astype(np.float64), np.abs(array)).astype(array.dtype)


def _rounded(values: Array, magnitude: Array) -> Array:
    """Round to `MANTISSA_BITS` bits below the leading bit of a magnitude; no overflow, unlike a cast to half."""
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.asarray(magnitude, dtype=np.float64))[1]
        step = np.ldexp(1.0, exponent - MANTISSA_BITS)
        rounded = np.rint(values / step) * step
    result: Array = np.where(np.isfinite(values) & (np.asarray(magnitude) > 0), rounded, values)
    return result
