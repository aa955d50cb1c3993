"""How often is luck crowned, and how often does a kernel that is 3 % faster win? Through the Lab and its comparisons.

`aa` pairs are one kernel built twice: the two modules hold different code beside the kernel, and each is loaded anew
for every job, at other addresses; the child is replaced every `--renew` pairs. `faster` pairs are the kernel against
itself with a longer loop, 3 % slower by calibration; the ratio is told as measured. The kernel is a chain of dependent
operations of about 20 µs, so that a pair costs half a second and not minutes.

Every comparison is tested at the level of a run's first challenger, α = 0.05 / 2 (`--number 1`): the loosest that there
is, so that luck has its best chance; both kinds of pairs get the same. `--number 1000` asks for the strictest instead.

Wanted: at most 4 of 1,000 `aa` pairs promoted, at least 95 of 100 `faster` pairs. `--json FILE` is added to, so that
several calls of a few minutes make up the thousand. `--simulate` needs no GPU: it draws runs of 1,000 equal candidates
from the noise in that file (blocks' residuals, and what pairs differ by beyond it) through `evo.statistics`; wanted: a
false champion in at most 5 % of runs.

usage: PYTHONPATH=. python3 benchmarks/perf/gpu_aa.py --json FILE [--pairs 1000] [--seconds 480] [--number 1]
       PYTHONPATH=. python3 benchmarks/perf/gpu_aa.py --json FILE --simulate [--runs 400] [--seconds 120]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections import deque
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gpu_common import gpu_facts, save, say, table
from gpu_stand_in import StandIn

from evaluators import comparison, timing
from evaluators.comparison import CONFIRM_BLOCKS, Contender
from evaluators.device import DevicePlugin, Setup
from evaluators.lab import Lab
from evo.config import Timing, Tuning
from evo.records import Case, Direction, Parameter, Role, Status, Tolerance, Workload
from evo.statistics import SequentialComparison, alpha_for

AA_MOST, AA_OF = 4, 1000
FASTER_LEAST, FASTER_OF = 95, 100
SLOWER = 0.03
TURNS = 9000
AHEAD = 8
"""Pairs that are built while others are compared."""
KINDS = ("aa", "faster")
REFERENCE = """
def reference(inputs, dims):
    return {"y": 2.0 * inputs["x"].astype("float64")}
"""
KERNEL = """/* launch
launches:
  - {{kernel: chain, block: 128, grid: "ceildiv(N, 128)"}}
*/
// module {module}
extern "C" __global__ void beside(float* y, float one) {{
    float v = y[threadIdx.x];
    #pragma unroll
    for (int i = 0; i < {beside}; ++i) v = fmaf(v, one, {module}.0f + i);
    y[threadIdx.x] = v;
}}

