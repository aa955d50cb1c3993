"""A workload's baseline.py, timed where a kernel would be: how fast the vendor's library is, by the same protocol."""

from __future__ import annotations

from evaluators.bench import Program
from evo import workload as workloads
from evo.records import Call, Case, Direction, LaunchPlan, Workload


class Baseline:
    """What stands beside a kernel's `Programs` in a comparison.

    Args:
        workload: has a baseline.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    def program(self, case: Case) -> Program:
        """Return what is to be called on a case."""
        arrays = [p for p in self._workload.parameters if p.direction is not Direction.SCALAR]
        call = Call(
            source=self._workload.baseline or "",
            dims=dict(case.dims),
            arrays={parameter.name: (workloads.shape(parameter, case), parameter.dtype) for parameter in arrays},
            outputs=tuple(parameter.name for parameter in self._workload.outputs),
        )
        return Program(LaunchPlan(()), b"", call=call)
