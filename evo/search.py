"""What to try next: a fold over asks and tells that proposes mutations and comparisons and knows the champion.

Pure and seeded: the state is a function of (config, the sequence of asks and tells), the random numbers of task k
come from ``default_rng((seed, k))``. No I/O, no clock, no plug-in enters here; time and cost budgets are the runner's.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from evo import bandit
from evo.bandit import Arm, Credit
from evo.config import Budget, Config, Weight
from evo.errors import ConfigError
from evo.memory import TRIED, Memory
from evo.population import Population, by_weight, cell_of, island_count
from evo.records import INHERITED, Compare, Mutate, Outcome, Task, Traits
from evo.repairs import Failure, Repairs

INSPIRATIONS = 2  # kernels shown beside the parent: contrast without drowning the parent in the prompt
TRAITS: Mapping[str, Traits] = {
    "rules": Traits(offline=True),
    "crossover": Traits(parents=2),
    "repair": Traits(repairs=True),
}
"""Of the operators that ship with the product; others are taken to be like `Traits()`."""


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
        evaluated: candidates that have reached screening or an evaluator; the initial kernel and inherited ones do not
            count.
        idle: consecutive mutations, up to now, that produced no new candidate.
        population: islands, cells and elites.
    """

    version = 2

    def __init__(self, config: Config, traits: Mapping[str, Traits] = TRAITS, inherited: int = 0) -> None:
        """Prepare a search; `start` must come before the first `ask`.

        Args:
            config: seed, operators, models, search and budget are read.
            traits: of the operators, by name.
            inherited: how many kernels of an earlier run come first, beside the budget.

        Raises:
            ConfigError: no operator can run.
        """
        self._config = config
        self._traits = {name: traits.get(name, Traits()) for name in config.operators}
        self._arms = self._usable_arms()
        self.population = Population(())
        self.champion = 0
        self.champion_ratio = math.inf
        self.evaluated = 0
        self.idle = 0
        self._waiting: list[tuple[float, int]] = []  # challengers: (ratio, candidate), fastest first
        self._challenger_ratio = math.inf  # of the comparison in flight
        self._comparisons = 0
        self._next = 0
        self._inherited, self._to_inherit = 0, inherited
        self._open: dict[int, Task] = {}  # asked, not yet applied; in the order of their ids
        self._told: dict[int, Outcome] = {}  # told, waiting for their turn (fixed order only)
        self._memory = Memory(0, math.inf, ())
        self._credit: Credit | None = None
        self._repairs = Repairs()
        self._repairing: dict[int, Failure] = {}  # by the open task that repairs it

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
        if outcome.score is None:
            raise ValueError(f"the initial kernel must have a ratio; it is {outcome.status}: {outcome}")
        islands = island_count(self._config.search.islands, self._config.budget.evaluations)
        self.population = Population.of(islands, outcome.score, outcome.descriptors)
        if bandit.switched_on(self._config.search.credit, self._config.budget.evaluations):
            self._credit = Credit()
        self._memory = Memory(islands, outcome.score, cell_of(outcome.descriptors))
        self.champion_ratio = outcome.score

    def ask(self) -> Task | None:
        """Return the next task, or None: nothing to ask until more is told, or ever (see `finished`)."""
        if not self._askable():
            return None
        task = self._task()
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
        if self._open or self._waiting or self._may_inherit() or not self.population.islands:
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
        scalars = [self.champion, self.champion_ratio, self.evaluated, self.idle, self._next, self._comparisons,
                   self._inherited]  # fmt: skip
        told = [(replace(outcome, descriptors={}), sorted(outcome.descriptors.items()))
                for _, outcome in sorted(self._told.items())]  # fmt: skip
        state = [scalars, self._waiting, self._challenger_ratio, [repr(task) for task in self._open.values()]]
        parts = (json.dumps(state), repr(told), repr(self._repairs), repr(self._repairing), repr(self._credit))
        hashes = (self.population.digest(), self._memory.digest())
        return hashlib.sha256("".join((*parts, *hashes)).encode()).hexdigest()

    # --- what to ask ------------------------------------------------------------------------------------------

    def _askable(self) -> bool:
        if not self.population.islands or len(self._open) >= self._config.search.in_flight:
            return False
        return self._may_compare() or self._may_inherit() or self._may_mutate()

    def _task(self) -> Task:
        if self._may_compare():
            return self._compare()
        return self._inherit() if self._may_inherit() else self._mutate()

    def _may_compare(self) -> bool:
        return bool(self._waiting) and not any(isinstance(task, Compare) for task in self._open.values())

    def _may_inherit(self) -> bool:
        return self._inherited < self._to_inherit

    def _may_mutate(self) -> bool:
        if self.idle >= self._config.budget.idle:
            return False
        promised = sum(isinstance(task, Mutate) and task.inherited < 0 for task in self._open.values())
        return self.evaluated + promised < self._config.budget.evaluations

    def _compare(self) -> Compare:
        self._challenger_ratio, challenger = self._waiting.pop(0)
        self._comparisons += 1
        return Compare(self._next, challenger, self.champion, self._comparisons)

    def _inherit(self) -> Mutate:
        """Ask for the next inherited kernel; they are spread over the islands in turn, the best on the first."""
        number, island = self._inherited, self._inherited % len(self.population.islands)
        self._inherited += 1
        return Mutate(self._next, INHERITED, -1, (), island=island, inherited=number)

    def _mutate(self) -> Mutate:
        rng = np.random.default_rng((self._config.seed, self._next))
        drawable = self._drawable()
        arms, weights = zip(*(drawable if self._credit is None else self._credit.shares(drawable)), strict=True)
        operator, model = by_weight(arms, weights, rng)
        if self._traits[operator].repairs:
            return self._repair(operator, model)
        self._repairs = self._repairs.asked(None)
        island = int(rng.integers(len(self.population.islands)))
        parent = self.population.parent(island, self.champion, rng)
        count = self._traits[operator].parents - 1
        partners = self.population.partners(island, self._memory.cell(parent), count, rng) if count > 0 else ()
        parents = (parent, *partners)
        others = self.population.inspirations(island, parent, INSPIRATIONS + len(partners), rng)
        inspirations = tuple(other for other in others if other not in partners)[:INSPIRATIONS]
        tried = self._memory.tried(parent, island, (*parents, *inspirations))
        return Mutate(self._next, operator, model, parents, inspirations, tried, island)

    def _repair(self, operator: str, model: int) -> Mutate:
        """Ask for a repair of the newest failure, beside the right kernel that it was made from.

        The failure itself is the most telling attempt: what it was meant to be.
        """
        failure = self._repairs.waiting[-1]
        self._repairs = self._repairs.asked(failure)
        self._repairing[self._next] = failure
        parent, origin = failure.candidate, self._memory.origin(failure.candidate)
        tried = (parent, *self._memory.tried(parent, failure.island, (parent, origin)))[:TRIED]
        return Mutate(self._next, operator, model, (parent,), (origin,), tried, failure.island)

    def _drawable(self) -> list[tuple[Arm, float]]:
        """Return what can be drawn now, with weights: the automatic repairs alone when one is due."""
        due = [(arm, self._model_weight(arm)) for arm in self._arms if self._weight(arm) == "auto"]
        if due and self._repairs.due:
            return due
        cells = len(self.population.cells)
        drawn: list[tuple[Arm, float]] = []
        for arm in self._arms:
            weight, kind = self._weight(arm), self._traits[arm[0]]
            if weight != "auto" and kind.parents <= cells and (self._repairs.waiting or not kind.repairs):
                drawn.append((arm, weight * self._model_weight(arm)))
        return drawn

    def _usable_arms(self) -> tuple[Arm, ...]:
        models = range(len(self._config.models))
        arms = [
            (name, model)
            for name in sorted(self._config.used_operators)
            for model in ((-1,) if self._traits[name].offline else models)
        ]
        if not any(self._always_drawable(name) for name, _ in arms):
            raise ConfigError(
                "operators: expected at least one with a weight above 0 that changes a single kernel and can run with "
                f"these models, found {self._config.operators}; without a model give weight to one that asks none: "
                "{rules: 1}"
            )
        return tuple(arms)

    def _always_drawable(self, operator: str) -> bool:
        return self._traits[operator].parents < 2 and not self._traits[operator].repairs

    def _weight(self, arm: Arm) -> Weight:
        return self._config.operators[arm[0]]

    def _model_weight(self, arm: Arm) -> float:
        models = self._config.models
        return 1.0 if arm[1] < 0 else models[arm[1]].weight / sum(model.weight for model in models)

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
        elif task.inherited >= 0:
            self._receive(task, outcome)
        else:
            self._take(task, outcome, self._repairing.pop(task.id, None))

    def _receive(self, task: Mutate, outcome: Outcome) -> None:
        """Take in an inherited kernel; it costs no budget, and no operator is credited with it."""
        if outcome.candidate is None or not outcome.evaluated:
            return
        self._memory.add(outcome.candidate, (), task.island, outcome.score, cell_of(outcome.descriptors))
        if outcome.score is not None:
            self._admit(task.island, outcome.candidate, outcome.score, outcome)

    def _take(self, task: Mutate, outcome: Outcome, repaired: Failure | None) -> None:
        self._charge(task, outcome)
        if outcome.candidate is None or not outcome.evaluated:
            self.idle += 1
            return
        self.idle = 0
        self.evaluated += 1
        self._memory.add(outcome.candidate, task.parents, task.island, outcome.score, cell_of(outcome.descriptors))
        if outcome.score is not None:
            self._admit(task.island, outcome.candidate, outcome.score, outcome)
        elif not self._traits[task.operator].offline:
            rounds = 0 if repaired is None else repaired.rounds + 1
            failure = Failure(outcome.candidate, task.island, outcome.status, outcome.fault, rounds)
            self._repairs = self._repairs.failed(failure, repaired)

    def _charge(self, task: Mutate, outcome: Outcome) -> None:
        if self._credit is None:
            return
        gained = bandit.gain(self._memory.bar(task.parents), outcome.score)
        cost = bandit.cost(outcome.cost_usd, outcome.unpriced_tokens)
        self._credit = self._credit.told((task.operator, task.model), gained, cost)

    def _admit(self, island: int, candidate: int, ratio: float, outcome: Outcome) -> None:
        self.population = self.population.add(island, candidate, ratio, outcome.descriptors)
        if ratio < self.champion_ratio:
            bisect.insort(self._waiting, (ratio, candidate))

    def _settle(self, task: Compare, outcome: Outcome) -> None:
        if not outcome.promoted:
            return
        self.champion, self.champion_ratio = task.challenger, self._challenger_ratio
        self._waiting = [known for known in self._waiting if known[0] < self.champion_ratio]
