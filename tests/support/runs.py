"""A made-up run: a small workload, its records, and a repeatable evaluator that needs no kernel."""

from __future__ import annotations

import numpy as np

from evo.config import Config
from evo.records import (
    Candidate,
    Case,
    CaseResult,
    Compare,
    Comparison,
    Device,
    Direction,
    Draw,
    Evaluation,
    Finding,
    Latency,
    Outcome,
    Parameter,
    Resources,
    Role,
    Status,
    Task,
    Tolerance,
    Trial,
    Workload,
)

DEVICE = Device("host", "a CPU", "cpu-1", "x86-64")

WORKLOAD = Workload(
    name="copy",
    description="Copy n numbers.",
    entry="copy",
    parameters=(
        Parameter("x", "float32", Direction.IN, ("n",), draw=Draw("file", file="x.npy")),
        Parameter("y", "float32", Direction.OUT, ("n",)),
    ),
    cases=(
        Case("small", Role.CORRECTNESS, {"n": 7}),
        Case("large", Role.PERFORMANCE, {"n": 4096}),
        Case("odd", Role.HIDDEN, {"n": 4095}, {"x": Draw("one_hot")}),
    ),
    tolerance={"": Tolerance(exact=True)},
    deterministic=True,
    fast_math=False,
    flops="0",
    bytes_moved="8 * n",
    reference="def reference(inputs, dims): return {'y': inputs['x']}",
    initial="// initial",
    files={"x.npy": b"\x93NUMPY\x00\xff"},
)


def config(**changes: object) -> Config:
    """A resolved config; `search`, `budget` and so on are mappings."""
    return Config.model_validate({"workload": "copy", **changes})


def candidate(number: int, task: int = -1, parents: tuple[int, ...] = (), island: int = 0) -> Candidate:
    """A candidate whose source and hash tell its number."""
    return Candidate(number, task, f"// kernel {number}\n", f"hash-{number}", "rules", parents, island, "a note")


def evaluation(number: int, ratio: float | None = 0.5) -> Evaluation:
    """A full evaluation of an OK candidate, or of one that gave a wrong answer when `ratio` is None."""
    if ratio is None:
        return Evaluation(number, Status.WRONG_ANSWER, "validate", "y[3]: expected 1, found 2")
    latency = Latency(12.5, 12.0, 13.0, 0.04, 100, ("noisy",))
    return Evaluation(
        candidate=number,
        status=Status.OK,
        stage="time",
        source=f"// tuned {number}\n",
        score_us=12.5,
        ratio=ratio,
        cases=(
            CaseResult("small", Role.CORRECTNESS, Status.OK, error=0.25),
            CaseResult("large", Role.PERFORMANCE, Status.OK, "", 0.5, latency, 25.0, {"BX": 32, "BY": 8}),
        ),
        trials=(
            Trial("large", {"BX": 32}, Status.OK, 12.5),
            Trial("large", {"BX": 64}, Status.LAUNCH_ERROR, None, "too many"),
        ),
        findings=(Finding("race", "block 1, thread 2", line=3, other_line=4, count=5),),
        resources={"copy": Resources(registers=32, spill_bytes=0)},
        descriptors={"staging": "shared", "unit": "scalar", "outputs": "few"},
        device="cpu-1",
        screen="passed",
        doubts=("this is a CPU",),
        stage_seconds={"compile": 0.5, "time": 1.25},
    )


def outcome(task: Task, seed: int = 0) -> Outcome:
    """How a task ends: a pure function of the task and the seed. The candidate of task k is k + 1."""
    rng = np.random.default_rng((seed, task.id, 99))
    if isinstance(task, Compare):
        return Outcome(task.id, task.challenger, Status.OK, promoted=bool(rng.random() < 0.5))
    fate = rng.random()
    if fate < 0.1:
        return Outcome(task.id, None, Status.NO_PROPOSAL)
    if fate < 0.2:
        return Outcome(task.id, 0, Status.DUPLICATE)
    cost_usd = float(rng.lognormal(-4.5, 0.5)) if task.model >= 0 else 0.0
    if fate < 0.35:
        status = Status.COMPILE_ERROR if fate < 0.28 else Status.WRONG_ANSWER
        return Outcome(task.id, task.id + 1, status, cost_usd=cost_usd)
    descriptors = {"staging": str(rng.choice(["direct", "shared"])), "outputs": str(rng.choice(["1", "few"]))}
    ratio = float(rng.lognormal(-0.3, 0.3))
    return Outcome(task.id, task.id + 1, Status.OK, ratio, descriptors, cost_usd=cost_usd)


def comparison(task: Compare, promoted: bool) -> Comparison:
    """A comparison that went as told."""
    return Comparison(task.challenger, task.champion, Status.OK, 0.9, 0.85, 0.95, 0.975, 12, promoted, {"large": 0.9})
