"""The books: what is set aside before a request leaves, what a reply settles, and what a kill leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evo.config import Config
from evo.records import Message, ModelFacts, ModelReply, ModelRequest, Mutate, ToolCall, ToolResult, Turn
from evo.runner.ledger import FIRST_INPUT_TOKENS, FIRST_OUTPUT_TOKENS, Ledger, price_usd
from evo.search import Search
from evo.store import Store
from evo.store.rows import Sent
from tests.support import runs

REQUEST = ModelRequest((Message("user", "x" * 3000),), task=0, step=0)
MINI = ModelFacts("gpt-5-mini", 272_000, 128_000, 0.25e-6, 2e-6)
LOCAL = ModelFacts("qwen")
REPLY = ModelReply("ok", text="yes", input_tokens=900, output_tokens=100, cost_usd=0.5)


def begin(folder: Path, **changes: object) -> Store:
    return Store.create(
        folder,
        config=runs.config(**changes),
        workload=runs.WORKLOAD,
        device=runs.DEVICE,
        initial=runs.candidate(0),
        search_version=Search.version,
        versions={},
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with begin(tmp_path) as made:
        for number in range(4):
            made.add_task(Mutate(number, "rewrite", 0, (0,)))
        yield made


def ledger(store: Store, *facts: ModelFacts, **budget: object) -> Ledger:
    made = Ledger(store, Config.model_validate({"workload": "copy", "budget": budget}))
    made.learn(facts or (MINI,))
    return made


def sent(task: int, usd: float | None = 0.1, step: int = 0) -> Sent:
    return Sent(task, step, 0, usd, 1000)


# --- the store --------------------------------------------------------------------------------------------------


def test_what_left_is_set_aside_until_its_reply_is_there(store: Store) -> None:
    store.add_sent(sent(0))
    store.add_sent(sent(1))
    assert (store.spent().unsure, store.spent().unsure_usd, store.spent().unsure_tokens) == (2, 0.2, 2000)
    store.add_reply(0, 0, REQUEST, REPLY)
    assert store.unsure() == [sent(1)]
    assert (store.spent().cost_usd, store.spent().unsure_usd) == (0.5, 0.1)


def test_a_request_that_was_sent_again_stays_unsure_once(store: Store) -> None:
    store.add_sent(sent(0))
    store.add_sent(sent(0))
    store.add_reply(0, 0, REQUEST, REPLY)
    assert store.unsure() == [sent(0)]


def test_attempts_that_may_have_been_billed_stay_unsure(store: Store) -> None:
    store.add_sent(sent(0))
    store.add_reply(0, 0, REQUEST, ModelReply("error", error="cut", cost_usd=0.0, attempts=3, uncertain=2))
    assert (store.spent().unsure, store.spent().unsure_usd, store.spent().cost_usd) == (2, 0.2, 0.0)


def test_an_open_task_says_how_often_its_next_request_left(store: Store) -> None:
    store.add_sent(sent(0))
    store.add_sent(sent(0))
    store.add_sent(sent(1))
    store.add_reply(1, 0, REQUEST, REPLY)
    first, second, *_ = store.open_tasks()
    assert (first.sent, first.turns) == (2, ())
    assert (second.sent, second.turns) == (0, (Turn(REPLY),))


def test_what_tools_said_comes_back_with_the_reply_that_called_them(store: Store) -> None:
    call = ToolCall("a", "compile", '{"source": ""}')
    results = (ToolResult("a", "compile", "no kernel"),)
    store.add_reply(0, 0, REQUEST, ModelReply("ok", calls=(call,)))
    store.add_reply(0, 1, REQUEST, REPLY)
    store.add_results(0, 0, results)
    assert store.turns(0) == (Turn(ModelReply("ok", calls=(call,)), results), Turn(REPLY))


def test_what_is_known_of_the_models_outlives_the_sitting(tmp_path: Path) -> None:
    with begin(tmp_path) as store:
        assert store.meta().models is None
        ledger(store, MINI, LOCAL)
    with Store.open(tmp_path) as store:
        assert Ledger(store, runs.config()).facts == (MINI, LOCAL)


# --- the budget -------------------------------------------------------------------------------------------------


def test_a_reservation_is_the_prompt_and_the_longest_reply_so_far_at_the_models_price(store: Store) -> None:
    made = ledger(store)
    first = made.reservation(0, REQUEST)
    assert first.tokens == 1001 + FIRST_OUTPUT_TOKENS
    assert first.usd == pytest.approx(1001 * 0.25e-6 + FIRST_OUTPUT_TOKENS * 2e-6)
    made.heard(20_000)
    made.heard(None)
    assert made.reservation(0, REQUEST).tokens == 1001 + 20_000


def test_no_reply_is_longer_than_its_model_can_give(store: Store) -> None:
    made = ledger(store, ModelFacts("small", output_tokens=500))
    assert made.reservation(0, REQUEST) == Sent(0, 0, 0, None, 1001 + 500)


def test_the_budget_is_used_up_by_what_was_billed_and_what_may_have_been(store: Store) -> None:
    made = ledger(store, cost_usd=1.0)
    store.add_sent(sent(0, usd=0.3))
    store.add_reply(0, 0, REQUEST, REPLY)
    assert made.spent_up() is None
    store.add_sent(sent(1, usd=0.5))
    assert made.spent_up() == "cost_usd"


def test_there_is_room_while_one_more_request_of_the_usual_size_fits(store: Store) -> None:
    usual = price_usd(MINI, FIRST_INPUT_TOKENS, FIRST_OUTPUT_TOKENS)
    assert usual is not None
    made = ledger(store, cost_usd=2 * usual)
    assert made.room()
    store.add_sent(sent(0, usd=usual * 1.01))
    assert not made.room()


def test_tokens_are_a_budget_where_no_price_is_known(store: Store) -> None:
    made = ledger(store, LOCAL, cost_usd=None, tokens=FIRST_INPUT_TOKENS + FIRST_OUTPUT_TOKENS + 1500)
    assert made.room()
    store.add_sent(sent(0, usd=None))
    store.add_reply(0, 0, REQUEST, ModelReply("ok", text="x", input_tokens=1500, output_tokens=200))
    assert not made.room()
    assert made.spent_up() is None
    store.add_sent(Sent(1, 0, 0, None, 20_000))
    assert made.spent_up() == "tokens"
