"""Search/replace edits: takes them out of a reply, and applies them to the kernel that the model was shown.

Strict: what is searched for must be there exactly once, and edits may not overlap. What does not fit is said in words
that let a model mend it: the nearest lines, or the lines of every match. No text whatever raises.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mutators import fences, replies

SCHEMA: Mapping[str, Any] = {
    "title": "edits",
    "type": "object",
    "properties": {
        "note": {"type": "string", "description": "what limits the kernel and what you change, in a few sentences"},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "search": {"type": "string", "description": "whole lines of the kernel, copied exactly"},
                    "replace": {"type": "string", "description": "what stands in their place"},
                },
                "required": ["search", "replace"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["note", "edits"],
    "additionalProperties": False,
}
"""In the subset of JSON schema that OpenAI's strict mode takes: every key required, no others."""

_SEARCH = re.compile(r"([ \t]*)<{5,9}[ \t]*SEARCH[ \t]*")
_DIVIDER = re.compile(r"[ \t]*={5,9}[ \t]*")
_REPLACE = re.compile(r"[ \t]*>{5,9}[ \t]*REPLACE[ \t]*")
_MOST_DIVIDERS = 8  # places where one block may be divided that are tried; more are no edit of a kernel
_MOST_PROBLEMS = 4  # edits whose faults are told at once: the rest often follows from the first
_MOST_MATCHES = 12
_MOST_NEAREST = 12  # lines of the kernel that are shown for an edit that matches nothing
_LONGEST_LINE = 240  # characters that are compared: `difflib` is quadratic in them
_SIMILAR = 0.5


