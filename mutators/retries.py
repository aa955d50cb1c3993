"""When a failed call to a provider is worth another try, and after how long.

Pure functions of what the provider said; nothing here calls, sleeps or reads a clock.
"""

from __future__ import annotations

import email.utils
import random
from collections.abc import Mapping
from datetime import UTC, datetime

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 60.0
"""Longest wait of our own choosing: provider outages last minutes, and a minute is soon enough to notice their end."""

_PASSING = frozenset({408, 409, 425, 429})
_SPENT = ("insufficient_quota", "billing_hard_limit_reached", "exceeded your current quota")


def is_passing(status: int | None, text: str) -> bool:
    """Whether the same request may succeed later (RFC 9110, section 15; no status: the connection failed).

    An account without money answers 429 like one that is merely too fast, but waiting does not fill it.
    """
    if any(words in text for words in _SPENT):
        return False
    return status is None or status in _PASSING or status >= 500


def asked_wait_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a provider asks to wait, from `retry-after-ms` or `Retry-After` (seconds or a date).

    Args:
        headers: of the answer, keys in lower case.
        now: for dates, with a time zone.
    """
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            wait_s = float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
        if 0 <= wait_s < float("inf"):
            return wait_s
    try:
        then = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    seconds: float = (then.replace(tzinfo=then.tzinfo or UTC) - now).total_seconds()
    return max(0.0, seconds)


def own_wait_s(attempt: int, generator: random.Random) -> float:
    """Return the wait after attempt 1, 2, …: doubling, with the upper half random so that callers spread out.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("equal jitter").
    """
    wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (attempt - 1))
    return wait_s * (0.5 + 0.5 * generator.random())
