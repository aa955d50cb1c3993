"""Asking for one part: the requests, and what its replies hold. Pure: requests and replies in, request or part out.

A reply of no use is answered with the exact error; after `MOST_REQUESTS` the part is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from evo.errors import EvoError
from evo.records import Message, ModelFacts, ModelReply, ModelRequest
from mutators import extract, fences, replies
from mutators.fitting import PER_MESSAGE, room, tokens

MOST_REQUESTS = 3
"""The first, and two more that tell what is wrong: who fails three times seldom succeeds the fourth."""

T = TypeVar("T")


class Unusable(Exception):
    """A reply that holds no part, in words that its model understands."""


@dataclass(frozen=True)
class Question(Generic[T]):
    """What is asked, and how an answer is read.

    Attributes:
        name: of the requests: `contract`, `reference`, `second-reference`, `third-reference`, `kernel`.
        system: the system message.
        user: the first user message.
        again: the words that follow a reply with this wrong with it.
        read: takes the part out of a reply; raises `Unusable`, or an `EvoError` that says what is wrong.
        schema: of the answer.
    """

    name: str
    system: str
    user: str
    again: Callable[[str], str]
    read: Callable[[ModelReply], T]
    schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class Tried:
    """One reply, and what was wrong with it."""

    reply: ModelReply
    problem: str


def request(question: Question[Any], tried: Sequence[Tried], facts: ModelFacts) -> ModelRequest:
    """Return the next request: the first, or the conversation so far with what is wrong with its last answer.

    Raises:
        Unusable: it is too long for the model.
    """
    messages = [Message("system", question.system), Message("user", question.user)]
    for one in tried:
        messages += [
            Message("assistant", replies.quoted(one.reply)),
            Message("user", question.again(one.problem)),
        ]
    needed = sum(tokens(message.content) + PER_MESSAGE for message in messages)
    if needed > room(facts):
        raise Unusable(
            f"the prompt needs about {needed} tokens, and {facts.name or 'the model'} has room for {room(facts)}: take "
            "a model with a larger window, or set its `window_tokens` if it has one"
        )
    return ModelRequest(tuple(messages), schema=question.schema if facts.schema else None)


def part(question: Question[T], reply: ModelReply) -> T | Tried:
    """Return what a reply holds, or what is wrong with it."""
    try:
        return question.read(reply)
    except (Unusable, EvoError) as error:
        return Tried(reply, str(error))
    except (TypeError, ValueError, KeyError, AttributeError) as error:  # a document of a shape that nobody foresaw
        return Tried(reply, f"it cannot be read: {type(error).__name__}: {error}")


def json_object(reply: ModelReply) -> dict[str, Any]:
    """Return the largest JSON object of a reply; raises `Unusable` where it has none."""
    found = [dict(value) for value in replies.objects(reply.text)]
    if not found:
        raise Unusable(replies.lacking(reply.text, reply.finish_reason) or "the reply holds no JSON object")
    return max(found, key=len)


def python_file(reply: ModelReply) -> str:
    """Return the Python file of a reply: its last complete block that defines `reference`; raises `Unusable`."""
    text = fences.clean(reply.text)
    blocks = [block for block in fences.blocks(text) if "def reference" in block.text]
    whole = [block.text for block in blocks if block.closed]
    if not whole and not fences.blocks(text) and "def reference" in text:
        whole = [text[max(0, min(_starts(text))) :]]
    if not whole:
        lacking = replies.lacking(reply.text, reply.finish_reason).replace("its kernel", "its file")
        raise Unusable(lacking or "the reply holds no complete file that defines reference(inputs, dims)")
    return whole[-1].strip("\n") + "\n"


def _starts(text: str) -> list[int]:
    found = [text.find(word) for word in ("import ", "from ", "def reference", '"""')]
    return [at for at in found if at >= 0]


def kernel_file(reply: ModelReply) -> str:
    """Return the kernel file of a reply; raises `Unusable`."""
    found = extract.kernel(reply.text, reply.finish_reason, ())
    if found.source is None:
        raise Unusable(found.problem)
    return found.source
