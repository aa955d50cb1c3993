"""How fast a register-tiled GEMM is tuned: our tuner against Kernel Tuner and against the compiler alone.

The kernel has 105 valid variants: tiles BM, BN of 32, 64, 128, BK of 8, 16, 32 and 4 or 8 outputs a thread each way,
108 in all, less those with half a warp. On 2048 cubed in float32 each round runs, in processes of their own and with
empty caches (compilers' included): `compile` (all variants by 16 workers, nothing else), `ours` (`trials.tune` in a
Lab, as an evaluator calls it) and `kernel_tuner` (CuPy backend, brute force). Kernel Tuner's own time and our
`trials.tune` are compared; 7 launches a variant (ours on average), both validate the whole output by the same rule.
Wanted: 6 times Kernel Tuner's variants per second, 85 % of the compile-bound rate, the same best variant within 1 %.
The best variants are measured again beside each other. Inputs and their reference, which a run computes once and keeps,
are made before; what that takes is told.

Not equal: CuPy adds `-ftz=true` of its own and compiles for sm_90; we flush the caches before each launch, keep buffers
between guard pages and validate every timed job once more on secret inputs.

`--stand-in` runs our side on a device that takes no time, and `--profile` shows where the parent spends it.

usage: PYTHONPATH=. python3 benchmarks/perf/gpu_tuning.py [--rounds 2] [--seconds 500] [--json FILE]
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import io
import itertools
import json
import os
import pstats
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gpu_common import gpu_facts, run_child, save, say, table, tail, wheel_on_path
from gpu_stand_in import StandIn

from evaluators import timing, trials
from evaluators.builder import LocalBuilder, request
from evaluators.device import DevicePlugin, Setup
from evaluators.lab import SECRET_SALT, SECRET_SETS, Lab
from evaluators.validate import compare_output
from evo import kernel as kernels
from evo import workload as workloads
from evo.config import Timing, Tuning
from evo.records import Case, Config, Direction, Parameter, Role, Status, Tolerance, Workload

STEPS = ("compile", "ours", "kernel_tuner")
ITERATIONS = 7
WORKERS = 16
SEED = 3
TUNE = {"BM": (32, 64, 128), "BN": (32, 64, 128), "BK": (8, 16, 32), "TM": (4, 8), "TN": (4, 8)}
OPTIONS = ("--std=c++17",)
"""Ours by default, and so Kernel Tuner's."""
CODE = """
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float a[BK][BM + 4];
    __shared__ float b[BK][BN];
    constexpr int TX = BN / TN, THREADS = TX * (BM / TM);
    const int tid = threadIdx.y * TX + threadIdx.x;
    const int row = blockIdx.y * BM, col = blockIdx.x * BN;
    float sum[TM][TN] = {};
    for (int k = 0; k < K; k += BK) {
        #pragma unroll
        for (int i = tid; i < BM * BK; i += THREADS) a[i % BK][i / BK] = A[(row + i / BK) * K + k + i % BK];
        #pragma unroll
        for (int i = tid; i < BK * BN; i += THREADS) b[i / BN][i % BN] = B[(k + i / BN) * N + col + i % BN];
        __syncthreads();
        #pragma unroll 8
        for (int j = 0; j < BK; ++j) {
            float x[TM], y[TN];
            #pragma unroll
            for (int m = 0; m < TM; ++m) x[m] = a[j][threadIdx.y * TM + m];
            #pragma unroll
            for (int n = 0; n < TN; ++n) y[n] = b[j][threadIdx.x * TN + n];
            #pragma unroll
            for (int m = 0; m < TM; ++m)
                #pragma unroll
                for (int n = 0; n < TN; ++n) sum[m][n] += x[m] * y[n];
        }
        __syncthreads();
    }
    #pragma unroll
    for (int m = 0; m < TM; ++m)
        #pragma unroll
        for (int n = 0; n < TN; ++n)
            C[(row + threadIdx.y * TM + m) * N + col + threadIdx.x * TN + n] = sum[m][n];
}
"""
SOURCE = (
    """/* launch
block: "BN // TN, BM // TM"
grid: "N // BN, M // BM"
tune: {BM: [32, 64, 128], BN: [32, 64, 128], BK: [8, 16, 32], TM: [4, 8], TN: [4, 8]}
require: ["(BN // TN) * (BM // TM) >= 32"]
defaults: {BM: 32, BN: 32, BK: 8, TM: 4, TN: 4}
*/"""
    + CODE
)
REFERENCE = """
import numpy as np

def reference(inputs, dims):
    a, b = inputs["A"].astype(np.float64), inputs["B"].astype(np.float64)
    return {"C": (a @ b, np.abs(a) @ np.abs(b))}
"""


