from __future__ import annotations

import math
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from evo import config
from evo.bandit import FLOOR
from evo.memory import CLOSEST, TRIED
from evo.records import Compare, Mutate, Outcome, Status, Task
from evo.repairs import MOST_WAITING, REPAIRABLE
from evo.runner.run import _resolved
from evo.search import Search
from tests.support import runs

START = Outcome(-1, 0, Status.OK, 1.0, {"staging": "direct"})
REPAIRING = {"rewrite": 1.0, "repair": "auto"}


def begun(**changes: Any) -> Search:
    search = Search(runs.config(**changes))
    search.start(START)
    return search


def asked(search: Search) -> Mutate:
    """The next mutation; comparisons on the way are lost."""
    while isinstance(task := search.ask(), Compare):
        search.tell(Outcome(task.id, task.challenger, Status.OK))
    assert isinstance(task, Mutate)
    return task


def ok(task: Task, ratio: float = 2.0, **described: str) -> Outcome:
    return Outcome(task.id, task.id + 1, Status.OK, ratio, described)


def failed(task: Task, status: Status = Status.COMPILE_ERROR, fault: str = "") -> Outcome:
    return Outcome(task.id, task.id + 1, status, fault=fault)


# --- crossover ------------------------------------------------------------------------------------------------


def test_crossover_takes_its_parents_from_two_cells_and_shows_neither_twice() -> None:
    search = begun(operators={"crossover": 1.0, "rewrite": 1.0}, search={"in_flight": 1}, budget={"evaluations": 200})
    cells = {0: "direct"}
    crossed = 0
    while search.evaluated < 200:
        task = asked(search)
        if task.operator == "crossover":
            crossed += 1
            first, second = task.parents
            assert cells[first] != cells[second]
            assert not {first, second} & {*task.inspirations, *task.tried}
        cells[task.id + 1] = ("direct", "shared", "async")[task.id % 3]
        search.tell(ok(task, 0.5 + task.id % 7, staging=cells[task.id + 1]))
    assert 60 < crossed < 140


def test_where_all_kernels_share_a_cell_another_operator_is_drawn() -> None:
    search = begun(operators={"crossover": 9.0, "rewrite": 1.0}, search={"in_flight": 1})
    for _ in range(30):
        task = asked(search)
        assert task.operator == "rewrite"
        search.tell(ok(task, staging="direct"))


def test_the_second_parent_may_come_from_another_island() -> None:
    search = begun(
        operators={"crossover": 1.0, "rewrite": 1.0}, search={"in_flight": 1, "islands": 2}, budget={"evaluations": 99}
    )
    strangers = set()
    crossed: list[Mutate] = []
    for _ in range(40):  # all that is new on island 1 is of another cell, all on island 0 is of the first one's
        task = asked(search)
        if task.island == 1:
            strangers.add(task.id + 1)
        if task.island == 0 and task.operator == "crossover":
            crossed.append(task)
        search.tell(ok(task, staging="shared" if task.island == 1 else "direct"))
    assert crossed
    assert all(task.parents[1] in strangers for task in crossed if task.parents[0] not in strangers)


def test_a_champion_that_left_its_island_still_has_a_cell_of_its_own() -> None:
    search = begun(operators={"crossover": 1.0, "rewrite": 1.0}, search={"in_flight": 1}, budget={"evaluations": 500})
    search.tell(ok(asked(search), 0.9, staging="shared"))
    champion = search.ask()
    assert isinstance(champion, Compare)
    search.tell(Outcome(champion.id, 1, Status.OK, promoted=True))
    for ratio in (0.5, 0.4, 0.3):  # each measured as faster, and each loses its comparison
        search.tell(ok(asked(search), ratio, staging="shared"))
    assert 1 not in {elite.candidate for elite in search.population.islands[0].elites}
    second = set()
    for _ in range(200):
        task = asked(search)
        if task.operator == "crossover" and task.parents[0] == 1:
            second.add(task.parents[1])
        search.tell(failed(task, Status.UNSUPPORTED))
    assert second == {0}


# --- repair ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", sorted(REPAIRABLE))
def test_a_failure_is_repaired_at_once_on_its_island_beside_what_it_was_made_from(status: Status) -> None:
    search = begun(operators=REPAIRING, search={"in_flight": 1, "islands": 3})
    first = asked(search)
    search.tell(failed(first, status))
    repair = asked(search)
    assert (repair.operator, repair.parents, repair.island) == ("repair", (first.id + 1,), first.island)
    assert repair.inspirations == first.parents[:1]
    assert repair.tried == (first.id + 1,), "what it was meant to be"


