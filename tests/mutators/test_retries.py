from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from mutators import retries

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:30 GMT"}, 90.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_what_the_provider_asks_for_is_read(headers: dict[str, str], wait_s: float | None) -> None:
    assert retries.asked_wait_s(headers, NOW) == wait_s


def test_own_waits_double_and_stay_below_a_minute() -> None:
    for attempt in range(1, 21):
        wait_s = retries.own_wait_s(attempt, random.Random(attempt))
        full_s = min(60.0, 2.0 ** (attempt - 1))
        assert full_s / 2 <= wait_s <= full_s


@pytest.mark.parametrize(
    ("status", "text", "passing"),
    [
        (None, "connection refused", True),
        (429, "too many requests", True),
        (429, "insufficient_quota", False),
        (429, "You exceeded your current quota, please check your plan", False),
        (500, "", True),
        (529, "overloaded", True),
        (408, "", True),
        (400, "bad request", False),
        (401, "wrong key", False),
        (404, "no such model", False),
    ],
)
def test_only_what_may_pass_is_tried_again(status: int | None, text: str, passing: bool) -> None:
    assert retries.is_passing(status, text) is passing
