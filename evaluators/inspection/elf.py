"""Read the sections and symbols of an ELF64 file, strictly: what is out of the ordinary is refused.

Every offset is checked, because a candidate's compiler wrote the file. Only the standard library's `struct` is needed.
What the names of sections and symbols mean is not known here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# System V ABI, chapters 4 and 5, with the GNU extensions; names without their prefixes.
_SECTION_KINDS = {
    0: "NULL",
    1: "PROGBITS",
    2: "SYMTAB",
    3: "STRTAB",
    4: "RELA",
    7: "NOTE",
    8: "NOBITS",
    14: "INIT_ARRAY",
    15: "FINI_ARRAY",
    16: "PREINIT_ARRAY",
    17: "GROUP",
    18: "SYMTAB_SHNDX",
    0x70000001: "PROGBITS",  # x86-64's own number for unwinding tables
}
_BINDINGS = {0: "LOCAL", 1: "GLOBAL", 2: "WEAK", 10: "GNU_UNIQUE"}
_SYMBOL_KINDS = {0: "NOTYPE", 1: "OBJECT", 2: "FUNC", 3: "SECTION", 4: "FILE", 5: "COMMON", 6: "TLS", 10: "GNU_IFUNC"}
_PLACES = {0: "UNDEFINED", 0xFFF1: "ABSOLUTE", 0xFFF2: "COMMON"}
_WRITE = 1
_ALLOC = 2
_PROGRAM_HEADER_BYTES = 56
_MOST_BYTES = 1 << 28

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class NotAnObject(Exception):
    """The file is not what a compiler writes; the message says how."""


@dataclass(frozen=True)
class Form:
    """Which files are read: `kind` and `machine` (None: of every machine) are e_type and e_machine of the header.

    `linked` files have program headers.
    """

    words: str
    kind: int
    machine: int | None
    linked: bool


RELOCATABLE = Form("a relocatable ELF64 file", 1, None, linked=False)
CUBIN = Form("a CUBIN", 2, 190, linked=True)
"""Linked code for an NVIDIA GPU (EM_CUDA), as NVRTC and ptxas write it."""
PROGRAM = Form("a program", 2, None, linked=True)
"""A program for this machine, linked to a fixed place."""


@dataclass(frozen=True)
class Section:
    """One section; `loaded` says whether it takes memory when the program runs, `writable` whether that may change."""

    name: str
    kind: str
    size: int
    loaded: bool
    writable: bool


@dataclass(frozen=True)
class Symbol:
    """One symbol; `place` is UNDEFINED, ABSOLUTE, COMMON or DEFINED.

    Of a symbol that is DEFINED, `section` is the number of its section, which may be beyond the last, and `value` its
    offset there. `other` is st_other, whose upper bits belong to the machine.
    """

    name: str
    binding: str
    kind: str
    place: str
    size: int
    section: int
    value: int
    other: int


@dataclass(frozen=True)
class ObjectFile:
    """What was read."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]


def read(path: Path) -> ObjectFile:
    """Read an object file.

    Args:
        path: of at most 256 MiB.

    Raises:
        NotAnObject: it is no little-endian relocatable ELF64 file, or damaged.
    """
    return parse(path.read_bytes()[: _MOST_BYTES + 1], RELOCATABLE)


def parse(data: bytes, form: Form) -> ObjectFile:
    """Read a file's bytes.

    Args:
        data: at most 256 MiB.
        form: what it must be.

    Raises:
        NotAnObject: it is no little-endian ELF64 file of that form, or damaged.
    """
    if len(data) > _MOST_BYTES:
        raise NotAnObject(f"more than {_MOST_BYTES >> 20} MiB")
    try:
        return _read(data, form)
    except (struct.error, OverflowError, UnicodeDecodeError) as error:
        raise NotAnObject(str(error)) from error


def contents(data: bytes, form: Form) -> tuple[tuple[Section, bytes], ...]:
    """Return the sections of a file with what they hold; those without room in the file hold nothing.

    Args:
        data: at most 256 MiB.
        form: what it must be.

    Raises:
        NotAnObject: as `parse`.
    """
    sections = parse(data, form).sections
    head = _HEADER.unpack_from(data)
    rows = (_SECTION.unpack_from(data, head[6] + index * head[11]) for index in range(head[12]))
    return tuple(
        (section, b"" if section.kind in ("NOBITS", "NULL") else _bytes(data, row))
        for section, row in zip(sections, rows, strict=True)
    )


def _read(data: bytes, form: Form) -> ObjectFile:
    head = _HEADER.unpack_from(data)
    if head[0][:7] != b"\x7fELF\x02\x01\x01" or head[1] != form.kind or form.machine not in (None, head[2]):
        raise NotAnObject(f"not {form.words}")
    offset, entry, count, names_at = head[6], head[11], head[12], head[13]
    if entry != _SECTION.size or not 0 < names_at < count:
        raise NotAnObject("its section table is not as usual")
    if form.linked:
        _check_program_headers(data, head)
    raw = [_SECTION.unpack_from(data, offset + index * entry) for index in range(count)]
    names = _bytes(data, raw[names_at])
    sections = tuple(_section(row, names) for row in raw)
    symbols: list[Symbol] = []
    for row, section in zip(raw, sections, strict=True):
        if section.kind == "SYMTAB":
            if not 0 < row[6] < count or row[9] != _SYMBOL.size:
                raise NotAnObject("its symbol table is not as usual")
            symbols += _symbols(_bytes(data, row), _bytes(data, raw[row[6]]))
    return ObjectFile(sections, tuple(symbols))


def _check_program_headers(data: bytes, head: tuple[int, ...]) -> None:
    """They are not read, but a compiler writes them last, so that a file that was cut short is known by them."""
    offset, entry, count = head[5], head[9], head[10]
    if count == 0 or entry != _PROGRAM_HEADER_BYTES or offset + count * entry > len(data):
        raise NotAnObject("its program headers lie beyond its end, or are not as usual")


def _section(row: tuple[int, ...], names: bytes) -> Section:
    kind = _SECTION_KINDS.get(row[1], f"type {row[1]:#x}")
    return Section(_string(names, row[0]), kind, row[5], bool(row[2] & _ALLOC), bool(row[2] & _WRITE))


def _symbols(table: bytes, names: bytes) -> Iterator[Symbol]:
    for name, info, other, place, value, size in _SYMBOL.iter_unpack(table):
        binding = _BINDINGS.get(info >> 4, f"binding {info >> 4}")
        kind = _SYMBOL_KINDS.get(info & 15, f"type {info & 15}")
        where = _PLACES.get(place, "DEFINED")
        yield Symbol(_string(names, name), binding, kind, where, size, place, value, other)


def _bytes(data: bytes, row: tuple[int, ...]) -> bytes:
    start, size = row[4], row[5]
    if start + size > len(data):
        raise NotAnObject("a section lies beyond its end")
    return data[start : start + size]


def _string(names: bytes, at: int) -> str:
    end = names.find(b"\0", at)
    if end < 0:
        raise NotAnObject("a name lies beyond its table")
    return names[at:end].decode("utf-8")