def workload(n: int) -> Workload:
    def square(name: str, direction: Direction, shape: tuple[str, ...]) -> Parameter:
        return Parameter(name, "float32", direction, shape)

    scalars = (Parameter(name, "int32", Direction.SCALAR) for name in "MNK")
    return Workload(
        name="tiled_gemm",
        description="C = A B in float32.",
        entry="gemm",
        parameters=(
            square("A", Direction.IN, ("M", "K")),
            square("B", Direction.IN, ("K", "N")),
            square("C", Direction.OUT, ("M", "N")),
            *scalars,
        ),
        cases=(
            Case("small", Role.CORRECTNESS, {"M": 128, "N": 128, "K": 128}),
            Case("large", Role.PERFORMANCE, {"M": n, "N": n, "K": n}),
        ),
        tolerance={"": Tolerance(terms="K")},
        deterministic=True,
        fast_math=False,
        flops="2 * M * N * K",
        bytes_moved="4 * (M * K + K * N + M * N)",
        reference=REFERENCE,
        initial=SOURCE,
    )


def variants() -> list[dict[str, int]]:
    every = (dict(zip(TUNE, values, strict=True)) for values in itertools.product(*TUNE.values()))
    return [v for v in every if v["BN"] // v["TN"] * (v["BM"] // v["TM"]) >= 32]


def device(stand_in: bool) -> DevicePlugin:
    if stand_in:
        return StandIn()
    from evaluators.cuda import CudaDevice

    return CudaDevice()


# --- the compiler alone -----------------------------------------------------------------------------------------------


def compile_all(arguments: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> None:
    plugin, whole = device(arguments.stand_in), workload(arguments.size)
    facts, kernel = plugin.describe(), kernels.parse(SOURCE)
    case = whole.role(Role.PERFORMANCE)[0]
    plans = [kernel.plan(whole, case, facts, config) for config in variants()]
    builder = LocalBuilder(plugin, WORKERS)
    begin = time.monotonic()
    futures = [builder.submit(request(kernel, plan, facts.arch)) for plan in plans]
    binaries = [future.result() for future in futures]
    wall_s = time.monotonic() - begin
    builder.close()
    failed = [binary.message for binary in binaries if binary.status is not Status.OK]
    tell({
        "variants": len(binaries) - len(failed),
        "wall_s": wall_s,
        "rate": (len(binaries) - len(failed)) / wall_s,
        "build_s": statistics.median(binary.seconds for binary in binaries),
        "failed": failed[:3],
    })  # fmt: skip


# --- ours -------------------------------------------------------------------------------------------------------------


@dataclass
class Spent:
    """Seconds of the parent by what it did, and launches."""

    seconds: dict[str, float] = field(default_factory=dict)
    launches: int = 0
    jobs: int = 0

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Book what is done inside."""
        begin = time.monotonic()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + time.monotonic() - begin


def watch(lab: Lab) -> Spent:
    """Have a lab book its time: waiting for builds, for the child, and what is done beside that in a job."""
    spent, bench = Spent(), lab._bench
    program, run_job, run = lab._program, bench._run_job, bench.run

    def watched_program(*given: Any, **named: Any) -> Any:
        with spent.on("waiting for a build"):
            return program(*given, **named)

    def watched_job(job: Any, deadline_s: float) -> Any:
        spent.jobs += 1
        spent.launches += job.samples
        with spent.on("jobs in the child"):
            return run_job(job, deadline_s)

    def watched_run(*given: Any, **named: Any) -> Any:
        with spent.on("files and validation"):
            return run(*given, **named)

    lab._program = watched_program  # type: ignore[method-assign]
    bench._run_job = watched_job
    bench.run = watched_run  # type: ignore[method-assign]
    return spent


@contextmanager
def ready_lab(arguments: argparse.Namespace, told: dict[str, Any], timed: Timing) -> Iterator[Lab]:
    """A lab whose child has started and whose cases are drawn; says what either took."""
    plugin = device(arguments.stand_in)
    begin = time.monotonic()
    builder = LocalBuilder(plugin, WORKERS)
    tuning = Tuning(trials=len(variants()))
    setup = Setup(workload(arguments.size), timed, tuning, seed=SEED, anchor=SOURCE, builder=builder)
    lab = Lab(plugin, setup)
    try:
        lab.supervisor.settle()
        told["start_s"] = time.monotonic() - begin
        begin = time.monotonic()
        for case, salt in itertools.product(lab.cases(*Role), (0, trials.FRESH, *secret_salts())):
            lab._bench._data.get(case, salt)
        told["inputs_and_reference_s"] = time.monotonic() - begin
        yield lab
    finally:
        lab.close()
        builder.close()


def secret_salts() -> range:
    return range(SECRET_SALT, SECRET_SALT + SECRET_SETS)


def ours(arguments: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> None:
    told: dict[str, Any] = {}
    with ready_lab(arguments, told, Timing(launches=ITERATIONS)) as lab:
        spent = watch(lab)
        profile = cProfile.Profile()
        programs = lab.programs(SOURCE)
        begin = time.monotonic()
        if arguments.profile:
            profile.enable()
        tuned, tried = trials.tune(lab, programs, lambda case, config: None)
        profile.disable()
        wall_s = time.monotonic() - begin
    timed = {tuple(t.config.items()): t.latency_us for t in tried if t.latency_us is not None}
    right = {tuple(t.config.items()) for t in tried if t.status is Status.OK}
    spent.seconds["files and validation"] -= spent.seconds["jobs in the child"]
    spent.seconds["tuner and the rest"] = wall_s - sum(spent.seconds.values())
    best = min(timed, key=lambda key: timed[key])
    chosen = dict(tuned.config_for(lab.cases(Role.PERFORMANCE)[0].dims)) if tuned else dict(best)
    tell({
        **told,
        "variants": len(right),
        "wall_s": wall_s,
        "rate": len(right) / wall_s,
        "launches": spent.launches / max(len(right), 1),
        "jobs": spent.jobs,
        "seconds": spent.seconds,
        "best": dict(best),
        "best_us": timed[best],
        "chosen": chosen,
        "failed": [f"{dict(t.config)}: {t.status}: {t.message}" for t in tried if t.status is not Status.OK][:3],
    })  # fmt: skip
    if arguments.profile:
        out = io.StringIO()
        pstats.Stats(profile, stream=out).sort_stats("tottime").print_stats(25)
        print(out.getvalue())


# --- Kernel Tuner -----------------------------------------------------------------------------------------------------


def kernel_tuner(arguments: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="wheels-", dir=os.environ["XDG_CACHE_HOME"]))
    for wheel, package in (
        ("python_constraint2", "constraint"),
        ("xmltodict", "xmltodict"),
        ("kernel_tuner", "kernel_tuner"),
    ):
        wheel_on_path(wheel, package, folder)
    tune_kernel = importlib.import_module("kernel_tuner").tune_kernel
    whole = workload(arguments.size)
    case = whole.role(Role.PERFORMANCE)[0]
    inputs = workloads.draw_inputs(whole, case, SEED)
    wanted = workloads.expected(whole, case, inputs)
    n, tolerance = arguments.size, whole.tolerance[""]
    verified = []

    def verify(answer: Any, result: Any, atol: float) -> bool:
        verdict = compare_output(
            np.asarray(result[2]).reshape(n, n), wanted.values["C"], wanted.scale["C"], tolerance, "float32", n
        )
        verified.append(verdict.error)
        return verdict.ok

    empty = np.zeros((n, n), np.float32)
    tunables: dict[str, list[int]] = {
        **{name: list(values) for name, values in TUNE.items()},
        "block_size_x": [4, 8, 16, 32],
        "block_size_y": [4, 8, 16, 32],
    }
    begin = time.monotonic()
    results, about = tune_kernel(
        "gemm",
        CODE,
        (n, n),
        [inputs["A"], inputs["B"], empty, np.int32(n), np.int32(n), np.int32(n)],
        tunables,
        grid_div_x=["BN"],
        grid_div_y=["BM"],
        restrictions=["block_size_x * TN == BN", "block_size_y * TM == BM", "block_size_x * block_size_y >= 32"],
        answer=[None, None, empty, None, None, None],
        verify=verify,
        lang="CUPY",
        compiler_options=list(OPTIONS),
        iterations=ITERATIONS,
        quiet=True,
    )
    wall_s = time.monotonic() - begin
    # A configuration that failed has a marker of Kernel Tuner's own for its time.
    timed = [result for result in results if isinstance(result.get("time"), int | float | np.number)]
    best = min(timed, key=lambda result: float(result["time"]))
    tell({
        "variants": len(timed),
        "wall_s": wall_s,
        "rate": len(timed) / wall_s,
        "seconds": {
            key.removeprefix("total_").removesuffix("_time"): float(value) / 1e3
            for key, value in about.items()
            if key.startswith("total_") and key.endswith("_time")
        },
        "verified": len(verified),
        "worst_error": max(verified, default=None),
        "best": {name: int(best[name]) for name in TUNE},
        "best_us": 1e3 * float(best["time"]),
        "failed": [str(result.get("__error__")) for result in results if result not in timed][:3],
    })  # fmt: skip


# --- the winners again ------------------------------------------------------------------------------------------------


def again(arguments: argparse.Namespace, tell: Callable[[dict[str, Any]], None]) -> None:
    """Time configurations beside each other, ABBA, cold and hot."""
    configs: list[Config] = json.loads(arguments.configs)
    told: dict[str, Any] = {}
    for cold in (True, False):
        with ready_lab(arguments, {}, Timing(cold=cold)) as lab:
            case, programs = lab.cases(Role.PERFORMANCE)[0], lab.programs(SOURCE)
            taken: dict[int, list[float]] = {index: [] for index in range(len(configs))}
            for _ in range(4):
                for index in (*taken, *reversed(taken)):
                    rules = timing.rules(lab.setup.timing, 0.25)
                    measured = lab.time(programs, case, rules, config=configs[index], salt=0)
                    if measured.failed is None:
                        taken[index].append(measured.median_us)
            name = "cold" if cold else "hot"
            told[name] = [statistics.median(samples) if samples else None for samples in taken.values()]
            tell(told)


# --- together ---------------------------------------------------------------------------------------------------------

CHILDREN: dict[str, Callable[[argparse.Namespace, Callable[[dict[str, Any]], None]], None]] = {
    "compile": compile_all,
    "ours": ours,
    "kernel_tuner": kernel_tuner,
    "again": again,
}


def child(name: str, arguments: argparse.Namespace, left_s: float, *more: object) -> dict[str, Any]:
    """Run a step with caches of its own, which are empty; return what it told, with its errors."""
    with tempfile.TemporaryDirectory(prefix="gpu-tuning-") as folder:
        caches = {"XDG_CACHE_HOME": f"{folder}/cache", "CUPY_CACHE_DIR": f"{folder}/cupy", "CUDA_CACHE_DISABLE": "1"}
        Path(caches["XDG_CACHE_HOME"]).mkdir()
        told = Path(folder) / "told.json"
        given = ["--child", name, "--told", told, "--size", arguments.size, *more]
        given += ["--stand-in"] * arguments.stand_in + ["--profile"] * arguments.profile
        well, output = run_child(__file__, given, left_s, caches)
        found: dict[str, Any] = json.loads(told.read_text()) if told.exists() else {}
    if not well:
        found["error"] = tail(output)
        say(f"{name} failed:\n{found['error']}")
    elif arguments.profile:
        print(output, flush=True)
    return found


def measure(arguments: argparse.Namespace, figures: dict[str, Any]) -> None:
    begin = time.monotonic()
    for index in range(arguments.rounds):
        for name in arguments.steps:
            left_s = arguments.seconds - (time.monotonic() - begin)
            if left_s < 20:
                say(f"time is up before round {index + 1}, {name}")
                return
            found = {"round": index, "step": name, **child(name, arguments, left_s)}
            figures["rounds"].append(found)
            if "rate" in found:
                spent = ", ".join(f"{what} {s:.2f} s" for what, s in found.get("seconds", {}).items())
                say(
                    f"round {index + 1} {name}: {found['variants']} variants in {found['wall_s']:.2f} s, "
                    f"{found['rate']:.1f}/s; {spent} {found['failed'] or ''}"
                )
            save(arguments.json, figures)
    liked = _bests(figures)
    bests = [liked[name] for name in ("ours", "kernel_tuner") if name in liked]
    left_s = arguments.seconds - (time.monotonic() - begin)
    if bests and left_s > 20:
        figures["again"] = child("again", arguments, left_s, "--configs", json.dumps(bests))


def _bests(figures: dict[str, Any]) -> dict[str, Any]:
    """Note which variant each tuner liked best, in its last round."""
    key = {"ours": "chosen", "kernel_tuner": "best"}
    figures["bests"] = {
        row["step"]: row[key[row["step"]]] for row in figures["rounds"] if row["step"] in key and "rate" in row
    }
    return dict(figures["bests"])


def verdict(figures: dict[str, Any]) -> dict[str, Any]:
    rates = {
        name: [row["rate"] for row in figures["rounds"] if row["step"] == name and "rate" in row] for name in STEPS
    }
    middle = {name: statistics.median(found) for name, found in rates.items() if found}
    told: dict[str, Any] = {"rates": rates}
    if "ours" in middle and "kernel_tuner" in middle:
        told["times_kernel_tuner"] = middle["ours"] / middle["kernel_tuner"]
    if "ours" in middle and "compile" in middle:
        told["share_of_compile_bound"] = middle["ours"] / middle["compile"]
    cold = figures.get("again", {}).get("cold") or []
    if len(cold) == 2 and all(cold):
        told["best_ratio"] = cold[0] / cold[1]
    return told


def shown(figures: dict[str, Any]) -> str:
    head = ("round", "step", "variants", "s", "variants/s", "launches each", "best", "its latency, µs")
    rows = [
        (
            row["round"] + 1,
            row["step"],
            row["variants"],
            f"{row['wall_s']:.2f}",
            f"{row['rate']:.1f}",
            f"{row['launches']:.1f}" if "launches" in row else (ITERATIONS if "best" in row else ""),
            " ".join(f"{name}={value}" for name, value in row.get("best", {}).items()),
            f"{row['best_us']:.1f}" if "best_us" in row else "",
        )
        for row in figures["rounds"]
        if "rate" in row
    ]
    found = figures["verdict"]
    lines = [table(head, rows), ""]
    if "times_kernel_tuner" in found:
        lines.append(f"times Kernel Tuner's rate: {found['times_kernel_tuner']:.2f} (wanted: 6)")
    if "share_of_compile_bound" in found:
        lines.append(f"share of the compile-bound rate: {found['share_of_compile_bound']:.0%} (wanted: 85 %)")
    if "again" in figures:
        lines.append(f"measured again beside each other, µs: {figures['again']} of {figures.get('bests')}")
    if "best_ratio" in found:
        lines.append(f"our best / Kernel Tuner's best, cold: {found['best_ratio']:.4f} (wanted: at most 1.01)")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=500.0, help="limit of everything together")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=STEPS)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--stand-in", action="store_true", help="no GPU: our side's own work")
    parser.add_argument("--profile", action="store_true", help="profile our side's parent")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    parser.add_argument("--told", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--configs", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        CHILDREN[arguments.child](arguments, lambda found: save(arguments.told, found))
        return
    if arguments.stand_in:
        arguments.steps = [step for step in arguments.steps if step != "kernel_tuner"]
    about = {"device": "stand-in"} if arguments.stand_in else gpu_facts()
    figures: dict[str, Any] = {**about, "cores": os.cpu_count(), "size": arguments.size, "rounds": []}
    say(f"{figures['device']}, {figures['cores']} cores, {len(variants())} variants")
    try:
        measure(arguments, figures)
    finally:
        figures["verdict"] = verdict(figures)
        save(arguments.json, figures)
        print(shown(figures), flush=True)
    sys.exit(1 if any("error" in row for row in figures["rounds"]) else 0)


if __name__ == "__main__":
    main()
