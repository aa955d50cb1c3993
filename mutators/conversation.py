"""Puts a model's tool calls between an operator and its model: what to ask, call or propose next.

Pure: a function of the operator, its context and the turns so far. An operator never hears of tools: it is stepped with
the answers alone, and its request is sent again with the calls and their results behind it.
"""

from __future__ import annotations

import json
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
from mutators import fitting


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
        offer: of tools; a model that cannot call functions is offered none. What they say stays in the room that the
            prompt has left for them: the oldest rounds go first, and then there are no more.
    """
    most = offer.rounds if offer.tools else 0
    answers, rounds = _split(turns, most)
    if rounds and not rounds[-1].results:
        return ToolRequest(rounds[-1].reply.calls)
    asked = operator.step(context, answers)
    if isinstance(asked, Proposal) or not most:
        return asked
    kept = _within(rounds, fitting.room_for_tools(context.model) - _described(offer.tools))
    heard = tuple(message for turn in kept for message in _messages(turn))
    may_call = len(rounds) < most and len(kept) == len(rounds)
    return replace(asked, messages=(*asked.messages, *heard), tools=offer.tools, may_call=may_call)


def _within(rounds: Sequence[Turn], room: int) -> list[Turn]:
    """Return the latest rounds that fit; a model that has filled the room for them gets no more."""
    kept: list[Turn] = []
    for turn in reversed(rounds):
        room -= sum(_tokens(message) for message in _messages(turn))
        if room < 0:
            break
        kept.insert(0, turn)
    return kept


def _tokens(message: Message) -> int:
    called = "".join(f"{call.id} {call.name} {call.arguments}" for call in message.calls)
    return fitting.tokens(f"{message.content} {message.call} {called}") + fitting.PER_MESSAGE


def _described(tools: Sequence[Tool]) -> int:
    return fitting.tokens("".join(f"{tool.name} {tool.description} {json.dumps(tool.parameters)}" for tool in tools))


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
