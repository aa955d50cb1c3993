"""Read the sections and symbols of a relocatable ELF64 file, strictly: what is out of the ordinary is refused.

Every offset is checked, because a candidate's compiler wrote the file. Only the standard library's `struct` is needed.
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
_ALLOC = 2
_MOST_BYTES = 1 << 28

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class NotAnObject(Exception):
    """The file is not what a compiler writes; the message says how."""


@dataclass(frozen=True)
class Section:
    """One section; `loaded` says whether it takes memory when the program runs."""

    name: str
    kind: str
    size: int
    loaded: bool


@dataclass(frozen=True)
class Symbol:
    """One symbol; `place` is UNDEFINED, ABSOLUTE, COMMON or DEFINED."""

    name: str
    binding: str
    kind: str
    place: str
    size: int


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
    data = path.read_bytes()[: _MOST_BYTES + 1]
    if len(data) > _MOST_BYTES:
        raise NotAnObject(f"more than {_MOST_BYTES >> 20} MiB")
    try:
        return _read(data)
    except (struct.error, UnicodeDecodeError) as error:
        raise NotAnObject(str(error)) from error


def _read(data: bytes) -> ObjectFile:
    head = _HEADER.unpack_from(data)
    if head[0][:7] != b"\x7fELF\x02\x01\x01" or head[1] != 1:
        raise NotAnObject("not a relocatable ELF64 file")
    offset, entry, count, names_at = head[6], head[11], head[12], head[13]
    if entry != _SECTION.size or not 0 < names_at < count:
        raise NotAnObject("its section table is not as usual")
    raw = [_SECTION.unpack_from(data, offset + index * entry) for index in range(count)]
    names = _bytes(data, raw[names_at])
    sections = tuple(
        Section(_string(names, row[0]), _SECTION_KINDS.get(row[1], f"type {row[1]:#x}"), row[5], bool(row[2] & _ALLOC))
        for row in raw
    )
    symbols: list[Symbol] = []
    for row, section in zip(raw, sections, strict=True):
        if section.kind == "SYMTAB":
            if not 0 < row[6] < count or row[9] != _SYMBOL.size:
                raise NotAnObject("its symbol table is not as usual")
            symbols += _symbols(_bytes(data, row), _bytes(data, raw[row[6]]))
    return ObjectFile(sections, tuple(symbols))


def _symbols(table: bytes, names: bytes) -> Iterator[Symbol]:
    for name, info, _other, place, _value, size in _SYMBOL.iter_unpack(table):
        binding = _BINDINGS.get(info >> 4, f"binding {info >> 4}")
        kind = _SYMBOL_KINDS.get(info & 15, f"type {info & 15}")
        yield Symbol(_string(names, name), binding, kind, _PLACES.get(place, "DEFINED"), size)


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
