"""The commands `ask` and `tell`: prompts into files, answers out of files, for runs whose model is a person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evo.commands import folders, output
from evo.errors import EvoError
from evo.report import style

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evo.runner.prompts import Asked, Told


def ask(name: str, count: int, out: Path, results: Path, *, as_json: bool) -> int:
    """Write prompts of a run into a folder; return the exit code."""
    from evo.runner import prompts

    folder = folders.find(name, results)
    asked = prompts.ask(folder, count, out)
    if as_json:
        written = [{"name": prompt.name, "operator": prompt.task.operator} for prompt in asked.written]
        output.data({"prompts": written, "waiting": asked.waiting, "folder": out})
    else:
        output.show(_asked(asked, count, out, folder))
    return 0


def tell(name: str, answers: Path, results: Path, *, as_json: bool) -> int:
    """Store the answers that a folder holds; return the exit code.

    Raises:
        EvoError: nothing could be taken, and not because it all was before.
    """
    from evo.runner import prompts

    folder = folders.find(name, results)
    told = prompts.tell(folder, answers)
    if not told.well:
        raise EvoError(_nothing(told, answers))
    if as_json:
        output.data({"files": told.heard, "waiting": told.waiting})
    else:
        output.show(_told(told, folder, answers))
    return 0


def _asked(asked: Asked, count: int, out: Path, run: Path) -> Iterator[RenderableType]:
    from rich.text import Text

    for prompt in asked.written:
        yield Text(f"  {out / prompt.name}.prompt.md  {prompt.task.operator} of kernel {prompt.task.parents[0]}")
    yield Text(f"{style.prompts(asked.waiting)} in {run}; {len(asked.written)} in {out} without an answer")
    if asked.short:
        yield Text(f"fewer than {count}: {asked.short}")
    if asked.written:
        yield Text(f"write each answer into the .reply.md of the same name, then: evo tell {run} {out}")
    else:
        yield Text(f"go on with: evo {'tell' if asked.waiting else 'resume'} {run}{f' {out}' if asked.waiting else ''}")


def _told(told: Told, run: Path, answers: Path) -> Iterator[RenderableType]:
    from rich.text import Text

    from evo.runner.prompts import Fate

    for heard in told.heard:
        yield Text(f"  {_line(heard.file, heard.fate, heard.why)}")
    yield Text(f"{told.count(Fate.TAKEN)} taken, {told.count(Fate.KNOWN)} taken before")
    if told.waiting:
        yield Text(f"{style.prompts(len(told.waiting))} still: {', '.join(told.waiting)}")
    yield Text(f"evaluate what was told with: evo resume {run}")
    if any((not (answers / f"{name}.prompt.md").exists()) for name in told.waiting):
        yield Text(f"or write the prompts that are not in {answers} yet: evo ask {run} --out {answers}")


def _nothing(told: Told, answers: Path) -> str:
    waiting = ", ".join(told.waiting) or "none"
    lines = [f"  {_line(heard.file, heard.fate, heard.why)}" for heard in told.heard]
    found = "\n".join(lines) or f"  nothing that is called {told.waiting[0] if told.waiting else 'TASK-STEP'}.reply.md"
    return f"{answers}: no answer was taken; prompts that wait: {waiting}. Found:\n{found}"


def _line(file: str, fate: str, why: str) -> str:
    return f"{file}: {fate}" + (f": {why}" if why else "")
