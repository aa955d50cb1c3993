from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.timing import Measurement, Rules, clock_fault, drift_doubt, measure, rules, settled, summarise
from evo.config import Timing
from evo.records import Status


@dataclass(frozen=True)
class Shot:
    samples_us: tuple[float, ...]
    wall_us: tuple[float, ...] = ()
    wall_s: float = 0.0
    status: Status = Status.OK


class Gun:
    """A kernel whose launches take what a list says, over and over; a job costs 20 ms besides."""

    def __init__(self, latencies_us, fails_in_job: int = 0) -> None:
        self.latencies_us = latencies_us
        self.fails_in_job = fails_in_job
        self.jobs: list[tuple[int, int]] = []

    def __call__(self, warmup: int, samples: int) -> Shot:
        self.jobs.append((warmup, samples))
        taken = tuple(self.latencies_us[i % len(self.latencies_us)] for i in range(samples))
        wall_s = 0.02 + (warmup + samples) * float(np.mean(self.latencies_us)) / 1e6
        status = Status.CRASH if len(self.jobs) == self.fails_in_job else Status.OK
        return Shot(taken, tuple(us + 10 for us in taken), wall_s, status)


NOISY_US = [100.0, 140.0, 90.0, 200.0, 95.0]


def test_a_noisy_kernel_gets_all_its_samples():
    gun = Gun(NOISY_US)
    taken = measure(gun, rules(Timing(launches=100), budget_s=10))
    assert len(taken.samples_us) == 100
    assert taken.failed is None
    assert taken.overhead_us == pytest.approx(10)


def test_a_steady_kernel_needs_few():
    taken = measure(Gun([100.0]), rules(Timing(launches=100), budget_s=10))
    assert 10 <= len(taken.samples_us) < 30


def test_a_slow_kernel_gets_the_least_even_beyond_its_budget():
    taken = measure(Gun([3e5]), rules(Timing(launches=100), budget_s=0.1))
    assert len(taken.samples_us) == 5


def test_the_budget_bounds_a_kernel_of_middling_speed():
    taken = measure(Gun([v * 100 for v in NOISY_US]), rules(Timing(launches=1000), budget_s=0.5))
    assert 5 < len(taken.samples_us) < 100
    assert taken.wall_s < 0.8


def test_warming_up_is_bounded_by_count_and_by_time():
    gun = Gun(NOISY_US)
    measure(gun, rules(Timing(warmup=7, launches=50), budget_s=5))
    assert gun.jobs[0][0] == 1
    assert {warmup for warmup, _ in gun.jobs[1:]} == {7}
    slow = Rules(warmup=10, warm_s=0.05, launches=10, least=5, budget_s=1)
    assert slow.warmups(4e4) == 2
    assert Rules(warmup=0, warm_s=0.05, launches=10, least=5, budget_s=1).warmups(4e4) == 0


def test_a_failing_job_ends_the_measurement():
    taken = measure(Gun(NOISY_US, fails_in_job=2), rules(Timing(launches=100), budget_s=10))
    assert taken.failed is not None
    assert taken.failed.status is Status.CRASH
    assert len(taken.samples_us) == 5


def test_a_hopeless_kernel_is_abandoned_after_one_round():
    gun = Gun(NOISY_US)
    measure(gun, Rules(warmup=1, warm_s=0.05, launches=100, least=3, budget_s=10, abandon_us=50.0))
    assert len(gun.jobs) == 1


@given(
    st.lists(st.floats(1, 1e6), min_size=1, max_size=9),
    st.integers(5, 300),
    st.integers(1, 5),
    st.floats(0.001, 2),
)
def test_measuring_ends_between_least_and_most(latencies_us, launches, least, budget_s):
    gun = Gun(latencies_us)
    taken = measure(gun, Rules(10, 0.05, launches, least, budget_s))
    assert least <= len(taken.samples_us) <= launches
    assert all(samples > 0 for _, samples in gun.jobs)


def test_a_summary_holds_median_interval_and_noise():
    latency = summarise([10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0])
    assert latency.median_us == 13.0
    assert latency.low_us <= 13.0 <= latency.high_us
    assert latency.noise == pytest.approx(3 / 13)
    assert latency.samples == 7
    assert "noisy" in latency.doubts[0]
    assert summarise([10.0] * 5, ("drift",)).doubts == ("drift",)


def test_settled_is_a_small_standard_error_of_the_median():
    assert settled([100.0] * 10)
    assert settled([99.9, 100.1] * 20)
    assert not settled([90.0, 110.0] * 5)


def test_an_anchor_that_moves_is_a_doubt():
    assert drift_doubt([100.0, 101.0], [102.0]) == ()
    assert "100 µs before and 120 µs after" in drift_doubt([100.0], [120.0])[0]
    assert drift_doubt([], [1.0]) == ()


def fault(samples_us, wall_us=(), wall_s=1.0, overhead_us=None) -> str:
    shot = Shot(tuple(samples_us), tuple(wall_us), wall_s)
    return clock_fault(Measurement(shot.samples_us, shot.wall_us, wall_s, shot), overhead_us)


def test_an_honest_clock_is_believed():
    assert fault([1000.0] * 9, [1100.0] * 9, overhead_us=90.0) == ""
    assert fault([1000.0] * 9) == ""


def test_scheduling_noise_is_no_tampering():
    walls = [1100.0] * 6 + [9000.0] * 3
    assert fault([1000.0] * 9, walls, overhead_us=100.0) == ""


@pytest.mark.parametrize("samples", [[-1.0], [math.nan], [math.inf]])
def test_a_latency_that_is_none_is_tampering(samples):
    assert "negative or not a number" in fault(samples)


def test_claiming_more_time_than_passed_is_tampering():
    assert "clock tampered" in fault([2e6], wall_s=1.0)


def test_claiming_much_less_than_the_parent_saw_is_tampering():
    assert "were reported where the parent's clock saw" in fault([1.0] * 9, [2000.0] * 9, overhead_us=100.0)
