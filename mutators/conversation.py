"""Puts a model's tool calls between an operator and its model: what to ask, call or propose next.

Pure: a function of the operator, its context and the turns so far. An operator never hears of tools: it is stepped with
the answers alone, and its request is sent again with the calls and their results behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evo.records import (
    Message,
    ModelReply,
    ModelRequest,
    MutationContext,
    Operator,
    Proposal,
    Tool,
    ToolRequest,
    Turn,
)


@dataclass(frozen=True)
class Offer:
    """The tools that a model may call, and in how many rounds before it has to answer."""

    tools: tuple[Tool, ...] = ()
    rounds: int = 0


def step(
    operator: Operator, context: MutationContext, turns: Sequence[Turn], offer: Offer = Offer()
) -> ModelRequest | ToolRequest | Proposal:
    """Return what comes next: a request for the model, calls that somebody has to make, or the proposal.

    Args:
        operator: is stepped with the model's answers.
        context: all that it may know.
        turns: the model's replies so far, with what the tools said that each of them called.
        offer: of tools; a model that cannot call functions is offered none.
    """
    most = offer.rounds if offer.tools else 0
    answers, rounds = _split(turns, most)
    if rounds and not rounds[-1].results:
        return ToolRequest(rounds[-1].reply.calls)
    asked = operator.step(context, answers)
    if isinstance(asked, Proposal) or not most:
        return asked
    heard = tuple(message for turn in rounds for message in _messages(turn))
    return replace(
        asked, messages=(*asked.messages, *heard), tools=offer.tools, may_call=len(rounds) < most
    )  # fmt: skip


def _split(turns: Sequence[Turn], most: int) -> tuple[tuple[ModelReply, ...], list[Turn]]:
    """Return the answers, and the rounds of calls since the last of them.

    A model that calls on after its last round is taken at its word: what it said beside the calls is its answer.
    """
    answers: list[ModelReply] = []
    rounds: list[Turn] = []
    for turn in turns:
        if turn.reply.calls and len(rounds) < most:
            rounds.append(turn)
        else:
            answers.append(turn.reply)
            rounds = []
    return tuple(answers), rounds


def _messages(turn: Turn) -> tuple[Message, ...]:
    said = Message("assistant", turn.reply.text, calls=turn.reply.calls)
    return said, *(Message("tool", result.text, call=result.call) for result in turn.results)
