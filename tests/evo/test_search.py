from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from evo.errors import ConfigError
from evo.memory import TRIED
from evo.records import Compare, Mutate, Outcome, Status, Task
from evo.repairs import REPAIRABLE
from evo.search import Search
from tests.support import runs

START = Outcome(-1, 0, Status.OK, 1.0)
EVALUATED = (Status.OK, *REPAIRABLE)
OPERATORS = (
    {"rewrite": 3.0, "rules": 1.0},
    {"rewrite": 2.0, "crossover": 2.0, "repair": "auto", "rules": 1.0},
    {"edit": 1.0, "crossover": 0.5, "repair": 2.0, "rules": 1.0},
)
MODELS = ({"name": "big", "weight": 1.0}, {"name": "small", "weight": 3.0})


def begun(**changes: object) -> Search:
    search = Search(runs.config(**changes))
    search.start(START)
    return search


def scored(task: Task | None, ratio: float) -> Outcome:
    assert isinstance(task, Mutate)
    return Outcome(task.id, task.id + 1, Status.OK, ratio)


def settled(task: Task | None, promoted: bool) -> Outcome:
    assert isinstance(task, Compare)
    return Outcome(task.id, task.challenger, Status.OK, promoted=promoted)


def drive(search: Search, pick: Any, seed: int = 0) -> list[Task]:
    """Run a search to its end, telling the open tasks in the order that `pick(number of open tasks)` says."""
    asked: list[Task] = []
    waiting: list[Task] = []
    while search.finished is None:
        while task := search.ask():
            asked.append(task)
            waiting.append(task)
        search.tell(runs.outcome(waiting.pop(pick(len(waiting))), seed))
    return asked


# --- every search ---------------------------------------------------------------------------------------------


class AnySearch(RuleBasedStateMachine):
    """Asks and tells in any order keep the promises of the docstring."""

    @initialize(
        order=st.sampled_from(["arrival", "fixed"]),
        in_flight=st.integers(1, 5),
        evaluations=st.integers(1, 12),
        idle=st.integers(1, 4),
        islands=st.integers(1, 3),
        seed=st.integers(0, 3),
        operators=st.sampled_from(OPERATORS),
        credit=st.sampled_from(["on", "off"]),
        inherited=st.sampled_from([0, 0, 1, 7]),
    )
    def begin(
        self,
        order: str,
        in_flight: int,
        evaluations: int,
        idle: int,
        islands: int,
        seed: int,
        operators: Any,
        credit: str,
        inherited: int,
    ) -> None:
        self.config = runs.config(
            seed=seed,
            operators=operators,
            models=MODELS,
            search={"order": order, "in_flight": in_flight, "islands": islands, "credit": credit},
            budget={"evaluations": evaluations, "idle": idle},
        )
        self.inherited = inherited
        self.search = Search(self.config, inherited=inherited)
        self.search.start(START)
        self.open: list[Task] = []
        self.history: list[tuple[Task | Outcome, str]] = []
        self.counted = 0
        self.told: dict[int, Outcome] = {0: START}

    @rule()
    def ask(self) -> None:
        before = self.search.digest()
        task = self.search.ask()
        if task is None:
            assert self.search.digest() == before
            return
        assert task.id == sum(not isinstance(event, Outcome) for event, _ in self.history)
        self.open.append(task)
        self.history.append((task, self.search.digest()))
        mutations = [one for one, _ in self.history if isinstance(one, Mutate)]
        for number, one in enumerate(mutations):
            assert one.inherited == (number if number < self.inherited else -1), "inherited ones come first, each once"
        if isinstance(task, Mutate) and task.inherited < 0:
            self.names_what_was_told(task)

    def names_what_was_told(self, task: Mutate) -> None:
        attempts = task.tried[1:] if task.operator == "repair" else task.tried
        named = (*task.parents, *task.inspirations, *attempts)
        assert set(named) <= set(self.told)
        assert len(set(named)) == len(named), "nothing is named twice"
        assert len(task.tried) <= TRIED
        assert len(task.parents) == (2 if task.operator == "crossover" else 1)
        repaired = {
            one.parents[0] for one, _ in self.history[:-1] if isinstance(one, Mutate) and one.operator == "repair"
        }
        failed = self.told[task.parents[0]].status is not Status.OK
        assert failed == (task.operator == "repair")
        assert not failed or task.parents[0] not in repaired, "each failure is repaired once"

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def tell(self, data: st.DataObject) -> None:
        task = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        outcome = runs.outcome(task, self.config.seed)
        if isinstance(task, Mutate) and outcome.status in EVALUATED:
            assert outcome.candidate is not None
            self.counted += task.inherited < 0
            self.told[outcome.candidate] = outcome
        self.search.tell(outcome)
        self.history.append((outcome, self.search.digest()))

    @invariant()
    def the_budget_is_never_overshot(self) -> None:
        promised = sum(isinstance(task, Mutate) and task.inherited < 0 for task in self.open)
        assert self.counted + promised <= self.config.budget.evaluations
        assert len(self.open) <= self.config.search.in_flight

    @invariant()
    def one_comparison_at_a_time(self) -> None:
        assert sum(isinstance(task, Compare) for task in self.open) <= 1

    @invariant()
    def open_tasks_are_known(self) -> None:
        assert self.search.open == tuple(task.id for task in self.open)

    def teardown(self) -> None:
        replayed = Search(self.config, inherited=self.inherited)
        replayed.start(START)
        for event, digest in self.history:
            if isinstance(event, Outcome):
                replayed.tell(event)
            else:
                assert replayed.ask() == event
            assert replayed.digest() == digest


