"""A search keeps its models busy: nearly as many calls in a minute as their latencies allow."""

from __future__ import annotations

import pytest

from benchmarks.perf import mutators


def test_the_ideal_begins_a_call_as_soon_as_a_line_is_free() -> None:
    assert mutators.ideal_s([3, 1, 1, 1, 2], 1) == (6, 8)
    assert mutators.ideal_s([3, 1, 1, 1, 2], 2) == (3, 5)
    assert mutators.ideal_s([3, 1, 1, 1, 2], 9) == (0, 3)


@pytest.mark.long
def test_32_calls_in_flight_come_near_the_ideal_rate_in_less_than_a_gigabyte() -> None:
    """The short form of benchmarks/perf/mutators.py, whose figures are in docs/measurements.md."""
    figures = mutators.measure(tasks=160, in_flight=32)
    assert figures.calls >= 160
    assert figures.share > 0.9
    assert figures.full_share > 0.85
    assert 50 < figures.worker_mib < 1024
