"""Markdown fences: reading a reply's blocks; quoting (`evo.quoting`) is offered beside it.

Pure text in, pure text out; what the text means is for others to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evo.quoting import clean, fence

__all__ = ["Block", "blocks", "clean", "fence", "outside"]

_FENCE = re.compile(r"^[ \t]*(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^\n]*?)[ \t]*$")


@dataclass(frozen=True)
class Block:
    """One fenced block of a text: its language word, its content, and whether its closing fence is there."""

    language: str
    text: str
    closed: bool


def blocks(text: str) -> tuple[Block, ...]:
    """Return the fenced blocks of a Markdown text in order (CommonMark 0.31, section 4.5).

    A block whose closing fence is missing reaches to the end of the text and is not `closed`.
    """
    found: list[Block] = []
    ticks, language, lines = "", "", list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if not ticks:
            if match and not (match["ticks"][0] == "`" and "`" in match["info"]):
                ticks, language, lines = match["ticks"], match["info"].split(" ")[0].lower(), []
        elif match and match["ticks"].startswith(ticks) and not match["info"]:
            found.append(Block(language, _joined(lines), closed=True))
            ticks = ""
        else:
            lines.append(line)
    if ticks:
        found.append(Block(language, _joined(lines), closed=False))
    return tuple(found)


def outside(text: str) -> str:
    """Return what a Markdown text says outside its fenced blocks."""
    kept: list[str] = []
    ticks = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if match and not ticks:
            ticks = match["ticks"]
        elif match and match["ticks"].startswith(ticks) and not match["info"]:
            ticks = ""
        elif not ticks:
            kept.append(line)
    return "\n".join(kept).strip()


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n" if lines else ""
