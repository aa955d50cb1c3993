"""The command `replay`: a run's lineage derived anew from what is stored, into a folder of its own or only to check."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from evo.commands import folders, output, searching
from evo.store import Store, rundir

if TYPE_CHECKING:
    from evo.runner.replay import Lineage


def replay(name: str, results: Path, *, check: bool, as_json: bool) -> int:
    """Derive a run anew and say that it is the same; return the exit code.

    Args:
        name: of the run.
        results: where runs lie, and the new folder is made.
        check: write no folder.
        as_json: write a JSON document instead of text.

    Raises:
        RunError: something comes out differently; no folder is left then.
    """
    run = folders.find(name, results)
    Store.upgrade(run)
    lineage, folder = _checked(run) if check else _kept(run, results)
    if folder is not None:
        searching.leave(folder, lineage.champion)
    counts = {"tasks": lineage.tasks, "candidates": lineage.candidates, "champion": lineage.champion}
    if as_json:
        output.data({"run": run, "folder": folder, **counts})
        return 0
    same = f"same lineage: {_count(lineage.tasks, 'task')}, {_count(lineage.candidates, 'candidate')}, champion "
    same += str(lineage.champion)
    output.line(same if folder is None else f"{same} → {folder}")
    return 0


def _checked(run: Path) -> tuple[Lineage, None]:
    from evo.runner import replay as runner

    with tempfile.TemporaryDirectory(prefix="evo-replay-") as place:
        return runner.replay(run, Path(place)), None


def _kept(run: Path, results: Path) -> tuple[Lineage, Path]:
    """Work beside the new folder and fill it at the end: half a replayed run could be resumed, and would ask models."""
    from evo.runner import replay as runner

    folder = rundir.new(results)
    try:
        with tempfile.TemporaryDirectory(dir=results, prefix=".replay-") as place:
            made = Path(place) / "run"
            made.mkdir()
            lineage = runner.replay(run, made)
            made.rename(folder)
    finally:
        searching.drop_if_empty(folder)
    return lineage, folder


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
