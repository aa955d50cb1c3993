"""An offline operator for `gpu_thousand.py`: right kernels of many speeds, and a fifth broken in ten ways.

Every source says in a comment what must become of it. Five faults show in the pre-screen, five only at the timed size,
which the pre-screen's checker does not run: the GPU itself has to survive those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evo.records import ModelReply, MutationContext, Proposal

LARGE = 10000
"""Faults of the GPU's own show beyond this N; only the timed case is larger."""
KERNEL = """/* launch
block: {block}
grid: "ceildiv(N, {block})"
*/
// expect: {status} ({fault})
extern "C" __global__ void chain(const float* x, float* y, float one, float zero, int N) {{
    __shared__ float side[{block}];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < N ? x[i] : 0.0f;
    #pragma unroll 1
    for (int turn = 0; turn < {turns}; ++turn) v = fmaf(v, one, zero * {salt}.0f);
    {body}
    if (i < N) y[i] = 2.0f * v;
    {tail}
}}
"""
RACE = "side[threadIdx.x] = v; if (threadIdx.x > 0) v += zero * side[threadIdx.x - 1];"
SPIN = f"volatile float* p = y; while (N > {LARGE} && p[0] != 12345.0f) {{}}"
FAULTS: tuple[tuple[str, str, str, str], ...] = (
    # name, status, body, tail
    ("does not compile", "compile_error", "v = undeclared;", ""),
    ("block too large", "bad_launch", "", ""),
    ("wrong everywhere", "wrong_answer", "v += 0.5f;", ""),
    ("race", "unsafe", RACE, ""),
    ("writes its input", "unsafe", "", "if (i == 3) const_cast<float*>(x)[i] = 7.0f;"),
    ("wrong when large", "wrong_answer", f"if (N > {LARGE} && i == N - 2) v += 0.5f;", ""),
    ("illegal address when large", "unsafe", f"if (N > {LARGE}) y[(1ll << 44) + i] = v;", ""),
    ("hangs when large", "timeout", SPIN, ""),
    ("traps when large", "launch_error", f"if (N > {LARGE} && i == 5) __trap();", ""),
    ("beyond the end when large", "unsafe", "", f"if (N > {LARGE} && i == 0) y[N] = v;"),
)


def source(salt: int, fault: int | None, turns: int = 200, block: int = 128) -> str:
    """Return a kernel; `salt` makes it like no other, `fault` is an index of `FAULTS`."""
    name, status, body, tail = FAULTS[fault] if fault is not None else ("right", "ok", "", "")
    block = 2048 if name == "block too large" else block
    return KERNEL.format(block=block, status=status, fault=name, turns=turns, salt=salt, body=body, tail=tail)


@dataclass(frozen=True)
class Thousand:
    """Proposes the kernel of a task's number, whatever its parent is."""

    offline: ClassVar[bool] = True

    def step(self, context: MutationContext, history: tuple[ModelReply, ...] = ()) -> Proposal:
        """Return every fifth time a broken kernel, the ways of breaking in turn."""
        rng = np.random.default_rng(context.seed)
        number = context.task.id
        fault = number // 5 % len(FAULTS) if number % 5 == 4 else None
        turns, block = int(rng.integers(100, 2000)), int(rng.choice([64, 128, 256]))
        return Proposal(source(number, fault, turns, block), "right" if fault is None else FAULTS[fault][0])
