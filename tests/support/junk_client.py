"""A model client in the worker's process whose answers are of no use; its name says of which kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evo.records import ModelReply, ModelRequest
from tests.support import squares

ANSWERS: Mapping[str, Callable[[str, int], str]] = {
    "prose": lambda kernel, number: f"Poem {number}: a warp went out to find a bank.",
    "broken": lambda kernel, number: fenced(kernel.replace("block:", f"blick{number}:")),
    "unchanged": lambda kernel, number: fenced(kernel),
    "same": lambda kernel, number: fenced(squares.FAST),
    "wrong": lambda kernel, number: fenced(kernel.replace("block:", "blick:")),
    "error": lambda kernel, number: "",
}


@dataclass(frozen=True)
class JunkClient:
    """See the module."""

    name: str = "prose"

    def check(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.name == "error":
            return ModelReply("error", error="HTTP 500: no idea", cost_usd=0.0)
        text = "\n".join(message.content for message in request.messages)
        kernel = re.findall(r"(`{3,})cuda\n(.*?)\1", text, re.DOTALL)[-1][1]
        return ModelReply("ok", text=ANSWERS[self.name](kernel, request.task), model=self.name, cost_usd=0.0)


def fenced(kernel: str) -> str:
    """Return a kernel as models write it."""
    return f"````cuda\n{kernel}````\n"
