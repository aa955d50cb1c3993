from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evo.statistics import (
    SequentialComparison,
    alpha_for,
    bootstrap_interval,
    geometric_mean,
    median_interval,
    student_quantile,
)

finite = st.floats(-1e6, 1e6)
log_ratios = st.floats(-2.0, 2.0)


def run(comparison: SequentialComparison, blocks: np.ndarray) -> SequentialComparison:
    """Feed rows of shape (blocks, cases) until the comparison ends."""
    for row in blocks:
        if comparison.finished:
            break
        comparison.add({f"case{i}": float(value) for i, value in enumerate(row)})
    return comparison


# --- medians ------------------------------------------------------------------------------------------------


@given(st.lists(finite, min_size=1, max_size=60), st.floats(0.5, 0.999))
def test_the_interval_of_the_median_contains_the_median_and_is_made_of_samples(samples, confidence):
    median, low, high = median_interval(samples, confidence)
    assert low <= median <= high
    assert low in samples
    assert high in samples


@given(st.lists(finite, min_size=1, max_size=40))
def test_more_confidence_never_narrows_the_interval_of_the_median(samples):
    _, low, high = median_interval(samples, 0.8)
    _, wide_low, wide_high = median_interval(samples, 0.99)
    assert wide_low <= low
    assert wide_high >= high


@pytest.mark.parametrize(("n", "rank"), [(5, 1), (6, 1), (8, 1), (9, 2), (10, 2), (20, 6), (100, 40)])
def test_the_ranks_are_those_of_the_printed_binomial_table(n, rank):
    """95 % ranks of the sign-test interval (1-based), as tabulated by e.g. Conover."""
    _, low, high = median_interval(range(1, n + 1))
    assert (low, high) == (rank, n + 1 - rank)


@pytest.mark.parametrize("draw", ["standard_normal", "standard_exponential", "standard_cauchy"])
def test_the_interval_of_the_median_covers_the_true_median_whatever_the_distribution(draw):
    rng = np.random.default_rng(1)
    truth = {"standard_normal": 0.0, "standard_exponential": math.log(2.0), "standard_cauchy": 0.0}[draw]
    intervals = [median_interval(getattr(rng, draw)(30)) for _ in range(2000)]
    covered = np.mean([low <= truth <= high for _, low, high in intervals])
    assert 0.945 <= covered <= 0.985


@pytest.mark.parametrize("samples", [[], [1.0, math.nan], [math.inf]])
def test_a_median_of_nothing_or_of_nan_is_refused(samples):
    with pytest.raises(ValueError, match="finite samples"):
        median_interval(samples)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_the_geometric_mean_lies_between_the_extremes_and_scales(values, factor):
    mean = geometric_mean(values)
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    assert geometric_mean(v * factor for v in values) == pytest.approx(factor * mean)


@pytest.mark.parametrize("values", [[], [1.0, 0.0], [-1.0], [math.nan]])
def test_a_geometric_mean_of_what_is_not_positive_is_refused(values):
    with pytest.raises(ValueError, match="positive"):
        geometric_mean(values)


# --- intervals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probability", "degrees", "expected"),
    [
        (0.975, 1, 12.706205),
        (0.975, 2, 4.302653),
        (0.975, 9, 2.262157),
        (0.975, 39, 2.022691),
        (0.9995, 9, 4.780913),
        (0.9995, 30, 3.645959),
    ],
)
def test_student_quantiles_are_those_of_the_printed_table(probability, degrees, expected):
    assert student_quantile(probability, degrees) == pytest.approx(expected, rel=1e-6)


def test_student_quantiles_approach_the_normal_ones_far_out():
    assert student_quantile(1 - 1e-9, 4001) == pytest.approx(5.9978, rel=5e-3)


@given(st.lists(st.lists(log_ratios, min_size=4, max_size=4), min_size=1, max_size=4))
@settings(max_examples=50)
def test_the_interval_contains_the_mean_and_widens_with_confidence(table):
    mean, low, high = bootstrap_interval(table, 0.8, np.random.default_rng(0))
    _, wide_low, wide_high = bootstrap_interval(table, 0.999, np.random.default_rng(0))
    assert mean == pytest.approx(np.mean(table))
    assert low - 1e-12 <= mean <= high + 1e-12
    assert wide_low <= low
    assert wide_high >= high


def test_the_interval_of_ten_blocks_covers_at_its_level_even_when_cases_share_their_noise():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(1000):
        shared = rng.standard_normal(10)
        _, low, high = bootstrap_interval(np.vstack([shared, shared, shared]), 0.95, rng)
        hits += low <= 0.0 <= high
    assert hits >= 935


@pytest.mark.parametrize("table", [[], [[1.0]], [1.0, 2.0], [[1.0, math.nan]]])
def test_a_table_without_blocks_or_with_nan_is_refused(table):
    with pytest.raises(ValueError, match="expected"):
        bootstrap_interval(table, 0.95, np.random.default_rng(0))


# --- comparisons --------------------------------------------------------------------------------------------


@given(st.integers(1, 5000), st.floats(0.001, 0.5))
def test_the_levels_of_any_number_of_challengers_sum_to_less_than_the_total(count, total):
    assert sum(alpha_for(k, total) for k in range(1, count + 1)) < total


def test_challengers_are_counted_from_one():
    with pytest.raises(ValueError, match="from 1"):
        alpha_for(0)


@pytest.mark.parametrize("noise", ["standard_normal", "standard_t"])
def test_equal_kernels_are_promoted_at_most_at_alpha_even_without_a_margin(noise):
    rng = np.random.default_rng(3)
    draw = (
        (lambda: rng.standard_normal((40, 1))) if noise == "standard_normal" else (lambda: rng.standard_t(2, (40, 1)))
    )
    promoted = sum(run(SequentialComparison(0.1, margin=0.0, rng=rng), 0.01 * draw()).promoted for _ in range(2000))
    # One tail is 5 %; three standard errors of 2,000 trials are 1.5 %.
    assert promoted / 2000 <= 0.065


