"""Are the parts of a workload right? References against each other, kernels against references, cases against rounding.

Everything that a model wrote runs in the sandbox. A part that is wrong is told in words; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evaluators import prescreen
from evaluators.device import Setup
from evaluators.host import HostDevice
from evaluators.lab import Lab
from evaluators.validate import compare_output, unit_roundoff
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.records import GENERATED_REFERENCE, Case, Parameter, Role, Status, Workload
from evo.workload import kernels
from evo.workload.inputs import Array
from evo.workload.reference import Expected

JUDGED = (Role.CORRECTNESS, Role.HIDDEN)
_AGREE = 1e-10
"""Of an element's error scale: two float64 formulas for the same sum of 10^5 terms differ by less."""
_MOST_SCALE = 1e4
"""An error scale counts up to so many times the output's largest magnitude: one that is absurd would let all agree."""


@dataclass(frozen=True)
class Agreement:
    """What comparing two references says.

    Attributes:
        inputs: sets of inputs that they were compared on.
        error: the largest difference found, in units of the error scale.
        problem: where they disagree, in words; "" where nowhere.
    """

    inputs: int
    error: float
    problem: str = ""


def confined(workload: Workload, reference: str) -> Workload:
    """Return the workload with this reference, which a model wrote."""
    return replace(workload, reference=reference, generated=(GENERATED_REFERENCE,))


def runs(workload: Workload, *roles: Role, seed: int = 0) -> None:
    """Run the workload's reference on every case of these roles.

    Raises:
        WorkloadError: it does not run, returns something of another form, or does what it must not.
    """
    for case in workload.role(*roles):
        workloads.expected(workload, case, workloads.draw_inputs(workload, case, seed))


def agree(first: Workload, second: Workload, seed: int) -> Agreement:
    """Compare two references of one workload on every correctness and hidden case, with inputs of two seeds.

    Integers must be equal, and floats agree to float64's accuracy: both are computed in it.
    """
    count, worst = 0, 0.0
    for case in first.role(*JUDGED):
        for inputs in (workloads.draw_inputs(first, case, seed), workloads.draw_inputs(first, case, seed + 1)):
            ours, theirs = (workloads.expected(of, case, inputs) for of in (first, second))
            count += 1
            for output in first.outputs:
                error, where = _difference(output, ours, theirs)
                if where:
                    return Agreement(count, error, f"case {case.name!r} ({_dims(case)}): {output.name}{where}")
                worst = max(worst, error)
    return Agreement(count, worst)


