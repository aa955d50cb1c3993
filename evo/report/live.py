"""What a person or a machine sees while a run goes on: a live panel, plain lines, or lines of JSON.

Each class here is an observer of the runner: it hears events and returns at once. Nothing is decided or stored here.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evo.records import INHERITED, Compare, Evaluation, Status, to_json
from evo.report import style
from evo.report.history import History
from evo.report.summary import CPU_IS_NOT_GPU

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType

LATEST = 8  # lines of the panel that tell what happened last
WIDEST_NOTE = 90


@dataclass
class Progress:
    """Where a run stands, as told by its events.

    Attributes:
        clock: seconds from any fixed moment.
        title: workload and device.
        host: whether latencies are a CPU's.
        budget: evaluations that the run may make.
        evaluated: that it has made.
        open: ids of the mutations in flight.
        comparing: comparisons in flight.
        counts: outcomes by status.
        cost_usd: of model calls so far.
        best: how many times faster than the initial kernel the champion is, as evaluated.
        champion: its id.
        phase: what is going on, in words.
    """

    clock: Callable[[], float] = time.monotonic
    title: str = ""
    folder: str = ""
    host: bool = False
    budget: int = 0
    evaluated: int = 0
    open: set[int] = field(default_factory=set)
    comparing: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    cost_usd: float = 0.0
    best: float = 1.0
    champion: int = 0
    phase: str = "starting"
    _began: float = field(init=False)
    _first_ratio: float | None = None
    _factors: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def seconds(self) -> float:
        """Time since this sitting began."""
        return self.clock() - self._began

    def recall(self, history: History) -> None:
        """Take up what earlier sittings of the run have done."""
        self.evaluated = history.evaluated
        self.counts.update({str(status): count for status, count in history.statuses.items()})
        self.cost_usd = history.spent.cost_usd
        first = history.evaluations.get(0)
        self._first_ratio = first.ratio if first else None
        factors = {number: history.factor(number) for number in history.evaluations}
        self._factors = {number: factor for number, factor in factors.items() if factor is not None}
        self._crown(history.champion)

    def take(self, kind: str, facts: Mapping[str, Any]) -> str | None:
        """Take one event; return the line that tells of it, or None when it deserves none."""
        handler: Callable[..., str | None] | None = getattr(self, f"_take_{kind}", None)
        return handler(**facts) if handler else None

    def _take_started(self, folder: Any, workload: Any, device: Any, config: Any) -> str:
        self.title = f"{workload.name} on {device.name}"
        self.folder, self.host = str(folder), device.kind == "host"
        self.budget = config.budget.evaluations
        self.phase = "evaluating the initial kernel" if self._first_ratio is None else "searching"
        return f"{self.title} → {folder}" + (f"  ({CPU_IS_NOT_GPU})" if self.host else "")

    def _take_other_device(self, began_on: Any, now: Any) -> str:
        return f"this run began on {began_on.name}; its latencies do not compare with those of {now.name}"

    def _take_initial(self, candidate: Any, evaluation: Evaluation) -> str:
        self.phase, self._first_ratio = "searching", evaluation.ratio
        return f"kernel 0 (initial): {_verdict(evaluation)}, {evaluation.score_us or 0:.0f} µs"

    def _take_asked(self, task: Any) -> None:
        if isinstance(task, Compare):
            self.comparing += 1
        else:
            self.open.add(task.id)

    def _take_replied(self, task: Any, reply: Any) -> str | None:
        self.cost_usd += reply.cost_usd or 0.0
        return None if reply.status == "ok" else f"task {task.id}: the model failed: {_short(reply.error)}"

    def _take_prompt(self, task: Any) -> str:
        return f"task {task.id} ({task.operator}): its prompt waits for a person"

    def _take_no_proposal(self, task: Any, status: Status, note: str) -> str:
        self.open.discard(task.id)
        self.counts[str(status)] += 1
        return f"task {task.id} ({task.operator}): {_words(status)} – {_short(note)}"

    def _take_evaluated(self, candidate: Any, evaluation: Evaluation) -> str:
        self.open.discard(candidate.task)
        self.evaluated += candidate.operator != INHERITED
        self.counts[str(evaluation.status)] += 1
        line = f"kernel {candidate.id} ({candidate.operator}): {_verdict(evaluation)}"
        if evaluation.ratio and self._first_ratio:
            self._factors[candidate.id] = self._first_ratio / evaluation.ratio
            line += f", {style.times(self._factors[candidate.id])}"
        note = candidate.note if evaluation.status is Status.OK else evaluation.message
        return f"{line} – {_short(note)}" if note else line

    def _take_compared(self, comparison: Any) -> str:
        self.comparing = max(0, self.comparing - 1)
        pair = f"kernel {comparison.challenger} against {comparison.champion}"
        if comparison.status is not Status.OK or not comparison.ratio:
            return f"{pair}: {_words(comparison.status)} – {_short(comparison.message)}"
        verdict = "proved faster" if comparison.promoted else "not proved faster"
        note = f" – {comparison.message}" if comparison.promoted and comparison.message else ""
        return f"{pair}: {verdict}, {style.times(1 / comparison.ratio)} in {comparison.blocks} blocks{note}"

    def _take_not_profiled(self, message: str) -> str:
        return message

    def _take_champion(self, candidate: int, ratio: float) -> None:
        self._crown(candidate)

    def _take_evaluator_lost(self, message: str, task: Any = None) -> str:
        return f"an evaluator or worker died and was replaced: {_short(message)}"

    def _take_unpriced(self, models: Sequence[str]) -> str:
        names, verb = ", ".join(models), "is" if len(models) == 1 else "are"
        return (
            f"the price of {names} {verb} unknown: budget.cost_usd does not limit its calls. Set budget.tokens "
            "(--tokens), or the model's input_usd_per_million and output_usd_per_million"
        )

    def _take_harvesting(self, calls: int) -> str:
        self.phase = "waiting for replies that are on their way"
        return f"waiting for {calls} replies that are on their way, since they are paid for (Ctrl-C again ends at once)"

    def _take_draining(self, reason: str, open: int) -> str:
        self.phase = f"finishing ({_words(reason)})"
        return f"stopping ({_words(reason)}); {open} tasks still in flight"

    def _take_interrupted(self, open: int) -> str:
        self.phase = "stopping"
        return f"interrupted; stopping, and {open} tasks wait for `evo resume` (Ctrl-C again ends at once)"

    def _take_finale(self, comparison: Any) -> str:
        factor = style.times(1 / comparison.ratio)
        return f"kernel {comparison.challenger} measured again beside the initial kernel: {factor}"

    def _take_reference(self, evaluation: Evaluation) -> str:
        if evaluation.status is not Status.OK:
            return f"reference.cu: {_verdict(evaluation)} – {_short(evaluation.message)}"
        return f"reference.cu: {_verdict(evaluation)}, {evaluation.score_us or 0:.0f} µs"

    def _take_reference_compared(self, comparison: Any) -> str:
        pair = f"kernel {comparison.challenger} measured beside reference.cu"
        if not comparison.ratio:
            return f"{pair}: {_words(comparison.status)} – {_short(comparison.message)}"
        return f"{pair}: {style.times(1 / comparison.ratio)}"

    def _take_baseline_compared(self, comparison: Any) -> str:
        pair = f"kernel {comparison.challenger} measured beside the vendor's library (baseline.py)"
        if not comparison.ratio:
            return f"{pair}: {_words(comparison.status)} – {_short(comparison.message)}"
        return f"{pair}: {style.times(1 / comparison.ratio)}"

    def _take_stopped(self, result: Any) -> str:
        self.phase = "done"
        return f"stopped: {_words(result.reason)}"

    def _crown(self, candidate: int) -> None:
        self.champion = candidate
        self.best = self._factors.get(candidate, self.best)


class PlainLines:
    """Writes one line per event that matters; for pipes and logs."""

    def __init__(self, write: Callable[[str], None], progress: Progress) -> None:
        """Write through `write`, which adds the line break."""
        self._write = write
        self._progress = progress

    def event(self, kind: str, **facts: Any) -> None:
        """Take one event."""
        line = self._progress.take(kind, facts)
        if line is not None:
            self._write(f"{self._progress.seconds:6.1f} s  {line}")

    def __enter__(self) -> PlainLines:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put away."""


