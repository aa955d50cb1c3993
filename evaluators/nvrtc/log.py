"""Read NVRTC's log: errors in the candidate's own lines, and what ptxas says each kernel uses. Text in, records out."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evo.records import Resources

_MOST_ERRORS = 8
_MOST_CHARACTERS = 4000
_HEAD = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): (?P<kind>(?:catastrophic )?error|warning|remark|note)\b"
)
_TALLY = re.compile(r"^\d+ (catastrophic )?errors? detected|^Compilation terminated|^Error limit reached")
_NAMES = "__nv_name_map"
"""The file to which NVRTC ascribes the kernels' names that it was asked for."""

_ASSEMBLY = re.compile(r"ptxas [^;]*, line \d+; (?:error|fatal)\s*: (.*)")
"""ptxas on what it was given, whose lines nobody sees: the candidate's own assembly in most cases."""

_FUNCTION = re.compile(r"Compiling entry function '([^']+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_HINTS = (
    (
        r'identifier "(INFINITY|NAN)" is undefined',
        "write `#include <cmath>`, or use CUDART_INF_F of <math_constants.h>",
    ),
    (r'identifier "(FLT|DBL)_\w+" is undefined', "write `#include <cfloat>`"),
    (r'identifier "U?(INT|LONG|LLONG|SHRT|CHAR)_(MAX|MIN)" is undefined', "write `#include <climits>`"),
    (r'identifier "u?int(8|16|32|64)_t" is undefined', "write `#include <cstdint>`"),
    (r"without execution space annotations", "write `__device__` in front of it"),
    (
        r"__nv_nvrtc_builtin_header\.h\(\d+\): error",
        "a tunable or a macro has a name that CUDA's own headers use, such as T; give it another",
    ),
    (r"calling a __host__ function.* from a __(global|device)__", "declare the function `__device__`"),
)


def explain(log: str, name: str) -> str:
    """Return a log's errors as a model can use them: `line 3: …` for the candidate's own, file names without folders.

    Args:
        log: of a compile that failed.
        name: the file name of the candidate's source.
    """
    errors = [block for block in _blocks(log) if block[0] in ("error", "catastrophic error")]
    errors = [block for block in errors if not block[1].startswith(_NAMES)] or errors
    missing = re.match(rf"{_NAMES}.*\n\s*#pragma nv_mangled_name (.*)", errors[0][1]) if errors else None
    if missing:
        return f"the launch header names a kernel `{missing[1]}`, which the source does not define"
    chosen = [_reword(text, name) for _, text in errors[:_MOST_ERRORS]]
    chosen += _of_assembler(log)
    if len(errors) > _MOST_ERRORS:
        chosen.append(f"({len(errors) - _MOST_ERRORS} more errors)")
    text = "\n".join(chosen) or log.strip() or "the compiler gave no reason"
    hints = [f"hint: {hint}" for pattern, hint in _HINTS if re.search(pattern, text)]
    return "\n".join([text[:_MOST_CHARACTERS], *hints])


def _of_assembler(log: str) -> list[str]:
    """Return what ptxas and NVRTC say of the whole program, each thing once."""
    lines = [line.strip() for line in log.splitlines()]
    inside = [f"ptxas error   : {found[1]}" for line in lines if (found := _ASSEMBLY.match(line))]
    whole = [line for line in lines if re.match(r"ptxas (error|fatal)|nvrtc: error", line)]
    return list(dict.fromkeys([*inside[:_MOST_ERRORS], *whole]))


def _blocks(log: str) -> list[tuple[str, str]]:
    """Cut the log where a message begins; a block keeps the quoted source, the caret and the instantiation stack."""
    blocks: list[tuple[str, list[str]]] = []
    for line in log.splitlines():
        head = _HEAD.match(line)
        if head:
            blocks.append((head["kind"], [line]))
        elif _TALLY.match(line) or line.startswith("ptxas"):
            blocks.append(("other", []))
        elif blocks:
            blocks[-1][1].append(line)
    return [(kind, "\n".join(lines).rstrip()) for kind, lines in blocks]


def _reword(block: str, name: str) -> str:
    block = re.sub(rf"^{re.escape(name)}\((\d+)\): ", r"line \1: ", block)
    block = re.sub(rf'at line (\d+) of "?{re.escape(name)}"?', r"at line \1", block)
    return re.sub(r"[^\s\"'(]*/([\w.]+)(?=[(\"])", r"\1", block)


def resources(log: str, lowered: Mapping[str, str]) -> dict[str, Resources]:
    """Return what `ptxas -v` says of each kernel.

    Args:
        log: of a compile to machine code.
        lowered: kernel name -> its name in the machine code.
    """
    found: dict[str, Resources] = {}
    for part in log.split("ptxas info    : Compiling entry function ")[1:]:
        function = _FUNCTION.match("Compiling entry function " + part)
        frame, used = _FRAME.search(part), _USED.search(part)
        if not (function and frame and used):
            continue
        shared = _SHARED.search(part)
        found[function[1]] = Resources(
            registers=int(used[1]),
            spill_bytes=int(frame[2]) + int(frame[3]),
            static_shared_bytes=int(shared[1]) if shared else 0,
            local_bytes=int(frame[1]),
        )
    return {kernel: found[name] for kernel, name in lowered.items() if name in found}
