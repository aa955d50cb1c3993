"""A made-up mutation: a GEMM workload, two devices, kernels with their evaluations, and the context around them."""

from __future__ import annotations

from dataclasses import replace

from evo import config, plugins
from evo.records import (
    Attempt,
    Case,
    CaseResult,
    Device,
    Direction,
    Evaluation,
    KernelProfile,
    Latency,
    ModelFacts,
    ModelReply,
    ModelRequest,
    Mutate,
    MutationContext,
    Operator,
    Parameter,
    Peaks,
    Profile,
    Relative,
    Resources,
    Role,
    Roofline,
    Status,
    Tolerance,
    Trial,
    Workload,
)

HOST = Device("host", "a CPU", "cpu-1", "x86-64-native", l2_bytes=1 << 20)
UNKNOWN = ModelFacts()
PEAKS = Peaks(4.8e12, 6.69e13, 4.95e14, 9.89e14, 9.89e14)
GPU = Device("cuda", "NVIDIA H200", "gpu-1", "sm_90a", 132, 1024, 232448, 50 << 20, 65536, peaks=PEAKS)

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


def measured(evaluation: Evaluation) -> Evaluation:
    """The evaluation with what a GPU adds: a roofline for each timed case, and a profile."""
    roofline = Roofline(0.502, "fp32", 0.031, 0.011, 0.031, "fp32")
    cases = tuple(replace(result, roofline=roofline) if result.latency else result for result in evaluation.cases)
    counted = KernelProfile(
        "gemm",
        duration_us=1510.0,
        sm_pct=22.0,
        dram_pct=1.2,
        l2_pct=11.0,
        l1_pct=91.5,
        dram_read_bytes=5.3e5,
        dram_written_bytes=2.6e5,
        l1_hit_pct=87.0,
        l2_hit_pct=96.0,
        theoretical_occupancy_pct=100.0,
        achieved_occupancy_pct=61.0,
        waves=0.24,
        registers=32,
        issue_pct=21.0,
        stalls_pct={"the queue of the load/store unit": 58.0, "a value from memory": 24.0},
    )
    return replace(evaluation, cases=cases, profile=Profile("square", (counted,)))


def rejected(candidate: int, status: Status, stage: str, message: str, **more: object) -> Evaluation:
    """A rejected kernel's evaluation."""
    return Evaluation(candidate=candidate, status=status, stage=stage, message=message, **more)  # type: ignore[arg-type]


def context(
    parent: Relative | None = None,
    inspirations: tuple[Relative, ...] = (),
    device: Device = HOST,
    workload: Workload = WORKLOAD,
    seed: tuple[int, ...] = (0, 1),
    *,
    second: Relative | None = None,
    tried: tuple[Attempt, ...] = (),
    model: ModelFacts = UNKNOWN,
) -> MutationContext:
    """A context as the runner would build it, hidden case included: operators must leave it out by themselves."""
    parent = parent or Relative(1, NAIVE, accepted(1, 1500.0))
    parents = (parent, second) if second is not None else (parent,)
    ids = tuple(one.id for one in parents)
    task = Mutate(1, "rewrite", 0, ids, tuple(other.id for other in inspirations), tuple(one.id for one in tried))
    return MutationContext(task, seed, workload, device, parents, inspirations, tried, model)


def operators() -> dict[str, Operator]:
    """Every operator that asks a model, by name."""
    names = [name for name in plugins.available(plugins.OPERATORS) if not config.traits(name).offline]
    return {name: plugins.resolve(plugins.OPERATORS, name)() for name in names}


def asked(operator: Operator, about: MutationContext, history: tuple[ModelReply, ...] = ()) -> str:
    """The last user message of the operator's next request."""
    request = operator.step(about, history)
    assert isinstance(request, ModelRequest), request
    assert request.messages[-1].role == "user"
    return request.messages[-1].content


def replied(text: str, finish_reason: str = "stop") -> ModelReply:
    """A reply of a model."""
    return ModelReply("ok", text=text, finish_reason=finish_reason)


TRIED = (
    Attempt(12, "edit", (1,), "Loads are float4 now.", Status.OK, "time", "", 0.67, 0.75),
    Attempt(
        13,
        "rewrite",
        (1,),
        "A tile of A in shared memory.",
        Status.UNSAFE,
        "screen",
        "line 9: a race on tile",
        None,
        0.75,
    ),
    Attempt(9, "launch", (4, 2), "Wider blocks.", Status.OK, "time", "", 0.9, 0.6),
    *(Attempt(20 + n, "rules", (1,), "", Status.OK, "time", "", 0.75 + 0.01 * n, 0.75) for n in range(12)),
    *(Attempt(40 + n, "explore", (1,), "", Status.WRONG_ANSWER, "validate", "C[0] is 3", None, 0.75) for n in range(9)),
)
"""What a search has tried."""
