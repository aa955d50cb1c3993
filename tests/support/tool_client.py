"""A model client that calls tools before it answers like `instant_client`; its name says in how many rounds: `2`."""

from __future__ import annotations

from dataclasses import dataclass

from evo.records import ModelFacts, ModelReply, ModelRequest, ToolCall
from tests.support.instant_client import InstantClient


@dataclass(frozen=True)
class ToolClient:
    """See the module; it calls whatever it is offered first, and a tool that nobody offers."""

    name: str = "1"

    def check(self) -> None:
        return None

    def facts(self) -> ModelFacts:
        return ModelFacts("caller", window_tokens=200_000, input_usd=1e-6, output_usd=2e-6, tools=True)

    async def complete(self, request: ModelRequest) -> ModelReply:
        rounds = sum(bool(message.calls) for message in request.messages)
        if rounds >= int(self.name) or not request.may_call:
            return await InstantClient().complete(request)
        calls = (
            ToolCall(f"{rounds}a", request.tools[0].name, "not JSON"),
            ToolCall(f"{rounds}b", "telephone", "{}"),
        )
        return ModelReply("ok", "let me see", "caller", 100, 10, cost_usd=0.001, calls=calls)
