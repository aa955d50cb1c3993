"""The operator `rewrite`: a model gets one kernel with its whole verdict and gives back a faster one."""

from __future__ import annotations

from dataclasses import dataclass

from evo.records import ModelReply, MutationContext, Step
from mutators.asking import whole_kernel
from mutators.fitting import Section
from mutators.prompts import common, directions, kernels, memory, rules

_BROKEN = (
    "The kernel to change was not accepted. Find the cause in its source and mend it; keep its idea where it is sound, "
    "and give it up where it is not."
)
_FASTER = (
    "Work out what limits the kernel on the performance cases, and write a version that is clearly faster: a "
    "structural change rather than a cosmetic one."
)


@dataclass(frozen=True)
class Rewrite:
    """Ask for a faster version of the first parent; a pure function of the context and the replies so far."""

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        """Return the next request, or the proposal.

        Args:
            context: workload, device, parents with their evaluations, inspirations, attempts, seed.
            history: the replies to the requests of this task so far.
        """
        return whole_kernel(context, history, sections(context))


def sections(context: MutationContext) -> tuple[Section, ...]:
    """Return what is asked: the workload, the device, the parent, what was tried, others, and the aim."""
    return (
        common.workload(context.workload, context.device),
        common.device(context.device),
        *kernels.whole(context.parents[0], context.workload, "The kernel to change"),
        *memory.section(context),
        *kernels.others(context.inspirations, context.workload),
        common.task(directions.aim(context, _FASTER, _BROKEN)),
        common.answer(rules.whole_kernel()),
    )
