"""What a person reads at the end of a run and in between: tables, diffs and sentences for a terminal, through rich.

Figures come from `evo.report.summary` and `evo.report.history`; none is computed here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evo.config import Budget
from evo.records import Latency
from evo.report import money, operators, style
from evo.report.history import History, Speedup
from evo.report.summary import Kernel, Summary, summarise
from mutators import rooflines

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

MOST_DIFF_LINES = 60


def final(history: History) -> Iterator[RenderableType]:
    """Yield the parts of the text at the end of a run: diff, table, doubts, what to do next."""
    summary = summarise(history)
    yield f"[bold red]{summary.nothing}[/bold red]" if summary.nothing else ""
    if summary.best is not None:
        yield from diff(history.candidates[0].source, history.source(history.champion), "initial", "best")
    yield from outcome(summary)
    yield from operators.parts(summary.operators)
    yield from spending(summary.cost)
    yield from doubts(summary.doubts)
    if summary.prompts:
        yield f"\n[bold yellow]{style.prompts(summary.prompts)}[/bold yellow]"
    yield "\n[bold]Next[/bold]"
    for command, why in next_commands(summary, history.folder, history.meta.config.budget):
        yield f"  [cyan]{command}[/cyan]  [dim]{why}[/dim]"


def outcome(summary: Summary) -> Iterator[RenderableType]:
    """Yield how fast the best kernel is; nothing where the run has none."""
    if summary.best is None:
        return
    yield table(summary, summary.best)
    yield headline(summary, summary.best)
    yield from beside_reference(summary)
    yield from beside_baseline(summary)


def diff(before: str, after: str, before_name: str, after_name: str) -> Iterator[RenderableType]:
    """Yield a unified diff, cut where it gets long."""
    from rich.syntax import Syntax

    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), before_name, after_name, lineterm=""))
    if not lines:
        return
    yield Syntax("\n".join(lines[:MOST_DIFF_LINES]), "diff", theme="ansi_dark", background_color="default")
    if len(lines) > MOST_DIFF_LINES:
        yield f"[dim]… {len(lines) - MOST_DIFF_LINES} more lines[/dim]"


def table(summary: Summary, kernel: Kernel) -> Table:
    """Return the latencies of the initial kernel, the best and reference.cu by case, with 95 % intervals."""
    reference = summary.reference.latencies if summary.reference else {}
    peaks = kernel.rooflines
    columns = ("case", "initial µs", *(["reference.cu µs"] if reference else []), "best µs", "speedup")
    made = _table(*columns, *(["of peak"] if peaks else []), "launch")
    for case, first in summary.initial.latencies.items():
        best = kernel.latencies.get(case)
        factor = _case_factor(summary.speedup, case, first, best)
        config = " ".join(f"{name}={value}" for name, value in kernel.configs.get(case, {}).items())
        beside = [interval(reference.get(case))] if reference else []
        share = [rooflines.short(peaks.get(case))] if peaks else []
        times = style.times(factor) if factor else ""
        made.add_row(case, interval(first), *beside, interval(best), times, *share, config)
    return made


def headline(summary: Summary, best: Kernel) -> str:
    """Return the one sentence that says what came of the run."""
    spent = f"{summary.evaluations} evaluations, {summary.elapsed_s:.0f} s"
    if summary.speedup is None:
        return f"\nNo kernel was proved faster than the initial one ({spent})."
    name = f"Kernel {best.candidate}" if best.candidate else "The initial kernel, tuned,"
    return f"\n[bold]{name} is {speedup(summary.speedup)} the initial one[/bold] ({spent})."


def speedup(found: Speedup) -> str:
    """Return `3.1× as fast as` with its interval and how it was measured."""
    level = f"{found.confidence:.1%} interval" if found.confidence else "bounds"
    bounds = f"{style.times(found.low)} to {style.times(found.high)}"
    return f"{style.times(found.factor)} as fast ({level} {bounds}; {found.how}) as"


def beside_reference(summary: Summary) -> Iterator[str]:
    """Yield the sentence that says how the best kernel stands beside reference.cu; nothing where there is none."""
    from rich.markup import escape

    found = summary.reference
    if found is None:
        return
    score = f" {_us(found.score_us)} µs," if found.score_us else ""
    if found.speedup is None:
        yield f"reference.cu:{score} {escape(found.message)}"
        return
    factor, low, high = (style.times(end) for end in (found.speedup.factor, found.speedup.low, found.speedup.high))
    yield f"reference.cu:{score} best is {factor} ({low}–{high}) as fast"


def beside_baseline(summary: Summary) -> Iterator[str]:
    """Yield the sentence that says how the best kernel stands beside baseline.py; nothing where it was not called."""
    from rich.markup import escape

    found = summary.baseline
    if found is None:
        return
    if found.speedup is None:
        yield f"baseline.py: {escape(found.message)}"
        return
    factor, low, high = (style.times(end) for end in (found.speedup.factor, found.speedup.low, found.speedup.high))
    yield f"baseline.py, the vendor's library: best is {factor} ({low}–{high}) as fast"


def spending(cost: money.Cost) -> Iterator[str]:
    """Yield what the models cost; nothing where none was asked."""
    if cost.calls or cost.unsure:
        yield f"Models: {money.words(cost)}"


def doubts(found: tuple[str, ...]) -> Iterator[str]:
    """Yield the doubts as a list."""
    from rich.markup import escape

    if found:
        yield "\n[bold yellow]Doubts[/bold yellow]"
    for doubt in found:
        yield f"  [yellow]•[/yellow] {escape(doubt)}"


def next_commands(summary: Summary, run: Path, budget: Budget) -> tuple[tuple[str, str], ...]:
    """Return three commands that make sense after this run, each with its reason."""
    if summary.prompts:
        return (
            (f"evo ask {run} -n {summary.prompts} --out prompts", "write the prompts into files"),
            (f"evo tell {run} prompts", "take the answers, as many as there are"),
            (f"evo resume {run}", "evaluate them and go on"),
        )
    on = (f"evo resume {run}{_more(summary, budget)}", "go on searching")
    if summary.best is None:
        return (
            (f"ls {run / 'calls'}", "what the models were asked, and what they said"),
            (f"evo doctor --config {run / 'config.yaml'}", "whether its models can be reached"),
            on,
        )
    return (
        on,
        (f"evo show {run} {summary.best.candidate}", "the best kernel: source, verdict, parents"),
        (f"evo verify {run}", "run the best kernel again and check it"),
    )


def _more(summary: Summary, budget: Budget) -> str:
    """Return the flag that raises the limit which ended the run; a run that was stopped goes on without any."""
    match summary.stopped:
        case "evaluations":
            return f" --evaluations {2 * max(summary.evaluations, 10)}"
        case "idle":
            return f" --set budget.idle={2 * budget.idle}"
        case "minutes":
            return f" --minutes {2 * (budget.minutes or 30):g}"
        case "cost_usd":
            return f" --cost-usd {2 * (budget.cost_usd or 1):g}"
        case "tokens":
            return f" --tokens {2 * (budget.tokens or 1)}"
        case "target_speedup":
            return " --set budget.target_speedup=null"
    return ""


def interval(latency: Latency | None) -> str:
    """Return `123 (121–126)`, or a dash."""
    if latency is None:
        return "–"
    return f"{_us(latency.median_us)} [dim]({_us(latency.low_us)}–{_us(latency.high_us)})[/dim]"


def kernel_table(kernel: Kernel) -> Table:
    """Return one kernel's latencies by case."""
    peaks = kernel.rooflines
    made = _table("case", "latency µs", "noise", *(["of peak"] if peaks else []), "launch")
    for case, latency in kernel.latencies.items():
        config = " ".join(f"{name}={value}" for name, value in kernel.configs.get(case, {}).items())
        share = [rooflines.short(peaks.get(case))] if peaks else []
        made.add_row(case, interval(latency), f"{latency.noise:.0%}", *share, config)
    return made


def _case_factor(found: Speedup | None, case: str, first: Latency, best: Latency | None) -> float | None:
    if found is not None and case in found.cases:
        return found.cases[case]
    return first.median_us / best.median_us if best is not None else None


def _us(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index in (0, len(columns) - 1) else "right")
    return made
