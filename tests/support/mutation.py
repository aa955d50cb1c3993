"""A made-up mutation: a GEMM workload, two devices, kernels with their evaluations, and the context around them."""

from __future__ import annotations

from evo.records import (
    Case,
    CaseResult,
    Device,
    Direction,
    Evaluation,
    Latency,
    Mutate,
    MutationContext,
    Parameter,
    Relative,
    Resources,
    Role,
    Status,
    Tolerance,
    Trial,
    Workload,
)

HOST = Device("host", "a CPU", "cpu-1", "x86-64-native", l2_bytes=1 << 20)
GPU = Device("cuda", "NVIDIA H200", "gpu-1", "sm_90a", 132, 1024, 232448, 50 << 20, 65536)

NAIVE = """\
/* launch
block: "BX, 8"
grid: "ceildiv(N, BX), ceildiv(M, 8)"
tune: {BX: [16, 32]}
defaults: {BX: 16}
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    int col = blockIdx.x * BX + threadIdx.x;
    int row = blockIdx.y * 8 + threadIdx.y;
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
        C[row * N + col] = sum;
    }
}
"""
FASTER = NAIVE.replace("float sum = 0.0f;", "float sum = 0.0f;\n        #pragma unroll 4")
BROKEN = NAIVE.replace("if (row < M && col < N) {", "if (row < M) {")

WORKLOAD = Workload(
    name="gemm",
    description="C = A B for row-major float32 matrices.",
    entry="gemm",
    parameters=(
        Parameter("A", "float32", Direction.IN, ("M", "K")),
        Parameter("B", "float32", Direction.IN, ("K", "N")),
        Parameter("C", "float32", Direction.OUT, ("M", "N")),
        Parameter("M", "int32", Direction.SCALAR),
        Parameter("N", "int32", Direction.SCALAR),
        Parameter("K", "int32", Direction.SCALAR),
    ),
    cases=(
        Case("small", Role.CORRECTNESS, {"M": 32, "N": 32, "K": 32}),
        Case("square", Role.PERFORMANCE, {"M": 256, "N": 256, "K": 256}),
        Case("secret_primes", Role.HIDDEN, {"M": 6151, "N": 8363, "K": 9781}),
    ),
    tolerance={"": Tolerance(terms="K")},
    deterministic=False,
    fast_math=False,
    flops="2 * M * N * K",
    bytes_moved="4 * (M * K + K * N + M * N)",
    reference="SECRET_REFERENCE",
    initial=NAIVE,
)


def accepted(candidate: int, median_us: float) -> Evaluation:
    """An accepted kernel's evaluation with a tuned configuration, a trial list and resources."""
    latency = Latency(median_us, median_us * 0.98, median_us * 1.03, 0.02, 100)
    return Evaluation(
        candidate=candidate,
        status=Status.OK,
        stage="time",
        source="",
        score_us=median_us,
        ratio=median_us / 2000,
        cases=(
            CaseResult("small", Role.CORRECTNESS, Status.OK, error=0.25),
            CaseResult("square", Role.PERFORMANCE, Status.OK, "", 0.5, latency, 2000.0, {"BX": 32}),
            CaseResult("secret_primes", Role.HIDDEN, Status.OK, "M = 6151 went well", 0.9),
        ),
        trials=(
            Trial("square", {"BX": 16}, Status.OK, median_us * 1.5),
            Trial("square", {"BX": 32}, Status.OK, median_us),
        ),
        resources={"gemm": Resources(registers=32, spill_bytes=0)},
        device="cpu-1",
    )


def rejected(candidate: int, status: Status, stage: str, message: str, **more: object) -> Evaluation:
    """A rejected kernel's evaluation."""
    return Evaluation(candidate=candidate, status=status, stage=stage, message=message, **more)  # type: ignore[arg-type]


def context(
    parent: Relative | None = None,
    inspirations: tuple[Relative, ...] = (),
    device: Device = HOST,
    workload: Workload = WORKLOAD,
    seed: tuple[int, ...] = (0, 1),
) -> MutationContext:
    """A context as the runner would build it, hidden case included: operators must leave it out by themselves."""
    parent = parent or Relative(1, NAIVE, accepted(1, 1500.0))
    task = Mutate(1, "rewrite", 0, (parent.id,), tuple(other.id for other in inspirations))
    return MutationContext(task, seed, workload, device, (parent,), inspirations)
