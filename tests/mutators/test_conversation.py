"""Tool rounds between an operator and its model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evo.records import (
    Message,
    ModelFacts,
    ModelReply,
    ModelRequest,
    MutationContext,
    Proposal,
    Step,
    Tool,
    ToolCall,
    ToolRequest,
    ToolResult,
    Turn,
)
from mutators import conversation, fitting
from mutators.conversation import Offer
from tests.support.mutation import context

TOOL = Tool("compile", "compiles", {"type": "object"})
OFFER = Offer((TOOL,), 2)
CALL = ToolCall("c1", "compile", "{}")
CALLING = Turn(ModelReply("ok", "let me see", calls=(CALL,)))
ANSWERED = Turn(CALLING.reply, (ToolResult("c1", "compile", "32 registers"),))
ANSWER = Turn(ModelReply("ok", "the kernel"))


@dataclass(frozen=True)
class Twice:
    """Asks twice and then proposes what it heard; it never hears of tools."""

    def step(self, context: MutationContext, history: tuple[ModelReply, ...]) -> Step:
        assert not any(reply.calls for reply in history if reply.text != "calls on")
        if len(history) < 2:
            return ModelRequest((Message("user", f"question {len(history)}"),))
        return Proposal(" ".join(reply.text for reply in history))


WIDE = ModelFacts("wide", window_tokens=100_000, output_tokens=8_000, tools=True)


def step(*turns: Turn, offer: Offer = OFFER, model: ModelFacts = WIDE) -> ModelRequest | ToolRequest | Proposal:
    return conversation.step(Twice(), replace(context(), model=model), turns, offer)


def request(*turns: Turn, offer: Offer = OFFER, model: ModelFacts = WIDE) -> ModelRequest:
    found = step(*turns, offer=offer, model=model)
    assert isinstance(found, ModelRequest)
    return found


def test_a_request_offers_the_tools() -> None:
    assert request() == ModelRequest((Message("user", "question 0"),), (TOOL,), may_call=True)


def test_nothing_is_offered_without_tools_or_rounds() -> None:
    for offer in (Offer(), Offer((TOOL,), 0), Offer((), 3)):
        assert request(offer=offer) == ModelRequest((Message("user", "question 0"),))


def test_calls_are_to_be_made_before_the_model_is_asked_again() -> None:
    assert step(CALLING) == ToolRequest((CALL,))


def test_the_request_is_sent_again_with_the_calls_and_their_results_behind_it() -> None:
    assert request(ANSWERED).messages == (
        Message("user", "question 0"),
        Message("assistant", "let me see", calls=(CALL,)),
        Message("tool", "32 registers", call="c1"),
    )


def test_after_the_last_round_the_model_has_to_answer() -> None:
    assert request(ANSWERED).may_call
    last = request(ANSWERED, ANSWERED)
    assert not last.may_call
    assert last.tools == (TOOL,)


def test_a_model_that_calls_on_is_taken_at_its_word() -> None:
    insists = Turn(ModelReply("ok", "calls on", calls=(CALL,)))
    assert request(ANSWERED, ANSWERED, insists).messages == (Message("user", "question 1"),)


def test_calls_that_nobody_offered_are_no_reason_to_wait() -> None:
    insists = Turn(ModelReply("ok", "calls on", calls=(CALL,)))
    assert request(insists, offer=Offer()).messages == (Message("user", "question 1"),)


def test_each_request_has_rounds_of_its_own() -> None:
    second = request(ANSWERED, ANSWERED, ANSWER, ANSWERED)
    assert second.may_call
    assert [message.content for message in second.messages] == ["question 1", "let me see", "32 registers"]
    assert step(ANSWER, ANSWERED, ANSWER) == Proposal("the kernel the kernel")


def test_rounds_stay_in_the_room_that_the_prompt_has_left_for_them() -> None:
    model = ModelFacts("narrow", window_tokens=8_192, output_tokens=2_048, tools=True)
    room = fitting.room_for_tools(model)
    assert 1000 < room < 2000
    long = ToolResult("c1", "compile", "32 registers; " * 120)
    rounds = [Turn(ModelReply("ok", f"round {number}", calls=(CALL,)), (long,)) for number in range(5)]
    offer = Offer((TOOL,), 9)
    for number in range(1, 6):
        asked = request(*rounds[:number], offer=offer, model=model)
        heard = "".join(message.content for message in asked.messages[1:])
        assert fitting.tokens(heard) <= room
        assert f"round {number - 1}" in heard
        assert asked.may_call == ("round 0" in heard)
    assert not asked.may_call


def test_a_round_that_alone_is_too_large_is_left_out_and_the_model_has_to_answer() -> None:
    echo = Turn(ModelReply("ok", "", calls=(ToolCall("c1", "compile", "{}" * 200_000),)), ANSWERED.results)
    asked = request(echo)
    assert asked.messages == (Message("user", "question 0"),)
    assert not asked.may_call
