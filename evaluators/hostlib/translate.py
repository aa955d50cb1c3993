"""From a CUDA source to a C++ translation unit for the host device: text in, text out, line for line.

Only what macros and templates cannot do happens here (`hostlib/` does the rest). No compiler and no file enters. What
the host device cannot run is refused here with its line, so that it never gives a wrong result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evo.records import Status

FILE = "kernel.cu"
"""The name under which the compiler's messages and the line tables know the candidate's source."""
TABLE = "launches"
"""The name of the generated part behind it."""

_HEADERS = """
    cuda.h cuda_runtime.h cuda_runtime_api.h device_launch_parameters.h vector_types.h vector_functions.h
    device_functions.h math_functions.h math_constants.h sm_60_atomic_functions.h cuda_fp16.h cuda_fp16.hpp cuda_bf16.h
    cuda_bf16.hpp mma.h crt/mma.h cooperative_groups.h cooperative_groups/reduce.h cooperative_groups/scan.h assert.h
    cassert float.h cfloat limits.h climits limits math.h cmath stddef.h cstddef stdint.h cstdint stdio.h cstdio
    string.h cstring type_traits utility initializer_list
""".split()  # noqa: SIM905 - names read better without quotes
"""Headers whose content is always there (`hostlib/cuda_host.hpp`), so that including them does nothing."""

_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"][^\n]*", re.MULTILINE)
_UNSUPPORTED = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"\b(?:asm|__asm|__asm__)\b", "inline PTX"),
        (r"<<<", "launching a kernel from the device (dynamic parallelism)"),
        (
            r"\b(?:tex[123]D\w*|texCubemap\w*|surf[123]D\w*|texture\s*<|cuda(?:Texture|Surface)Object_t)",
            "textures and surfaces",
        ),
        (r"\b(?:cub|thrust|cutlass|cute)\s*::", "CUB, Thrust and CUTLASS"),
        (r"\b(?:__pipeline_\w+|memcpy_async|__mbarrier_\w+|cuda\s*::\s*(?:barrier|pipeline))", "asynchronous copies"),
        (r"\bcuda\s*::", "libcu++"),
        (r"\b(?:this_cluster|cluster_group|__cluster_dims__)\b", "thread-block clusters"),
        (r"\b__nv_fp(?:8|6|4)\w*", "fp8, fp6 and fp4"),
        (r"\bcurand\w*", "cuRAND"),
        (r"\b(?:malloc|free|alloca)\s*\(", "allocating memory on the device"),
        (r"\bnew\s+[A-Za-z_(:]", "allocating memory on the device"),
        (r"\b(?:precision\s*::\s*tf32|experimental\s*::\s*precision)", "wmma in tf32 or below a byte"),
        (r"\bcuda[A-Z]\w*\s*\(", "CUDA's host interface"),
    )
)
_OURS = re.compile(r"\b(?:cuda_host|cuda_user|host_kernels)\b")
_SHARED_INITIALISED = re.compile(r"\b__shared__\b[^;{}()=]*(?:\[[^\];{}]*\][^;{}()=]*)*=(?!=)")
_DYNAMIC_SHARED = re.compile(
    r"\bextern\s+(?P<before>(?:(?:__shared__|__align__\s*\([^()]*\)|alignas\s*\([^()]*\)|volatile)\s+)+)"
    r"(?P<type>[A-Za-z_][\w:]*(?:\s*<[\w\s,:]*>)?(?:\s+(?!__align__)[A-Za-z_]\w*)*?)\s+"
    r"(?:__align__\s*\([^()]*\)\s*)?(?P<name>[A-Za-z_]\w*)\s*\[\s*\](?P<rest>(?:\s*\[[^\]]*\])*)\s*;"
)
_EXTERN_C = re.compile(r'\bextern(\s+)"C"')
_UNROLL = re.compile(r"^([ \t]*)#[ \t]*pragma[ \t]+unroll\b[ \t]*([^\n]*)$", re.MULTILINE)
_UNROLL_ALL = 16
"""For a bare `#pragma unroll`: GCC wants a number, and 16 covers the inner tiles of usual kernels."""
_LOOP = re.compile(r"\s*(?:for|while|do)\b")
_INTEGER = re.compile(r"\(?\s*(\d+)\s*\)?")
_KERNEL_NAME = re.compile(r"[A-Za-z_][\w:]*(?:<[\w\s,:<>]*>)?")


@dataclass(frozen=True)
class Refused(Exception):
    """The source cannot be translated; `line` is 1-based, 0 where there is none."""

    status: Status
    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


def translate(source: str, kernels: Sequence[str], defines: Mapping[str, int], *, unroll: bool = True) -> str:
    """Return the translation unit for a candidate's source.

    Args:
        source: the candidate's text.
        kernels: what launches name: functions, or instances of templates such as ``gemm<64, 4>``.
        defines: macros; they are set behind the library's headers, so that no name can disturb those.
        unroll: whether `#pragma unroll` is kept: with every access instrumented it would make a program too large.

    Raises:
        Refused: the source uses something that the host device has not.
    """
    source = source.replace("\r\n", "\n")
    blanked = blank(source)
    _refuse(source, blanked)
    text = _INCLUDE.sub("", source)
    text = _bind_dynamic_shared(text)
    text = _EXTERN_C.sub(r'extern\1"C++"', text)
    text = _translate_unroll(text, defines) if unroll else _UNROLL.sub("", text)
    macros = "".join(f"#define {name} {value}\n" for name, value in sorted(defines.items()))
    return f'#include "cuda_host.hpp"\n{macros}namespace cuda_user {{\n#line 1 "{FILE}"\n{text}\n{_table(kernels)}'


def blank(source: str) -> str:
    """Replace comments, strings and characters by blanks of the same length; lines stay where they are."""
    return _QUIET.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


_QUIET = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def plain_name(kernel: str) -> str:
    """Return a kernel's name as the program's table has it: without blanks."""
    return "".join(kernel.split())


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _refuse(source: str, blanked: str) -> None:
    for include in _INCLUDE.finditer(source):
        if include.group(1) not in _HEADERS and blanked[include.start() : include.end()].strip():
            raise _unsupported(source, include.start(), f"the header <{include.group(1)}>")
    without_includes = _INCLUDE.sub(lambda match: " " * len(match.group()), blanked)
    found = [(match.start(), what) for pattern, what in _UNSUPPORTED if (match := pattern.search(without_includes))]
    if found:
        raise _unsupported(source, *min(found))
    if ours := _OURS.search(blanked):
        what = f"{ours.group()} is the host device's own name; CUDA has none such"
        raise Refused(Status.COMPILE_ERROR, _line(source, ours.start()), what)
    if initialised := _SHARED_INITIALISED.search(blanked):
        line = _line(source, initialised.end())
        raise Refused(
            Status.COMPILE_ERROR, line, "a __shared__ variable cannot have an initial value: assign it in the kernel"
        )


def _unsupported(source: str, position: int, what: str) -> Refused:
    return Refused(Status.UNSUPPORTED, _line(source, position), f"the host device has no support for {what}")


def _bind_dynamic_shared(text: str) -> str:
    """Make ``extern __shared__ T name[];`` a reference to the one array that dynamic shared memory is here."""
    blanked = blank(text)
    pieces: list[str] = []
    end = 0
    at_file_scope: set[str] = set()
    for match in _DYNAMIC_SHARED.finditer(blanked):
        pieces.append(text[end : match.start()])
        end = match.end()
        outermost = blanked.count("{", 0, match.start()) == blanked.count("}", 0, match.start())
        if outermost and match["name"] in at_file_scope:
            replacement = ""
        else:
            replacement = _reference(match, "static " if outermost else "")
        if outermost:
            at_file_scope.add(match["name"])
        pieces.append(replacement + "\n" * match.group().count("\n"))
    return "".join((*pieces, text[end:]))


def _reference(match: re.Match[str], storage: str) -> str:
    kind = ("volatile " if "volatile" in match["before"] else "") + " ".join(match["type"].split())
    array = f"{kind} (*)[]{match['rest'].strip()}"
    target = f"*reinterpret_cast<{array}>(::cuda_host::dynamic_shared.memory)"
    return f"{storage}{kind} (&{match['name']})[]{match['rest'].strip()} = {target};"


def _translate_unroll(text: str, defines: Mapping[str, int]) -> str:
    def replace(match: re.Match[str]) -> str:
        if not _LOOP.match(blank(match.string[match.end() :][:400])):
            return ""
        return f"{match[1]}#pragma GCC unroll {_unroll_count(blank(match[2]), defines)}"

    return _UNROLL.sub(replace, text)


def _unroll_count(argument: str, defines: Mapping[str, int]) -> int:
    argument = argument.strip()
    if number := _INTEGER.fullmatch(argument):
        return min(int(number[1]), 128)
    value = defines.get(argument.strip("() "), _UNROLL_ALL)
    return min(max(value, 1), 128)


def _table(kernels: Sequence[str]) -> str:
    rows = "".join(f"{row}\n" for row in _rows(kernels))
    return (
        f'#line 1 "{TABLE}"\nextern const ::cuda_host::Kernel host_kernels[] = {{\n{rows}'
        "{nullptr, nullptr, nullptr, 0}};\n}\nnamespace cuda_host {\n"
        "extern const Kernel* const kernels = ::cuda_user::host_kernels;\n}\n"
    )


def _rows(kernels: Sequence[str]) -> Iterator[str]:
    for kernel in kernels:
        if not _KERNEL_NAME.fullmatch(kernel):
            raise Refused(
                Status.COMPILE_ERROR, 0, f"{kernel!r} is not the name of a kernel, nor of an instance of a template"
            )
        yield f'::cuda_host::Entry<&{kernel}>::kernel("{plain_name(kernel)}"),'
