"""Markdown fences: reading a reply's blocks; quoting (`evo.quoting`) is offered beside it.

Pure text in, pure text out; what the text means is for others to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evo.quoting import clean, fence

__all__ = ["Block", "blocks", "clean", "fence", "outside"]

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<ticks>`{3,}|~{3,})(?P<info>[^\n]*)")


@dataclass(frozen=True)
class Block:
    """One fenced block of a text: its language word, its content, and whether its closing fence is there."""

    language: str
    text: str
    closed: bool


def line(text: str, most: int) -> str:
    """Return `text` as one line of about `most` characters, cut at a word; "" for blank text."""
    whole = " ".join(clean(text).split())
    return whole if len(whole) <= most else f"{whole[:most].rsplit(' ', 1)[0]} …"


def blocks(text: str) -> tuple[Block, ...]:
    """Return the fenced blocks of a Markdown text in order (CommonMark 0.31, section 4.5).

    A block whose closing fence is missing reaches to the end of the text and is not `closed`.
    """
    return tuple(part for part in _parts(text) if isinstance(part, Block))


def outside(text: str) -> str:
    """Return what a Markdown text says outside its fenced blocks."""
    return "\n".join(part for part in _parts(text) if isinstance(part, str)).strip()


def _parts(text: str) -> Iterator[Block | str]:
    """Yield blocks, and the lines between them."""
    opening: re.Match[str] | None = None
    lines: list[str] = []
    for row in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(row)
        if opening is None and match and _opens(match):
            opening, lines = match, []
        elif opening is None:
            yield row
        elif match and match["ticks"].startswith(opening["ticks"]) and not match["info"].strip():
            yield _block(opening, lines, closed=True)
            opening = None
        else:
            lines.append(row)
    if opening is not None:
        yield _block(opening, lines, closed=False)


def _opens(match: re.Match[str]) -> bool:
    return not (match["ticks"][0] == "`" and "`" in match["info"])


def _block(opening: re.Match[str], lines: list[str], *, closed: bool) -> Block:
    """The content loses as many leading blanks as stand before the opening fence, where it has them."""
    indent = len(opening["indent"])
    rows = [row[indent:] if not row[:indent].strip() else row for row in lines]
    return Block(f"{opening['info'].strip()} ".split(" ")[0].lower(), "".join(f"{row}\n" for row in rows), closed)
