from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.perf import tuner_regret
from evaluators.tuner import POOL, Tuner

TUNE = {"BX": (1, 2, 4, 8, 16, 32), "BY": (1, 2, 4, 8), "TM": (1, 2, 3)}


def threads_valid(case, config):
    return 8 <= config["BX"] * config["BY"] <= 64


def latency(config):
    return 10.0 + abs(config["BX"] - 16) + 3 * abs(config["BY"] - 2) + abs(config["TM"] - 2)


def drain(tuner, measure, batch=1):
    """Ask until nothing is left, telling what `measure` says; returns everything asked."""
    asked = []
    while configs := tuner.ask(batch):
        for config in configs:
            asked.append(config)
            tuner.tell(config, measure(config))
    return asked


tunes = st.dictionaries(
    st.sampled_from(["BX", "BY", "TM", "UNROLL", "STAGES"]),
    st.lists(st.sampled_from([1, 2, 3, 4, 8, 16]), min_size=1, max_size=4, unique=True).map(sorted),
    max_size=4,
)


@given(
    tune=tunes, modulus=st.integers(1, 4), trials=st.integers(0, 30), batch=st.integers(1, 7), seed=st.integers(0, 99)
)
@settings(max_examples=60, deadline=None)
def test_no_configuration_is_asked_twice_or_against_the_rules_and_all_are_asked_that_fit(
    tune, modulus, trials, batch, seed
):
    def valid(case, config):
        return sum(config.values()) % modulus == (0 if case == "a" else 1)

    tuner = Tuner(tune, ["a", "b"], valid, trials, seed)
    asked = drain(tuner, lambda config: {"a": 1.0 + sum(config.values()), "b": None}, batch)
    everything = [dict(zip(tune, values, strict=True)) for values in itertools.product(*tune.values())]
    permitted = [config for config in everything if valid("a", config) or valid("b", config)]
    assert all(config in permitted for config in asked)
    assert len({tuple(config.items()) for config in asked}) == len(asked)
    assert len(asked) == min(trials, len(permitted))


def test_the_best_is_the_least_latency_told_for_that_case():
    tuner = Tuner(TUNE, ["small", "large"], threads_valid, 20, seed=1)
    asked = drain(tuner, lambda config: {"small": latency(config), "large": 100.0 - latency(config)}, batch=4)
    assert tuner.best("small") == (min(asked, key=latency), min(map(latency, asked)))
    assert tuner.best("large") == (max(asked, key=latency), 100.0 - max(map(latency, asked)))


def test_a_configuration_counts_only_for_the_cases_it_is_valid_for():
    def valid(case, config):
        return config["TM"] == (1 if case == "one" else 2)

    tuner = Tuner({"TM": (1, 2, 3)}, ["one", "two"], valid, 9, seed=0)
    asked = drain(tuner, lambda config: {"one": 5.0 - config["TM"], "two": 5.0 - config["TM"]})
    assert sorted(config["TM"] for config in asked) == [1, 2]
    assert tuner.best("one") == ({"TM": 1}, 4.0)
    assert tuner.best("two") == ({"TM": 2}, 3.0)


def test_the_given_configurations_come_first_in_their_order():
    first = [{"BX": 8, "BY": 8, "TM": 3}, {"BX": 32, "BY": 1, "TM": 1}]
    tuner = Tuner(TUNE, ["case"], threads_valid, 10, seed=3, first=first)
    assert tuner.ask(4)[:2] == first


@pytest.mark.parametrize("odd", [{"BX": 8}, {"BX": 5, "BY": 8, "TM": 3}, {"BX": 1, "BY": 1, "TM": 1}])
def test_a_first_configuration_that_is_foreign_or_invalid_is_passed_over(odd):
    tuner = Tuner(TUNE, ["case"], threads_valid, 10, seed=3, first=[odd])
    assert all(config != odd and threads_valid("case", config) for config in tuner.ask(10))


def test_nothing_is_asked_where_nothing_is_valid():
    assert Tuner(TUNE, ["case"], lambda case, config: False, 10, seed=0).ask(5) == []


