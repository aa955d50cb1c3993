"""Read the kernels of `benchmarks/redteam`, and judge one on the host device from its header to its verdict."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from evaluators.device import Setup
from evaluators.evaluator import Evaluator
from evaluators.host import HostDevice
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.records import Evaluation, Status, Workload

FOLDER = Path(__file__).parents[2] / "benchmarks" / "redteam"
_LINE = re.compile(r"// ([A-Z]\w*): (.*)")


@dataclass(frozen=True)
class Sample:
    """One kernel, and what its first lines say must become of it.

    Attributes:
        name: of the file.
        trick: what it tries; of an honest kernel, what is unusual.
        workload: name.
        statuses: any of these is right.
        says: words that the message must hold.
        hidden: whether a hidden case must be the one that fails.
        gains: whether it may be faster than its honest twin; False: it must not be.
        trials: of tuning.
    """

    name: str
    source: str
    trick: str
    workload: str
    statuses: tuple[Status, ...]
    says: str = ""
    hidden: bool = False
    gains: bool = True
    trials: int = 0


def load(path: Path) -> Sample:
    """Read one kernel; its keys are comment lines `// Key: text` at the top."""
    source = path.read_text()
    keys: dict[str, str] = {}
    for line in source.splitlines():
        found = _LINE.fullmatch(line)
        if not line.startswith("//"):
            break
        if found:
            keys[found[1]] = found[2]
    unknown = keys.keys() - {"Trick", "Honest", "Workload", "Status", "Says", "Hidden", "Gains", "Trials", "Config"}
    assert not unknown, f"{path}: unknown keys {sorted(unknown)}"
    return Sample(
        path.stem,
        source,
        keys.get("Trick") or keys["Honest"],
        keys["Workload"],
        tuple(Status(word) for word in keys.get("Status", "ok").split()),
        keys.get("Says", ""),
        keys.get("Hidden") == "yes",
        keys.get("Gains") != "nothing",
        int(keys.get("Trials", "0")),
    )


def cheats() -> list[Sample]:
    """Return the kernels that must not pass, or must gain nothing."""
    return [load(path) for path in sorted(FOLDER.glob("*.cu"))]


def honest() -> list[Sample]:
    """Return the kernels that must pass."""
    return [load(path) for path in sorted((FOLDER / "honest").glob("*.cu"))]


@functools.cache
def workload(name: str) -> Workload:
    """Return a shipped workload, or one of this folder's own."""
    own = FOLDER / "workloads" / name
    return workloads.load(str(own) if own.is_dir() else name)


def evaluator(name: str, trials: int = 0) -> Evaluator:
    """Return an evaluator with short timings."""
    found = workload(name)
    timing = Timing(warmup=1, launches=10)
    return Evaluator(HostDevice(), Setup(found, timing, Tuning(trials=trials), seed=0, anchor=found.initial))


def judge(made: Evaluator, sample: Sample) -> Evaluation:
    """Return the whole verdict on a kernel."""
    return made.evaluate(1, sample.source)
