"""What four providers' protocols look like on the wire: requests in, completions and errors out.

Plain functions of JSON documents for `model_server`; no sockets. Nothing of the product may enter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One completion.

    Attributes:
        text: None where the model said nothing.
        finish_reason: in OpenAI's words: `stop`, `length`, `tool_calls` (implied by `calls`), `content_filter`.
        reasoning_tokens: beside those of the text.
        usage: whether tokens are told at all.
        calls: (function, arguments) each; arguments that are no JSON are sent as the text that they are.
        refusal: why the model will not answer; "" where it does.
        billed_usd: the cost that the provider tells, as OpenRouter does.
    """

    text: str | None
    finish_reason: str = "stop"
    reasoning_tokens: int = 64
    usage: bool = True
    calls: tuple[tuple[str, str], ...] = ()
    refusal: str = ""
    billed_usd: float | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of one completion; a quarter of the characters each."""

    prompt: int
    text: int
    reasoning: int

    @property
    def output(self) -> int:
        """All that is billed as output."""
        return self.text + self.reasoning


@dataclass(frozen=True)
class Protocol:
    """How one provider speaks.

    Attributes:
        name: as litellm calls the provider.
        says: all texts of a request's conversation, in order.
        completion: the document of an answer: (path, request, answer, usage).
        error: the document of an error: (HTTP status, message, code).
    """

    name: str
    says: Callable[[Mapping[str, Any]], str]
    completion: Callable[[str, Mapping[str, Any], Answer, Usage], dict[str, Any]]
    error: Callable[[int, str, str | None], dict[str, Any]]


def of_path(path: str) -> Protocol:
    """Return the protocol whose clients ask for this path."""
    if ":generateContent" in path:
        return GEMINI
    if path.startswith("/api/"):
        return OLLAMA
    return ANTHROPIC if path.endswith("/messages") else OPENAI


def usage(protocol: Protocol, body: Mapping[str, Any], answer: Answer) -> Usage:
    """Count the tokens of an exchange."""
    said = (answer.text or "") + answer.refusal + "".join(arguments for _, arguments in answer.calls)
    # Ollama tells one number for all that it wrote, so that reasoning is no part of the protocol.
    reasoning = 0 if protocol is OLLAMA else answer.reasoning_tokens
    return Usage(len(protocol.says(body)) // 4 + 1, len(said) // 4 + 1, reasoning)


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _texts(document: Any) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, Mapping):
        for key in document:
            if key not in ("role", "type", "id", "tool_call_id", "tool_use_id"):
                yield from _texts(document[key])
    elif isinstance(document, list):
        for item in document:
            yield from _texts(item)


# --- OpenAI: https://platform.openai.com/docs/api-reference/chat -------------------------------------------------


def _openai_says(body: Mapping[str, Any]) -> str:
    return "\n".join(_texts(body["messages"]))


def _openai(path: str, body: Mapping[str, Any], answer: Answer, spent: Usage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if answer.refusal else answer.text}
    if answer.refusal:
        message["refusal"] = answer.refusal
    if answer.calls:
        message["tool_calls"] = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(answer.calls)
        ]
    document: dict[str, Any] = {
        "id": "chatcmpl-local",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "deployed"),
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if answer.calls else answer.finish_reason}
        ],
    }
    if answer.usage:
        document["usage"] = {
            "prompt_tokens": spent.prompt,
            "completion_tokens": spent.output,
            "total_tokens": spent.prompt + spent.output,
            "completion_tokens_details": {"reasoning_tokens": spent.reasoning},
        }
        if answer.billed_usd is not None:
            document["usage"]["cost"] = answer.billed_usd
    return document


def _openai_error(status: int, message: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "injected", "code": code}}


# --- Anthropic: https://docs.claude.com/en/api/messages ----------------------------------------------------------

_ANTHROPIC_STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


def _anthropic_says(body: Mapping[str, Any]) -> str:
    return "\n".join(_texts([body.get("system", ""), body["messages"]]))


def _anthropic(path: str, body: Mapping[str, Any], answer: Answer, spent: Usage) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.text is not None and not answer.refusal:
        content.append({"type": "text", "text": answer.text})
    for number, (name, arguments) in enumerate(answer.calls):
        content.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": _value(arguments)})
    stop = "tool_use" if answer.calls else _ANTHROPIC_STOPS[answer.finish_reason]
    document: dict[str, Any] = {
        "id": "msg_local",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "refusal" if answer.refusal else stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    if answer.usage:
        document["usage"] = {"input_tokens": spent.prompt, "output_tokens": spent.output}
    return document


def _anthropic_error(status: int, message: str, code: str | None) -> dict[str, Any]:
    return {"type": "error", "error": {"type": code or "api_error", "message": message}}


# --- Gemini: https://ai.google.dev/api/generate-content ----------------------------------------------------------

_GEMINI_STOPS = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


def _gemini_says(body: Mapping[str, Any]) -> str:
    return "\n".join(_texts([body.get("system_instruction", ""), body["contents"]]))


def _gemini(path: str, body: Mapping[str, Any], answer: Answer, spent: Usage) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if answer.text is not None:
        parts.append({"text": answer.text})
    for name, arguments in answer.calls:
        parts.append({"functionCall": {"name": name, "args": _value(arguments)}})
    document: dict[str, Any] = {"modelVersion": path.rsplit("/", 1)[-1].partition(":")[0], "responseId": "local"}
    if answer.refusal:
        document["promptFeedback"] = {"blockReason": "SAFETY", "blockReasonMessage": answer.refusal}
    else:
        content = {"role": "model", "parts": parts} if parts else {"role": "model"}
        document["candidates"] = [
            {"content": content, "finishReason": _GEMINI_STOPS[answer.finish_reason], "index": 0}
        ]  # fmt: skip
    if answer.usage:
        document["usageMetadata"] = {
            "promptTokenCount": spent.prompt,
            "candidatesTokenCount": spent.text,
            "thoughtsTokenCount": spent.reasoning,
            "totalTokenCount": spent.prompt + spent.output,
        }
    return document


def _gemini_error(status: int, message: str, code: str | None) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": code or "INTERNAL"}}


# --- Ollama: https://docs.ollama.com/api/chat --------------------------------------------------------------------


def _ollama_says(body: Mapping[str, Any]) -> str:
    return "\n".join(_texts(body["messages"]))


def _ollama(path: str, body: Mapping[str, Any], answer: Answer, spent: Usage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.refusal or answer.text or ""}
    if answer.calls:
        message["tool_calls"] = [
            {"function": {"name": name, "arguments": _value(arguments)}} for name, arguments in answer.calls
        ]
    document: dict[str, Any] = {
        "model": body["model"],
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": True,
        "done_reason": "length" if answer.finish_reason == "length" else "stop",
    }
    if answer.usage:
        document |= {"prompt_eval_count": spent.prompt, "eval_count": spent.output}
    return document


def _ollama_error(status: int, message: str, code: str | None) -> dict[str, Any]:
    return {"error": message}


OPENAI = Protocol("openai", _openai_says, _openai, _openai_error)
ANTHROPIC = Protocol("anthropic", _anthropic_says, _anthropic, _anthropic_error)
GEMINI = Protocol("gemini", _gemini_says, _gemini, _gemini_error)
OLLAMA = Protocol("ollama", _ollama_says, _ollama, _ollama_error)

OLLAMA_MODEL: Mapping[str, Any] = {
    "template": "{{ .System }} {{ .Tools }} {{ .Prompt }}",
    "model_info": {"general.architecture": "qwen2", "qwen2.context_length": 16384},
    "capabilities": ["completion", "tools"],
}
"""What Ollama's /api/show says of a model."""

OLLAMA_TAGS: Mapping[str, Any] = {"models": [{"name": "qwen2.5-coder:latest"}, {"name": "qwen3:8b"}]}
"""What Ollama's /api/tags says it has."""