AnySearch.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnySearch = AnySearch.TestCase


@given(st.sampled_from(["arrival", "fixed"]), st.integers(1, 6), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_every_search_ends_by_its_budget(order: str, in_flight: int, random: Any) -> None:
    search = begun(search={"order": order, "in_flight": in_flight}, budget={"evaluations": 20})
    asked = drive(search, lambda n: random.randrange(n))
    assert (search.finished, search.evaluated, search.ask()) == ("evaluations", 20, None)
    fates = [runs.outcome(task) for task in asked if isinstance(task, Mutate)]
    assert sum(fate.status in EVALUATED for fate in fates) == 20


@given(st.integers(1, 6), st.integers(0, 5), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_in_fixed_order_the_lineage_does_not_depend_on_arrival(in_flight: int, seed: int, random: Any) -> None:
    changes: dict[str, Any] = {
        "seed": seed,
        "operators": OPERATORS[1],
        "models": MODELS,
        "search": {"order": "fixed", "in_flight": in_flight, "islands": 2, "credit": "on"},
        "budget": {"evaluations": 25},
    }
    first, second = begun(**changes), begun(**changes)
    in_order = drive(first, lambda n: 0, seed)
    shuffled = drive(second, lambda n: random.randrange(n), seed)
    assert shuffled == in_order
    assert (second.champion, second.digest()) == (first.champion, first.digest())


def test_in_arrival_order_the_lineage_follows_arrival() -> None:
    lineages = [drive(begun(search={"in_flight": 4}), pick) for pick in (lambda n: 0, lambda n: n - 1)]
    assert lineages[0] != lineages[1]


@given(st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_in_fixed_order_a_task_waits_for_exactly_the_record_it_needs(in_flight: int, random: Any) -> None:
    search = begun(search={"order": "fixed", "in_flight": in_flight}, budget={"evaluations": 1000})
    waiting: list[Task] = []
    told: set[int] = set()
    for step in range(200):
        while task := search.ask():
            waiting.append(task)
            assert set(range(task.id - in_flight + 1)) <= told, "asked before all that it must see was told"
        asked = len(told) + len(waiting)
        assert asked - in_flight not in told, f"step {step}: task {asked} could have been asked"
        task = waiting.pop(random.randrange(len(waiting)))
        search.tell(runs.outcome(task))
        told.add(task.id)


def test_the_seed_decides() -> None:
    lineages = [drive(begun(seed=seed), lambda n: 0) for seed in (0, 0, 1)]
    assert lineages[0] == lineages[1] != lineages[2]


# --- budgets --------------------------------------------------------------------------------------------------


def test_tasks_without_a_candidate_do_not_count_but_end_an_idle_search() -> None:
    search = begun(search={"in_flight": 1}, budget={"evaluations": 2, "idle": 3})
    for status in (Status.NO_PROPOSAL, Status.DUPLICATE):
        task = search.ask()
        assert task is not None
        search.tell(Outcome(task.id, 0 if status is Status.DUPLICATE else None, status))
    assert (search.evaluated, search.idle, search.finished) == (0, 2, None)
    task = search.ask()
    assert task is not None
    search.tell(Outcome(task.id, None, Status.NO_PROPOSAL))
    assert (search.ask(), search.finished) == (None, "idle")


def test_a_late_candidate_wakes_an_idle_search() -> None:
    search = begun(search={"in_flight": 2}, budget={"evaluations": 9, "idle": 1})
    first, second = search.ask(), search.ask()
    assert first is not None
    assert second is not None
    search.tell(Outcome(first.id, None, Status.NO_PROPOSAL))
    assert (search.ask(), search.finished) == (None, None)
    search.tell(scored(second, 2.0))
    assert search.ask() is not None


def test_a_challenger_is_compared_even_when_the_budget_is_spent() -> None:
    search = begun(search={"in_flight": 1}, budget={"evaluations": 1})
    search.tell(scored(search.ask(), 0.5))
    assert search.finished is None
    search.tell(settled(search.ask(), promoted=True))
    assert (search.finished, search.champion) == ("evaluations", 1)


# --- the champion ---------------------------------------------------------------------------------------------


def test_the_initial_kernel_is_champion_until_one_wins_a_comparison() -> None:
    search = begun(search={"in_flight": 1})
    search.tell(scored(search.ask(), 0.5))
    assert search.champion == 0
    task = search.ask()
    assert task == Compare(1, challenger=1, champion=0, number=1)
    search.tell(settled(task, promoted=True))
    assert (search.champion, search.champion_ratio) == (1, 0.5)


def test_a_candidate_that_is_not_faster_challenges_nobody() -> None:
    search = begun(search={"in_flight": 1})
    search.tell(scored(search.ask(), 1.0))
    assert isinstance(search.ask(), Mutate)


def test_the_fastest_challenger_comes_first_and_slower_ones_drop_out_when_it_wins() -> None:
    search = begun(search={"in_flight": 4})
    asked = [search.ask() for _ in range(4)]
    for task, ratio in zip(asked, (0.9, 0.6, 0.7, 0.95), strict=True):
        search.tell(scored(task, ratio))
    first = search.ask()
    assert isinstance(first, Compare)
    assert (first.challenger, first.number) == (2, 1)
    assert isinstance(search.ask(), Mutate), "one comparison at a time"
    search.tell(settled(first, promoted=True))
    assert isinstance(search.ask(), Mutate), "nobody else is faster than 0.6"


def test_a_loser_is_not_compared_again_and_the_next_comparison_counts_on() -> None:
    search = begun(search={"in_flight": 4})
    asked = [search.ask() for _ in range(2)]
    for task, ratio in zip(asked, (0.9, 0.6), strict=True):
        search.tell(scored(task, ratio))
    search.tell(settled(search.ask(), promoted=False))
    second = search.ask()
    assert isinstance(second, Compare)
    assert (second.challenger, second.champion, second.number) == (1, 0, 2)
    search.tell(settled(second, promoted=False))
    assert isinstance(search.ask(), Mutate)


@pytest.mark.parametrize("ratio", [None, math.nan, math.inf, 0.0, -1.0])
def test_a_ratio_that_is_no_ratio_gets_nowhere(ratio: float | None) -> None:
    search = begun(search={"in_flight": 1})
    task = search.ask()
    assert task is not None
    search.tell(Outcome(task.id, 1, Status.OK, ratio))
    assert search.evaluated == 1
    assert {elite.candidate for elite in search.population.islands[0].elites} == {0}
    assert isinstance(search.ask(), Mutate)


# --- what is asked --------------------------------------------------------------------------------------------


def test_operators_and_models_are_drawn_by_weight_and_rules_ask_no_model() -> None:
    search = begun(
        operators={"rewrite": 3.0, "rules": 1.0, "never": 0.0},
        models=MODELS,
        search={"credit": "off"},
        budget={"evaluations": 800},
    )
    asked = [task for task in drive(search, lambda n: 0) if isinstance(task, Mutate)]
    drawn = Counter((task.operator, task.model) for task in asked)
    assert set(drawn) == {("rewrite", 0), ("rewrite", 1), ("rules", -1)}
    shares = [drawn[key] / len(asked) for key in sorted(drawn)]
    assert shares == pytest.approx([3 / 16, 9 / 16, 1 / 4], abs=0.05)


def test_without_a_model_only_offline_operators_are_asked() -> None:
    search = begun(models=(), operators={"rewrite": 3.0, "rules": 1.0})
    assert {task.operator for task in drive(search, lambda n: 0) if isinstance(task, Mutate)} == {"rules"}


@pytest.mark.parametrize("operators", [{"rewrite": 1.0}, {"crossover": 1.0, "repair": "auto"}, {"repair": 1.0}])
def test_a_config_whose_operators_cannot_run_is_refused(operators: dict[str, Any]) -> None:
    models = () if "rewrite" in operators else MODELS
    with pytest.raises(ConfigError, match="at least one with a weight above 0"):
        Search(runs.config(models=models, operators=operators))


def test_children_live_on_every_island_and_have_parents_there() -> None:
    search = begun(search={"islands": 3}, budget={"evaluations": 60})
    asked = [task for task in drive(search, lambda n: 0) if isinstance(task, Mutate)]
    assert {task.island for task in asked} == {0, 1, 2}
    assert all(task.parents[0] not in task.inspirations for task in asked)


# --- misuse ---------------------------------------------------------------------------------------------------


def test_nothing_is_asked_before_the_start() -> None:
    search = Search(runs.config())
    assert (search.ask(), search.finished) == (None, None)


@pytest.mark.parametrize("outcome", [Outcome(-1, 0, Status.COMPILE_ERROR), Outcome(-1, 0, Status.OK, None)])
def test_an_initial_kernel_without_a_score_is_refused(outcome: Outcome) -> None:
    with pytest.raises(ValueError, match="must have a ratio"):
        Search(runs.config()).start(outcome)


def test_starting_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="already begun"):
        begun().start(START)


@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_telling_twice_or_telling_what_was_not_asked_is_refused(order: str) -> None:
    search = begun(search={"order": order})
    first, second = search.ask(), search.ask()
    assert first is not None
    assert second is not None
    search.tell(runs.outcome(second))
    for task in (second.id, 77):
        with pytest.raises(ValueError, match=rf"task {task} is not open"):
            search.tell(Outcome(task, None, Status.NO_PROPOSAL))


def test_what_selection_walks_over_stays_bounded() -> None:
    search = begun(search={"islands": 2}, budget={"evaluations": 10_000})
    rng = np.random.default_rng(0)
    while search.evaluated < 400:
        task = search.ask()
        assert task is not None
        if isinstance(task, Compare):
            search.tell(settled(task, promoted=True))
            continue
        cell = {"staging": str(rng.integers(50)), "unit": str(rng.integers(50))}
        search.tell(Outcome(task.id, task.id + 1, Status.OK, float(rng.lognormal()), cell))
    assert {len(island.elites) for island in search.population.islands} == {64}
