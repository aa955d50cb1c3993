"""A task under way, and how far it has come. Data that the loop moves from arrow to arrow; nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluators.device import Screened
from evo.records import Candidate, ModelRequest, Proposal, Task, Turn


@dataclass
class Open:
    """A task under way.

    Attributes:
        task: as asked.
        turns: replies of the model so far, with what the tools said that it called.
        request: what the model is asked next: the call in flight, or a prompt that waits for a person.
        sent: how often that request was sent.
        proposal: what its operator made, until it is a candidate.
        candidate: what it made.
        screened: the pre-screen's word.
        twin: an earlier candidate that may be the same program, while that is looked into.
        unlike: whether it is known to be the same program as no earlier one.
        worker: the mutator worker that the call went to.
        lost: how many evaluators died over it.
        failed: how many times a device failed under it.
    """

    task: Task
    turns: tuple[Turn, ...] = ()
    request: ModelRequest | None = None
    sent: int = 0
    worker: Any = None
    proposal: Proposal | None = None
    candidate: Candidate | None = None
    screened: Screened | None = None
    twin: int | None = None
    unlike: bool = False
    lost: int = 0
    failed: int = 0

    @property
    def cost_usd(self) -> float:
        """What its model calls cost, as far as prices are known."""
        return sum(turn.reply.cost_usd or 0.0 for turn in self.turns)

    @property
    def unpriced_tokens(self) -> int:
        """Prompt and reply of its calls whose price nobody knows."""
        unpriced = (turn.reply for turn in self.turns if turn.reply.cost_usd is None)
        return sum((reply.input_tokens or 0) + (reply.output_tokens or 0) for reply in unpriced)

    @property
    def prompt(self) -> bool:
        """Whether a prompt of it waits for a person."""
        return self.request is not None and self.worker is None
