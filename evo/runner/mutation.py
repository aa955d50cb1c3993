"""From a Mutate task to the operator's next step: builds the context that an operator may see. No Ray, no clock."""

from __future__ import annotations

import functools
from dataclasses import replace
from hashlib import sha256

from evo import kernel, plugins
from evo.config import Config
from evo.errors import HeaderError
from evo.records import (
    Attempt,
    Device,
    ModelFacts,
    ModelRequest,
    Mutate,
    MutationContext,
    Operator,
    Proposal,
    Relative,
    ToolRequest,
    Turn,
    Workload,
)
from evo.store import Store
from evo.workload import public
from mutators import conversation, tools
from mutators.feedback import without_hidden

_RECENT = 256  # relatives kept parsed: elites are asked for again and again


class Mutations:
    """Steps operators with what the store holds.

    Args:
        store: of the run.
        config: names the operators.
        workload: whole; operators see its public part.
        device: that the kernels run on.
    """

    def __init__(self, store: Store, config: Config, workload: Workload, device: Device) -> None:
        self._store = store
        self._seed = config.seed
        self._workload = public(workload)
        self._device = device
        self._operators: dict[str, Operator] = {
            name: plugins.resolve(plugins.OPERATORS, name)() for name in config.used_operators
        }
        self._rounds = config.tools.rounds
        self._inherited = store.meta().inherited
        self._profiled = config.profile != "none"
        self._relative = functools.lru_cache(_RECENT)(self._load_relative)
        self._attempt = functools.lru_cache(_RECENT)(self._load_attempt)

    def step(
        self, task: Mutate, turns: tuple[Turn, ...], facts: tuple[ModelFacts, ...] = ()
    ) -> ModelRequest | ToolRequest | Proposal:
        """Return what comes next for a task; an operator that fails proposes nothing and says why.

        A task that brings in an inherited kernel has no operator: the kernel itself is the proposal.

        Args:
            task: as asked.
            turns: replies of the model so far, with what tools said.
            facts: of the config's models, in order.
        """
        if task.inherited >= 0:
            one = self._inherited[task.inherited]
            return Proposal(one.source, one.note)
        model = facts[task.model] if task.model >= 0 else ModelFacts()
        context = MutationContext(
            task=task,
            # The search draws from (seed, task); the third number keeps the operator's draws apart from those.
            seed=(self._seed, task.id, 1),
            workload=self._workload,
            device=self._device,
            parents=tuple(self._parent(parent, model) for parent in task.parents),
            inspirations=tuple(self._relative(other) for other in task.inspirations),
            tried=tuple(self._attempt(other) for other in task.tried),
            model=model,
        )
        try:
            return conversation.step(self._operators[task.operator], context, turns, self._offer(model))
        except Exception as error:
            return Proposal(None, f"operator {task.operator} failed: {type(error).__name__}: {error}")

    def _parent(self, candidate: int, model: ModelFacts) -> Relative:
        """Return a parent; a model that cannot call tools is told beforehand what they would say."""
        relative = self._relative(candidate)
        if model.tools or not self._rounds:
            return relative
        return replace(relative, listing=self._store.code(candidate)[1])

    def parent(self, task: Mutate) -> Relative:
        """Return the kernel that a task changes, as its operator sees it."""
        return self._relative(task.parents[0])

    def _offer(self, model: ModelFacts) -> conversation.Offer:
        if not model.tools:
            return conversation.Offer()
        return conversation.Offer(tools.available(self._device, profiled=self._profiled), self._rounds)

    def _load_attempt(self, candidate: int) -> Attempt:
        made, relative = self._store.candidate(candidate), self._relative(candidate)
        verdict = relative.evaluation
        parent = self._relative(made.parents[0]).evaluation if made.parents else None
        return Attempt(
            id=candidate,
            operator=made.operator,
            parents=made.parents,
            note=made.note,
            status=verdict.status if verdict else None,
            stage=verdict.stage if verdict else "",
            message=verdict.message if verdict else "",
            ratio=verdict.ratio if verdict else None,
            parent_ratio=parent.ratio if parent else None,
        )

    def _load_relative(self, candidate: int) -> Relative:
        evaluation = self._store.evaluation(candidate)
        tuned = evaluation.source if evaluation and evaluation.source else self._store.candidate(candidate).source
        return Relative(candidate, tuned, without_hidden(evaluation) if evaluation else None)


def candidate_hash(source: str) -> str:
    """Return what makes two candidates duplicates: the kernel's own hash, or that of the text if it has none."""
    try:
        return kernel.parse(source).hash
    except HeaderError:
        return sha256(source.encode()).hexdigest()
