"""What is exported: a kernel with the workload that it was judged on, and how the run measured it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evo.config import Timing
from evo.kernel import Kernel
from evo.records import Device, Workload

KINDS = ("cpp", "cupy", "torch")


@dataclass(frozen=True)
class Subject:
    """A kernel of a run.

    Attributes:
        kernel: with its tuned launch rules.
        workload: of the run.
        device: of the run; launch plans that stand still are resolved for it.
        timing: of the run.
        seed: of the run; the stored inputs are those that its kernels were judged on.
        origin: where it comes from, e.g. `kernel 17 of run-003`.
        cases: names of the cases that are stored.
        latencies_us: case -> median of the run.
        arch: compile target; None compiles for the GPU that is there.
    """

    kernel: Kernel
    workload: Workload
    device: Device
    timing: Timing
    seed: int
    origin: str
    cases: tuple[str, ...] = ()
    latencies_us: Mapping[str, float] = field(default_factory=dict)
    arch: str | None = None
