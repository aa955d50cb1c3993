"""Asks a model and reads its replies: what the operators share. Pure; an operator adds its sections and its reader.

A prompt is fitted to the model's window before it is sent, a later request of the same task included; one that cannot
fit becomes a proposal without a source that says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evo.records import Message, ModelReply, ModelRequest, MutationContext, Proposal, Step
from mutators import extract, replies
from mutators.fitting import Section, fit, least, room, tokens
from mutators.prompts import kernels, rules

_MOST_REQUESTS = 2
"""The first, and one more when its reply held no kernel: a model that fails twice seldom succeeds a third time."""

_PER_MESSAGE = 8
"""Tokens that a provider adds around each message, at most (OpenAI: 3 or 4, and the role)."""
_QUOTE_SHARE = 4
"""What is quoted back of a useless reply takes at most this part (a quarter) of the room."""


@dataclass(frozen=True)
class Question:
    """What a model is asked.

    Attributes:
        sections: of the user's message.
        schema: of the answer, where the model can be made to obey one.
    """

    sections: tuple[Section, ...]
    schema: Mapping[str, Any] | None = None


def request(context: MutationContext, question: Question, after: Sequence[Message] = ()) -> Step:
    """Return the request, fitted to the model's window, or the proposal that says why it cannot be made.

    Args:
        context: of the task.
        question: to ask.
        after: messages that follow it: an answer of the model's and what is wrong with it.
    """
    schema = question.schema if context.model.schema else None
    whole = room(context.model)
    fixed = tokens(rules.SYSTEM) + sum(tokens(message.content) for message in after)
    fixed += _PER_MESSAGE * (2 + len(after)) + (tokens(json.dumps(schema)) if schema else 0)
    text = fit(question.sections, whole - fixed)
    if text is None:
        needed = fixed + least(question.sections)
        return Proposal(
            None,
            f"the prompt needs about {needed} tokens even at its shortest, and {context.model.name or 'the model'} has "
            f"room for {whole}: take a model with a larger window, or set its `window_tokens` if it has one",
        )
    return ModelRequest((Message("system", rules.SYSTEM), Message("user", text), *after), schema=schema)


def again(context: MutationContext, question: Question, reply: ModelReply, words: str) -> Step:
    """Return the request that follows a reply which was of no use, with that reply and what is wrong with it."""
    quoted, most = replies.quoted(reply), room(context.model) // _QUOTE_SHARE
    while tokens(quoted) > most:
        quoted = quoted[len(quoted) // 2 :]
    return request(context, question, (Message("assistant", quoted), Message("user", words)))


def whole_kernel(
    context: MutationContext, history: Sequence[ModelReply], question: Question, most_requests: int = _MOST_REQUESTS
) -> Step:
    """Ask for a complete kernel file; a reply that holds none is answered once with what is wrong.

    Args:
        context: of the task.
        history: the replies to this question so far.
        question: whose last section asks for the complete file (`rules.whole_kernel`).
        most_requests: at which to give up.
    """
    if not history:
        return request(context, question)
    reply = history[-1]
    if failure := replies.failure(reply):
        return Proposal(None, failure)
    found = extract.kernel(reply.text, reply.finish_reason, kernels.spellings(context.parents))
    if found.source is not None:
        return Proposal(found.source, replies.note(reply.text, found.note))
    if found.problem == extract.UNCHANGED or len(history) >= most_requests:
        return Proposal(None, replies.unusable(found.problem, reply))
    return again(context, question, reply, rules.again_whole(found.problem))
