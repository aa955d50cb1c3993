"""The operator `crossover`: a model combines two kernels that are good in different ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evo.records import ModelReply, MutationContext, Step
from mutators.asking import whole_kernel
from mutators.fitting import Section
from mutators.prompts import common, kernels, memory, rules

_COMBINE = (
    "Two kernels solve this workload in different ways. Find out what each does better: on which cases it is ahead, "
    "how it stages memory, how much a thread computes, how it is launched, what limits it. Then write one kernel that "
    "has the best of both, and is not just one of the two again. Where their ideas exclude each other, take the faster "
    "one's structure and carry over what the other does better inside it; where each is ahead on cases of its own, a "
    "tunable may choose between two paths (`#if`), since every case is tuned by itself. Of the tunables of both, offer "
    "only values that make sense together."
)


@dataclass(frozen=True)
class Crossover:
    """Ask for the best of two parents of different cells; a pure function of the context and the replies so far."""

    parents: ClassVar[int] = 2

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        """Return the next request, or the proposal.

        Args:
            context: workload, device, two parents with their evaluations, inspirations, attempts.
            history: the replies to the requests of this task so far.
        """
        return whole_kernel(context, history, _sections(context))


def _sections(context: MutationContext) -> tuple[Section, ...]:
    shown = [
        section
        for parent, name in zip(context.parents, ("first", "second"), strict=False)
        for section in kernels.whole(parent, context.workload, f"The {name} kernel")
    ]
    return (
        common.workload(context.workload, context.device),
        common.device(context.device),
        *shown,
        *memory.section(context),
        *kernels.others(context.inspirations, context.workload),
        common.task(_COMBINE),
        common.answer(rules.whole_kernel("what you take from which kernel, and why it fits together")),
    )
