"""Does our timer tell the truth? The same CUBIN timed by us, by nvbench (`cuda.bench`) and by plain events.

An empty kernel, a copy of 64 MiB by float4 and a tiled float32 GEMM of 64 to 1024 cubed are compiled once and timed by
three processes, one after the other, in several rounds: `ours` (jobs run by the device plug-in: 10 warm-ups, 100
samples, caches flushed), `nvbench` (cold, isolated, median of its samples) and `naive` (CuPy launches with an event
before and behind each, nothing queued ahead). Wanted: the medians of ours and nvbench differ by at most
max(3 %, 0.3 µs). nvbench is taken from a wheel in `.gpu` where it is not installed.

usage: PYTHONPATH=. python3 benchmarks/perf/gpu_timer.py [--rounds 3] [--seconds 300] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gpu_common import gpu_facts, run_child, save, say, table, tail, wheel_on_path

from evaluators.bench import IMAGE
from evaluators.cuda import CudaDevice
from evo.records import Buffer, CompileRequest, Direction, Job, Launch, LaunchPlan, Scalar, Status

WAYS = ("ours", "nvbench", "naive")
RELATIVE, ABSOLUTE_US = 0.03, 0.3
"""Acceptance: the greater of the two."""
WARMUP, SAMPLES = 10, 100
COPY_BYTES = 64 << 20
TILE = 16
SIZES = (64, 128, 256, 512, 1024)
SOURCE = f"""
extern "C" __global__ void empty() {{}}

