"""The commands that search: `run`, `resume`, `demo`; and what they leave behind when they end."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evo import config as configs
from evo import workload
from evo.commands import folders, output
from evo.config import Budget, Config
from evo.errors import ConfigError, DiskFullError
from evo.report import fruitless, graph, graph_picture, heatmap, history, live, progress, summary, text
from evo.report.history import History
from evo.store import Store, rundir
from evo.store.database import FILE
from mutators import environment, models

if TYPE_CHECKING:
    from evo.runner.run import Result

FRUITLESS = 6
"""Of a run that has ended and in which no kernel but the initial one was right."""
EXIT_CODES = {"interrupted": 130, "prompts": 5}
"""Of runs that stop before their search has ended; 130 is 128 + SIGINT, as shells have it."""


def run(source: str, overrides: Sequence[str], results: Path, *, as_json: bool) -> int:
    """Search from the beginning; return the exit code.

    Args:
        source: a config's file, name or text.
        overrides: `key.path=value` each.
        results: where the run's folder is made.
        as_json: write lines of JSON instead of text.
    """
    environment.load(Path.cwd())
    config = configs.load(source, overrides)
    whole = workload.load(config.workload)
    models.check(config.models)  # before the slow imports, so that a missing key is told at once
    from evo.runner import run as runner

    folder = rundir.new(results)
    try:
        with _way_on(folder):
            with _observer(None, as_json=as_json) as observer:
                result = runner.run(config, whole, folder, observer)
            return finish(result, as_json=as_json)
    finally:
        drop_if_empty(folder)


def resume(name: str, overrides: Sequence[str], results: Path, *, as_json: bool) -> int:
    """Go on with a run; return the exit code. `overrides` may change `budget` alone."""
    from evo.runner import run as runner

    environment.load(Path.cwd())
    folder = folders.find(name, results)
    with _way_on(folder):
        Store.upgrade(folder)
        before = history.load(folder)
        with _observer(before, as_json=as_json) as observer:
            result = runner.resume(folder, observer, lambda _: with_overrides(before.meta.config, overrides))
        return finish(result, as_json=as_json)


def with_overrides(config: Config, overrides: Sequence[str]) -> Budget:
    """Return a run's budget with `budget.*` overrides applied.

    Raises:
        ConfigError: an override is wrong, does nothing with these models, or changes anything but the budget.
    """
    for override in overrides:
        if not override.startswith("budget."):
            raise ConfigError(f"--set {override}: a run goes on with what it began with; only budget.* may change")
    kept = config.model_dump(mode="json", include={"models", "operators", "budget"})
    return configs.load(json.dumps({"workload": "-", **kept}), overrides).budget


def finish(result: Result, *, as_json: bool) -> int:
    """Write the files that follow from the database, and say what came of the run; return the exit code."""
    found = leave(result.folder, result.champion)
    code = FRUITLESS if fruitless.why(found) else EXIT_CODES.get(result.reason, 0)
    if 0 not in found.evaluations:
        return code
    if as_json:
        output.data(summary.summarise(found))
    else:
        output.show(text.final(found))
    return code


def leave(folder: Path, champion: int) -> History:
    """Write the files of a run that follow from its database, and its reports where there is something to report."""
    with contextlib.closing(Store.read(folder)) as store:
        found = history.read(store)
        nothing = bool(fruitless.why(found))
        rundir.derive(store, None if nothing and not fruitless.tuned(found) else champion)
    if 0 in found.evaluations:
        write_reports(found)
    return found


def write_reports(found: History) -> None:
    """Write summary.json and the pictures into the run's folder."""
    content = summary.as_json(summary.summarise(found))
    rundir.write_atomic(found.folder / "summary.json", content.encode())
    heatmap.draw(found, found.folder / "heatmap")
    progress.draw(found, found.folder / "progress")
    graph_picture.draw(graph.graph(found.meta.config), f"Data flow of {found.folder.name}", found.folder / "graph")


@contextlib.contextmanager
def _way_on(folder: Path) -> Iterator[None]:
    """Say how a run goes on that a full disk has stopped."""
    try:
        yield
    except DiskFullError as error:
        begun = (folder / FILE).exists()
        way_on = (
            f"all that was stored is still there, and goes on with: evo resume {folder}" if begun else "begin again"
        )
        raise DiskFullError(f"{error}; {way_on}") from error


def drop_if_empty(folder: Path) -> None:
    """A run that could not even begin leaves no folder behind."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _observer(before: History | None, *, as_json: bool) -> live.PlainLines | live.JsonLines | live.Panel:
    if as_json:
        return live.JsonLines(output.line)
    state = live.Progress()
    if before is not None and 0 in before.evaluations:
        state.recall(before)
    terminal = output.console()
    if terminal.is_terminal:
        return live.Panel(terminal, state)
    return live.PlainLines(output.line, state)
