"""The operator `edit`: a model changes single places of a kernel, and the rest stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evo.records import ModelReply, MutationContext, Step
from mutators import edits, extract, replies
from mutators.asking import Question, ask, whole_kernel
from mutators.operators import rewrite
from mutators.prompts import common, directions, kernels, memory, rules

_BLOCKS = """\
# Your answer

First say in at most five sentences what limits the kernel and what you change. Then give your changes as
search/replace blocks, each like this:

```text
<<<<<<< SEARCH
    lines of the kernel, copied exactly, with their indentation
=======
    what stands in their place (nothing, to delete them)
>>>>>>> REPLACE
```

The lines to search for must stand exactly once in the kernel as it is shown above: copy enough of them, and no more
than that. All blocks are found in the kernel as shown, so that none may search for what another has written, and no two
may overlap. The launch header is part of the file and is changed in the same way."""

_JSON = """\
# Your answer

Answer with a JSON object: `note` says in at most five sentences what limits the kernel and what you change; `edits` is
a list of changes. Each has `search`, whole lines of the kernel, copied exactly with their indentation, and `replace`,
what stands in their place ("" to delete them). What is searched for must stand exactly once in the kernel as it is
shown above: copy enough lines, and no more than that. All edits are found in the kernel as shown, so that none may
search for what another has written, and no two may overlap. The launch header is part of the file and is changed in the
same way."""

_BROKEN = (
    "The kernel to change was not accepted. Find the cause in its source, and mend it in as few places as it takes."
)
_FASTER = (
    "Work out what limits the kernel on the performance cases, and change what gains most, in few places: one idea, "
    "carried through everywhere that it touches, launch header included."
)


@dataclass(frozen=True)
class Edit:
    """Ask for edits of the first parent; a pure function of the context and the replies so far.

    Edits that do not fit are answered once with what is wrong; after that the whole kernel is asked for.
    """

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        """Return the next request, or the proposal.

        Args:
            context: workload, device, parents with their evaluations, inspirations, attempts, seed.
            history: the replies to the requests of this task so far.
        """

        def whole(answers: Sequence[ModelReply]) -> Step:
            return whole_kernel(context, answers, rewrite.sections(context), most_requests=1)

        return ask(context, history, _question(context), otherwise=whole)


def _question(context: MutationContext) -> Question:
    sections = (
        common.workload(context.workload, context.device),
        common.device(context.device),
        *memory.section(context),
        *kernels.others(context.inspirations, context.workload),
        *kernels.whole(context.parents[0], context.workload, "The kernel to change"),
        common.task(directions.aim(context, _FASTER, _BROKEN)),
        common.answer(_JSON if context.model.schema else _BLOCKS),
    )
    return Question(sections, lambda reply: _read(context, reply), _mend, edits.SCHEMA)


def _read(context: MutationContext, reply: ModelReply) -> extract.Extracted:
    """Return the edited kernel, or what is wrong; a whole kernel in place of edits will do as well."""
    spellings = kernels.spellings(context.parents[:1])
    parsed = edits.parse(reply.text)
    if not parsed.edits and not parsed.problem:
        found = extract.kernel(reply.text, reply.finish_reason, spellings)
        if found.source is not None or found.problem == extract.UNCHANGED:
            return found
        lacking = replies.lacking(reply.text, reply.finish_reason)
        return extract.Extracted(None, lacking or "the reply holds no edit")
    if parsed.problem or reply.finish_reason == "length":
        return extract.Extracted(None, parsed.problem or "the reply was cut off, and edits may be missing")
    applied = edits.apply(kernels.shown(context.parents[0]), parsed.edits)
    if applied.source is None:
        return extract.Extracted(None, applied.problem)
    return extract.judged(applied.source, spellings, "one edit" if applied.edits == 1 else f"{applied.edits} edits")


def _mend(problem: str) -> str:
    return rules.again(
        "Your edits could not be applied, and nothing was changed",
        problem,
        "Answer again with all of the edits, in the same form. What they search for has to stand exactly once in the "
        "kernel as it was shown to you first.",
    )
