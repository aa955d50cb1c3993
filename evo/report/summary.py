"""What a run came to, as data: `summary.json`. The figures for people are made from the same record.

No sentence but the doubts is written here, and nothing is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evo.records import CaseResult, Evaluation, Latency, Role, Roofline, Status
from evo.report import fruitless, money
from evo.report.history import History, Speedup
from evo.report.operators import Yields, yields

CPU_IS_NOT_GPU = "host device: latencies are the CPU's; CPU-fast is not GPU-fast"


@dataclass(frozen=True)
class Kernel:
    """One kernel's figures: id, operator and note, geometric mean; latency and so on by performance case.

    Rooflines are a GPU's alone.
    """

    candidate: int
    operator: str
    note: str
    score_us: float | None
    latencies: Mapping[str, Latency]
    configs: Mapping[str, Mapping[str, int]]
    rooflines: Mapping[str, Roofline] = field(default_factory=dict)


@dataclass(frozen=True)
class Reference:
    """The workload's reference.cu, the kernel to beat.

    Attributes:
        status: of its verdict; None while it has none.
        message: why a figure is missing, in words; "" when none is.
        score_us: geometric mean over the performance cases.
        latencies: by performance case.
        configs: launch configuration by performance case.
        speedup: of the best kernel over it; None where the two were not compared.
        rooflines: by performance case, on a GPU.
    """

    status: Status | None
    message: str
    score_us: float | None
    latencies: Mapping[str, Latency]
    configs: Mapping[str, Mapping[str, int]]
    speedup: Speedup | None
    rooflines: Mapping[str, Roofline] = field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """The vendor's way of computing the workload, its baseline.py, measured on a GPU.

    Attributes:
        message: why there is no figure; "" when there is one.
        speedup: of the best kernel over it; None where the two were not compared.
        cases: performance case -> the best kernel's latency over the baseline's.
    """

    message: str
    speedup: Speedup | None
    cases: Mapping[str, float]


@dataclass(frozen=True)
class Summary:
    """What a run came to.

    Attributes:
        run: the folder's name.
        workload: its name.
        device: kind, name, fingerprint and limits.
        seed: of the run.
        stopped: why it stopped; None while it runs or when it was killed.
        prompts: that wait for a person, where that is why it stopped.
        elapsed_s: time worked on it.
        evaluations: candidates that reached screening or the evaluator.
        statuses: how often each occurred.
        cost: calls, tokens and US dollars; calls that were interrupted; models of unknown price.
        operators: what each, asking each model, made of its share, and what repairs took.
        initial: the kernel that it began with.
        nothing: why no kernel came of the run, in one sentence; "" where one did, or where it goes on.
        best: the champion; None where nothing came of the run, and no tuner changed the initial kernel.
        reference: the workload's reference.cu; None where it has none.
        baseline: the workload's baseline.py; None where it has none, or where the device cannot call it.
        speedup: of the best over the initial kernel; None where nothing was compared.
        doubts: why the figures deserve distrust.
        versions: distribution name -> version.
    """

    run: str
    workload: str
    device: Mapping[str, Any]
    seed: int
    stopped: str | None
    prompts: int
    elapsed_s: float
    evaluations: int
    statuses: Mapping[str, int]
    cost: money.Cost
    operators: Yields
    initial: Kernel
    nothing: str
    best: Kernel | None
    reference: Reference | None
    baseline: Baseline | None
    speedup: Speedup | None
    doubts: tuple[str, ...]
    versions: Mapping[str, str]


def summarise(history: History) -> Summary:
    """Sum up a run that has at least evaluated its initial kernel."""
    meta, nothing = history.meta, fruitless.why(history)
    return Summary(
        run=history.folder.name,
        workload=meta.workload.name,
        device=asdict(meta.device),
        seed=meta.config.seed,
        stopped=meta.stopped,
        prompts=history.prompts,
        elapsed_s=round(history.elapsed_s, 1),
        evaluations=history.evaluated,
        statuses={str(status): count for status, count in sorted(history.statuses.items())},
        cost=money.cost(history),
        operators=yields(history),
        initial=kernel_of(history, 0),
        nothing=nothing,
        best=None if nothing and not fruitless.tuned(history) else kernel_of(history, history.champion),
        reference=_reference(history),
        baseline=_baseline(history),
        speedup=history.speedup(),
        doubts=_doubts(history),
        versions=meta.versions,
    )


def as_json(summary: Summary) -> str:
    """Return the content of `summary.json`."""
    return json.dumps(asdict(summary), indent=2) + "\n"


def kernel_of(history: History, number: int) -> Kernel:
    """Return the figures of one candidate."""
    candidate, evaluation = history.candidates[number], history.evaluations.get(number)
    return Kernel(
        candidate=number,
        operator=candidate.operator,
        note=candidate.note,
        score_us=evaluation.score_us if evaluation else None,
        latencies=_latencies(evaluation),
        configs=_configs(evaluation),
        rooflines=_rooflines(evaluation),
    )


def _latencies(evaluation: Evaluation | None) -> dict[str, Latency]:
    return {case.case: case.latency for case in _timed(evaluation) if case.latency is not None}


def _configs(evaluation: Evaluation | None) -> dict[str, Mapping[str, int]]:
    return {case.case: dict(case.config) for case in _timed(evaluation)}


def _rooflines(evaluation: Evaluation | None) -> dict[str, Roofline]:
    return {case.case: case.roofline for case in _timed(evaluation) if case.roofline is not None}


def _timed(evaluation: Evaluation | None) -> list[CaseResult]:
    return [case for case in evaluation.cases if case.role is Role.PERFORMANCE] if evaluation else []


def _reference(history: History) -> Reference | None:
    if history.meta.workload.reference_kernel is None:
        return None
    evaluation, speedup = history.meta.reference, history.speedup_over_reference()
    return Reference(
        status=evaluation.status if evaluation else None,
        message="" if speedup else _why_not_compared(history),
        score_us=evaluation.score_us if evaluation else None,
        latencies=_latencies(evaluation),
        configs=_configs(evaluation),
        speedup=speedup,
        rooflines=_rooflines(evaluation),
    )


def _baseline(history: History) -> Baseline | None:
    found, speedup = history.meta.baseline_finale, history.speedup_over_baseline()
    if found is None:
        return None
    message = "" if speedup else "not compared with the best kernel; resume the run to do it"
    if found.status is not Status.OK:
        message = f"the comparison failed: {_words(found.status)}: {found.message}"
    return Baseline(message, speedup, found.cases if speedup else {})


def _why_not_compared(history: History) -> str:
    evaluation, comparison = history.meta.reference, history.meta.reference_finale
    if evaluation is None:
        return "not measured yet; a run does it at its end (a stopped one when it is resumed)"
    if evaluation.status is not Status.OK:
        return f"not compared: {_words(evaluation.status)} at {evaluation.stage}: {evaluation.message}"
    if comparison is None or comparison.challenger != history.champion:
        return "not yet compared with the best kernel; resume the run to do it"
    return f"the comparison failed: {_words(comparison.status)}: {comparison.message}"


def _words(status: Status) -> str:
    return status.replace("_", " ")


def _doubts(history: History) -> tuple[str, ...]:
    doubts = [CPU_IS_NOT_GPU] if history.meta.device.kind == "host" else []
    speedup = history.speedup()
    if speedup is None:
        doubts.append("no kernel was proved faster than the initial one")
    elif history.meta.finale is None:
        doubts.append("the best kernel was not measured again beside the initial one; resume the run to do it")
    elif speedup.low <= 1:
        doubts.append("the interval of the speedup contains 1: it may be none")
    for number in dict.fromkeys((0, history.champion)):
        doubts += _doubts_of(f"kernel {number}", history.evaluations.get(number))
    doubts += _doubts_of("reference.cu", history.meta.reference)
    over_reference = history.speedup_over_reference()
    if over_reference is not None and over_reference.low <= 1 <= over_reference.high:
        doubts.append("the interval of the speedup over reference.cu contains 1: neither is proved faster")
    over_baseline = history.speedup_over_baseline()
    if over_baseline is not None and over_baseline.high < 1:
        doubts.append("the vendor's library (baseline.py) is faster than the best kernel")
    doubts += money.doubts(money.cost(history))
    return tuple(dict.fromkeys(doubts))


def _doubts_of(name: str, evaluation: Evaluation | None) -> list[str]:
    if evaluation is None:
        return []
    doubts = [f"{name}: {doubt}" for doubt in evaluation.doubts]
    if evaluation.screen == "skipped":
        doubts.append(f"{name}: not screened for races and bounds: {evaluation.screen_note}")
    for case in evaluation.cases:
        if case.latency is not None:
            doubts += [f"{name}, {case.case}: {doubt}" for doubt in case.latency.doubts]
    return doubts
