"""Holds a timed case against what its device can do: too fast is looked at again, and efficiency is written down.

The numbers are `evaluators.roofline`'s. On a device that tells no peaks nothing happens here.
"""

from __future__ import annotations

from dataclasses import replace

from evaluators import roofline, timing
from evaluators.bench import Outcome
from evaluators.builder import Programs
from evaluators.descriptors import uses_tensor_cores
from evaluators.lab import Lab
from evo.records import Case, CaseResult, Status

LEAST_LAUNCHES = 5
SECOND_LOOK_S = 0.5
"""Wall time for measuring a kernel that was too fast."""


def hold(lab: Lab, programs: Programs, case: Case, result: CaseResult, *, initial: bool) -> CaseResult | Outcome:
    """Return a timed case with its roofline and the doubts that come of it, or why the kernel must not have it.

    Args:
        lab: the device.
        programs: of the kernel.
        case: that was timed.
        result: with latency, anchor and conditions.
        initial: whether this is the run's first kernel, which hears that a case is too short.
    """
    if lab.facts.peaks is None or result.latency is None:
        return result
    asked = roofline.work(lab.setup.workload, case, cold=lab.setup.timing.cold)
    floor = roofline.floor_us(asked, lab.facts)
    checked = _quarantined(lab, programs, case, result, floor)
    if isinstance(checked, Outcome):
        return checked
    assert checked.latency is not None
    empty_us = result.conditions.floor_us if result.conditions else 0.0
    tensor = uses_tensor_cores(programs.kernel)
    placed = roofline.place(asked, checked.latency.median_us, floor, lab.peaks, tensor=tensor, empty_us=empty_us)
    doubts = roofline.short_doubt(result.anchor_us, empty_us) if initial else ()
    return replace(_doubted(checked, *doubts), roofline=placed)


def unknown_doubt(lab: Lab, *, initial: bool) -> tuple[str, ...]:
    """Return a doubt where the device's peaks are not known, for the run's first kernel alone."""
    if not initial or not lab.peaks_unknown:
        return ()
    return (f"no efficiency is told: {lab.peaks_unknown}",)


def _quarantined(lab: Lab, programs: Programs, case: Case, result: CaseResult, floor: float) -> CaseResult | Outcome:
    """Look again at a latency that is too good, on data that nothing was launched on before.

    A kernel is unsafe only if it is wrong there, or if the workload certifies that its floor binds every right kernel:
    Winograd, Strassen and a large cache can be honest. The first kernel is trusted: where it is below the floor as
    well, the workload counts too much.
    """
    assert result.latency is not None
    first_us, anchor_us = result.latency.median_us, result.anchor_us
    if not roofline.too_fast(first_us, floor):
        return result
    if anchor_us and roofline.too_fast(anchor_us, floor):
        return _doubted(result, roofline.refuted_doubt(anchor_us, floor))
    if lab.setup.workload.certified_floor:
        return Outcome(Status.UNSAFE, _FRAUD.format(latency_us=first_us, floor_us=floor))
    rules = timing.rules(lab.setup.timing, SECOND_LOOK_S, LEAST_LAUNCHES)
    again = lab.time(programs, case, rules, salt=lab.unseen())
    if again.failed is not None:
        message = f"it is faster than the roofline allows, and on data that it had not seen: {again.failed.message}"
        return replace(again.failed, status=Status.UNSAFE, message=message)
    if roofline.too_fast(again.median_us, floor):
        return _doubted(result, roofline.too_fast_doubt(first_us, floor))
    latency = timing.summarise(again.samples_us, result.latency.doubts)
    return _doubted(replace(result, latency=latency), roofline.remembers_doubt(first_us, again.median_us))


_FRAUD = (
    "a latency of {latency_us:.4g} µs is less than the {floor_us:.4g} µs that this device's peaks allow, and the "
    "workload certifies that no right kernel does with fewer operations or bytes: the work is done outside the timing"
)


def _doubted(result: CaseResult, *doubts: str) -> CaseResult:
    assert result.latency is not None
    return replace(result, latency=replace(result.latency, doubts=(*result.latency.doubts, *doubts)))
