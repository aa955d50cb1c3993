"""Run everything that needs a GPU, one after the other, and leave a report: what passed, how long it took, every log.

    python benchmarks/gpu_report.py [FOLDER] [--only tests redteam timer recovery tuning aa] [--seconds 540]

The report is FOLDER/report.md (`gpu-report` by default), written anew after every step, so that a call which is cut
short leaves what it has. Steps that no longer fit the time are listed as not run. Exit code 1 if any step failed or was
not run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Step:
    """One command, and about how many seconds it takes on an H200."""

    name: str
    command: tuple[str, ...]
    about_s: float


@dataclass(frozen=True)
class Done:
    """How a step ended; `code` is None where it was not run or took too long."""

    step: Step
    code: int | None
    seconds: float


def steps(folder: Path) -> tuple[Step, ...]:
    """Return all steps, the cheapest proof first."""
    python, perf = sys.executable, "benchmarks/perf"
    pytest = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", "--durations=10", "tests")
    return (
        Step("doctor", (python, "-m", "evo.cli", "doctor"), 10),
        Step("timer", (python, f"{perf}/gpu_timer.py", "--json", str(folder / "timer.json")), 30),
        Step(
            "recovery", (python, f"{perf}/recovery.py", "--device", "cuda", "--json", str(folder / "recovery.json")), 60
        ),
        Step("tests", pytest, 240),
        Step("redteam", (python, "-m", "evo.cli", "redteam", "--device", "cuda"), 200),
        Step("tuning", (python, f"{perf}/gpu_tuning.py", "--json", str(folder / "tuning.json")), 120),
        Step("aa", (python, f"{perf}/gpu_aa.py", "--seconds", "240", "--json", str(folder / "aa.json")), 260),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the steps; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("gpu-report"))
    parser.add_argument("--only", nargs="+", help="names of steps")
    parser.add_argument("--seconds", type=float, default=540, help="for everything together")
    arguments = parser.parse_args(argv)
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + arguments.seconds
    done: list[Done] = []
    for step in steps(folder):
        if arguments.only and step.name not in arguments.only:
            continue
        done.append(run(step, folder, deadline - time.monotonic()))
        (folder / "report.md").write_text(report(done), encoding="utf-8")
    print(report(done))
    return 0 if all(one.code == 0 for one in done) else 1


def run(step: Step, folder: Path, left_s: float) -> Done:
    """Run one step, its output in a file of its own."""
    if left_s < step.about_s:
        return Done(step, None, 0.0)
    began = time.monotonic()
    print(f"{step.name}: {' '.join(step.command)}", flush=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    with (folder / f"{step.name}.log").open("w") as log:
        try:
            ended = subprocess.run(
                step.command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=left_s
            )
            return Done(step, ended.returncode, time.monotonic() - began)
        except subprocess.TimeoutExpired:
            return Done(step, None, time.monotonic() - began)


def report(done: Sequence[Done]) -> str:
    """Return the table."""
    lines = ["| step | result | seconds | log |", "| --- | --- | --- | --- |"]
    for one in done:
        result = {None: "took too long" if one.seconds else "not run", 0: "passed"}.get(
            one.code, f"exit code {one.code}"
        )
        lines.append(f"| {one.step.name} | {result} | {one.seconds:.0f} | {one.step.name}.log |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
