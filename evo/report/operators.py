"""What each operator, asking each model, made of its share of a run: as data, as a table, and what repairs took of it.

A pure function of the stored outcomes; what counts as an improvement is the search's own measure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evo import bandit
from evo.memory import Memory
from evo.population import cell_of
from evo.records import Mutate, Outcome
from evo.report.history import History

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Yield:
    """What came of the tasks of one operator with one model, so far as they have ended.

    Attributes:
        operator: plug-in name.
        model: name in the config; "" for one that asks none.
        tasks: that have ended.
        candidates: new kernels among them, which is what `budget.evaluations` counts.
        right: kernels with a score.
        improvements: kernels faster than their fastest parent; a repair counts from what the failed one was made from.
        gained: how many times faster all those steps are together, were they made one after the other.
        cost_usd: of their model calls, as far as prices are known.
        unpriced_tokens: of the other calls.
    """

    operator: str
    model: str
    tasks: int = 0
    candidates: int = 0
    right: int = 0
    improvements: int = 0
    gained: float = 1.0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0


@dataclass(frozen=True)
class Yields:
    """All of a run: `rows` by operator and model, those with most tasks first; `repairs` are their sum over repairs."""

    rows: tuple[Yield, ...]
    repairs: Yield

    @property
    def candidates(self) -> int:
        """Of all rows."""
        return sum(row.candidates for row in self.rows)

    @property
    def cost_usd(self) -> float:
        """Of all rows."""
        return sum(row.cost_usd for row in self.rows)


def yields(history: History) -> Yields:
    """Return what came of a run's tasks; a repair is a task whose parent had failed."""
    models = tuple(model.name for model in history.meta.config.models)
    rows: dict[bandit.Arm, Yield] = {}
    repairs = Yield("repairs", "")
    for task, outcome, bar, repairing in _steps(history):
        arm = (task.operator, task.model)
        known = rows.get(arm, Yield(task.operator, models[task.model] if task.model >= 0 else ""))
        rows[arm] = _with(known, outcome, bar)
        if repairing:
            repairs = _with(repairs, outcome, bar)
    return Yields(tuple(sorted(rows.values(), key=lambda row: (-row.tasks, row.operator, row.model))), repairs)


def parts(found: Yields) -> Iterator[RenderableType]:
    """Yield the table and what repairs took of the budget; nothing where one operator with one model did it all."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    if len(found.rows) < 2:
        return
    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for index, column in enumerate(("operator", "model", "tasks", "kernels", "right", "faster", "cost")):
        made.add_column(column, justify="left" if index < 2 else "right")
    for row in found.rows:
        counts = map(str, (row.tasks, row.candidates, row.right, row.improvements))
        made.add_row(row.operator, row.model or "–", *counts, _cost(row) if row.model else "–")
    yield made
    if found.repairs.tasks:
        yield repairs_in_words(found)


def repairs_in_words(found: Yields) -> str:
    """Return what share of the budget repairs took, and what came of them, in one sentence."""
    repairs = found.repairs
    share = f"{repairs.candidates / found.candidates:.0%}" if found.candidates else "none"
    money = f" and ${repairs.cost_usd:.2f} of ${found.cost_usd:.2f}" if found.cost_usd else ""
    return (
        f"Repairs took {repairs.candidates} of {found.candidates} evaluations ({share}){money}: {repairs.right} came "
        f"out right, {repairs.improvements} of them faster than what the failed kernel was made from."
    )


def _steps(history: History) -> Iterator[tuple[Mutate, Outcome, float, bool]]:
    """Yield each mutation that has ended, its outcome, the ratio it had to beat, and whether it was a repair."""
    memory: Memory | None = None
    for event in history.events:
        outcome = event.outcome
        if outcome is None:
            continue
        if event.task is None and outcome.ratio is not None:
            islands = 1 + max((candidate.island for candidate in history.candidates.values()), default=0)
            memory = Memory(islands, outcome.ratio, cell_of(outcome.descriptors))
        elif isinstance(event.task, Mutate) and memory is not None:
            task = event.task
            if task.inherited < 0:
                yield task, outcome, memory.bar(task.parents), memory.cell(task.parents[0]) is None
            if outcome.candidate is not None and outcome.evaluated:
                cell = cell_of(outcome.descriptors)
                memory.add(outcome.candidate, task.parents, task.island, outcome.score, cell)


def _with(known: Yield, outcome: Outcome, bar: float) -> Yield:
    gain = bandit.gain(bar, outcome.score)
    return replace(
        known,
        tasks=known.tasks + 1,
        candidates=known.candidates + outcome.evaluated,
        right=known.right + (outcome.score is not None),
        improvements=known.improvements + (gain > 0),
        gained=known.gained * math.exp(gain),
        cost_usd=known.cost_usd + outcome.cost_usd,
        unpriced_tokens=known.unpriced_tokens + outcome.unpriced_tokens,
    )


def _cost(row: Yield) -> str:
    if not row.unpriced_tokens:
        return f"${row.cost_usd:.2f}"
    priced = f"${row.cost_usd:.2f} + " if row.cost_usd else ""
    return f"{priced}{row.unpriced_tokens:,} tokens"
