"""Where commands write: rich text for people on stdout, or one JSON document for machines; never both."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evo.errors import EvoError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def show(parts: Iterable[RenderableType]) -> None:
    """Write parts for a person, each on lines of its own."""
    terminal, made = console(), list(parts)
    with _heard():
        for part in made:
            terminal.print(part, soft_wrap=not terminal.is_terminal)


def line(text: str) -> None:
    """Write a line at once."""
    with _heard():
        print(text, flush=True)


@contextlib.contextmanager
def _heard() -> Iterator[None]:
    """Where a pipe's reader has gone, stop as Ctrl-C does; where nothing can be written, go on in silence.

    A run's results are in its folder, so that a terminal that closed or a log on a full disk is no reason to stop.
    """
    try:
        yield
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            signal.raise_signal(signal.SIGINT)


def console() -> Console:
    """Return the console that people read."""
    from rich.console import Console

    # Into a pipe, rich would wrap tables at 80 columns and cut what does not fit.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def data(content: Any) -> None:
    """Write one JSON document for a machine."""
    line(json.dumps(plain(content), indent=2))


def plain(content: Any) -> Any:
    """Return records, mappings and sequences as what JSON knows."""
    if dataclasses.is_dataclass(content) and not isinstance(content, type):
        return plain(dataclasses.asdict(content))
    if isinstance(content, Mapping):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple | set | frozenset):
        return [plain(value) for value in content]
    return content if isinstance(content, str | int | float | bool | None) else str(content)


def fail(error: EvoError, *, as_json: bool) -> None:
    """Say what went wrong: one message on stderr, and for machines a JSON document on stdout."""
    if as_json:
        data({"error": type(error).__name__, "message": str(error), "exit_code": error.exit_code})
        return
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"error: {error}", style="bold red"))
