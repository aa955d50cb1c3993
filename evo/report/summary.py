"""What a run came to, as data: `summary.json`. The figures for people are made from the same record.

No sentence but the doubts is written here, and nothing is measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evo.records import Latency, Role
from evo.report.history import History, Speedup

CPU_IS_NOT_GPU = "host device: latencies are the CPU's; CPU-fast is not GPU-fast"


@dataclass(frozen=True)
class Kernel:
    """One kernel's figures: id, operator and note, geometric mean and latency by performance case, configurations."""

    candidate: int
    operator: str
    note: str
    score_us: float | None
    latencies: Mapping[str, Latency]
    configs: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Summary:
    """What a run came to.

    Attributes:
        run: the folder's name.
        workload: its name.
        device: kind, name, fingerprint and limits.
        seed: of the run.
        stopped: why it stopped; None while it runs or when it was killed.
        elapsed_s: time worked on it.
        evaluations: candidates that reached screening or the evaluator.
        statuses: how often each occurred.
        cost: calls, tokens and US dollars.
        initial: the kernel that it began with.
        best: the champion.
        reference: latency by case of the workload's own CUDA reference; None where it has none.
        speedup: of the best over the initial kernel; None where nothing was compared.
        doubts: why the figures deserve distrust.
        versions: distribution name -> version.
    """

    run: str
    workload: str
    device: Mapping[str, Any]
    seed: int
    stopped: str | None
    elapsed_s: float
    evaluations: int
    statuses: Mapping[str, int]
    cost: Mapping[str, Any]
    initial: Kernel
    best: Kernel
    reference: Mapping[str, Latency] | None
    speedup: Speedup | None
    doubts: tuple[str, ...]
    versions: Mapping[str, str]


def summarise(history: History) -> Summary:
    """Sum up a run that has at least evaluated its initial kernel."""
    meta = history.meta
    return Summary(
        run=history.folder.name,
        workload=meta.workload.name,
        device=asdict(meta.device),
        seed=meta.config.seed,
        stopped=meta.stopped,
        elapsed_s=round(history.elapsed_s, 1),
        evaluations=history.evaluated,
        statuses={str(status): count for status, count in sorted(history.statuses.items())},
        cost=asdict(history.spent),
        initial=kernel_of(history, 0),
        best=kernel_of(history, history.champion),
        reference=None,
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
    cases = [case for case in evaluation.cases if case.role is Role.PERFORMANCE] if evaluation else []
    return Kernel(
        candidate=number,
        operator=candidate.operator,
        note=candidate.note,
        score_us=evaluation.score_us if evaluation else None,
        latencies={case.case: case.latency for case in cases if case.latency is not None},
        configs={case.case: dict(case.config) for case in cases},
    )


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
        doubts += _doubts_of(history, number)
    if history.spent.unpriced:
        doubts.append(f"{history.spent.unpriced} model calls have no known price; the cost is too low")
    return tuple(dict.fromkeys(doubts))


def _doubts_of(history: History, number: int) -> list[str]:
    evaluation = history.evaluations.get(number)
    if evaluation is None:
        return []
    doubts = [f"kernel {number}: {doubt}" for doubt in evaluation.doubts]
    if evaluation.screen == "skipped":
        doubts.append(f"kernel {number}: not screened for races and bounds: {evaluation.screen_note}")
    for case in evaluation.cases:
        if case.latency is not None:
            doubts += [f"kernel {number}, {case.case}: {doubt}" for doubt in case.latency.doubts]
    return doubts
