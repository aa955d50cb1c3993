"""What a disassembler lists, whatever its language: instructions with their lines, memory accesses and branches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Access:
    """What one thread does to memory with one instruction.

    Attributes:
        space: `global`, `shared`, `local`, or `generic` where the instruction does not say.
        kind: `load`, `store`, `atomic` or `asynchronous copy` (from global to shared memory).
        nbytes: for each thread; 0 where the instruction moves a tile and does not say.
    """

    space: str
    kind: str
    nbytes: int


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        opcode: as listed, with its modifiers.
        line: 1-based line of the candidate's own source, 0 where unknown.
        access: to memory, or None; constants and parameters do not count.
        multiply_adds: whether it is a floating-point multiply-add, of a scalar or a tensor unit.
        target: index of the instruction that it may branch to, or None.
        ends: control never goes on to the next instruction.
    """

    opcode: str
    line: int = 0
    access: Access | None = None
    multiply_adds: bool = False
    target: int | None = None
    ends: bool = False


@dataclass(frozen=True)
class Function:
    """A function's instructions in order; `kernel` is the symbol of the kernel that it belongs to, "" where unknown."""

    name: str
    kernel: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Raw:
    """An instruction before its branch is resolved: `label` is where it goes, "" where nowhere."""

    instruction: Instruction
    label: str = ""
