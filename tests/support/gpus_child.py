"""Runs one search in a process of its own, on a machine that has as many GPUs as it is told.

usage: python -m tests.support.gpus_child FOLDER GPUS CHANGES

CHANGES is JSON, laid over the config of `run_child`. Prints a line of JSON: why it ended, the champion, the seconds
from the first candidate to the last, what was lost, or the error.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from evo import workload
from evo.config import Config
from evo.errors import EvoError
from evo.runner import gpus
from evo.runner.run import run
from tests.support import run_child

DEVICE = str(Path(__file__).with_name("gpu_device.py"))


class Clerk:
    """Takes times and losses down."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.lost: list[str] = []

    def event(self, kind: str, **facts: Any) -> None:
        if kind in ("proposed", "evaluated"):
            self.times.append(time.monotonic())
        if kind == "evaluator_lost":
            self.lost.append(facts["message"])


def main() -> None:
    """Run and report."""
    folder, count, changes = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    gpus.visible = lambda: count
    plain = run_child.config("arrival", 20).model_dump(mode="json")
    config = Config.model_validate({**plain, "device": DEVICE, **changes}, strict=False)
    clerk = Clerk()
    try:
        result = run(config, workload.load("gemm"), folder, clerk)
    except EvoError as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}", "lost": clerk.lost}))
        return
    seconds = clerk.times[-1] - clerk.times[0]
    said = {"reason": result.reason, "champion": result.champion, "seconds": seconds, "lost": clerk.lost}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
