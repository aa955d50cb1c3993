"""A thousand candidates in one run, a fifth of them broken in ten ways: does all of it hold?

The whole runner (Ray, store, pre-screen, evaluator actor, comparisons) with an offline operator that proposes right
kernels of many speeds and, every fifth time, a broken one that says in a comment what must become of it. Told are: the
statuses against those comments; memory, processes, file descriptors and the GPU's memory over time (flat, from the
second quarter to the last); the share of time of each stage; and how long the GPU waited for want of a binary, which is
the evaluator's `compile` stage and the time in which no screened candidate was there. Wanted: all statuses right, all
flat, at most 20 % waiting.

`--folder` names the run; where it holds one that was stopped by `--seconds`, the run goes on.

usage: PYTHONPATH=. python3 benchmarks/perf/gpu_thousand.py --folder /tmp/thousand [--seconds 540] [--json FILE]
           [--candidates 1000] [--device cuda|host]
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from gpu_common import elapsed_s, gpu_facts, save, say, table
from gpu_thousand_operator import FAULTS, source

from evo.config import Budget, Config, Search, Timing, Tuning
from evo.records import Case, Comparison, Direction, Evaluation, Parameter, Role, Tolerance, Workload
from evo.runner import run as runs
from evo.runner.crew import Crew, Seat
from evo.store import Store

OPERATOR = str(Path(__file__).with_name("gpu_thousand_operator.py"))
EXPECT = re.compile(r"// expect: (\w+) \(([^)]*)\)")
ON_HOST = {"launch_error": "crash"}
"""A trap ends the host device's own process."""
GROWTH = 0.05
"""Flat is what grows by less than this share from the second quarter of the run to the last."""
SAMPLE_S = 2.0
WAITING = 0.20
REFERENCE = """
def reference(inputs, dims):
    return {"y": 2.0 * inputs["x"].astype("float64")}
"""


def workload() -> Workload:
    def case(name: str, role: Role, n: int) -> Case:
        return Case(name, role, {"N": n})

    return Workload(
        name="chain",
        description="y = 2 x, by way of many operations.",
        entry="chain",
        parameters=(
            Parameter("x", "float32", Direction.IN, ("N",)),
            Parameter("y", "float32", Direction.OUT, ("N",)),
            Parameter("one", "float32", Direction.SCALAR, value="1"),
            Parameter("zero", "float32", Direction.SCALAR, value="0"),
            Parameter("N", "int32", Direction.SCALAR),
        ),
        cases=(
            case("small", Role.CORRECTNESS, 1000),
            case("ragged", Role.CORRECTNESS, 777),
            case("wave", Role.PERFORMANCE, 128 * 132),
            case("other", Role.HIDDEN, 5000),
        ),
        tolerance={"": Tolerance()},
        deterministic=True,
        fast_math=False,
        # So much that the pre-screen leaves the timed case to the GPU, whose survival is what is tried here.
        flops="8192 * N",
        bytes_moved="8 * N",
        reference=REFERENCE,
        initial=source(0, None, turns=1000),
    )


# --- watching ---------------------------------------------------------------------------------------------------------


class Watch:
    """What the machine looks like, every two seconds, in a thread of its own."""

    def __init__(self, uuid: str) -> None:
        self.samples: list[dict[str, float]] = []
        self._uuid = uuid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.candidates = 0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self.samples.append(self._sample())

    def _sample(self) -> dict[str, float]:
        ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
        shm = shutil.disk_usage("/dev/shm")
        told = {
            "s": elapsed_s(),
            "candidates": self.candidates,
            "processes": len(psutil.pids()),
            "ours": len(ours),
            "memory_mb": psutil.virtual_memory().used / 1e6,
            "resident_mb": sum(_of(process, _resident) for process in ours) / 1e6,
            "files": sum(_of(process, lambda one: float(one.num_fds())) for process in ours),
            "shm_mb": shm.used / 1e6,
        }
        if self._uuid:
            import pynvml

            pynvml.nvmlInit()
            told["gpu_mb"] = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(self._uuid)).used / 1e6
        return told


def _resident(process: psutil.Process) -> float:
    return float(process.memory_info().rss)


def _of(process: psutil.Process, figure: Any) -> float:
    try:
        return float(figure(process))
    except psutil.Error:  # it has just ended
        return 0.0