extern "C" __global__ void chain(const float* x, float* y, float one, float zero, int N) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < N ? x[i] : 0.0f;
    #pragma unroll 4
    for (int turn = 0; turn < {turns}; ++turn) v = fmaf(v, one, zero);
    if (i < N) y[i] = 2.0f * v;
}}
"""


def source(module: int, turns: int) -> str:
    """Return a kernel file; `module` decides how much code lies beside the kernel, and so where everything lies."""
    return KERNEL.format(module=module, beside=1 + module * 7 % 61, turns=turns)


def workload() -> Workload:
    return Workload(
        name="chain",
        description="y = 2 x, slowly.",
        entry="chain",
        parameters=(
            Parameter("x", "float32", Direction.IN, ("N",)),
            Parameter("y", "float32", Direction.OUT, ("N",)),
            Parameter("one", "float32", Direction.SCALAR, value="1"),
            Parameter("zero", "float32", Direction.SCALAR, value="0"),
            Parameter("N", "int32", Direction.SCALAR),
        ),
        cases=(Case("wave", Role.PERFORMANCE, {"N": 128 * 132}),),
        tolerance={"": Tolerance()},
        deterministic=True,
        fast_math=False,
        flops="N",
        bytes_moved="8 * N",
        reference=REFERENCE,
        initial=source(0, TURNS),
    )


# --- measuring --------------------------------------------------------------------------------------------------------


class Pairs:
    """A lab, and pairs of kernels that are built ahead."""

    def __init__(self, device: DevicePlugin, seed: int) -> None:
        self.lab = Lab(device, Setup(workload(), Timing(), Tuning(trials=0), seed=seed, anchor=source(0, TURNS)))
        self._case = self.lab.cases(Role.PERFORMANCE)[0]
        self._seed = seed
        self._made = 0
        self._ahead: deque[tuple[str, Contender, Contender]] = deque()

    def latency_us(self, turns: int) -> float:
        """Return a kernel's latency, of some 500 samples in several jobs."""
        programs = self.lab.programs(source(1_000_000 + turns, turns))
        rules = timing.Rules(warmup=10, warm_s=0.05, launches=100, least=50, budget_s=1.0)
        medians = []
        for _ in range(5):
            taken = self.lab.time(programs, self._case, rules)
            if taken.failed is not None:
                raise SystemExit(f"the kernel failed: {taken.failed.status}: {taken.failed.message}")
            medians.append(taken.median_us)
        return statistics.median(medians)

    def calibrate(self) -> dict[str, Any]:
        """Find the loop that makes the kernel 3 % slower, and say what it makes in fact."""
        once, twice = self.latency_us(TURNS), self.latency_us(2 * TURNS)
        per_turn_us = max((twice - once) / TURNS, 1e-9)
        turns = TURNS + max(4, round(SLOWER * once / per_turn_us / 4) * 4)  # a multiple of what is unrolled
        slower, again = self.latency_us(turns), self.latency_us(TURNS)
        return {
            "turns": TURNS,
            "turns_slower": turns,
            "latency_us": once,
            "slower_us": slower,
            "slower_by": slower / statistics.mean((once, again)) - 1,
        }

    def next(self, kinds: list[str], turns_slower: int) -> tuple[str, Contender, Contender]:
        """Return the next pair (kind, challenger, champion); those behind it are being built."""
        while kinds and len(self._ahead) < AHEAD:
            kind = kinds.pop(0)
            module = 2 * (self._seed + self._made)
            self._made += 1
            texts = (source(module, TURNS), source(module + 1, turns_slower if kind == "faster" else TURNS))
            programs = [self.lab.programs(text) for text in texts]
            for built in programs:
                built.submit(built.plan(self._case))
            contenders = [Contender(index + 1, built) for index, built in enumerate(programs)]
            self._ahead.append((kind, contenders[0], contenders[1]))
        return self._ahead.popleft()

    def left(self, kinds: list[str]) -> bool:
        """Whether there is another pair."""
        return bool(kinds or self._ahead)


def watch_blocks() -> list[float]:
    """Have every block's log ratio put into the list that is returned."""
    blocks: list[float] = []
    block = comparison._Blocks._block

    def watched(self: Any, case: Case, salt: int) -> float:
        blocks.append(block(self, case, salt))
        return blocks[-1]

    comparison._Blocks._block = watched  # type: ignore[method-assign]
    return blocks


