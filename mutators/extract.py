"""Takes the kernel out of a model's reply: one complete `.cu` file, or the reason why there is none.

A reply is data: nothing in it is obeyed, only a kernel's text is looked for. Whether that text compiles or has a valid
launch header is the evaluator's affair, whose verdict teaches the next step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evo import kernel as kernels
from evo.errors import HeaderError
from evo.kernel import header_text, lexer
from mutators import fences, replies

UNCHANGED = "returned the parent unchanged"

_FOREIGN_LANGUAGES = frozenset({"diff", "patch", "python", "py", "json", "bash", "sh"})
_HEADER_BEGINS = re.compile(r"^[ \t]*/\*\s*launch\b", re.MULTILINE)
_CODE_BEGINS = re.compile(
    r"^(?:#\s*(?:include|define|pragma|if)|extern\b|template\b|namespace\b|using\b|struct\b|static\b|"
    r"constexpr\b|__global__|__device__|__constant__)",
    re.MULTILINE,
)
_QUALIFIERS = frozenset({"const", "volatile", "__restrict__", "__restrict", "restrict"})
_LINE_ENDS = re.compile(r"[ \t]*;?[ \t]*$", re.MULTILINE)
_MOST_ENDINGS = 4  # an unfenced kernel ends where braces close last, or just before where prose has some of its own


@dataclass(frozen=True)
class Extracted:
    """A kernel's source, or None and the problem in words that a model understands; `note` is for people."""

    source: str | None
    problem: str = ""
    note: str = ""


def kernel(reply: str, finish_reason: str, parents: Sequence[str]) -> Extracted:
    """Take the kernel out of a reply.

    Of several fenced blocks the last complete one with a launch header counts (models quote first and answer last),
    else the longest complete one. A reply without a header keeps the first parent's, provided that the parent's
    kernels are all there with the same parameter types.

    Args:
        reply: the model's text.
        finish_reason: as the provider says; `length` means that the text was cut off.
        parents: the source that was to be changed, and other spellings of it; the first one lends its header.
    """
    text = fences.clean(reply).replace("\u00a0", " ")
    found = fences.blocks(text)
    foreign = [block for block in found if block.language in _FOREIGN_LANGUAGES]
    code = _best(block.text for block in found if block not in foreign)
    if code is None and any("__global__" in block.text for block in foreign):
        return Extracted(None, "the reply holds a diff or another language instead of the whole .cu file")
    code = code or _best(_strings(text)) or _unfenced(text)
    if code is None:
        return Extracted(None, _why_none(text, finish_reason))
    whole = _with_header(code, found, parents)
    return judged(whole.source, parents, whole.note) if whole.source is not None else whole


def judged(source: str, parents: Sequence[str], note: str = "") -> Extracted:
    """Return a kernel if it may be proposed: of a size that is read, complete, and none of the parents.

    Args:
        source: a whole file.
        parents: in every spelling.
        note: how the source came about.
    """
    size, limit = len(source.encode(errors="replace")), kernels.MAX_SOURCE_BYTES
    if size > limit:
        return Extracted(None, f"the kernel has {size} bytes; at most {limit} are read")
    if not _complete(source):
        return Extracted(None, "the kernel is not complete: braces do not close, or there is no __global__ function")
    if not _has_header(source):
        return Extracted(None, "the kernel has no launch header")
    if any(_same(source, parent) for parent in parents):
        return Extracted(None, UNCHANGED)
    return Extracted(source, note=note)


def _best(texts: Iterable[str]) -> str | None:
    complete = [text.strip("\n") + "\n" for text in texts if _complete(text)]
    with_header = [text for text in complete if _has_header(text)]
    if with_header:
        return with_header[-1]
    return max(complete, key=len, default=None)


def _complete(text: str) -> bool:
    """Whether the text spells out a kernel and every brace closes; a backtick in code is a fence gone astray."""
    if not lexer.functions(text):
        return False
    depth, bodies = 0, 0
    for token in lexer.tokens(text):
        if token.text == "{":
            bodies += depth == 0
            depth += 1
        elif token.text == "}":
            depth -= 1
        if depth < 0 or token.text == "`":
            return False
    return depth == 0 and bodies > 0


