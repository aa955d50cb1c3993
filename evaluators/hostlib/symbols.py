"""Where a linked host program keeps the candidate's variables: names, addresses and sizes, from its symbol table.

Reads ELF64 executables that our own linker call wrote. Nothing is executed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB = 2
_OBJECT, _TLS = 1, 6
_NAMESPACE = "9cuda_user"
"""How a mangled name begins to speak of the candidate's namespace (Itanium C++ ABI, 5.1)."""
_PART = re.compile(r"\d+")
_NUMBERS = re.compile(r"L[a-z]n?\d+E|[ST]\d*_")
"""Numbers in a mangled name that count no letters: template arguments and substitutions."""


@dataclass(frozen=True)
class Variable:
    """A variable of the candidate.

    Attributes:
        name: as in the source.
        owner: the outermost function that it stands in, or "".
        shared: in shared memory; `address` is then an offset into the thread-local segment.
        address: in bytes.
        size: in bytes.
    """

    name: str
    owner: str
    shared: bool
    address: int
    size: int


def variables(image: bytes) -> tuple[Variable, ...]:
    """Return the candidate's shared and global variables, those that can be written among them."""
    return tuple(_variables(image))


def is_checked(image: bytes) -> bool:
    """Return whether a program is of the `check` flavour."""
    return any(name == "__tsan_init" for name, *_ in _symbols(image))


def static_shared_bytes(found: Sequence[Variable], kernel: str) -> int:
    """Return how much static shared memory a kernel declares itself, that of its device functions not counted."""
    function = kernel.split("<")[0].split("::")[-1].strip()
    return sum(variable.size for variable in found if variable.shared and variable.owner == function)


def _variables(image: bytes) -> Iterator[Variable]:
    for name, kind, address, size, writable in _symbols(image):
        if kind not in (_OBJECT, _TLS) or _NAMESPACE not in name or not size or "host_kernels" in name:
            continue
        if kind == _TLS or writable:
            parts = _parts(name)
            owner = parts[1] if len(parts) > 2 and name.startswith("_ZZ") else ""
            yield Variable(parts[-1], owner, kind == _TLS, address, size)


def _parts(mangled: str) -> list[str]:
    """Return the identifiers in a mangled name: ``_ZZN9cuda_user4gemmEPKfE4tile`` -> cuda_user, gemm, tile."""
    mangled = _NUMBERS.sub("", mangled)
    found: list[str] = []
    at = 0
    while match := _PART.search(mangled, at):
        # A count may follow other digits ("f32" of an encoding): take the longest that leaves an identifier.
        for start in range(match.start(), match.end()):
            length = int(mangled[start : match.end()])
            word = mangled[match.end() : match.end() + length]
            if length and len(word) == length and re.fullmatch(r"[A-Za-z_]\w*", word):
                found.append(word)
                at = match.end() + length
                break
        else:
            at = match.end()
    return found or [mangled]


def _symbols(image: bytes) -> Iterator[tuple[str, int, int, int, bool]]:
    head = _HEADER.unpack_from(image)
    offset, entry, count = head[6], head[11], head[12]
    rows = [_SECTION.unpack_from(image, offset + i * entry) for i in range(count)]
    for row in rows:
        if row[1] != _SYMTAB:
            continue
        names = rows[row[6]][4]
        for name, info, _other, place, value, size in _SYMBOL.iter_unpack(image[row[4] : row[4] + row[5]]):
            text = image[names + name : image.index(b"\0", names + name)].decode()
            writable = 0 < place < count and bool(rows[place][2] & 1)
            yield text, info & 15, value, size, writable
