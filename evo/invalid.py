"""What is wrong with a config, in sentences that a person can act on, made of what pydantic says.

Knows no config: the names that are valid somewhere are passed in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from evo.document import Document, KeyPath
from evo.errors import did_you_mean

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "string_too_short": "some text",
    "string_pattern_mismatch": "a URL that begins with http:// or https://",
    "tuple_type": "a list",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than_equal": "a number of at most {le:g}",
    "literal_error": "{expected}",
}


def sentences(error: ValidationError, read: Document, keys: Callable[[KeyPath], Sequence[str]]) -> list[str]:
    """Return one sentence per key; the branches of a union (`int` or `auto`) become one sentence.

    Args:
        error: of a strict model.
        read: what was validated.
        keys: returns the names that are valid below a path.
    """
    expected: dict[KeyPath, list[str]] = {}
    found: dict[KeyPath, str] = {}
    for problem in error.errors():
        path = problem["loc"] if problem["type"] == "missing" else _existing(problem["loc"], read.data)
        words, value = _words(problem, path, keys)
        known = expected.setdefault(path, [])
        known.append(words.removeprefix("expected ") if known else words)
        found[path] = value
    return [read.error(path, " or ".join(words) + found[path]) for path, words in expected.items()]


def _existing(loc: KeyPath, raw: Any) -> KeyPath:
    """Cut what pydantic appends to a path to name the branch of a union."""
    path: list[str | int] = []
    for step in loc:
        inside = step in raw if isinstance(raw, dict) else isinstance(raw, list) and isinstance(step, int)
        if not inside:
            break
        path.append(step)
        raw = raw[step]
    return tuple(path)


def _words(problem: Any, path: KeyPath, keys: Callable[[KeyPath], Sequence[str]]) -> tuple[str, str]:
    kind, value = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        return f"unknown key{did_you_mean(str(path[-1]), keys(path[:-1]))}", ""
    if kind == "missing":
        return "missing; give the name or the folder of a workload, e.g. `workload: gemm`", ""
    expected = _EXPECTED.get(kind, problem["msg"]).format(**problem.get("ctx", {}))
    if isinstance(value, str) and _is_number(value) and "number" in expected:
        return f"expected {expected}", f", found the text {value!r}; write it without quotes"
    literals = re.findall("'([^']*)'", expected) if kind == "literal_error" and isinstance(value, str) else []
    nearest = did_you_mean(value, literals) if literals else ""
    shown = nearest if nearest.startswith("; did you mean") else ""  # `expected` lists them all already
    return f"expected {expected}", f", found {json.dumps(value)}{shown}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
