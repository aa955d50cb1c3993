"""What is known of a model before it is asked, and how a request is put to each kind of model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from evo.errors import MutatorError
from evo.records import Message, ModelFacts, ModelReply, ModelRequest, Tool, ToolCall
from mutators import exchange, pricelist
from mutators.clients.litellm import LiteLLM
from mutators.exchange import Wishes
from mutators.providers import Provider
from tests.support.model_server import Fault, Server, say, serve

REQUEST = ModelRequest((Message("system", "Be brief."), Message("user", "Say hello.")))
TOOL = Tool("compile", "Compiles.", {"type": "object", "properties": {}})
SCHEMA = {"title": "edits of a kernel", "type": "object", "properties": {}, "additionalProperties": False}
KNOWN = ModelFacts("m", tools=True, schema=True)
BOTH = Provider("openai", tools_with_schema=True)
ONE = Provider("gemini")

# litellm's types for Gemini make pydantic warn once, when they are first read.
pytestmark = pytest.mark.filterwarnings("ignore:Items? .* using the `ReadOnly` qualifier")

Ask = Callable[[LiteLLM], ModelReply]


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(say("Hello.")) as running:
        yield running


@pytest.fixture
def ask(complete: Callable[[LiteLLM, ModelRequest], ModelReply]) -> Ask:
    return lambda client: complete(client, REQUEST)


# --- facts --------------------------------------------------------------------------------------------------------


def test_the_price_map_tells_window_output_prices_and_abilities() -> None:
    assert LiteLLM().facts() == ModelFacts("openai/gpt-5-mini", 272_000, 32_768, 0.25e-6, 2e-6, True, True)
    assert LiteLLM("claude-sonnet-4-5").facts() == ModelFacts(
        "anthropic/claude-sonnet-4-5", 200_000, 32_768, 3e-6, 15e-6, True, True
    )


@pytest.mark.parametrize("name", ["hosted_vllm/own", "openrouter/unheard/of", "gpt-99"])
def test_of_an_unknown_model_nothing_is_known(name: str) -> None:
    assert LiteLLM(name, api_base="http://127.0.0.1:1/v1").facts() == ModelFacts(
        name if "/" in name else f"openai/{name}"
    )


def test_what_the_config_says_wins() -> None:
    own = {"window_tokens": 9000, "output_tokens": 700, "input_usd_per_million": 1.0, "output_usd_per_million": 0.0}
    facts = LiteLLM("gpt-5-mini", **own, tools=False).facts()  # type: ignore[arg-type]
    assert facts == ModelFacts("openai/gpt-5-mini", 9000, 700, 1e-6, 0.0, False, True)


def test_one_price_of_ones_own_leaves_the_other_to_the_map() -> None:
    facts = LiteLLM(output_usd_per_million=4.0).facts()
    assert (facts.input_usd, facts.output_usd) == (0.25e-6, 4e-6)


def test_of_fallbacks_the_smallest_window_and_the_highest_price_count() -> None:
    facts = LiteLLM("gpt-5-mini", fallbacks=("claude-sonnet-4-5", "unheard/of")).facts()
    assert (facts.name, facts.window_tokens) == ("openai/gpt-5-mini", 200_000)
    assert (facts.input_usd, facts.output_usd) == (3e-6, 15e-6)


def test_a_price_of_nothing_is_a_price_on_ones_own_machine_alone(server: Server) -> None:
    facts = LiteLLM("ollama/qwen", api_base=server.root).facts()
    assert (facts.input_usd, facts.output_usd) == (0.0, 0.0)
    free = {"max_input_tokens": 10, "input_cost_per_token": 0, "output_cost_per_token": 0}

    class Library:
        @staticmethod
        def get_model_info(name: str, api_base: str | None) -> dict[str, Any]:
            return free

    assert pricelist.look_up(Library, "groq/x", Provider("groq"), None).input_usd is None


def test_ollama_tells_what_a_model_can_and_each_request_names_a_window(server: Server, ask: Ask) -> None:
    client = LiteLLM("ollama/qwen", None, server.root)
    # the server says 16,384, of prompt and reply together
    assert client.facts() == ModelFacts("ollama_chat/qwen", 12_288, 4_096, 0.0, 0.0, True, False)
    assert ask(client).cost_usd == 0.0
    assert server.requests[0].path == "/api/chat"
    assert server.requests[0].body["options"] == {"num_ctx": 16_384, "num_predict": 4_096}


def test_ollama_that_is_not_up_has_a_window_all_the_same() -> None:
    with serve() as gone:
        pass
    facts = LiteLLM("ollama/qwen", None, gone.root).facts()
    assert (facts.window_tokens, facts.output_tokens) == (24_576, 8_192)


# --- how a request is put -----------------------------------------------------------------------------------------


def test_a_reply_of_ones_own_price_costs_that(server: Server, ask: Ask) -> None:
    reply = ask(LiteLLM("own", None, server.url, input_usd_per_million=10.0, output_usd_per_million=20.0))
    assert reply.cost_usd == pytest.approx(6 * 10e-6 + 66 * 20e-6)


@pytest.mark.parametrize("billed", [0.0, 0.125])
def test_what_a_provider_says_that_it_bills_comes_first(server: Server, ask: Ask, billed: float) -> None:
    server.reply = say("Hello.", billed_usd=billed)
    client = LiteLLM("openrouter/own", None, server.url, input_usd_per_million=10.0, output_usd_per_million=20.0)
    assert ask(client).cost_usd == billed


def test_half_a_price_is_no_price(server: Server, ask: Ask) -> None:
    assert ask(LiteLLM("own", None, server.url, input_usd_per_million=10.0)).cost_usd is None


def test_a_limit_of_output_is_sent_where_one_is_known(server: Server, ask: Ask) -> None:
    ask(LiteLLM("own", None, server.url))
    ask(LiteLLM("own", None, server.url, output_tokens=700))
    ask(LiteLLM("anthropic/claude-sonnet-4-5", "high", server.root))
    sent = [recorded.body.get("max_tokens") for recorded in server.requests]
    assert sent[:2] == [None, 700]
    assert sent[2] >= 32_768


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("gpt-5-mini", "minimal", "minimal"),
        ("gpt-4o", "medium", None),
        ("own", "high", "high"),
    ],
)
def test_efforts_go_to_models_that_have_them(
    server: Server, ask: Ask, model: str, effort: Any, sent: str | None
) -> None:
    ask(LiteLLM(model, effort, server.url))
    assert server.requests[0].body.get("reasoning_effort") == sent


def test_an_effort_that_is_refused_becomes_the_nearest_then_none(server: Server, ask: Ask) -> None:
    server.faults.extend([Fault("status", 400, message="Unsupported value: 'reasoning_effort'")] * 2)
    reply = ask(LiteLLM("own", "minimal", server.url, attempts=1))
    assert (reply.status, reply.attempts) == ("ok", 3)
    assert [recorded.body.get("reasoning_effort") for recorded in server.requests] == ["minimal", "low", None]


def test_tools_and_a_schema_go_together_only_where_a_provider_takes_both() -> None:
    request = replace(REQUEST, tools=(TOOL,), schema=SCHEMA)
    assert {"tools", "tool_choice", "response_format"} <= set(exchange.arguments(request, KNOWN, Wishes(), BOTH))
    assert "response_format" not in exchange.arguments(request, KNOWN, Wishes(), ONE)
    assert "response_format" in exchange.arguments(replace(request, tools=()), KNOWN, Wishes(), ONE)


def test_a_schema_is_named_as_providers_allow() -> None:
    found = exchange.arguments(replace(REQUEST, schema=SCHEMA), KNOWN, Wishes(), ONE)["response_format"]
    assert found["json_schema"]["name"] == "edits_of_a_kernel"
    assert found["json_schema"]["schema"] == SCHEMA


def test_a_model_that_may_call_no_more_is_told_so_or_has_no_tools() -> None:
    request = replace(REQUEST, tools=(TOOL,), may_call=False)
    assert exchange.arguments(request, KNOWN, Wishes(), ONE)["tool_choice"] == "none"
    assert "tools" not in exchange.arguments(request, KNOWN, Wishes(), Provider("own", tool_choice=False))


def test_a_model_without_tools_or_schema_is_asked_in_words() -> None:
    calls = (ToolCall("a", "compile", "{}"),)
    said = (Message("assistant", "", calls=calls), Message("tool", "32 registers", call="a"))
    request = ModelRequest((*REQUEST.messages, *said), (TOOL,), schema=SCHEMA)
    found = exchange.arguments(request, ModelFacts("m"), Wishes(), ONE)
    assert set(found) == {"messages"}
    assert [message["role"] for message in found["messages"]] == ["system", "user", "assistant", "user"]
    assert found["messages"][2]["content"] == "I call compile with {}"
    assert found["messages"][3]["content"] == "compile says:\n\n32 registers"


def test_an_empty_message_is_sent_as_a_word() -> None:
    request = ModelRequest((*REQUEST.messages, Message("assistant", ""), Message("user", "Well?")))
    assert exchange.arguments(request, KNOWN, Wishes(), ONE)["messages"][2]["content"] == "(nothing)"


# --- before the run -----------------------------------------------------------------------------------------------


def test_a_server_that_must_be_named_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_API_BASE", "HOSTED_VLLM_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_API_KEY", "x")
    with pytest.raises(MutatorError, match=r"needs the URL of its server.*AZURE_API_BASE"):
        LiteLLM("azure/x").check()
    with pytest.raises(MutatorError, match=r"needs the URL of its server.*HOSTED_VLLM_API_BASE"):
        LiteLLM("hosted_vllm/x").check()
    LiteLLM("hosted_vllm/x", api_base="http://localhost:8000/v1").check()
    LiteLLM("azure/x", api_base="https://x.openai.azure.com").check()


def test_a_hosted_server_needs_its_key_whatever_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_API_KEY", "AZURE_AD_TOKEN", "AZURE_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MutatorError, match="AZURE_API_KEY"):
        LiteLLM("azure/x", api_base="https://x.openai.azure.com").check()


def test_the_keys_of_fallbacks_are_asked_for_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(MutatorError, match="GROQ_API_KEY"):
        LiteLLM(fallbacks=("gpt-5", "groq/x")).check()


def test_azure_is_asked_at_its_deployment(server: Server, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_API_KEY", "azurekeyazurekey")
    monkeypatch.setenv("AZURE_API_VERSION", "2025-04-01-preview")
    reply = ask(LiteLLM("azure/gpt-5-mini", None, server.root))
    assert (reply.status, reply.text) == ("ok", "Hello.")
    assert reply.cost_usd == pytest.approx(server.tally().usd)
    (recorded,) = server.requests
    assert recorded.path.startswith("/openai/deployments/gpt-5-mini/chat/completions")
    assert "2025-04-01-preview" in recorded.path
    assert recorded.headers["api-key"] == "azurekeyazurekey"


@pytest.mark.parametrize(
    ("name", "variable", "path"),
    [
        ("openrouter/qwen/qwen3-coder", "OPENROUTER_API_KEY", "/v1/chat/completions"),
        ("hosted_vllm/own", "HOSTED_VLLM_API_KEY", "/v1/chat/completions"),
        ("lm_studio/own", "LM_STUDIO_API_KEY", "/v1/chat/completions"),
    ],
)
def test_others_speak_openais_protocol(
    server: Server, ask: Ask, name: str, variable: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "keykeykeykey")
    reply = ask(LiteLLM(name, None, server.url))
    assert (reply.status, reply.text, reply.cost_usd) == ("ok", "Hello.", 0.0 if "lm_studio" in name else None)
    assert server.requests[0].path == path
    assert server.requests[0].authorization == "Bearer keykeykeykey"
