from __future__ import annotations

import pytest

from mutators import providers


@pytest.mark.parametrize(
    ("model", "prefix"),
    [
        ("gpt-5-mini", "openai"),
        ("o3", "openai"),
        ("o4-mini", "openai"),
        ("openai/anything", "openai"),
        ("claude-sonnet-4-5", "anthropic"),
        ("openrouter/anthropic/claude-sonnet-4-5", "openrouter"),
        ("ollama/qwen3", "ollama"),
        ("novita/some-model", "novita"),
        ("qwen3", None),
        ("ollama3", None),
        ("o1xyz", None),
    ],
)
def test_a_name_tells_its_provider(model: str, prefix: str | None) -> None:
    assert providers.prefix(model) == prefix


@pytest.mark.parametrize(
    ("model", "api_base", "qualified"),
    [
        ("gpt-5-mini", "http://localhost:1", "openai/gpt-5-mini"),
        ("gpt-99", None, "openai/gpt-99"),
        ("claude-sonnet-4-5", None, "anthropic/claude-sonnet-4-5"),
        ("ollama/qwen3", None, "ollama_chat/qwen3"),
        ("openrouter/qwen/qwen3", None, "openrouter/qwen/qwen3"),
        ("qwen3", "http://localhost:1", "openai/qwen3"),
        ("Qwen/Qwen3-Coder", "http://localhost:1", "openai/Qwen/Qwen3-Coder"),
        ("hosted_vllm/qwen3", "http://localhost:1", "hosted_vllm/qwen3"),
        ("novita/some-model", None, "novita/some-model"),
    ],
)
def test_on_a_server_of_ones_own_a_plain_name_speaks_openais_protocol(
    model: str, api_base: str | None, qualified: str
) -> None:
    assert providers.qualified(model, api_base) == qualified