class Clock:
    """When the evaluator was busy with what: the crew's calls, timed in the driver."""

    def __init__(self) -> None:
        self.busy: dict[str, float] = {"evaluate": 0.0, "compare": 0.0}
        self.idle_s = 0.0
        self._started: dict[int, tuple[str, float]] = {}
        self._free_since: float | None = None

    def attach(self) -> None:
        """Have every crew tell this clock."""
        for name in self.busy:
            self._wrap(name)
        rise = Crew.rise

        def watched(crew: Crew, seat: Seat) -> None:
            what, began = self._started.pop(id(seat), ("evaluate", time.monotonic()))
            self._free_since = time.monotonic()
            self.busy[what] += self._free_since - began
            rise(crew, seat)

        Crew.rise = watched  # type: ignore[method-assign, assignment]

    def _wrap(self, name: str) -> None:
        call = getattr(Crew, name)

        def watched(crew: Crew, seat: Seat, *given: Any) -> Any:
            now = time.monotonic()
            if self._free_since is not None:
                self.idle_s += now - self._free_since
            self._free_since, self._started[id(seat)] = None, (name, now)
            return call(crew, seat, *given)

        setattr(Crew, name, watched)


class Told:
    """An observer that prints how far the run is, and what goes wrong at once."""

    def __init__(self, watch: Watch, other: dict[str, str]) -> None:
        self._watch = watch
        self._other = other
        self._said = time.monotonic()
        self._statuses: Counter[str] = Counter()

    def event(self, kind: str, **facts: Any) -> None:
        """Take one event."""
        if kind == "evaluated":
            self._count(facts["candidate"].source, facts["evaluation"])
        elif kind in ("evaluator_lost", "not_profiled", "draining", "interrupted"):
            say(f"{kind}: {facts.get('message') or facts.get('reason') or ''}")
        elif kind == "champion":
            say(f"champion: {facts.get('candidate')}, ratio {facts.get('ratio')}")

    def _count(self, text: str, evaluation: Evaluation) -> None:
        self._watch.candidates += 1
        self._statuses[str(evaluation.status)] += 1
        expected = EXPECT.search(text)
        if expected and self._other.get(expected[1], expected[1]) != evaluation.status:
            say(f"candidate {evaluation.candidate}: {expected[0]}, found {evaluation.status}: {evaluation.message}")
        if time.monotonic() - self._said > 20:
            self._said = time.monotonic()
            say(f"{self._watch.candidates} candidates: {dict(self._statuses)}; {self._watch.samples[-1:]}")


# --- what came of it --------------------------------------------------------------------------------------------------


def read(folder: Path, other: dict[str, str]) -> dict[str, Any]:
    """Return what the store holds; `other` statuses stand for expected ones."""
    with Store.read(folder) as store:
        evaluations, comparisons = store.evaluations(), store.comparisons()
        sources = {candidate.id: candidate.source for candidate in store.candidates()}
    judged = {number: found for number, found in evaluations.items() if number > 0}
    return {
        "candidates": len(judged),
        "faults": faults(judged, sources, other),
        "stages": stages(judged),
        "comparisons": len(comparisons),
        "promoted": sum(isinstance(found, Comparison) and found.promoted for found in comparisons.values()),
    }


