"""The text of a launch header: where it stands in a kernel's source, how it is written and edited.

A header is YAML in a `/* launch … */` comment. Its keys and their meaning are `evo.kernel.header`'s affair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from evo import marked
from evo.errors import HeaderError
from evo.kernel import lexer
from evo.records import Config

ORDER = (
    *("block", "grid", "shared_bytes", "args", "launches", "tune", "require", "defaults", "choose"),
    *("workspace", "zero", "cooperative", "cluster", "options", "specialize"),
)
"""Every key, in the order in which it is written."""

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_OPENING = re.compile(r"/\*\s*launch\b")


@dataclass(frozen=True)
class Located:
    """Where the header lies: `source[start:end]` is the comment, `source[body_start:body_end]` its YAML."""

    source: str
    start: int
    end: int
    body_start: int
    body_end: int

    @property
    def origin(self) -> marked.Origin:
        """For messages: lines count from the top of the kernel's file."""
        return marked.Origin("launch header", HeaderError, self.source.count("\n", 0, self.body_start) + 1)

    @property
    def body(self) -> str:
        """The YAML text."""
        return self.source[self.body_start : self.body_end]

    def tree(self) -> yaml.Node | None:
        """Return the YAML's node tree; refuses what `write_choose` could not edit line by line."""
        root = marked.compose(self.body, self.origin)
        if isinstance(root, yaml.MappingNode) and root.flow_style:
            raise HeaderError(f"{self.origin.name}: expected one key per line, found braces around all; remove them")
        return root

    @property
    def code(self) -> str:
        """The source with the comment blanked; every other line keeps its number."""
        blank = "\n" * self.source.count("\n", self.start, self.end)
        return self.source[: self.start] + blank + self.source[self.end :]


def locate(source: str) -> Located | None:
    """Find the launch header; None when the source has none.

    Raises:
        HeaderError: there are two, it is not closed, or keys stand on the opening line.
    """
    found = [t for t in lexer.tokens(source) if t.kind == "comment" and _OPENING.match(t.text)]
    if not found:
        return None
    line = source.count("\n", 0, found[-1].start) + 1
    if len(found) > 1:
        raise HeaderError(
            f"launch header, line {line}: expected one /* launch */ comment, found {len(found)}; delete one"
        )
    text = found[0].text
    if not text.endswith("*/"):
        raise HeaderError(f"launch header, line {line}: expected '*/' after it, found the end of the file")
    opening = _OPENING.match(text)
    newline = text.find("\n")
    if opening is None or newline < 0 or text[opening.end() : newline].strip():
        raise HeaderError(
            f"launch header, line {line}: expected a line break after '/* launch', found "
            f"{text.splitlines()[0]!r}; put each key on a line of its own"
        )
    start = found[0].start
    return Located(source, start, start + len(text), start + newline + 1, start + len(text) - 2)


def render(mapping: Mapping[str, Any]) -> str:
    """Return a whole `/* launch … */` comment for plain values (str, int, bool, list, dict)."""
    lines = []
    for key in sorted(mapping, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER)):
        value = mapping[key]
        if key in ("launches", "choose") and isinstance(value, list) and value:
            lines += [f"{key}:", *(f"  - {_flow(item)}" for item in value)]
        else:
            lines.append(f"{key}: {_flow(value)}")
    text = "\n".join(lines)
    if "*/" in text:
        raise HeaderError("launch header: expected no '*/' in a value, found one; it would end the comment")
    return f"/* launch\n{text}\n*/"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, str) and _IDENTIFIER.fullmatch(value) and value not in ("true", "false", "null"):
        return value
    return json.dumps(value, ensure_ascii=False)


def raw(source: str) -> dict[str, Any]:
    """Return the header's plain values as written; {} when the source has no header."""
    located = locate(source)
    if located is None:
        return {}
    root = marked.convert(located.tree(), located.origin)
    root.mapping()
    plain: dict[str, Any] = root.plain()
    return plain


def replace(source: str, mapping: Mapping[str, Any]) -> str:
    """Return the source with its header written anew from plain values (put on top where there was none)."""
    located = locate(source)
    if located is None:
        return f"{render(mapping)}\n{source}"
    return source[: located.start] + render(mapping) + source[located.end :]


def write_choose(located: Located, rules: Iterable[tuple[Mapping[str, int], Config]]) -> str:
    """Return the source with the lines of `choose` replaced (or added at the header's end), all else untouched."""
    root = located.tree()
    lines = located.body.splitlines(keepends=True)
    newline = "\r\n" if "\r\n" in located.body else "\n"
    begin, end = len(lines), len(lines)
    for key, value in root.value if root is not None else ():
        if key.value == "choose":
            begin, end = key.start_mark.line, _last_line(value) + 1
    indent = " " * root.start_mark.column if root is not None else ""
    new = [f"{indent}{line}{newline}" for line in _choose_lines(rules)]
    before = "".join(lines[:begin])
    if new and before and not before.endswith("\n"):
        before += newline
    body = before + "".join(new) + "".join(lines[end:])
    return located.source[: located.body_start] + body + located.source[located.body_end :]


def _choose_lines(rules: Iterable[tuple[Mapping[str, int], Config]]) -> list[str]:
    lines = []
    for dims, values in rules:
        when = " and ".join(f"{name} == {value}" for name, value in dims.items()) or "1"
        lines.append(f'  - {{when: "{when}", set: {_flow(dict(values))}}}')
    return ["choose:  # written by tuning; the first match wins, else the defaults", *lines] if lines else []


def _last_line(tree: yaml.Node) -> int:
    """The last line that belongs to a value: PyYAML's end marks of blocks run on to the next key."""
    if isinstance(tree, yaml.CollectionNode) and not tree.flow_style and tree.value:
        last = tree.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = tree.end_mark
    return int(end.line - 1 if end.column == 0 and end.line > tree.start_mark.line else end.line)
