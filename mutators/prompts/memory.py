"""What has been tried and what became of it: the nearest attempts in a line each, the rest as counts.

It stays short however long a search runs. Notes are a model's words and messages a tool's, so that all of it stands in
fences; an attempt at which a hidden case failed says that and no more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from evo.records import Attempt, MutationContext, Role, Status, Workload
from mutators.fences import fence, line
from mutators.fitting import Section
from mutators.prompts import priorities

NEAREST = 10
"""Attempts that get a line; a model seldom heeds more, and more of them than this come from far away."""
_FEW = 4
_MOST_NOTE = 160
_MOST_MESSAGE = 140
_NOISE = 0.02
"""Latencies that are nearer than this are called equal: two evaluations of one kernel differ by about as much."""

_OUTCOMES = {
    Status.NO_PROPOSAL: "no kernel",
    Status.DUPLICATE: "the same as an earlier kernel",
    Status.BAD_LAUNCH: "impossible launch",
    Status.UNSUPPORTED: "unsupported",
    Status.COMPILE_ERROR: "did not compile",
    Status.LAUNCH_ERROR: "launch failed",
    Status.WRONG_ANSWER: "wrong answer",
    Status.UNSAFE: "unsafe",
    Status.TIMEOUT: "too slow to finish",
    Status.CRASH: "crashed",
}


def section(context: MutationContext, nearest: int = NEAREST) -> tuple[Section, ...]:
    """Return what earlier attempts came to, most telling first; nothing where there were none.

    Args:
        context: gives the attempts; those that are parents are left out, since they are shown whole.
        nearest: how many get a line of their own at most.
    """
    shown = {parent.id for parent in context.parents}
    tried = [attempt for attempt in context.tried if attempt.status is not None and attempt.id not in shown]
    if not tried:
        return ()
    forms = [_text(tried, most, context.workload) for most in dict.fromkeys((nearest, _FEW, 0)) if most <= nearest]
    return (Section(forms[0], priorities.MEMORY, "what was tried", (*forms[1:], "")),)


def _text(tried: Sequence[Attempt], most: int, workload: Workload) -> str:
    near, rest = tried[:most], tried[most:]
    parts = ["# What was tried before", "Do not repeat what failed; build on what helped."]
    if near:
        parts += [fence("\n".join(_told(attempt, workload) for attempt in near))]
    if rest:
        parts += [f"{len(rest)} more attempts:" if near else f"{len(rest)} attempts:", fence("\n".join(_counts(rest)))]
    return "\n\n".join(parts)


def _told(attempt: Attempt, workload: Workload) -> str:
    """E.g. `#12 by edit, from #4: 1.12x faster: loads are float4 now`."""
    made_from = f", from {' and '.join(f'#{parent}' for parent in attempt.parents)}" if attempt.parents else ""
    said = f": {line(attempt.note, _MOST_NOTE)}" if attempt.note.strip() else ""
    why = _why(attempt, workload)
    return (
        f"#{attempt.id} by {_name(attempt.operator)}{made_from}: {outcome(attempt)}{f' ({why})' if why else ''}{said}"
    )


def _name(operator: str) -> str:
    """An operator's name; of one in a file no more than that, since a path is nobody's business."""
    return PurePath(operator).stem if operator.endswith(".py") else operator


def outcome(attempt: Attempt) -> str:
    """Say in a few words what became of an attempt, its latency as a multiple of its parent's."""
    if attempt.status is not Status.OK:
        return _OUTCOMES.get(attempt.status, "not evaluated") if attempt.status else "not evaluated"
    gain = _gain(attempt)
    if gain is None:
        return "right"
    if abs(gain - 1) <= _NOISE:
        return "right, as fast as its parent"
    return f"{gain:.2f}x faster" if gain > 1 else f"{1 / gain:.2f}x slower"


def _kind(attempt: Attempt) -> str:
    """The outcome without its figure, for counting."""
    if attempt.status is not Status.OK:
        return outcome(attempt)
    gain = _gain(attempt)
    if gain is None or abs(gain - 1) <= _NOISE:
        return "no faster"
    return "faster" if gain > 1 else "slower"


def _gain(attempt: Attempt) -> float | None:
    if not attempt.ratio or not attempt.parent_ratio:
        return None
    return attempt.parent_ratio / attempt.ratio


def _why(attempt: Attempt, workload: Workload) -> str:
    if attempt.status is Status.OK or not attempt.message:
        return ""
    hidden = [case.name for case in workload.role(Role.HIDDEN)]
    if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", attempt.message) for name in hidden):
        return "on a hidden case"
    return line(attempt.message, _MOST_MESSAGE)


def _counts(attempts: Sequence[Attempt]) -> list[str]:
    """E.g. `edit: 5 faster, 12 slower, 3 wrong answer`, the operator with most attempts first."""
    by_operator = Counter(_name(attempt.operator) for attempt in attempts)
    lines = []
    for operator, _ in by_operator.most_common():
        kinds = Counter(_kind(attempt) for attempt in attempts if _name(attempt.operator) == operator)
        lines.append(f"{operator}: {', '.join(f'{times} {kind}' for kind, times in kinds.most_common())}")
    return lines
