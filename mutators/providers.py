"""Which provider a model's name means to litellm, and which variables that provider needs. Data and look-ups only.

It spares the three seconds that importing litellm takes to find out that a key is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Provider:
    """A prefix of model names.

    Attributes:
        name: the prefix, as litellm spells it.
        keys: one of these variables must be set; () when none is needed or when credentials also lie elsewhere (files,
            the machine's role), where only a call can tell.
        bases: variables that name another server of the same protocol, which may need no key.
    """

    name: str
    keys: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()


# As litellm 1.110 reads them: https://docs.litellm.ai/docs/providers, one page a provider.
_PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("openai", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
        Provider("anthropic", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
        Provider("azure", ("AZURE_API_KEY", "AZURE_AD_TOKEN")),
        Provider("gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
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
        Provider("hosted_vllm"),
        Provider("lm_studio"),
        Provider("ollama"),
        Provider("ollama_chat"),
    )
}
_BARE = (
    (re.compile(r"gpt-|o[1-9](-|$)|chatgpt-|codex-"), "openai"),
    (re.compile(r"claude-"), "anthropic"),
)


def known() -> tuple[str, ...]:
    """Return the prefixes whose variables are known here, sorted."""
    return tuple(sorted(_PROVIDERS))


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
    return _PROVIDERS.get(prefix(model) or "")


def qualified(model: str, api_base: str | None) -> str:
    """Return the name as litellm needs it: on a server of one's own, a name without provider speaks OpenAI's protocol.

    So `Qwen/Qwen3-Coder` with an `api_base` becomes `openai/Qwen/Qwen3-Coder`, and `gpt-5-mini` stays what it is.
    """
    if api_base is None or find(model) is not None:
        return model
    return f"openai/{model}"


def has_key(provider: Provider, environment: Mapping[str, str]) -> bool:
    """Whether one of the provider's key variables is set."""
    return any(environment.get(name) for name in provider.keys)


def has_base(provider: Provider, environment: Mapping[str, str]) -> bool:
    """Whether a variable sends the provider's calls to another server."""
    return any(environment.get(name) for name in provider.bases)
