"""A provider of its own: the server of `model_server` in a process that outlives the run, slow as real models are.

usage: python -m tests.support.slow_provider JOURNAL MEDIAN_S SIGMA SLOW_SHARE SLOW_S

Latencies are lognormal, a share of them SLOW_S; the n-th request's follows from n. The journal gets one line for each
request that arrives and each answer whose last byte has left. Requests that say which they are (`numbered_rewrite`) can
be told apart; each answer is another kernel, marked with its number. `Provider` is the tests' side of it.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.model_server import Handler, Recorded, Server, echo_kernel
from tests.support.protocols import Answer, Usage, usage

ROOT = Path(__file__).resolve().parents[2]
_REQUEST = re.compile(r"\(request (\d+)\.(\d+)\)")
_VARIANT = re.compile(r"return (\d+)u; \}")


def delay_s(number: int, median_s: float, sigma: float, slow_share: float, slow_s: float) -> float:
    """Return how long the answer to the n-th request takes."""
    rng = np.random.default_rng((7, number))
    return slow_s if rng.random() < slow_share else float(median_s * rng.lognormal(0.0, sigma))


# --- the process --------------------------------------------------------------------------------------------------


class Journal:
    """Numbers requests as they arrive and writes down what becomes of them."""

    def __init__(self, path: Path, latencies: tuple[float, float, float, float]) -> None:
        self._file = path.open("a", buffering=1)
        self._latencies = latencies
        self._lock = threading.Lock()
        self._count = 0

    def arrived(self, recorded: Recorded) -> tuple[int, float]:
        """Note a request; return its number, and how long its answer takes."""
        said = _REQUEST.findall(recorded.text)
        with self._lock:
            number, self._count = self._count, self._count + 1
            delay = delay_s(number, *self._latencies)
            self._write("arrived", number, request=said[-1] if said else None, delay_s=delay)
        return number, delay

    def over(self, number: int, spent: Usage, whole: bool) -> None:
        """Note that the last byte has left, or that nobody was there to take it; it is charged for all the same."""
        with self._lock:
            self._write("over", number, input=spent.prompt, output=spent.output, whole=whole)

    def _write(self, kind: str, number: int, **more: Any) -> None:
        self._file.write(json.dumps({"kind": kind, "number": number, "at": time.time(), **more}) + "\n")


class _SlowHandler(Handler):
    journal: Journal

    def _complete(self, recorded: Recorded) -> None:
        number, delay = self.journal.arrived(recorded)
        time.sleep(delay)
        text = _VARIANT.sub(f"return {number}u; }}", echo_kernel(recorded).text or "")
        answer = Answer(text, reasoning_tokens=2000)
        spent = usage(recorded.protocol, recorded.body, answer)
        document = recorded.protocol.completion(recorded.path, recorded.body, answer, spent)
        self.journal.over(number, spent, self._sent(json.dumps(document).encode()))

    def _sent(self, data: bytes) -> bool:
        """Send an answer; false where nobody was there to take it."""
        try:
            self._head(200, len(data))
            self.wfile.write(data)
        except OSError:
            return False
        return True


def main() -> None:
    """Serve until killed."""
    _SlowHandler.journal = Journal(Path(sys.argv[1]), tuple(map(float, sys.argv[2:6])))  # type: ignore[arg-type]
    server = Server(0, echo_kernel)
    server.RequestHandlerClass = _SlowHandler
    print(server.url, flush=True)
    server.serve_forever(poll_interval=0.02)


# --- the tests' side ----------------------------------------------------------------------------------------------


@dataclass
class Exchange:
    """One request as the provider knows it.

    Attributes:
        number: in the order of arrival.
        request: (task, step) that it says it is; None where it does not say.
        arrived_at: Unix time in seconds.
        delay_s: how long its answer takes.
        over_at: when the last byte of its answer left, or found nobody; None before that.
        whole: whether it left.
        usd: what is charged for it.
    """

    number: int
    request: tuple[int, int] | None
    arrived_at: float
    delay_s: float
    over_at: float | None = None
    whole: bool = False
    usd: float = 0.0


@dataclass
class Provider:
    """A running provider, seen through its journal."""

    url: str
    journal: Path
    _read: int = 0
    _exchanges: dict[int, Exchange] = field(default_factory=dict)

    def exchanges(self) -> list[Exchange]:
        """Return every request so far."""
        with self.journal.open() as file:
            file.seek(self._read)
            new = file.read()
        whole = new[: new.rfind("\n") + 1]
        self._read += len(whole.encode())
        for line in map(json.loads, whole.splitlines()):
            self._take(line)
        return list(self._exchanges.values())

    def _take(self, line: dict[str, Any]) -> None:
        number = line["number"]
        if line["kind"] == "arrived":
            request = (int(line["request"][0]), int(line["request"][1])) if line["request"] else None
            self._exchanges[number] = Exchange(number, request, line["at"], line["delay_s"])
        else:
            one = self._exchanges[number]
            one.over_at, one.whole = line["at"], line["whole"]
            one.usd = line["input"] * 0.25e-6 + line["output"] * 2e-6

    def in_flight(self, since: float = 0.0) -> int:
        """Return how many requests that arrived after a moment still wait for their answer."""
        return sum(one.over_at is None and one.arrived_at > since for one in self.exchanges())


@contextlib.contextmanager
def running(
    folder: Path, median_s: float = 3.0, sigma: float = 0.6, slow_share: float = 0.0, slow_s: float = 30.0
) -> Iterator[Provider]:
    """Run a provider in a process of its own until the block ends."""
    journal = folder / "journal.jsonl"
    journal.touch()
    figures = [str(figure) for figure in (median_s, sigma, slow_share, slow_s)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.slow_provider", str(journal), *figures],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield Provider(process.stdout.readline().strip(), journal)
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    main()
