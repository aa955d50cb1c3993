"""The operator `launch`: a model rewrites the launch header alone; the code stays the parent's, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evo import kernel
from evo.errors import ExpressionError, HeaderError
from evo.kernel import header_text, lexer
from evo.records import ModelReply, MutationContext, Proposal, Relative, Role, Step
from mutators import extract, fences, replies
from mutators.asking import Question, ask
from mutators.prompts import common, kernels, memory, rules

_SCHEMA: Mapping[str, Any] = {
    "title": "launch_header",
    "type": "object",
    "properties": {
        "note": {"type": "string", "description": "what limits the kernel and what you change, in a few sentences"},
        "header": {"type": "string", "description": "YAML of the whole launch header, without the comment around it"},
    },
    "required": ["note", "header"],
    "additionalProperties": False,
}
_WORD = re.compile(r"[A-Za-z_]\w*")

_FENCED = """\
# Your answer

First say in at most five sentences what limits the kernel and what you change. Then give the whole launch header once,
as its comment from `/* launch` to `*/`, in one fence that begins with ```cuda. Code is not read."""

_JSON = """\
# Your answer

Answer with a JSON object: `note` says in at most five sentences what limits the kernel and what you change; `header` is
the YAML of the whole launch header, one key on each line, without the comment around it."""

_TASK = (
    "Change how this kernel is launched, and nothing else: the code below its header stays as it is, byte for byte. "
    "Every tunable that the code uses as a macro has to stay one; block and grid have to go on covering all of the "
    "work, as the code computes its indices from them."
)
_ANYWHERE = (
    "the values of `tune`: those near the best configuration of each case, and beyond the edge of the range where the "
    "best one lies at an edge; no values that lost by far in every case",
    "small and large cases apart: tunables whose best values differ from case to case get a wider choice, with "
    "`require` to keep out what cannot work",
    "the order of the grid's axes, so that blocks which run one after the other share what they read",
)
_ON_A_GPU = (
    "the tail: block and tile sizes for which the last wave of blocks is nearly full on the performance cases",
    'occupancy: `options: ["--maxrregcount=N"]` or smaller blocks where registers or shared memory keep blocks out',
    "compiler options: `--restrict` promises that no two pointers reach the same memory, so that loads may be moved "
    "and cached; `--extra-device-vectorization`",
)


@dataclass(frozen=True)
class Launch:
    """Ask for another launch header; a pure function of the context and the replies so far."""

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        """Return the next request, or the proposal.

        Args:
            context: workload, device, one parent with its evaluation, attempts, seed.
            history: the replies to the requests of this task so far.
        """
        located = _located(context.parents[0])
        if located is None:
            return Proposal(None, "the parent has no launch header that could be replaced")
        return ask(context, history, _question(context, located))


def _question(context: MutationContext, located: header_text.Located) -> Question:
    starts = _ANYWHERE if context.device.kind == "host" else (*_ANYWHERE, *_ON_A_GPU)
    start = starts[int(np.random.default_rng(context.seed).integers(len(starts)))]
    sections = (
        common.workload(context.workload, context.device),
        common.device(context.device),
        *kernels.whole(context.parents[0], context.workload, "The kernel to launch in another way"),
        *memory.section(context),
        common.task(f"{_TASK} Consider first {start}. If something else gains far more, do that."),
        common.answer(_JSON if context.model.schema else _FENCED),
    )
    return Question(sections, lambda reply: _read(context, located, reply), _mend, _SCHEMA)


def _mend(problem: str) -> str:
    return rules.again(
        "No launch header could be taken from your answer",
        problem,
        "Answer again with the whole launch header and nothing else, in the same form.",
    )


def _located(parent: Relative) -> header_text.Located | None:
    """Where the header lies in the parent as it is shown; None where it has none that can be found."""
    try:
        return header_text.locate(kernels.shown(parent))
    except HeaderError:
        return None


def _read(context: MutationContext, located: header_text.Located, reply: ModelReply) -> extract.Extracted:
    """Return the parent under the reply's header, or what is wrong with that."""
    header = next(_headers(reply.text), None)
    if header is None:
        lacking = replies.lacking(reply.text, reply.finish_reason)
        return extract.Extracted(None, lacking or "the reply holds no launch header")
    if _first_comment(header) != header:
        return extract.Extracted(None, "the header is not one comment: '*/' may stand at its end alone")
    source = located.source[: located.start] + header + located.source[located.end :]
    problem = _misfit(context, located.source, source)
    if problem:
        return extract.Extracted(None, problem)
    return extract.judged(source, kernels.spellings(context.parents[:1]))


def _headers(reply: str) -> Iterator[str]:
    """Yield the launch comments of a reply: its JSON's, its last block's, or one in its prose."""
    text = fences.clean(reply).replace("\u00a0", " ")
    for found in replies.objects(text):
        if isinstance(found.get("header"), str):
            yield _comment(found["header"])
    blocks = [block.text for block in reversed(fences.blocks(text))]
    yield from (comment for block in (*blocks, text) if (comment := _first_comment(block)))
    yield from (_comment(block.text) for block in fences.blocks(text) if block.language in ("yaml", "yml"))


def _first_comment(text: str) -> str:
    try:
        found = header_text.locate(text)
    except HeaderError:
        return ""
    return found.source[found.start : found.end] if found else ""


def _comment(yaml: str) -> str:
    """Return the YAML of a header as its comment; it may come with one around it."""
    bare = re.sub(r"^\s*/\*\s*launch\b|\*/\s*$", "", yaml).strip("\n")
    return f"/* launch\n{bare.rstrip()}\n*/"


def _misfit(context: MutationContext, before: str, after: str) -> str:
    """Say why the new header cannot launch the code; "" where it can."""
    try:
        new = kernel.parse(after)
        for case in context.workload.role(Role.PERFORMANCE, Role.CORRECTNESS):
            new.plan(context.workload, case, context.device)
    except (HeaderError, ExpressionError) as error:
        return str(error)
    missing = _macros(before, new.code) - new.header.tune.keys()
    return f"the code uses {', '.join(sorted(missing))}, which the header no longer declares" if missing else ""


def _macros(source: str, code: str) -> set[str]:
    """The old header's tunables that the code uses, directives included."""
    try:
        tunables = kernel.parse(source).header.tune.keys()
    except HeaderError:
        return set()
    words = {
        word
        for token in lexer.tokens(code)
        if token.kind in ("name", "directive")
        for word in _WORD.findall(token.text)
    }
    return set(tunables) & words
