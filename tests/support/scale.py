"""A workload small enough to reason about: y = 2 x, in float32; and kernels and set-ups for the NumPy device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evaluators.device import Setup
from evo.config import Timing, Tuning
from evo.records import Case, Direction, Draw, Parameter, Role, Tolerance, Workload

DEVICE = str(Path(__file__).with_name("numpy_device.py"))

REFERENCE = """
import numpy as np
def reference(inputs, dims):
    return {"y": 2.0 * inputs["x"].astype(np.float64)}
"""

HEADER = """/* launch
block: "BX"
grid: "ceildiv(N, BX)"
tune: {BX: [32, 64, 96, 128]}
defaults: {BX: 32}
*/
"""

BODY = """
extern "C" __global__ void scale(const float* x, float* y, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) y[i] = 2.0f * x[i];
}
"""


def kernel(behaviour: str = "ok", header: str = HEADER) -> str:
    """Return a kernel that the NumPy device runs with a behaviour of its own."""
    return f"{header}// behaviour: {behaviour}{BODY}"


def workload(**changes: object) -> Workload:
    """Return the workload, with fields changed."""
    dims = {"small": 40, "ragged": 33, "large": 4096, "other": 1000, "secret": 577}
    roles = {"large": Role.PERFORMANCE, "other": Role.PERFORMANCE, "secret": Role.HIDDEN}
    cases = [Case(name, roles.get(name, Role.CORRECTNESS), {"N": n}) for name, n in dims.items()]
    made = Workload(
        name="scale",
        description="y = 2 x",
        entry="scale",
        parameters=(
            Parameter("x", "float32", Direction.IN, ("N",), draw=Draw("normal", 0.0, 1.0)),
            Parameter("y", "float32", Direction.OUT, ("N",)),
            Parameter("N", "int32", Direction.SCALAR),
        ),
        cases=tuple(cases),
        tolerance={"": Tolerance()},
        deterministic=True,
        fast_math=False,
        flops="N",
        bytes_moved="8 * N",
        reference=REFERENCE,
        initial=kernel(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def setup(trials: int = 0, **changes: object) -> Setup:
    """Return a set-up for the workload; `trials` of 0 leaves tuning out."""
    made = Setup(
        workload=workload(),
        timing=Timing(warmup=2, launches=10, cold=False),
        tuning=Tuning(trials=trials),
        seed=7,
        anchor=kernel(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]
