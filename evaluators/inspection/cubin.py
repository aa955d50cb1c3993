"""Say what a CUBIN holds, without a GPU: the memory that outlives a launch, and what its code asks of the driver.

What may be done about it is decided elsewhere. Nothing is loaded or run here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluators.inspection import elf
from evaluators.inspection.elf import NotAnObject

__all__ = ["Contents", "NotAnObject", "Variable", "read"]

_TRANSIENT = (".nv.shared.", ".nv.merc.")
"""Writable, but no memory of a module: shared memory, and the copy for the driver's own linker (from sm_100 on)."""
_CONSTANTS = ".nv.constant"
_MANAGED = 4
"""STO_CUDA_MANAGED, in a symbol's st_other."""


@dataclass(frozen=True)
class Variable:
    """One variable that code can write.

    Attributes:
        name: as in the symbol table, mangled.
        size: in bytes.
        section: the name of its section.
        offset: in bytes, from the beginning of the section.
        managed: `__managed__`: the driver keeps it apart from its section, in memory that it shares with the host.
    """

    name: str
    size: int
    section: str
    offset: int
    managed: bool = False


@dataclass(frozen=True)
class Contents:
    """What was found.

    A section may be larger than its variables together: what lies between them is there to align them, and code can
    write it too. Whoever restores a module's memory restores whole sections.

    Attributes:
        variables: all of the module: `__device__`, static locals, `const` data and string literals too, since the file
            does not tell them apart and code can write them; by section and offset.
        sections: writable section that keeps its contents from launch to launch -> bytes.
        constants: `__constant__` variable, by its mangled name -> bytes. They lie in memory that has an address, too.
        calls: functions that the driver provides, such as `malloc`, `vprintf` and `__assertfail`.
    """

    variables: tuple[Variable, ...]
    sections: Mapping[str, int]
    constants: Mapping[str, int]
    calls: frozenset[str]


def read(image: bytes) -> Contents:
    """Read a CUBIN.

    Args:
        image: the file's bytes, as NVRTC returns them; of CUDA 12 or 13.

    Raises:
        NotAnObject: it is no CUBIN, or damaged.
    """
    file = elf.parse(image, elf.CUBIN)
    lasting = [section for section in file.sections if _lasts(section)]
    _refuse_twins("sections", [section.name for section in lasting])
    placed = list(_objects(file))
    variables = [_variable(symbol, section) for symbol, section in placed if _lasts(section)]
    constants = [(symbol.name, symbol.size) for symbol, section in placed if section.name.startswith(_CONSTANTS)]
    _refuse_twins("variables", [variable.name for variable in variables] + [name for name, _ in constants])
    return Contents(
        tuple(sorted(variables, key=lambda variable: (variable.section, variable.offset, variable.name))),
        {section.name: section.size for section in lasting},
        dict(constants),
        frozenset(_calls(file)),
    )


def _lasts(section: elf.Section) -> bool:
    return section.loaded and section.writable and not section.name.startswith(_TRANSIENT)


def _objects(file: elf.ObjectFile) -> Iterator[tuple[elf.Symbol, elf.Section]]:
    for symbol in file.symbols:
        if symbol.kind != "OBJECT" or symbol.place == "UNDEFINED":
            continue
        if symbol.place != "DEFINED" or symbol.section >= len(file.sections):
            raise NotAnObject(f"the variable {symbol.name!r} lies in no section")
        section = file.sections[symbol.section]
        if symbol.value + symbol.size > section.size:
            raise NotAnObject(f"the variable {symbol.name!r} lies beyond the end of {section.name!r}")
        yield symbol, section


def _variable(symbol: elf.Symbol, section: elf.Section) -> Variable:
    return Variable(symbol.name, symbol.size, section.name, symbol.value, bool(symbol.other & _MANAGED))


def _calls(file: elf.ObjectFile) -> Iterator[str]:
    for symbol in file.symbols:
        if symbol.place == "UNDEFINED" and symbol.kind != "OBJECT" and symbol.name:
            yield symbol.name


def _refuse_twins(what: str, names: Sequence[str]) -> None:
    name, times = next(iter(Counter(names).most_common(1)), ("", 0))
    if times > 1:
        raise NotAnObject(f"{times} {what} have the name {name!r}")
