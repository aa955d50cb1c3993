"""Between our records and litellm's documents: a request becomes arguments, a response a reply. Pure.

What a provider may refuse (a reasoning effort, tools, a schema) are wishes: a request is whole without them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evo.records import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from mutators.providers import Provider

MOST_REPLY_BYTES = 4 << 20
"""A kernel has 64 KiB at most; what is larger than this by far is no answer, and would swell the database."""

_GENTLER = {"minimal": "low"}
"""Efforts that some models lack, and the nearest that all have which can reason."""

_BILLED = "llm_provider-x-litellm-response-cost"
"""Where litellm leaves what a provider (OpenRouter) says that it bills."""


@dataclass(frozen=True)
class Wishes:
    """What is asked for and may be refused."""

    effort: str | None = None
    tools: bool = True
    schema: bool = True

    def without(self, refusal: str) -> Wishes:
        """Return what is left to wish for after a refusal in these words; the same where it is about none of it."""
        if self.effort is not None and re.search("reasoning|thinking|effort", refusal, re.IGNORECASE):
            return replace(self, effort=_GENTLER.get(self.effort))
        if self.tools and re.search(r"\btool|function", refusal, re.IGNORECASE):
            return replace(self, tools=False)
        if self.schema and re.search("response_?format|schema|structured", refusal, re.IGNORECASE):
            return replace(self, schema=False)
        return self


def arguments(request: ModelRequest, facts: ModelFacts, wishes: Wishes, provider: Provider) -> dict[str, Any]:
    """Return what of litellm's arguments follows from the request.

    Args:
        request: to be put.
        facts: of the model; tools and schemas that it does not know are left out.
        wishes: that have not been refused yet.
        provider: that runs it.
    """
    tools = bool(request.tools) and facts.tools and wishes.tools
    schema = request.schema is not None and facts.schema and wishes.schema
    found: dict[str, Any] = {"messages": _messages(request.messages, tools)}
    if tools and (request.may_call or provider.tool_choice):
        found["tools"] = [_tool(tool.name, tool.description, tool.parameters) for tool in request.tools]
        found["tool_choice"] = "auto" if request.may_call else "none"
        schema = schema and provider.tools_with_schema
    if schema and request.schema is not None:
        found["response_format"] = _response_format(request.schema)
    if wishes.effort is not None:
        found["reasoning_effort"] = wishes.effort
    if facts.output_tokens is not None:
        found["max_tokens"] = facts.output_tokens
    return found


def _tool(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": dict(parameters)}
    return {"type": "function", "function": function}


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "answer")))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": dict(schema), "strict": True}}


# --- messages -----------------------------------------------------------------------------------------------------


def _messages(messages: Sequence[Message], tools: bool) -> list[dict[str, Any]]:
    return [_native(message) for message in (messages if tools else plain(messages))]


def plain(messages: Sequence[Message]) -> Iterator[Message]:
    """Tell a conversation with tools in plain messages, for a model that knows none."""
    names = {call.id: call.name for message in messages for call in message.calls}
    for message in messages:
        if message.calls:
            called = "\n".join(f"I call {call.name} with {call.arguments}" for call in message.calls)
            yield Message(message.role, f"{message.content}\n\n{called}".strip())
        elif message.role == "tool":
            yield Message("user", f"{names.get(message.call, 'It')} says:\n\n{message.content}")
        else:
            yield message


def _native(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call, "content": message.content}
    if message.calls:
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _object(call.arguments)}}
            for call in message.calls
        ]
        return {"role": message.role, "content": message.content or None, "tool_calls": calls}
    # An empty message is an error to several providers; a model's empty answer stands in conversations all the same.
    return {"role": message.role, "content": message.content or "(nothing)"}


def _object(text: str) -> str:
    """Return arguments that every protocol can carry: most of them have no way to quote what is no JSON object."""
    try:
        if isinstance(json.loads(text), dict):
            return text
    except ValueError:
        pass
    return json.dumps({"unreadable": text})


# --- replies ------------------------------------------------------------------------------------------------------


def reply(response: Any, facts: ModelFacts, own_price: bool) -> ModelReply:
    """Return what a response says; attempts and latency are the caller's to add.

    A refusal is an answer like any other: its text is the reason, if one was given.

    Args:
        response: litellm's.
        facts: of the model that answered.
        own_price: whether the price in `facts` is the user's own and comes before litellm's.
    """
    choice = response.choices[0]
    message, usage = choice.message, getattr(response, "usage", None)
    refusal = getattr(message, "refusal", None) or ""
    text = storable(message.content or str(refusal))
    details = getattr(usage, "completion_tokens_details", None)
    tokens_in = getattr(usage, "prompt_tokens", None) or None  # no prompt has 0 tokens: they were not told
    tokens_out = getattr(usage, "completion_tokens", None) if tokens_in else None
    found = ModelReply(
        "ok",
        text=text,
        model=str(response.model or ""),
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        reasoning_tokens=getattr(details, "reasoning_tokens", None) if tokens_in else None,
        cost_usd=_cost(response, facts, tokens_in, tokens_out, own_price),
        finish_reason="refusal" if refusal else str(choice.finish_reason or ""),
        calls=tuple(_calls(message)),
    )
    size = len(text.encode()) + sum(len(call.arguments.encode()) for call in found.calls)
    if size <= MOST_REPLY_BYTES:
        return found
    error = f"the reply has {size} bytes; at most {MOST_REPLY_BYTES} are kept. Give the model a smaller 'output_tokens'"
    return replace(found, status="error", text="", calls=(), error=error)


def _calls(message: Any) -> Iterator[ToolCall]:
    for number, call in enumerate(getattr(message, "tool_calls", None) or ()):
        asked = call.function.arguments
        text = asked if isinstance(asked, str) else json.dumps(asked)
        yield ToolCall(str(call.id or f"call_{number}"), storable(str(call.function.name or "")), storable(text))


def _cost(
    response: Any, facts: ModelFacts, tokens_in: int | None, tokens_out: int | None, own_price: bool
) -> float | None:
    """Return the price of a response in USD: as billed, else by the user's prices, else by litellm's; or None."""
    hidden: Mapping[str, Any] = getattr(response, "_hidden_params", None) or {}
    billed = (hidden.get("additional_headers") or {}).get(_BILLED)
    if billed is not None:
        return float(billed)
    if facts.input_usd == 0 and facts.output_usd == 0:
        return 0.0
    if tokens_in is None or tokens_out is None:
        return None
    if own_price:
        if facts.input_usd is None or facts.output_usd is None:
            return None
        return tokens_in * facts.input_usd + tokens_out * facts.output_usd
    told = hidden.get("response_cost")
    return float(told) if told else None  # a price of 0 means that litellm knows none


def storable(text: str) -> str:
    """Replace what neither UTF-8 nor a database's text can hold: lone surrogates and NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
