"""Runs the text of a `reference.py` on one case's inputs, and says what went wrong in it, with its line.

The standard library alone: the sandbox's child runs this very file beside nothing but NumPy.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

FILE = "reference.py"


class Failed(Exception):
    """The reference did not run.

    Attributes:
        text: what happened, in words.
        line: of the file, 0 where none is to blame.
        called: whether it happened in the call, and so on one case's inputs.
        defined: what the file defines instead of the function that is wanted.
    """

    def __init__(self, text: str, line: int = 0, *, called: bool = False, defined: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.text, self.line, self.called, self.defined = text, line, called, defined


def call(text: str, given: Mapping[str, Any], dims: Mapping[str, int]) -> Any:
    """Return what `reference(inputs, dims)` returns, run in a fresh namespace.

    Args:
        text: of the file.
        given: inputs and scalars by name.
        dims: of the case.

    Raises:
        Failed: it is no Python, defines no such function, or raises.
    """
    function = _function(text)
    try:
        return function(dict(given), dict(dims))
    except MemoryError:
        raise
    except Exception as error:
        raise Failed(f"{type(error).__name__}: {error}", _line(error), called=True) from error


def _function(text: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": "reference", "__file__": FILE}
    try:
        exec(compile(text, FILE, "exec"), namespace)
    except SyntaxError as error:
        raise Failed(f"expected Python, found {error.msg}", error.lineno or 0) from None
    except MemoryError:
        raise
    except Exception as error:
        raise Failed(f"{type(error).__name__}: {error}", _line(error)) from error
    function = namespace.get("reference")
    if not callable(function):
        defined = tuple(name for name, value in namespace.items() if callable(value))
        raise Failed("expected a function reference(inputs, dims), found none", defined=defined)
    return function  # type: ignore[no-any-return]


def _line(error: BaseException) -> int:
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    return lines[-1] if lines else 0
