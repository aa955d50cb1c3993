"""Whether anything came of a run, and where nothing did, the sentence that says why.

Nothing came of it when it has ended and no kernel but the initial one was ever right: what a model says is junk, or
the machine judges none of it. Such a run has no result, whatever the tuner made of the initial kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from evo.records import Mutate, Outcome, Status
from evo.report.history import History

_GOES_ON = (None, "interrupted", "prompts")
"""Why a run stands still that has not ended."""
_NOTHING = (Status.NO_PROPOSAL, Status.DUPLICATE)


def why(history: History) -> str:
    """Return why no kernel came of the run, in one sentence; "" where one did, or where the run goes on."""
    if history.meta.stopped in _GOES_ON or 0 not in history.evaluations or _right(history):
        return ""
    told = [(event.task, event.outcome) for event in history.events if isinstance(event.task, Mutate)]
    outcomes = [(task, outcome) for task, outcome in told if isinstance(task, Mutate) and outcome is not None]
    judged = Counter(str(outcome.status) for _, outcome in outcomes if outcome.status not in _NOTHING)
    barren = [(task, outcome) for task, outcome in outcomes if outcome.status in _NOTHING]
    parts = []
    if barren:
        row = " in a row" if history.meta.stopped == "idle" and not judged else ""
        kinds = _listed(_kinds(history, barren))
        parts.append(f"{len(barren)} {_noun('task', len(barren))}{row} gave nothing to evaluate ({kinds})")
    if number := sum(judged.values()):
        parts.append(f"{number} {_noun('kernel', number)} judged and none right ({_listed(judged)})")
    return f"No kernel came of this run: {'; '.join(parts) or f'it ended ({history.meta.stopped}) before any was made'}"


def tuned(history: History) -> bool:
    """Whether the tuner has changed the champion: in a run without result, its launch rules are worth keeping."""
    return history.source(history.champion) != history.candidates[0].source


def _right(history: History) -> bool:
    return any(number != 0 and verdict.status is Status.OK for number, verdict in history.evaluations.items())


def _kinds(history: History, barren: Iterable[tuple[Mutate, Outcome]]) -> Counter[str]:
    failed = {call.task: call.reply.status == "error" for call in history.calls}  # the last call of a task decides
    return Counter(_kind(task, outcome, failed) for task, outcome in barren)


def _kind(task: Mutate, outcome: Outcome, failed: Mapping[int, bool]) -> str:
    if outcome.status is Status.DUPLICATE:
        return "duplicate"
    if task.model < 0:
        return "offline rule without effect"
    return "failed call" if failed.get(task.id) else "reply without a new kernel"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {_noun(kind.replace('_', ' '), count)}" for kind, count in counts.most_common())


def _noun(kind: str, count: int) -> str:
    if count == 1 or kind.endswith("h"):  # "bad launch" and "crash" name a verdict, not a thing
        return kind
    first, without, rest = kind.partition(" without ")
    return (f"{first[:-1]}ies" if first.endswith("y") else f"{first}s") + without + rest