def test_what_is_unsupported_is_left_to_other_operators() -> None:
    search = begun(operators=REPAIRING, search={"in_flight": 1})
    search.tell(failed(asked(search), Status.UNSUPPORTED))
    assert asked(search).operator == "rewrite"


def test_what_no_model_wrote_is_not_repaired() -> None:
    search = begun(operators={"rules": 1.0, "rewrite": 1.0, "repair": "auto"}, search={"in_flight": 1})
    operators = {}
    for _ in range(40):
        task = asked(search)
        operators[task.id + 1] = task.operator
        if task.operator == "repair":
            assert operators[task.parents[0]] in ("rewrite", "repair")
        search.tell(failed(task))


@pytest.mark.parametrize(
    ("status", "fault", "again"),
    [
        (Status.COMPILE_ERROR, "compile: x is undefined", False),
        (Status.COMPILE_ERROR, "compile: y is undefined", True),
        (Status.WRONG_ANSWER, "validate: y[3]", True),
        (Status.UNSUPPORTED, "compile: a texture", False),
        (Status.OK, "", False),
    ],
)
def test_a_repair_that_failed_in_another_way_is_repaired_once_more(status: Status, fault: str, again: bool) -> None:
    search = begun(operators=REPAIRING, search={"in_flight": 1}, budget={"evaluations": 100})
    for _ in range(6):  # so that repairs are far from their third
        search.tell(ok(asked(search)))
    search.tell(failed(asked(search), Status.COMPILE_ERROR, "compile: x is undefined"))
    first = asked(search)
    search.tell(ok(first) if status is Status.OK else failed(first, status, fault))
    second = asked(search)
    assert (second.operator == "repair") == again
    if again:
        assert second.parents == (first.id + 1,)
        assert second.tried[:2] == (first.id + 1, first.parents[0]), "itself, and what the repair started from"
        search.tell(failed(second, Status.TIMEOUT, "validate: hangs"))
        assert asked(search).operator == "rewrite", "two repairs in a row are enough"


def test_automatic_repairs_take_about_a_third_however_bad_the_model_is() -> None:
    search = begun(operators=REPAIRING, search={"in_flight": 4}, budget={"evaluations": 400})
    waiting: list[Task] = []
    drawn: Counter[str] = Counter()
    for number in range(300):
        while task := search.ask():
            assert isinstance(task, Mutate)
            drawn[task.operator] += 1
            waiting.append(task)
        assert drawn["repair"] <= drawn.total() / 3 + 1
        search.tell(failed(waiting.pop(0), fault=str(number)))
    assert drawn["repair"] >= drawn.total() / 3 - 1


def test_the_newest_failure_comes_first_and_the_oldest_are_forgotten() -> None:
    search = begun(operators={"rewrite": 1.0, "repair": 0.05}, search={"in_flight": 1}, budget={"evaluations": 200})
    last = []
    for _ in range(100):
        task = asked(search)
        if task.operator == "repair":
            assert task.parents[0] == last.pop()
        else:
            last.append(task.id + 1)
            del last[:-MOST_WAITING]
        search.tell(failed(task) if task.operator == "rewrite" else ok(task))


def test_a_weight_draws_repairs_like_the_others_whenever_a_failure_waits() -> None:
    search = begun(operators={"rewrite": 1.0, "repair": 1.0}, search={"in_flight": 1}, budget={"evaluations": 900})
    drawn: Counter[str] = Counter()
    waiting = 0
    for _ in range(600):
        task = asked(search)
        drawn[task.operator] += waiting > 0
        waiting += 1 if task.operator == "rewrite" else -1
        search.tell(failed(task) if task.operator == "rewrite" else ok(task))
    assert drawn["repair"] / drawn.total() == pytest.approx(0.5, abs=0.05)


def test_without_a_model_an_automatic_repair_is_not_used() -> None:
    search = begun(models=(), operators={"rules": 1.0, "repair": "auto"}, search={"in_flight": 1})
    for _ in range(20):
        task = asked(search)
        assert (task.operator, task.model) == ("rules", -1)
        search.tell(failed(task))


def test_the_models_of_automatic_repairs_are_drawn_by_weight() -> None:
    models = ({"name": "big", "weight": 1.0}, {"name": "small", "weight": 3.0})
    search = begun(operators=REPAIRING, models=models, search={"in_flight": 1}, budget={"evaluations": 900})
    drawn: Counter[int] = Counter()
    while drawn.total() < 200:
        task = asked(search)
        drawn[task.model] += task.operator == "repair"
        search.tell(failed(task) if task.operator == "rewrite" else ok(task))
    assert drawn[1] / drawn.total() == pytest.approx(0.75, abs=0.08)


# --- what was tried -------------------------------------------------------------------------------------------


