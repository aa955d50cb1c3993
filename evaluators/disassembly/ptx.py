"""Read the PTX that NVRTC makes: each function's instructions with source lines (PTX ISA 9.0).

PTX is what the compiler hands to ptxas: registers are not yet allocated and loops may still be unrolled. What is not
understood is passed over; a candidate's own assembly is among the text.
"""

from __future__ import annotations

import re

from evaluators.disassembly.code import Access, Function, Instruction, Raw
from evaluators.disassembly.labels import resolved

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_VECTOR = re.compile(r"\{[^{};\n]*\}")
"""Registers in braces; what is in braces and holds a semicolon is a block of instructions."""
_HEAD = re.compile(r"\.(entry|func)\b(?:\s*\([^)]*\))?\s*([\w$]+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)(?:.*?inlined_at\s+(\d+)\s+(\d+))?")
_LABEL = re.compile(r"\s*([$%A-Za-z_][\w$]*)\s*:(?!:)")
_INSTRUCTION = re.compile(r"\s*(?:(@)!?[%\w]+\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_BRANCH = re.compile(r"[$%A-Za-z_][\w$]*")
_ENDS = ("ret", "exit", "brx", "trap")
_MULTIPLY_ADD = re.compile(r"fma\b|(?:mma|wmma\.mma|wgmma\.mma_async|tcgen05\.mma)\b")
_SPACES = ("global", "shared", "local")
_SILENT = ("param", "const")
_KINDS = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic", "ldmatrix": "load",
    "stmatrix": "store",
}  # fmt: skip
_TYPE = re.compile(r"[bsuf](\d+)|bf16|f16x2|bf16x2|pred")
_COPIED = re.compile(r"\]\s*,\s*\[[^\]]*\]\s*,\s*(\d+)")


def read(text: str, own: str) -> tuple[Function, ...]:
    """Return the functions in order, kernels and what they call.

    Args:
        text: PTX.
        own: the file name of the candidate's source in line information.
    """
    files = {number for number, name in _FILE.findall(text) if name == own}
    found: list[Function] = []
    reader: _Body | None = None
    head = ""
    for row in _VECTOR.sub("V", _COMMENT.sub("", text)).splitlines():
        if reader is None:
            head = f"{head} {row}" if head else row if _HEAD.search(row) else ""
            if head and ";" in row:  # a declaration
                head = ""
            elif head and "{" in row:
                reader = _Body(files)
                head, _, row = head.partition("{")
        if reader is not None and reader.take(row):
            named = _HEAD.search(head)
            assert named is not None
            found.append(Function(named[2], named[2] if named[1] == "entry" else "", reader.finish()))
            reader, head = None, ""
    return tuple(found)


class _Body:
    """Takes a function's lines one by one, from behind its opening brace."""

    def __init__(self, files: set[str]) -> None:
        self._files = files
        self._depth = 1
        self._line = 0
        self._statement = ""
        self._body: list[Raw] = []
        self._labels: dict[str, int] = {}

    def take(self, row: str) -> bool:
        """Read a line; True once the function has ended."""
        if place := _LOC.match(row):
            places = ((place[1], place[2]), (place[3], place[4]))
            self._line = next((int(line) for file, line in places if file in self._files), 0)
            return False
        for piece in re.split(r"([;{}])", row):
            if piece == ";":
                self._end_statement()
            elif piece in ("{", "}"):
                self._statement = ""
                self._depth += 1 if piece == "{" else -1
                if self._depth == 0:
                    return True
            else:
                self._statement = f"{self._statement} {self._named(piece)}"
        return False

    def finish(self) -> tuple[Instruction, ...]:
        return resolved(self._body, self._labels)

    def _named(self, piece: str) -> str:
        """Note the labels that a piece of text begins with, and return the rest."""
        while not self._statement.strip() and (label := _LABEL.match(piece)):
            self._labels[label[1]] = len(self._body)
            piece = piece[label.end() :]
        return piece

    def _end_statement(self) -> None:
        statement, self._statement = self._statement.strip(), ""
        match = _INSTRUCTION.fullmatch(statement)
        if match:
            self._body.append(_read(match[1] is not None, match[2], match[3], self._line))


def _read(guarded: bool, opcode: str, operands: str, line: int) -> Raw:
    base = opcode.partition(".")[0]
    label = _BRANCH.match(operands) if base == "bra" else None
    instruction = Instruction(
        opcode,
        line,
        _access(opcode.split("."), operands),
        _MULTIPLY_ADD.match(opcode) is not None,
        ends=not guarded and (base in _ENDS or base == "bra"),
    )
    return Raw(instruction, label[0] if label else "")


def _access(words: list[str], operands: str) -> Access | None:
    base, *modifiers = words
    spaces = [modifier.partition("::")[0] for modifier in modifiers]
    if base == "cp" and "async" in modifiers and ("global" in spaces or "bulk" in modifiers):
        copied = None if "bulk" in modifiers else _COPIED.search(operands)
        return Access("global", "asynchronous copy", int(copied[1]) if copied else 0)
    if base not in _KINDS or any(space in _SILENT for space in spaces):
        return None
    space = next((space for space in spaces if space in _SPACES), "generic")
    return Access(space, _KINDS[base], _width(base, modifiers))


def _width(base: str, modifiers: list[str]) -> int:
    """Return the bytes of one thread."""
    if base in ("ldmatrix", "stmatrix"):
        return 4 * next((int(modifier[1:]) for modifier in modifiers if modifier in ("x2", "x4")), 1)
    count = next((int(modifier[1:]) for modifier in modifiers if modifier in ("v2", "v4", "v8")), 1)
    kind = next((found for modifier in reversed(modifiers) if (found := _TYPE.fullmatch(modifier))), None)
    if kind is None:
        return 0
    return count * (int(kind[1]) // 8 if kind[1] else 4 if kind[0].endswith("x2") else 2)
