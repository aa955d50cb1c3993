"""A made-up history of a search, as reports see it, with the shapes that real ones have."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evo.records import (
    Candidate,
    Case,
    CaseResult,
    Compare,
    Comparison,
    Device,
    Evaluation,
    Latency,
    Mutate,
    Outcome,
    Role,
    Status,
    Workload,
)
from evo.report.history import History
from evo.store.rows import Event, Meta, Spent
from tests.support import runs

CASES = (
    Case("m64 n48 k32", Role.CORRECTNESS, {"M": 64}),
    Case("m17 n5 k33", Role.CORRECTNESS, {"M": 17}),
    Case("square 256", Role.PERFORMANCE, {"M": 256}),
    Case("tall 1024", Role.PERFORMANCE, {"M": 1024}),
    Case("wide 1024", Role.PERFORMANCE, {"M": 128}),
    Case("odd", Role.HIDDEN, {"M": 13}),
)
FAILURES = (Status.COMPILE_ERROR, Status.WRONG_ANSWER, Status.UNSAFE, Status.TIMEOUT)


def workload() -> Workload:
    """A workload of three timed cases; nothing here runs it."""
    fields = {**vars(runs.WORKLOAD), "name": "gemm", "cases": CASES}
    return Workload(**fields)


def history(count: int = 20, *, seed: int = 1, device: str = "host", folder: Path = Path("results/run-001")) -> History:
    """A search of `count` evaluations that gets faster, with failures of every kind."""
    rng = np.random.default_rng(seed)
    candidates, evaluations, comparisons, events = {}, {}, {}, []
    task, best, champion = 0, 1.0, 0
    candidates[0] = Candidate(0, -1, source(0), "hash-0", "initial", (), 0)
    evaluations[0] = verdict(0, Status.OK, (1.0, 1.0, 1.0))
    events.append(Event(1, "start", None, Outcome(-1, 0, Status.OK, 1.0), 0.0))
    for number in range(1, count + 1):
        operator = str(rng.choice(["rewrite", "rules"]))
        status = FAILURES[int(rng.integers(len(FAILURES)))] if rng.random() < 0.25 else Status.OK
        factors = tuple(best * rng.lognormal(-0.02, 0.3, 3))
        candidates[number] = Candidate(number, task, source(number), f"hash-{number}", operator, (champion,), 0, "note")
        evaluations[number] = verdict(number, status, factors)
        ratio = evaluations[number].ratio
        mutate = Mutate(task, operator, 0, (champion,))
        events.append(Event(len(events) + 1, "tell", mutate, Outcome(task, number, status, ratio), 0.0))
        task += 1
        if ratio is not None and ratio < best * 0.97:
            compare = Compare(task, number, champion, len(comparisons) + 1)
            step = ratio / best
            cases = dict(zip(("square 256", "tall 1024", "wide 1024"), (step, step * 1.1, step / 1.1), strict=True))
            comparisons[task] = Comparison(
                number, champion, Status.OK, step, step * 0.98, step * 1.02, 0.975, 12, True, cases
            )  # fmt: skip
            outcome = Outcome(task, number, Status.OK, promoted=True)
            events.append(Event(len(events) + 1, "tell", compare, outcome, 0.0))
            best, champion, task = ratio, number, task + 1
    kind = Device(device, "Intel Xeon, 2 cores", "cpu-1", "x86-64")
    meta = Meta(runs.config(seed=seed), workload(), kind, {"kernel-evo": "0.1.0"}, 1, 0.0, "evaluations")
    return History(
        folder, meta, tuple(events), candidates, evaluations, comparisons, (), Spent(9, 9000, 3000, 0.12), 71.0
    )


def source(number: int) -> str:
    """A kernel's text that differs in one line from another's."""
    return f"__global__ void gemm(float* C) {{\n    int tile = {number};\n    C[0] = tile;\n}}\n"


def verdict(number: int, status: Status, factors: tuple[float, ...]) -> Evaluation:
    """An evaluation whose timed cases took `factors` times 1000 µs, or that failed."""
    checks = (CaseResult(CASES[0].name, Role.CORRECTNESS, Status.OK, error=0.1),)
    if status is not Status.OK:
        wrong = CaseResult(CASES[1].name, Role.CORRECTNESS, status, "C[3]: expected 1, found 2")
        return Evaluation(
            number, status, "validate", f"kernel {number}: {status}", source(number), cases=(*checks, wrong)
        )
    timed = tuple(
        CaseResult(case.name, case.role, Status.OK, "", 0.2, latency(1000 * factor), 1000.0, {"BX": 32})
        for case, factor in zip(CASES[2:5], factors, strict=True)
    )
    ratio = float(np.exp(np.mean(np.log(factors))))
    checks += tuple(CaseResult(case.name, case.role, Status.OK, error=0.1) for case in (CASES[1], CASES[5]))
    return Evaluation(
        number, status, "time", source(number), "", 1000 * ratio, ratio, (*checks, *timed), device="cpu-1"
    )  # fmt: skip


def latency(median_us: float) -> Latency:
    """A latency with an interval of 2 % to either side."""
    return Latency(median_us, median_us * 0.98, median_us * 1.02, 0.03, 30)
