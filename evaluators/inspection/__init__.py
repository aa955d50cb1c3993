"""Look at a candidate before anything foreign runs: its text, its preprocessed text, its object file.

This is the first wall, and the one that explains: every refusal names a line and the words found there. The second wall
(`evo.sandbox`) does not rely on it. Nothing is compiled or executed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evaluators.inspection.lexing import Token, readings, tokens
from evaluators.inspection.objects import inspect_object
from evaluators.inspection.refusal import Refusal, refuse
from evo.errors import did_you_mean
from evo.records import Status

__all__ = ["INCLUDES", "Refusal", "inspect_object", "refuse_host_source", "refuse_preprocessed", "refuse_source"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


INCLUDES = _words(
    """
    cuda.h cuda_runtime.h cuda_runtime_api.h device_launch_parameters.h device_functions.h vector_types.h
    vector_functions.h cuda_fp16.h cuda_fp16.hpp cuda_bf16.h cuda_bf16.hpp cuda_fp8.h cuda_fp6.h cuda_fp4.h mma.h
    cuda_pipeline.h cuda_pipeline_primitives.h cuda_awbarrier.h cuda_awbarrier_primitives.h math_constants.h
    math_functions.h cooperative_groups.h cuComplex.h
    assert.h cassert float.h cfloat limits.h climits limits math.h cmath stddef.h cstddef stdint.h cstdint stdio.h
    cstdio stdlib.h cstdlib string.h cstring type_traits utility algorithm array initializer_list tuple functional
    """
)
"""Headers that a kernel may name. What each compiler makes of them is its own matter; none reads a user's file."""

_INCLUDE_FOLDERS = re.compile(r"(cooperative_groups|crt|cuda|cub|thrust|nv)(/[A-Za-z0-9_]+)+(\.(h|hpp|cuh|inl))?")

_DIRECTIVES = _words("include define undef if ifdef ifndef elif elifdef elifndef else endif error warning pragma")
_PRAGMAS = re.compile(
    r"(unroll|nounroll|once|nv_\w+|diag_\w+|hd_warning_disable|pack|message|push_macro|pop_macro|GCC (unroll|ivdep)"
    r"|GCC diagnostic (push|pop|ignored|warning)|STDC \w+|omp simd|clang (loop|fp))\b|$"
)
_ASM = frozenset({"asm", "__asm", "__asm__"})
_PROBES = frozenset({"__has_include", "__has_include_next", "__has_embed"})
_ATTRIBUTES = _words(
    """
    aligned always_inline noinline gnu_inline artificial unused maybe_unused used const pure hot cold packed
    fallthrough nodiscard warn_unused_result likely unlikely noreturn deprecated may_alias vector_size flatten nonnull
    returns_nonnull no_sanitize no_sanitize_thread no_sanitize_undefined optimize leaf nothrow assume assume_aligned
    no_unique_address carries_dependency noclone tls_model
    """
)
"""What speaks of speed, layout or warnings. Not among them: what runs code, names symbols or places sections."""

_HIDDEN_CODE = re.compile(
    r"(?<!\w)\.\s*(incbin|include|section|pushsection|preinit_array|init|fini|globl?|weak\w*|type|set|symver)\b"
)


# --- text, as written ------------------------------------------------------------------------------------------------


def refuse_source(source: str) -> tuple[Refusal, ...]:
    """Check a candidate's text before any compiler sees it, for every device.

    Refused are all ways to read a file or to find out about one (includes beyond the allow-list or named by a macro,
    `#embed`, `__has_include`), to forge lines (`#line`), to rename symbols (`#pragma weak`), and text that two
    compilers could cut into different tokens.

    Args:
        source: the kernel, as it came.

    Returns:
        The refusals in the order of lines; empty when the text may be compiled.
    """
    found = {refusal: None for reading in readings(source) for refusal in _refuse_reading(reading)}
    found.update({refusal: None for refusal in _refuse_characters(source)})
    return tuple(sorted(found, key=lambda refusal: refusal.line))


def refuse_host_source(source: str) -> tuple[Refusal, ...]:
    """Check a candidate's text for the host device: as `refuse_source`, and for assembly that is no PTX statement.

    A label that renames a function or an `.incbin` is an attack, a PTX statement only something that the host device
    cannot run; that is left to others to say. What macros hide, `refuse_preprocessed` finds.
    """
    found = {refusal: None for refusal in refuse_source(source)}
    for reading in readings(source):
        for index, token in enumerate(reading):
            if token.text in _ASM and _is_hostile(text := _assembly(reading[index + 1 :])):
                found[_hostile_assembly(token, text)] = None
    return tuple(sorted(found, key=lambda refusal: refusal.line))


