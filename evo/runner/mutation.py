"""From a Mutate task to the operator's next step: builds the context that an operator may see. No Ray, no clock."""

from __future__ import annotations

import functools
from hashlib import sha256

from evo import kernel, plugins
from evo.config import Config
from evo.errors import HeaderError
from evo.records import (
    Device,
    ModelReply,
    Mutate,
    MutationContext,
    Operator,
    Proposal,
    Relative,
    Step,
    Workload,
)
from evo.store import Store
from evo.workload import public
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
            name: plugins.resolve(plugins.OPERATORS, name)() for name, weight in config.operators.items() if weight > 0
        }
        self._relative = functools.lru_cache(_RECENT)(self._load_relative)

    def step(self, task: Mutate, replies: tuple[ModelReply, ...]) -> Step:
        """Return the task's next request, or its proposal; an operator that fails proposes nothing and says why."""
        context = MutationContext(
            task=task,
            # The search draws from (seed, task); the third number keeps the operator's draws apart from those.
            seed=(self._seed, task.id, 1),
            workload=self._workload,
            device=self._device,
            parents=tuple(self._relative(parent) for parent in task.parents),
            inspirations=tuple(self._relative(other) for other in task.inspirations),
        )
        try:
            return self._operators[task.operator].step(context, replies)
        except Exception as error:
            return Proposal(None, f"operator {task.operator} failed: {type(error).__name__}: {error}")

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
