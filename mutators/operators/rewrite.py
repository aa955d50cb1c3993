"""The operator `rewrite`: a model gets one kernel with its whole verdict and gives back a faster one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evo.records import Message, ModelReply, ModelRequest, MutationContext, Proposal, Relative, Step
from mutators import extract, fences, prompting

_MOST_REQUESTS = 2
"""The first, and one more when its reply held no kernel: a model that fails twice seldom succeeds a third time."""

_MOST_QUOTED = 8000
"""Characters of a useless reply that are sent back with the second request."""

_MOST_NOTE = 300


@dataclass(frozen=True)
class Rewrite:
    """Ask for a faster version of the first parent; a pure function of the context and the replies so far."""

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        """Return the next request, or the proposal.

        Args:
            context: workload, device, parents with their evaluations, inspirations, seed.
            history: the replies to the requests of this task so far.
        """
        if not history:
            return _first(context)
        reply = history[-1]
        if reply.status != "ok":
            return Proposal(None, f"no reply: {reply.error}")
        found = extract.kernel(reply.text, reply.finish_reason, _spellings(context.parents[0]))
        if found.source is not None:
            return Proposal(found.source, _note(reply.text, found.note))
        if found.problem == extract.UNCHANGED or len(history) >= _MOST_REQUESTS:
            return Proposal(None, found.problem)
        return _second(context, reply, found.problem)


def _first(context: MutationContext) -> ModelRequest:
    direction = int(np.random.default_rng(context.seed).integers(1 << 16))
    user = prompting.rewrite_request(context, direction)
    return ModelRequest((Message("system", prompting.SYSTEM), Message("user", user)))


def _second(context: MutationContext, reply: ModelReply, problem: str) -> ModelRequest:
    quoted = fences.clean(reply.text).strip()[-_MOST_QUOTED:] or "(an empty answer)"
    again = (Message("assistant", quoted), Message("user", prompting.ask_again(problem)))
    return ModelRequest((*_first(context).messages, *again))


def _spellings(parent: Relative) -> tuple[str, ...]:
    """The parent's source as shown, as given, and with the tuner's rules written in."""
    tuned = parent.evaluation.source if parent.evaluation is not None else ""
    return tuple(source for source in (prompting.shown(parent), parent.source, tuned) if source)


def _note(reply: str, remark: str) -> str:
    """What the model said about its change, in brief, and what was done to its reply."""
    said = " ".join(fences.clean(fences.outside(reply)).split())
    brief = said if len(said) <= _MOST_NOTE else f"{said[:_MOST_NOTE].rsplit(' ', 1)[0]} …"
    return " · ".join(part for part in (brief, remark) if part)