def test_a_kernel_without_tunables_is_asked_once():
    tuner = Tuner({}, ["case"], lambda case, config: True, 10, seed=0)
    assert drain(tuner, lambda config: {"case": 2.0}) == [{}]
    assert tuner.best("case") == ({}, 2.0)


@pytest.mark.parametrize("failure", [None, math.nan, math.inf, 0.0])
def test_a_space_in_which_all_fails_is_searched_to_the_end(failure):
    tuner = Tuner(TUNE, ["case"], threads_valid, 30, seed=5)
    asked = drain(tuner, lambda config: {"case": failure}, batch=3)
    assert len(asked) == 30
    assert tuner.best("case") is None
    assert tuner.threshold("case") is None


def test_equal_seeds_ask_equally_and_other_seeds_do_not():
    runs = [
        drain(Tuner(TUNE, ["a", "b"], threads_valid, 25, seed), lambda c: {"a": latency(c), "b": None}, batch=2)
        for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_what_is_pending_is_not_asked_again():
    tuner = Tuner(TUNE, ["case"], threads_valid, 40, seed=0)
    asked = [config for _ in range(8) for config in tuner.ask(5)]
    assert len({tuple(config.items()) for config in asked}) == 40


def test_only_what_was_asked_can_be_told_and_only_once():
    tuner = Tuner(TUNE, ["case"], threads_valid, 5, seed=0)
    (config,) = tuner.ask(1)
    tuner.tell(config, {"case": 1.0})
    for stranger in (config, {"BX": 1, "BY": 1, "TM": 1}, {"nonsense": 1}):
        with pytest.raises(ValueError, match="asked and not yet told"):
            tuner.tell(stranger, {"case": 1.0})


def test_the_threshold_is_twice_the_best_but_spares_the_fastest_quarter():
    tuner = Tuner({"U": tuple(range(8))}, ["case"], lambda case, config: True, 8, seed=0)
    for told, config in enumerate(tuner.ask(8)):
        assert (tuner.threshold("case") is None) == (told < 5)
        tuner.tell(config, {"case": 10.0 + config["U"]})
    assert tuner.threshold("case") == 20.0
    spread = Tuner({"U": tuple(range(8))}, ["case"], lambda case, config: True, 8, seed=0)
    for config in spread.ask(8):
        spread.tell(config, {"case": 1.0 + 100.0 * config["U"]})
    assert spread.threshold("case") == pytest.approx(1.0 + 100.0 * 1.75)


def test_a_space_too_large_to_list_is_searched_all_the_same():
    tune = {f"T{i}": tuple(range(10)) for i in range(12)}
    first = {name: 9 for name in tune}
    tuner = Tuner(tune, ["case"], lambda case, config: sum(config.values()) % 2 == 0, 30, seed=0, first=[first])
    asked = drain(tuner, lambda config: {"case": 1.0 + sum(config.values())})
    assert math.prod(map(len, tune.values())) > POOL
    assert asked[0] == first
    assert len(asked) == 30
    assert tuner.best("case")[1] < 40.0


def test_block_tunables_that_are_named_replace_the_guess():
    tune = {"LANES": (1, 2, 4, 8, 16, 32), "ROWS": (1, 2, 4, 8, 16, 32)}
    tuner = Tuner(tune, ["case"], lambda case, c: c["LANES"] * c["ROWS"] == 32, 24, seed=0, block=["LANES", "ROWS"])
    assert len(drain(tuner, lambda config: {"case": float(config["ROWS"])})) == 6


@pytest.mark.long
def test_regret_is_clearly_below_that_of_random_search_and_of_plain_tpe():
    """Five seeds; the whole table is printed by benchmarks/perf/tuner_regret.py."""
    medians = {
        name: np.mean(
            [
                np.median([tuner_regret.regret(search, landscape, seed, 50) for seed in range(5)])
                for landscape in (0, 1, 2)
            ]
        )
        for name, search in tuner_regret.SEARCHES.items()
    }
    assert len(tuner_regret.ALL) == 5184
    assert len(tuner_regret.VALID) == 3348
    assert medians["tuner"] < 0.7 * medians["plain TPE"]
    assert medians["tuner"] < 0.3 * medians["random"]
    assert medians["tuner"] < 0.05
