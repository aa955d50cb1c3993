"""`--as cpp`: a C++17 program that compiles the kernel with NVRTC, runs stored cases, checks them and times them.

The program is in `templates/cpp`; what it runs is written into `plans.hpp`, every expression resolved to a number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator

import numpy as np

from evaluators.validate import unit_roundoff
from evo import workload as workloads
from evo.export import includes, readme
from evo.export.arrays import Stored
from evo.export.folder import File, template
from evo.export.subject import Subject
from evo.kernel import Expression, Header
from evo.kernel.header import DEVICE_NAMES
from evo.records import Case, Dim3, Direction, Launch, LaunchPlan, Parameter, Scalar

_PLANS = """\
// What main.cpp runs; plan.hpp says what the fields are. Written by `evo export`: rather than edit it, export again.
#pragma once

#include <cstdint>

#include "plan.hpp"

namespace harness {

inline Export exported() {
    return Export{
    FIELDS};
}

}  // namespace harness
"""


def files(subject: Subject) -> Iterator[File]:
    """Return the program's files; one case's arrays are in memory at a time.

    Raises:
        HeaderError: the run's device cannot launch a case.
        WorkloadError: the reference fails.
    """
    yield from template("cpp")
    yield from includes.files()
    yield "best.cu", subject.kernel.source.encode()
    cases = []
    for case in _cases(subject):
        plan = subject.kernel.plan(subject.workload, case, subject.device)
        stored = Stored.make(subject.workload, case, subject.seed)
        yield from stored.files()
        cases.append(_case(subject, stored, plan))
    yield "plans.hpp", _plans(subject, cases).encode()
    yield "README.md", readme.cpp(subject).encode()


def _cases(subject: Subject) -> Iterable[Case]:
    known = {case.name: case for case in subject.workload.cases}
    return [known[name] for name in subject.cases]


def _plans(subject: Subject, cases: Iterable[str]) -> str:
    timing, device = subject.timing, subject.device
    depends = _bool(_depends_on_device(subject))
    target = (_text(device.name), _text(subject.arch or ""), depends, str(device.num_sms), str(device.l2_bytes))
    fields = (
        _text(subject.workload.name),
        _text(subject.origin),
        _braces(map(_text, subject.kernel.kernels)),
        f"{timing.warmup}, {timing.launches}, {_bool(timing.cold)}",
        _braces(target),
        "{\n" + "".join(f"        {case},\n" for case in cases) + "    }",
    )
    return _PLANS.replace("FIELDS", ",\n    ".join(fields))


def _case(subject: Subject, stored: Stored, plan: LaunchPlan) -> str:
    workload, case = stored.workload, stored.case
    buffers = [p for p in workload.parameters if p.direction is not Direction.SCALAR]
    fields = [
        _text(case.name),
        _text(", ".join(f"{name}={value}" for name, value in case.dims.items())),
        float(subject.latencies_us.get(case.name, 0.0)).hex(),
        _braces(_buffer(parameter, case) for parameter in buffers),
        _braces(_scalar(scalar) for scalar in workloads.scalars(workload, case)),
        _braces(_tolerance(stored, parameter) for parameter in workload.outputs),
        _plan(plan),
    ]
    return "Case{" + ",\n         ".join(fields) + "}"


def _buffer(parameter: Parameter, case: Case) -> str:
    shape = _braces(map(str, workloads.shape(parameter, case)))
    size = np.dtype(parameter.dtype).itemsize
    direction = f"Direction::{parameter.direction.value}"
    name, dtype = _text(parameter.name), _text(parameter.dtype)
    return f"Buffer{{{name}, {dtype}, {shape}, {direction}, {parameter.align}, {size}}}"


def _scalar(scalar: Scalar) -> str:
    """A scalar of its own type; one of half precision by its bits, since C++17 has no such type."""
    if scalar.dtype == "float16":
        value = f"std::uint16_t{{{np.float16(scalar.value).view(np.uint16)}}}"
    elif scalar.dtype in ("float32", "float64"):
        kind = "float" if scalar.dtype == "float32" else "double"
        value = f"static_cast<{kind}>({float(scalar.value).hex()})"
    else:
        suffix = "ull" if scalar.dtype == "uint64" else "ll"
        value = f"static_cast<std::{scalar.dtype}_t>({scalar.value}{suffix})"
    return f"scalar({_text(scalar.name)}, {value})"


def _tolerance(stored: Stored, output: Parameter) -> str:
    exact, given = stored.is_exact(output), stored.tolerance(output.name)
    factor = slack = 0.0
    if not exact:
        terms = workloads.terms(stored.workload, stored.case, output.name)
        factor = given.budget * math.sqrt(terms) * unit_roundoff(output.dtype)
        slack = given.atol + float(np.finfo(output.dtype).smallest_subnormal) / 2
    fields = (_text(output.name), _bool(exact), factor.hex(), slack.hex(), _bool(stored.is_scaled(output)))
    return f"Tolerance{_braces(fields)}"


def _plan(plan: LaunchPlan) -> str:
    fields = [
        _braces(map(_launch, plan.launches)),
        _braces(f"Workspace{{{_text(name)}, {nbytes}}}" for name, nbytes in plan.workspaces.items()),
        _braces(map(_text, plan.zero)),
        _braces(_text(f"{name}={value}") for name, value in sorted(plan.defines.items())),
        _braces(map(_text, plan.options)),
        _bool(plan.cooperative),
        _bool(plan.cluster is not None),
        _dim3(plan.cluster or (1, 1, 1)),
    ]
    return "Plan{" + ",\n              ".join(fields) + "}"


def _launch(launch: Launch) -> str:
    arguments = _braces(
        f"std::int32_t{{{argument}}}" if isinstance(argument, int) else f"std::string{{{_text(argument)}}}"
        for argument in launch.args
    )
    extents = f"{_dim3(launch.grid)}, {_dim3(launch.block)}"
    return f"Launch{{{_text(launch.kernel)}, {extents}, {launch.shared_bytes}, {arguments}}}"


def _depends_on_device(subject: Subject) -> bool:
    return any(expression.names & DEVICE_NAMES for expression in _expressions(subject.kernel.header))


def _expressions(header: Header) -> Iterator[Expression]:
    """Return all that a plan is resolved from; `choose`, which reads dims alone, is left out."""
    for spec in header.launches:
        yield from (*spec.block, *spec.grid, spec.shared_bytes, *(spec.args or ()))
    yield from (*header.require, *header.workspace.values(), *(header.cluster or ()))
    parts = (part for option in header.options for part in (option.value, option.when))
    yield from (part for part in parts if isinstance(part, Expression))


def _dim3(extents: Dim3) -> str:
    return "Dim3" + _braces(map(str, extents))


def _braces(parts: Iterable[str]) -> str:
    return "{" + ", ".join(parts) + "}"


def _text(text: str) -> str:
    return json.dumps(text)


def _bool(value: bool) -> str:
    return "true" if value else "false"