def _difference(output: Parameter, ours: Expected, theirs: Expected) -> tuple[float, str]:
    """Return the largest difference, and where it is too large, with both values."""
    a, b = ours.values[output.name], theirs.values[output.name]
    if np.dtype(output.dtype).kind != "f":
        wrong = a != b
        errors = wrong.astype(np.float64)
    else:
        with np.errstate(all="ignore"):
            magnitude = np.maximum(np.abs(a), np.abs(b))
            largest = float(np.max(magnitude, initial=0.0, where=np.isfinite(magnitude)))
            scale = np.maximum(ours.scale[output.name], theirs.scale[output.name])
            scale = np.minimum(np.nan_to_num(scale, nan=0.0), _MOST_SCALE * largest) + np.finfo(np.float64).tiny
            errors = np.abs(a - b) / scale
        errors[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        errors[np.isnan(errors)] = np.inf
        wrong = errors > _AGREE
    if not wrong.any():
        return float(errors.max(initial=0.0)), ""
    flat = int(np.argmax(wrong))
    at = ", ".join(str(int(i)) for i in np.unravel_index(flat, wrong.shape))
    return float(errors.flat[flat]), f"[{at}] is {a.flat[flat]:.9g} by one and {b.flat[flat]:.9g} by the other"


def ill_posed(workload: Workload, seed: int) -> tuple[str, ...]:
    """Return the hidden cases with values of their own on which a right kernel may fail.

    There inputs that differ by a rounding error give outputs that differ by more than the tolerance, so that rounding
    alone, in any order of operations, can do the same (backward error: Higham 2002, chapter 1). Outputs that have to be
    exact are left out: what only compares and copies rounds nothing.
    """
    own = [case for case in workload.role(Role.HIDDEN) if case.draws]
    return tuple(case.name for case in own if not _well_posed(workload, case, seed))


def _well_posed(workload: Workload, case: Case, seed: int) -> bool:
    inputs = workloads.draw_inputs(workload, case, seed)
    right = workloads.expected(workload, case, inputs)
    near = workloads.expected(workload, case, _nudged(inputs, _roundoff(workload), seed))
    for output in workload.outputs:
        tolerance = workload.tolerance.get(output.name, workload.tolerance[""])
        if tolerance.exact:
            continue
        with np.errstate(all="ignore"):
            got = near.values[output.name].astype(output.dtype)
        verdict = compare_output(
            got,
            right.values[output.name],
            right.scale[output.name],
            tolerance,
            output.dtype,
            workloads.terms(workload, case, output.name),
        )
        if not verdict.ok:
            return False
    return True


def _roundoff(workload: Workload) -> float:
    """Return the rounding error of the arithmetic that a kernel has: float32's, or float64's where outputs are."""
    floats = [unit_roundoff(p.dtype) for p in workload.outputs if np.dtype(p.dtype).kind == "f"]
    return min(unit_roundoff("float32"), *floats, 1.0)


def _nudged(inputs: Mapping[str, Array], by: float, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng((seed, len(inputs)))
    return {name: _nudge(array, by, rng) if array.dtype.kind == "f" else array for name, array in inputs.items()}


def _nudge(array: Array, by: float, rng: np.random.Generator) -> Array:
    moved: Array = array.astype(np.float64) * (1.0 + by * rng.choice([-1.0, 1.0], array.shape))
    return moved


# --- kernels ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """What running a kernel on this machine's CPU says.

    Attributes:
        cases: that it was right on.
        error: the largest, in units of the tolerance.
        problem: why it is wrong; "" where it is not.
        skipped: why nothing is known: the CPU cannot run it.
    """

    cases: int = 0
    error: float = 0.0
    problem: str = ""
    skipped: str = ""


def fits(workload: Workload, source: str, name: str) -> None:
    """Check that a kernel can be launched on every case and takes the workload's parameters; raises `WorkloadError`."""
    kernels.check_source(Path(name), source, workload)


def judge(workload: Workload, source: str, seed: int) -> Judged:
    """Look for races and overruns, and run a kernel on every correctness and hidden case, all on the host device."""
    with _lab(workload, source, seed) as lab:
        screened = prescreen.screen(source, workload, lab.facts, seed)
        if screened.state == "rejected":
            return _refused(screened.status, _told(screened.message, screened.findings))
        programs = lab.programs(source)
        error = 0.0
        cases = lab.cases(*JUDGED)
        for case in cases:
            outcome = lab.validate(programs, case)
            if outcome.status is not Status.OK:
                return _refused(outcome.status, f"case {case.name!r} ({_dims(case)}): {outcome.message}")
            error = max(error, outcome.error or 0.0)
        return Judged(len(cases), error)


def _refused(status: Status, message: str) -> Judged:
    if status is Status.UNSUPPORTED:
        return Judged(skipped=message)
    return Judged(problem=f"{status.replace('_', ' ')}: {message}")


def _told(message: str, findings: Sequence[Any]) -> str:
    lines = [f"line {f.line}: {f.kind}: {f.message}" for f in findings if not f.advice and f.message not in message]
    return "\n".join([message, *lines])


@contextmanager
def _lab(workload: Workload, source: str, seed: int) -> Iterator[Lab]:
    lab = Lab(HostDevice(), Setup(replace(workload, initial=source), Timing(), Tuning(), seed, source))
    try:
        yield lab
    finally:
        lab.close()


def _dims(case: Case) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.dims.items())