def test_a_kernel_that_is_three_percent_faster_is_promoted_nearly_always():
    rng = np.random.default_rng(4)
    for number in (1, 100, 1000):
        blocks = rng.normal(-math.log(1.03), 0.01, (300, 40, 1))
        comparisons = [run(SequentialComparison(alpha_for(number), rng=rng), block) for block in blocks]
        assert np.mean([c.promoted for c in comparisons]) >= 0.95


def test_a_kernel_that_is_faster_by_less_than_the_margin_is_not_promoted():
    rng = np.random.default_rng(5)
    blocks = rng.normal(-math.log(1.003), 0.002, (200, 40, 1))
    promoted = [run(SequentialComparison(0.025, rng=rng), block).verdict().promoted for block in blocks]
    assert np.mean(promoted) <= 0.025


def crowns_a_false_champion(challengers: int, rng: np.random.Generator) -> bool:
    """Whether one of so many equal challengers is promoted; without a margin, which would hide the levels."""
    return any(
        run(SequentialComparison(alpha_for(number), margin=0.0, rng=rng), rng.normal(0, 0.01, (40, 1))).promoted
        for number in range(1, challengers + 1)
    )


@pytest.mark.parametrize(
    ("challengers", "runs"),
    [
        (19, 200),  # the first nineteen challengers spend nineteen twentieths of a run's α
        (1000, 3),
        pytest.param(19, 2000, marks=pytest.mark.long),
        pytest.param(1000, 40, marks=pytest.mark.long),
    ],
)
def test_at_most_one_run_in_twenty_crowns_a_false_champion(challengers, runs):
    rng = np.random.default_rng(6)
    false_runs = sum(crowns_a_false_champion(challengers, rng) for _ in range(runs))
    assert false_runs <= 0.05 * runs


def test_a_promotion_means_that_the_interval_clears_the_margin():
    rng = np.random.default_rng(8)
    for speedup in (1.0, 1.01, 1.02, 1.05, 1.2):
        verdict = run(SequentialComparison(0.05, rng=rng), rng.normal(-math.log(speedup), 0.01, (40, 3))).verdict()
        assert verdict.promoted == (verdict.high < 1 / 1.005)
        assert verdict.low <= verdict.ratio <= verdict.high
        assert verdict.confidence > 0.95


def test_blocks_are_capped_and_a_hopeless_challenger_ends_early():
    slower = run(SequentialComparison(0.05, rng=np.random.default_rng(0)), np.full((40, 1), 0.1))
    assert slower.finished
    assert slower.blocks == 10
    hopeless = run(SequentialComparison(0.05, rng=np.random.default_rng(0)), np.tile([[0.1], [-0.1]], (20, 1)))
    assert hopeless.blocks == 10
    noisy = np.tile([[0.035], [-0.085]], (20, 1))
    undecided = run(SequentialComparison(0.05, rng=np.random.default_rng(0)), noisy)
    assert undecided.finished
    assert undecided.blocks == 40
    assert not undecided.verdict().promoted


def test_the_verdict_is_the_same_when_asked_twice_and_for_equal_seeds():
    blocks = np.random.default_rng(9).normal(-0.02, 0.01, (40, 2))
    first = run(SequentialComparison(0.01, rng=np.random.default_rng(0)), blocks)
    second = run(SequentialComparison(0.01, rng=np.random.default_rng(0)), blocks)
    assert first.verdict() == first.verdict() == second.verdict()


def test_ratios_are_told_case_by_case():
    comparison = SequentialComparison(0.05, rng=np.random.default_rng(0))
    comparison.add({"a": math.log(0.5), "b": math.log(2.0)})
    comparison.add({"b": math.log(2.0), "a": math.log(0.5)})
    assert comparison.case_ratios() == pytest.approx({"a": 0.5, "b": 2.0})
    assert comparison.verdict().ratio == pytest.approx(1.0)


@pytest.mark.parametrize("block", [{}, {"b": 0.0}, {"a": math.nan}, {"a": 0.0, "b": 0.0}])
def test_a_block_with_other_cases_or_without_a_number_is_refused(block):
    comparison = SequentialComparison(0.05, rng=np.random.default_rng(0))
    comparison.add({"a": 0.0})
    with pytest.raises(ValueError, match="expected"):
        comparison.add(block)


def test_a_finished_comparison_takes_no_more_blocks():
    comparison = run(SequentialComparison(0.05, rng=np.random.default_rng(0)), np.full((40, 1), -0.5))
    assert comparison.verdict().promoted
    with pytest.raises(ValueError, match="ended"):
        comparison.add({"case0": 0.0})


@pytest.mark.parametrize(
    "arguments", [{"alpha": 0.0}, {"alpha": 0.05, "margin": -0.1}, {"alpha": 0.05, "min_blocks": 1}]
)
def test_impossible_settings_are_refused(arguments):
    with pytest.raises(ValueError, match="expected 0 < alpha"):
        SequentialComparison(**arguments, rng=np.random.default_rng(0))


def test_a_comparison_costs_less_than_twenty_milliseconds():
    blocks = np.random.default_rng(10).normal(-0.02, 0.01, (40, 4))
    run(SequentialComparison(1e-6, rng=np.random.default_rng(0)), blocks).verdict()
    fastest = math.inf
    for _ in range(5):
        began = time.process_time()
        run(SequentialComparison(1e-6, rng=np.random.default_rng(0)), blocks).verdict()
        fastest = min(fastest, time.process_time() - began)
    assert fastest < 0.02
