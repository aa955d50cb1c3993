"""A small workload and a kernel for it, as records, for tests that need no folder."""

from __future__ import annotations

from evo.records import Case, Device, Direction, Parameter, Role, Tolerance, Workload

DEVICE = Device(kind="test", name="test", fingerprint="test", arch="sm_90", num_sms=4)

GEMM = """// A comment above.
/* launch
block: "BX, BY"
grid: "ceildiv(N, BX), ceildiv(M, BY * TM)"
shared_bytes: "4 * BX * BY"
tune: {BX: [16, 32, 64], BY: [4, 8, 16], TM: [1, 2, 4]}  # kept
require: ["BX * BY <= 1024", "BX * BY % 32 == 0"]
defaults: {BX: 32, BY: 8, TM: 1}
choose:
  - {when: "M == 4096 and N == 4096", set: {BX: 64, BY: 4, TM: 4}}
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
    C[0] = A[0] + B[0];
}
"""


def gemm_workload(**dims: int) -> Workload:
    """C = A B with one case of the given dims (M = 100, N = 70, K = 3 by default)."""
    case = Case("only", Role.CORRECTNESS, {"M": 100, "N": 70, "K": 3, **dims})
    return Workload(
        name="gemm",
        description="C = A B",
        entry="gemm",
        parameters=(
            Parameter("A", "float32", Direction.IN, ("M", "K")),
            Parameter("B", "float32", Direction.IN, ("K", "N")),
            Parameter("C", "float32", Direction.OUT, ("M", "N")),
            *(Parameter(name, "int32", Direction.SCALAR) for name in "MNK"),
        ),
        cases=(case,),
        tolerance={"": Tolerance(terms="K")},
        deterministic=False,
        fast_math=False,
        flops="2 * M * N * K",
        bytes_moved="4 * (M * K + K * N + M * N)",
        reference="",
        initial=GEMM,
    )
