"""A model client that always says the same, at once: the last kernel of the prompt with a mark of its own."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from dataclasses import dataclass

from evo.records import ModelReply, ModelRequest

DELAY = "EVO_TEST_MODEL_DELAY_MS"


@dataclass(frozen=True)
class InstantClient:
    """See the module. `EVO_TEST_MODEL_DELAY_MS` is the longest that a reply takes; how long comes from the prompt."""

    name: str = "instant"

    def check(self) -> None:
        return None

    async def complete(self, request: ModelRequest) -> ModelReply:
        text = "\n".join(message.content for message in request.messages)
        digest = hashlib.sha256(text.encode()).hexdigest()
        await asyncio.sleep(float(os.environ.get(DELAY, "0")) / 1000 * int(digest[:4], 16) / 65536)
        kernel = re.findall(r"(`{3,})cuda\n(.*?)\1", text, re.DOTALL)[-1][1]
        unmarked = re.sub(r"__device__ int mark_\w+;\n?", "", kernel)  # or kernels would grow with their ancestry
        mutant = f"{unmarked.rstrip()}\n__device__ int mark_{digest[:12]};\n"
        return ModelReply(
            "ok",
            text=f"````cuda\n{mutant}````\n",
            model=self.name,
            input_tokens=len(text) // 4,
            output_tokens=len(mutant) // 4,
            cost_usd=0.001,
        )
