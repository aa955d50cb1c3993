"""What the search itself costs: candidates per second with an instant model and evaluator.

Everything else is real: Ray actors and tasks, commits to SQLite, built prompts, parsed replies. One run; the rate is
taken over five windows of 100 candidates each around 1,000 and around 10,000 stored candidates.

usage: python benchmarks/perf/search_overhead.py [--candidates 10000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evo import workload  # noqa: E402
from evo.config import Config  # noqa: E402
from evo.runner.run import run  # noqa: E402

WINDOW, WINDOWS = 100, 5


class Stopwatch:
    """Notes when each evaluation was committed."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def event(self, kind: str, **facts: Any) -> None:
        """Take one event of the run."""
        if kind == "evaluated":
            self.times.append(time.perf_counter())

    def rates(self, around: int) -> list[float]:
        """Return candidates per second of the windows around a number of stored candidates."""
        first = around - WINDOW * WINDOWS // 2
        starts = range(first, first + WINDOW * WINDOWS, WINDOW)
        return [WINDOW / (self.times[start + WINDOW] - self.times[start]) for start in starts]


def config(candidates: int) -> Config:
    support = ROOT / "tests" / "support"
    return Config.model_validate(
        {
            "workload": "gemm",
            "device": str(support / "instant_device.py"),
            "operators": {"rewrite": 1.0},
            "models": ({"client": str(support / "instant_client.py"), "name": "instant"},),
            "search": {"in_flight": 8},
            "budget": {"evaluations": candidates, "cost_usd": None, "minutes": None},
        },
        strict=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        run(config(arguments.candidates + WINDOW * WINDOWS), workload.load("gemm"), Path(folder), watch)
    early, late = watch.rates(1000), watch.rates(arguments.candidates)
    figures = {"around_1000": early, f"around_{arguments.candidates}": late}
    for name, rates in figures.items():
        print(f"{name}: median {statistics.median(rates):.1f} candidates/s of {[round(rate, 1) for rate in rates]}")
    print(f"ratio late/early: {statistics.median(late) / statistics.median(early):.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