def _refuse_characters(source: str) -> Iterator[Refusal]:
    for match in re.finditer(r"\?\?[=/]|\r(?!\n)|[\x00-\x08\x0e-\x1f\x7f\u2028\u2029]", source):
        line = source.count("\n", 0, match.start()) + 1
        found = match.group() if match.group().isprintable() else f"\\x{ord(match.group()):02x}"
        yield refuse(Status.UNSAFE, line, found, "can hide code from a reader; take it out")


def _refuse_reading(reading: Sequence[Token]) -> Iterator[Refusal]:
    yield from _refuse_doubtful(reading)
    for index, token in enumerate(reading):
        if token.kind == "directive":
            yield from _refuse_directive(token)
        elif token.text in _PROBES:
            yield refuse(Status.UNSAFE, token.line, token.text, "asks for files; a kernel may not")
        elif token.text == "CUtensorMap":
            why = (
                "is a tensor map, which a launch header cannot make; cp.async and cp.async.bulk copy tiles without one"
            )
            yield refuse(Status.UNSUPPORTED, token.line, token.text, why)
        elif token.text == "_Pragma":
            yield from _refuse_pragma_operator(token.line, reading[index + 1 : index + 4])


def _refuse_doubtful(reading: Sequence[Token]) -> Iterator[Refusal]:
    why = {"/*": "opens a comment that never ends", "\\": "is a backslash outside of a literal"}
    for token in reading:
        if token.kind == "quote":
            yield refuse(Status.COMPILE_ERROR, token.line, token.text, "opens a literal that its line does not close")
        elif token.kind == "doubt" and token.text in why:
            yield refuse(Status.COMPILE_ERROR, token.line, token.text, why[token.text])
        elif token.kind == "doubt" and token.text.endswith('"'):
            yield refuse(Status.UNSUPPORTED, token.line, token.text, "opens a raw string; use an ordinary one")
        elif token.kind == "doubt":
            yield refuse(Status.UNSUPPORTED, token.line, token.text, "is a digraph; write # { } [ ] instead")


def _refuse_directive(token: Token) -> Iterator[Refusal]:
    name = re.match(r"\w*", token.text)
    assert name is not None
    rest = token.text[name.end() :].strip()
    if name[0] == "include":
        yield from _refuse_include(token, rest)
    elif name[0] == "pragma":
        yield from _refuse_pragma(token.line, rest)
    elif token.text and name[0] not in _DIRECTIVES:
        why = "is no directive that a kernel may use"
        yield refuse(Status.UNSAFE, token.line, f"#{token.text}", why)


def _refuse_include(token: Token, target: str) -> Iterator[Refusal]:
    words = f"#{token.text}"
    literal = re.fullmatch(r'<([^<>"]+)>|"([^<>"]+)"', target)
    if literal is None:
        yield refuse(Status.UNSAFE, token.line, words, "names its header through a macro; write out the name")
        return
    name = literal[1] or literal[2]
    if name in INCLUDES or _INCLUDE_FOLDERS.fullmatch(name):
        return
    if name.startswith(("/", "~")) or ".." in name or "\\" in name:
        yield refuse(Status.UNSAFE, token.line, words, "reaches for a file of this machine; a kernel may not")
        return
    near = did_you_mean(name, INCLUDES)
    why = "is no header that a kernel may include: it stands alone, with CUDA's own headers"
    yield refuse(Status.UNSUPPORTED, token.line, words, why + (near if near.startswith("; did") else ""))


def _refuse_pragma(line: int, text: str) -> Iterator[Refusal]:
    if not _PRAGMAS.match(text):
        yield refuse(Status.UNSAFE, line, f"#pragma {text}", "is not among the pragmas that a kernel may use")


def _refuse_pragma_operator(line: int, after: Sequence[Token]) -> Iterator[Refusal]:
    shape = [token.kind for token in after]
    if shape == ["mark", "string", "mark"] and after[1].text.startswith('"'):
        yield from _refuse_pragma(line, after[1].text[1:-1].strip())
    # Else it is a macro's parameter: `refuse_preprocessed` sees what becomes of it.


# --- text, preprocessed ----------------------------------------------------------------------------------------------


