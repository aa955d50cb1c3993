"""CUDA C++ text as tokens: comments found, spacing normalised, `__global__` functions named. No compiler, no tree.

Works on any text, however broken, in linear time: what a token means is left to the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<comment>//(?:[^\n\\]|\\[\s\S])*|/\*(?:[\s\S]*?\*/|[\s\S]*))
  | (?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\((?:[\s\S]*?\)(?P=fence)"|[\s\S]*))
  | (?P<string>(?:u8|[uUL])?"(?:\\[\s\S]|[^"\\\n])*")
  | (?P<number>\.?\d(?:[eEpP][-+]|'?[\w.])*)
  | (?P<char>(?:u8|[uUL])?'(?:\\[\s\S]|[^'\\\n])+')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<newline>\n)
  | (?P<space>(?:[^\S\n]|\\\r?\n)+)
  | (?P<punctuation><<=|>>=|\.\.\.|->\*|<=>|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|[\s\S])
    """,
    re.VERBOSE,
)
_ATTRIBUTES = frozenset(
    {
        "__launch_bounds__",
        "__cluster_dims__",
        "__block_size__",
        "__maxnreg__",
        "__attribute__",
        "__align__",
        "alignas",
    }
)


@dataclass(frozen=True)
class Token:
    """A piece of text: `kind` is comment, raw, string, number, char, name, newline, space, punctuation or directive."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True)
class Function:
    """A `__global__` function: its parameters as normalised texts, and whether it is a template."""

    name: str
    parameters: tuple[str, ...]
    template: bool
    start: int


def tokens(source: str) -> Iterator[Token]:
    """Yield every token; concatenated, their texts are the source. A preprocessor line is one `directive`."""
    directive: list[Token] = []
    fresh_line = True
    for match in _TOKEN.finditer(source):
        token = Token(str(match.lastgroup if match.lastgroup != "fence" else "raw"), match[0], match.start())
        if directive and token.kind != "newline":
            directive.append(token)
            continue
        if directive:
            yield _directive(directive)
            directive = []
        if fresh_line and token.text == "#":
            directive = [token]
        else:
            yield token
        if token.kind == "newline":
            fresh_line = True
        elif token.kind not in ("space", "comment"):
            fresh_line = False
    if directive:
        yield _directive(directive)


def _directive(parts: list[Token]) -> Token:
    return Token("directive", "".join(part.text for part in parts), parts[0].start)


def normalised(source: str) -> str:
    """Return the code without comments and needless spacing; literals and preprocessor lines keep their meaning.

    Two sources with the same normalised text compile to the same program (macros that print `__LINE__` or stringify
    their arguments aside).
    """
    parts = []
    for token in tokens(source):
        if token.kind == "directive":
            parts.append(f"\n{_normalised_directive(token.text)}\n")
        elif token.kind not in ("comment", "space", "newline"):
            parts.append(token.text)
    return " ".join(parts)


def _normalised_directive(text: str) -> str:
    # Inside a directive one space may separate a macro from its replacement, so spacing shrinks but stays.
    parts = []
    for match in _TOKEN.finditer(text[1:].replace("\\\r\n", " ").replace("\\\n", " ")):
        parts.append(" " if match.lastgroup in ("comment", "space", "newline") else match[0])
    return "#" + re.sub(r" +", " ", "".join(parts)).strip()


def functions(source: str) -> tuple[Function, ...]:
    """Return the `__global__` functions that the text itself spells out (macros are not expanded), in order."""
    skipped = ("comment", "space", "newline", "directive")
    code = [token for token in tokens(source) if token.kind not in skipped]
    found: dict[str, Function] = {}
    head = 0
    for index, token in enumerate(code):
        if token.text in (";", "{", "}"):
            head = index + 1
        if token.text == "__global__":
            function = _function(code, index, any(t.text == "template" for t in code[head:index]))
            if function is not None:
                found.setdefault(function.name, function)
    return tuple(found.values())


def _function(code: list[Token], index: int, template: bool) -> Function | None:
    start = code[index].start
    while index + 1 < len(code) and code[index].text not in (";", "{", "}"):
        index += 1
        if code[index].text != "(":
            continue
        close = _closing(code, index)
        name = code[index - 1]
        if name.kind == "name" and name.text not in _ATTRIBUTES:
            return Function(name.text, _parameters(code[index + 1 : close]), template, start)
        index = close
    return None


def _closing(code: list[Token], index: int) -> int:
    depth = 0
    for position in range(index, len(code)):
        depth += (code[position].text == "(") - (code[position].text == ")")
        if depth == 0:
            return position
    return len(code) - 1


def _parameters(code: list[Token]) -> tuple[str, ...]:
    found: list[list[str]] = [[]]
    depth = 0
    for token in code:
        depth += (token.text in "([<") - (token.text in ")]>")
        if token.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token.text)
    texts = tuple(" ".join(part) for part in found)
    return () if texts in (("",), ("void",)) else texts
