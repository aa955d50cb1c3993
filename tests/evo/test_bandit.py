from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evo.bandit import FLOOR, TASK_USD, TOKEN_USD, Arm, Credit, cost, gain, switched_on

ARMS: tuple[Arm, ...] = (("edit", 0), ("edit", 1), ("launch", 0), ("rules", -1))
told = st.lists(st.tuples(st.sampled_from(ARMS), st.floats(0, 3), st.floats(0, 0.5)), max_size=60)
weighted = st.lists(st.floats(0.01, 10), min_size=len(ARMS), max_size=len(ARMS)).map(
    lambda found: list(zip(ARMS, found, strict=True))
)
EQUAL = [(arm, 1.0) for arm in ARMS]


def credit(outcomes: list[tuple[Arm, float, float]]) -> Credit:
    found = Credit()
    for arm, gained, cost_usd in outcomes:
        found = found.told(arm, gained, cost(cost_usd, 0))
    return found


def share(found: Credit, arm: Arm, weights: list[tuple[Arm, float]] = EQUAL) -> float:
    return dict(found.shares(weights))[arm]


@given(told, weighted)
def test_shares_are_probabilities_and_every_arm_keeps_its_floor(outcomes, weights):
    shares = credit(outcomes).shares(weights)
    total = sum(weight for _, weight in weights)
    assert sum(found for _, found in shares) == pytest.approx(1)
    for (arm, weight), (same, found) in zip(weights, shares, strict=True):
        assert arm == same
        assert found >= FLOOR * weight / total - 1e-12


@given(told, weighted)
def test_the_same_outcomes_give_the_same_shares_bit_for_bit(outcomes, weights):
    stored = json.loads(json.dumps(outcomes))
    again = credit([((name, model), gained, cost_usd) for (name, model), gained, cost_usd in stored])
    assert again.shares(weights) == credit(outcomes).shares(weights)
    assert repr(again) == repr(credit(outcomes))


@given(weighted)
def test_the_weights_decide_before_anything_is_known(weights):
    total = sum(weight for _, weight in weights)
    assert [found for _, found in Credit().shares(weights)] == pytest.approx([weight / total for _, weight in weights])


@given(told.map(lambda found: [(arm, 0.0, cost_usd) for arm, _, cost_usd in found]), weighted)
def test_the_weights_decide_while_nothing_has_gained(outcomes, weights):
    total = sum(weight for _, weight in weights)
    assert [found for _, found in credit(outcomes).shares(weights)] == pytest.approx(
        [weight / total for _, weight in weights]
    )


@given(st.lists(st.sampled_from(ARMS), max_size=80), weighted, st.floats(0.01, 2), st.floats(0, 0.5))
def test_arms_that_gain_alike_keep_the_weights_of_the_config(order, weights, gained, cost_usd):
    total = sum(weight for _, weight in weights)
    shares = credit([(arm, gained, cost_usd) for arm in order]).shares(weights)
    assert [found for _, found in shares] == pytest.approx([weight / total for _, weight in weights])


@given(told, st.sampled_from(ARMS), st.floats(0.01, 3), st.floats(0, 0.5))
def test_a_gain_is_worth_more_than_a_failure_and_a_cheap_one_more_than_a_dear_one(outcomes, arm, gained, cost_usd):
    before = credit([*outcomes, *((other, 0.1, 0.01) for other in ARMS)])
    failed, gainful, dear = (
        before.told(arm, reward, cost(paid, 0))
        for reward, paid in ((0.0, cost_usd), (gained, cost_usd), (gained, cost_usd + 1))
    )
    assert share(gainful, arm) > share(failed, arm)
    assert share(gainful, arm) > share(dear, arm)


def test_twice_the_gain_or_half_the_cost_is_worth_more():
    outcomes = [(ARMS[0], 0.2, 0.01), (ARMS[1], 0.1, 0.01), (ARMS[2], 0.2, 0.03), (ARMS[3], 0.0, 0.0)] * 15
    found = credit(outcomes)
    dear, cheap = share(found, ARMS[2]), share(found, ARMS[0])
    assert cheap > dear > share(found, ARMS[3])
    assert cheap > share(found, ARMS[1])


def test_what_costs_nothing_but_an_evaluation_still_has_to_gain():
    found = credit([(ARMS[3], 0.0, 0.0), (ARMS[0], 0.1, 0.01)] * 20)
    assert share(found, ARMS[3]) < 0.15
    found = credit([(ARMS[3], 0.1, 0.0), (ARMS[0], 0.1, 0.01)] * 20)
    assert share(found, ARMS[3]) > share(found, ARMS[0])


def test_one_lucky_child_does_not_take_over():
    found = credit([(arm, 0.05, 0.01) for arm in ARMS] * 5).told(ARMS[0], 0.3, cost(0.01, 0))
    assert 0.25 < share(found, ARMS[0]) < 0.5


def test_an_arm_that_nobody_has_asked_is_taken_to_be_average():
    found = credit([(ARMS[0], 0.3, 0.01), (ARMS[1], 0.0, 0.01)] * 20)
    assert share(found, ARMS[1]) < share(found, ARMS[2]) == share(found, ARMS[3]) < share(found, ARMS[0])


def test_shares_follow_a_change():
    first = credit([(ARMS[0], 0.3, 0.01), (ARMS[1], 0.0, 0.01)] * 100)
    found, shares = first, [share(first, ARMS[1])]
    for _ in range(4):
        for _ in range(25):
            found = found.told(ARMS[0], 0.0, cost(0.01, 0)).told(ARMS[1], 0.3, cost(0.01, 0))
        shares.append(share(found, ARMS[1]))
    assert all(later > earlier for earlier, later in pairwise(shares))
    assert share(first, ARMS[0]) > 3 * share(first, ARMS[1])
    assert share(found, ARMS[1]) > 3 * share(found, ARMS[0])


def test_only_what_can_be_drawn_shares():
    found = credit([(ARMS[0], 0.3, 0.01), (ARMS[1], 0.0, 0.01)] * 20)
    assert found.shares([(ARMS[1], 2.0)]) == [(ARMS[1], 1.0)]
    some = dict(found.shares([(ARMS[0], 1.0), (ARMS[2], 1.0)]))
    assert sum(some.values()) == pytest.approx(1)


def test_gains_are_never_negative_and_failures_gain_nothing():
    assert gain(1.0, 0.5) == pytest.approx(math.log(2))
    assert gain(0.5, 1.0) == gain(0.5, 0.5) == gain(0.5, None) == 0


def test_tokens_without_a_price_cost_too():
    assert cost(0.0, 0) == TASK_USD
    assert cost(0.02, 0) == pytest.approx(0.02 + TASK_USD)
    assert cost(0.0, 10_000) == pytest.approx(10_000 * TOKEN_USD + TASK_USD)
    local = Credit()
    rng = np.random.default_rng(0)
    for _ in range(60):  # two models of unknown price; one needs five times the tokens for the same
        local = local.told(ARMS[0], 0.1 * rng.random(), cost(0.0, 50_000))
        local = local.told(ARMS[1], 0.1 * rng.random(), cost(0.0, 10_000))
    assert share(local, ARMS[1]) > 2 * share(local, ARMS[0])


def test_credit_is_automatic_above_200_evaluations():
    assert [switched_on("auto", 200), switched_on("auto", 201)] == [False, True]
    assert [switched_on("on", 1), switched_on("off", 9999)] == [True, False]