class JsonLines:
    """Writes every event as one JSON object a line; for machines."""

    def __init__(self, write: Callable[[str], None]) -> None:
        """Write through `write`, which adds the line break."""
        self._write = write

    def event(self, kind: str, **facts: Any) -> None:
        """Take one event."""
        plain = {name: _plain(fact) for name, fact in facts.items() if name != "workload"}
        self._write(json.dumps({"event": kind, **plain}))

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to put away."""


class Panel:
    """Redraws a few lines in place; for a terminal."""

    def __init__(self, console: Console, progress: Progress) -> None:
        """Draw on `console`."""
        from rich.live import Live

        self._progress = progress
        self._latest: deque[str] = deque(maxlen=LATEST)
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4, transient=True)

    def event(self, kind: str, **facts: Any) -> None:
        """Take one event."""
        line = self._progress.take(kind, facts)
        if line is not None:
            self._latest.append(line)

    def __enter__(self) -> Panel:
        self._live.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        """Take the panel off the screen, if there still is one."""
        with contextlib.suppress(OSError):
            self._live.__exit__(*failure)

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        at = self._progress
        bar = Table.grid(padding=(0, 1))
        done = ProgressBar(total=max(at.budget, 1), completed=min(at.evaluated, at.budget), width=24)
        bar.add_row(done, _standing(at))
        counts = " · ".join(f"{_words(status)} {count}" for status, count in sorted(at.counts.items()))
        lines: list[RenderableType] = [
            Text(f"{at.title}: {at.phase}", style="bold"),
            bar,
            Text(f"best {style.times(at.best)} (kernel {at.champion})", style="bold green"),
            Text(counts or "no verdict yet", style="dim"),
            Text(""),
            *(Text(line, overflow="ellipsis", no_wrap=True) for line in self._latest),
        ]
        if at.host:
            lines += [Text(""), Text(CPU_IS_NOT_GPU, style="yellow")]
        return Group(*lines)


def _standing(at: Progress) -> str:
    minutes, seconds = divmod(int(at.seconds), 60)
    cost = f" · ${at.cost_usd:.2f}" if at.cost_usd else ""
    in_flight = f"{len(at.open)} in flight" + (f" and {at.comparing} comparison" if at.comparing else "")
    return f"{at.evaluated}/{at.budget} · {in_flight} · {minutes}:{seconds:02}{cost}"


def _verdict(evaluation: Evaluation) -> str:
    return _words(evaluation.status)


def _words(name: str) -> str:
    return str(name).replace("_", " ")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDEST_NOTE else line[: WIDEST_NOTE - 1] + "…"


def _plain(fact: Any) -> Any:
    if isinstance(fact, str | int | float | bool | None):
        return fact
    if hasattr(fact, "model_dump"):
        return fact.model_dump(mode="json")
    if hasattr(fact, "__dataclass_fields__"):
        return json.loads(to_json(fact))
    return str(fact)
