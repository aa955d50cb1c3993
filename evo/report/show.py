"""One run or one of its candidates, for a person: status, islands, lineage, source, verdict, feedback, parents.

Reads a `History`; the islands are rebuilt by folding the stored events into a fresh search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from evo.records import Candidate, Evaluation, Role, Status
from evo.report import money, operators, style, text
from evo.report.history import History
from evo.report.summary import kernel_of, summarise
from evo.search import Search
from mutators import profiles

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.tree import Tree

MOST_ELITES = 8  # of an island in the table; the rest are in the JSON


def run(history: History) -> Iterator[RenderableType]:
    """Yield what there is to see of a run: status, counts, islands, the champion's lineage, doubts."""
    meta = history.meta
    state = meta.stopped or "running, or killed (`evo resume` goes on)"
    yield f"[bold]{history.folder}[/bold]  {meta.workload.name} on {meta.device.name}, seed {meta.config.seed}: {state}"
    budget = meta.config.budget.evaluations
    yield f"{history.evaluated} of {budget} evaluations, {history.elapsed_s:.0f} s, {money.words(money.cost(history))}"
    yield _counts(history)
    if meta.inherited:
        yield f"begun with {len(meta.inherited)} kernels of an earlier run"
    if 0 not in history.evaluations:
        yield "The initial kernel has no verdict yet."
        return
    summary = summarise(history)
    if summary.nothing:
        yield f"[bold red]{summary.nothing}[/bold red]"
    yield "\n[bold]Islands[/bold]"
    yield _islands(history)
    yield "[bold]Lineage of the best kernel[/bold]"
    yield lineage(history)
    yield from text.outcome(summary)
    yield from operators.parts(summary.operators)
    yield from text.doubts(summary.doubts)


def candidate(history: History, number: int) -> Iterator[RenderableType]:
    """Yield what there is to see of one candidate: verdict, feedback, latencies, parents, diff, source."""
    from rich.markup import escape
    from rich.syntax import Syntax

    this = history.candidates[number]
    evaluation = history.evaluations.get(number)
    children = (other.id for other in history.candidates.values() if number in other.parents)
    before, after = (", ".join(map(str, ids)) or "none" for ids in (this.parents, children))
    kin = f"parents {before}, children {after}"
    yield f"[bold]kernel {number}[/bold]  by {this.operator}, island {this.island}, {kin}"
    if this.note:
        yield escape(this.note)
    yield from _verdict(history, number, evaluation)
    for comparison in history.comparisons.values():
        if number in (comparison.challenger, comparison.champion):
            yield _comparison(comparison)
    source = history.source(number)
    if this.parents:
        parent = this.parents[0]
        yield f"\n[bold]Against its parent {parent}[/bold]"
        yield from text.diff(history.source(parent), source, f"kernel {parent}", f"kernel {number}")
    yield "\n[bold]Source[/bold]"
    yield Syntax(source, "cuda", theme="ansi_dark", background_color="default", line_numbers=True)


def lineage(history: History) -> Tree:
    """Return the champion's ancestors as a tree that begins at the initial kernel, siblings that failed left out."""
    from rich.tree import Tree

    path = [history.champion]
    while parents := history.candidates[path[-1]].parents:
        path.append(parents[0])
    path.reverse()
    root = Tree(_branch(history, history.candidates[path[0]]), guide_style="dim")
    branch = root
    for number in path[1:]:
        branch = branch.add(_branch(history, history.candidates[number]))
    return root


def islands(history: History) -> list[list[dict[str, Any]]]:
    """Return the elites of every island, fastest first."""
    from evo import config

    names = history.meta.config.used_operators
    known = {name: config.traits(name) for name in names}
    search = Search(history.meta.config, known, len(history.meta.inherited))
    for event in history.events:
        if event.kind == "ask":
            search.ask()
        elif event.outcome is not None:
            search.start(event.outcome) if event.task is None else search.tell(event.outcome)
    return [[asdict(elite) for elite in island.elites] for island in search.population.islands]


def run_as_data(history: History) -> dict[str, Any]:
    """Return a run as plain data, for `--json`."""
    begun = 0 in history.evaluations
    return {
        "folder": str(history.folder),
        "stopped": history.meta.stopped,
        "champion": history.champion,
        "summary": asdict(summarise(history)) if begun else None,
        "islands": islands(history) if begun else [],
        "candidates": [_row(history, candidate) for candidate in history.candidates.values()],
    }