extern "C" __global__ void copy(const float4* from, float4* to, int n) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] = from[i];
}}

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int N) {{
    __shared__ float a[{TILE}][{TILE}], b[{TILE}][{TILE}];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * {TILE} + y, col = blockIdx.x * {TILE} + x;
    float sum = 0.0f;
    for (int k = 0; k < N; k += {TILE}) {{
        a[y][x] = A[row * N + k + x];
        b[y][x] = B[(k + y) * N + col];
        __syncthreads();
        for (int i = 0; i < {TILE}; ++i) sum += a[y][i] * b[i][x];
        __syncthreads();
    }}
    C[row * N + col] = sum;
}}
"""
KERNELS = ("empty", "copy", "gemm")


@dataclass(frozen=True)
class Timed:
    """One kernel with its numbers: what every way of timing launches. All buffers are float32; `scalar` is an int."""

    name: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    inputs: tuple[tuple[str, int], ...] = ()
    output: tuple[str, int] | None = None
    scalar: int | None = None


def cases() -> tuple[Timed, ...]:
    floats = COPY_BYTES // 4
    copy_blocks = COPY_BYTES // 16 // 256
    copy = Timed("copy 64 MiB", "copy", (copy_blocks, 1, 1), (256, 1, 1), (("from", floats),), ("to", floats))
    gemms = (
        Timed(
            f"GEMM {n}³",
            "gemm",
            (n // TILE, n // TILE, 1),
            (TILE, TILE, 1),
            (("A", n * n), ("B", n * n)),
            ("C", n * n),
            n,
        )
        for n in SIZES
    )
    return Timed("empty", "empty", (1, 1, 1), (1, 1, 1)), replace(copy, scalar=COPY_BYTES // 16), *gemms


def data(folder: Path, name: str, floats: int) -> Path:
    return folder / f"{name}.{floats}"


def prepare(folder: Path) -> None:
    """Compile the CUBIN and write the inputs: dense mantissas, since zeros raise clocks."""
    device = CudaDevice()
    binary = device.compile(CompileRequest(SOURCE, KERNELS, {}, (), device.describe().arch))
    if binary.status is not Status.OK:
        raise SystemExit(f"the kernels do not compile: {binary.message}")
    (folder / IMAGE).write_bytes(binary.image)
    rng = np.random.default_rng(7)
    for case in cases():
        for name, floats in case.inputs:
            rng.standard_normal(floats, np.float32).tofile(data(folder, name, floats))


# --- ours -------------------------------------------------------------------------------------------------------------


def ours(folder: Path, told: Path) -> None:
    device = CudaDevice()
    device.prepare()
    flush_bytes = 2 * device.describe().l2_bytes
    figures: dict[str, Any] = {}
    for case in cases():
        result = device.run(_job(folder, case, flush_bytes))
        if result.status is not Status.OK:
            figures[case.name] = {"error": f"{result.status}: {result.message}"}
        else:
            figures[case.name] = {**summary(result.samples_us), "doubts": list(result.doubts)}
            if result.conditions is not None:
                figures[case.name]["clock_mhz"] = result.conditions.sm_clock_mhz
        told.write_text(json.dumps(figures))


def _job(folder: Path, case: Timed, flush_bytes: int) -> Job:
    buffers = [
        Buffer(name, "float32", 4 * floats, Direction.IN, data(folder, name, floats).name)
        for name, floats in case.inputs
    ]
    if case.output is not None:
        buffers.append(Buffer(case.output[0], "float32", 4 * case.output[1], Direction.OUT))
    scalars = () if case.scalar is None else (Scalar("n", "int32", case.scalar),)
    args = (*(buffer.name for buffer in buffers), *(scalar.name for scalar in scalars))
    plan = LaunchPlan((Launch(case.kernel, case.grid, case.block, 0, args),))
    return Job(str(folder), IMAGE, plan, tuple(buffers), scalars, WARMUP, SAMPLES, flush_bytes, seed=1, timeout_s=30.0)


# --- nvbench ----------------------------------------------------------------------------------------------------------


def nvbench(folder: Path, told: Path) -> None:
    wheel_on_path("cuda_bench", "cuda.bench", folder)
    from cuda import bench
    from cuda.bench.results import BenchmarkResult

    names = {f"case_{index}": case.name for index, case in enumerate(cases())}
    for name, case in zip(names, cases(), strict=True):
        bench.register(_benchmark(folder, case)).set_name(name)
    samples = folder / f"nvbench.{time.time_ns()}.json"
    options = {
        "--jsonbin": samples,
        "--devices": 0,
        "--cold-warmup-runs": WARMUP,
        "--min-samples": SAMPLES,
        "--timeout": 10,
        "--stopping-criterion": "sample-count",
        "--target-samples": 3 * SAMPLES,
    }
    bench.run_all_benchmarks([sys.argv[0], *(str(word) for pair in options.items() for word in pair)])
    figures: dict[str, Any] = {}
    for name, benchmark in BenchmarkResult.from_json(samples).items():
        state = benchmark[0]
        if state.is_skipped or not state.samples:
            figures[names[name]] = {"error": f"nvbench took no samples: {state.skip_reason}"}
        else:
            figures[names[name]] = summary([1e6 * float(seconds) for seconds in state.samples])
    told.write_text(json.dumps(figures))


def _benchmark(folder: Path, case: Timed) -> Callable[[Any], None]:
    """Return a benchmark that launches the CUBIN on nvbench's stream, in the primary context, as nvbench does."""
    from evaluators.cudalib.driver import call, cu

    def run(state: Any) -> None:
        call(cu.cuInit(0))
        context = call(cu.cuDevicePrimaryCtxRetain(call(cu.cuDeviceGet(0))))
        call(cu.cuCtxSetCurrent(context))
        module = call(cu.cuModuleLoadData((folder / IMAGE).read_bytes()))
        function = call(cu.cuModuleGetFunction(module, case.kernel.encode()))
        memory, arguments = [], []
        for name, floats in case.inputs:
            content = np.fromfile(data(folder, name, floats), np.float32)
            memory.append(call(cu.cuMemAlloc(content.nbytes)))
            call(cu.cuMemcpyHtoD(memory[-1], content.ctypes.data, content.nbytes))
        if case.output is not None:
            memory.append(call(cu.cuMemAlloc(4 * case.output[1])))
        arguments = [np.array([int(pointer)], np.uint64) for pointer in memory]
        if case.scalar is not None:
            arguments.append(np.array([case.scalar], np.int32))
        pointers = np.array([argument.ctypes.data for argument in arguments] or [0], np.uint64)
        call(cu.cuCtxSynchronize())

        def launch(launched: Any) -> None:
            stream = cu.CUstream(launched.get_stream().addressof())
            call(cu.cuLaunchKernel(function, *case.grid, *case.block, 0, stream, pointers.ctypes.data, 0))

        state.exec(launch, batched=False)
        call(cu.cuCtxSynchronize())
        for pointer in memory:
            call(cu.cuMemFree(pointer))
        call(cu.cuModuleUnload(module))

    return run


# --- naive ------------------------------------------------------------------------------------------------------------


