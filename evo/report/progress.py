"""The picture of a search over time: every candidate's speed, and the line of those that were proved faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evo.records import Compare, Mutate, Status
from evo.report import style
from evo.report.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import Locator


@dataclass(frozen=True)
class Point:
    """One evaluated candidate: the `position`-th, how many times faster than the first (None: failed).

    Inherited ones have no place among those that the budget counts; theirs is 0.
    """

    position: int
    candidate: int
    operator: str
    status: Status
    factor: float | None


@dataclass(frozen=True)
class Crown:
    """A champion: which candidate, its measured factor, and after how many evaluations it was proved."""

    position: int
    candidate: int
    factor: float


def draw(history: History, stem: Path) -> tuple[Path, ...]:
    """Draw the progress into `stem`.png and `stem`.svg."""
    points, crowns = trace(history)
    failed = sorted({point.status for point in points if point.factor is None})
    rug_inches = 0.25 * len(failed)
    picture = style.figure(8.5, 4.6 + rug_inches)
    last = max((point.position for point in points), default=1)
    if failed:
        axes, rug = picture.subplots(2, sharex=True, height_ratios=(4.2, rug_inches), gridspec_kw={"hspace": 0.02})
        _failures(rug, points, failed)
    else:
        axes = rug = picture.subplots()
    _scatter(axes, points)
    _staircase(axes, crowns, last)
    _label(axes, history, last)
    _label_evaluations(rug)
    return style.save(picture, stem)


def trace(history: History) -> tuple[list[Point], list[Crown]]:
    """Follow the stored events: what was evaluated in which order, and when a champion was proved."""
    points, crowns, position = [], [Crown(0, 0, 1.0)], 0
    for event in history.events:
        if event.outcome is None:
            continue
        candidate, status = event.outcome.candidate, event.outcome.status
        if candidate is None or status in (Status.NO_PROPOSAL, Status.DUPLICATE):
            continue
        if isinstance(event.task, Mutate):
            counted = event.task.inherited < 0
            position += counted
            operator = history.candidates[candidate].operator
            points.append(Point(position if counted else 0, candidate, operator, status, history.factor(candidate)))
        if isinstance(event.task, Compare) and event.outcome.promoted:
            crowns.append(Crown(position, candidate, history.factor(candidate) or math.nan))
    return points, crowns


def _scatter(axes: Axes, points: Sequence[Point]) -> None:
    operators = sorted({point.operator for point in points})
    for operator, colour in zip(operators, style.PALETTE * len(operators), strict=False):
        own = [point for point in points if point.operator == operator and point.factor is not None]
        if not own:
            continue
        positions, factors = [point.position for point in own], [point.factor or math.nan for point in own]
        axes.scatter(positions, factors, s=26, color=colour, alpha=0.75, linewidths=0, label=operator, zorder=3)
    if len(operators) > 1:
        axes.legend(frameon=False, fontsize=9, loc="upper left", handletextpad=0.2)


def _staircase(axes: Axes, crowns: Sequence[Crown], last: int) -> None:
    positions = [*(crown.position for crown in crowns), max(last, crowns[-1].position)]
    factors = [*(crown.factor for crown in crowns), crowns[-1].factor]
    axes.step(positions, factors, where="post", color=style.INK, linewidth=1.6, zorder=2)
    labelled = 0.0
    for crown in crowns[1:-1]:
        if crown.position - labelled < last / 30:  # nearer, the labels would cover each other
            continue
        labelled = crown.position
        axes.annotate(
            f"{crown.candidate}",
            (crown.position, crown.factor),
            xytext=(-3, 4),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=style.QUIET,
        )
    best = crowns[-1]
    words = f"{style.times(best.factor)}\nkernel {best.candidate}" if best.candidate else "first kernel"
    axes.annotate(
        words,
        (positions[-1], best.factor),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        fontsize=11,
        fontweight="bold",
        color=style.INK,
        annotation_clip=False,
    )


def _failures(rug: Axes, points: Sequence[Point], statuses: Sequence[Status]) -> None:
    """One row per status, so that no failure is hidden behind a missing dot."""
    style.bare(rug)
    labels = []
    for row, status in enumerate(statuses):
        own = [point.position for point in points if point.factor is None and point.status is status]
        rug.plot(own, [row] * len(own), "|", color=style.WRONG, markersize=8, clip_on=False)
        labels.append(f"{status.replace('_', ' ')} ({len(own)})")
    rug.set_ylim(len(statuses) - 0.4, -0.6)
    rug.set_yticks(range(len(statuses)), labels, color=style.WRONG, fontsize=8.5)


def _label(axes: Axes, history: History, last: int) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    style.bare(axes, keep=("bottom",))
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, 0.8), max(high, 1.6))
    axes.yaxis.set_major_locator(_ticks(*axes.get_ylim()))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=style.FAINT, linewidth=0.8, zorder=0)
    axes.set_xlim(-0.3, last + 0.5)
    words = f"{history.meta.workload.name} on {history.meta.device.name}: speed relative to the first kernel"
    note = "dots: candidates that passed every check; line: those that won an interleaved comparison"
    style.title(axes, words, note)


def _label_evaluations(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    axes.set_xlabel("evaluations", fontsize=9, color=style.INK, loc="right")


def _ticks(low: float, high: float) -> Locator:
    from matplotlib.ticker import FixedLocator

    steps = (1, 1.5, 2, 3, 5, 7) if high / low < 12 else (1, 2, 5)
    candidates = [step * 10.0**power for power in range(-3, 6) for step in steps]
    return FixedLocator([tick for tick in candidates if low <= tick <= high])
