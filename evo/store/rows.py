"""How records lie in the rows of a run's database: `*_row` writes, `to_*` reads back. No SQL and no I/O here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from evo.config import Config
from evo.records import (
    Candidate,
    CaseResult,
    Compare,
    Comparison,
    Conditions,
    Device,
    Evaluation,
    Finding,
    Inherited,
    Latency,
    ModelFacts,
    ModelReply,
    ModelRequest,
    Mutate,
    Outcome,
    Profile,
    Resources,
    Role,
    Roofline,
    Status,
    Task,
    Trial,
    Turn,
    Workload,
    from_json,
    to_json,
)

Row = dict[str, Any]
R = TypeVar("R")


@dataclass(frozen=True)
class Meta:
    """What a run is made of.

    Attributes:
        config: resolved; holds the seed.
        workload: frozen: with its files' text.
        device: that the run began on.
        versions: distribution name -> version, of whatever decides the outcome.
        search_version: `Search.version` that asked the tasks.
        created_at: Unix time in seconds.
        stopped: why it last stopped, in one word; None while it runs or when it was killed.
        finale: the champion beside the initial kernel as given, measured when the search had ended.
        reference: the verdict on the workload's reference.cu; None without one, and until the search has ended.
        reference_finale: the champion beside reference.cu, measured when the search had ended.
        baseline_finale: the champion beside baseline.py, measured when the search had ended.
        models: what is known of the config's models, in order; None until somebody has asked.
        inherited: kernels of an earlier run that this one began with, best first.
    """

    config: Config
    workload: Workload
    device: Device
    versions: Mapping[str, str]
    search_version: int
    created_at: float
    stopped: str | None = None
    finale: Comparison | None = None
    reference: Evaluation | None = None
    reference_finale: Comparison | None = None
    baseline_finale: Comparison | None = None
    models: tuple[ModelFacts, ...] | None = None
    inherited: tuple[Inherited, ...] = ()


@dataclass(frozen=True)
class Event:
    """One step of the search's history.

    Attributes:
        seq: position, from 1.
        kind: `start` (the initial kernel's outcome), `ask` or `tell`.
        task: that was asked or told; None for `start`.
        outcome: what was told; None for `ask`.
        at: Unix time in seconds.
    """

    seq: int
    kind: Literal["start", "ask", "tell"]
    task: Task | None
    outcome: Outcome | None
    at: float


@dataclass(frozen=True)
class Call:
    """One model call that was paid for: the `step`-th of its task, at Unix time `at` in seconds."""

    task: int
    step: int
    request: ModelRequest
    reply: ModelReply
    at: float


@dataclass(frozen=True)
class Sent:
    """One request on its way to a model, stored before it leaves.

    Attributes:
        task: that asks.
        step: which request of the task.
        model: index into the config's models.
        usd: set aside for it; None where the price is unknown.
        tokens: set aside for it, of prompt and reply.
    """

    task: int
    step: int
    model: int
    usd: float | None
    tokens: int


@dataclass(frozen=True)
class OpenTask:
    """A task that was asked and never told, with all that is stored of it: where a resumed run goes on.

    Attributes:
        task: as asked.
        turns: replies of the model with what tools said, in order; none is asked for again.
        sent: how often the request behind them was sent, without an answer.
        candidate: the kernel that it made, if it came so far.
        evaluation: of the candidate, if it came so far.
        comparison: for a `Compare`, if it came so far.
    """

    task: Task
    turns: tuple[Turn, ...] = ()
    sent: int = 0
    candidate: Candidate | None = None
    evaluation: Evaluation | None = None
    comparison: Comparison | None = None


@dataclass(frozen=True)
class Spent:
    """What the model calls of a run have cost so far.

    Attributes:
        calls: that were answered, well or badly.
        input_tokens: of their prompts.
        output_tokens: of their replies.
        cost_usd: as billed, where the price is known.
        unpriced: calls without a known price, which add nothing to `cost_usd`.
        unsure: requests that were sent and not answered: in flight, or interrupted, and then perhaps billed.
        unsure_usd: set aside for those.
        unsure_tokens: set aside for those.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    unsure: int = 0
    unsure_usd: float = 0.0
    unsure_tokens: int = 0


def meta_row(meta: Meta) -> Row:
    """Return the row of `runs`; when it was created is for the database to say."""
    return {
        "id": 1,
        "config": meta.config.model_dump_json(),
        "workload": to_json(meta.workload),
        "device": to_json(meta.device),
        "seed": meta.config.seed,
        "versions": json.dumps(dict(meta.versions)),
        "search_version": meta.search_version,
        "inherited": to_json(meta.inherited),
    }


def to_meta(row: Row) -> Meta:
    """Read a row of `runs`."""
    return Meta(
        config=Config.model_validate_json(row["config"]),
        workload=from_json(Workload, row["workload"]),
        device=from_json(Device, row["device"]),
        versions=json.loads(row["versions"]),
        search_version=row["search_version"],
        created_at=row["created_at"],
        stopped=row["stopped"],
        finale=_optional(Comparison, row["finale"]),
        reference=_optional(Evaluation, row["reference"]),
        reference_finale=_optional(Comparison, row["reference_finale"]),
        baseline_finale=_optional(Comparison, row["baseline_finale"]),
        models=_optional(_FACTS, row["models"]),
        inherited=_optional(_INHERITED, row["inherited"]) or (),
    )


_FACTS = tuple[ModelFacts, ...]
_INHERITED = tuple[Inherited, ...]


def _optional(kind: type[R], text: str | None) -> R | None:
    return None if text is None else from_json(kind, text)


def task_row(task: Task) -> Row:
    """Return the row of `tasks`."""
    row: Row = {"id": task.id, "kind": task.kind, "record": to_json(task)}
    if isinstance(task, Mutate):
        row |= {"operator": task.operator, "model": task.model, "island": task.island}
    return row


def to_task(record: str, kind: str) -> Task:
    """Read the column `record` of `tasks`."""
    return from_json(Mutate, record) if kind == "mutate" else from_json(Compare, record)


def call_row(task: int, step: int, request: ModelRequest, reply: ModelReply) -> Row:
    """Return the row of `calls`."""
    return {
        "task": task,
        "step": step,
        "request": to_json(request),
        "reply": to_json(reply),
        "status": reply.status,
        "model": reply.model,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cost_usd": reply.cost_usd,
        "latency_s": reply.latency_s,
        "uncertain": reply.uncertain,
    }


def to_call(row: Row) -> Call:
    """Read a row of `calls`."""
    request, reply = from_json(ModelRequest, row["request"]), from_json(ModelReply, row["reply"])
    return Call(row["task"], row["step"], request, reply, row["at"])


def candidate_row(candidate: Candidate) -> Row:
    """Return the row of `candidates`; the initial kernel's task, -1, is none."""
    names = ("id", "hash", "operator", "island", "note", "source")
    row: Row = {name: getattr(candidate, name) for name in names}
    return row | {"task": candidate.task if candidate.task >= 0 else None}


def parent_rows(candidate: Candidate) -> list[Row]:
    """Return the rows of `parents`, one for each parent in order."""
    return [
        {"child": candidate.id, "position": position, "parent": parent}
        for position, parent in enumerate(candidate.parents)
    ]


def to_candidate(row: Row, parents: Iterable[int]) -> Candidate:
    """Read a row of `candidates`."""
    return Candidate(
        id=row["id"],
        task=-1 if row["task"] is None else row["task"],
        source=row["source"],
        hash=row["hash"],
        operator=row["operator"],
        parents=tuple(parents),
        island=row["island"],
        note=row["note"],
    )


def evaluation_row(evaluation: Evaluation) -> Row:
    """Return the row of `evaluations`, without cases and trials."""
    plain = ("candidate", "status", "stage", "message", "source", "score_us", "ratio")
    row: Row = {name: getattr(evaluation, name) for name in (*plain, "device", "screen", "screen_note")}
    for name in ("findings", "resources", "descriptors", "doubts", "stage_seconds"):
        row[name] = to_json(getattr(evaluation, name))
    row["profile"] = None if evaluation.profile is None else to_json(evaluation.profile)
    return row


def case_rows(evaluation: Evaluation) -> list[Row]:
    """Return the rows of `case_results`, in order."""
    return [_case_row(evaluation.candidate, i, case) for i, case in enumerate(evaluation.cases)]


def _case_row(candidate: int, position: int, case: CaseResult) -> Row:
    latency = case.latency
    return {
        "candidate": candidate,
        "position": position,
        "case_name": case.case,
        "role": case.role,
        "status": case.status,
        "message": case.message,
        "error": case.error,
        "median_us": latency and latency.median_us,
        "low_us": latency and latency.low_us,
        "high_us": latency and latency.high_us,
        "noise": latency and latency.noise,
        "samples": latency and latency.samples,
        "doubts": latency and to_json(latency.doubts),
        "anchor_us": case.anchor_us,
        "config": json.dumps(dict(case.config)),
        "conditions": case.conditions and to_json(case.conditions),
        "roofline": case.roofline and to_json(case.roofline),
    }


def trial_rows(evaluation: Evaluation) -> list[Row]:
    """Return the rows of `trials`, in order."""
    return [
        {
            "candidate": evaluation.candidate,
            "position": position,
            "case_name": trial.case,
            "config": json.dumps(dict(trial.config)),
            "status": trial.status,
            "latency_us": trial.latency_us,
            "message": trial.message,
        }
        for position, trial in enumerate(evaluation.trials)
    ]


def to_evaluation(row: Row, cases: Iterable[Row], trials: Iterable[Row]) -> Evaluation:
    """Read a row of `evaluations` with its `case_results` and `trials`."""
    plain = ("candidate", "stage", "message", "source", "score_us", "ratio", "device", "screen", "screen_note")
    return Evaluation(
        **{name: row[name] for name in plain},
        status=Status(row["status"]),
        cases=tuple(_to_case(case) for case in cases),
        trials=tuple(_to_trial(trial) for trial in trials),
        findings=from_json(tuple[Finding, ...], row["findings"]),
        resources=from_json(dict[str, Resources], row["resources"]),
        descriptors=json.loads(row["descriptors"]),
        doubts=tuple(json.loads(row["doubts"])),
        stage_seconds=json.loads(row["stage_seconds"]),
        profile=_optional(Profile, row["profile"]),
    )


def _to_case(row: Row) -> CaseResult:
    figures = ("median_us", "low_us", "high_us", "noise", "samples")
    latency = None
    if row["median_us"] is not None:
        doubts = tuple(json.loads(row["doubts"]))
        latency = Latency(**{name: row[name] for name in figures}, doubts=doubts)
    return CaseResult(
        case=row["case_name"],
        role=Role(row["role"]),
        status=Status(row["status"]),
        message=row["message"],
        error=row["error"],
        latency=latency,
        anchor_us=row["anchor_us"],
        config=json.loads(row["config"]),
        conditions=_optional(Conditions, row["conditions"]),
        roofline=_optional(Roofline, row["roofline"]),
    )


def _to_trial(row: Row) -> Trial:
    config, status = json.loads(row["config"]), Status(row["status"])
    return Trial(row["case_name"], config, status, row["latency_us"], row["message"])


def comparison_row(task: int, comparison: Comparison) -> Row:
    """Return the row of `comparisons`."""
    plain = ("challenger", "champion", "status", "ratio", "low", "high", "confidence", "blocks", "message")
    row: Row = {name: getattr(comparison, name) for name in plain}
    return row | {
        "task": task,
        "promoted": int(comparison.promoted),
        "cases": json.dumps(dict(comparison.cases)),
    }


def to_comparison(row: Row) -> Comparison:
    """Read a row of `comparisons`."""
    plain = ("challenger", "champion", "ratio", "low", "high", "confidence", "blocks", "message")
    return Comparison(
        **{name: row[name] for name in plain},
        status=Status(row["status"]),
        promoted=bool(row["promoted"]),
        cases=json.loads(row["cases"]),
    )


def to_event(row: Row) -> Event:
    """Read a row of `events` joined with its task's `record` and kind (as `task_kind`)."""
    return Event(
        seq=row["seq"],
        kind=row["kind"],
        task=None if row["record"] is None else to_task(row["record"], row["task_kind"]),
        outcome=None if row["outcome"] is None else from_json(Outcome, row["outcome"]),
        at=row["at"],
    )
