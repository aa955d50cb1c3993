"""Editing a launch header as plain values: what every rule that changes how a kernel is launched shares.

Knows the header's keys, not the code below it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from evo.errors import ExpressionError, HeaderError
from evo.kernel import Expression
from evo.kernel import parse as parse_kernel
from evo.kernel.header_text import raw, replace
from mutators.rules.syntax import Rewrite, Unfit

Mapped = dict[str, Any]
MOST_TUNABLES = 12
"""Rules add no more: a header may have 16, and a space of so many axes is not searched in a few dozen trials."""

_LAUNCH_KEYS = ("block", "grid", "shared_bytes", "args")


def read(source: str) -> Mapped:
    """Return the header's plain values; raises `Unfit` when there is no readable header."""
    try:
        mapping = raw(source)
        parse_kernel(source)
    except HeaderError as error:
        raise Unfit(str(error)) from None
    return mapping


def write(source: str, mapping: Mapped, note: str) -> Rewrite:
    """Return the source with a new header; raises `Unfit` when the result would not be a readable kernel."""
    new = replace(source, mapping)
    try:
        parse_kernel(new)
    except HeaderError as error:
        raise Unfit(str(error)) from None
    return Rewrite(new, note)


def launches(mapping: Mapped) -> list[Mapped]:
    """Return the launches as dictionaries that may be changed in place; the short form's is the header itself."""
    listed = mapping.get("launches")
    return [mapping] if listed is None else listed


def launches_of(mapping: Mapped, kernel: str) -> list[Mapped]:
    """Return those of one kernel; the short form's is taken to be of any."""
    return [launch for launch in launches(mapping) if launch.get("kernel", kernel) == kernel]


def extent(launch: Mapped, key: str) -> list[str]:
    """Return `block` or `grid` as three expressions."""
    value = launch.get(key, 1)
    if isinstance(value, str):
        parts = [part.text for part in Expression.parse_list(value, most=3)]
    else:
        parts = [str(part) for part in value] if isinstance(value, list) else [str(value)]
    return [*parts, "1", "1"][:3]


def set_extent(launch: Mapped, key: str, parts: list[str]) -> None:
    """Write `block` or `grid`, without needless ones at the end."""
    while len(parts) > 1 and parts[-1] == "1":
        parts = parts[:-1]
    joined = ", ".join(parts)
    launch[key] = int(joined) if joined.isdecimal() else joined


def names(expression: str) -> frozenset[str]:
    """Return the names that an expression uses."""
    try:
        return Expression.parse(expression).names
    except ExpressionError as error:
        raise Unfit(str(error)) from None


def value(expression: str, config: Mapping[str, int]) -> int | None:
    """Return what an expression of tunables and numbers is worth; None where it needs anything else."""
    try:
        return Expression.parse(expression).evaluate(config)
    except ExpressionError:
        return None


def defaults(mapping: Mapped) -> dict[str, int]:
    """Return every tunable's default."""
    first = {name: values[0] for name, values in mapping.get("tune", {}).items()}
    return {**first, **mapping.get("defaults", {})}


def add_tunable(
    mapping: Mapped,
    name: str,
    values: list[int],
    default: Callable[[Mapping[str, int]], int],
) -> None:
    """Add a tunable in place.

    Args:
        mapping: the header.
        name: free everywhere in the source.
        values: ascending.
        default: configuration of the other tunables -> this one's value; asked for the defaults and for every
            `choose` rule, so that rules which tuning wrote keep holding.
    """
    if len(mapping.get("tune", {})) >= MOST_TUNABLES:
        raise Unfit(f"the kernel has {MOST_TUNABLES} tunables already")
    base = defaults(mapping)
    for rule in mapping.get("choose", []):
        rule["set"] = {**rule["set"], name: default({**base, **rule["set"]})}
    mapping["tune"] = {**mapping.get("tune", {}), name: values}
    mapping["defaults"] = {**base, name: default(base)}


def add_requirement(mapping: Mapped, expression: str) -> None:
    """Add a requirement in place, unless it is there."""
    present = mapping.get("require", [])
    present = present if isinstance(present, list) else [present]
    if expression not in present:
        mapping["require"] = [*present, expression]


def replace_name(expression: Any, old: str, new: str) -> Any:
    """Return an expression (or a list or number) in which a number or name is another text."""
    if isinstance(expression, list):
        return [replace_name(item, old, new) for item in expression]
    if isinstance(expression, bool) or not isinstance(expression, int | str):
        return expression
    return re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.])", new, str(expression))
