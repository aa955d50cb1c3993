"""Read the kernels of `benchmarks/redteam`, and judge one on the host device from its header to its verdict."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from evaluators.device import Screened, Setup
from evaluators.evaluator import Evaluator
from evaluators.host import HostDevice
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.records import Evaluation, Status, Workload

FOLDER = Path(__file__).parents[2] / "benchmarks" / "redteam"
UNSCREENED = Screened(Status.OK, state="skipped", note="the test goes without")
_KEY = re.compile(r"// ([A-Z]\w*): (.*)")
_KEYS = {"Trick", "Honest", "Workload", "Status", "Says", "Hidden", "Gains", "Trials", "Config", "Long"}


@dataclass(frozen=True)
class Sample:
    """One kernel, and what its first lines say must become of it; `benchmarks/redteam/README.md` explains the keys."""

    name: str
    source: str
    workload: str
    statuses: tuple[Status, ...]
    says: str
    hidden: bool
    twin: str
    trials: int
    config: dict[str, int]
    long: bool


def load(path: Path) -> Sample:
    """Read one kernel."""
    source = path.read_text()
    keys: dict[str, str] = {}
    for line in source.splitlines():
        if not line.startswith("//"):
            break
        if found := _KEY.fullmatch(line):
            keys[found[1]] = found[2]
    assert keys.keys() <= _KEYS, f"{path}: unknown keys {sorted(keys.keys() - _KEYS)}"
    assert ("Trick" in keys) != ("Honest" in keys), f"{path}: expected one of `// Trick:` and `// Honest:`"
    chosen = (pair.split("=") for pair in keys.get("Config", "").split())
    return Sample(
        path.stem,
        source,
        keys["Workload"],
        tuple(Status(word) for word in keys.get("Status", "ok").split()),
        keys.get("Says", ""),
        "Hidden" in keys,
        keys.get("Gains", "").removeprefix("nothing over "),
        int(keys.get("Trials", "0")),
        {name: int(value) for name, value in chosen},
        "Long" in keys,
    )


def cheats() -> list[Sample]:
    """Return the kernels that must not pass, or must gain nothing."""
    return [load(path) for path in sorted(FOLDER.glob("*.cu"))]


def honest() -> list[Sample]:
    """Return the kernels that must pass."""
    return [load(path) for path in sorted((FOLDER / "honest").glob("*.cu"))]


@functools.cache
def workload(name: str) -> Workload:
    """Return a shipped workload, or one of the red team's own."""
    own = FOLDER / "workloads" / name
    return workloads.load(str(own) if own.is_dir() else name)


class Court:
    """Evaluators with short timings, one for each workload and number of trials, made when they are needed."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, int], Evaluator] = {}

    def judge(self, sample: Sample, screened: Screened | None = None) -> Evaluation:
        """Return the whole verdict on a kernel."""
        return self._evaluator(sample.workload, sample.trials).evaluate(1, sample.source, screened)

    def close(self) -> None:
        """Close all evaluators."""
        for made in self._made.values():
            made.close()

    def _evaluator(self, name: str, trials: int) -> Evaluator:
        if (name, trials) not in self._made:
            found = workload(name)
            timing = Timing(warmup=1, launches=10)
            setup = Setup(found, timing, Tuning(trials=trials), seed=0, anchor=found.initial)
            self._made[name, trials] = Evaluator(HostDevice(), setup)
        return self._made[name, trials]
