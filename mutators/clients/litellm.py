"""The client `litellm`: any model that litellm reaches, hosted or local, by name.

The one room that imports litellm, and only when the first call is made. Retries are its own: litellm's hide the
error or wait without limit. What a provider does wrong comes back as a reply, and no secret leaves in its text.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import random
import time
import zlib
from dataclasses import dataclass, replace
from typing import Any, Literal

from evo.errors import MutatorError
from evo.records import ModelFacts, ModelReply, ModelRequest
from mutators import exchange, failures, pricelist, providers, retries
from mutators.exchange import Wishes
from mutators.failures import Failure
from mutators.providers import Provider

_NO_KEY = "unused"
"""Sent as the key to a server of one's own that asks for none: the OpenAI client insists on having one."""


@dataclass(frozen=True)
class LiteLLM:
    """Calls one model through litellm, and others when it fails.

    Attributes:
        name: as litellm spells it: `gpt-5-mini`, `anthropic/…`, `gemini/…`, `ollama/…`, `openrouter/…`, …
        reasoning_effort: minimal, low, medium or high, which litellm maps to what the provider has; None leaves it to
            the model. A server that refuses it (a local model that cannot think) is asked again without.
        api_base: URL of a server that speaks the provider's protocol; a name without provider then means OpenAI's.
        timeout_s: limit of one attempt, and for each model the time after which no further attempt begins.
        attempts: at each model, where the failure may pass.
        fallbacks: names of models that are asked, in order, when the one before has failed. Those of the same provider
            are reached at the same `api_base`.
        window_tokens: of a prompt, of this model, in place of what litellm knows; so are the next four.
        output_tokens: of a reply; a longer one is cut off.
        input_usd_per_million: price of a million prompt tokens.
        output_usd_per_million: price of a million tokens of replies.
        tools: whether it can call functions.
    """

    name: str = "gpt-5-mini"
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = "medium"
    api_base: str | None = None
    timeout_s: float = 300.0
    attempts: int = 4
    fallbacks: tuple[str, ...] = ()
    window_tokens: int | None = None
    output_tokens: int | None = None
    input_usd_per_million: float | None = None
    output_usd_per_million: float | None = None
    tools: bool | None = None

    def check(self) -> None:
        """Raise `MutatorError` with the ways on when a key or a server is not named. No network, no litellm."""
        for name in (self.name, *self.fallbacks):
            _check(name, self._base(name))

    def facts(self) -> ModelFacts:
        """Return what is known of the model; of its fallbacks the smallest window and the highest price count."""
        return pricelist.together(tuple(model.facts for model in _chain(self)))

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make one call, tried again where the failure may pass, then at the fallbacks.

        A wait that the provider asks for is kept in full, or the model is given up when it would end too late.
        """
        try:
            self.check()
        except MutatorError as error:
            return ModelReply("error", attempts=0, cost_usd=0.0, error=str(error), fatal=True)
        chain = await asyncio.to_thread(_chain, self)
        start, tried, failed = time.monotonic(), _Tried(), list[Failure]()
        for model in chain:
            found = await self._ask(model, request, tried)
            if isinstance(found, ModelReply):
                return tried.told_by(found, time.monotonic() - start)
            failed.append(found)
        return tried.told_by(_none(chain, failed, tried), time.monotonic() - start)

    async def _ask(self, model: _Model, request: ModelRequest, tried: _Tried) -> ModelReply | Failure:
        """Ask one model until it answers or is given up; `tried` counts along."""
        start, attempt, wishes = time.monotonic(), 0, Wishes(self.reasoning_effort)
        jitter = random.Random(zlib.crc32(request.messages[-1].content.encode("utf-8", "replace")))
        while True:
            tried.attempts += 1
            try:
                arguments = exchange.arguments(request, model.facts, wishes, model.provider)
                async with asyncio.timeout(self.timeout_s):
                    response = await _library().acompletion(**model.arguments(self.timeout_s), **arguments)
                return exchange.reply(response, model.facts, model.own_price)
            except Exception as error:  # whatever a provider or its library does becomes a reply
                failure = failures.failure(error, self.timeout_s)
            tried.uncertain += failure.uncertain
            less = wishes if failure.passing else wishes.without(failure.error)
            if less != wishes:
                wishes = less  # no attempt in its own right: each wish is refused once at most
                continue
            attempt += 1
            wait_s = failure.wait_s if failure.wait_s is not None else retries.own_wait_s(attempt, jitter)
            left_s = self.timeout_s - (time.monotonic() - start)
            if not failure.passing or attempt == self.attempts or wait_s >= left_s:
                return failure
            await asyncio.sleep(wait_s)

    def _base(self, name: str) -> str | None:
        """The server of a model: the one that was named, unless the name says another provider."""
        return self.api_base if name == self.name or providers.find(name) == providers.find(self.name) else None

    def _model(self, name: str) -> _Model:
        base = self._base(name)
        full = providers.qualified(name, base)
        provider = providers.find(full) or Provider(providers.prefix(full) or "")
        known = pricelist.look_up(_library(), full, provider, base)
        if name != self.name:
            return _Model(name, full, provider, base, known)
        own = pricelist.Own(
            self.window_tokens,
            self.output_tokens,
            self.input_usd_per_million,
            self.output_usd_per_million,
            self.tools,
        )
        return _Model(name, full, provider, base, own.over(known), own.priced)


@dataclass(frozen=True)
class _Model:
    """One model as it is reached, with what is known of it; `said` is how the config names it."""

    said: str
    name: str
    provider: Provider
    api_base: str | None
    facts: ModelFacts
    own_price: bool = False

    def arguments(self, timeout_s: float) -> dict[str, Any]:
        """What of litellm's arguments does not depend on the request."""
        found: dict[str, Any] = {"model": self.name, "timeout": timeout_s, "max_retries": 0, "drop_params": True}
        if self.api_base is not None:
            found["api_base"] = self.api_base
        own_server = self.api_base is not None or providers.has_base(self.provider, os.environ)
        if own_server and not providers.has_key(self.provider, os.environ):
            found["api_key"] = _NO_KEY
        if self.provider.windowed:
            found["num_ctx"] = (self.facts.window_tokens or 0) + (self.facts.output_tokens or 0)
        return found