def plan(figures: dict[str, Any], pairs: int) -> list[str]:
    """Return the kinds of the pairs that are still wanted, ten of one for one of the other."""
    have = [pair["kind"] for pair in figures["pairs"]]
    wanted = {"aa": pairs - have.count("aa"), "faster": pairs // 10 - have.count("faster")}
    kinds: list[str] = []
    while any(count > 0 for count in wanted.values()):
        for kind, share in zip(KINDS, (10, 1), strict=True):
            now = min(share, max(wanted[kind], 0))
            kinds += [kind] * now
            wanted[kind] -= now
    return kinds


def measure(arguments: argparse.Namespace, figures: dict[str, Any]) -> None:
    begin = time.monotonic()
    kinds = plan(figures, arguments.pairs)
    if not kinds:
        say("all pairs are there already")
        return
    if arguments.stand_in:
        device: DevicePlugin = StandIn()
    else:
        from evaluators.cuda import CudaDevice

        device = CudaDevice()
    pairs = Pairs(device, seed=len(figures["pairs"]))
    blocks = watch_blocks()
    try:
        calibrated = pairs.calibrate()
        figures["calibrations"].append(calibrated)
        say(f"calibrated: {json.dumps(calibrated)}")
        done, told = 0, time.monotonic()
        while pairs.left(kinds) and time.monotonic() - begin < arguments.seconds:
            if done and done % arguments.renew == 0:
                pairs.lab.supervisor.renew()
            kind, challenger, champion = pairs.next(kinds, calibrated["turns_slower"])
            blocks.clear()
            started = time.monotonic()
            found = comparison.compare(pairs.lab, challenger, champion, arguments.number)
            figures["pairs"].append({
                "kind": kind, "number": arguments.number, "status": str(found.status), "message": found.message,
                "ratio": found.ratio, "low": found.low, "high": found.high, "promoted": found.promoted,
                "blocks": [round(value, 7) for value in blocks], "seconds": time.monotonic() - started,
                "child": done // arguments.renew,
            })  # fmt: skip
            done += 1
            if (found.promoted and kind == "aa") or found.status is not Status.OK:
                say(f"pair {len(figures['pairs'])}, {kind}: {found}")
            if time.monotonic() - told > 30 or done == 5:
                told = time.monotonic()
                progress(figures, done, told - begin, arguments)
                save(arguments.json, figures)
    finally:
        pairs.lab.close()
        save(arguments.json, figures)


def progress(figures: dict[str, Any], done: int, spent_s: float, arguments: argparse.Namespace) -> None:
    each_s = statistics.mean(pair["seconds"] for pair in figures["pairs"][-done:])
    possible = int((arguments.seconds - spent_s) / each_s)
    counts = ", ".join(f"{kind} {row['promoted']} of {row['pairs']}" for kind, row in results(figures).items())
    say(f"promoted: {counts}; {each_s:.2f} s a pair, about {possible} more in the time that is left")


def results(figures: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for kind in KINDS:
        pairs = [pair for pair in figures["pairs"] if pair["kind"] == kind]
        right = [pair for pair in pairs if pair["status"] == "ok"]
        if not right:
            continue
        logs = [math.log(pair["ratio"]) for pair in right]
        spread = [statistics.stdev(pair["blocks"]) for pair in right if len(pair["blocks"]) > 1]
        told[kind] = {
            "pairs": len(pairs),
            "failed": len(pairs) - len(right),
            "promoted": sum(pair["promoted"] for pair in right),
            "not_confirmed": sum("second process" in pair["message"] for pair in right),
            "ratio": math.exp(statistics.median(logs)),
            "ratio_5_95": [math.exp(float(np.quantile(logs, q))) for q in (0.05, 0.95)],
            "block_deviation": statistics.median(spread) if spread else None,
            "blocks": statistics.mean(len(pair["blocks"]) for pair in right),
            "seconds": statistics.mean(pair["seconds"] for pair in right),
        }
    return told


def shown(figures: dict[str, Any]) -> str:
    head = ("pairs", "promoted", "wanted", "not confirmed", "failed", "ratio (5–95 %)", "a block's σ", "blocks", "s")
    wanted = {"aa": f"≤ {AA_MOST} of {AA_OF}", "faster": f"≥ {FASTER_LEAST} of {FASTER_OF}"}
    rows = [
        (
            kind,
            f"{row['promoted']} of {row['pairs']}",
            wanted[kind],
            row["not_confirmed"],
            row["failed"],
            f"{row['ratio']:.4f} ({row['ratio_5_95'][0]:.4f}–{row['ratio_5_95'][1]:.4f})",
            "" if row["block_deviation"] is None else f"{row['block_deviation']:.3%}",
            f"{row['blocks']:.1f}",
            f"{row['seconds']:.2f}",
        )
        for kind, row in figures["results"].items()
    ]
    slower = [f"{row['slower_by']:.2%}" for row in figures["calibrations"]]
    return table(head, rows) + f"\n\nmade slower by, as calibrated: {', '.join(slower)}"


# --- simulating -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Noise:
    """What was seen: residuals of blocks about their pair's mean, and by how much pairs differ beyond those."""

    residuals: tuple[float, ...]
    between: float

    @classmethod
    def of(cls, figures: dict[str, Any]) -> Noise:
        """Take it from measured `aa` pairs."""
        tables = [
            np.array(pair["blocks"]) for pair in figures["pairs"] if pair["kind"] == "aa" and len(pair["blocks"]) > 2
        ]
        if not tables:
            raise SystemExit("--simulate takes its noise from measured `aa` pairs, and the file has none")
        # A residual is narrower than its noise by what the mean takes away.
        residuals = np.concatenate([(t - t.mean()) * math.sqrt(len(t) / (len(t) - 1)) for t in tables])
        within = statistics.mean(float(t.var(ddof=1)) / len(t) for t in tables)
        means = [float(t.mean()) for t in tables]
        between = max(0.0, statistics.variance(means) - within) if len(means) > 1 else 0.0
        return cls(tuple(residuals.tolist()), math.sqrt(between))


def crowns(noise: Noise, candidates: int, margin: float, seed: int) -> tuple[int, int]:
    """Return how many of a run's equal challengers pass the first comparison, and how many the confirmation too."""
    rng = np.random.default_rng(seed)
    residuals = np.array(noise.residuals)
    passed = confirmed = 0
    least, most = CONFIRM_BLOCKS
    for number in range(1, candidates + 1):
        bias = noise.between * float(rng.standard_normal())
        first = SequentialComparison(alpha_for(number), margin=margin, rng=rng)
        if not _promoted(first, residuals, bias, rng):
            continue
        passed += 1
        second = SequentialComparison(0.05, margin=margin, min_blocks=least, max_blocks=most, rng=rng)
        confirmed += _promoted(second, residuals, bias, rng)
    return passed, confirmed


def _promoted(found: SequentialComparison, residuals: Any, bias: float, rng: np.random.Generator) -> bool:
    while not found.finished:
        found.add({"case": bias + float(rng.choice(residuals)) * (1 if rng.random() < 0.5 else -1)})
    return found.promoted


def simulate(arguments: argparse.Namespace, figures: dict[str, Any]) -> str:
    noise = Noise.of(figures)
    sigma = statistics.pstdev(noise.residuals)
    say(f"noise of a block: σ {sigma:.3%} of {len(noise.residuals)}; between pairs: σ {noise.between:.3%}")
    rows = []
    begin = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for share, margin in ((0.5, 0.005), (1.0, 0.0)):
            runs = [pool.submit(crowns, noise, arguments.candidates, margin, seed) for seed in range(arguments.runs)]
            left_s = share * arguments.seconds - (time.monotonic() - begin)
            done, late = wait(runs, timeout=max(left_s, 1.0))
            for run in late:
                run.cancel()
            found = [run.result() for run in done if not run.cancelled()]
            rows.append((margin, len(found), sum(a > 0 for a, _ in found), sum(b > 0 for _, b in found)))
            say(f"margin {margin:.1%}: {rows[-1][1:]} (runs, with a first pass, with a false champion)")
    figures["simulated"] = [
        dict(zip(("margin", "runs", "passed_once", "false_champion"), row, strict=True)) for row in rows
    ]
    head = ("margin", "runs", f"of {arguments.candidates} equal candidates, a run with", "wanted")
    body = [
        (
            f"{m:.1%}",
            runs,
            f"a false champion: {crowned} ({crowned / max(runs, 1):.1%}); before confirmation: {passed}",
            "≤ 5 %",
        )
        for m, runs, passed, crowned in rows
    ]
    return table(head, body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=AA_OF, help="`aa` pairs in all; a tenth as many `faster` ones")
    parser.add_argument("--seconds", type=float, default=480.0)
    parser.add_argument("--number", type=int, default=1, help="which challenger of a run, which sets the level α")
    parser.add_argument("--renew", type=int, default=25, help="pairs before the child is replaced")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--candidates", type=int, default=1000, help="of a simulated run")
    parser.add_argument("--runs", type=int, default=400, help="simulated")
    parser.add_argument("--stand-in", action="store_true", help="no GPU: try the script")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures: dict[str, Any] = {"pairs": [], "calibrations": [], "sittings": []}
    if arguments.json and arguments.json.exists():
        figures = json.loads(arguments.json.read_text(encoding="utf-8"))
        say(f"going on with {len(figures['pairs'])} pairs of {arguments.json}")
    if arguments.simulate:
        print(simulate(arguments, figures), flush=True)
        save(arguments.json, figures)
        return
    figures["sittings"].append({"device": "stand-in"} if arguments.stand_in else gpu_facts())
    try:
        measure(arguments, figures)
    finally:
        figures["results"] = results(figures)
        save(arguments.json, figures)
        if figures["results"]:
            print(shown(figures), flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
