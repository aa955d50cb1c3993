"""What an exception of litellm means: what to say, whether it may pass, and whether the provider may charge for it.

litellm gives many failures a status and headers of its own making; what the server really said, if anything, is the
`HTTPStatusError` that they were raised from. Nothing here calls or sleeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mutators import retries
from mutators.environment import redact

MOST_ERROR = 2000
"""Characters of one model's error that are kept."""

_FATAL = frozenset({401, 404})
"""Wrong key, no such model: every further call of this model ends the same way."""
_GATEWAYS_TIME_OUT = frozenset({408, 504, 524})
"""Somebody between here and the model has given up; the model may have gone on, and be charged for."""
_NEVER_SENT = ("ConnectError", "ConnectTimeout", "ClientConnector", "ConnectionRefused", "PoolTimeout")
_LIBRARYS_OWN = frozenset({"AuthenticationError", "BadRequestError", "NotFoundError", "UnsupportedParamsError"})
_UNREADABLE = "the answer is no completion of this protocol"


@dataclass(frozen=True)
class Failure:
    """One failed attempt.

    Attributes:
        error: in words, without secrets.
        passing: whether another attempt may succeed.
        wait_s: that the provider asks for; None where it does not.
        fatal: every further call of this model will fail likewise.
        uncertain: the request was sent and no answer came, so that the provider may charge for it.
    """

    error: str
    passing: bool = False
    wait_s: float | None = None
    fatal: bool = False
    uncertain: bool = False

    @property
    def words(self) -> str:
        """The error, with the wait that the provider asks for."""
        if self.passing and self.wait_s is not None:
            return f"{self.error} (the provider asks to wait {self.wait_s:.0f} s)"
        return self.error


def failure(error: Exception, timeout_s: float) -> Failure:
    """Return what an attempt's exception means.

    Args:
        error: whatever litellm, or a time limit around it, raised.
        timeout_s: the limit of the attempt, for words.
    """
    chain = tuple(_chain(error))
    answered = next((link for link in chain if type(link).__name__.endswith("HTTPStatusError")), None)
    if answered is not None:
        return _refused(error, answered.response)  # type: ignore[attr-defined]
    if any(words in kind.__name__ for link in chain for kind in type(link).__mro__ for words in _NEVER_SENT):
        return Failure(_words(error), passing=True)
    if isinstance(error, TimeoutError) or type(error).__name__ == "Timeout":
        return Failure(
            f"no answer within {timeout_s:g} s; give the model a larger 'timeout_s' or a smaller 'reasoning_effort'",
            passing=True,
            uncertain=True,
        )
    if type(error).__name__ in _LIBRARYS_OWN and not getattr(error, "litellm_response_headers", None):
        return Failure(_words(error), fatal="LLM Provider NOT provided" in str(error))
    said = _words(error)
    return Failure(said if _is_broken(chain) else f"{_UNREADABLE}: {said}", passing=True, uncertain=True)


def _refused(error: Exception, response: Any) -> Failure:
    """What an HTTP error means; of all but a few nothing was charged for."""
    status, text = int(response.status_code), _words(error)
    passing = retries.is_passing(status, text)
    headers = {str(name).lower(): str(value) for name, value in response.headers.items()}
    return Failure(
        text,
        passing,
        wait_s=retries.asked_wait_s(headers, datetime.now(UTC)) if passing else None,
        fatal=status in _FATAL or (status == 429 and not passing),
        uncertain=status in _GATEWAYS_TIME_OUT,
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_broken(chain: tuple[BaseException, ...]) -> bool:
    """Whether the connection ended; otherwise an answer came that could not be read."""
    return any(isinstance(link, OSError) or type(link).__name__.endswith("ReadError") for link in chain)


def _words(error: Exception) -> str:
    """The error in one line, without secrets and without the library's traceback."""
    said = str(error).split("Traceback (most recent call last)")[0]
    code = _code(getattr(error, "body", None))
    suffix = f" ({code})" if code and code not in said else ""
    return " ".join(redact(f"{type(error).__name__}: {said}").split())[:MOST_ERROR] + redact(suffix[:200])


def _code(body: object) -> str:
    if isinstance(body, bytes | str):
        try:
            body = json.loads(body)
        except ValueError:
            return ""
    code = body.get("code") if isinstance(body, Mapping) else None
    return code if isinstance(code, str) else ""
