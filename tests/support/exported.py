"""Runs to export, made without a search: a database with one judged kernel, on an H200 that need not be here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from evaluators.nvrtc import find
from evo import workload as workloads
from evo.config import Config
from evo.records import Candidate, CaseResult, Device, Evaluation, Latency, Outcome, Role, Status
from evo.store import Store
from tests.support import squares

H200 = Device(
    kind="cuda",
    name="NVIDIA H200",
    fingerprint="cuda NVIDIA H200 sm_90a driver 580",
    arch="sm_90a",
    num_sms=132,
    max_shared_bytes=227 << 10,
    l2_bytes=50 << 20,
)

LATENCY = Latency(12.5, 12.0, 13.0, 0.04, 100)

MIXED = """\
/* launch
launches:
  - {kernel: scale_add, block: BX, grid: "ceildiv(N, BX)", shared_bytes: "8 * BX", args: [x, state, partial, N, scale]}
  - {kernel: finish, block: 1, grid: "min(num_sms, 1)", args: [partial, total, blocks, "ceildiv(N, BX)"]}
tune: {BX: [32, 64, 128, 256]}
defaults: {BX: 64}
choose:
  - {when: "N >= 100 and N % 2 == 0", set: {BX: 128}}
require: ["BX % 32 == 0"]
workspace: {partial: "8 * ceildiv(N, BX)"}
zero: [blocks]
options: ["--fmad=false", {option: "--maxrregcount=BX", when: "BX >= 128"}]
cooperative: true
cluster: 1
*/
extern "C" __global__ void scale_add(const float* x, double* state, double* partial, int N, float scale) {
    extern __shared__ double added[];
    int i = blockIdx.x * BX + threadIdx.x;
    added[threadIdx.x] = i < N ? (double)scale * x[i] : 0.0;
    if (i < N) state[i] += added[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0.0;
        for (int t = 0; t < BX; ++t) sum += added[t];
        partial[blockIdx.x] = sum;
    }
}
extern "C" __global__ void finish(const double* partial, double* total, int* blocks, int count) {
    double sum = 0.0;
    for (int i = 0; i < count; ++i) sum += partial[i];
    total[0] = sum;
    blocks[0] += count > 0;
}
"""

_MIXED_WORKLOAD = """\
description: "Adds half of x to a state; tells what was added."
entry: scale_add
parameters:
  - {name: x, dtype: float32, direction: in, shape: [N], align: 16}
  - {name: state, dtype: float64, direction: inout, shape: [N], align: 16}
  - {name: total, dtype: float64, direction: out, shape: ["1"], align: 16}
  - {name: blocks, dtype: int32, direction: out, shape: ["1"], align: 16}
  - {name: N, dtype: int32, direction: scalar}
  - {name: scale, dtype: float32, direction: scalar, value: 0.5}
tolerance: {terms: N}
flops: "3 * N"
bytes_moved: "20 * N"
cases:
  - {name: small, role: correctness, dims: {N: 40}}
  - {name: even, role: performance, dims: {N: 1000}}
  - {name: odd, role: performance, dims: {N: 777}}
  - {name: one, role: hidden, dims: {N: 1}}
"""

_MIXED_REFERENCE = """\
import numpy as np

def reference(inputs, dims):
    added = inputs["scale"] * inputs["x"].astype(np.float64)
    total = (np.array([added.sum()]), np.array([np.abs(added).sum()]))
    return {"state": inputs["state"] + added, "total": total, "blocks": np.array([1])}
"""

_COUNTED_WORKLOAD = """\
description: "A copy, by a kernel that counts its launches in a variable of its own."
entry: counted
parameters:
  - {name: x, dtype: int32, direction: in, shape: [N], align: 16, draw: {kind: integers, low: 0, high: 9}}
  - {name: y, dtype: int32, direction: out, shape: [N], align: 16}
  - {name: N, dtype: int32, direction: scalar}
flops: 0
bytes_moved: "8 * N"
cases:
  - {name: small, role: correctness, dims: {N: 5}}
  - {name: large, role: performance, dims: {N: 300}}
  - {name: odd, role: hidden, dims: {N: 7}}
"""

_COUNTED = """\
/* launch
block: 1
grid: 1
*/
extern "C" __device__ int counter = 0;
extern "C" __global__ void counted(const int* x, int* y, int N) {
    for (int i = 0; i < N; ++i) y[i] = x[i] + counter;
    ++counter;
}
"""

_COUNTED_REFERENCE = "def reference(inputs, dims):\n    return {'y': inputs['x']}\n"


def run_of(
    place: Path,
    name: str,
    *,
    device: Device = H200,
    status: Status = Status.OK,
    source: str = "",
    latency: Latency = LATENCY,
) -> Path:
    """Make `place/results/run-001`, a run that has judged one kernel of a workload, and return its folder.

    Args:
        place: where `workloads/<name>` is made too, for the workloads of this module.
        name: `squares`, `mixed`, `counted`, or a shipped workload.
        device: of the run.
        status: of the verdict.
        source: of the kernel; "" takes the workload's own.
        latency: of every timed case.
    """
    whole = workloads.load(_folder(place, name))
    source = source or (squares.FAST if name == squares.NAME else whole.initial)
    folder = place / "results" / "run-001"
    folder.mkdir(parents=True)
    timed = tuple(
        CaseResult(case.name, case.role, Status.OK, error=0.5, latency=latency) for case in whole.role(Role.PERFORMANCE)
    )
    config = Config.model_validate({"workload": name, "seed": 3, "timing": {"warmup": 2, "launches": 20}})
    with Store.create(
        folder,
        config=config,
        workload=whole,
        device=device,
        initial=Candidate(0, -1, source, "hash", "initial", (), 0),
        search_version=1,
        versions={},
    ) as store:
        evaluation = Evaluation(0, status, source=source, score_us=12.5, ratio=1.0, cases=timed)
        store.add_evaluation_and_tell(evaluation, Outcome(-1, 0, status, 1.0))
        store.stop("interrupted")
    return folder


def _folder(place: Path, name: str) -> str:
    texts = {
        "mixed": (_MIXED_WORKLOAD, _MIXED_REFERENCE, MIXED),
        "counted": (_COUNTED_WORKLOAD, _COUNTED_REFERENCE, _COUNTED),
    }
    if name == squares.NAME:
        squares.write(place)
    elif name in texts:
        folder = place / "workloads" / name
        folder.mkdir(parents=True)
        for file, text in zip(("workload.yaml", "reference.py", "initial.cu"), texts[name], strict=True):
            (folder / file).write_text(text)
    else:
        return name
    return str(place / "workloads" / name)


def cuda_include() -> Path | None:
    """Return the folder with CUDA's headers that the wheels or a toolkit have brought; None without."""
    installed = find()
    folders = installed.includes if installed else ()
    return next((folder for folder in folders if (folder / "cuda.h").exists() and (folder / "nvrtc.h").exists()), None)


def fake_driver(folder: Path) -> Path:
    """Build a libcuda.so.1 that needs no GPU, and return the folder that `LD_LIBRARY_PATH` has to name."""
    include, compiler = cuda_include(), shutil.which("g++")
    assert include is not None
    assert compiler is not None
    folder.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("fake_cuda.cpp")
    command = [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", "-I", include, source, "-o", folder / "libcuda.so.1"]
    subprocess.run(command, check=True)
    return folder
