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
import re
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from evo.errors import MutatorError
from evo.records import ModelReply, ModelRequest
from mutators import providers, retries
from mutators.environment import redact

_NO_KEY = "unused"
"""Sent as the key to a server of one's own that asks for none: the OpenAI client insists on having one."""

_MOST_ERROR = 2000


@dataclass(frozen=True)
class LiteLLM:
    """Calls one model through litellm.

    Attributes:
        name: as litellm spells it: `gpt-5-mini`, `anthropic/…`, `gemini/…`, `ollama/…`, `openrouter/…`, …
        reasoning_effort: minimal, low, medium or high; None leaves it to the model. A server that refuses it (a local
            model that cannot think) is asked again without.
        api_base: URL of a server that speaks the provider's protocol; a name without provider then means OpenAI's.
        timeout_s: limit of one attempt, and the time after which no further attempt begins.
        attempts: HTTP calls at most.
    """

    name: str = "gpt-5-mini"
    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = "medium"
    api_base: str | None = None
    timeout_s: float = 300.0
    attempts: int = 4

    def check(self) -> None:
        """Raise `MutatorError` with the ways on when no key is set for this model. No network, no litellm."""
        if self.api_base is not None:
            return
        provider = providers.find(self.name)
        if provider is None:
            if providers.prefix(self.name) is None:
                raise MutatorError(_unknown_provider(self.name))
            return  # a provider that litellm may know and this house does not: the first call will tell
        if provider.keys and not (providers.has_key(provider, os.environ) or providers.has_base(provider, os.environ)):
            raise MutatorError(_no_key(self.name, provider))

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make one call, tried again where the failure may pass.

        A wait that the provider asks for is kept in full, or the call is given up when it would end too late.
        """
        try:
            self.check()
        except MutatorError as error:
            return ModelReply("error", attempts=0, error=str(error), fatal=True)
        library = await asyncio.to_thread(_library)
        start, failure, attempt = time.monotonic(), _Failure("no attempt was made"), 0
        effort = self.reasoning_effort
        jitter = random.Random(zlib.crc32(request.messages[-1].content.encode()))
        while attempt < self.attempts:
            attempt += 1
            try:
                async with asyncio.timeout(self.timeout_s):
                    response = await library.acompletion(**self._arguments(request, effort))
                return _reply(response, attempt, time.monotonic() - start)
            except Exception as error:  # whatever a provider or its library does becomes a reply
                failure = _failure(error, self.timeout_s)
            if failure.about_effort and effort is not None:
                effort = None
                continue
            wait_s = failure.wait_s if failure.wait_s is not None else retries.own_wait_s(attempt, jitter)
            left_s = self.timeout_s - (time.monotonic() - start)
            if not failure.passing or attempt == self.attempts or wait_s >= left_s:
                break
            await asyncio.sleep(wait_s)
        return failure.reply(attempt, time.monotonic() - start)

    def _arguments(self, request: ModelRequest, effort: str | None) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": providers.qualified(self.name, self.api_base),
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "timeout": self.timeout_s,
            "max_retries": 0,
            "drop_params": True,
        }
        if effort is not None:
            arguments["reasoning_effort"] = effort
        if self.api_base is not None:
            arguments["api_base"] = self.api_base
        provider = providers.find(arguments["model"])
        own_server = self.api_base is not None or (provider and providers.has_base(provider, os.environ))
        if own_server and not (provider and providers.has_key(provider, os.environ)):
            arguments["api_key"] = _NO_KEY
        return arguments


@dataclass(frozen=True)
class _Failure:
    """One failed attempt: what to say, whether it may pass, and the wait that the provider asks for."""

    error: str
    passing: bool = False
    wait_s: float | None = None
    fatal: bool = False
    about_effort: bool = False

    def reply(self, attempts: int, latency_s: float) -> ModelReply:
        error = self.error
        if self.passing and self.wait_s is not None:
            error += f" (the provider asks to wait {self.wait_s:.0f} s)"
        return ModelReply("error", latency_s=latency_s, attempts=attempts, error=error, fatal=self.fatal)


def _failure(error: Exception, timeout_s: float) -> _Failure:
    if isinstance(error, TimeoutError) or type(error).__name__ == "Timeout":
        return _Failure(
            f"no answer within {timeout_s:g} s; give the model a larger 'timeout_s' or a smaller 'reasoning_effort'",
            passing=True,
        )
    status = getattr(error, "status_code", None)
    text = _words(error)
    passing = retries.is_passing(status, text)
    fatal = status in _FATAL or "LLM Provider NOT provided" in text or (status == 429 and not passing)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    lowered = {str(name).lower(): str(value) for name, value in headers.items()}
    wait_s = retries.asked_wait_s(lowered, datetime.now(UTC)) if passing else None
    return _Failure(text, passing, wait_s, fatal, about_effort=not passing and _ABOUT_EFFORT.search(text) is not None)


_ABOUT_EFFORT = re.compile(r"reasoning|thinking", re.IGNORECASE)
_FATAL = frozenset({401, 404})
"""Wrong key, no such model: every further call of this model ends the same way."""


def _words(error: Exception) -> str:
    """The error in one line, without secrets and without the library's traceback."""
    said = str(error).split("Traceback (most recent call last)")[0]
    body = getattr(error, "body", None)
    code = body.get("code") if isinstance(body, Mapping) else None
    suffix = f" ({code})" if isinstance(code, str) and code not in said else ""
    return " ".join(redact(f"{type(error).__name__}: {said}").split())[:_MOST_ERROR] + redact(suffix[:200])


def _reply(response: Any, attempts: int, latency_s: float) -> ModelReply:
    choice = response.choices[0]
    usage = getattr(response, "usage", None)
    details = getattr(usage, "completion_tokens_details", None)
    return ModelReply(
        "ok",
        text=_storable(choice.message.content or ""),
        model=str(response.model or ""),
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        reasoning_tokens=getattr(details, "reasoning_tokens", None),
        cost_usd=_cost(response),
        latency_s=latency_s,
        attempts=attempts,
        finish_reason=str(choice.finish_reason or ""),
    )


def _cost(response: Any) -> float | None:
    hidden: Mapping[str, Any] = getattr(response, "_hidden_params", None) or {}
    cost = hidden.get("response_cost")
    return None if cost is None else float(cost)


def _storable(text: str) -> str:
    """Replace what neither UTF-8 nor a database's text can hold: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _unknown_provider(name: str) -> str:
    return (
        f"model {name!r}: expected provider/model (such as openrouter/…, gemini/…, ollama/…) or a name of OpenAI's or "
        f"Anthropic's own, found neither. Providers that are known here: {', '.join(providers.known())}. For a server "
        "of your own give the model an 'api_base'."
    )


def _no_key(name: str, provider: providers.Provider) -> str:
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