@dataclass(frozen=True)
class Edit:
    """One edit.

    Attributes:
        readings: the ways to divide it into search and replacement; more than one only where its text itself holds
            lines that look like dividers.
    """

    readings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Parsed:
    """The edits of a reply in order, and what is wrong with its form ("" where nothing is)."""

    edits: tuple[Edit, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Applied:
    """The edited text, or None and the problem; `edits` were applied."""

    source: str | None
    problem: str = ""
    edits: int = 0


def parse(reply: str) -> Parsed:
    """Take the edits out of a reply: search/replace blocks, in fences or not, or JSON that obeys `SCHEMA`."""
    text = fences.clean(reply).replace("\u00a0", " ")
    blocks = _blocks(text)
    if blocks.edits or blocks.problem:
        return blocks
    for found in replies.objects(text):
        edits = _from_json(found)
        if edits is not None:
            return edits
    return Parsed()


def prose(reply: str) -> str:
    """Return what a reply says before its first block."""
    rows = reply.split("\n")
    first = next((at for at, row in enumerate(rows) if _SEARCH.fullmatch(row.rstrip("\r"))), len(rows))
    return "\n".join(rows[:first])


def apply(source: str, edits: Sequence[Edit]) -> Applied:
    """Apply edits to a kernel, all of them to the text as it is given, or none.

    Args:
        source: as the model was shown it.
        edits: in any order.
    """
    text = fences.clean(source).rstrip("\n") + "\n"
    lines = _Lines(text)
    places, problems = list[tuple[int, int, str]](), list[str]()
    for number, edit in enumerate(edits, 1):
        found = _place(lines, edit)
        if not isinstance(found, str):
            places.append(found)
        elif len(problems) < _MOST_PROBLEMS:
            problems.append(f"Edit {number} of {len(edits)}: {found}")
        else:
            problems.append(f"The edits from number {number} on were not looked at.")
            break
    if problems:
        return Applied(None, "\n\n".join(problems))
    places.sort()
    for before, after in itertools.pairwise(places):
        if before[1] > after[0]:
            line = lines.number(after[0])
            return Applied(None, f"Two edits change the same text, around line {line}; make them one.")
    parts, position = list[str](), 0
    for begin, end, replacement in places:
        parts += [text[position:begin], replacement]
        position = end
    return Applied("".join([*parts, text[position:]]), edits=len(places))


# --- reading ------------------------------------------------------------------------------------------------------


def _blocks(text: str) -> Parsed:
    edits, rows = list[Edit](), text.split("\n")
    index = 0
    while index < len(rows):
        opening = _SEARCH.fullmatch(rows[index])
        index += 1
        if not opening:
            continue
        end = next((at for at in range(index, len(rows)) if _REPLACE.fullmatch(rows[at])), None)
        if end is None:
            return Parsed(tuple(edits), f"edit {len(edits) + 1} has no line `>>>>>>> REPLACE`: the reply was cut off")
        inside = _dedented(rows[index:end], opening[1])
        readings = tuple(_readings(inside))
        if not readings:
            return Parsed(tuple(edits), f"edit {len(edits) + 1} has no line `=======` between search and replacement")
        edits.append(Edit(readings))
        index = end + 1
    return Parsed(tuple(edits))


def _dedented(rows: Sequence[str], indent: str) -> list[str]:
    """Take off the indentation of a block that stands inside a list, where every line has it."""
    if indent and all(row.startswith(indent) or not row.strip() for row in rows):
        return [row[len(indent) :] for row in rows]
    return list(rows)


def _readings(rows: Sequence[str]) -> Iterator[tuple[str, str]]:
    dividers = [at for at, row in enumerate(rows) if _DIVIDER.fullmatch(row)]
    for at in dividers[:_MOST_DIVIDERS]:
        yield _joined(rows[:at]), _joined(rows[at + 1 :])


def _joined(rows: Sequence[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


def _from_json(found: Mapping[str, Any]) -> Parsed | None:
    """Read the edits of a JSON object; None where it holds none."""
    items = found.get("edits")
    if not isinstance(items, list):
        return None
    edits = list[Edit]()
    for number, item in enumerate(items, 1):
        search, replacement = (item.get("search"), item.get("replace")) if isinstance(item, dict) else (None, None)
        if not (isinstance(search, str) and isinstance(replacement, str)):
            return Parsed(tuple(edits), f"edit {number} is no object with the texts `search` and `replace`")
        edits.append(Edit(((search, replacement),)))
    return Parsed(tuple(edits))


# --- finding ------------------------------------------------------------------------------------------------------


class _Lines:
    """A text with the places of its lines. Blanks at the ends of lines do not count in comparisons."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.rows = text.split("\n")[:-1]
        self.bare = [row.rstrip() for row in self.rows]
        self.starts = [0]
        for row in self.rows:
            self.starts.append(self.starts[-1] + len(row) + 1)

    def number(self, position: int) -> int:
        """The line of a position, from 1."""
        return self.text.count("\n", 0, position) + 1

    def whole(self, search: str) -> list[tuple[int, int]]:
        """Where whole lines equal those of `search`."""
        wanted = [row.rstrip() for row in search.removesuffix("\n").split("\n")]
        ends = len(self.bare) - len(wanted) + 1
        found = (at for at in range(ends) if self.bare[at] == wanted[0] and self.bare[at : at + len(wanted)] == wanted)
        return [(self.starts[at], self.starts[at + len(wanted)]) for at in found]

    def inside(self, search: str) -> list[tuple[int, int]]:
        """Where a part of the text equals `search`."""
        found, position = list[tuple[int, int]](), self.text.find(search)
        while position >= 0:
            found.append((position, position + len(search)))
            position = self.text.find(search, position + 1)
        return found


def _place(lines: _Lines, edit: Edit) -> tuple[int, int, str] | str:
    """Return where an edit goes and what it puts there, by its longest search that fits, or what is wrong with it."""
    problem = ""
    for search, replacement in reversed(edit.readings):
        found = _find(lines, search, replacement)
        if not isinstance(found, str):
            return found
        problem = found
    return problem


def _find(lines: _Lines, search: str, replacement: str) -> tuple[int, int, str] | str:
    if not search.strip():
        return "its search is empty. Copy the lines that it changes, or those before which something is to stand."
    spans = lines.whole(search)
    if len(spans) == 1:
        return (*spans[0], replacement if not replacement or replacement.endswith("\n") else f"{replacement}\n")
    parts = spans or lines.inside(search.strip("\n"))
    if len(parts) == 1:
        return (*parts[0], replacement.strip("\n"))
    return _ambiguous(lines, parts) if parts else _unmatched(lines, search)


def _ambiguous(lines: _Lines, spans: Sequence[tuple[int, int]]) -> str:
    numbers = [str(lines.number(begin)) for begin, _ in spans]
    more = f" and {len(numbers) - _MOST_MATCHES} more" if len(numbers) > _MOST_MATCHES else ""
    return (
        f"its search matches {len(numbers)} times, at lines {', '.join(numbers[:_MOST_MATCHES])}{more}. Add lines "
        "around it until it matches once."
    )


def _unmatched(lines: _Lines, search: str) -> str:
    wanted = [row.strip() for row in search.split("\n") if row.strip()]
    at = _nearest(lines.bare, wanted)
    if at is None:
        return "its search matches nothing in the kernel, and nothing like it is there."
    begin, size = max(0, at - 1), min(len(wanted) + 2, _MOST_NEAREST)
    rows = [f"{number + 1:>4} | {lines.rows[number]}" for number in range(begin, min(begin + size, len(lines.rows)))]
    return "\n".join(["its search matches nothing in the kernel. The nearest lines are:", *rows])


def _nearest(rows: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the line at which the most telling line of a search (its longest) would stand, less its place in there."""
    at = max(range(len(wanted)), key=lambda index: len(wanted[index]))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[at][:_LONGEST_LINE])
    best, best_ratio = None, _SIMILAR
    for number, row in enumerate(rows):
        matcher.set_seq1(row.strip()[:_LONGEST_LINE])
        if matcher.real_quick_ratio() <= best_ratio or matcher.quick_ratio() <= best_ratio:
            continue
        if (ratio := matcher.ratio()) > best_ratio:
            best, best_ratio = number, ratio
    return None if best is None else max(0, best - at)
