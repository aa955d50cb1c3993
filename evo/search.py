"""What to try next: a fold over asks and tells that proposes mutations and comparisons and knows the champion.

Pure and seeded: the state is a function of (config, the sequence of asks and tells), the random numbers of task k
come from ``default_rng((seed, k))``. No I/O, no clock, no plug-in enters here; time and cost budgets are the runner's.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from evo.config import Budget, Config
from evo.errors import ConfigError
from evo.population import Population, island_count
from evo.records import Compare, Mutate, Outcome, Status, Task, Traits

T = TypeVar("T")

INSPIRATIONS = 2  # kernels shown beside the parent: contrast without drowning the parent in the prompt
TRAITS: Mapping[str, Traits] = {"rules": Traits(offline=True)}
"""Of the operators that ask no model; others are taken to be like `Traits()`."""

_NOT_EVALUATED = (Status.NO_PROPOSAL, Status.DUPLICATE)


class Search:
    """An evolutionary search as `ask` and `tell`.

    In `arrival` order a task is asked with all that has been told. In `fixed` order outcomes may be told at any time
    but are applied in the order of the tasks, and only when the next task needs it: with n tasks in flight, task k
    is asked with exactly the outcomes 0 … k − n (further ones only where the budget, near its end, must wait for
    them). So the order of arrival changes nothing.

    Attributes:
        version: of the way tasks follow from outcomes; stored runs replay only with their own.
        champion: id of the fastest kernel that won its comparison; 0, the initial kernel, at the start.
        champion_ratio: its latency relative to the anchor, as first evaluated.
        evaluated: candidates that have reached screening or an evaluator, the initial kernel excluded.
        idle: consecutive mutations, up to now, that produced no new candidate.
        population: islands, cells and elites.
    """

    version = 1

    def __init__(self, config: Config, traits: Mapping[str, Traits] = TRAITS) -> None:
        """Prepare a search; `start` must come before the first `ask`.

        Args:
            config: seed, operators, models, search and budget are read.
            traits: of the operators, by name.

        Raises:
            ConfigError: no operator can run.
        """
        self._config = config
        self._traits = {name: traits.get(name, Traits()) for name in config.operators}
        self._operators = self._usable_operators()
        self.population = Population(())
        self.champion = 0
        self.champion_ratio = math.inf
        self.evaluated = 0
        self.idle = 0
        self._waiting: list[tuple[float, int]] = []  # challengers: (ratio, candidate), fastest first
        self._challenger_ratio = math.inf  # of the comparison in flight
        self._comparisons = 0
        self._next = 0
        self._open: dict[int, Task] = {}  # asked, not yet applied; in the order of their ids
        self._told: dict[int, Outcome] = {}  # told, waiting for their turn (fixed order only)

    # --- asking and telling -----------------------------------------------------------------------------------

    def start(self, outcome: Outcome) -> None:
        """Begin with the evaluated initial kernel.

        Args:
            outcome: of candidate 0; its task is -1.

        Raises:
            ValueError: it has no score, or the search has already begun.
        """
        if self.population.islands:
            raise ValueError("the search has already begun: start() comes once, before the first ask()")
        if not _scored(outcome) or outcome.ratio is None:
            raise ValueError(f"the initial kernel must have a ratio; it is {outcome.status}: {outcome}")
        islands = island_count(self._config.search.islands, self._config.budget.evaluations)
        self.population = Population.of(islands, outcome.ratio, outcome.descriptors)
        self.champion_ratio = outcome.ratio

    def ask(self) -> Task | None:
        """Return the next task, or None: nothing to ask until more is told, or ever (see `finished`)."""
        if not self._askable():
            return None
        task = self._compare() if self._may_compare() else self._mutate()
        self._open[task.id] = task
        self._next += 1
        self._apply_told()
        return task

    def tell(self, outcome: Outcome) -> None:
        """Take in how a task ended, in any order.

        Raises:
            ValueError: the task was never asked, or has been told already.
        """
        if outcome.task not in self._open or outcome.task in self._told:
            raise ValueError(f"task {outcome.task} is not open; open are {sorted(self.open)}")
        self._told[outcome.task] = outcome
        self._apply_told()

    def limit(self, budget: Budget) -> None:
        """Go on under another budget; what was asked stays asked."""
        self._config = self._config.model_copy(update={"budget": budget})

    @property
    def open(self) -> tuple[int, ...]:
        """Ids of the tasks that were asked and not told, in order."""
        return tuple(task for task in self._open if task not in self._told)

    @property
    def finished(self) -> str | None:
        """The budget that ended the search, `evaluations` or `idle`; None while it can go on or tasks are open."""
        if self._open or self._waiting or not self.population.islands:
            return None
        if self.evaluated >= self._config.budget.evaluations:
            return "evaluations"
        return "idle" if self.idle >= self._config.budget.idle else None

    @property
    def undecided(self) -> bool:
        """Whether the next `ask` returns a comparison: a challenger waits, and nothing else stands in its way."""
        return self._may_compare() and self._askable()

    def digest(self) -> str:
        """Return a hash of the whole state: equal digests ask equal tasks for ever after."""
        scalars = [self.champion, self.champion_ratio, self.evaluated, self.idle, self._next, self._comparisons]
        told = [[o.task, o.candidate, o.status, o.ratio, *sorted(o.descriptors.items()), o.promoted]
                for _, o in sorted(self._told.items())]  # fmt: skip
        state = [scalars, self._waiting, self._challenger_ratio, [repr(t) for t in self._open.values()], told]
        return hashlib.sha256((json.dumps(state) + self.population.digest()).encode()).hexdigest()

    # --- what to ask ------------------------------------------------------------------------------------------

    def _askable(self) -> bool:
        if not self.population.islands or len(self._open) >= self._config.search.in_flight:
            return False
        return self._may_compare() or self._may_mutate()

    def _may_compare(self) -> bool:
        return bool(self._waiting) and not any(isinstance(task, Compare) for task in self._open.values())

    def _may_mutate(self) -> bool:
        if self.idle >= self._config.budget.idle:
            return False
        promised = sum(isinstance(task, Mutate) for task in self._open.values())
        return self.evaluated + promised < self._config.budget.evaluations

    def _compare(self) -> Compare:
        self._challenger_ratio, challenger = self._waiting.pop(0)
        self._comparisons += 1
        return Compare(self._next, challenger, self.champion, self._comparisons)

    def _mutate(self) -> Mutate:
        rng = np.random.default_rng((self._config.seed, self._next))
        island = int(rng.integers(len(self.population.islands)))
        operator = _weighted(self._operators, rng)
        model = -1
        if not self._traits[operator].offline:
            model = _weighted([(i, m.weight) for i, m in enumerate(self._config.models)], rng)
        parent = self.population.parent(island, self.champion, rng)
        inspirations = self.population.inspirations(island, parent, INSPIRATIONS, rng)
        return Mutate(self._next, operator, model, (parent,), inspirations, island=island)

    def _usable_operators(self) -> list[tuple[str, float]]:
        weights = sorted((name, weight) for name, weight in self._config.operators.items() if weight > 0)
        if not self._config.models:
            weights = [(name, weight) for name, weight in weights if self._traits[name].offline]
        if not weights:
            raise ConfigError(
                "operators: expected at least one with a weight above 0 that can run with these models, found "
                f"{self._config.operators}; without a model give weight to one that asks none: {{rules: 1}}"
            )
        return weights

    # --- what was told ----------------------------------------------------------------------------------------

    def _apply_told(self) -> None:
        while self._told:
            task = min(self._open if self._fixed else self._told)
            if task not in self._told or (self._fixed and self._askable()):
                return
            self._apply(self._open.pop(task), self._told.pop(task))

    @property
    def _fixed(self) -> bool:
        return self._config.search.order == "fixed"

    def _apply(self, task: Task, outcome: Outcome) -> None:
        if isinstance(task, Compare):
            self._settle(task, outcome)
        elif outcome.candidate is None or outcome.status in _NOT_EVALUATED:
            self.idle += 1
        else:
            self.idle = 0
            self.evaluated += 1
            self._admit(task.island, outcome.candidate, outcome)

    def _admit(self, island: int, candidate: int, outcome: Outcome) -> None:
        if outcome.ratio is None or not _scored(outcome):
            return
        self.population = self.population.add(island, candidate, outcome.ratio, outcome.descriptors)
        if outcome.ratio < self.champion_ratio:
            bisect.insort(self._waiting, (outcome.ratio, candidate))

    def _settle(self, task: Compare, outcome: Outcome) -> None:
        if not outcome.promoted:
            return
        self.champion, self.champion_ratio = task.challenger, self._challenger_ratio
        self._waiting = [known for known in self._waiting if known[0] < self.champion_ratio]


def _scored(outcome: Outcome) -> bool:
    return outcome.status is Status.OK and outcome.ratio is not None and 0 < outcome.ratio < math.inf


def _weighted(choices: Sequence[tuple[T, float]], rng: np.random.Generator) -> T:
    weights = np.array([weight for _, weight in choices])
    return choices[int(rng.choice(len(choices), p=weights / weights.sum()))][0]
