"""The operator `rewrite`, whose requests say which they are, so that a server tells a repeated one from a new one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evo.records import ModelReply, ModelRequest, MutationContext, Step
from mutators.operators.rewrite import Rewrite


@dataclass(frozen=True)
class NumberedRewrite:
    """See the module."""

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        asked = Rewrite().step(context, history)
        if not isinstance(asked, ModelRequest):
            return asked
        *before, last = asked.messages
        mark = f"\n\n(request {context.task.id}.{len(history)})"
        return replace(asked, messages=(*before, replace(last, content=last.content + mark)))
