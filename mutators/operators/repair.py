"""The operator `repair`: a model mends a kernel that failed, from what the compiler, the checker or the cases said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from evo.records import Evaluation, ModelReply, MutationContext, Relative, Status, Step
from mutators import feedback
from mutators.asking import whole_kernel
from mutators.fences import fence, line
from mutators.fitting import Section
from mutators.prompts import common, kernels, memory, priorities, rules

_MOST_NOTE = 400

_REPAIR = (
    "The kernel to mend was rejected. Find the cause in its source and remove it, and keep the idea that made it worth "
    "trying: nothing slower but safe, nothing that hides the symptom. Look for the same mistake elsewhere in the file."
)
_HIDDEN = (
    "Every case that you are shown is right, and a hidden one is not. Look for what depends on the sizes: a "
    "tail that is not guarded, a size that is no multiple of the tile or smaller than one, a dimension of 1, an index "
    "that passes 2^31, vector accesses at addresses that only some sizes align, partial sums that are never written, "
    "values for which the arithmetic is not exact enough (large, negative, infinite, NaN)."
)
_ADVICE: Mapping[Status, str] = {
    Status.BAD_LAUNCH: (
        "The launch header is at fault, or does not fit the code: `defaults` has to be valid for every case, and grid, "
        "block and shared memory have to stay inside the device's limits for each value that `tune` offers."
    ),
    Status.UNSUPPORTED: "Put something in the place of what the device cannot run; the rest may stay.",
    Status.COMPILE_ERROR: (
        "Begin with the compiler's first error: later ones often follow from it. The file stands alone, without host "
        "code and without the C++ standard library."
    ),
    Status.LAUNCH_ERROR: (
        "It compiles and cannot be launched or fails while it runs: too many registers or too much shared memory for "
        "its block size, static shared memory above 48 KiB, misaligned vector accesses, addresses out of range."
    ),
    Status.WRONG_ANSWER: (
        "Follow one of the wrong elements that are named through the code: which thread writes it, from which inputs, "
        "and whether it is written at all (outputs arrive filled with garbage). Look at tails, at barriers between "
        "writing and reading shared memory, at accumulators that are not reset, at sums of less precision."
    ),
    Status.UNSAFE: (
        "Take what the checker names literally: an access beyond a buffer needs its guard at every index of the "
        "expression, a race needs a barrier or another owner of the element, and a barrier that some threads miss has "
        "to move out of the branch."
    ),
    Status.TIMEOUT: (
        "It did not end in time: a loop whose end is not reached, blocks that wait for blocks which are not running, "
        "or simply far too much work for each thread."
    ),
    Status.CRASH: "It took its process down: look for wild addresses, unbounded recursion and endless loops.",
}


@dataclass(frozen=True)
class Repair:
    """Ask for a failed kernel, mended; a pure function of the context and the replies so far."""

    repairs: ClassVar[bool] = True

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        """Return the next request, or the proposal.

        Args:
            context: workload, device, a parent that failed with its evaluation, what it was made from, attempts.
            history: the replies to the requests of this task so far.
        """
        return whole_kernel(context, history, _sections(context))


def _sections(context: MutationContext) -> tuple[Section, ...]:
    failed, origin = context.parents[0], kernels.origin(context)
    around = tuple(other for other in context.inspirations if other is not origin)
    return (
        common.workload(context.workload, context.device),
        common.device(context.device),
        *_origin(context, origin),
        *kernels.whole(failed, context.workload, "The kernel to mend"),
        *_meant(context),
        *memory.section(context),
        *kernels.others(around, context.workload),
        common.task(f"{_REPAIR} {_advice(failed.evaluation)}".strip()),
        common.answer(rules.whole_kernel("what the cause is and how you remove it")),
    )


def _meant(context: MutationContext) -> tuple[Section, ...]:
    """Show what the failed kernel was meant to be, in its writer's words."""
    failed = context.parents[0].id
    notes = [attempt.note for attempt in context.tried if attempt.id == failed and attempt.note.strip()]
    if not notes:
        return ()
    text = f"Its writer said of it:\n\n{fence(line(notes[0], _MOST_NOTE))}"
    return (Section(text, priorities.CAUSE, "what its writer said", ("",)),)


def _origin(context: MutationContext, origin: Relative | None) -> tuple[Section, ...]:
    """Show what the failed kernel changed, or the whole kernel that it goes back to where it changed all."""
    if origin is None:
        return ()
    right = origin.evaluation is not None and origin.evaluation.status is Status.OK
    intro = f"It goes back to kernel #{origin.id}{', which is right' if right else ''}."
    changed = kernels.difference(origin, context.parents[0])
    if changed:
        full = f"# What the kernel to mend changed\n\n{intro}\n\n{changed}"
        return (Section(full, priorities.CAUSE, "what it changed", (intro, "")),)
    return tuple(
        Section(section.text, priorities.CAUSE, section.name, (*section.shorter, ""))
        for section in kernels.whole(origin, context.workload, "The kernel that it goes back to")
    )


def _advice(evaluation: Evaluation | None) -> str:
    if evaluation is None:
        return ""
    if feedback.without_hidden(evaluation).message == feedback.HIDDEN_FAILED:
        return _HIDDEN
    return _ADVICE.get(evaluation.status, "")
