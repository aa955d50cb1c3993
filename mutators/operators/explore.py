"""The operator `explore`: a model looks for a different algorithm, and is told what has been tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evo.records import ModelReply, MutationContext, Relative, Step
from mutators.asking import whole_kernel
from mutators.fences import fence
from mutators.fitting import Section
from mutators.prompts import common, kernels, memory, rules

_NEAREST = 24
"""Attempts that get a line: here they say where not to go, and so more of them are worth their tokens."""

_EXPLORE = (
    "Write a kernel that solves the workload in a different way from all of the above: another decomposition of the "
    "work, not another tile size. The kernel shown is a correct example of the workload and of its interface, and no "
    "more; do not begin from its code. Weigh three "
    "approaches that are not among those tried by what each could reach within the device's limits, and write the most "
    "promising one as a whole."
)
_ANYWHERE = (
    "who owns what: another mapping of outputs to threads, warps and blocks (one output by a thread, a warp, a block, "
    "or many outputs by a thread)",
    "how the long dimension is walked: as one loop, split over threads and reduced, split over blocks and combined, or "
    "in one pass with a running result",
    "how many launches: one pass in place of several, or several simple ones in place of one that synchronises",
    "which transformation of the problem: another order of summation, a blocked or recursive form, a transposed or "
    "packed layout in a workspace",
)
_ON_A_GPU = (
    "where data wait: registers, shared memory, warp shuffles or the caches alone, in place of what the kernels above "
    "use",
    "which unit of the device does the work: other instructions, asynchronous copies, atomics, tensor cores where the "
    "tolerance allows",
)


@dataclass(frozen=True)
class Explore:
    """Ask for a different algorithm; a pure function of the context and the replies so far."""

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        """Return the next request, or the proposal.

        Args:
            context: workload, device, one parent as an example, inspirations, attempts of the whole run, seed.
            history: the replies to the requests of this task so far.
        """
        return whole_kernel(context, history, _sections(context))


def _sections(context: MutationContext) -> tuple[Section, ...]:
    starts = _ANYWHERE if context.device.kind == "host" else (*_ANYWHERE, *_ON_A_GPU)
    start = starts[int(np.random.default_rng(context.seed).integers(len(starts)))]
    return (
        common.workload(context.workload, context.device),
        common.device(context.device),
        *kernels.whole(context.parents[0], context.workload, "A kernel that is known"),
        *memory.section(context, _NEAREST),
        *kernels.others(context.inspirations, context.workload),
        common.task(f"{_EXPLORE} Consider first {start}.{_known((*context.parents, *context.inspirations))}"),
        common.answer(
            rules.whole_kernel("which approaches you weighed, what each could reach, and which one you write")
        ),
    )


def _known(relatives: tuple[Relative, ...]) -> str:
    """Say how the kernels shown are built, as the evaluator sees it: staging, unit, outputs of a thread."""
    evaluations = [relative.evaluation for relative in relatives if relative.evaluation is not None]
    built = [", ".join(f"{key} {value}" for key, value in e.descriptors.items()) for e in evaluations]
    known = [text for text in dict.fromkeys(built) if text]
    return (
        f"\n\nThe kernels above are built like this; yours has to be different:\n\n{fence(chr(10).join(known))}"
        if known
        else ""
    )
