"""Look at a candidate's object file before it is linked: what it holds, defines and calls.

The linker and the loader run nothing of a file that passes but the kernels themselves. Reading the format is
`evaluators.elf`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from evaluators.inspection import elf
from evaluators.inspection.refusal import Refusal, refuse
from evo.records import Status


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECTIONS = re.compile(
    r"\.(text|data|rodata|bss|tdata|tbss|data\.rel|data\.rel\.ro|data\.rel\.local|data\.rel\.ro\.local|eh_frame"
    r"|gcc_except_table)(\..+)?|\.(comment|note\.GNU-stack|note\.gnu\.property|symtab|strtab|shstrtab|symtab_shndx"
    r"|group|llvm_addrsig)|\.debug_\w+"
)
_SECTION_TYPES = frozenset({"NULL", "PROGBITS", "SYMTAB", "STRTAB", "RELA", "NOBITS", "GROUP", "SYMTAB_SHNDX", "NOTE"})

_MATHS = _words(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor
    fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround
    modf nan nearbyint nextafter pow remainder remquo rint round roundeven scalbln scalbn sin sincos sinh sqrt tan tanh
    tgamma trunc y0 y1 yn
    """
)
_USABLE = frozenset(
    {name + suffix for name in _MATHS for suffix in ("", "f", "l")}
    | _words("memcpy memmove memset memcmp _GLOBAL_OFFSET_TABLE_ __tls_get_addr __stack_chk_fail")
    | _words("__errno_location __isnan __isinf __isnanf __isinff __finite __finitef __signbit __signbitf")
    | _words("__cxa_pure_virtual _ZTVN10__cxxabiv117__class_type_infoE _ZTVN10__cxxabiv120__si_class_type_infoE")
    | _words("_ZTVN10__cxxabiv121__vmi_class_type_infoE")
)
_ARITHMETIC = re.compile(
    # libgcc's own arithmetic (128-bit integers, half and bfloat16, complex, powi) and libmvec's vector mathematics.
    r"__(u?div|u?mod|mul|neg|ash[lr]|lshr|popcount|parity|clz|ctz|ffs|bswap|[uU]?cmp)[dst]i[234]"
    r"|__(extend|trunc|float|floatun|fix|fixuns)[a-z0-9]+|__(mul|div)[hsdxt]c3|__powi[sdxt]f2"
    r"|__(eq|ne|lt|le|gt|ge|unord|add|sub|mul|div|neg)[hbsdxt]f[23]|_ZGV[a-zA-Z]+\d\w*"
)
_DEVICE_ONLY = {
    "malloc": "memory allocation in a kernel",
    "free": "memory allocation in a kernel",
    "calloc": "memory allocation in a kernel",
    "_Znwm": "`new` in a kernel",
    "_Znam": "`new` in a kernel",
    "_ZdlPv": "`delete` in a kernel",
    "_ZdlPvm": "`delete` in a kernel",
    "_ZdaPv": "`delete` in a kernel",
    "__cxa_guard_acquire": "a static variable that is initialised when first reached",
    "__cxa_atexit": "a global object with a destructor",
    "__cxa_throw": "an exception in a kernel",
}
_STATIC_BYTES = 1 << 28


def inspect_object(
    path: str | Path, *, namespace: str, exports: Collection[str] = (), runtime: Sequence[str] = ()
) -> tuple[Refusal, ...]:
    """Check a candidate's object file before it is linked.

    It may define symbols in its own namespace only, may call mathematics, memory copies and the runtime only, and may
    hold nothing that runs before or after the kernels (initialisers, IFUNC resolvers) and no sections of its own.

    Args:
        path: an ELF64 relocatable file.
        namespace: the C++ namespace that surrounds the candidate.
        exports: further symbols that it defines by agreement: the table of its kernels.
        runtime: prefixes of the symbols that the runtime offers to it.

    Returns:
        The refusals; empty when it may be linked.
    """
    try:
        file = elf.read(Path(path))
    except elf.NotAnObject as error:
        return (refuse(Status.UNSAFE, 0, Path(path).name, f"is no object file as g++ writes it: {error}"),)
    found = [
        *_refuse_sections(file),
        *_refuse_definitions(file, namespace, exports),
        *_refuse_uses(file, namespace, tuple(runtime)),
    ]
    return tuple(dict.fromkeys(found))


def _refuse_sections(file: elf.ObjectFile) -> Iterator[Refusal]:
    for section in file.sections:
        name = section.name.removeprefix(".rela") if section.kind == "RELA" else section.name
        if name.startswith((".preinit_array", ".init", ".fini", ".ctors", ".dtors")):
            why = "holds code that runs before or after the kernels: a global variable with a dynamic initialiser, or "
            yield refuse(Status.UNSAFE, 0, section.name, why + "a constructor; initialise globals with constants")
        elif section.kind not in _SECTION_TYPES or (name and not _SECTIONS.fullmatch(name)):
            yield refuse(Status.UNSAFE, 0, section.name, "is a section that no kernel needs")
    loaded = sum(section.size for section in file.sections if section.loaded)
    loaded += sum(symbol.size for symbol in file.symbols if symbol.place == "COMMON")
    if loaded > _STATIC_BYTES:
        why = f"are more static data than the {_STATIC_BYTES >> 20} MiB that the host device has for them"
        yield refuse(Status.UNSUPPORTED, 0, f"{loaded >> 20} MiB", why)


def _refuse_definitions(file: elf.ObjectFile, namespace: str, exports: Collection[str]) -> Iterator[Refusal]:
    inside = f"{len(namespace)}{namespace}"
    for symbol in file.symbols:
        if symbol.kind == "GNU_IFUNC":
            yield refuse(Status.UNSAFE, 0, symbol.name, "is resolved by code that runs before the kernels")
        elif symbol.place == "UNDEFINED" or symbol.binding == "LOCAL" or symbol.name in exports:
            continue
        elif symbol.binding not in ("GLOBAL", "WEAK"):
            yield refuse(Status.UNSAFE, 0, symbol.name, f"is bound as {symbol.binding}, which no kernel needs")
        elif not symbol.name.startswith("_Z") or not (inside in symbol.name or _is_inline(symbol)):
            why = "is defined for the whole program: it would replace a function of the runtime; make it static"
            yield refuse(Status.UNSAFE, 0, symbol.name, why)


def _is_inline(symbol: elf.Symbol) -> bool:
    """Inline functions and templates of headers are weak; the runtime's own are linked first and so win."""
    return symbol.binding == "WEAK" and not re.match("_Z[nd][aw]", symbol.name)


def _refuse_uses(file: elf.ObjectFile, namespace: str, runtime: tuple[str, ...]) -> Iterator[Refusal]:
    for symbol in file.symbols:
        name = symbol.name
        if symbol.place != "UNDEFINED" or not name or name in _USABLE or _ARITHMETIC.fullmatch(name):
            continue
        if runtime and name.startswith(runtime):
            continue
        if name.startswith("_Z") and f"{len(namespace)}{namespace}" in name:
            yield refuse(Status.COMPILE_ERROR, 0, name, "is used, but nowhere defined")
        elif name in _DEVICE_ONLY:
            yield refuse(Status.UNSUPPORTED, 0, name, f"is {_DEVICE_ONLY[name]}, which the host device cannot run")
        else:
            yield refuse(Status.UNSAFE, 0, name, "is called, but is neither device code nor mathematics")