@dataclass
class _Tried:
    """HTTP calls of one request so far, at all its models."""

    attempts: int = 0
    uncertain: int = 0

    def told_by(self, reply: ModelReply, latency_s: float) -> ModelReply:
        return replace(reply, attempts=self.attempts, uncertain=self.uncertain, latency_s=latency_s)


@functools.lru_cache(maxsize=256)
def _chain(client: LiteLLM) -> tuple[_Model, ...]:
    return tuple(client._model(name) for name in (client.name, *client.fallbacks))


def _none(chain: tuple[_Model, ...], failed: list[Failure], tried: _Tried) -> ModelReply:
    """The reply when every model has failed."""
    words = [failure.words for failure in failed]
    if len(chain) > 1:
        words = [f"{model.said}: {words}" for model, words in zip(chain, words, strict=True)]
    return ModelReply(
        "error",
        cost_usd=None if tried.uncertain else 0.0,
        error="; then ".join(words),
        fatal=all(failure.fatal for failure in failed),
    )


def _check(name: str, api_base: str | None) -> None:
    provider = providers.find(name)
    if provider is None:
        if api_base is None and providers.prefix(name) is None:
            raise MutatorError(_unknown_provider(name))
        return  # a provider that litellm may know and this house does not: the first call will tell
    has_base = api_base is not None or providers.has_base(provider, os.environ)
    if provider.needs_base and not has_base:
        raise MutatorError(_no_base(name, provider))
    if providers.lacks_key(provider, has_base, os.environ):
        raise MutatorError(_no_key(name, provider))


def _unknown_provider(name: str) -> str:
    return (
        f"model {name!r}: expected provider/model (such as openrouter/…, gemini/…, ollama/…) or a name of OpenAI's or "
        f"Anthropic's own, found neither. Providers that are known here: {', '.join(providers.known())}. For a server "
        "of your own give the model an 'api_base'."
    )


def _no_base(name: str, provider: Provider) -> str:
    return (
        f"model {name!r} needs the URL of its server, and none is named. Give the model an 'api_base', or set it: "
        f"export {provider.bases[0]}=…, or write {provider.bases[0]}=… into the file .env of this folder"
    )


def _no_key(name: str, provider: Provider) -> str:
    variable, others = provider.keys[0], provider.keys[1:]
    or_else = f" (or {', '.join(others)})" if others else ""
    return (
        f"model {name!r} needs a key for {provider.name}: {variable}{or_else} is not set. Three ways on:\n"
        f"  1. set the key: export {variable}=…, or write {variable}=… into the file .env of this folder\n"
        "  2. search without a model, by offline rules: --model none\n"
        "  3. use a local model: --model ollama/NAME, or give the model an 'api_base' (any server that speaks OpenAI's "
        "protocol)"
    )


@functools.cache
def _library() -> Any:
    """Import litellm, told beforehand to fetch nothing, read no `.env` and print nothing."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    os.environ["LITELLM_LOG"] = os.environ.get("LITELLM_LOG") or "ERROR"  # an empty value breaks the import
    was_enabled = gc.isenabled()
    gc.disable()  # a quarter of the import's time would be collections that free nothing
    try:
        import litellm
    finally:
        if was_enabled:
            gc.enable()
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    return litellm