def test_the_parents_own_children_come_first_newest_first() -> None:
    search = begun(operators={"rewrite": 1.0}, search={"in_flight": 1, "islands": 1}, budget={"evaluations": 200})
    children: dict[int, list[int]] = {}
    for _ in range(60):
        task = asked(search)
        kin = [child for child in children.get(task.parents[0], [])[:CLOSEST] if child not in task.inspirations]
        assert task.tried[: len(kin)] == tuple(kin)
        children.setdefault(task.parents[0], []).insert(0, task.id + 1)
        search.tell(ok(task, 1 + 1 / (task.id + 2), staging=str(task.id % 4)))
    assert len(task.tried) == TRIED


def test_other_islands_are_told_of_too() -> None:
    search = begun(operators={"rewrite": 1.0}, search={"in_flight": 1, "islands": 2}, budget={"evaluations": 200})
    islands = {0: -1}
    for _ in range(120):
        task = asked(search)
        islands[task.id + 1] = task.island
        search.tell(ok(task))
    task = asked(search)
    assert {islands[one] for one in task.tried} == {0, 1}


@pytest.mark.parametrize("credit", ["off", "on"])
def test_a_long_run_asks_as_fast_as_a_short_one(credit: str) -> None:
    search = begun(
        operators={"rewrite": 2.0, "edit": 3.0, "crossover": 1.0, "repair": "auto", "rules": 1.0},
        search={"in_flight": 8, "credit": credit},
        budget={"evaluations": 5000},
    )
    rng = np.random.default_rng(0)
    waiting: list[Task] = []
    began, asks = time.process_time(), 0
    while search.finished is None:
        while task := search.ask():
            waiting.append(task)
            asks += 1
        task = waiting.pop(0)
        if isinstance(task, Compare):
            search.tell(Outcome(task.id, task.challenger, Status.OK, promoted=bool(rng.random() < 0.3)))
        elif rng.random() < 0.4:
            search.tell(failed(task, fault=str(task.id)))
        else:
            cell = {"staging": str(rng.integers(4)), "unit": str(rng.integers(3)), "outputs": str(rng.integers(5))}
            search.tell(ok(task, float(rng.lognormal()), **cell))
    per_task_ms = 1000 * (time.process_time() - began) / asks
    assert search.evaluated == 5000
    assert per_task_ms < 3, "some 0.3 ms on a quiet machine"


# --- credit ---------------------------------------------------------------------------------------------------


def paid(task: Mutate, good: str) -> Outcome:
    """One operator halves its parents' latency in a third of all cases; nothing else gains anything."""
    lucky = task.operator == good and np.random.default_rng((7, task.id)).random() < 0.33
    return Outcome(task.id, task.id + 1, Status.OK, 1.0 * 0.5 if lucky else 2.0, cost_usd=0.01)


@pytest.mark.parametrize(
    ("credit", "evaluations", "learns"),
    [("auto", 200, False), ("auto", 400, True), ("on", 150, True), ("off", 400, False)],
)
def test_credit_moves_draws_to_what_gains(credit: str, evaluations: int, learns: bool) -> None:
    search = begun(
        operators={"rewrite": 2.0, "edit": 2.0},
        search={"in_flight": 1, "credit": credit},
        budget={"evaluations": evaluations},
    )
    drawn: Counter[str] = Counter()
    while search.evaluated < evaluations:
        task = asked(search)
        drawn[task.operator] += search.evaluated >= evaluations / 2
        search.tell(paid(task, "edit"))
    share = drawn["edit"] / drawn.total()
    assert (share > 0.7) == learns
    assert share < 1 - FLOOR / 2 + 0.1


@pytest.mark.parametrize(
    ("text", "decided"),
    [
        ("budget: {evaluations: 200}", "off"),
        ("budget: {evaluations: 201}", "on"),
        ("budget: {evaluations: 201}\noperators: {rules: 1}", "off"),
        ("search: {credit: on}", "on"),
    ],
)
def test_a_run_decides_once_whether_it_uses_credit(text: str, decided: str) -> None:
    whole = config.load(f"workload: gemm\n{text}")
    resolved = _resolved(whole, "host")
    assert resolved.search.credit == decided
    assert config.load(config.dump(resolved)) == resolved, "what a run writes down can be run again"


def test_a_repair_gains_what_the_failed_change_would_have_gained() -> None:
    search = begun(operators=REPAIRING, search={"in_flight": 1, "credit": "on"})
    search.tell(failed(asked(search)))
    repair = asked(search)
    search.tell(ok(repair, 0.5))
    assert search._credit is not None
    assert search._credit.gains["repair", 0] == pytest.approx(math.log(2))
