"""What a provider does wrong has its status, and our books agree with the provider's: four protocols, real litellm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from evo.records import Message, ModelReply, ModelRequest, Tool, ToolCall
from mutators import providers
from mutators.clients.litellm import LiteLLM
from tests.support.model_server import Fault, Server, say, serve

TOOL = Tool("compile", "Compiles.", {"type": "object", "properties": {"source": {"type": "string"}}})
SCHEMA = {
    "title": "answer",
    "type": "object",
    "properties": {"x": {"type": "string"}},
    "required": ["x"],
    "additionalProperties": False,
}
REQUEST = ModelRequest((Message("system", "Be brief."), Message("user", "Say hello.")))
WITH_TOOLS = ModelRequest(REQUEST.messages, tools=(TOOL,))
SOON = {"retry-after": "0.01"}

# litellm's types for Gemini make pydantic warn once, when they are first read.
pytestmark = pytest.mark.filterwarnings("ignore:Items? .* using the `ReadOnly` qualifier")

Complete = Callable[[LiteLLM, ModelRequest], ModelReply]


@dataclass(frozen=True)
class Dialect:
    """How a protocol is reached, and where it differs."""

    model: str
    path: str
    openai: bool = False

    def client(self, server: Server, **changes: Any) -> LiteLLM:
        prices = {"input_usd_per_million": 0.25, "output_usd_per_million": 2.0}
        base = server.url if self.openai else server.root
        return LiteLLM(self.model, None, base, **{"timeout_s": 20.0, "tools": True, **prices, **changes})


DIALECTS = (
    Dialect("gpt-5-mini", "/v1/chat/completions", openai=True),
    Dialect("anthropic/claude-sonnet-4-5", "/v1/messages"),
    Dialect("gemini/gemini-2.5-pro", ":generateContent"),
    Dialect("ollama/qwen2.5-coder", "/api/chat"),
)


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.model)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for dialect in DIALECTS:
        provider = providers.find(dialect.model)
        assert provider is not None
        for name in (*provider.keys, *provider.bases):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(say("Hello.")) as running:
        yield running


def agree(reply: ModelReply, server: Server) -> None:
    """Our count of attempts, tokens and money is the provider's."""
    tally = server.tally()
    assert reply.attempts == tally.requests
    assert reply.uncertain == tally.unfinished
    if tally.answered:
        assert reply.input_tokens == tally.input_tokens
        assert reply.output_tokens == tally.output_tokens
    if tally.answered or not tally.unfinished:
        assert reply.cost_usd == pytest.approx(tally.usd)
    else:
        assert reply.cost_usd is None


# --- refused ------------------------------------------------------------------------------------------------------


def test_a_second_is_waited_and_the_next_attempt_answers(dialect: Dialect, server: Server, complete: Complete) -> None:
    server.faults.append(Fault("status", 429, {"Retry-After": "1"}))
    reply = complete(dialect.client(server), REQUEST)
    assert (reply.status, reply.text, reply.attempts) == ("ok", "Hello.", 2)
    assert reply.latency_s >= 1
    assert server.requests[0].path.split("?")[0].endswith(dialect.path)
    agree(reply, server)


def test_an_hour_is_not_waited(dialect: Dialect, server: Server, complete: Complete) -> None:
    server.faults.append(Fault("status", 429, {"Retry-After": "3600"}, message="slow down"))
    start = time.monotonic()
    reply = complete(dialect.client(server), REQUEST)
    assert time.monotonic() - start < 15  # seconds go into reading litellm's types for Gemini, once
    assert (reply.status, reply.fatal) == ("error", False)
    assert "slow down" in reply.error
    assert reply.error.endswith("(the provider asks to wait 3600 s)")
    agree(reply, server)


@pytest.mark.parametrize("status", [500, 503, 529])
def test_a_failing_server_is_tried_again(dialect: Dialect, server: Server, complete: Complete, status: int) -> None:
    server.faults.extend([Fault("status", status, SOON)] * 2)
    reply = complete(dialect.client(server), REQUEST)
    assert (reply.status, reply.attempts) == ("ok", 3)
    agree(reply, server)