def candidate_as_data(history: History, number: int) -> dict[str, Any]:
    """Return one candidate as plain data, for `--json`."""
    evaluation = history.evaluations.get(number)
    return {
        **asdict(history.candidates[number]),
        "speedup": history.factor(number),
        "evaluation": asdict(evaluation) if evaluation else None,
        "comparisons": [
            asdict(comparison)
            for comparison in history.comparisons.values()
            if number in (comparison.challenger, comparison.champion)
        ],
        "calls": [asdict(call) for call in history.calls if call.task == history.candidates[number].task],
    }


def _row(history: History, this: Candidate) -> dict[str, Any]:
    evaluation = history.evaluations.get(this.id)
    return {
        "id": this.id,
        "operator": this.operator,
        "parents": this.parents,
        "island": this.island,
        "note": this.note,
        "status": evaluation.status if evaluation else None,
        "message": evaluation.message if evaluation else "",
        "speedup": history.factor(this.id),
    }


def _counts(history: History) -> str:
    counts = (f"{_words(status)} {count}" for status, count in history.statuses.most_common())
    return " · ".join(counts) or "no outcome yet"


def _islands(history: History) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    made = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("island", "kernels bred from, fastest first (times faster than the initial one)"):
        made.add_column(column)
    for number, elites in enumerate(islands(history)):
        shown = [f"{elite['candidate']} ({_factor(history, elite['candidate'])})" for elite in elites]
        made.add_row(str(number), "  ".join(shown[:MOST_ELITES]) + (" …" if len(shown) > MOST_ELITES else ""))
    return made


def _factor(history: History, number: int) -> str:
    factor = history.factor(number)
    return style.times(factor) if factor else "–"


def _branch(history: History, this: Candidate) -> str:
    from rich.markup import escape

    crown = " [green]proved[/green]" if this.id in history.champions[1:] else ""
    note = f" [dim]{escape(this.note)}[/dim]" if this.note else ""
    return f"[bold]{this.id}[/bold] {this.operator} {_factor(history, this.id)}{crown}{note}"


def _verdict(history: History, number: int, evaluation: Evaluation | None) -> Iterator[RenderableType]:
    from rich.markup import escape

    if evaluation is None:
        yield "no verdict yet"
        return
    factor = f", {_factor(history, number)} the initial kernel's speed" if evaluation.ratio else ""
    colour = "green" if evaluation.status is Status.OK else "red"
    stage = f" at {evaluation.stage}" if evaluation.status is not Status.OK and evaluation.stage else ""
    yield f"[bold {colour}]{_words(evaluation.status)}[/bold {colour}]{stage}{factor}"
    if evaluation.message:
        yield escape(evaluation.message)
    for line in _findings(evaluation):
        yield escape(line)
    figures = kernel_of(history, number)
    if figures.latencies:
        yield text.kernel_table(figures)
    if evaluation.profile is not None:
        yield escape(profiles.describe(evaluation.profile) or evaluation.profile.problem)
        if evaluation.profile.file:
            yield f"[dim]the report: {escape(evaluation.profile.file)}[/dim]"


def _findings(evaluation: Evaluation) -> Iterable[str]:
    for finding in evaluation.findings:
        line = f"line {finding.line}: " if finding.line else ""
        advice = "advice: " if finding.advice else ""
        yield f"{advice}{finding.kind}: {line}{finding.message}"
    for result in evaluation.cases:
        if result.status is not Status.OK:
            hidden = " (hidden)" if result.role is Role.HIDDEN else ""
            yield f"case {result.case}{hidden}: {_words(result.status)}: {result.message}"


def _comparison(comparison: Any) -> str:
    pair = f"compared: {comparison.challenger} against {comparison.champion}: "
    if not comparison.ratio:
        return pair + f"{_words(comparison.status)} {comparison.message}"
    verdict = "promoted" if comparison.promoted else "not promoted"
    low, high = (style.times(1 / (end or comparison.ratio)) for end in (comparison.high, comparison.low))
    return pair + f"{verdict}, {style.times(1 / comparison.ratio)} ({low} to {high}), {comparison.blocks} blocks"


def _words(name: str) -> str:
    return str(name).replace("_", " ")
