"""How soon the next candidate has its first right result after one that broke the child, or hung.

The evaluator's own Lab runs a kernel that writes to an illegal address, or one that never ends, and then a right one on
a small case; its compiler built them all before. The clock starts when the faulty kernel's verdict is there and stops
when the right kernel has passed (two jobs, both validated); "twice" means two faults in a row. "verdict" is how long
the faulty kernel's own verdict took, of which a hang has 300 ms by right. In every round the spare stands ready first.

usage: python benchmarks/perf/recovery.py [--device host|cuda] [--rounds 20] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from evaluators.builder import Programs  # noqa: E402
from evaluators.device import Setup  # noqa: E402
from evaluators.lab import Lab  # noqa: E402
from evaluators.timing import Rules  # noqa: E402
from evo import plugins  # noqa: E402
from evo.config import Timing, Tuning  # noqa: E402
from evo.records import Case, Direction, Parameter, Role, Status, Tolerance, Workload  # noqa: E402

LIMIT_S = 0.3
"""What the hanging kernel gets: long beside a launch, short beside a person's patience."""
REFERENCE = """
def reference(inputs, dims):
    return {"y": 2.0 * inputs["x"].astype("float64")}
"""
KERNEL = """/* launch
block: 128
grid: "ceildiv(N, 128)"
*/
extern "C" __global__ void scale(const float* x, float* y, int N) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
    if (i < N) y[i] = 2.0f * x[i];
}}
"""
RIGHT = KERNEL.format(body="")
FAULTS = {
    # 2^46 bytes beyond a buffer lies no other, and no compiler knows where the buffer is.
    "illegal address": KERNEL.format(body="y[(1ll << 44) + i] = 1.0f;"),
    "hang": KERNEL.format(body="volatile float* p = y; while (p[0] != 12345.0f) {}"),
}


def workload() -> Workload:
    return Workload(
        name="scale",
        description="y = 2 x",
        entry="scale",
        parameters=(
            Parameter("x", "float32", Direction.IN, ("N",)),
            Parameter("y", "float32", Direction.OUT, ("N",)),
            Parameter("N", "int32", Direction.SCALAR),
        ),
        cases=(
            Case("small", Role.CORRECTNESS, {"N": 1000}),
            Case("large", Role.PERFORMANCE, {"N": 4096}),
        ),
        tolerance={"": Tolerance()},
        deterministic=True,
        fast_math=False,
        flops="N",
        bytes_moved="8 * N",
        reference=REFERENCE,
        initial=RIGHT,
    )


class Bench:
    """A Lab, its kernels, and what is done with them."""

    def __init__(self, device: str) -> None:
        setup = Setup(workload(), Timing(), Tuning(trials=0), seed=1, anchor=RIGHT)
        self.lab = Lab(plugins.resolve(plugins.DEVICES, device)(), setup)
        self.right = self.lab.programs(RIGHT)
        self.faulty = {name: self.lab.programs(source) for name, source in FAULTS.items()}
        self.statuses: dict[str, set[str]] = {name: set() for name in FAULTS}

    def pass_right_kernel(self) -> float:
        """Return how long a right kernel's verdict takes in seconds; a wrong verdict ends the measurement."""
        started = time.monotonic()
        outcome = self.lab.validate(self.right, self._case("small"))
        if outcome.status is not Status.OK:
            raise SystemExit(f"the right kernel was blamed: {outcome.status}: {outcome.message}")
        return time.monotonic() - started

    def fault(self, name: str) -> float:
        """Run a faulty kernel; return the seconds until its verdict."""
        started = time.monotonic()
        once = Rules(warmup=0, warm_s=0.0, launches=1, least=1, budget_s=0.0)
        taken = self.lab.time(self.faulty[name], self._case("small"), once, limit_s=LIMIT_S)
        self.statuses[name].add(str(taken.last.status))
        if taken.failed is None:
            raise SystemExit(f"kernel {name!r} did not fail on this device")
        return time.monotonic() - started

    def recovery(self, name: str, faults: int) -> tuple[float, float]:
        """Return seconds from the last of some faults in a row to a right result, and how long its verdict took."""
        self.lab.supervisor.settle()
        self.pass_right_kernel()
        verdict_s = [self.fault(name) for _ in range(faults)][-1]
        return self.pass_right_kernel(), verdict_s

    def _case(self, name: str) -> Case:
        return next(case for case in self.lab.cases(*Role) if case.name == name)


def build(programs: Programs, lab: Lab) -> None:
    """Have a kernel compiled, so that no measurement waits for that."""
    for case in lab.cases(*Role):
        binary = programs.submit(programs.plan(case, None)).result()
        if binary.status is not Status.OK:
            raise SystemExit(f"the kernel does not compile: {binary.message}")


def measure(bench: Bench, rounds: int) -> dict[str, Any]:
    bench.lab.supervisor.settle()
    figures: dict[str, Any] = {"no fault": summary([bench.pass_right_kernel() for _ in range(rounds)])}
    starts = []
    for _ in range(min(rounds, 5)):
        started = time.monotonic()
        bench.lab.supervisor.renew()
        starts.append(time.monotonic() - started)
    figures["start of a child"] = summary(starts)
    for name in FAULTS:
        for faults, words in ((1, name), (2, f"{name}, twice")):
            taken = [bench.recovery(name, faults) for _ in range(rounds)]
            figures[words] = summary([right_s for right_s, _ in taken])
            figures[words]["verdict_ms"] = 1e3 * statistics.median(verdict_s for _, verdict_s in taken)
            figures[words]["statuses"] = sorted(bench.statuses[name])
    return figures


def summary(seconds: list[float]) -> dict[str, Any]:
    return {
        "median_ms": 1e3 * statistics.median(seconds),
        "p95_ms": 1e3 * float(np.percentile(seconds, 95)),
        "most_ms": 1e3 * max(seconds),
        "rounds": len(seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="host", help="device plug-in: host, cuda, or the path of one")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    bench = Bench(arguments.device)
    try:
        for programs in (bench.right, *bench.faulty.values()):
            build(programs, bench.lab)
        figures = measure(bench, arguments.rounds)
    finally:
        bench.lab.close()
    print(f"{'ms to the first right result':30} {'median':>8} {'95 %':>8} {'most':>8} {'verdict':>8}  status")
    for name, row in figures.items():
        verdict = f"{row['verdict_ms']:8.1f}" if "verdict_ms" in row else " " * 8
        spread = f"{row['median_ms']:8.1f} {row['p95_ms']:8.1f} {row['most_ms']:8.1f}"
        print(f"{name:30} {spread} {verdict}  {', '.join(row.get('statuses', ()))}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"device": bench.lab.facts.name, "figures": figures}, indent=1))


if __name__ == "__main__":
    main()