@pytest.mark.parametrize("status", [408, 504, 524])
def test_a_gateway_that_gave_up_may_have_cost_something(
    dialect: Dialect, server: Server, complete: Complete, status: int
) -> None:
    server.faults.append(Fault("status", status, SOON))
    reply = complete(dialect.client(server), REQUEST)
    assert (reply.status, reply.attempts, reply.uncertain) == ("ok", 2, 1)


def test_attempts_end(dialect: Dialect, server: Server, complete: Complete) -> None:
    server.faults.extend([Fault("status", 500, SOON)] * 9)
    reply = complete(dialect.client(server, attempts=3), REQUEST)
    assert (reply.status, reply.attempts, reply.cost_usd) == ("error", 3, 0.0)
    assert "injected fault" in reply.error
    agree(reply, server)


@pytest.mark.parametrize(("status", "fatal"), [(400, False), (401, True), (404, True)])
def test_what_will_not_pass_is_not_tried_again(
    dialect: Dialect, server: Server, complete: Complete, status: int, fatal: bool
) -> None:
    server.faults.append(Fault("status", status, message="no"))
    reply = complete(dialect.client(server), REQUEST)
    assert (reply.status, reply.attempts, reply.fatal) == ("error", 1, fatal)
    agree(reply, server)


def test_a_key_that_a_provider_quotes_is_taken_out(
    dialect: Dialect, server: Server, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = providers.find(dialect.model)
    assert provider is not None
    key = "hunter2hunter2hunter2"
    monkeypatch.setenv(provider.keys[0], key)
    server.faults.append(Fault("status", 401, message=f"wrong key {key} in x-api-key: {key}"))
    reply = complete(dialect.client(server), REQUEST)
    assert "wrong key [redacted]" in reply.error
    assert "hunter2" not in str(reply)
    assert key in str(server.requests[0].headers)


# --- no answer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["drop", "cut", "garbage", "junk"])
def test_an_answer_that_breaks_is_asked_for_again_and_counted(
    dialect: Dialect, server: Server, complete: Complete, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mutators.retries.FIRST_WAIT_S", 0.01)
    server.faults.append(Fault(kind))
    reply = complete(dialect.client(server), REQUEST)
    assert (reply.status, reply.attempts, reply.uncertain) == ("ok", 2, 1)
    agree(reply, server)


@pytest.mark.parametrize("kind", ["drop", "cut", "garbage", "junk"])
def test_what_breaks_at_last_is_an_error_of_unknown_cost(
    dialect: Dialect, server: Server, complete: Complete, kind: Any
) -> None:
    server.faults.append(Fault(kind))
    reply = complete(dialect.client(server, attempts=1), REQUEST)
    assert (reply.status, reply.attempts, reply.uncertain, reply.fatal) == ("error", 1, 1, False)
    assert reply.error
    assert "Traceback" not in reply.error
    agree(reply, server)


@pytest.mark.parametrize("kind", ["slow", "drip"])
def test_what_takes_too_long_is_given_up_and_not_paid_twice(
    dialect: Dialect, server: Server, complete: Complete, kind: Any
) -> None:
    server.faults.append(Fault(kind, delay_s=0.05 if kind == "drip" else 30))
    reply = complete(dialect.client(server, timeout_s=0.5), REQUEST)
    assert (reply.status, reply.attempts, reply.uncertain, reply.cost_usd) == ("error", 1, 1, None)
    assert "no answer within 0.5 s" in reply.error
    assert 0.4 < reply.latency_s < 5


def test_a_server_that_is_not_there_charges_for_nothing(dialect: Dialect, complete: Complete) -> None:
    with serve() as gone:
        pass
    reply = complete(dialect.client(gone, attempts=1), REQUEST)
    assert (reply.status, reply.attempts, reply.uncertain, reply.cost_usd) == ("error", 1, 0, 0.0)
    assert "onnect" in reply.error


# --- odd answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, ""])
def test_an_empty_answer_is_an_answer(dialect: Dialect, server: Server, complete: Complete, text: str | None) -> None:
    server.reply = say(text, finish_reason="length")
    reply = complete(dialect.client(server), REQUEST)
    assert (reply.status, reply.text, reply.finish_reason) == ("ok", "", "length")
    agree(reply, server)


def test_a_refusal_is_an_answer(dialect: Dialect, server: Server, complete: Complete) -> None:
    # litellm takes the reasoning of a blocked prompt for free, and Gemini does not reason about one.
    server.reply = say(None, refusal="I will not.", reasoning_tokens=0)
    reply = complete(dialect.client(server), REQUEST)
    assert reply.status == "ok"
    assert reply.text in ("", "I will not.")
    agree(reply, server)


def test_two_megabytes_are_kept(dialect: Dialect, server: Server, complete: Complete) -> None:
    server.reply = say("x" * 2_000_000)
    reply = complete(dialect.client(server), REQUEST)
    assert (reply.status, len(reply.text)) == ("ok", 2_000_000)
    agree(reply, server)


def test_five_megabytes_are_not_kept_but_paid_for(server: Server, complete: Complete) -> None:
    server.reply = say("x" * 5_000_000)
    reply = complete(DIALECTS[0].client(server), REQUEST)
    assert (reply.status, reply.text) == ("error", "")
    assert "the reply has 5000000 bytes; at most 4194304 are kept" in reply.error
    agree(reply, server)


# --- tools and schemas --------------------------------------------------------------------------------------------


def test_calls_of_tools_come_back_as_they_were_written(dialect: Dialect, server: Server, complete: Complete) -> None:
    server.reply = say("Let me see.", calls=(("compile", '{"source": "a"}'), ("compile", "{not json")))
    reply = complete(dialect.client(server), WITH_TOOLS)
    assert (reply.status, reply.text, reply.finish_reason) == ("ok", "Let me see.", "tool_calls")
    assert [call.name for call in reply.calls] == ["compile", "compile"]
    assert reply.calls[0].arguments == '{"source": "a"}'
    assert "{not json" in reply.calls[1].arguments
    assert len({call.id for call in reply.calls}) == 2
    agree(reply, server)


def test_a_conversation_goes_on_after_calls_right_and_wrong(
    dialect: Dialect, server: Server, complete: Complete
) -> None:
    calls = (ToolCall("call_a", "compile", '{"source": "kernel-a"}'), ToolCall("call_b", "compile", "{not json"))
    said = Message("assistant", "", calls=calls)
    heard = (Message("tool", "32 registers", call="call_a"), Message("tool", "no JSON", call="call_b"))
    for may_call in (True, False):
        request = ModelRequest((*REQUEST.messages, said, *heard), (TOOL,), may_call)
        assert complete(dialect.client(server), request).text == "Hello."
        sent = str(server.requests[-1].body)
        for words in ("kernel-a", "32 registers", "not json", "no JSON"):
            assert words in sent


def test_a_provider_that_refuses_tools_is_asked_without(dialect: Dialect, server: Server, complete: Complete) -> None:
    calls = (ToolCall("call_a", "compile", '{"source": "a"}'),)
    said = (Message("assistant", "Let me see.", calls=calls), Message("tool", "32 registers", call="call_a"))
    server.faults.append(Fault("status", 400, message="this model does not support tools"))
    reply = complete(dialect.client(server, attempts=1), ModelRequest((*REQUEST.messages, *said), (TOOL,)))
    assert (reply.status, reply.attempts) == ("ok", 2)
    assert "tools" not in server.requests[1].body
    assert "compile says:\n\n32 registers" in server.requests[1].text
    agree(reply, server)


def test_a_schema_is_sent_where_the_model_is_known_to_obey_one(
    dialect: Dialect, server: Server, complete: Complete
) -> None:
    server.reply = say('{"x": "y"}')
    client = dialect.client(server)
    reply = complete(client, ModelRequest(REQUEST.messages, schema=SCHEMA))
    assert reply.text == '{"x": "y"}'
    assert ("additionalProperties" in str(server.requests[0].body)) is client.facts().schema


def test_a_provider_that_refuses_a_schema_is_asked_without(server: Server, complete: Complete) -> None:
    server.faults.append(Fault("status", 400, message="Invalid schema for response_format 'answer'"))
    reply = complete(DIALECTS[0].client(server), ModelRequest(REQUEST.messages, schema=SCHEMA))
    assert (reply.status, reply.attempts) == ("ok", 2)
    assert ["response_format" in recorded.body for recorded in server.requests] == [True, False]


# --- fallbacks ----------------------------------------------------------------------------------------------------


def test_the_next_model_answers_when_one_has_failed(dialect: Dialect, server: Server, complete: Complete) -> None:
    server.faults.append(Fault("status", 401, message="no"))
    other = dialect.model + "-other"
    reply = complete(dialect.client(server, fallbacks=(other,)), REQUEST)
    assert (reply.status, reply.attempts, len(server.requests)) == ("ok", 2, 2)
    assert reply.model.endswith(other.split("/")[-1])


def test_when_all_models_have_failed_each_is_named(server: Server, complete: Complete) -> None:
    server.faults.extend(
        [Fault("status", 401, message="wrong key"), Fault("drop"), Fault("status", 400, message="bad")]
    )  # fmt: skip
    client = DIALECTS[0].client(server, fallbacks=("gpt-5", "openai/own"), attempts=1)
    reply = complete(client, REQUEST)
    assert (reply.status, reply.fatal, reply.uncertain, reply.cost_usd) == ("error", False, 1, None)
    first, second, third = reply.error.split("; then ")
    assert first.startswith("gpt-5-mini: ")
    assert "wrong key" in first
    assert second.startswith("gpt-5: ")
    assert third.startswith("openai/own: ")
    agree(reply, server)


def test_a_fallback_of_another_provider_goes_to_its_own_place(
    server: Server, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(say("From afar.")) as afar:
        monkeypatch.setenv("ANTHROPIC_API_BASE", afar.root)
        server.faults.append(Fault("status", 404))
        client = DIALECTS[0].client(server, fallbacks=("claude-sonnet-4-5",))
        reply = complete(client, REQUEST)
    assert (reply.text, reply.attempts, len(afar.requests)) == ("From afar.", 2, 1)
    # gpt-5-mini's own prices are the user's; the fallback's are litellm's: $3 and $15 for a million tokens
    assert reply.cost_usd == pytest.approx(6 * 3e-6 + afar.tally().output_tokens * 15e-6)


# --- money --------------------------------------------------------------------------------------------------------


def test_the_price_maps_cost_is_what_the_provider_bills(dialect: Dialect, complete: Complete) -> None:
    with serve(say("Hello.", reasoning_tokens=500)) as server:
        client = dialect.client(server, input_usd_per_million=None, output_usd_per_million=None)
        facts = client.facts()
        assert facts.input_usd is not None
        assert facts.output_usd is not None
        server.input_usd, server.output_usd = facts.input_usd, facts.output_usd
        agree(complete(client, REQUEST), server)


# --- many ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_thousand_calls_with_every_fault_agree_with_the_providers_books(
    dialect: Dialect, server: Server, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mutators.retries.FIRST_WAIT_S", 0.01)
    kinds: list[Any] = ["drop", "cut", "garbage", "junk"]
    for number in range(200):
        server.faults.extend([Fault(kinds[number % 4]), Fault("status", 500, SOON), Fault("status", 429, SOON)])
    replies = [complete(dialect.client(server), REQUEST) for _ in range(1000)]
    tally = server.tally()
    assert sum(reply.attempts for reply in replies) == tally.requests
    assert sum(reply.uncertain for reply in replies) == tally.unfinished
    assert sum(reply.cost_usd or 0 for reply in replies) == pytest.approx(tally.usd)
