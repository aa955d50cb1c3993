"""Reads a call's arguments, as a model wrote them, strictly; what is wrong is said with what was expected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluators.toolbox.task import Unfit
from evo.errors import did_you_mean
from evo.kernel import MAX_SOURCE_BYTES
from evo.quoting import clean
from evo.records import ToolCall

MOST_CHARACTERS = 4 * MAX_SOURCE_BYTES
"""Of the JSON: the longest kernel file, with room for what JSON escapes."""
MOST_NAMES = 64

Read = Mapping[str, Any]
"""Argument -> text, or a tuple of texts; those that were left out are not there."""


@dataclass(frozen=True)
class _Argument:
    """One argument: a text, a kernel file among them, or a list of texts."""

    required: bool = False
    source: bool = False
    many: bool = False


ARGUMENTS: Mapping[str, Mapping[str, _Argument]] = {
    "compile": {"source": _Argument(required=True, source=True)},
    "disassemble": {"source": _Argument(source=True), "kernel": _Argument()},
    "counters": {"names": _Argument(many=True)},
}
"""Tool -> its arguments, as `mutators.tools` describes them to models."""


def read(call: ToolCall) -> Read:
    """Return a call's arguments.

    Raises:
        Unfit: there is no such tool, or an argument is not as expected.
    """
    known = ARGUMENTS.get(call.name)
    if known is None:
        raise Unfit(f"there is no tool {_shown(call.name)}{did_you_mean(call.name[:80], ARGUMENTS)}")
    given = _object(call)
    for name in given:
        if name not in known:
            raise Unfit(f"{call.name}: there is no argument {_shown(name)}{did_you_mean(name[:80], known)}")
    for name, argument in known.items():
        if argument.required and given.get(name) is None:
            raise Unfit(f"{call.name}: the argument {name!r} is missing")
    return {name: _checked(name, value, known[name]) for name, value in given.items() if value is not None}


def _object(call: ToolCall) -> dict[str, Any]:
    if len(call.arguments) > MOST_CHARACTERS:
        raise Unfit(f"{call.name}: expected at most {MOST_CHARACTERS} characters of arguments, found more")
    try:
        found = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        why = f": {error}" if isinstance(error, json.JSONDecodeError) else ""
        raise Unfit(f"{call.name}: expected the arguments as one JSON object, found no valid JSON{why}") from error
    if not isinstance(found, dict):
        raise Unfit(f"{call.name}: expected the arguments as one JSON object, found {_kind(found)}")
    return found


def _checked(name: str, value: object, argument: _Argument) -> str | tuple[str, ...]:
    if argument.many:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise Unfit(f"argument {name!r}: expected a list of texts, found {_kind(value)}")
        if len(value) > MOST_NAMES:
            raise Unfit(f"argument {name!r}: expected at most {MOST_NAMES} texts, found {len(value)}")
        return tuple(value)
    if not isinstance(value, str):
        raise Unfit(f"argument {name!r}: expected a text, found {_kind(value)}")
    return _source(name, value) if argument.source else value


def _source(name: str, value: str) -> str:
    expected = f"argument {name!r}: expected a complete .cu file"
    if not value.strip():
        raise Unfit(f"{expected}, found nothing")
    if len(value.encode(errors="replace")) > MAX_SOURCE_BYTES:
        raise Unfit(f"{expected} of at most {MAX_SOURCE_BYTES} bytes, found more")
    if value.lstrip().startswith("```"):
        raise Unfit(f"{expected} and nothing around it, found a Markdown fence")
    if "\0" in value or value != value.encode(errors="replace").decode():
        raise Unfit(f"{expected}, found characters that no text file has (NUL, or half of a surrogate pair)")
    return value


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def _shown(name: str) -> str:
    return repr(clean(name)[:80])