def refuse_preprocessed(text: str, name: str) -> tuple[Refusal, ...]:
    """Check what the C++ preprocessor made of a candidate: macros cannot hide anything any more. Host device only.

    Refused are assembly in every spelling (statements, labels that rename a function, `.incbin`), attributes beyond
    the allow-list (`constructor`, `ifunc`, `alias`, `weak`, `section`, …), pragmas that rename, files that came in
    from outside, and braces that would close the namespace around the candidate.

    Args:
        text: output of `g++ -E`, with its line markers.
        name: the file name under which the candidate's own lines go in the markers.

    Returns:
        The refusals in the order of lines.
    """
    own = _own_lines(text, name)
    found = [*_refuse_doubtful(own), *_refuse_assembly(own), *_refuse_attributes(own), *_refuse_braces(own)]
    for token in own:
        if token.kind == "directive" and token.text.startswith("pragma"):
            found += _refuse_pragma(token.line, token.text.removeprefix("pragma").strip())
    return tuple(sorted(dict.fromkeys(found), key=lambda refusal: refusal.line))


_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"')


def _own_lines(text: str, name: str) -> list[Token]:
    """Return the tokens that line markers ascribe to the candidate, with its own line numbers."""
    lines: list[str] = []
    numbers: list[int] = []
    own, number = False, 0
    for line in text.split("\n"):
        marker = _MARKER.match(line)
        if marker:
            own, number = marker[2] == name, int(marker[1])
            continue
        if own:
            lines.append(line)
            numbers.append(number)
        number += 1
    return [Token(t.kind, t.text, numbers[t.line - 1], t.inside) for t in tokens("\n".join(lines))]


def _refuse_assembly(own: Sequence[Token]) -> Iterator[Refusal]:
    depth = 0
    for index, token in enumerate(own):
        depth += (token.text == "{") - (token.text == "}")
        if token.text not in _ASM:
            continue
        text = _assembly(own[index + 1 :])
        if depth == 0 or _is_hostile(text):
            yield _hostile_assembly(token, text)
        else:
            why = "is inline assembly (PTX), which the host device cannot run; use the intrinsics of CUDA C++"
            yield refuse(Status.UNSUPPORTED, token.line, f'{token.text}("{text}")', why)


def _hostile_assembly(token: Token, text: str) -> Refusal:
    why = "reaches behind the compiler; a kernel may not"
    return refuse(Status.UNSAFE, token.line, f'{token.text}("{text}")', why)


def _assembly(after: Sequence[Token]) -> str:
    """Return the text of an assembly statement or label; `after` begins behind its keyword."""
    parts: list[str] = []
    for token in after:
        if token.kind == "string":
            parts.append(token.text[token.text.index('"') + 1 : -1])
        elif parts or token.text not in ("(", "volatile", "__volatile__", "__volatile", "goto", "inline"):
            break
    return "".join(parts)


def _is_hostile(text: str) -> bool:
    """Whether it is a name (a label: the symbol's other name), or a directive to the assembler."""
    return re.fullmatch(r"[\w.$@]+", text) is not None or _HIDDEN_CODE.search(text) is not None


def _refuse_attributes(own: Sequence[Token]) -> Iterator[Refusal]:
    for index, token in enumerate(own):
        following = [t.text for t in own[index + 1 : index + 3]]
        if token.text in ("__attribute__", "__attribute") and following == ["(", "("]:
            names = _attribute_names(own[index + 3 :])
        elif token.text == "[" and following[:1] == ["["]:
            names = _attribute_names(own[index + 2 :])
        else:
            continue
        for name in names:
            plain = re.sub(r"^__(\w+)__$", r"\1", name.text)
            if plain not in _ATTRIBUTES:
                why = "is not among the attributes that a kernel may use"
                yield refuse(Status.UNSAFE, name.line, name.text, why)


def _attribute_names(after: Sequence[Token]) -> Iterator[Token]:
    """Yield the names of one attribute list; `after` begins behind its opening brackets."""
    depth, previous = 0, ","
    for index, token in enumerate(after):
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                return
        elif depth == 0 and token.kind == "word":
            scope = index + 1 < len(after) and after[index + 1].text in ("::", ":")
            if previous in (",", "::", ":") and not scope and token.text != "using":
                yield token
        if depth == 0:
            previous = token.text


def _refuse_braces(own: Sequence[Token]) -> Iterator[Refusal]:
    depth = 0
    for token in own:
        depth += (token.text == "{") - (token.text == "}")
        if depth < 0:
            yield refuse(Status.COMPILE_ERROR, token.line, "}", "closes a brace that the kernel has not opened")
            return
    if depth > 0:
        yield refuse(Status.COMPILE_ERROR, own[-1].line, "{", f"is never closed ({depth} open at the end)")
