"""A workload in words: what to compute, from what, when it is right, and how much work it is."""

from __future__ import annotations

from collections.abc import Callable

from evo.errors import ExpressionError
from evo.kernel import FAST_MATH
from evo.records import Case, Direction, Parameter, Peaks, Role, Tolerance, Workload
from evo.workload import sizes as cases
from mutators.fences import fence

_C_TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
}
_ROUNDOFF = {"float64": "2^-53", "float32": "2^-24", "float16": "2^-11", "bfloat16": "2^-8"}


def text(workload: Workload, peaks: Peaks | None = None, *, every_case: bool = True) -> str:
    """Describe a workload: what to compute, parameters, public cases with their work, tolerance.

    Args:
        workload: may hold hidden cases; they are left out.
        peaks: of the device; with them each timed case says how long its work takes at least.
        every_case: false tells the correctness cases by their number alone.
    """
    lines = [f"# Workload: {workload.name}", "", workload.description.strip(), ""]
    lines += ["Parameters, in the order of the signature:", "", fence(_signature(workload), "cuda"), ""]
    lines += [f"- {_parameter(parameter)}" for parameter in workload.parameters]
    lines += ["", *_performance(workload, peaks), *_correctness(workload, every_case)]
    lines += ["Hidden cases must be right as well.", "", "When an output is right:", ""]
    lines += [f"- {_tolerance(output, workload)}" for output in workload.outputs]
    lines += [f"- {_determinism(workload)}", f"- {_fast_math(workload)}"]
    return "\n".join(lines)


def flops(workload: Workload, case: Case) -> int:
    """Return the useful operations of a case; 0 where the workload does not say."""
    return _figure(cases.flops, workload, case)


def nbytes(workload: Workload, case: Case) -> int:
    """Return the compulsory traffic of a case in bytes; 0 where the workload does not say."""
    return _figure(cases.bytes_moved, workload, case)


def _figure(figure: Callable[[Workload, Case], int], workload: Workload, case: Case) -> int:
    try:
        return figure(workload, case)
    except ExpressionError:
        return 0


def _signature(workload: Workload) -> str:
    return f"{workload.entry}({', '.join(_declared(parameter) for parameter in workload.parameters)})"


def _declared(parameter: Parameter) -> str:
    kind = _C_TYPES.get(parameter.dtype, parameter.dtype)
    if parameter.direction is Direction.SCALAR:
        return f"{kind} {parameter.name}"
    const = "const " if parameter.direction is Direction.IN else ""
    return f"{const}{kind}* {parameter.name}"


def _parameter(parameter: Parameter) -> str:
    if parameter.direction is Direction.SCALAR:
        return f"{parameter.name}: {parameter.dtype}, passed by value" + (
            f", always {parameter.value}" if parameter.value not in (None, parameter.name) else ""
        )
    way = {Direction.IN: "input", Direction.OUT: "output", Direction.INOUT: "input and output"}[parameter.direction]
    shape = ", ".join(parameter.shape) or "1"
    return f"{parameter.name}: {way}, {parameter.dtype}[{shape}], row-major, aligned to {parameter.align} bytes"


def _performance(workload: Workload, peaks: Peaks | None) -> list[str]:
    timed = workload.role(Role.PERFORMANCE)
    lines = [f"- {case.name}: {_dims(case)}{_work(workload, case, peaks)}" for case in timed]
    return ["Performance cases (validated, timed, scored):", "", *lines, ""] if timed else []


def _correctness(workload: Workload, every_case: bool) -> list[str]:
    checked = workload.role(Role.CORRECTNESS)
    if not checked:
        return []
    if not every_case:
        return [f"{len(checked)} correctness cases besides (must be right, never scored).", ""]
    lines = [f"- {case.name}: {_dims(case)}" for case in checked]
    return ["Correctness cases (must be right, never scored):", "", *lines, ""]


def _work(workload: Workload, case: Case, peaks: Peaks | None) -> str:
    """Say what a case asks for, e.g. `: 33.6 MFLOP and 0.786 MB, 42.7 FLOP for each byte`."""
    operations, moved = flops(workload, case), nbytes(workload, case)
    parts = [f"{_scaled(operations)}FLOP"] if operations else []
    parts += [f"{_scaled(moved)}B of compulsory traffic"] if moved else []
    if not parts:
        return ""
    ratio = f", {operations / moved:.3g} FLOP for each byte" if operations and moved else ""
    return f": {' and '.join(parts)}{ratio}{_at_peak(operations, moved, peaks)}"


def _at_peak(operations: int, moved: int, peaks: Peaks | None) -> str:
    if peaks is None:
        return ""
    memory_us = 1e6 * moved / peaks.dram_bytes_per_s if peaks.dram_bytes_per_s else 0.0
    compute_us = 1e6 * operations / peaks.fp32_flops_per_s if peaks.fp32_flops_per_s else 0.0
    times = [f"{memory_us:.3g} µs of memory traffic"] if memory_us else []
    times += [f"{compute_us:.3g} µs of FP32 arithmetic"] if compute_us else []
    return f"; at the device's peaks {' and '.join(times)}" if times else ""


def _scaled(figure: float) -> str:
    """E.g. `33.6 M`: a figure with the prefix of its unit."""
    for prefix in ("", "k", "M", "G"):
        if figure < 1000:
            return f"{figure:.3g} {prefix}"
        figure /= 1000
    return f"{figure:.3g} T"


def _dims(case: Case) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.dims.items()) or "no dims"


def _tolerance(output: Parameter, workload: Workload) -> str:
    tolerance = workload.tolerance.get(output.name, workload.tolerance.get("", Tolerance()))
    unit = _ROUNDOFF.get(output.dtype)
    if tolerance.exact or unit is None:
        return f"{output.name}: every element equals the reference exactly."
    grows = "" if tolerance.terms.strip() == "1" else f" * sqrt({tolerance.terms})"
    slack = f" + {tolerance.atol:g}" if tolerance.atol else ""
    return (
        f"{output.name}: |got - want| <= {tolerance.budget:g}{grows} * {unit} * scale{slack}, where `want` comes "
        "from a float64 reference and `scale` is |want|, or for a sum the sum of its terms' magnitudes. NaN and "
        f"infinities must match. So {output.dtype} arithmetic in any order is fine, anything less precise is not."
    )


def _determinism(workload: Workload) -> str:
    if workload.deterministic:
        return "Repeated runs must agree bit for bit, so no floating-point atomics whose order may change the result."
    return "Repeated runs may differ within the tolerance (atomics are allowed)."


def _fast_math(workload: Workload) -> str:
    if workload.fast_math:
        return f"Fast-math intrinsics and options ({', '.join(sorted(FAST_MATH))}) are allowed within the tolerance."
    return "Fast-math options are not allowed."
