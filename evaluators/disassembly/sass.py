"""Read what `nvdisasm -gi -c` prints of a CUBIN: the machine code (SASS) of each function, with source lines.

Opcodes are those of "CUDA Binary Utilities", "Instruction Set Reference". What is not understood is passed over: the
text is a tool's, and a later release may add to it.
"""

from __future__ import annotations

import re

from evaluators.disassembly.code import Access, Function, Instruction, Raw
from evaluators.disassembly.labels import resolved

_SECTION = re.compile(r"\s*\.section\s+\.text\.([^\s,\"]+)")
_FUNCTION = re.compile(r"\s*\.type\s+([^\s,]+),@function")
_LABEL = re.compile(r"([^\s:]+):\s*$")
_LINE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(
    r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@(?P<not>!?)(?P<guard>U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;]*);"
)
_TARGET = re.compile(r"`\(([^)]+)\)")
_MULTIPLY_ADD = re.compile(r"[FDH]FMA2?|(?:U?[A-Z]+\d*)?G?MMA")
_ZERO_TIMES_ZERO = "-RZ, RZ,"
"""A multiply-add of nothing: how the compiler moves a constant on the unit that is idle."""
_ENDS = ("EXIT", "RET", "BRX", "JMX", "JMP")
_ACCESSES = {
    "LDG": ("global", "load"), "STG": ("global", "store"), "ATOMG": ("global", "atomic"), "REDG": ("global", "atomic"),
    "RED": ("global", "atomic"), "LDS": ("shared", "load"), "STS": ("shared", "store"), "LDSM": ("shared", "load"),
    "STSM": ("shared", "store"), "ATOMS": ("shared", "atomic"), "LDL": ("local", "load"), "STL": ("local", "store"),
    "LD": ("generic", "load"), "ST": ("generic", "store"), "ATOM": ("generic", "atomic"),
    "LDGSTS": ("global", "asynchronous copy"), "UBLKCP": ("global", "asynchronous copy"),
    "UTMALDG": ("global", "asynchronous copy"), "UTMASTG": ("global", "asynchronous copy"),
}  # fmt: skip
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_TILES = ("UBLKCP", "UTMALDG", "UTMASTG")
_MATRICES = ("LDSM", "STSM")
"""Each thread holds 4 bytes of each 8 x 8 matrix of 16-bit elements; the last modifier says how many there are."""


def read(text: str, own: str) -> tuple[Function, ...]:
    """Return the functions in order: kernels, and what they call without inlining it.

    Args:
        text: of nvdisasm.
        own: the file name of the candidate's source in line information.
    """
    found: list[Function] = []
    kernel, name, starts = "", "", set[str]()
    body: list[Raw] = []
    labels: dict[str, int] = {}
    line, in_lines = 0, False

    def finish() -> None:
        if body:
            found.append(Function(name, kernel, resolved(body, labels)))
        body.clear()
        labels.clear()

    for row in text.splitlines():
        if place := _LINE.match(row):
            if not in_lines:
                line = 0
            if place[1] == own and not line:  # the first is what was inlined, the next are where to
                line = int(place[2])
            in_lines = True
            continue
        in_lines = False
        if section := _SECTION.match(row):
            finish()
            kernel = name = section[1]
            line = 0
        elif function := _FUNCTION.match(row):
            starts.add(function[1])
        elif label := _LABEL.match(row):
            if label[1] in starts:
                finish()
                name = label[1].removeprefix(f"${kernel}$")
            labels[label[1]] = len(body)
        elif (instruction := _INSTRUCTION.match(row)) and kernel:
            body += _read(instruction, line)
    finish()
    return tuple(found)


def _read(found: re.Match[str], line: int) -> list[Raw]:
    """Return the instruction, or nothing where it only fills a gap."""
    opcode, operands = found["opcode"], found["operands"].strip()
    base, *modifiers = opcode.split(".")
    never = found["guard"] in ("PT", "UPT") and found["not"]
    if base == "NOP" or never:
        return []
    target = _TARGET.search(operands) if base == "BRA" else None
    always = found["guard"] is None or (found["guard"] in ("PT", "UPT") and not found["not"])
    # `BRA.DIV` and predicates among the operands are conditions too.
    plain = target is not None and operands.replace(target[0], "").strip(" ,") == "" and "DIV" not in modifiers
    instruction = Instruction(
        opcode,
        line,
        _access(base, modifiers),
        bool(_MULTIPLY_ADD.fullmatch(base)) and not operands.partition(",")[2].strip().startswith(_ZERO_TIMES_ZERO),
        ends=always and (base in _ENDS or plain),
    )
    return [Raw(instruction, target[1] if target else "")]


def _access(base: str, modifiers: list[str]) -> Access | None:
    if base not in _ACCESSES:
        return None
    space, kind = _ACCESSES[base]
    if base in _TILES:
        return Access(space, kind, 0)
    if base in _MATRICES:
        return Access(space, kind, 4 * int(modifiers[-1]) if modifiers and modifiers[-1] in ("2", "4") else 4)
    return Access(space, kind, next((_WIDTHS[modifier] for modifier in modifiers if modifier in _WIDTHS), 4))
