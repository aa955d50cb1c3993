"""A run that begins where an earlier one ended: its workload, its config, its best kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evo import inherit
from evo.config import Config
from evo.errors import ConfigError
from evo.records import INHERITED, Candidate, Compare, Evaluation, Inherited, Mutate, Status
from evo.report import history, operators, progress
from evo.runner.replay import replay
from evo.search import Search
from evo.store import Store
from tests.evo.test_replay import BUDGET, config, known
from tests.support import played, runs


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has ended, and has a champion."""
    folder = tmp_path_factory.mktemp("from") / "results" / "run-001"
    assert played.play(folder, config(), 1000) != 0
    return folder


def heirs(folder: Path) -> tuple[Inherited, ...]:
    found = history.load(folder)
    return inherit.kernels(folder.name, found.candidates, found.evaluations, found.champion)


# --- what is taken over -------------------------------------------------------------------------------------------


def _candidates(count: int) -> dict[int, Candidate]:
    return {number: runs.candidate(number, task=number - 1, island=number % 2) for number in range(count)}


def _evaluation(number: int, ratio: float | None, staging: str = "direct") -> Evaluation:
    made = runs.evaluation(number, ratio)
    return Evaluation(number, made.status, source=f"// tuned {number}", ratio=ratio, descriptors={"staging": staging})


def test_the_champion_comes_first_then_the_fastest_of_each_cell_of_each_island() -> None:
    evaluations = {
        0: _evaluation(0, 0.1),
        1: _evaluation(1, 0.50),
        2: _evaluation(2, 0.40),
        3: _evaluation(3, 0.45),
        4: _evaluation(4, 0.41),
        5: _evaluation(5, 0.90, "shared"),
        6: _evaluation(6, None),
    }
    chosen = inherit.kernels("run-007", _candidates(7), evaluations, champion=4)
    assert [one.source for one in chosen] == [f"// tuned {number}" for number in (4, 2, 3, 5, 1)]
    assert chosen[0].note == "kernel 4 of run-007 (rules): a note"


def test_no_more_are_taken_over_than_are_judged_at_once() -> None:
    evaluations = {number: _evaluation(number, 1 / number, str(number)) for number in range(1, 40)}
    chosen = inherit.kernels("run-007", _candidates(40), evaluations, champion=1)
    assert [one.source for one in chosen] == [f"// tuned {number}" for number in (1, *range(39, 32, -1))]


def test_a_run_without_another_right_kernel_gives_none() -> None:
    evaluations = {0: _evaluation(0, 1.0), 1: _evaluation(1, None)}
    assert inherit.kernels("run-007", _candidates(2), evaluations, champion=0) == ()


def _resolved(**changes: Any) -> Config:
    return runs.config(**{"operators": {"rewrite": 1.0}, **changes})


def test_the_config_is_the_old_one_with_what_is_given() -> None:
    old = _resolved(search={"islands": 3, "credit": "off"}, seed=5, budget={"evaluations": 20}, device="host")
    new = inherit.config(old, ["budget.evaluations=7", "search.in_flight=2"])
    assert (new.seed, new.device, new.search.islands, new.budget.evaluations) == (5, "host", 3, 7)
    assert new.operators == {"rewrite": 1.0}


def test_what_followed_from_the_budget_follows_anew() -> None:
    models = ({"name": "a"}, {"name": "b"})
    old = _resolved(search={"islands": 5, "credit": "on"}, models=models, budget={"evaluations": 500})
    assert inherit.config(old, ["budget.evaluations=20"]).search.islands == "auto"
    assert inherit.config(old, ["models=[{name: a}]"]).search.credit == "auto"


def test_after_a_search_without_a_model_one_may_be_asked_and_has_its_limits() -> None:
    old = _resolved(models=(), operators={"rules": 1.0}, tools={"rounds": 0}, budget={"cost_usd": None})
    assert inherit.config(old, []) == old.model_copy(update={"search": inherit.config(old, []).search})
    asked = inherit.config(old, ["models=[{name: gpt-5-mini}]"])
    assert asked.operators["rewrite"]
    assert (asked.budget.cost_usd, asked.tools.rounds) == (2.0, 3)


def test_another_workload_is_refused() -> None:
    with pytest.raises(ConfigError, match="--from takes the workload of the earlier run"):
        inherit.config(_resolved(), ["workload=gemm"])


# --- how the search goes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_inherited_kernels_are_judged_first_and_cost_no_budget(old: Path, tmp_path: Path, order: str) -> None:
    folder, given = tmp_path / "run-002", heirs(old)
    search = {"in_flight": 3, "islands": 2, "order": order}
    played.play(folder, config(search=search), 1000, inherited=given)
    found = history.load(folder)
    inherited = [one for one in found.candidates.values() if one.operator == INHERITED]
    assert [(one.source, one.note) for one in sorted(inherited, key=lambda one: one.task)] == [
        (one.source, one.note) for one in given
    ]
    assert all(one.parents == () for one in inherited)
    assert {one.island for one in inherited} == {0, 1}
    assert found.evaluated == BUDGET["evaluations"]
    assert found.factor(found.champion) >= max(found.factor(one.id) for one in inherited)
    assert {point.position for point in progress.trace(found)[0] if point.operator == INHERITED} == {0}
    assert INHERITED not in {row.operator for row in operators.yields(found).rows}
    with Store.read(folder) as store:
        asked = [task for task in store.tasks() if isinstance(task, Mutate)]
        assert [task.inherited for task in asked] == [*range(len(given)), *[-1] * (len(asked) - len(given))]


@pytest.mark.parametrize("order", ["arrival", "fixed"])
@pytest.mark.parametrize("arrows", [1, 4, 9, 16, 40])
def test_stopped_in_the_middle_gone_on_and_derived_anew(old: Path, tmp_path: Path, order: str, arrows: int) -> None:
    folder, given = tmp_path / "run", heirs(old)
    search = {"in_flight": 2, "islands": 2, "order": order}
    for number, more in enumerate((arrows, arrows, 1000)):
        champion = played.play(folder, config(search=search), more, number, inherited=given)
        again = tmp_path / f"again-{number}"
        again.mkdir()
        assert replay(folder, again).champion == champion
        assert known(again) == known(folder)
    with Store.read(folder) as store:
        assert store.meta().inherited == given
        assert sum(one.operator == INHERITED for one in store.candidates()) == len(given)


def test_a_challenger_is_compared_as_soon_as_it_is_known() -> None:
    search = Search(runs.config(search={"in_flight": 1}), inherited=2)
    search.start(runs.Outcome(-1, 0, Status.OK, 1.0))
    first = search.ask()
    assert first == Mutate(0, INHERITED, -1, (), inherited=0)
    search.tell(runs.Outcome(0, 1, Status.OK, 0.5))
    assert isinstance(search.ask(), Compare)
