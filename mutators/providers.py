"""Which provider a model's name means to litellm, and which variables that provider needs. Data and look-ups only.

It spares the three seconds that importing litellm takes to find out that a key is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Provider:
    """A prefix of model names.

    Attributes:
        name: the prefix, as litellm spells it.
        keys: one of these variables holds the key; () when credentials also lie elsewhere (files, the machine's role),
            where only a call can tell.
        bases: variables that name a server in place of a model's `api_base`.
        needs_base: it has no server of its own, so that one must be named.
        key: when it is needed: `always`, `hosted` (a server that is named may be one's own and need none), `never`.
        free: it runs models on one's own machine; a price of 0 is a price.
        windowed: each request says how large a window it needs (`num_ctx`); what does not fit is cut off silently.
        tools_with_schema: one request may offer tools and ask for structured output.
        tool_choice: a model that is offered tools can be told to call none.
    """

    name: str
    keys: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    needs_base: bool = False
    key: Literal["always", "hosted", "never"] = "hosted"
    free: bool = False
    windowed: bool = False
    tools_with_schema: bool = False
    tool_choice: bool = True


# As litellm 1.110 reads them: https://docs.litellm.ai/docs/providers, one page a provider.
_PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("openai", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL", "OPENAI_API_BASE"), tools_with_schema=True),
        Provider(
            "anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL")
        ),
        Provider(
            "azure",
            ("AZURE_API_KEY", "AZURE_AD_TOKEN", "AZURE_CLIENT_SECRET"),
            ("AZURE_API_BASE",),
            needs_base=True,
            key="always",
            tools_with_schema=True,
        ),
        Provider("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), ("GEMINI_API_BASE",)),
        Provider("cerebras", ("CEREBRAS_API_KEY",)),
        Provider("cohere", ("COHERE_API_KEY",)),
        Provider("deepinfra", ("DEEPINFRA_API_KEY",)),
        Provider("deepseek", ("DEEPSEEK_API_KEY",)),
        Provider("fireworks_ai", ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKS_AI_TOKEN")),
        Provider("groq", ("GROQ_API_KEY",)),
        Provider("huggingface", ("HUGGINGFACE_API_KEY", "HF_TOKEN")),
        Provider("mistral", ("MISTRAL_API_KEY",)),
        Provider("moonshot", ("MOONSHOT_API_KEY",)),
        Provider("nvidia_nim", ("NVIDIA_NIM_API_KEY",)),
        Provider("openrouter", ("OPENROUTER_API_KEY", "OR_API_KEY")),
        Provider("together_ai", ("TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_API_KEY")),
        Provider("xai", ("XAI_API_KEY",)),
        Provider("bedrock"),
        Provider("vertex_ai"),
        Provider("hosted_vllm", ("HOSTED_VLLM_API_KEY",), ("HOSTED_VLLM_API_BASE",), needs_base=True, key="never"),
        Provider("lm_studio", ("LM_STUDIO_API_KEY",), ("LM_STUDIO_API_BASE",), True, "never", free=True),
        Provider(
            "ollama_chat",
            ("OLLAMA_API_KEY",),
            ("OLLAMA_API_BASE",),
            key="never",
            free=True,
            windowed=True,
            tool_choice=False,
        ),
    )
}
_SAME = {"ollama": "ollama_chat"}
"""Prefixes that mean another: Ollama's own chat protocol carries tools and roles, its older one a single text."""

_BARE = (
    (re.compile(r"gpt-|o[1-9](-|$)|chatgpt-|codex-"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
)


def known() -> tuple[str, ...]:
    """Return the prefixes whose variables are known here, sorted."""
    return tuple(sorted({*_PROVIDERS, *_SAME}))


def prefix(model: str) -> str | None:
    """Return the provider that a model's name means; None when the name does not say.

    A name says it by a prefix (`groq/…`) or by being one of OpenAI's or Anthropic's own (`gpt-5-mini`, `claude-…`). A
    prefix that is not known here is returned as it stands: litellm knows more of them.
    """
    head, slash, _ = model.partition("/")
    if slash:
        return head
    return next((name for pattern, name in _BARE if pattern.match(model)), None)


def find(model: str) -> Provider | None:
    """Return what is known of the provider of this model, or None."""
    head = prefix(model) or ""
    return _PROVIDERS.get(_SAME.get(head, head))


def qualified(model: str, api_base: str | None) -> str:
    """Return the name as litellm needs it, with its provider.

    OpenAI's and Anthropic's own names get one, so that those are reached too which are newer than litellm. On a server
    of one's own, a name without provider speaks OpenAI's protocol: `Qwen/Qwen3-Coder` with an `api_base` becomes
    `openai/Qwen/Qwen3-Coder`.
    """
    provider = find(model)
    if provider is None:
        return model if api_base is None else f"openai/{model}"
    head, slash, rest = model.partition("/")
    return f"{provider.name}/{rest if slash else head}"


def place(model: str, api_base: str | None) -> str:
    """Return where calls of this model go: models of one place share its limits."""
    return api_base or prefix(model) or model


def lacks_key(provider: Provider, has_base: bool, environment: Mapping[str, str]) -> bool:
    """Whether a key must be set for this provider and none is; `has_base`: a server is named."""
    needed = provider.key == "always" or (provider.key == "hosted" and not has_base)
    return needed and bool(provider.keys) and not has_key(provider, environment)


def has_key(provider: Provider, environment: Mapping[str, str]) -> bool:
    """Whether one of the provider's key variables is set."""
    return any(environment.get(name) for name in provider.keys)


def has_base(provider: Provider, environment: Mapping[str, str]) -> bool:
    """Whether a variable sends the provider's calls to another server."""
    return any(environment.get(name) for name in provider.bases)
