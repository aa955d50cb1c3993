"""Asks a model and reads its replies: what the operators share. Pure; an operator adds its sections and its reader.

A prompt is fitted to the model's window before it is sent, a later request of the same task included; one that cannot
fit becomes a proposal without a source that says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evo.records import Message, ModelReply, ModelRequest, MutationContext, Proposal, Step
from mutators import edits, extract, replies
from mutators.extract import Extracted
from mutators.fitting import PER_MESSAGE, Section, fit, least, room, tokens
from mutators.prompts import kernels, rules

MOST_REQUESTS = 2
"""The first, and one more when its reply held no kernel: a model that fails twice seldom succeeds a third time."""

_QUOTE_SHARE = 4
"""What is quoted back of a useless reply takes at most this part (a quarter) of the room."""


@dataclass(frozen=True)
class Question:
    """What a model is asked, and how its answer is read.

    Attributes:
        sections: of the user's message.
        read: takes a kernel out of a reply, or says what is wrong with it.
        mend: the words that follow a reply with this wrong with it.
        schema: of the answer, where the model can be made to obey one.
    """

    sections: tuple[Section, ...]
    read: Callable[[ModelReply], Extracted]
    mend: Callable[[str], str]
    schema: Mapping[str, Any] | None = None


def ask(
    context: MutationContext,
    history: Sequence[ModelReply],
    question: Question,
    most_requests: int = MOST_REQUESTS,
    otherwise: Callable[[Sequence[ModelReply]], Step] | None = None,
) -> Step:
    """Return the next request, or the proposal. A reply of no use is answered with what is wrong with it.

    Args:
        context: of the task.
        history: the replies to this question so far, and to what follows it.
        question: to ask.
        most_requests: after which to give up.
        otherwise: what to do instead of giving up, given the replies to that.
    """
    if not history:
        return _request(context, question)
    if otherwise is not None and len(history) > most_requests:
        return otherwise(history[most_requests:])
    reply = history[-1]
    if failure := replies.failure(reply):
        return Proposal(None, failure)
    found = question.read(reply)
    if found.source is not None:
        return Proposal(found.source, replies.note(edits.prose(reply.text), found.note))
    if found.problem == extract.UNCHANGED:
        return Proposal(None, found.problem)
    if len(history) < most_requests:
        return _again(context, question, reply, found.problem)
    return otherwise(()) if otherwise is not None else Proposal(None, replies.unusable(found.problem, reply))


def whole_kernel(
    context: MutationContext,
    history: Sequence[ModelReply],
    sections: tuple[Section, ...],
    most_requests: int = MOST_REQUESTS,
) -> Step:
    """Ask for a complete kernel file, and return the next request or the proposal.

    Args:
        context: of the task.
        history: the replies so far.
        sections: of which the last asks for the complete file (`rules.whole_kernel`).
        most_requests: after which to give up.
    """
    spellings = kernels.spellings(context.parents)

    def read(reply: ModelReply) -> Extracted:
        return extract.kernel(reply.text, reply.finish_reason, spellings)

    return ask(context, history, Question(sections, read, rules.again_whole), most_requests)


def _request(context: MutationContext, question: Question, after: Sequence[Message] = ()) -> Step:
    """Return the request, fitted to the model's window, or the proposal that says why it cannot be made.

    Args:
        context: of the task.
        question: to ask.
        after: messages that follow it: an answer of the model's and what is wrong with it.
    """
    schema = question.schema if context.model.schema else None
    whole = room(context.model)
    fixed = tokens(rules.SYSTEM) + sum(tokens(message.content) for message in after)
    fixed += PER_MESSAGE * (2 + len(after)) + (tokens(json.dumps(schema)) if schema else 0)
    text = fit(question.sections, whole - fixed)
    if text is None:
        needed = fixed + least(question.sections)
        return Proposal(
            None,
            f"the prompt needs about {needed} tokens even at its shortest, and {context.model.name or 'the model'} has "
            f"room for {whole}: take a model with a larger window, or set its `window_tokens` if it has one",
        )
    return ModelRequest((Message("system", rules.SYSTEM), Message("user", text), *after), schema=schema)


def _again(context: MutationContext, question: Question, reply: ModelReply, problem: str) -> Step:
    """Return the request that follows a reply of no use, with that reply and what is wrong with it."""
    quoted, most = replies.quoted(reply), room(context.model) // _QUOTE_SHARE
    while tokens(quoted) > most:
        quoted = quoted[len(quoted) // 2 :]
    return _request(context, question, (Message("assistant", quoted), Message("user", question.mend(problem))))
