"""Runs or resumes one search in a process of its own, so that a test may kill it.

usage: python -m tests.support.run_child FOLDER ORDER EVALUATIONS

Prints `ready` when the search works and `done REASON CHAMPION` at its end.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from evo import workload
from evo.config import Config
from evo.runner.run import resume, run

SUPPORT = Path(__file__).resolve().parent


def config(order: str, evaluations: int) -> Config:
    """A search whose model and evaluator are instant and always say the same."""
    return Config.model_validate(
        {
            "workload": "gemm",
            "device": str(SUPPORT / "instant_device.py"),
            "operators": {"rewrite": 1.0},
            "models": ({"client": str(SUPPORT / "instant_client.py"), "name": "instant"},),
            "search": {"order": order, "in_flight": 6},
            "budget": {"evaluations": evaluations, "cost_usd": None, "minutes": None},
        },
        strict=False,
    )


class Narrator:
    """Says when the search has begun to work."""

    def event(self, kind: str, **facts: Any) -> None:
        if kind in ("initial", "asked"):
            print("ready", flush=True)


def main() -> None:
    """Begin, or go on where a database is."""
    folder, order, evaluations = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if (folder / "evo.db").exists():
        result = resume(folder, Narrator())
    else:
        result = run(config(order, evaluations), workload.load("gemm"), folder, Narrator())
    print("done", result.reason, result.champion, flush=True)


if __name__ == "__main__":
    main()
