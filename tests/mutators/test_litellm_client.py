"""The client against a real server on loopback, through litellm's own code."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evo import plugins
from evo.errors import MutatorError
from evo.records import Message, ModelReply, ModelRequest
from mutators import providers
from mutators.clients.litellm import LiteLLM
from tests.support.openai_server import Answer, Fault, Server, say, serve

REQUEST = ModelRequest((Message("system", "Be brief."), Message("user", "Say hello.")))
KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")

Complete = Callable[[LiteLLM, ModelRequest], ModelReply]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(say("Hello.")) as running:
        yield running


def client(server: Server, **changes: Any) -> LiteLLM:
    return LiteLLM(api_base=server.url, **changes)


# --- what goes out and what comes back ----------------------------------------------------------------------------


def test_the_request_carries_model_effort_and_messages(server: Server, complete: Complete) -> None:
    assert complete(client(server), REQUEST).status == "ok"
    (recorded,) = server.requests
    assert recorded.path == "/v1/chat/completions"
    assert recorded.body["model"] == "gpt-5-mini"
    assert recorded.body["reasoning_effort"] == "medium"
    assert recorded.body["max_completion_tokens"] == 32768
    assert [message["role"] for message in recorded.body["messages"]] == ["system", "user"]
    assert recorded.text == "Be brief.\nSay hello."


def test_text_tokens_and_cost_come_back(server: Server, complete: Complete) -> None:
    reply = complete(client(server), REQUEST)
    assert (reply.status, reply.text, reply.model, reply.finish_reason) == ("ok", "Hello.", "gpt-5-mini", "stop")
    assert (reply.input_tokens, reply.output_tokens, reply.reasoning_tokens) == (6, 66, 64)
    # $0.25 and $2.00 for a million tokens in and out
    assert reply.cost_usd == pytest.approx(6 * 0.25e-6 + 66 * 2e-6)
    assert reply.attempts == 1
    assert 0 < reply.latency_s < 10
    assert reply.error == ""


def test_a_model_without_a_price_has_no_cost(server: Server, complete: Complete) -> None:
    reply = complete(client(server, name="Qwen/Qwen3-Coder"), REQUEST)
    assert server.requests[0].body["model"] == "Qwen/Qwen3-Coder"
    assert reply.status == "ok"
    assert reply.cost_usd is None
    assert reply.output_tokens == 66


@pytest.mark.parametrize("effort", ["minimal", "low", "high", None])
def test_every_effort_passes_and_none_is_left_out(server: Server, complete: Complete, effort: Any) -> None:
    complete(client(server, reasoning_effort=effort), REQUEST)
    assert server.requests[0].body.get("reasoning_effort") == effort


def test_a_set_key_is_sent_and_a_missing_one_replaced(
    server: Server, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(client(server), REQUEST)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    complete(client(server), REQUEST)
    assert [recorded.authorization for recorded in server.requests] == ["Bearer unused", "Bearer sk-real"]


def test_the_base_may_come_from_the_environment(
    server: Server, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert complete(LiteLLM(), REQUEST).text == "Hello."


def test_empty_and_cut_off_replies_are_replies(complete: Complete) -> None:
    with serve(say(None, finish_reason="length")) as server:
        reply = complete(client(server), REQUEST)
    assert (reply.status, reply.text, reply.finish_reason) == ("ok", "", "length")


def test_a_reply_without_usage_has_unknown_cost_or_counted_tokens(complete: Complete) -> None:
    with serve(say("Hello.", usage=False)) as server:
        reply = complete(client(server, name="some-model"), REQUEST)
    assert reply.status == "ok"
    assert reply.cost_usd is None


def test_text_that_no_database_can_hold_is_mended(complete: Complete) -> None:
    with serve(say("a\ud800b\0c")) as server:
        reply = complete(client(server), REQUEST)
    assert reply.text == "a?b\ufffdc"
    reply.text.encode()


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_retry_after_is_kept_and_the_next_attempt_counts(server: Server, complete: Complete) -> None:
    server.faults.append(Fault("status", 429, {"Retry-After": "0.3"}))
    reply = complete(client(server), REQUEST)
    assert (reply.status, reply.attempts, len(server.requests)) == ("ok", 2, 2)
    assert reply.latency_s >= 0.3


def test_a_wait_that_would_end_too_late_is_not_begun(server: Server, complete: Complete) -> None:
    server.faults.append(Fault("status", 429, {"Retry-After": "3600"}, message="slow down"))
    start = time.monotonic()
    reply = complete(client(server), REQUEST)
    assert time.monotonic() - start < 5
    assert (reply.status, reply.attempts, reply.fatal) == ("error", 1, False)
    assert "slow down" in reply.error
    assert "asks to wait 3600 s" in reply.error


@pytest.mark.parametrize(
    "fault",
    [
        Fault("status", 500, {"retry-after-ms": "1"}),
        Fault("status", 503, {"retry-after-ms": "1"}),
        Fault("status", 429, {"retry-after-ms": "1"}),
    ],
    ids=lambda fault: str(fault.status),
)
def test_what_may_pass_is_tried_as_often_as_asked(server: Server, complete: Complete, fault: Fault) -> None:
    server.faults.extend([fault] * 5)
    reply = complete(client(server, attempts=3), REQUEST)
    assert (reply.status, reply.attempts, len(server.requests)) == ("error", 3, 3)
    assert "injected fault" in reply.error
    assert (reply.cost_usd, reply.uncertain) == (0.0, 0)


@pytest.mark.parametrize("kind", ["drop", "garbage"])
def test_a_broken_connection_or_answer_is_tried_again(server: Server, complete: Complete, kind: Any) -> None:
    server.faults.append(Fault(kind))
    reply = complete(client(server), REQUEST)
    assert (reply.status, reply.attempts) == ("ok", 2)


@pytest.mark.parametrize("kind", ["drop", "garbage"])
def test_a_broken_connection_or_answer_at_last_is_an_error(server: Server, complete: Complete, kind: Any) -> None:
    server.faults.append(Fault(kind))
    reply = complete(client(server, attempts=1), REQUEST)
    assert (reply.status, reply.attempts, reply.fatal) == ("error", 1, False)
    assert reply.error
    assert "Traceback" not in reply.error


@pytest.mark.parametrize("kind", ["slow", "drip"])
def test_a_call_beyond_its_time_is_given_up_and_not_paid_twice(server: Server, complete: Complete, kind: Any) -> None:
    server.faults.append(Fault(kind, delay_s=0.2 if kind == "drip" else 30))
    reply = complete(client(server, timeout_s=1.0), REQUEST)
    assert (reply.status, reply.attempts, reply.fatal) == ("error", 1, False)
    assert "no answer within 1 s" in reply.error
    assert "'timeout_s'" in reply.error
    assert 0.9 < reply.latency_s < 5


@pytest.mark.parametrize(("status", "fatal"), [(400, False), (401, True), (403, False), (404, True)])
def test_a_refusal_is_not_tried_again(server: Server, complete: Complete, status: int, fatal: bool) -> None:
    server.faults.append(Fault("status", status, message="no"))
    reply = complete(client(server), REQUEST)
    assert (reply.status, reply.attempts, len(server.requests), reply.fatal) == ("error", 1, 1, fatal)


@pytest.mark.parametrize("words", ['"some-model" does not support thinking', "Unknown parameter: 'reasoning_effort'."])
def test_a_server_that_refuses_the_effort_is_asked_without(server: Server, complete: Complete, words: str) -> None:
    server.faults.append(Fault("status", 400, message=words))
    reply = complete(client(server), REQUEST)
    assert (reply.status, reply.attempts) == ("ok", 2)
    assert [recorded.body.get("reasoning_effort") for recorded in server.requests] == ["medium", None]


def test_an_empty_account_is_not_tried_again(server: Server, complete: Complete) -> None:
    server.faults.append(Fault("status", 429, message="check your plan", code="insufficient_quota"))
    reply = complete(client(server), REQUEST)
    assert (reply.status, reply.attempts, reply.fatal) == ("error", 1, True)
    assert reply.error.endswith("check your plan (insufficient_quota)")


def test_nothing_listens(complete: Complete) -> None:
    with serve() as gone:
        pass
    reply = complete(client(gone, attempts=1), REQUEST)
    assert (reply.status, reply.fatal) == ("error", False)
    assert "onnection" in reply.error


def test_secrets_are_taken_out_of_errors(server: Server, complete: Complete, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnop")
    server.faults.append(Fault("status", 401, message="wrong key sk-abcdefghijklmnop in Bearer sk-abcdefghijklmnop"))
    reply = complete(client(server), REQUEST)
    assert "abcdefghijklmnop" not in reply.error
    assert "[redacted]" in reply.error


def test_many_calls_are_in_flight_at_once(complete: Complete) -> None:
    barrier = threading.Barrier(8, timeout=20)

    def together(recorded: object) -> Answer:
        barrier.wait()
        return Answer("Hello.")

    async def eight(one: LiteLLM) -> list[ModelReply]:
        return await asyncio.gather(*(one.complete(REQUEST) for _ in range(8)))

    class Eight(LiteLLM):
        async def complete(self, request: ModelRequest) -> Any:
            return await eight(LiteLLM(api_base=self.api_base))

    with serve(together) as server:
        replies: Any = complete(Eight(api_base=server.url), REQUEST)
    assert [reply.status for reply in replies] == ["ok"] * 8


# --- without a key ------------------------------------------------------------------------------------------------


def test_it_is_found_by_its_name() -> None:
    assert plugins.resolve(plugins.CLIENTS, "litellm") is LiteLLM


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("gpt-5-mini", "OPENAI_API_KEY"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY"),
        ("openrouter/qwen/qwen3-coder", "OPENROUTER_API_KEY"),
    ],
)
def test_without_a_key_the_three_ways_on_are_told(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = providers.find(name)
    assert provider is not None
    for key in provider.keys:
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(MutatorError) as caught:
        LiteLLM(name=name).check()
    message = str(caught.value)
    assert f"export {variable}=…" in message
    assert ".env" in message
    assert "--model none" in message
    assert "--model ollama/" in message


@pytest.mark.parametrize("name", ["ollama/qwen3", "bedrock/some-model", "novita/unknown-here"])
def test_models_that_need_no_key_or_whose_key_is_not_known_pass(name: str) -> None:
    LiteLLM(name=name).check()


def test_a_set_key_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    LiteLLM().check()


def test_a_server_of_ones_own_needs_no_key() -> None:
    LiteLLM(name="anything", api_base="http://localhost:1/v1").check()


def test_a_name_without_provider_is_explained() -> None:
    with pytest.raises(MutatorError, match="expected provider/model"):
        LiteLLM(name="qwen3").check()


def test_a_call_without_a_key_is_a_fatal_reply(complete: Complete) -> None:
    reply = complete(LiteLLM(), REQUEST)
    assert (reply.status, reply.attempts, reply.fatal) == ("error", 0, True)
    assert "OPENAI_API_KEY" in reply.error


def test_checking_takes_no_litellm_and_no_ray() -> None:
    code = (
        "import sys\n"
        "from evo.config import Model\n"
        "from evo.errors import MutatorError\n"
        "from mutators import models\n"
        "try:\n    models.check([Model()])\n"
        "except MutatorError as error:\n    print(error)\n"
        "heavy = {'litellm', 'openai', 'ray', 'optuna', 'tree_sitter'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))\n"
    )
    environment = {"PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert "Three ways on" in result.stdout
    assert "heavy: []" in result.stdout


# --- what this relies on in litellm -------------------------------------------------------------------------------


def test_our_table_of_providers_agrees_with_litellm(complete: Complete, server: Server) -> None:
    complete(client(server), REQUEST)
    import litellm

    known = {provider.value for provider in litellm.LlmProviders}
    assert set(providers.known()) <= known


@pytest.mark.parametrize(
    "name", [name for name in providers.known() if (p := providers.find(f"{name}/x")) and p.keys and p.key != "never"]
)
def test_each_key_variable_satisfies_litellms_own_check(
    name: str, complete: Complete, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(client(server), REQUEST)
    import litellm

    provider = providers.find(f"{name}/x")
    assert provider is not None
    for key in provider.keys:
        monkeypatch.delenv(key, raising=False)
    asked = litellm.validate_environment(f"{name}/x")["missing_keys"]
    assert not asked or set(asked) & set(provider.keys)