def _unfenced(text: str) -> str | None:
    """Find a kernel in a reply without (usable) fences: from the first line of code to the last fitting brace."""
    begin = _HEADER_BEGINS.search(text) or _CODE_BEGINS.search(text)
    if begin is None:
        return None
    rest = text[begin.start() : begin.start() + kernels.MAX_SOURCE_BYTES]
    for end in reversed(_endings(rest)):
        if _complete(rest[:end]):
            return rest[:end] + "\n"
    return None


def _strings(text: str) -> Iterator[str]:
    """Yield the texts of a JSON answer that hold a kernel: some models answer so unasked."""
    for found in replies.objects(text):
        yield from (value for value in found.values() if isinstance(value, str) and "__global__" in value)


def _endings(text: str) -> list[int]:
    """Return the last places where all braces are closed and the line ends: what follows them may be prose."""
    found, depth = list[int](), 0
    for token in lexer.tokens(text):
        depth += (token.text == "{") - (token.text == "}")
        if depth < 0 or token.text == "`":
            break
        if depth == 0 and token.text == "}" and (ended := _LINE_ENDS.match(text, token.start + 1)):
            found.append(ended.end())
    return found[-_MOST_ENDINGS:]


def _why_none(text: str, finish_reason: str) -> str:
    if lacking := replies.lacking(text, finish_reason):
        return lacking
    if "__global__" in text:
        return "the reply holds only part of a kernel: braces do not close, or functions are left out"
    return "the reply holds no __global__ function"


def _with_header(code: str, found: Sequence[fences.Block], parents: Sequence[str]) -> Extracted:
    if _has_header(code):
        return Extracted(code)
    apart = [block.text for block in found if _has_header(block.text) and not lexer.functions(block.text)]
    if len(apart) == 1:
        return Extracted(_joined(_header(apart[0]), code), note="the launch header stood in a block of its own")
    header = _header(parents[0]) if parents else ""
    if not header:
        return Extracted(None, "the kernel has no launch header")
    misfit = _misfit(parents[0], code)
    if misfit:
        return Extracted(None, f"the kernel has no launch header, and the parent's does not fit: {misfit}")
    return Extracted(_joined(header, code), note="the reply had no launch header; the parent's was kept")


def _has_header(source: str) -> bool:
    try:
        return header_text.locate(source) is not None
    except HeaderError:
        return True  # a wrong one: the evaluator says what is wrong with it


def _header(source: str) -> str:
    """The launch comment of a source, or "" where it has none that can be read."""
    try:
        located = header_text.locate(source)
    except HeaderError:
        return ""
    return located.source[located.start : located.end] if located else ""


def _joined(header: str, code: str) -> str:
    return f"{header.strip()}\n{code.lstrip()}"


def _misfit(parent: str, code: str) -> str:
    """Say why the parent's header cannot launch `code`; "" when it can."""
    ours = {function.name: function for function in lexer.functions(code)}
    for function in lexer.functions(parent):
        if function.name not in ours:
            return f"there is no kernel {function.name!r}"
        want, got = _types(function.parameters), _types(ours[function.name].parameters)
        if want != got:
            return f"the parameters of {function.name!r} were ({', '.join(want)}) and are ({', '.join(got)})"
    return ""


def _types(parameters: Sequence[str]) -> tuple[str, ...]:
    """Strip names and qualifiers from parameters: ``const float * __restrict__ A`` is ``float *``."""
    found = []
    for parameter in parameters:
        words = [word for word in parameter.split() if word not in _QUALIFIERS]
        named = len(words) > 1 and re.fullmatch(r"[A-Za-z_]\w*", words[-1])
        found.append(" ".join(words[:-1] if named else words))
    return tuple(found)


def _same(source: str, parent: str) -> bool:
    """Whether both are the same program with the same meaning of header; comments and spacing do not count."""
    try:
        return kernels.parse(source).hash == kernels.parse(parent).hash
    except HeaderError:
        return source.split() == parent.split()
