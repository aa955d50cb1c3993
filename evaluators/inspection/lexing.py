"""Hostile C++ text as tokens, the way that compilers cut it: splices first, then comments, then literals.

Wherever two compilers could cut differently (raw strings, trigraphs, digraphs, open quotes, a blank after a splice) the
text is marked as doubtful, so that nothing can hide from one reader that another one sees.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

_LEXEME = re.compile(
    r"""
    (?P<blank>[ \t\f\v]+)
  | (?P<newline>\n)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<doubt>/\*|(?:u8|[uUL])?R"|%:|<%|%>|<:(?!:)|(?<!:):>|\\)
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*')
  | (?P<quote>["'])
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[\w.])*)
  | (?P<word>[^\W\d]\w*)
  | (?P<mark>::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SPLICES = (re.compile(r"\\\n"), re.compile(r"\\[ \t\f\v]*\n"))
"""ISO C++ joins lines at a backslash that ends one; GCC also where blanks follow it."""


@dataclass(frozen=True)
class Token:
    """One token outside comments and blanks.

    Attributes:
        kind: `word`, `number`, `string`, `char`, `mark`, `quote` (one that its line does not close), `doubt`, or
            `directive`: `text` is then the whole logical line behind the `#`, without comments. The tokens of a
            directive come before it too, with `inside` set.
        text: as written.
        line: 1-based, of its first character.
        inside: whether it is part of a directive.
    """

    kind: str
    text: str
    line: int
    inside: bool = False


def readings(source: str) -> Iterator[list[Token]]:
    """Yield the tokens of every way to read a source: usually one, two where a blank follows a splice."""
    text = source.replace("\r\n", "\n")
    joined = [_join(text, splice) for splice in _SPLICES]
    for number, (spliced, breaks) in enumerate(joined):
        if number == 0 or spliced != joined[0][0]:
            yield list(_tokens(spliced, breaks))


def tokens(text: str) -> list[Token]:
    """Return the tokens of text that a preprocessor has gone through already: it holds no splices."""
    return list(_tokens(text, _newlines(text)))


def _newlines(text: str) -> list[int]:
    return [match.start() for match in re.finditer("\n", text)]


def _join(text: str, splice: re.Pattern[str]) -> tuple[str, list[int]]:
    """Remove splices; return the text and, ascending, the offsets behind which a new physical line begins."""
    parts, breaks, offset, last = [], [], 0, 0
    for match in splice.finditer(text):
        parts.append(text[last : match.start()])
        offset += match.start() - last
        breaks.append(offset - 1)
        last = match.end()
    spliced = "".join([*parts, text[last:]])
    return spliced, sorted(breaks + _newlines(spliced))


def _tokens(text: str, breaks: list[int]) -> Iterator[Token]:
    fresh, started = True, 0
    directive: list[str] | None = None
    for match in _LEXEME.finditer(text):
        kind, words = str(match.lastgroup), match.group()
        if kind == "newline":
            if directive is not None:
                yield Token("directive", " ".join("".join(directive).split()), started)
            fresh, directive = True, None
            continue
        if kind in ("blank", "comment"):
            if directive is not None:
                directive.append(" ")
            continue
        # The line of a token: how many lines have ended before it begins.
        line = bisect_right(breaks, match.start() - 1) + 1
        if fresh and words == "#":
            directive, started = [], line
        else:
            if directive is not None:
                directive.append(words)
            yield Token(kind, words, line, directive is not None)
        fresh = False
    if directive is not None:
        yield Token("directive", " ".join("".join(directive).split()), started)
