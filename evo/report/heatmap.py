"""The picture of cases × candidates: how fast each candidate ran each case, and what became of those that failed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evo.records import Case, CaseResult, Evaluation, Role, Status
from evo.report import style
from evo.report.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar

MOST_COLUMNS = 80  # beyond, columns are too narrow to be told apart; the champions and the last ones stay
WORDS_UP_TO = 26  # columns: more leave no room for a figure in each cell


def draw(history: History, stem: Path) -> tuple[Path, ...]:
    """Draw the heatmap into `stem`.png and `stem`.svg.

    Colour is the case's initial latency over the candidate's, on a log scale: purple is faster, orange is slower.
    """
    timed = history.meta.workload.role(Role.PERFORMANCE)
    checked = history.meta.workload.role(Role.CORRECTNESS, Role.HIDDEN)
    columns = _columns(history)
    heights = [0.42 * len(timed), 0.19 * len(checked) + 0.01]
    picture = style.figure(min(16.0, max(7.0, 2.6 + 0.42 * len(columns))), 1.7 + sum(heights))
    upper, lower = picture.subplots(2, sharex=True, height_ratios=heights, gridspec_kw={"hspace": 0.02})
    speedups = _speedups(history, timed, columns)
    mappable = _paint(upper, speedups)
    _mark_checks(upper, history, timed, columns)
    _mark_checks(lower, history, checked, columns)
    _mark_failures((upper, lower), history, columns)
    if len(columns) <= WORDS_UP_TO:
        _write_figures(upper, speedups)
    _label_rows(upper, [case.name for case in timed], 9.5)
    _label_rows(lower, [f"{case.name} ({case.role})" for case in checked], 7.5)
    _label_columns(upper, history, columns)
    lower.tick_params(which="both", bottom=False, labelbottom=False)
    bar = picture.colorbar(mappable, ax=[upper, lower], shrink=0.9, pad=0.015, aspect=24)
    _label_bar(bar, speedups)
    return style.save(picture, stem)


def _columns(history: History) -> list[int]:
    evaluated = sorted(history.evaluations)
    if len(evaluated) <= MOST_COLUMNS:
        return evaluated
    champions = set(history.champions)
    rest = [candidate for candidate in evaluated if candidate not in champions]
    return sorted(champions | set(rest[len(champions) - MOST_COLUMNS :]))


def _speedups(history: History, cases: Sequence[Case], columns: list[int]) -> np.ndarray:
    """Return initial / candidate latency, shape (cases, columns); NaN where either was not timed."""
    first = _medians(history.evaluations[0])
    table = np.full((len(cases), len(columns)), math.nan)
    for column, candidate in enumerate(columns):
        this = _medians(history.evaluations[candidate])
        for row, case in enumerate(cases):
            if case.name in first and case.name in this:
                table[row, column] = first[case.name] / this[case.name]
    return table


def _medians(evaluation: Evaluation) -> dict[str, float]:
    return {
        result.case: result.latency.median_us / (result.anchor_us or 1.0)
        for result in evaluation.cases
        if result.latency is not None
    }


def _paint(axes: Axes, speedups: np.ndarray) -> ScalarMappable:
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    finite = speedups[np.isfinite(speedups)]
    # At least 1.5 to either side, so that noise around 1 does not fill the scale with colour.
    reach = max(1.5, *(max(value, 1 / value) for value in finite)) if finite.size else 1.5
    colours = colormaps[style.DIVERGING].with_extremes(bad="white")
    return axes.imshow(speedups, cmap=colours, norm=LogNorm(1 / reach, reach), aspect="auto")


def _mark_checks(axes: Axes, history: History, cases: Sequence[Case], columns: list[int]) -> None:
    """A small dot where an untimed case was right, a cross where any case was wrong."""
    for column, candidate in enumerate(columns):
        results = {result.case: result for result in history.evaluations[candidate].cases}
        for row, case in enumerate(cases):
            _mark_check(axes, row, column, results.get(case.name))


def _mark_check(axes: Axes, row: int, column: int, result: CaseResult | None) -> None:
    if result is None:
        return
    if result.status is not Status.OK:
        axes.plot(column, row, "x", color=style.WRONG, markersize=5, markeredgewidth=1.5)
    elif result.latency is None:
        axes.plot(column, row, "o", color=style.QUIET, markersize=2.5)


def _mark_failures(parts: tuple[Axes, Axes], history: History, columns: list[int]) -> None:
    for column, candidate in enumerate(columns):
        status = history.evaluations[candidate].status
        if status is Status.OK:
            continue
        for axes in parts:
            axes.axvspan(column - 0.5, column + 0.5, color=style.FAINT, zorder=0.5, linewidth=0)
        word = style.SHORT.get(status, str(status))
        parts[1].annotate(
            word,
            (column, 0),
            (0, -4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="top",
            fontsize=7.5,
            color=style.WRONG,
            annotation_clip=False,
        )


def _write_figures(axes: Axes, speedups: np.ndarray) -> None:
    reach = math.log(float(np.max(axes.images[0].get_clim())))
    for (row, column), value in np.ndenumerate(speedups):
        if math.isfinite(value):
            dark = abs(math.log(value)) > 0.6 * reach
            colour = "white" if dark else style.INK
            axes.text(column, row, f"{value:.2g}", ha="center", va="center", fontsize=7, color=colour)


def _label_rows(axes: Axes, names: Sequence[str], size: float) -> None:
    style.bare(axes)
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _label_columns(axes: Axes, history: History, columns: list[int]) -> None:
    step = math.ceil(len(columns) / 30)
    best = columns.index(history.champion)
    shown = sorted({best, *(index for index in range(0, len(columns), step) if abs(index - best) >= step)})
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_xticks(shown, [str(columns[index]) for index in shown])
    for tick, index in zip(axes.get_xticklabels(), shown, strict=True):
        if columns[index] == history.champion:
            tick.set(fontweight="bold", color=style.ACCENT)
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(axes.get_yticks()) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    words = f"{history.meta.workload.name}: every case, every candidate (0 is the first kernel)"
    note = "colour: speed relative to the first kernel; dot: right; cross: wrong; grey: rejected"
    style.title(axes, words, note, lift=14)


def _label_bar(bar: Colorbar, speedups: np.ndarray) -> None:
    finite = speedups[np.isfinite(speedups)]
    low, high = (float(finite.min(initial=1.0)) / 1.02, float(finite.max(initial=1.0)) * 1.02)
    steps = (1,) if high / low > 1000 else (1, 2, 5)
    ticks = [step * 10.0**power for power in range(-4, 5) for step in steps]
    ticks = [tick for tick in ticks if low <= tick <= high]
    bar.set_ticks(ticks, labels=[f"{tick:g}×" for tick in ticks])
    bar.minorticks_off()
    bar.ax.set_ylim(low, high)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9)
    bar.set_label("speed relative to the first kernel", fontsize=9, color=style.INK)
