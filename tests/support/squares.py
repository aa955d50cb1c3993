"""A workload that takes milliseconds: y = x * x, whose first kernel waits at a barrier that a better one lacks."""

from __future__ import annotations

from pathlib import Path

NAME = "squares"

INITIAL = """\
/* launch
block: 256
grid: "ceildiv(N, 256)"
*/
extern "C" __global__ void squares(const float* x, float* y, int N) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < N ? x[i] : 0.0f;
    __syncthreads();
    if (i < N) y[i] = tile[threadIdx.x] * tile[threadIdx.x];
}
"""

FAST = """\
/* launch
block: 256
grid: "ceildiv(N, 256)"
*/
extern "C" __global__ void squares(const float* x, float* y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = x[i] * x[i];
}
"""

WRONG = FAST.replace("x[i] * x[i]", "x[i] + x[i]")

HIDDEN_SIZE = 7919

_WORKLOAD = f"""\
description: "The square of each of N values."
entry: squares
parameters:
  - {{name: x, dtype: float32, direction: in, shape: [N]}}
  - {{name: y, dtype: float32, direction: out, shape: [N]}}
  - {{name: N, dtype: int32, direction: scalar}}
flops: N
bytes_moved: "8 * N"
cases:
  - {{name: small, role: correctness, dims: {{N: 64}}}}
  - {{name: large, role: performance, dims: {{N: 16384}}}}
  - {{name: prime, role: hidden, dims: {{N: {HIDDEN_SIZE}}}}}
"""

_REFERENCE = "def reference(inputs, dims):\n    return {'y': inputs['x'].astype('float64') ** 2}\n"


def write(place: Path) -> None:
    """Make `workloads/squares` in a folder, so that it is found by its name from there."""
    folder = place / "workloads" / NAME
    folder.mkdir(parents=True)
    (folder / "workload.yaml").write_text(_WORKLOAD)
    (folder / "reference.py").write_text(_REFERENCE)
    (folder / "initial.cu").write_text(INITIAL)
