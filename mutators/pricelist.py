"""What is known of a model before it is asked: litellm's price map, and what the user says instead.

A price of 0 means that nobody wrote one down, except where models run on one's own machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from evo.records import ModelFacts
from mutators.providers import Provider

T = TypeVar("T")

OUTPUT_TOKENS = 32_768
"""Most tokens of a reply unless the user says otherwise: twice what the largest kernel that is read has, and as much
again to think. Models allow more; a reply that needs it has gone astray, and its price is reserved before each call."""

LOCAL_WINDOW = 24_576
LOCAL_OUTPUT = 8_192
"""What a model on one's own machine is given of its window (together 32k tokens), unless the user says otherwise:
memory for the whole window is taken up front, and windows of 128k tokens and more do not fit common GPUs."""


@dataclass(frozen=True)
class Own:
    """What the user says of a model; None where the user says nothing. Prices are for a million tokens."""

    window_tokens: int | None = None
    output_tokens: int | None = None
    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    tools: bool | None = None

    @property
    def priced(self) -> bool:
        """Whether the user names a price."""
        return self.input_usd_per_million is not None or self.output_usd_per_million is not None

    def over(self, facts: ModelFacts) -> ModelFacts:
        """Return the facts with the user's in place of those that the user states."""
        return replace(
            facts,
            window_tokens=_first(self.window_tokens, facts.window_tokens),
            output_tokens=_first(self.output_tokens, facts.output_tokens),
            input_usd=_first(_per_token(self.input_usd_per_million), facts.input_usd),
            output_usd=_first(_per_token(self.output_usd_per_million), facts.output_usd),
            tools=facts.tools if self.tools is None else self.tools,
        )


def look_up(library: Any, name: str, provider: Provider, api_base: str | None) -> ModelFacts:
    """Return what litellm knows of a model; nothing but the name where it does not know the model.

    Args:
        library: litellm. For Ollama it asks the server, which may take a while.
        name: as litellm spells it.
        provider: that runs it.
        api_base: of a server.
    """
    try:
        info = library.get_model_info(name, api_base=api_base)
    except Exception:  # litellm raises a plain Exception for a model that it does not know
        info = {}
    facts = ModelFacts(
        name,
        window_tokens=info.get("max_input_tokens"),
        output_tokens=_least(info.get("max_output_tokens"), OUTPUT_TOKENS),
        input_usd=_price(info.get("input_cost_per_token"), provider),
        output_usd=_price(info.get("output_cost_per_token"), provider),
        tools=bool(info.get("supports_function_calling")),
        schema=bool(info.get("supports_response_schema")),
    )
    return _local(facts) if provider.windowed else facts


def together(chain: tuple[ModelFacts, ...]) -> ModelFacts:
    """Return what holds for a model and its fallbacks: the smallest window and the highest price that are known."""
    first = chain[0]
    windows = [facts.window_tokens for facts in chain if facts.window_tokens is not None]
    return replace(
        first,
        window_tokens=min(windows, default=None),
        input_usd=_highest(first.input_usd, [facts.input_usd for facts in chain]),
        output_usd=_highest(first.output_usd, [facts.output_usd for facts in chain]),
    )


def _local(facts: ModelFacts) -> ModelFacts:
    """Share one window between prompt and reply, of which the map tells only the sum."""
    whole = min(LOCAL_WINDOW + LOCAL_OUTPUT, facts.window_tokens or LOCAL_WINDOW + LOCAL_OUTPUT)
    output = min(LOCAL_OUTPUT, whole // 4)
    return replace(facts, window_tokens=whole - output, output_tokens=output)


def _price(usd: float | None, provider: Provider) -> float | None:
    return usd or (0.0 if provider.free else None)


def _highest(first: float | None, all_of_them: list[float | None]) -> float | None:
    return None if first is None else max(usd for usd in all_of_them if usd is not None)


def _least(found: int | None, limit: int) -> int | None:
    return None if found is None else min(found, limit)


def _per_token(usd_per_million: float | None) -> float | None:
    return None if usd_per_million is None else usd_per_million / 1e6


def _first(said: T | None, known: T | None) -> T | None:
    return known if said is None else said
