"""Plays a run one arrow at a time in this process, in any order that a seed gives: the loop without Ray.

Search, store, operators and records are the product's; the model and the evaluator are the instant ones.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from evaluators.device import Setup
from evo import workload
from evo.config import Config, Timing, Tuning, traits
from evo.records import (
    Candidate,
    Client,
    Compare,
    Inherited,
    ModelFacts,
    ModelRequest,
    Mutate,
    Outcome,
    Proposal,
    Status,
    Task,
    ToolRequest,
    ToolResult,
    Turn,
)
from evo.runner.mutation import Mutations, candidate_hash
from evo.search import Search
from evo.store import Store
from evo.store.database import FILE
from evo.store.rows import Sent
from mutators import models
from tests.support.instant_device import InstantDevice, InstantEvaluator


@dataclass
class Open:
    """A task under way."""

    task: Task
    turns: tuple[Turn, ...] = ()
    candidate: Candidate | None = None


@dataclass
class Play:
    """A run that is played; `go` plays on, and may be called again after the store was closed and opened."""

    store: Store
    config: Config
    rng: np.random.Generator
    _open: dict[int, Open] = field(default_factory=dict)

    def __post_init__(self) -> None:
        meta = self.store.meta()
        setup = Setup(meta.workload, Timing(), Tuning(), 0, meta.workload.initial)
        self._evaluator = InstantEvaluator(setup)
        self._clients: list[Client] = [models.client(model) for model in self.config.models]
        if meta.models is None:
            self.store.set_models(tuple(_facts(client) for client in self._clients))
        self._mutations = Mutations(self.store, self.config, meta.workload, meta.device)
        self._facts = self.store.meta().models or ()
        known = {name: traits(name) for name in self.config.operators}
        self.search = Search(self.config, known, len(meta.inherited))
        if not self.store.events():
            evaluation = self._evaluator.evaluate(0, meta.workload.initial, None)
            outcome = Outcome(-1, 0, evaluation.status, evaluation.ratio, evaluation.descriptors)
            self.store.add_code(0, "code 0", "listing 0")
            self.store.add_evaluation_and_tell(evaluation, outcome)
        self.store.replay(self.search)
        self._open = {
            found.task.id: Open(found.task, found.turns, found.candidate) for found in self.store.open_tasks()
        }

    def go(self, arrows: int) -> None:
        """Play so many arrows, or until the search has ended."""
        for _ in range(arrows):
            while (task := self.search.ask()) is not None:
                self.store.add_task(task)
                self._open[task.id] = Open(task)
            if not self._open:
                return
            self._advance(self._open[int(self.rng.choice(list(self._open)))])

    def _advance(self, opened: Open) -> None:
        if isinstance(opened.task, Compare):
            self._compare(opened.task)
        elif opened.candidate is not None:
            self._evaluate(opened, opened.candidate)
        else:
            self._mutate(opened, opened.task)

    def _mutate(self, opened: Open, task: Mutate) -> None:
        step = self._mutations.step(task, opened.turns, self._facts)
        if isinstance(step, ModelRequest):
            self._reply(opened, replace(step, task=task.id, step=len(opened.turns)), task.model)
        elif isinstance(step, ToolRequest):
            results = tuple(ToolResult(call.id, call.name, f"of {call.name}") for call in step.calls)
            self.store.add_results(task.id, len(opened.turns) - 1, results)
            opened.turns = (*opened.turns[:-1], Turn(opened.turns[-1].reply, results))
        else:
            self._propose(opened, task, step)

    def _reply(self, opened: Open, request: ModelRequest, model: int) -> None:
        sent = Sent(request.task, request.step, model, 0.01, 100)
        self.store.add_sent(sent)
        if self.rng.random() < 0.2:
            return  # as if the run had been killed here: the request is sent again
        reply = asyncio.run(self._clients[model].complete(request))
        if self.rng.random() < 0.2:
            reply = replace(reply, uncertain=1)
        self.store.add_reply(request.task, request.step, request, reply)
        opened.turns = (*opened.turns, Turn(reply))

    def _propose(self, opened: Open, task: Mutate, proposal: Proposal) -> None:
        if proposal.source is None:
            self._tell(Outcome(task.id, None, Status.NO_PROPOSAL))
            return
        digest = candidate_hash(proposal.source)
        known = self.store.find_by_hash(digest)
        if known is not None:
            self._tell(Outcome(task.id, known, Status.DUPLICATE))
            return
        number = self.store.next_candidate()
        opened.candidate = Candidate(
            number, task.id, proposal.source, digest, task.operator, task.parents, task.island, proposal.note
        )
        self.store.add_candidate(opened.candidate)
        self.store.add_code(number, f"code {number}", f"listing {number}")

    def _evaluate(self, opened: Open, made: Candidate) -> None:
        found = self._evaluator.evaluate(made.id, made.source, None)
        outcome = Outcome(opened.task.id, made.id, found.status, found.ratio, found.descriptors)
        self.store.add_evaluation_and_tell(found, outcome)
        self._told(outcome)

    def _compare(self, task: Compare) -> None:
        pair = [(number, self.store.candidate(number).source) for number in (task.challenger, task.champion)]
        found = self._evaluator.compare(*pair, task.number)
        outcome = Outcome(task.id, task.challenger, found.status, found.ratio, promoted=found.promoted)
        self.store.add_comparison_and_tell(found, outcome)
        self._told(outcome)

    def _tell(self, outcome: Outcome) -> None:
        self.store.tell(outcome)
        self._told(outcome)

    def _told(self, outcome: Outcome) -> None:
        del self._open[outcome.task]
        self.search.tell(outcome)


def play(folder: Path, config: Config, arrows: int, seed: int = 0, inherited: tuple[Inherited, ...] = ()) -> int:
    """Begin a run, or go on with one under this config's budget; return its champion."""
    begun = (folder / FILE).exists()
    store = Store.open(folder) if begun else _create(folder, config, inherited)
    with store:
        if begun and store.meta().config != config:
            store.set_config(config)
        played = Play(store, config, np.random.default_rng((seed, begun)))
        played.go(arrows)
        store.stop(played.search.finished or "interrupted")
        return played.search.champion


def _create(folder: Path, config: Config, inherited: tuple[Inherited, ...]) -> Store:
    folder.mkdir(parents=True)
    whole = workload.load("gemm")
    return Store.create(
        folder,
        config=config,
        workload=whole,
        device=InstantDevice().describe(),
        initial=Candidate(0, -1, whole.initial, candidate_hash(whole.initial), "initial", (), 0),
        search_version=Search.version,
        versions={"kernel-evo": "0.1.0"},
        inherited=inherited,
    )


def _facts(client: Client) -> ModelFacts:
    found: ModelFacts = client.facts() if hasattr(client, "facts") else ModelFacts(getattr(client, "name", ""))
    return found
