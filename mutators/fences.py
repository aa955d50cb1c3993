"""Markdown fences: quoting text that others wrote so that it cannot end its quotation, and reading a reply's blocks.

Pure text in, pure text out; what the text means is for others to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RUN = re.compile(r"`{3,}")
_FENCE = re.compile(r"^[ \t]*(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^\n]*?)[ \t]*$")
# C0 and C1 controls, line separators, bidirectional overrides (CVE-2021-42574) and lone surrogates
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True)
class Block:
    """One fenced block of a text: its language word, its content, and whether its closing fence is there."""

    language: str
    text: str
    closed: bool


def fence(text: str, language: str = "text") -> str:
    """Quote `text` in a fence that is longer than any run of backticks inside it.

    Control characters and terminal escapes are taken out, so that what is quoted is what is seen.
    """
    body = clean(text).strip("\n")
    ticks = "`" * max([3, *(len(run) + 1 for run in _RUN.findall(body))])
    return f"{ticks}{language}\n{body}\n{ticks}"


def clean(text: str) -> str:
    """Return `text` with line ends as newlines and without terminal escapes or control characters."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


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