def naive(folder: Path, told: Path) -> None:
    import cupy

    figures: dict[str, Any] = {}
    module = cupy.RawModule(path=str(folder / IMAGE))
    for case in cases():
        function = module.get_function(case.kernel)
        arguments: list[Any] = [
            cupy.asarray(np.fromfile(data(folder, name, floats), np.float32)) for name, floats in case.inputs
        ]
        if case.output is not None:
            arguments.append(cupy.empty(case.output[1], cupy.float32))
        if case.scalar is not None:
            arguments.append(np.int32(case.scalar))
        taken = []
        for index in range(WARMUP + SAMPLES):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            function(case.grid, case.block, tuple(arguments))
            end.record()
            end.synchronize()
            if index >= WARMUP:
                taken.append(1e3 * float(cupy.cuda.get_elapsed_time(begin, end)))
        figures[case.name] = summary(taken)
        told.write_text(json.dumps(figures))


# --- together ---------------------------------------------------------------------------------------------------------


def summary(samples_us: Any) -> dict[str, Any]:
    samples = [float(sample) for sample in samples_us]
    low, high = np.quantile(samples, [0.25, 0.75])
    return {
        "median_us": statistics.median(samples),
        "quartiles_us": [float(low), float(high)],
        "least_us": min(samples),
        "samples": len(samples),
    }


def measure(arguments: argparse.Namespace, folder: Path, figures: dict[str, Any]) -> None:
    begin = time.monotonic()
    for index in range(arguments.rounds):
        for way in WAYS:
            left_s = arguments.seconds - (time.monotonic() - begin)
            if left_s < 5:
                say(f"time is up before round {index + 1}, {way}")
                return
            told = folder / f"{way}.{index}.json"
            started = time.monotonic()
            well, output = run_child(__file__, ["--child", way, "--folder", folder, "--told", told], min(left_s, 90))
            found = json.loads(told.read_text()) if told.exists() else {}
            figures["rounds"].append({"round": index, "way": way, "cases": found})
            wrong = [f"{name}: {row['error']}" for name, row in found.items() if "error" in row]
            medians = ", ".join(f"{name} {row['median_us']:.2f}" for name, row in found.items() if "error" not in row)
            say(f"round {index + 1} {way:8} {time.monotonic() - started:5.1f} s: {medians or 'nothing'}")
            if not well or wrong:
                say(f"{way} failed: {'; '.join(wrong)}\n{tail(output)}")
            save(arguments.json, figures)


def results(figures: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for case in cases():
        row: dict[str, Any] = {"case": case.name}
        for way in WAYS:
            row[way] = [
                taken["cases"][case.name]["median_us"]
                for taken in figures["rounds"]
                if taken["way"] == way and "median_us" in taken["cases"].get(case.name, {})
            ]
        if row["ours"] and row["nvbench"]:
            mine, theirs = statistics.median(row["ours"]), statistics.median(row["nvbench"])
            row["difference_us"] = mine - theirs
            row["allowed_us"] = max(RELATIVE * theirs, ABSOLUTE_US)
            row["within"] = abs(mine - theirs) <= row["allowed_us"]
        rows.append(row)
    return rows


def shown(rows: list[dict[str, Any]]) -> str:
    def cell(medians: list[float]) -> str:
        if not medians:
            return "none"
        spread = f" ({min(medians):.2f}–{max(medians):.2f})" if len(medians) > 1 else ""
        return f"{statistics.median(medians):.2f}{spread}"

    head = ("median, µs (of rounds)", *WAYS, "ours − nvbench", "allowed", "within")
    body = [
        (
            row["case"],
            *(cell(row[way]) for way in WAYS),
            f"{row['difference_us']:+.2f}" if "difference_us" in row else "none",
            f"{row['allowed_us']:.2f}" if "allowed_us" in row else "none",
            {True: "yes", False: "**no**", None: "unknown"}[row.get("within")],
        )
        for row in rows
    ]
    return table(head, body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=300.0, help="limit of all rounds together")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--told", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        {"ours": ours, "nvbench": nvbench, "naive": naive}[arguments.child](arguments.folder, arguments.told)
        return
    with tempfile.TemporaryDirectory(prefix="gpu-timer-") as name:
        folder = Path(name)
        prepare(folder)
        figures: dict[str, Any] = {**gpu_facts(), "rounds": []}
        say(f"{figures['device']}; the CUBIN and the inputs are ready")
        try:
            measure(arguments, folder, figures)
        finally:
            figures["results"] = results(figures)
            save(arguments.json, figures)
            print(shown(figures["results"]), flush=True)
    verdicts = [row.get("within") for row in figures["results"]]
    print(f"within max(3 %, 0.3 µs): {verdicts.count(True)} of {len(verdicts)}", flush=True)
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()
