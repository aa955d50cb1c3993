"""How near a search comes to the rate that its models' latencies allow: 32 calls in flight, latencies as real ones are.

Everything is real but the model and the evaluator: litellm, Ray, prompts, commits to SQLite. The provider is a server
in a process of its own; its latencies are lognormal around 5 s (sigma 0.6), 2 % of them 30 s. The evaluator answers at
once. The ideal are the same latencies, in the same order, on as many lines that are never idle. Memory is that of the
mutator worker, which holds all calls (PSS: pages that it shares count in part).

usage: python benchmarks/perf/mutators.py [--tasks 600] [--in-flight 32] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evo import workload  # noqa: E402
from evo.config import Config  # noqa: E402
from evo.runner.run import run  # noqa: E402
from tests.support import slow_provider  # noqa: E402

MEDIAN_S, SIGMA, SLOW_SHARE, SLOW_S = 5.0, 0.6, 0.02, 30.0


@dataclass(frozen=True)
class Figures:
    """What was measured.

    Attributes:
        calls: answered.
        seconds: from the first request's arrival to the last verdict.
        rate: calls per second.
        ideal_seconds: of the same latencies on lines that are never idle.
        ideal_rate: calls per second.
        share: rate / ideal rate.
        full_share: the same up to the moment when the last call begins: while there is work for every line.
        worker_mib: largest PSS of the mutator worker.
        worker_rss_mib: largest RSS.
        cores: that the run could use.
        load: average of the minute before it began, which tells whether the machine was busy otherwise.
    """

    calls: int
    seconds: float
    rate: float
    ideal_seconds: float
    ideal_rate: float
    share: float
    full_share: float
    worker_mib: float
    worker_rss_mib: float
    cores: int
    load: float


class Stopwatch:
    """Notes when the last task was told."""

    last = 0.0

    def event(self, kind: str, **facts: Any) -> None:
        """Take one event of the run."""
        if kind in ("evaluated", "no_proposal"):
            self.last = time.time()


class Scales:
    """The largest memory of the mutator worker, looked at each second."""

    def __init__(self) -> None:
        self.pss = self.rss = 0
        self._done = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Look while the block runs."""
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join()

    def _watch(self) -> None:
        while not self._done.wait(1.0):
            with contextlib.suppress(psutil.Error):
                memory = [process.memory_full_info() for process in _workers()]
                self.pss = max(self.pss, sum(found.pss for found in memory))
                self.rss = max(self.rss, sum(found.rss for found in memory))


def _workers() -> list[psutil.Process]:
    family = psutil.Process().children(recursive=True)
    return [process for process in family if "MutatorWorker" in " ".join(process.cmdline())]


def ideal_s(delays: Sequence[float], lines: int) -> tuple[float, float]:
    """Return when the last of these calls begins, and when all have ended, if each begins as soon as a line is free."""
    free, begun = [0.0] * lines, 0.0
    for delay in delays:
        begun = heapq.heappop(free)
        heapq.heappush(free, begun + delay)
    return begun, max(free)


def config(url: str, tasks: int, in_flight: int) -> Config:
    """A search of so many tasks at this provider, with a verdict that comes at once."""
    return Config.model_validate(
        {
            "workload": "gemm",
            "device": str(ROOT / "tests" / "support" / "instant_device.py"),
            "operators": {"rewrite": 1.0},
            "models": ({"api_base": url, "reasoning_effort": None, "tools": False},),
            "search": {"in_flight": in_flight},
            "budget": {"evaluations": tasks, "cost_usd": None, "minutes": None},
        },
        strict=False,
    )


def measure(tasks: int, in_flight: int) -> Figures:
    """Run one search and compare its rate with the ideal one."""
    load, watch, scales = os.getloadavg()[0], Stopwatch(), Scales()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with slow_provider.running(folder, MEDIAN_S, SIGMA, SLOW_SHARE, SLOW_S) as provider, scales.watching():
            run(config(provider.url, tasks, in_flight), workload.load("gemm"), folder, watch)
            exchanges = provider.exchanges()
    first, last = exchanges[0].arrived_at, exchanges[-1].arrived_at
    seconds, count = watch.last - first, len(exchanges)
    begun, best = ideal_s([one.delay_s for one in exchanges], in_flight)
    return Figures(
        calls=count,
        seconds=seconds,
        rate=count / seconds,
        ideal_seconds=best,
        ideal_rate=count / best,
        share=best / seconds,
        full_share=begun / (last - first),
        worker_mib=scales.pss / 2**20,
        worker_rss_mib=scales.rss / 2**20,
        cores=len(os.sched_getaffinity(0)),
        load=load,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=600)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.tasks, arguments.in_flight)
    for name, value in asdict(figures).items():
        print(f"{name}: {value:.4g}")
    if arguments.json:
        arguments.json.write_text(json.dumps(asdict(figures), indent=1))


if __name__ == "__main__":
    main()