def faults(judged: dict[int, Evaluation], sources: dict[int, str], other: dict[str, str]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for number, evaluation in judged.items():
        expected = EXPECT.search(sources[number])
        status, name = (expected[1], expected[2]) if expected else ("ok", "initial")
        status = other.get(status, status)
        row = told.setdefault(name, {"expected": status, "statuses": Counter(), "stages": Counter(), "wrong": []})
        row["statuses"][str(evaluation.status)] += 1
        row["stages"][evaluation.stage] += 1
        if evaluation.status != status:
            row["wrong"].append(f"{number}: {evaluation.status} at {evaluation.stage}: {evaluation.message[:200]}")
    return told


def stages(judged: dict[int, Evaluation]) -> dict[str, float]:
    told: Counter[str] = Counter()
    for evaluation in judged.values():
        told.update(evaluation.stage_seconds)
    return dict(told)


def flat(samples: list[dict[str, float]]) -> dict[str, Any]:
    """Compare the last quarter of the run with its second, figure by figure, by candidates and not by time."""
    most = max((sample["candidates"] for sample in samples), default=0)
    second = [sample for sample in samples if 0.25 * most <= sample["candidates"] < 0.5 * most]
    last = [sample for sample in samples if 0.75 * most <= sample["candidates"] and sample["candidates"] < most]
    if len(second) < 3 or len(last) < 3:
        return {}
    told = {}
    for name in second[0].keys() - {"s", "candidates"}:
        before, after = (statistics.median(sample.get(name, 0.0) for sample in part) for part in (second, last))
        told[name] = {
            "second_quarter": before,
            "last_quarter": after,
            "most": max(sample.get(name, 0.0) for sample in samples),
            "slope_per_1000": _slope(samples, name, most),
            "flat": after <= before * (1 + GROWTH) + 1,
        }
    return told


def _slope(samples: list[dict[str, float]], name: str, most: float) -> float:
    """Return by how much a figure grows in a thousand candidates, over the last three quarters."""
    late = [(sample["candidates"], sample[name]) for sample in samples if sample["candidates"] >= 0.25 * most]
    counts, values = np.array(late).T
    return float(1000 * np.polyfit(counts, values, 1)[0]) if np.ptp(counts) > 0 else 0.0


def shown(figures: dict[str, Any]) -> str:
    found = figures["run"]
    order = {name: index for index, (name, *_) in enumerate(FAULTS)}
    rows = [
        (name, row["expected"], dict(row["statuses"]), dict(row["stages"]), len(row["wrong"]))
        for name, row in sorted(found["faults"].items(), key=lambda item: order.get(item[0], -1))
    ]
    lines = [table(("kernels", "expected", "found", "ended at", "wrong"), rows), ""]
    rows_flat = [
        (
            name,
            f"{row['second_quarter']:.0f}",
            f"{row['last_quarter']:.0f}",
            f"{row['most']:.0f}",
            f"{row['slope_per_1000']:+.1f}",
            "yes" if row["flat"] else "**no**",
        )
        for name, row in sorted(figures["flat"].items())
    ]
    lines += [table(("figure", "second quarter", "last quarter", "most", "per 1,000", "flat"), rows_flat), ""]
    gpu = {name: seconds for name, seconds in found["stages"].items() if name != "screen"}
    busy, idle_s = figures["busy"], figures["idle_s"]
    wall_s = busy["evaluate"] + busy["compare"] + idle_s
    if wall_s > 0:
        shares = [(f"evaluator: {name}", f"{seconds:.1f}", f"{seconds / wall_s:.1%}") for name, seconds in gpu.items()]
        shares += [
            ("evaluator: calls, rejections and the rest", *_share(busy["evaluate"] - sum(gpu.values()), wall_s)),
            ("comparisons", *_share(busy["compare"], wall_s)),
            ("no candidate was ready", *_share(idle_s, wall_s)),
            ("(screening, on other cores)", f"{found['stages'].get('screen', 0.0):.1f}", ""),
        ]
        waited_s = idle_s + gpu.get("compile", 0.0)
        lines += [table(("stage", "s", "share"), shares), ""]
        lines.append(f"the GPU waited for a binary for {waited_s / wall_s:.1%} of the time (wanted: ≤ {WAITING:.0%})")
    lines.append(
        f"{found['candidates']} candidates ({figures['reason']}) in {figures['wall_s']:.0f} s of this sitting; "
        f"{found['comparisons']} comparisons, {found['promoted']} promoted"
    )
    return "\n".join(lines)


def _share(seconds: float, wall_s: float) -> tuple[str, str]:
    return f"{seconds:.1f}", f"{seconds / wall_s:.1%}"


# --- the run ----------------------------------------------------------------------------------------------------------


def config(arguments: argparse.Namespace, minutes: float) -> Config:
    budget = Budget(evaluations=arguments.candidates, minutes=minutes, cost_usd=None, idle=10_000)
    return Config(
        workload="chain",
        device=arguments.device,
        models=(),
        operators={OPERATOR: 1.0},
        search=Search(in_flight=arguments.in_flight, islands=1),
        tuning=Tuning(trials=0),
        timing=Timing(launches=30),
        budget=budget,
    )


def work(arguments: argparse.Namespace, observer: Told) -> str:
    folder: Path = arguments.folder
    limit_min = max(arguments.seconds - elapsed_s() - 20, 10) / 60  # the rest is for what is in flight and the end
    if folder.exists() and any(folder.iterdir()):
        with Store.read(folder) as store:
            before_min = store.elapsed_s() / 60
        say(f"going on with the run in {folder}")

        def extended(old: Budget) -> Budget:
            return old.model_copy(update={"minutes": before_min + limit_min, "evaluations": arguments.candidates})

        return runs.resume(folder, observer, extended).reason
    folder.mkdir(parents=True, exist_ok=True)
    return runs.run(config(arguments, limit_min), workload(), folder, observer).reason


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--in-flight", type=int, default=32, help="candidates screened ahead")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    on_gpu = arguments.device == "cuda"
    other = {} if on_gpu else ON_HOST
    figures: dict[str, Any] = gpu_facts() if on_gpu else {"device": arguments.device}
    say(f"{figures['device']}")
    clock = Clock()
    clock.attach()
    begin = time.monotonic()
    try:
        with Watch(str(figures.get("uuid", ""))) as watch:
            figures["reason"] = work(arguments, Told(watch, other))
    finally:
        figures.setdefault("reason", "failed")
        figures["wall_s"] = time.monotonic() - begin
        figures |= {"busy": clock.busy, "idle_s": clock.idle_s, "samples": watch.samples, "flat": flat(watch.samples)}
        figures["run"] = read(arguments.folder, other)
        save(arguments.json, figures)
        print(shown(figures), flush=True)
    wrong = [text for row in figures["run"]["faults"].values() for text in row["wrong"]]
    if wrong:
        print("wrong statuses:\n" + "\n".join(wrong[:20]), flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
