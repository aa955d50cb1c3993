"""What reports say of money: billed, perhaps billed, and of unknown price."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence

import pytest

from evo.records import Message, ModelFacts, ModelReply, ModelRequest, Mutate
from evo.report import live, money, show, summary, text
from evo.report.history import History
from evo.runner.ledger import Ledger
from evo.search import Search
from evo.store import Store
from evo.store.rows import Call, Sent, Spent
from tests.evo.test_report import written
from tests.support import histories, runs

REQUEST = ModelRequest((Message("user", "Faster, please."),))
PRICED = ModelFacts("mini", input_usd=0.25e-6, output_usd=2e-6)
UNPRICED = ModelFacts("mini")
CONFIG = runs.config(models=({"name": "mini"},))
SENT = (Sent(3, 0, 0, 0.02, 9000), Sent(4, 1, 0, 0.03, 9500))
SPENT = Spent(9, 9000, 3000, 0.12, 0, 2, 0.05, 18_500)


def history(
    spent: Spent, facts: ModelFacts = PRICED, unsure: tuple[Sent, ...] = (), replies: Sequence[ModelReply] = ()
) -> History:
    """A run with one model, whose first tasks had these replies."""
    found = histories.history(20)
    meta = dataclasses.replace(found.meta, config=CONFIG, models=(facts,))
    asked = [event.task.id for event in found.events if isinstance(event.task, Mutate)]
    calls = tuple(Call(task, 0, REQUEST, reply, 0.0) for task, reply in zip(asked, replies, strict=False))
    return dataclasses.replace(found, meta=meta, calls=calls, unsure=unsure, spent=spent)


def running(found: History) -> History:
    return dataclasses.replace(found, meta=dataclasses.replace(found.meta, stopped=None))


def shown(found: History) -> str:
    """The head of `evo show RUN`."""
    return written(itertools.islice(show.run(found), 2))


def told(found: History) -> tuple[str, ...]:
    return summary.summarise(found).doubts


def test_what_was_billed_is_told_with_its_tokens() -> None:
    found = history(Spent(9, 9000, 3000, 0.12))
    assert money.words(money.cost(found)) == "9 model calls, 12,000 tokens, $0.12"
    assert "Models: 9 model calls, 12,000 tokens, $0.12\n" in written(text.final(found))
    assert "interrupted" not in written(text.final(found))
    assert money.words(money.cost(history(Spent()))) == "no model calls"


def test_interrupted_calls_are_told_with_what_they_may_have_cost() -> None:
    found = history(SPENT, unsure=SENT)
    sentence = "9 model calls, 12,000 tokens, billed $0.12, up to $0.05 in 2 interrupted calls"
    assert sentence in written(text.final(found))
    assert sentence in shown(found)
    assert "2 interrupted calls, perhaps billed: task 3 step 0 (mini), task 4 step 1 (mini)" in told(found)


def test_while_a_run_works_a_call_without_an_answer_is_no_reason_for_doubt() -> None:
    found = running(history(SPENT, unsure=SENT))
    assert "up to $0.05 in 2 unanswered calls" in shown(found)
    assert not [doubt for doubt in told(found) if "perhaps billed" in doubt]


def test_interrupted_calls_of_unknown_price_are_told_in_tokens() -> None:
    unsure = tuple(dataclasses.replace(sent, usd=None) for sent in SENT)
    spent = dataclasses.replace(SPENT, unsure_usd=0.0)
    words = money.words(money.cost(history(spent, UNPRICED, unsure)))
    assert words.endswith("billed $0.12, up to 18,500 tokens in 2 interrupted calls")


def test_many_interrupted_calls_are_counted_in_words_and_listed_in_the_summary() -> None:
    unsure = tuple(Sent(task, 0, 0, 0.01, 1000) for task in range(40))
    found = history(dataclasses.replace(SPENT, unsure=40), unsure=unsure)
    (doubt,) = (doubt for doubt in told(found) if "perhaps billed" in doubt)
    assert doubt.startswith("40 interrupted calls, perhaps billed: task 0 step 0 (mini)")
    assert doubt.endswith("task 15 step 0 (mini), and 24 more, which summary.json lists")
    cost = json.loads(summary.as_json(summary.summarise(found)))["cost"]
    assert [call["task"] for call in cost["interrupted"]] == list(range(40))
    assert cost["interrupted"][0] == {"task": 0, "step": 0, "model": "mini", "usd": 0.01, "tokens": 1000}
    assert (cost["calls"], cost["cost_usd"], cost["unsure"], cost["unsure_usd"]) == (9, 0.12, 40, 0.05)


def test_a_model_of_unknown_price_is_named_with_its_calls_and_tokens() -> None:
    replies = [ModelReply("ok", "x", input_tokens=4000, output_tokens=1000) for _ in range(3)]
    found = history(Spent(3, 12_000, 3000, 0.0, 3), UNPRICED, replies=replies)
    blind = "budget.cost_usd does not see them, budget.tokens would"
    assert f"the price of mini is unknown: 3 calls, 15,000 tokens; {blind}" in told(found)
    listed = json.loads(summary.as_json(summary.summarise(found)))["cost"]["unpriced_models"]
    assert listed == [{"model": "mini", "calls": 3, "tokens": 15_000, "known": False}]


def test_replies_without_tokens_are_no_matter_of_the_price() -> None:
    found = history(Spent(1, 0, 0, 0.0, 1), replies=[ModelReply("ok", "x")])
    assert any(doubt.startswith("some replies of mini do not say their tokens") for doubt in told(found))


def test_a_call_that_failed_with_unknown_cost_stands_among_the_interrupted_alone() -> None:
    failed = ModelReply("error", error="cut", uncertain=1)
    found = history(Spent(1, 0, 0, 0.0, 1, 1, 0.02, 9000), unsure=SENT[:1], replies=[failed])
    assert [doubt for doubt in told(found) if "mini" in doubt] == [
        "1 interrupted call, perhaps billed: task 3 step 0 (mini)"
    ]


@pytest.mark.parametrize(
    ("facts", "budget", "expected"),
    [
        (UNPRICED, {}, ("mini",)),
        (UNPRICED, {"tokens": 100_000}, ()),
        (UNPRICED, {"cost_usd": None}, ()),
        (PRICED, {}, ()),
    ],
)
def test_a_budget_in_dollars_limits_no_model_of_unknown_price(tmp_path, facts, budget, expected) -> None:
    with Store.create(
        tmp_path,
        config=runs.config(),
        workload=runs.WORKLOAD,
        device=runs.DEVICE,
        initial=runs.candidate(0),
        search_version=Search.version,
        versions={},
    ) as store:
        ledger = Ledger(store, runs.config(budget=budget))
        ledger.learn((facts,))
        assert ledger.unlimited() == expected


def test_the_display_says_so_once_and_tells_when_replies_are_waited_for() -> None:
    state = live.Progress(clock=lambda: 0.0)
    line = state.take("unpriced", {"models": ("mini",)})
    assert line is not None
    assert line.startswith("the price of mini is unknown: budget.cost_usd does not limit its calls. Set budget.tokens")
    line = state.take("harvesting", {"calls": 3})
    assert line == "waiting for 3 replies that are on their way, since they are paid for (Ctrl-C again ends at once)"
