"""The client `manual`: a person, or an agent elsewhere, who reads prompts from files and writes the answers into files.

Nobody is called: a run that has such a model leaves its tasks open, and stops when nothing else is left to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from evo.records import ModelFacts, ModelReply, ModelRequest


@dataclass(frozen=True)
class Manual:
    """Leaves its prompts to whoever answers them: `evo ask` writes them down, `evo tell` takes the answers.

    Attributes:
        name: who answers; stands beside each answer in the database.
        window_tokens: how long a prompt may be for whoever answers; None keeps it short.
    """

    manual: ClassVar[bool] = True

    name: str
    window_tokens: int | None = None

    def check(self) -> None:
        """Nothing can be missing: neither key nor network is needed."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Say that nobody can be called, for whoever calls a client without asking whether it is a person."""
        error = f"{self.name} answers by hand: write the prompts with `evo ask`, take the answers with `evo tell`"
        return ModelReply("error", model=self.name, cost_usd=0.0, attempts=0, error=error)

    def facts(self) -> ModelFacts:
        """Return what is known: an answer costs nothing, and there is nobody to call a tool."""
        return ModelFacts(self.name, window_tokens=self.window_tokens, input_usd=0.0, output_usd=0.0)
