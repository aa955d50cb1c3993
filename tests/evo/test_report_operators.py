from __future__ import annotations

import dataclasses
import io
import json
import math

import pytest
from rich.console import Console

from evo.records import Compare, Mutate, Outcome, Status, Task
from evo.report import operators, show, summary, text
from evo.report.history import History
from evo.search import Search
from evo.store.rows import Event
from tests.support import histories, runs

START = Outcome(-1, 0, Status.OK, 1.0)
MODELS = ({"name": "big"}, {"name": "small"})


def history(*told: tuple[Task, Outcome]) -> History:
    events = [Event(1, "start", None, START, 0.0)]
    events += [Event(number, "tell", task, outcome, 0.0) for number, (task, outcome) in enumerate(told, start=2)]
    found = histories.history(1)
    meta = dataclasses.replace(found.meta, config=runs.config(models=MODELS))
    return dataclasses.replace(found, events=tuple(events), meta=meta)


def ended(
    number: int, operator: str, parent: int, status: Status = Status.OK, ratio: float | None = None, **paid: float
):
    """Task k of an operator that asks the first model; its candidate is k + 1."""
    candidate = None if status is Status.NO_PROPOSAL else number + 1
    outcome = Outcome(number, candidate, status, ratio, **paid)  # type: ignore[arg-type]
    return Mutate(number, operator, 0, (parent,)), outcome


def written(found: operators.Yields) -> str:
    stream = io.StringIO()
    terminal = Console(file=stream, width=160, highlight=False)
    for part in operators.parts(found):
        terminal.print(part)
    return stream.getvalue()


RUN = (
    ended(0, "rewrite", 0, ratio=0.5, cost_usd=0.02),
    ended(1, "rewrite", 1, Status.COMPILE_ERROR, cost_usd=0.03),
    ended(2, "repair", 2, ratio=0.4, cost_usd=0.01),
    ended(3, "rewrite", 0, ratio=0.9, cost_usd=0.02),
    ended(4, "rewrite", 1, ratio=0.6, cost_usd=0.02),
    ended(5, "edit", 1, Status.NO_PROPOSAL, cost_usd=0.01),
    ended(6, "edit", 1, Status.DUPLICATE),
    ended(7, "repair", 2, Status.UNSAFE, cost_usd=0.01),
)


def test_each_operator_is_charged_for_its_tasks_and_credited_for_what_became_faster():
    rewrite, edit, repair = operators.yields(history(*RUN)).rows
    assert (rewrite.operator, rewrite.model) == ("rewrite", "big")
    assert (rewrite.tasks, rewrite.candidates, rewrite.right, rewrite.improvements) == (4, 4, 3, 2)
    assert rewrite.gained == pytest.approx(2 / 0.9)
    assert rewrite.cost_usd == pytest.approx(0.09)
    assert (edit.tasks, edit.candidates, edit.right, edit.improvements) == (2, 0, 0, 0)
    assert (repair.tasks, repair.candidates, repair.right, repair.improvements) == (2, 2, 1, 1)
    assert repair.gained == pytest.approx(0.5 / 0.4), "over what the failed kernel was made from"


def test_the_share_of_the_budget_that_repairs_took_is_said():
    found = operators.yields(history(*RUN))
    assert (found.repairs.tasks, found.repairs.candidates, found.candidates) == (2, 2, 6)
    assert operators.repairs_in_words(found) == (
        "Repairs took 2 of 6 evaluations (33%) and $0.02 of $0.12: 1 came out right, 1 of them faster than what the "
        "failed kernel was made from."
    )
    assert "Repairs took 2 of 6" in written(found)


def test_without_repairs_nothing_is_said_of_them():
    words = written(operators.yields(history(RUN[0], RUN[5])))
    assert "rewrite" in words
    assert "epairs" not in words


def test_one_operator_with_one_model_needs_no_table():
    assert written(operators.yields(history(*RUN[:2]))) == ""


def test_the_end_of_a_run_and_its_page_show_the_table_and_the_summary_has_it(monkeypatch):
    monkeypatch.setattr(show, "islands", lambda found: [])  # these events were made up, not asked by a search
    found = histories.history(20)
    repair = Mutate(99, "repair", 0, (1,)), Outcome(99, 100, Status.OK, 0.1, cost_usd=0.25)
    found = dataclasses.replace(found, events=(*found.events, Event(99, "tell", *repair, 0.0)))
    for parts in (text.final(found), show.run(found)):
        stream = io.StringIO()
        terminal = Console(file=stream, width=160, highlight=False)
        for part in parts:
            terminal.print(part)
        assert ["repair", "gpt-5-mini", "1", "1", "1", "1", "$0.25"] in [
            line.split() for line in stream.getvalue().splitlines()
        ]
    rows = json.loads(summary.as_json(summary.summarise(found)))["operators"]["rows"]
    assert {row["operator"] for row in rows} == {"rewrite", "rules", "repair"}


def test_a_table_has_a_row_for_each_operator_with_each_model():
    other = Mutate(8, "rewrite", 1, (0,)), Outcome(8, 9, Status.OK, 2.0, unpriced_tokens=12_000)
    rules = Mutate(9, "rules", -1, (0,)), Outcome(9, 10, Status.OK, 0.8)
    words = written(operators.yields(history(*RUN, other, rules)))
    assert ["rewrite", "big", "4", "4", "3", "2", "$0.09"] in [line.split() for line in words.splitlines()]
    assert ["rewrite", "small", "1", "1", "1", "0", "12,000", "tokens"] in [line.split() for line in words.splitlines()]
    assert ["rules", "–", "1", "1", "1", "1", "–"] in [line.split() for line in words.splitlines()]


def test_comparisons_and_open_tasks_are_nobodys():
    compare = Compare(1, 1, 0, 1), Outcome(1, 1, Status.OK, promoted=True)
    found = history(RUN[0], compare)
    found = dataclasses.replace(found, events=(*found.events, Event(9, "ask", Mutate(2, "edit", 0, (0,)), None, 0.0)))
    assert [row.tasks for row in operators.yields(found).rows] == [1]
    assert written(operators.yields(history())) == ""


def test_the_table_counts_what_the_search_counted_and_survives_json():
    config = runs.config(
        operators={"rewrite": 2.0, "crossover": 1.0, "repair": "auto", "rules": 1.0},
        models=MODELS,
        search={"credit": "on", "in_flight": 3},
    )
    search = Search(config)
    search.start(START)
    told: list[tuple[Task, Outcome]] = []
    while search.finished is None:
        waiting: list[Task] = []
        while task := search.ask():
            waiting.append(task)
        for task in waiting:
            told.append((task, runs.outcome(task)))
            search.tell(told[-1][1])
    found = operators.yields(history(*told))
    assert found.candidates == search.evaluated == 60
    assert search._credit is not None
    gainful = {arm for arm, gain in search._credit.gains.items() if gain > 0}
    assert {row.operator for row in found.rows if row.improvements} == {operator for operator, _ in gainful}
    assert found.repairs.tasks == sum(row.tasks for row in found.rows if row.operator == "repair") > 0
    data = json.loads(json.dumps(dataclasses.asdict(found)))
    assert all(math.isfinite(row["gained"]) for row in data["rows"])
