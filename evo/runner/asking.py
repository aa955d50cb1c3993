"""The model's side of a task: what is asked next, what is set aside for it, and what came back.

Requests, tools and replies only, each stored before it is used; what becomes of a proposal is the loop's affair.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evo.config import Config
from evo.records import ModelReply, ModelRequest, Mutate, Proposal, ToolRequest, ToolResult, Turn
from evo.runner.crew import Crew
from evo.runner.ledger import Ledger
from evo.runner.mutation import Mutations
from evo.runner.observer import Observer
from evo.runner.opened import Open
from evo.store import Store

POLL_S = 0.2
"""How long one wait for Ray lasts; budgets and Ctrl-C are looked at in between."""
SENDINGS = 2
"""A request whose worker died, or that a killed run left behind, is sent once more: it may have been paid for."""

ToolResults = tuple[ToolResult, ...]


@dataclass(frozen=True)
class Asking:
    """Asks models, and keeps what they say.

    Attributes:
        store: committed to before anything leaves and before anything is used.
        mutations: steps operators.
        ledger: knows what may still be spent.
        crew: works on Ray.
        config: names the models.
        observer: hears of prompts that wait for a person, and of the wait for replies.
    """

    store: Store
    mutations: Mutations
    ledger: Ledger
    crew: Crew
    config: Config
    observer: Observer

    def learn(self, interrupted: Callable[[], bool]) -> None:
        """Wait until it is known what the models can do and cost: prompts and budgets depend on it."""
        if self.ledger.facts or not self.config.models:
            return
        while not interrupted():
            facts = self.crew.facts(POLL_S)
            if facts is not None:
                self.ledger.learn(facts)
                return

    def next(self, opened: Open, task: Mutate) -> Proposal | ModelReply | Any:
        """Take a task one step further.

        Returns:
            Its operator's proposal; the reply that stands for a model that is not asked again; a Ray reference of the
            call that was started; or None: a prompt waits for a person.
        """
        step = self.mutations.step(task, opened.turns, self.ledger.facts)
        if isinstance(step, ToolRequest):
            return self.crew.use_tools(step.calls, self.mutations.parent(task))
        if isinstance(step, Proposal):
            return step
        return self._ask(opened, task, replace(step, task=task.id, step=len(opened.turns)))

    def _ask(self, opened: Open, task: Mutate, request: ModelRequest) -> Proposal | ModelReply | Any:
        opened.request = request
        if task.model in self.crew.manual:
            self.observer.event("prompt", task=task)
            return None
        if opened.sent >= SENDINGS:
            return self.cut_off("the run was killed")
        if opened.turns and (used_up := self.ledger.spent_up()):
            opened.request = None
            return Proposal(None, f"the budget {used_up} was used up in between")
        self.store.add_sent(self.ledger.reservation(task.model, request))
        opened.sent, opened.worker = opened.sent + 1, self.crew.worker
        return self.crew.complete(task.model, request)

    def cut_off(self, why: str) -> ModelReply:
        """Return the reply that stands for a request that was sent often enough, and never answered."""
        error = f"{why} while the model was being asked, {SENDINGS} times; it is not asked again"
        return ModelReply("error", error=error, cost_usd=0.0, attempts=0, uncertain=1)

    def lost(self, opened: Open, why: str) -> ModelReply | None:
        """Put a new worker in the place of one that died under a call; None where the call may be made once more."""
        self.crew.replace_worker(opened.worker)
        opened.worker = None
        return self.cut_off(f"the mutator worker died ({why})") if opened.sent >= SENDINGS else None

    def keep(self, opened: Open, reply: ModelReply) -> None:
        """Store a reply."""
        assert opened.request is not None
        self.store.add_reply(opened.task.id, len(opened.turns), opened.request, reply)
        self.ledger.heard(reply.output_tokens)
        opened.request, opened.worker, opened.sent = None, None, 0
        opened.turns = (*opened.turns, Turn(reply))

    def keep_results(self, opened: Open, results: ToolResults) -> None:
        """Store what the tools said that the last reply called."""
        self.store.add_results(opened.task.id, len(opened.turns) - 1, results)
        opened.turns = (*opened.turns[:-1], replace(opened.turns[-1], results=results))

    def may_begin(self, opened: Iterable[Open]) -> bool:
        """Whether there is money for a further task; the last of it goes into one call at a time."""
        return not in_flight(opened) or self.ledger.room()

    def spent_up(self, opened: Iterable[Open]) -> str | None:
        """Return which budget is used up; None while calls in flight may still cost less than was set aside."""
        return None if in_flight(opened) else self.ledger.spent_up()

    def harvest(self, calls: Mapping[Any, Open]) -> None:
        """Wait for model calls, and store what comes back: it is paid for, and a resumed run uses it."""
        waiting = {ref: opened for ref, opened in calls.items() if opened.worker is not None}
        if waiting:
            self.observer.event("harvesting", calls=len(waiting))
        while waiting:
            done, _ = self.crew.ray.wait(list(waiting), num_returns=1, timeout=POLL_S)
            for ref in done:
                opened = waiting.pop(ref)
                with contextlib.suppress(self.crew.ray.exceptions.RayError):
                    self.keep(opened, self.crew.ray.get(ref))


def in_flight(opened: Iterable[Open]) -> int:
    """Return how many of these tasks wait for a model's reply."""
    return sum(task.worker is not None for task in opened)
